package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
)

func (l *life) wantActions(why string, want ...string) (version string) {
	l.t.Helper()
	for range 2 { // a reconciliation that writes taints leaves the rest to the next
		l.reconcile()
	}
	c := &clusterv1alpha1.Cluster{}
	l.exists(c, "", "m1")
	if got := c.Status.RemedyActions; strings.Join(got, ",") != strings.Join(want, ",") {
		l.t.Errorf("%s: actions are %q, want %q", why, got, want)
	}
	return c.ResourceVersion
}

func TestClusterHasActionsOfRemediesThatApply(t *testing.T) {
	l := spaced(t, metav1.ConditionTrue)
	l.wantActions("no Remedy")
	sick := &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "sick"}, Spec: remedyv1alpha1.RemedySpec{
		DecisionMatches: []remedyv1alpha1.DecisionMatch{{
			ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{ConditionType: "Ready",
				Operator: remedyv1alpha1.ClusterConditionNotEqual, ConditionStatus: "True"}}},
		Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}}}
	if err := l.client.Create(t.Context(), sick); err != nil {
		t.Fatal(err)
	}
	if woken := l.allClusters(t.Context(), sick); len(woken) != 1 || woken[0].Name != "m1" {
		t.Errorf("the Remedy wakes %v, want m1", woken)
	}
	l.wantActions("a Remedy that does not apply")
	l.becomes(metav1.ConditionUnknown)
	version := l.wantActions("the condition changed", "TrafficControl")
	if again := l.wantActions("nothing changed", "TrafficControl"); again != version {
		t.Error("a second look wrote the cluster")
	}

	// What cannot be read is not absent.
	working := l.client
	l.client = interceptor.NewClient(working.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*remedyv1alpha1.RemedyList); is {
				return errors.New("the hub is overloaded")
			}
			return c.List(ctx, list, opts...)
		}})
	if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "m1"}}); err == nil ||
		!strings.Contains(err.Error(), "list Remedies: the hub is overloaded") {
		t.Errorf("an unreadable list of Remedies: %v", err)
	}
	l.client = working
	if again := l.wantActions("after the error", "TrafficControl"); again != version {
		t.Error("the error wrote the cluster")
	}

	l.becomes(metav1.ConditionTrue)
	l.wantActions("the condition changed back")
	l.becomes(metav1.ConditionFalse)
	l.wantActions("and again", "TrafficControl")
	if err := l.client.Delete(t.Context(), sick); err != nil {
		t.Fatal(err)
	}
	l.wantActions("the Remedy was deleted")
}
