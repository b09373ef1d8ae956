package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestWorksKeptBeforeTheStartEndsAfterAMinute(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
		w := newQuietWorld(t, clock)
		cluster := &clusterv1alpha1.Cluster{}
		kept := func() *metav1.Condition {
			t.Helper()
			if err := w.Get(t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil {
				t.Fatal(err)
			}
			return meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionWorksKept)
		}
		kept()
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionWorksKept,
			Status: metav1.ConditionTrue,
			Reason: clusterv1alpha1.ReasonWorksDeletedByOthers, Message: "12 Works were deleted"})
		if err := w.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if err := w.r.kept.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(clock.Now().Add(execute.WaveWindow - time.Second))
		if w.r.kept.report(t.Context()); kept().Status != metav1.ConditionTrue {
			t.Errorf("before a minute is over it is %+v", kept())
		}
		clock.SetTime(clock.Now().Add(time.Second))
		w.r.kept.report(t.Context())
		if c := kept(); c.Status != metav1.ConditionFalse ||
			!strings.Contains(c.Message, "when the hub started; before that: 12 Works were deleted") {
			t.Errorf("after a minute it is %+v", c)
		}
	})
}

// A hub of Karmada does not mark the deletions that it requests. Its agent carries them out, however many there are.
func TestAllDeletionsCountForTheAgentOfAKarmadaHub(t *testing.T) {
	t.Parallel()
	for all, want := range map[bool]bool{true: false, false: true} {
		t.Run(fmt.Sprintf("all=%v", all), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, Options{Deletions: &Deletions{Bound: 0, All: all}, NoBindings: true})
				work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
				w.applied(work)
				w.Gone(work)
				w.gone(work)
				if kept := w.m1.Object(membertest.ConfigMap, "shop", "c") != nil; kept != want {
					t.Errorf("the object is kept: %v, want %v", kept, want)
				}
			})
		})
	}
}
