package history

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func TestRequestsAreRecordedOnceADayWithoutAWrite(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			CreationTimestamp: metav1.Now()}, Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
				"cpu": resource.MustParse("250m")}}}}
		w.Make(b)
		w.Quiet()
		requested := func(cluster string, cpu int64) {
			t.Helper()
			for range 24 {
				w.Advance(upkeepPeriod)
			}
			w.Eventually("requests are recorded", func() string {
				store := w.Opened()
				if store == nil {
					return "the database is not open"
				}
				got, err := store.UsageAt(t.Context(), history.Filter{Cluster: cluster}, metav1.Now().Time)
				switch {
				case err != nil:
					return err.Error()
				case cpu == 0 && len(got) > 0, cpu > 0 && (len(got) != 1 || got[0].CPU != cpu):
					return fmt.Sprintf("they are %v, want %d", got, cpu)
				}
				return ""
			})
		}
		requested("eu", 500)
		requested("eu", 500) // an old sample does not count
		w.place(b, "us")
		requested("us", 500)
		requested("eu", 0)
		if writes := w.Quiet(); len(writes) != 1 { // that of the test
			t.Errorf("the writes are %v", writes)
		}
	})
}
