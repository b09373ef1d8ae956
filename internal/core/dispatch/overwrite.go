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

// Forbidden returns why objects in a namespace with that name and labels may not overwrite; empty if they may. The
// name is empty for cluster-scoped objects. hub is the setting for all namespaces.
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

// Overwrites reports whether an object requests to take over existing objects in members.
func Overwrites(annotations map[string]string) bool {
	return annotations[workv1alpha2.ConflictResolutionAnnotation] == workv1alpha2.ConflictResolutionOverwrite
}

// resolution returns the effective conflict resolution of a manifest: a valid annotation outranks the policy. Where
// users may not overwrite, an annotation or a policy of their namespace counts as abort; a ClusterPropagationPolicy
// keeps its effect, since only users who may overwrite everywhere write it.
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

// ofClusterPolicy reports whether only a ClusterPropagationPolicy made the binding. A binding that follows another one
// has no policy.
func (in Input) ofClusterPolicy() bool {
	if in.Binding == nil {
		return false
	}
	labels := in.Binding.GetLabels()
	return labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" &&
		labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] == ""
}

// overruled returns the condition for a forbidden request to overwrite objects; nil if there is none. asked is true if
// a manifest has the request.
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
