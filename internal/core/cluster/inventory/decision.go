package inventory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// maxDecisions is the number of clusters in a PlacementDecision, which the API limits.
const maxDecisions = 100

// Decided returns the clusters of a binding, sorted: those in which it is placed, and those that it leaves once its
// workload runs elsewhere. namespace is that of the ClusterProfiles.
func Decided(b *workv1alpha2.ResourceBinding, namespace string) (all []multiclusterv1alpha1.ClusterDecision) {
	add := func(cluster, reason string) {
		if !slices.ContainsFunc(all, func(d multiclusterv1alpha1.ClusterDecision) bool {
			return d.ClusterProfileRef.Name == cluster
		}) {
			all = append(all, multiclusterv1alpha1.ClusterDecision{Reason: reason,
				ClusterProfileRef: multiclusterv1alpha1.ClusterProfileReference{Name: cluster, Namespace: namespace}})
		}
	}
	for _, c := range b.Spec.Clusters {
		add(c.Name, "The scheduler chose the cluster.")
	}
	for _, task := range b.Spec.GracefulEvictionTasks {
		add(task.FromCluster, "The workload leaves the cluster once it runs elsewhere.")
	}
	slices.SortFunc(all, byCluster)
	return all
}

func byCluster(a, b multiclusterv1alpha1.ClusterDecision) int {
	return strings.Compare(a.ClusterProfileRef.Name, b.ClusterProfileRef.Name)
}

// IsDecision reports whether the hub wrote a PlacementDecision.
func IsDecision(d *multiclusterv1alpha1.PlacementDecision) bool {
	of := metav1.GetControllerOf(d)
	return of != nil && of.APIVersion == workv1alpha2.GroupVersion.String() && of.Kind == "ResourceBinding"
}

// BindingName returns the name of the binding that a PlacementDecision is for. If another program wrote it, that is the
// binding whose decision has the same name.
func BindingName(d *multiclusterv1alpha1.PlacementDecision) string {
	if IsDecision(d) {
		return metav1.GetControllerOf(d).Name
	}
	return d.Name[:max(0, strings.LastIndex(d.Name, "-"))]
}

// Decisions returns the PlacementDecisions to write for the clusters of a binding, and those to delete afterwards. were
// are the present ones of the binding. A cluster stays in the PlacementDecision that has it, so that at each moment one
// of them has it.
func Decisions(b *workv1alpha2.ResourceBinding, clusters []multiclusterv1alpha1.ClusterDecision,
	were []multiclusterv1alpha1.PlacementDecision) (write, gone []multiclusterv1alpha1.PlacementDecision) {
	if len(clusters) == 0 {
		return nil, nil // a program that follows an empty list may delete the workload everywhere
	}
	slots := make([][]multiclusterv1alpha1.ClusterDecision, (len(clusters)+maxDecisions-1)/maxDecisions)
	place, kept := map[string]int{}, map[string]bool{}
	for i := range slots {
		name := sliceName(b.Name, i)
		kept[name] = true
		for _, was := range were {
			for _, d := range was.Decisions {
				if was.Name == name {
					place[d.ClusterProfileRef.Name] = i
				}
			}
		}
	}
	var moving []multiclusterv1alpha1.ClusterDecision
	for _, c := range clusters {
		if i, has := place[c.ClusterProfileRef.Name]; has && len(slots[i]) < maxDecisions {
			slots[i] = append(slots[i], c)
		} else {
			moving = append(moving, c)
		}
	}
	for i := range slots {
		n := min(len(moving), maxDecisions-len(slots[i]))
		slots[i], moving = append(slots[i], moving[:n]...), moving[n:]
		slices.SortFunc(slots[i], byCluster)
		want := multiclusterv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace,
			Name: sliceName(b.Name, i)}}
		at := slices.IndexFunc(were, func(was multiclusterv1alpha1.PlacementDecision) bool { return was.Name == want.Name })
		if at >= 0 {
			want = *were[at].DeepCopy()
		}
		want.Labels = map[string]string{multiclusterv1alpha1.DecisionKeyLabel: names.Label(b.Name),
			multiclusterv1alpha1.DecisionIndexLabel: strconv.Itoa(i), multiclusterv1alpha1.PlacementKeyLabel: names.Label(
				names.Binding(b.Spec.Resource.Kind, b.Spec.Resource.Name))}
		want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b,
			workv1alpha2.GroupVersion.WithKind("ResourceBinding"))}
		want.Decisions = slots[i]
		want.SchedulerName = cmp.Or(b.Spec.SchedulerName, policyv1alpha1.DefaultSchedulerName)
		if at < 0 || !equality.Semantic.DeepEqual(want, were[at]) {
			write = append(write, want)
		}
	}
	for _, was := range were {
		if !kept[was.Name] {
			gone = append(gone, was)
		}
	}
	return write, gone
}

// sliceName is the name of a PlacementDecision of a binding.
func sliceName(binding string, i int) string { return names.Object(binding + "-" + strconv.Itoa(i)) }
