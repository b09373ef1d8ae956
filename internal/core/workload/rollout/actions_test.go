package rollout

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestActionsAreThoseOfTheKind(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		apiVersion, kind string
		spec             map[string]any
		want             string
	}{
		{"apps/v1", "Deployment", map[string]any{"replicas": int64(3)},
			`[{"name":"scale","subresource":"scale","replicas":3,"command":"kubectl scale deployment web -n shop --replicas={n}"},` +
				`{"name":"restart","patch":{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}},"command":"kubectl rollout restart deployment web -n shop"},` +
				`{"name":"pause","patch":{"spec":{"paused":true}},"command":"argosy rollout pause deployment web -n shop"}]`},
		{"apps.kruise.io/v1alpha1", "CloneSet", map[string]any{"updateStrategy": map[string]any{"paused": true}},
			`[{"name":"scale","subresource":"scale","replicas":1,"command":"kubectl scale cloneset.apps.kruise.io web -n shop --replicas={n}"},` +
				`{"name":"resume","patch":{"spec":{"updateStrategy":{"paused":false}}},"command":"argosy rollout resume cloneset.apps.kruise.io web -n shop"}]`},
		{"apps/v1", "DaemonSet", nil,
			`[{"name":"restart","patch":{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}},"command":"kubectl rollout restart daemonset web -n shop"}]`},
		{"v1", "ConfigMap", nil, `null`},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.apiVersion, "kind": c.kind, "spec": c.spec}}
		u.SetNamespace("shop")
		u.SetName("web")
		got, err := json.Marshal(Actions(u, now))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s has\n%s, want\n%s", c.kind, got, c.want)
		}
	}
}
