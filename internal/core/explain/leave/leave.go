package leave

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Outcome describes what happens to the hub's objects in a cluster when it leaves.
type Outcome struct {
	// Deleted and Kept count objects by kind.
	Deleted, Kept map[schema.GroupKind]int
	// Volumes are the PersistentVolumeClaims that are deleted, as "namespace/name", sorted.
	Volumes []string
	// Namespaces are deleted if they become empty, sorted.
	Namespaces []string
	// Definitions are the CRDs that are deleted if they have no objects left, sorted.
	Definitions []string
}

// Preview returns what happens to the objects of a cluster's Works when it leaves. It counts the objects in Works,
// although an object of that name in the member may belong to someone else and stay.
func Preview(c *clusterv1alpha1.Cluster, works []workv1alpha1.Work) Outcome {
	l := Outcome{Deleted: map[schema.GroupKind]int{}, Kept: map[schema.GroupKind]int{}}
	stay := membership.KeepsWorkloads(c) || !membership.IsReady(c)
	for i := range works {
		m, err := execute.Manifest(&works[i])
		if err != nil {
			continue // an invalid manifest was never applied
		}
		gk := m.GroupVersionKind().GroupKind()
		switch {
		case stay || execute.Preserved(&works[i]):
			l.Kept[gk]++
		case execute.IsNamespace(m):
			l.Namespaces = append(l.Namespaces, m.GetName())
		case execute.IsDefinition(m):
			l.Definitions = append(l.Definitions, m.GetName())
		default:
			l.Deleted[gk]++
			l.Volumes = append(l.Volumes, volumesOf(m)...)
		}
	}
	slices.Sort(l.Volumes)
	slices.Sort(l.Namespaces)
	slices.Sort(l.Definitions)
	return l
}

// ReplicasToMove returns how many replicas of how many divided workloads move to other clusters when the cluster
// leaves. In an unreachable cluster they keep running too.
func ReplicasToMove(cluster string, bindings []workv1alpha2.Binding) (replicas int64, workloads int) {
	for _, b := range bindings {
		spec := b.BindingSpec()
		if spec.Placement == nil || spec.Placement.ReplicaScheduling == nil ||
			spec.Placement.ReplicaScheduling.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
			continue
		}
		for _, t := range spec.Clusters {
			if t.Name == cluster && t.Replicas > 0 {
				replicas += int64(t.Replicas)
				workloads++
			}
		}
	}
	return replicas, workloads
}

// volumesOf returns the PersistentVolumeClaims that are deleted with an object: itself, or those of a StatefulSet with
// that retention policy.
func volumesOf(m *unstructured.Unstructured) []string {
	if m.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "PersistentVolumeClaim"}) {
		return []string{m.GetNamespace() + "/" + m.GetName()}
	}
	if !kind.Facts(m).Pods.Ordinals ||
		fields.Text(m.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") != "Delete" {
		return nil
	}
	replicas, set := fields.Whole(fields.Value(m.Object, "spec", "replicas"))
	if !set {
		replicas = 1
	}
	first := fields.Number(m.Object, "spec", "ordinals", "start")
	var volumes []string
	for _, t := range fields.Objects(m.Object, "spec", "volumeClaimTemplates") {
		name := fields.Text(t, "metadata", "name")
		for i := first; i < first+min(replicas, maxVolumes); i++ {
			volumes = append(volumes, fmt.Sprintf("%s/%s-%s-%d", m.GetNamespace(), name, m.GetName(), i))
		}
	}
	return volumes
}

// maxVolumes limits the PersistentVolumeClaims that are listed per template. A user may request any number of replicas.
const maxVolumes = 1000

// Deletes reports whether anything is deleted.
func (l Outcome) Deletes() bool { return len(l.Deleted)+len(l.Namespaces)+len(l.Definitions) > 0 }

// Objects returns the number of deleted and kept objects.
func (l Outcome) Objects() int {
	n := len(l.Namespaces) + len(l.Definitions)
	for _, by := range []map[schema.GroupKind]int{l.Deleted, l.Kept} {
		for _, of := range by {
			n += of
		}
	}
	return n
}

// Lines describes it for users.
func (l Outcome) Lines(cluster string) []string {
	var lines []string
	if len(l.Deleted) > 0 {
		lines = append(lines, fmt.Sprintf("deleted in cluster %s: %s", cluster, perKind(l.Deleted)))
	}
	for _, v := range l.Volumes {
		lines = append(lines, fmt.Sprintf("deleted with its data: PersistentVolumeClaim %s", v))
	}
	if len(l.Namespaces) > 0 {
		lines = append(lines, fmt.Sprintf("deleted if empty, otherwise kept in the cluster: namespaces %s",
			strings.Join(l.Namespaces, ", ")))
	}
	if len(l.Definitions) > 0 {
		lines = append(lines, fmt.Sprintf(
			"deleted if no objects of the kind remain, otherwise kept in the cluster: CustomResourceDefinitions %s",
			strings.Join(l.Definitions, ", ")))
	}
	if len(l.Kept) > 0 {
		lines = append(lines, fmt.Sprintf("kept in the cluster: %s", perKind(l.Kept)))
	}
	return lines
}

// perKind lists the kinds, most objects first.
func perKind(by map[schema.GroupKind]int) string {
	kinds := slices.SortedFunc(maps.Keys(by), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a.String(), b.String()))
	})
	texts := make([]string, len(kinds))
	for i, gk := range kinds {
		texts[i] = fmt.Sprintf("%d %s", by[gk], gk)
	}
	return strings.Join(texts, ", ")
}
