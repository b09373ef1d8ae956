package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The hashes were computed by Karmada's own code.
func TestNamesAreKarmadas(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, c := range []struct{ what, got, want string }{
		{"a binding", Binding("Deployment", "nginx"), "nginx-deployment"},
		{"a binding of a name that bindings may not have", Binding("ClusterRole", "system:Admin"),
			"system.admin-clusterrole"},
		{"a Work", Work("Deployment", "nginx", "default"), "nginx-687f7fb96f"},
		{"a Work in another namespace", Work("Deployment", "web", "chk"), "web-696569d748"},
		{"a Work of a cluster-scoped template", Work("ClusterRole", "system:Admin", ""), "system.admin-7c7568b598"},
		{"the label of a dependency", DependedByLabel("depended-by-", "default", "nginx-deployment"),
			"depended-by-5bdc5c4dcf"},
		{"the label of a cluster-scoped dependency", DependedByLabel("depended-by-", "", "system.admin-clusterrole"),
			"depended-by-7c7568b598"},
		{"a promoted policy", PromotedPolicy(deployment, "web", "default"), "web-6d7f8d5f5b"},
		{"an execution space", ExecutionSpace("eu"), "karmada-es-eu"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestTemplatesWithOneNameHaveTwoBindingsAndWorks(t *testing.T) {
	role := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	templates := []struct {
		gk   schema.GroupKind
		name string
	}{
		{role, "Team:Reader"}, {role, "team:reader"}, {role, "team.reader"}, {role, "team-reader"},
		{schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "db"},
		{schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, "db"},
		{role, strings.Repeat("x", 253)}, {role, strings.Repeat("X", 253)},
	}
	seen := map[string]string{}
	for _, tmpl := range templates {
		binding := BindingApart(tmpl.gk, tmpl.name)
		if WorkFor(binding, tmpl.gk, tmpl.name, "shop") != WorkApart(tmpl.gk, tmpl.name, "shop") ||
			WorkFor(Binding(tmpl.gk.Kind, tmpl.name), tmpl.gk, tmpl.name, "shop") != Work(tmpl.gk.Kind, tmpl.name, "shop") {
			t.Errorf("%v: the Work does not follow the name of the binding", tmpl)
		}
		if !strings.HasSuffix(binding, "-"+strings.ToLower(tmpl.gk.Kind)) {
			t.Errorf("binding %q does not end with the kind", binding)
		}
		for _, got := range []string{binding, WorkApart(tmpl.gk, tmpl.name, "shop")} {
			if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
			if other, twice := seen[got]; twice {
				t.Errorf("%v and %s share %q", tmpl, other, got)
			}
			seen[got] = tmpl.gk.String() + " " + tmpl.name
		}
	}
}

func TestLongNamesAreCutAndStayDifferent(t *testing.T) {
	a, b := strings.Repeat("x", 252)+"a", strings.Repeat("x", 252)+"b"
	gk := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	for what, name := range map[string]func(string) string{
		"binding":       func(n string) string { return Binding("ConfigMap", n) },
		"binding apart": func(n string) string { return BindingApart(gk, n) },
		"Work":          func(n string) string { return Work("ConfigMap", n, strings.Repeat("n", 63)) },
		"Work apart":    func(n string) string { return WorkApart(gk, n, "") },
		"autoscaler":    func(n string) string { return WorkOfAutoscaler(n, "shop") },
		"policy":        func(n string) string { return PromotedPolicy(gk.WithVersion("v1"), n, "") },
		"object":        Object,
	} {
		if len(name(a)) > 253 || name(a) == name(b) || len(validation.IsDNS1123Subdomain(name(a))) > 0 {
			t.Errorf("%s: %q and %q, want two names of at most 253 characters", what, name(a), name(b))
		}
	}
	if l := Label(a); len(l) > 63 || l == Label(b) || len(validation.IsDNS1123Label(l)) > 0 {
		t.Errorf("labels %q and %q, want two of at most 63 characters", l, Label(b))
	}
	if s := DerivedService(strings.Repeat("x", 63)); len(validation.IsDNS1035Label(s)) > 0 ||
		DerivedService("web") != "derived-web" {
		t.Errorf("derived Services are %s and %s", s, DerivedService("web"))
	}
	for _, short := range []string{"web", strings.Repeat("x", 63)} {
		if Label(short) != short || Object(short) != short {
			t.Errorf("%q fits and was changed", short)
		}
	}
}
