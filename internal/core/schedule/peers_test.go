package schedule

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestWorkloadsOfAGroupGoTogetherOrApart(t *testing.T) {
	s := fleet(named("a", "b", "c")...)
	one := upTo(policyv1alpha1.Placement{}, 1, 1)
	grouped := func(name, together, apart, at string) *workv1alpha2.ResourceBinding {
		b := deployment(1, one)
		b.Name = name
		b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: together,
			AntiAffinityGroup: apart}
		if at != "" {
			placed(b, at)
		}
		return b
	}
	leavingNow := grouped("gone", "", "team=x", "a=1")
	leavingNow.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	elsewhere := grouped("other", "", "team=x", "a=1")
	elsewhere.Namespace = "elsewhere"

	for name, test := range map[string]struct {
		binding *workv1alpha2.ResourceBinding
		others  []workv1alpha2.Binding
		want    string
		message string
	}{
		"the first goes anywhere": {grouped("web", "app=shop", "", ""), nil, "a=1", ""},
		"the next to where the first is": {grouped("web", "app=shop", "", ""),
			[]workv1alpha2.Binding{grouped("db", "app=shop", "", "c=1")}, "c=1", ""},
		"others of other groups do not count": {grouped("web", "app=shop", "", ""),
			[]workv1alpha2.Binding{grouped("db", "app=bank", "", "c=1")}, "a=1", ""},
		"apart: not where another is": {grouped("web", "", "team=x", ""),
			[]workv1alpha2.Binding{grouped("db", "", "team=x", "a=1")}, "b=1", ""},
		"apart: not from what is leaving": {grouped("web", "", "team=x", ""), []workv1alpha2.Binding{leavingNow}, "a=1",
			""},
		"groups end with their namespace": {grouped("web", "", "team=x", ""), []workv1alpha2.Binding{elsewhere}, "a=1",
			""},
		"a binding is not its own peer": {grouped("web", "", "team=x", ""),
			[]workv1alpha2.Binding{grouped("web", "", "team=x", "a=1")}, "a=1", ""},
		"what is placed stays": {grouped("web", "", "team=x", "a=1"),
			[]workv1alpha2.Binding{grouped("db", "", "team=x", "a=1")}, "a=1", ""},
		"together and apart": {grouped("web", "app=shop", "team=x", ""),
			[]workv1alpha2.Binding{grouped("db", "app=shop", "", "b=1"), grouped("ml", "", "team=x", "a=1")}, "b=1", ""},
		"nowhere left": {grouped("web", "", "team=x", ""),
			[]workv1alpha2.Binding{grouped("db", "", "team=x", "a=1"), grouped("ml", "", "team=x", "b=1"),
				grouped("bi", "", "team=x", "c=1")}, "",
			"0/3 clusters are available: 3 cluster(s) did not match the workload anti-affinity constraint. To fit: for a, b, c: remove the workload of group team=x from it, or add a cluster."},
	} {
		t.Run(name, func(t *testing.T) {
			among := s.Among(PeersOf(test.binding, test.others))
			r, err := Schedule(test.binding, among, nil)
			if err == nil && test.message != "" || err != nil && Condition(err).Message != test.message {
				t.Fatalf("got %v (%s)", err, Condition(err).Message)
			}
			if targetList(r.Clusters) != test.want {
				t.Errorf("got %q, want %q", targetList(r.Clusters), test.want)
			}
			record(test.binding, r, err, time.Unix(200, 0))
			if reason, due := Due(test.binding, among); due && err == nil {
				t.Errorf("due again, because %s", reason)
			}
		})
	}
}
