package propagate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/fleet"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Pods finds pods in members.
type Pods interface {
	// Owned says whether the cluster has a pod of that name that an object of that kind and name controls.
	Owned(ctx context.Context, cluster, namespace, pod, kind, owner string) (bool, error)
}

// errPodsUnknown says that a scale-down waits because a cluster that may have a pod to delete does not respond.
var errPodsUnknown = errors.New("a cluster that may have a pod to delete does not respond")

// podsRetry is how soon pods to delete are looked up again. The dispatch controller reports what is missing.
const podsRetry = 5 * time.Second

// pin tells the scheduler from which clusters replicas go, in the write that asks for fewer. While that is not known, want keeps the
// replicas of existing, and held is true.
func (r *reconciler) pin(ctx context.Context, template *unstructured.Unstructured, existing, want workv1alpha2.Binding) (held bool, err error) {
	was, is := existing.BindingSpec(), want.BindingSpec()
	if was.Replicas == is.Replicas {
		return false, nil // the pin of the last change stands
	}
	var leaving map[string]int32
	if fewer := schedule.Placed(was) - is.Replicas; fewer > 0 && is.Placement.DividesReplicas() {
		works := map[string]*workv1alpha1.Work{}
		if fleet.LeavesByOrdinal(template) {
			for _, target := range was.Clusters {
				work := &workv1alpha1.Work{}
				key := types.NamespacedName{Namespace: names.ExecutionSpace(target.Name), Name: names.WorkFor(existing.GetName(), template.GroupVersionKind().GroupKind(), template.GetName(), template.GetNamespace())}
				err := r.client.Get(ctx, key, work)
				if client.IgnoreNotFound(err) != nil {
					return false, fmt.Errorf("get work %s: %w", key, err)
				}
				if err == nil {
					works[target.Name] = work
				}
			}
		}
		var unknown []string
		leaving, unknown, err = fleet.Leaving(template, int64(fewer), works, func(pod string) ([]string, bool) { return r.clustersOf(ctx, template, was.Clusters, pod) })
		if err != nil {
			return false, err
		}
		if len(unknown) > 0 {
			is.Replicas, is.Components = was.Replicas, was.Components
			return true, nil
		}
	}
	schedule.SetPin(want, leaving)
	return false, nil
}

// clustersOf returns the clusters that have a pod of the template with that name; known is false if one did not respond.
func (r *reconciler) clustersOf(ctx context.Context, template *unstructured.Unstructured, clusters []workv1alpha2.TargetCluster, pod string) (in []string, known bool) {
	if r.Pods == nil {
		return nil, true
	}
	known = true
	for _, c := range clusters {
		there, err := r.Pods.Owned(ctx, c.Name, template.GetNamespace(), pod, template.GetKind(), template.GetName())
		if err != nil {
			log.FromContext(ctx).Info("cannot look up a pod that is to be deleted", "cluster", c.Name, "pod", pod, "cause", err.Error())
			known = false
		}
		if there {
			in = append(in, c.Name)
		}
	}
	return in, known
}
