package cli

import (
	"bytes"
	"fmt"
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
		{"label cluster eu a=b -C eu", "unknown flag -C; `argosy label --help` lists the flags"},
		{"unjoin eu --wait", "--wait needs a value: how long to wait"},
		{"unjoin eu --wait soon", `--wait "soon" is not valid: `},
		{"cordon", "the name of a cluster is missing; for example: "},
		{"taint", "the name of a cluster is missing; for example: "},
		{"statsu", `unknown command "statsu" for "argosy"; did you mean "status"?`},
		{"statsu --help", `unknown command "statsu" for "argosy"; did you mean "status"?`},
		{"rollout paus", `unknown command "paus" for "argosy rollout"; did you mean "pause"?`},
		{"certificates renwe", `unknown command "renwe" for "argosy certificates"; did you mean "renew"?`},
		{"completion bsh", `unknown command "bsh" for "argosy completion"; did you mean "bash"?`},
		{"interpret explian", `unknown command "explian" for "argosy interpret"; did you mean "explain"?`},
		{"why deployment/a deployment/b", "name one object, as KIND NAME or KIND/NAME, such as deployment web; got"},
		{"nonsense -f x", "unknown command \"nonsense\" for \"argosy\"; `argosy --help` lists the commands"},
		{"statsu -o json", `unknown command "statsu" for "argosy"; did you mean "status"?`},
		{"-n shop statsu --force -q", `unknown command "statsu" for "argosy"; did you mean "status"?`},
		{"diff -f x --kubeconfig h", "use kubectl with the kubeconfig of the hub: `kubectl diff -f x --kubeconfig h`"},
		{"--kubeconfig h run web --image x", "of kubectl; use kubectl with the kubeconfig of the hub: `kubectl --kubeconfig h run"},
		{"scale deployment web --replicas 2 --kubeconfig=h", "`kubectl scale deployment web --replicas 2 --kubeconfig=h`"},
		{"wait pod web --kubeconfig h", "does not have the command \"wait\" of kubectl"},
		{"auth whoami --kubeconfig h --karmada-context c", "`kubectl auth whoami --kubeconfig h --context c`"},
		{"cp a b", "--kubeconfig "},
		{"create nonsense", `unknown command "nonsense" for "argosy create"`},
		{"create", "must specify one of -f and -k"},
		{"apply web.yaml", "`argosy apply` takes no argument \"web.yaml\""},
		{"apply -f x -C eu --all-clusters", "--all-clusters and --cluster cannot be used together"},
		{"api-versions -s members", "name the cluster with --cluster"},
		{"api-resources -C eu,us", "name one cluster with --cluster, not eu, us"},
		{"explain deployment -s all", "--operation-scope must be karmada or members, not \"all\""},
		{"init --config karmada.yaml --etcd-replicas 3", "run it with `argosy up`, install it as a systemd service with `argosy install`"},
		{"deinit -f --purge-namespace", "remove it with `argosy uninstall` or `helm uninstall`"},
		{"-n shop nonsense", "unknown command \"nonsense\" for \"argosy\"; `argosy --help` lists the commands"},
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(c.line)...), &out, &errOut)
		if got := errOut.String(); code != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) ||
			out.Len() > 0 {
			t.Errorf("argosy %s ends with %d and says %q, want one line with %q; standard output: %q", c.line, code, got, c.want,
				&out)
		}
	}
}

func TestUnknownSubcommandFailsInEveryGroup(t *testing.T) {
	root := newRoot("argosy")
	root.InitDefaultCompletionCmd()
	groups := 0
	for _, group := range everyCommand(root) {
		if !group.HasSubCommands() || group.Name() == "restore" { // the argument of restore is a file
			continue
		}
		groups++
		for _, flags := range []string{"", " -n shop"} {
			line := strings.TrimPrefix(group.CommandPath()+flags+" nonsense", "argosy ")
			var out, errOut bytes.Buffer
			code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(line)...), &out, &errOut)
			want := fmt.Sprintf("argosy: unknown command \"nonsense\" for %q", group.CommandPath())
			if got := errOut.String(); code != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, want) ||
				out.Len() > 0 {
				t.Errorf("argosy %s exits with %d and prints %q, want one line with %q; standard output: %q", line, code, got, want,
					&out)
			}
		}
	}
	if groups < 9 {
		t.Errorf("there are only %d groups of commands", groups)
	}
}

func TestGroupWithoutSubcommandShowsHelp(t *testing.T) {
	for _, line := range []string{"rollout", "addons", "secrets", "docs", "rollout nonsense --help", "help rollout"} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(line)...), &out, &errOut)
		if code != 0 || !strings.Contains(out.String(), "Available Commands:") || errOut.Len() > 0 {
			t.Errorf("argosy %s exits with %d and prints %q, want its help; standard error: %q", line, code, &out, &errOut)
		}
	}
}
