package joincli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

// --all leaves clusters alone that it did not choose, also if --cluster names them.
func TestClustersOfAWorkloadAreWithinTheWantedOnes(t *testing.T) {
	for _, test := range []struct{ has, want []string }{
		{nil, []string{"m2", "m3"}},
		{[]string{"m1", "m2"}, []string{"m2"}},
		{[]string{"m1"}, []string{}},
	} {
		if got := within(test.has, []string{"m2", "m3"}); !slices.Equal(got, test.want) {
			t.Errorf("of %v: %v, want %v", test.has, got, test.want)
		}
	}
}

// Wrong flags are refused before the hub is asked.
func TestMigrateRefusesWrongFlags(t *testing.T) {
	twice := filepath.Join(t.TempDir(), "twice.yaml")
	if err := os.WriteFile(twice, []byte("items: [{apiVersion: v1, kind: ConfigMap, name: c, clusters: [eu, us, eu]}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := clitest.See(t, nil)
	for line, want := range map[string]string{
		"plan cloneset web":                          "name the clusters of the object with --cluster",
		"plan cloneset web -C eu,eu":                 `clusters: "eu" is named twice`,
		"plan cloneset web -C eu --acknowledge helm": `acknowledge: write Helm instead of "helm"`,
		"plan -f migration.yaml -C eu":               "--cluster and --acknowledge are for a single object",
		"plan cloneset web -f migration.yaml":        "either as arguments or with --filename",
		"plan cloneset web -C eu -o xml":             "xml",
		"in cloneset web -C eu --batch -1":           "--batch: the first batch is 1",
		"in cloneset web -C eu --soak -1m":           "--soak: it is negative",
		"out cloneset web -C eu,eu":                  `clusters: "eu" is named twice`,
		"out --all cloneset web":                     "--all takes out all workloads: name none",
		"out --all -f migration.yaml":                "--all takes out all workloads: name none",
		"out":                                        "name one object, as KIND NAME or KIND/NAME",
	} {
		_, _, err := s.Run(func(hub *hubcli.HubFlags,
			_ genericiooptions.IOStreams) *cobra.Command {
			return NewMigrate(hub)
		}, "",
			strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("argosy migrate %s: %v, want %q", line, err, want)
		}
	}
	f := &migrateFlags{file: twice}
	if _, err := f.whitelist(nil); err == nil ||
		!strings.Contains(err.Error(), `items[0]: clusters: "eu" is named twice`) {
		t.Error(err)
	}
}
