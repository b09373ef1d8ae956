package pods_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

func TestMissingPodsPerKind(t *testing.T) {
	for _, c := range []struct {
		group, kind string
		status      map[string]any
		want        int64
	}{
		{"apps", "Deployment", map[string]any{"replicas": int64(2)}, 3},
		{"apps", "Deployment", map[string]any{"replicas": int64(6)}, 0},
		{"apps", "StatefulSet", nil, 5},
		{"apps.kruise.io", "CloneSet", map[string]any{"replicas": int64(4), "readyReplicas": int64(1)}, 1},
		{"batch", "Job", map[string]any{"active": int64(1)}, 4},
		{"apps", "DaemonSet", map[string]any{"desiredNumberScheduled": int64(3), "currentNumberScheduled": int64(1)}, 2},
		{"apps.kruise.io", "DaemonSet", map[string]any{"desiredNumberScheduled": int64(3),
			"currentNumberScheduled": int64(3)}, 0},
		{"apps.kruise.io", "BroadcastJob", map[string]any{"desired": int64(3), "active": int64(1), "succeeded": int64(1)}, 1},
	} {
		if got := pods.Missing(schema.GroupKind{Group: c.group, Kind: c.kind}, c.status, 5); got != c.want {
			t.Errorf("%s with %v: %d missing, want %d", c.kind, c.status, got, c.want)
		}
	}
}

func TestRefusalIsATroubleOfTheReport(t *testing.T) {
	r := pods.Report{Cluster: "eu", Pods: 2, Troubles: []pods.Group{{Pods: 1, Pod: "a", Reason: "ImagePullBackOff"}}}
	two := r.WithRefusal("eu", 3, 5, "exceeded quota")
	one := pods.Report{}.WithRefusal("eu", 3, 5, "exceeded\nquota")
	for want, got := range map[string]pods.Report{
		"3 of 5 pods: FailedCreate: exceeded quota":                                one,
		"3 of 5 pods: FailedCreate: exceeded quota; 1 of 5 pods: ImagePullBackOff": two,
		"1 of 2 pods: FailedCreate: the next":                                      pods.Report{}.WithRefusal("eu", 0, 2, "the next"),
	} {
		if lines := strings.Join(got.Lines(), "; "); lines != want || got.Cluster != "eu" {
			t.Errorf("got %q in %q, want %q", lines, got.Cluster, want)
		}
	}
}
