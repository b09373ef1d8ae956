package propagate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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

func TestBindingCopiesQuotaUse(t *testing.T) {
	const limits = "resources: {requests: {cpu: 10m}, limits: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1}}"
	const pod = "spec: {containers: [{name: a, " + limits + "}, {name: b, resources: {limits: {cpu: 1}}}]}"
	const both = `{"limits":{"limits.cpu":"1500m","limits.memory":"1Gi"}}`
	p := policy("shop", "p", 0)
	for _, test := range []struct{ kind, spec, want string }{
		{"apps/v1 Deployment", "template: {" + pod + "}", both},
		{"apps/v1 StatefulSet", "template: {" + pod + "}", both},
		{"batch/v1 Job", "template: {" + pod + "}", both},
		{"apps.kruise.io/v1beta1 CloneSet", "template: {" + pod + "}", both},
		{"argoproj.io/v1alpha1 Rollout", "template: {" + pod + "}", both},
		{"apps.kruise.io/v1alpha1 UnitedDeployment", "template: {cloneSetTemplate: {spec: {template: {" + pod + "}}}}", both},
		{"example.com/v1 Train", "template: {" + pod + "}", both},
		{"v1 Pod", "containers: [{name: a, " + limits + "}]", `{"limits":{"limits.cpu":"500m","limits.memory":"1Gi"}}`},
		{"batch/v1 Job", "template: {spec: {activeDeadlineSeconds: 60, containers: [{name: a}]}}", `{"terminating":true}`},
		{"batch/v1 Job", "activeDeadlineSeconds: 60, template: {spec: {containers: [{name: a}]}}", ""},
		{"apps/v1 Deployment", "template: {spec: {initContainers: [{name: i, resources: {limits: {cpu: 3}}}, {name: s, restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{name: a, resources: {limits: {cpu: 1}}}]}}",
			`{"limits":{"limits.cpu":"3"}}`},
		{"apps/v1 Deployment", "template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}", ""},
		{"apps/v1 Deployment", "template: {spec: {containers: [{name: a, resources: {limits: none}}]}}", ""},
		{"v1 ConfigMap", "", ""},
	} {
		u := template("shop", "web")
		version, kind, _ := strings.Cut(test.kind, " ")
		u.SetAPIVersion(version)
		u.SetKind(kind)
		var spec map[string]any
		if err := yaml.Unmarshal([]byte("{"+test.spec+"}"), &spec); err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = spec
		b, err := propagate.Binding(u, p, propagate.Meaning{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, there := b.GetAnnotations()[wellknown.QuotaUseAnnotation]; got != test.want || there != (test.want != "") {
			t.Errorf("%s {%s}: the binding says %q, want %q", test.kind, test.spec, got, test.want)
		}
		again, err := propagate.Binding(u, p, propagate.Meaning{}, b)
		if err != nil || !equality.Semantic.DeepEqual(again, b) {
			t.Errorf("%s: the next decision changes the binding (%v)", test.kind, err)
		}
	}
}
