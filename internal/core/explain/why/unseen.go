package why

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// hidden reports whether the user may not read one of the resources, so that nothing is known of it.
func hidden(missing []roles.Missing, resources ...string) bool {
	return slices.ContainsFunc(missing, func(m roles.Missing) bool { return slices.Contains(resources, m.Resource) })
}

// unseenCluster returns a cluster of which only the name is known.
func unseenCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// What must be readable for columns of the table of clusters.
var (
	scoreNeeds     = []string{"clusters"}
	overridesNeeds = []string{"clusters", "overridepolicies", "clusteroverridepolicies"}
)

// markUnseen returns the text of a cell, with a question mark if the user may not read what it needs.
func markUnseen(missing []roles.Missing, cell string, needs []string) string {
	if !hidden(missing, needs...) {
		return cell
	}
	return strings.TrimPrefix(cell+",?", ",")
}

// writeMissing names the rights that the user lacks.
func writeMissing(b *bytes.Buffer, missing []roles.Missing) {
	if len(missing) > 0 {
		fmt.Fprintf(b, "\nNot shown: %s.\n", roles.Sentence(missing))
	}
}

// writeUnseen names what columns of the table of clusters lack because of missing rights.
func writeUnseen(b *bytes.Buffer, missing []roles.Missing, columns string, needs []string) {
	lacks := slices.DeleteFunc(slices.Clone(needs), func(r string) bool { return !hidden(missing, r) })
	if len(lacks) > 0 {
		fmt.Fprintf(b, "  %s: not known (?) without %s.\n", columns, strings.Join(lacks, ", "))
	}
}

// WorksInStatus returns the Works of a binding as its status reports them, for users who may not read Works. Conditions
// that the status does not repeat are missing.
func WorksInStatus(b workv1alpha2.Binding) []workv1alpha1.Work {
	if b == nil {
		return nil
	}
	ref := b.BindingSpec().Resource
	var works []workv1alpha1.Work
	for _, item := range b.BindingStatus().AggregatedStatus {
		w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: names.ExecutionSpace(item.ClusterName),
			Name:      names.WorkFor(b.GetName(), match.GroupKind(ref.APIVersion, ref.Kind), ref.Name, ref.Namespace)}}
		applied := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.ReasonAppliedSuccessful}
		if !item.Applied {
			applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed,
				item.AppliedMessage
		}
		if item.Applied || item.AppliedMessage != "" {
			w.Status.Conditions = []metav1.Condition{applied}
		}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: item.Status, Health: item.Health}}
		if dispatch.Suspended(b, item.ClusterName) {
			yes := true
			w.Spec.SuspendDispatching = &yes
		}
		works = append(works, w)
	}
	return works
}
