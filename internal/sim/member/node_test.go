package member

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/sim"
)

func TestZonesTakeTurnsOverNodes(t *testing.T) {
	for _, tc := range []struct {
		zone  string
		zones []string
		want  [3]string
	}{
		{"", nil, [3]string{}},
		{"north-1", nil, [3]string{"north-1", "north-1", "north-1"}},
		{"north-1", []string{"a", "b"}, [3]string{"a", "b", "a"}},
	} {
		for n, want := range tc.want {
			out, err := node(sim.Member{Name: "eu", NodeCPU: "1", NodeMemory: "1Gi", NodePods: "1", Zone: tc.zone,
				Zones: tc.zones}, n, 0, metav1.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Labels[corev1.LabelTopologyZone]; got != want {
				t.Errorf("node %d of %q and %q is in %q, want %q", n, tc.zone, tc.zones, got, want)
			}
		}
	}
}
