package why_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/why"
)

func TestUnhealthyWorkloadsAreListedWithTheirReason(t *testing.T) {
	item := func(cluster string, health workv1alpha1.ResourceHealth, status string) workv1alpha2.AggregatedStatusItem {
		i := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: health}
		if status != "" {
			i.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		return i
	}
	job := &workv1alpha2.ResourceBinding{}
	job.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "load"}
	job.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		item("us", workv1alpha1.ResourceUnhealthy, failedJob),
		item("eu", workv1alpha1.ResourceUnhealthy, `{"failed": 7, "conditions": [{"type": "Failed", "status": "True",
			"reason": "BackoffLimitExceeded", "message": "Job has reached\nthe specified\tbackoff limit"}]}`),
		item("ap", workv1alpha1.ResourceHealthy, `{"succeeded": 1}`), item("sa", workv1alpha1.ResourceUnknown, ""),
	}
	volume := &workv1alpha2.ClusterResourceBinding{}
	volume.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: "disk"}
	volume.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{item("eu", workv1alpha1.ResourceUnhealthy, "")}
	deleted := job.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.Now())

	got := why.UnhealthyWorkloads([]workv1alpha2.Binding{job, volume, deleted})
	want := []why.UnhealthyWorkload{
		{APIVersion: "v1", Kind: "PersistentVolume", Name: "disk", Cluster: "eu"},
		{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "load", Cluster: "eu",
			Reason: "failed 7; BackoffLimitExceeded: Job has reached the specified backoff limit"},
		{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "load", Cluster: "us",
			Reason: "failed 1; DeadlineExceeded: Job was active longer than specified deadline"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
