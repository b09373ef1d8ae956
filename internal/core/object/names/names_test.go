package names

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Whoever chooses names finds objects whose Works have one name. None has the longer name, whatever it is called.
func TestWorksWithOneNameHaveLongerNames(t *testing.T) {
	deployment, configMap := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Kind: "ConfigMap"}
	long := strings.Repeat("x.", 126) + "x"
	type object struct {
		gk              schema.GroupKind
		name, namespace string
	}
	for _, c := range []struct{ one, other object }{
		{object{deployment, "vault", "treasury"}, object{deployment, "vault", "tpjbaakx"}},
		{object{schema.GroupKind{Kind: "Namespace"}, "vip", ""}, object{configMap, "vip", "tg2eau9q"}},
		{object{schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, "db", "shop"},
			object{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "db", "shop"}},
		{object{configMap, long, "shop"}, object{schema.GroupKind{Group: "x", Kind: "ConfigMap"}, long, "shop"}},
	} {
		one, other := Work(c.one.gk.Kind, c.one.name, c.one.namespace), Work(c.other.gk.Kind, c.other.name, c.other.namespace)
		if one != other {
			t.Errorf("%v and %v have the Works %s and %s: this test compares nothing", c.one, c.other, one, other)
		}
		seen := map[string]object{}
		for _, o := range []object{c.one, c.other} {
			all := Works(o.gk, o.name, o.namespace)
			for _, either := range [][]string{Either(one, o.gk, o.name, o.namespace),
				Either(WorkApart(o.gk, o.name, o.namespace), o.gk, o.name, o.namespace)} {
				longer := either[1]
				if errs := validation.IsDNS1123Subdomain(longer); len(errs) > 0 {
					t.Errorf("%q: %v", longer, errs)
				}
				if before, twice := seen[longer]; twice {
					t.Errorf("%v and %v have the Work %s", before, o, longer)
				}
				seen[longer] = o
				// The last part of a name with Karmada's hash is shorter, so that no other name can be this one.
				if hash := longer[strings.LastIndex(longer, "-")+1:]; len(hash) <= maxHash {
					t.Errorf("%q ends with a hash that is as short as Karmada's", longer)
				}
				if !slices.Contains(all, either[0]) || !slices.Contains(all, longer) {
					t.Errorf("%v is not among the Works of %v: %v", either, o, all)
				}
			}
		}
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

// No role to write is named for a namespace that looks like one of the system, but templates in it are propagated as
// Karmada does: a user's namespace may have such a name.
func TestNamespacesOfTheSystemAreKnown(t *testing.T) {
	for ns, want := range map[string]struct{ reserved, ofSystem bool }{
		"karmada-system": {true, true}, "karmada-cluster": {true, true}, "karmada-es-eu": {true, true},
		"kube-system": {true, true}, "kube-public": {true, true}, "kube-state-metrics": {true, true},
		"karmada-monitoring": {false, true}, "argosy-shop": {false, true}, "argosy-system": {false, true},
		"default": {}, "karmada": {}, "argosy": {}, "kube": {}, "kubernetes": {}, "shop": {}, "my-kube-shop": {}, "": {},
	} {
		if Reserved(ns) != want.reserved || OfSystem(ns) != want.ofSystem {
			t.Errorf("namespace %q is reserved: %t, of the system: %t, want %+v", ns, Reserved(ns), OfSystem(ns), want)
		}
	}
}
