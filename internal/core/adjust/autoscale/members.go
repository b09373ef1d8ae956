package autoscale

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Propagated returns the autoscalers of the workload that policies propagate as they do the workload, sorted, as
// "HorizontalPodAutoscaler web". Workloads of kinds that are not known to scale have none. One with an invalid
// annotation counts only if it is recorded: members have it as it was before.
func Propagated(workload *unstructured.Unstructured, autoscalers []*unstructured.Unstructured,
	recorded []string) []string {
	var found []string
	_, propagated := propagate.Claimed(workload)
	for _, a := range autoscalers {
		_, claimed := propagate.Claimed(a)
		who := a.GetKind() + " " + a.GetName()
		if target, ok := execute.TargetOf(a); ok && claimed && propagated && a.GetDeletionTimestamp() == nil &&
			target == TargetFor(workload) && kind.Facts(workload).Scale &&
			(fleet.CheckAnnotations(a.GetAnnotations()) == nil || slices.Contains(recorded, who)) {
			found = append(found, who)
		}
	}
	slices.Sort(found)
	return found
}

// TargetFor returns the workload as autoscalers name it.
func TargetFor(workload *unstructured.Unstructured) execute.Target {
	return execute.Target{GroupKind: workload.GroupVersionKind().GroupKind(), Namespace: workload.GetNamespace(),
		Name: workload.GetName()}
}

// Mark returns the template with the label that leaves its replicas to members if autoscalers there set them, and with
// an annotation that names these. Without autoscalers it removes both. A label that a user wrote stays as it is, and
// has no annotation. The result is the template itself if nothing changes.
func Mark(template *unstructured.Unstructured, autoscalers []string) *unstructured.Unstructured {
	const key = policyv1alpha1.RetainReplicasLabel
	label, labelled := template.GetLabels()[key]
	by, marked := strings.Join(autoscalers, ", "), template.GetAnnotations()[wellknown.ScaledByAnnotation]
	own := labelled && (marked == "" || label != "true") // the user's
	if own {
		by = ""
	}
	if by == marked && (labelled || by == "") {
		return template
	}
	out := template.DeepCopy()
	fields.PutAnnotation(out, wellknown.ScaledByAnnotation, by)
	if by != "" {
		fields.SetLabel(out, key, "true")
	} else if !own && !usersLabel(template) {
		labels := out.GetLabels()
		delete(labels, key)
		out.SetLabels(labels)
	}
	return out
}

// usersLabel reports whether a user applied the label after the hub had set it, by the record of `kubectl apply`.
func usersLabel(template *unstructured.Unstructured) bool {
	var applied map[string]any
	return json.Unmarshal([]byte(template.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) == nil &&
		fields.Text(applied, "metadata", "labels", policyv1alpha1.RetainReplicasLabel) != ""
}

// Followed returns the replicas of each cluster as autoscalers in the members have set them, for a template of that
// generation whose replicas the binding has. ok is false while they are not known: until the binding is placed, and
// each cluster that responds has reported this generation, an earlier sum would undo a change of the template.
//
// A cluster keeps the replicas that it was given while its pods do not show others: while they are created or replaced,
// and while it does not respond. One that is scaled to zero counts as 1: without replicas it would lose the workload,
// and its autoscaler could not scale up again.
func Followed(b workv1alpha2.Binding, generation int64,
	lost func(cluster string) bool) (replicas map[string]int32, ok bool) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	if spec.Replicas == 0 || !spec.Placement.DividesReplicas() || schedule.PartsOf(b) != nil ||
		status.SchedulerObservedGeneration != b.GetGeneration() {
		return nil, false
	}
	replicas = map[string]int32{}
	for _, c := range spec.Clusters {
		switch n, known := reported(b, c, generation); {
		case c.Replicas == 0:
		case lost(c.Name):
			replicas[c.Name] = c.Replicas
		case !known:
			return nil, false
		default:
			replicas[c.Name] = n
		}
	}
	return replicas, len(replicas) > 0
}

// reported returns the replicas that the pods of a cluster show. known is false before the cluster reports the
// generation of the template.
func reported(b workv1alpha2.Binding, in workv1alpha2.TargetCluster, generation int64) (n int32, known bool) {
	items := b.BindingStatus().AggregatedStatus
	i := slices.IndexFunc(items, func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == in.Name })
	if i < 0 || !items[i].Applied || items[i].Status == nil {
		return 0, false
	}
	var status map[string]any
	if json.Unmarshal(items[i].Status.Raw, &status) != nil || !interpret.Current(status, generation) {
		return 0, false
	}
	of := b.BindingSpec().Resource
	pods, counts := interpret.PodsOf(match.GroupKind(of.APIVersion, of.Kind), status)
	replicas := max(clamp(pods.All), 1)
	if items[i].Health == workv1alpha1.ResourceHealthy ||
		replicas > in.Replicas && (!counts || pods.Updated == pods.All) { // more are wanted, and not all are ready
		return replicas, true
	}
	return in.Replicas, true
}
