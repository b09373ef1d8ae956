package propagate

import (
	"context"
	"fmt"

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

// pin has the scheduler take replicas that go from the clusters where the template says so, in the write that asks for fewer.
func (r *reconciler) pin(ctx context.Context, template *unstructured.Unstructured, existing, want workv1alpha2.Binding) error {
	was, is := existing.BindingSpec(), want.BindingSpec()
	if was.Replicas == is.Replicas {
		return nil // the pin of the last change stands
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
					return fmt.Errorf("get work %s: %w", key, err)
				}
				if err == nil {
					works[target.Name] = work
				}
			}
		}
		var err error
		leaving, err = fleet.Leaving(template, int64(fewer), works, func(pod string) []string { return r.clustersOf(ctx, template, was.Clusters, pod) })
		if err != nil {
			return err
		}
	}
	schedule.SetPin(want, leaving)
	return nil
}

// clustersOf are those of the clusters that have a pod of the template's of that name. One that does not answer has none: its
// replicas are divided as others are.
func (r *reconciler) clustersOf(ctx context.Context, template *unstructured.Unstructured, clusters []workv1alpha2.TargetCluster, pod string) []string {
	if r.Pods == nil {
		return nil
	}
	var in []string
	for _, c := range clusters {
		there, err := r.Pods.Owned(ctx, c.Name, template.GetNamespace(), pod, template.GetKind(), template.GetName())
		if err != nil {
			log.FromContext(ctx).Info("cannot look up a pod that is to be deleted", "cluster", c.Name, "pod", pod, "cause", err.Error())
		}
		if there {
			in = append(in, c.Name)
		}
	}
	return in
}
