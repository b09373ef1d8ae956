package names

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestWorksOfManifestWorksHaveValidNames(t *testing.T) {
	seen := map[string]string{}
	for name, begins := range map[string]string{"web": "web-", "system:Admin": "system.admin-", "a.b": "a.b-",
		"team_a": "team-a-", "team-a": "team-a-", "ann@example.com": "ann-example.com-",
		"-a-.-b": "a.b-", "a..b": "a.b-", "***": "x-", "ä": "x-", strings.Repeat("a", 253): strings.Repeat("a", 242) + "-",
		strings.Repeat("b.", 126) + "b": "b.b."} {
		got := WorkOfManifestWork("it", "rbac.authorization.k8s.io", "ClusterRole", name, "")
		if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 || !strings.HasPrefix(got, begins) {
			t.Errorf("the work of %q is %q, want %s…: %v", name, got, begins, errs)
		}
		if before, twice := seen[got]; twice {
			t.Errorf("%q and %q have the work %q", before, name, got)
		}
		seen[got] = name
	}
}

func TestAnExecutionSpaceNamesItsCluster(t *testing.T) {
	if c, err := ClusterOf(ExecutionSpace("eu-1")); c != "eu-1" || err != nil {
		t.Errorf("got %q, %v", c, err)
	}
	for _, ns := range []string{"default", "karmada-es-", "karmada-system", ""} {
		if _, err := ClusterOf(ns); !errors.Is(err, ErrNotExecutionSpace) {
			t.Errorf("namespace %q gave %v, want ErrNotExecutionSpace", ns, err)
		}
	}
}

func TestTheSystemsNamespacesAreReserved(t *testing.T) {
	for ns, want := range map[string]bool{"karmada-system": true, "karmada-cluster": true, "karmada-es-eu": true,
		"default": false, "karmada": false, "kube-system": false} {
		if Reserved(ns) != want {
			t.Errorf("namespace %q reserved: %v, want %v", ns, !want, want)
		}
	}
}
