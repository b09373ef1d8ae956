package dispatch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Forbidden returns why what is written in a namespace, by its name and labels, may not overwrite; empty if it may. The
// name is empty for what is in none. hub is the setting for all of them.
func Forbidden(hub bool, namespace string, labels map[string]string) string {
	value, labelled := labels[wellknown.ForbidOverwriteLabel]
	switch {
	case hub:
		return "this hub forbids it (--forbid-overwrite)"
	case labelled && value != "false":
		return fmt.Sprintf("namespace %s forbids it (label %s)", namespace, wellknown.ForbidOverwriteLabel)
	}
	return ""
}

// Overwrites reports whether an object asks to take over what stands in members.
func Overwrites(annotations map[string]string) bool {
	return annotations[workv1alpha2.ConflictResolutionAnnotation] == workv1alpha2.ConflictResolutionOverwrite
}

// resolution is the conflict resolution in force for a manifest: a valid annotation of it outranks the policy. Where
// users may not overwrite, their annotation and the word of a policy of their namespace count as abort; that of a
// ClusterPropagationPolicy, which only those write who may do so everywhere, stands.
func (in Input) resolution(m *unstructured.Unstructured, policy policyv1alpha1.ConflictResolution) string {
	own := m.GetAnnotations()[workv1alpha2.ConflictResolutionAnnotation]
	if in.ForbidOverwrite != "" {
		if own == workv1alpha2.ConflictResolutionOverwrite {
			own = ""
			if policy == "" {
				return workv1alpha2.ConflictResolutionAbort
			}
		}
		if policy == policyv1alpha1.ConflictOverwrite && !in.ofClusterPolicy() {
			policy = policyv1alpha1.ConflictAbort
		}
	}
	switch {
	case own == workv1alpha2.ConflictResolutionOverwrite, own == workv1alpha2.ConflictResolutionAbort:
		return own
	case policy == policyv1alpha1.ConflictOverwrite:
		return workv1alpha2.ConflictResolutionOverwrite
	case policy == policyv1alpha1.ConflictAbort:
		return workv1alpha2.ConflictResolutionAbort
	}
	return ""
}

// ofClusterPolicy reports whether a ClusterPropagationPolicy alone made the binding. One that only follows another is
// of none.
func (in Input) ofClusterPolicy() bool {
	if in.Binding == nil {
		return false
	}
	labels := in.Binding.GetLabels()
	return labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" &&
		labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] == ""
}

// overruled returns the condition for a user who asked to overwrite objects and may not; nil if there is none. asked
// is true if a manifest asked.
func (in Input) overruled(asked bool) *fleet.Condition {
	if in.ForbidOverwrite == "" {
		return nil
	}
	var by []string
	if asked {
		by = append(by, "the annotation "+workv1alpha2.ConflictResolutionAnnotation)
	}
	if in.Binding.BindingSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite && !in.ofClusterPolicy() {
		by = append(by, "the policy's spec.conflictResolution")
	}
	if len(by) == 0 {
		return nil
	}
	return &fleet.Condition{Type: fleet.OverwriteForbidden,
		Message: fmt.Sprintf("%s requests Overwrite, but %s. It is treated as Abort: objects in members that the hub does not manage are left unchanged. "+
			"To take them over, ask an administrator for a ClusterPropagationPolicy with conflictResolution Overwrite",
			strings.Join(by, " and "), in.ForbidOverwrite)}
}
