package propagate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

func TestBindingCopiesPodSpread(t *testing.T) {
	deployment := func(pod map[string]any) *unstructured.Unstructured {
		u := template("shop", "web")
		u.SetAPIVersion("apps/v1")
		u.SetKind("Deployment")
		containers := pod["containers"]
		if containers == nil {
			containers = []any{map[string]any{"name": "c", "image": "i"}}
		}
		spec := map[string]any{"containers": containers}
		for key, v := range pod {
			spec[key] = v
		}
		u.Object["spec"] = map[string]any{"replicas": int64(2),
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": spec}}
		return u
	}
	selects := func(app string) map[string]any { return map[string]any{"matchLabels": map[string]any{"app": app}} }
	apart := func(term map[string]any) map[string]any {
		term["topologyKey"] = "kubernetes.io/hostname"
		return map[string]any{"affinity": map[string]any{"podAntiAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}}}
	}
	const one = `{"apart":["kubernetes.io/hostname"]}`
	p := policy("shop", "p", 0)
	for _, test := range []struct {
		what string
		pod  map[string]any
		want string
	}{
		{"nothing", map[string]any{}, ""},
		{"apart from itself", apart(map[string]any{"labelSelector": selects("web")}), one},
		{"apart from others", apart(map[string]any{"labelSelector": selects("db")}), ""},
		{"apart from none", apart(map[string]any{}), ""},
		{"apart from all in its namespace", apart(map[string]any{"labelSelector": map[string]any{}}), one},
		{"apart in its namespace, named", apart(map[string]any{"labelSelector": selects("web"), "namespaces": []any{"shop"}}),
			one},
		{"apart in every namespace", apart(map[string]any{"labelSelector": selects("web"),
			"namespaceSelector": map[string]any{}}), one},
		{"apart from another namespace", apart(map[string]any{"labelSelector": selects("web"), "namespaces": []any{"other"}}),
			""},
		{"apart from another value of its own label",
			apart(map[string]any{"labelSelector": map[string]any{}, "mismatchLabelKeys": []any{"app"}}), ""},
		{"rather apart", map[string]any{"affinity": map[string]any{"podAntiAffinity": map[string]any{
			"preferredDuringSchedulingIgnoredDuringExecution": []any{}}}}, ""},
		{"even", map[string]any{"topologySpreadConstraints": []any{
			map[string]any{"topologyKey": "zone", "maxSkew": int64(2), "minDomains": int64(3),
				"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selects("web"),
				"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": []any{"pod-template-hash"}},
			map[string]any{"topologyKey": "zone", "maxSkew": int64(1), "whenUnsatisfiable": "ScheduleAnyway",
				"labelSelector": selects("web")},
		}}, `{"even":[{"key":"zone","maxSkew":2,"minDomains":3,"anyNode":true,"tolerated":true}]}`},
		{"ports", map[string]any{"containers": []any{map[string]any{"name": "c", "ports": []any{
			map[string]any{"containerPort": int64(8080)}, map[string]any{"containerPort": int64(80), "hostPort": int64(80)},
			map[string]any{"containerPort": int64(53), "hostPort": int64(53), "protocol": "UDP"}}}}},
			`{"ports":["TCP/80","UDP/53"]}`},
		{"ports of the host's network", map[string]any{"hostNetwork": true,
			"containers": []any{map[string]any{"name": "c", "ports": []any{map[string]any{"containerPort": int64(8080)}}}}},
			`{"ports":["TCP/8080"]}`},
		{"what cannot be read", map[string]any{"affinity": "none"}, ""},
	} {
		b, err := propagate.Binding(deployment(test.pod), p, propagate.Meaning{Replicas: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, there := b.GetAnnotations()[wellknown.PodSpreadAnnotation]; got != test.want || there != (test.want != "") {
			t.Errorf("%s: the binding says %q, want %q", test.what, got, test.want)
		}
		if b, err = propagate.Binding(deployment(nil), p, propagate.Meaning{Replicas: 2}, b); err != nil {
			t.Fatal(err)
		}
		if got, there := b.GetAnnotations()[wellknown.PodSpreadAnnotation]; there {
			t.Errorf("%s, and then no longer: the binding still says %q", test.what, got)
		}
	}
}
