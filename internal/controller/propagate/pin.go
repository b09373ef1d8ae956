package propagate

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
)

// Pods finds pods in members.
type Pods interface {
	// Owned reports whether the cluster has a pod of that name that an object of that kind and name controls.
	Owned(ctx context.Context, cluster, namespace, pod, kind, owner string) (bool, error)
}

// errPodsUnknown means that a scale-down waits because a cluster that may have a pod to delete does not respond.
var errPodsUnknown = errors.New("a cluster that may have a pod to delete does not respond")

// podsRetry is the delay before pods to delete are looked up again. The dispatch controller reports what is missing.
const podsRetry = 5 * time.Second

// pin records on want which clusters lose replicas, in the write that reduces the replicas. See propagate.Pin.
func (r *reconciler) pin(
	ctx context.Context, template *unstructured.Unstructured, existing, want workv1alpha2.Binding,
) (unknown bool, err error) {
	clusters, works := existing.BindingSpec().Clusters, map[string]*workv1alpha1.Work{}
	was, is := existing.BindingSpec(), want.BindingSpec()
	if was.Replicas != is.Replicas && schedule.Placed(was) > is.Replicas && is.Placement.DividesReplicas() &&
		fleet.LeavesByOrdinal(template) {
		for _, target := range clusters {
			work, err := scope.WorkFor(ctx, r.client, existing, target.Name)
			if err != nil {
				return false, err
			}
			if work != nil {
				works[target.Name] = work
			}
		}
	}
	return propagate.Pin(template, existing, want, works, func(pod string) ([]string, bool) {
		return r.clustersOf(ctx, template, clusters, pod)
	})
}

// clustersOf returns the clusters that have a pod of the template with that name; known is false if one did not
// respond.
func (r *reconciler) clustersOf(ctx context.Context, template *unstructured.Unstructured,
	clusters []workv1alpha2.TargetCluster, pod string) (in []string, known bool) {
	if r.Pods == nil {
		return nil, true
	}
	known = true
	for _, c := range clusters {
		there, err := r.Pods.Owned(ctx, c.Name, template.GetNamespace(), pod, template.GetKind(), template.GetName())
		if err != nil {
			log.FromContext(ctx).Info("cannot look up a pod that is to be deleted", "cluster", c.Name, "pod", pod, "cause",
				err.Error())
			known = false
		}
		if there {
			in = append(in, c.Name)
		}
	}
	return in, known
}
