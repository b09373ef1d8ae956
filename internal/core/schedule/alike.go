package schedule

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Waits reports whether a binding was not placed as it wants to be: a run failed, was not confirmed, or is still to
// come.
func Waits(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return spec.Placement != nil && !(meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.Scheduled) &&
		fits(b))
}

// Likeness returns the same key for bindings that clusters concern in the same way: Affects and AwaitsRoom return the
// same for all of them that are in the cluster, and the same for all that are not. It contains everything that these
// functions read, except the targets.
func Likeness(b workv1alpha2.Binding) string {
	spec := b.BindingSpec()
	if spec.Placement == nil {
		return ""
	}
	var evicting []string
	for i := range spec.GracefulEvictionTasks {
		evicting = append(evicting, spec.GracefulEvictionTasks[i].FromCluster)
	}
	slices.Sort(evicting)
	text, err := json.Marshal(struct {
		Placement any
		Kind      schema.GroupKind
		Strategy  strategy
		NeedsRoom bool
		Waits     bool
		Evicting  []string
		Parts     string `json:",omitempty"`
	}{spec.Placement, schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind(),
		strategyOf(spec), NeedsRoom(b), Waits(b), slices.Compact(evicting),
		b.GetAnnotations()[wellknown.SubsetClustersAnnotation]})
	if err != nil {
		panic(err) // A Placement always marshals.
	}
	return string(text)
}

// RoomAlone reports whether nothing about a cluster changed but its room, which matters to none but those that wait.
func RoomAlone(old, now *clusterv1alpha1.Cluster) bool {
	return old != nil && now != nil && old.Name == now.Name &&
		(old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) &&
		complete(old) == complete(now) && maps.Equal(old.Labels, now.Labels) &&
		equality.Semantic.DeepEqual(&old.Spec, &now.Spec) &&
		equality.Semantic.DeepEqual(old.Status.APIEnablements, now.Status.APIEnablements)
}

func complete(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)
}
