package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestWrongCommandLineIsExplainedInOneSentence(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"join", "argosy: the name of the cluster is missing; for example: argosy join eu --cluster-kubeconfig eu.kubeconfig"},
		{"join eu", "argosy: --cluster-kubeconfig is missing; for example: argosy join eu --cluster-kubeconfig eu.kubeconfig"},
		{"unjoin eu us", `only the name of the cluster is expected, got ["eu" "us"]; for example: argosy unjoin eu`},
		{"restore", "the backup file is missing; for example: argosy restore /mnt/backups/"},
		{"status now", "`argosy status` takes no argument \"now\"; for example: argosy status"},
		{"convert", "--filename is missing; see `argosy convert --help`"},
		{"orphans delete deployment web again", `only KIND NAME is expected, got ["deployment" "web" "again"]`},
		{"why deployment web --clsuter eu", "unknown flag --clsuter; did you mean --cluster?"},
		{"status --verbosely", "unknown flag --verbosely; `argosy status --help` lists the flags"},
		{"status -xz", "unknown flag -x in -xz; `argosy status --help` lists the flags"},
		{"unjoin eu --wait", "--wait needs a value: how long to wait"},
		{"unjoin eu --wait soon", `--wait "soon" is not valid: `},
		{"cordon", "the name of a cluster is missing; for example: "},
		{"taint", "the name of a cluster is missing; for example: "},
		{"statsu", `unknown command "statsu"; did you mean status?`},
		{"-n shop nonsense", "unknown command \"nonsense\"; `argosy --help` lists the commands"},
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(c.line)...), &out, &errOut)
		if got := errOut.String(); code != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) || out.Len() > 0 {
			t.Errorf("argosy %s ends with %d and says %q, want one line with %q; standard output: %q", c.line, code, got, c.want, &out)
		}
	}
}
