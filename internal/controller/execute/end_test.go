package execute

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/execute"
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
