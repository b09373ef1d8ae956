package dispatch_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

func TestPartitionIsAPercentageIfMembersScale(t *testing.T) {
	for name, c := range map[string]struct {
		federated, found bool
		want             string
	}{
		"the hub scales":                       {want: "2 3 3"},
		"a FederatedHPA scales in the members": {federated: true, want: "67% 100% 100%"},
		"an autoscaler is found in us":         {found: true, want: "2 100% 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, clones, threeEach)
			s.edit("90%", "spec", "updateStrategy", "partition")
			s.look()
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.report(cluster, 3, 3)
			}
			if c.found {
				w := s.in.Existing["us"].DeepCopy()
				w.Status.Conditions = append(w.Status.Conditions,
					metav1.Condition{Type: workv1alpha1.WorkScaledByMember, Status: metav1.ConditionTrue})
				if !dispatch.Moved(s.in.Existing["us"], w) {
					t.Error("that an autoscaler is found decides nothing")
				}
				s.in.Existing["us"] = w
			}
			s.image("nginx:2")
			s.in.Binding.SetAnnotations(nil)
			if c.federated {
				schedule.SetScaler(s.in.Binding, "web")
			}
			s.look()
			if got := s.fieldValues("spec", "updateStrategy", "partition"); got != c.want {
				t.Errorf("partitions are %s, want %s", got, c.want)
			}
		})
	}
}
