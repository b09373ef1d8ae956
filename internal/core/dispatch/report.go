package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// Annotations returns the annotations of the binding with what the Works alone do not record. They are written before
// the Works.
func (d Decision) Annotations(current map[string]string) map[string]string {
	annotations := maps.Clone(current)
	for key, value := range map[string]string{
		wellknown.OrdinalsAnnotation:        d.Record,
		wellknown.RolloutProgressAnnotation: d.Progress,
		wellknown.RoutedToAnnotation:        d.Routed,
		wellknown.ApprovedStageAnnotation:   d.Approved,
	} {
		switch {
		case value == "":
			delete(annotations, key)
		case annotations == nil:
			annotations = map[string]string{key: value}
		default:
			annotations[key] = value
		}
	}
	if d.Unpin {
		delete(annotations, fleet.EffectiveRevisionAnnotation)
	}
	if d.Baseline != nil {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[fleet.EffectiveRevisionAnnotation] = d.Baseline.Name
	}
	return annotations
}

// Report returns the conditions of the binding after the Works were written. waiting has a line for each cluster that
// waits for SidecarSets, see Awaited. refused are the failures that a retry does not change and that no other
// condition reports. If the decision failed as a whole, WorksWritten alone changes. now dates new conditions.
func (d Decision) Report(current []metav1.Condition, waiting, refused []string, now metav1.Time) []metav1.Condition {
	conditions := slices.Clone(current)
	// A condition reports success only after it reported a failure.
	set := func(good metav1.Condition, badReason string, lines []string) {
		good.Status, good.LastTransitionTime = metav1.ConditionTrue, now
		if len(lines) > 0 {
			good.Status, good.Reason, good.Message = metav1.ConditionFalse, badReason, strings.Join(lines, "\n")
		} else if meta.FindStatusCondition(conditions, good.Type) == nil {
			return
		}
		meta.SetStatusCondition(&conditions, good)
	}
	if d.Err == nil {
		interpret.SetFault(&conditions, configv1alpha1.InterpreterOperationReviseReplica, d.unrevised(), now)
		set(metav1.Condition{Type: workv1alpha2.VersionServed, Reason: workv1alpha2.ReasonVersionServed,
			Message: "every cluster serves a version with all fields of the template"},
			workv1alpha2.ReasonFieldsNotServed, d.unserved())
		d.reportFleet(&conditions, now)
		set(metav1.Condition{Type: workv1alpha2.ImagesPulled, Reason: workv1alpha2.ReasonImagesPulled,
			Message: "no cluster is waiting for an image"}, workv1alpha2.ReasonPullingImages, d.Pulling)
		set(metav1.Condition{Type: workv1alpha2.SidecarsInForce, Reason: workv1alpha2.ReasonSidecarsInForce,
			Message: "the workload is not waiting for a SidecarSet"}, workv1alpha2.ReasonWaitingForSidecars, waiting)
	}
	if d.RunEnd != "" && len(refused) == 0 {
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
			Reason: string(d.RunEnd), Message: d.RunEnd.Message(), LastTransitionTime: now})
		return conditions
	}
	reason := workv1alpha2.ReasonWorksRefused
	if d.Err != nil {
		reason = workv1alpha2.ReasonTemplateRefused
	}
	set(metav1.Condition{Type: workv1alpha2.WorksWritten, Reason: workv1alpha2.ReasonWorksWritten,
		Message: "every cluster's Work is up to date"}, reason, refused)
	return conditions
}

// reportFleet sets the conditions of the template in its fleet, and removes those that no longer apply.
func (d Decision) reportFleet(conditions *[]metav1.Condition, now metav1.Time) {
	for _, kind := range fleet.ConditionTypes() {
		i := slices.IndexFunc(d.Conditions, func(c fleet.Condition) bool { return c.Type == kind })
		if i < 0 {
			meta.RemoveStatusCondition(conditions, kind)
			continue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
			Message: d.Conditions[i].Message, LastTransitionTime: now})
	}
}

// unrevised returns the first error of the operation ReviseReplica, with the clusters that have one; nil if none has.
func (d Decision) unrevised() error {
	const operation = configv1alpha1.InterpreterOperationReviseReplica
	var clusters []string
	var first *interpret.Error
	for _, res := range d.Results {
		if fault := interpret.FaultOf(res.Err, operation); fault != nil {
			clusters = append(clusters, res.Cluster)
			first = cmp.Or(first, fault)
		}
	}
	if first == nil {
		return nil
	}
	const named = 3
	where := fmt.Sprintf("clusters %q", clusters[:min(len(clusters), named)])
	switch n := len(clusters); {
	case n == 1:
		where = fmt.Sprintf("cluster %q", clusters[0])
	case n > named:
		where += fmt.Sprintf(" and %d more", n-named)
	}
	return &interpret.Error{Operation: operation, About: where, Cause: first}
}

// unserved returns a line for each cluster that serves no version with all fields of the template.
func (d Decision) unserved() (lines []string) {
	for _, res := range d.Results {
		if lossy := (*kruise.Lossy)(nil); errors.As(res.Err, &lossy) {
			lines = append(lines, fmt.Sprintf("cluster %q: %v", res.Cluster, lossy))
		}
	}
	return lines
}

// HasOwnCondition reports whether a condition other than WorksWritten reports err: a version that lacks fields,
// or an interpreter that cannot divide replicas. A retry does not change either.
func HasOwnCondition(err error) bool {
	return FieldsNotServed(err) ||
		interpret.FaultOf(err, configv1alpha1.InterpreterOperationReviseReplica) != nil
}

// FieldsNotServed reports whether err comes from a cluster that serves no version with all fields of the template. A
// retry does not change that: the controller reconciles when the template or the versions of the cluster change.
func FieldsNotServed(err error) bool {
	lossy := (*kruise.Lossy)(nil)
	return errors.As(err, &lossy)
}
