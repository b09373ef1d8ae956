package validate

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// permanentID is a kind's permanent id label, and the finalizer that it has from its creation on.
type permanentID struct{ label, finalizer string }

func policyID(p policyv1alpha1.Propagation) permanentID {
	if p.GetNamespace() == "" {
		return permanentID{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			policyv1alpha1.ClusterPropagationPolicyFinalizer}
	}
	return permanentID{policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyFinalizer}
}

// Identify sets id as the permanent id of a policy that is being created. An id in the request, for example from a
// backup or a copied manifest, belongs to another policy. It adds the finalizer that keeps the policy until its claims
// are removed.
func Identify(p policyv1alpha1.Propagation, id string) {
	fields.SetLabel(p, policyID(p).label, id)
	if f := policyID(p).finalizer; !slices.Contains(p.GetFinalizers(), f) {
		p.SetFinalizers(append(p.GetFinalizers(), f))
	}
}

// defaultGracePeriodSeconds is the maximal time that the old instance of a failed application stays.
const defaultGracePeriodSeconds int32 = 600

// DefaultPropagation sets the defaults that the schema cannot. clusterScoped reports which kinds have no namespace:
// their selectors keep none. A namespaced policy with such a selector was authorized before.
func DefaultPropagation(p policyv1alpha1.Propagation, clusterScoped func(policyv1alpha1.ResourceSelector) bool) {
	spec := p.PropagationSpec()
	DefaultSelectors(spec.ResourceSelectors, p.GetNamespace(), clusterScoped)
	for i := range spec.Placement.SpreadConstraints {
		c := &spec.Placement.SpreadConstraints[i]
		if c.SpreadByField == "" && c.SpreadByLabel == "" {
			c.SpreadByField = policyv1alpha1.SpreadByFieldCluster
		}
		c.MinGroups = cmp.Or(c.MinGroups, 1)
	}
	if s := spec.Placement.ReplicaScheduling; s != nil {
		s.ReplicaSchedulingType = cmp.Or(s.ReplicaSchedulingType, policyv1alpha1.ReplicaSchedulingTypeDivided)
		if s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided && s.ReplicaDivisionPreference == "" {
			s.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
		}
	}
	if f := spec.Failover; f != nil && f.Application != nil {
		a := f.Application
		a.PurgeMode = cmp.Or(a.PurgeMode, policyv1alpha1.PurgeModeGracefully)
		if a.PurgeMode == policyv1alpha1.PurgeModeGracefully && a.GracePeriodSeconds == nil {
			seconds := defaultGracePeriodSeconds
			a.GracePeriodSeconds = &seconds
		}
	}
	// A ServiceImport is of no use without the EndpointSlices that it depends on.
	for _, s := range spec.ResourceSelectors {
		if gk := match.GroupKind(s.APIVersion, s.Kind); gk.Group == "multicluster.x-k8s.io" && gk.Kind == "ServiceImport" {
			spec.PropagateDeps = true
		}
	}
}

// DefaultSelectors sets the namespace of a namespaced policy in its selectors.
func DefaultSelectors(selectors []policyv1alpha1.ResourceSelector, namespace string,
	clusterScoped func(policyv1alpha1.ResourceSelector) bool) {
	if namespace == "" {
		return
	}
	for i := range selectors {
		if selectors[i].Namespace == "" && !clusterScoped(selectors[i]) {
			selectors[i].Namespace = namespace
		}
	}
}

// Propagation validates a policy; old is its previous state, nil for a new policy.
func Propagation(p, old policyv1alpha1.Propagation) field.ErrorList {
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	errs := identity(p, old)
	if old != nil && old.PropagationSpec().SchedulerName != spec.SchedulerName {
		errs = append(errs, field.Invalid(path.Child("schedulerName"), spec.SchedulerName,
			"the schedulerName should not be updated"))
	}
	errs = append(errs, selectors(spec.ResourceSelectors, p.GetNamespace(), path.Child("resourceSelectors"))...)
	if spec.Preemption == policyv1alpha1.PreemptAlways {
		for i, s := range spec.ResourceSelectors {
			if s.Name == "" {
				errs = append(errs, field.Invalid(path.Child("resourceSelectors").Index(i).Child("name"), s.Name,
					"name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"))
			}
		}
	}
	errs = append(errs, placement(&spec.Placement, path.Child("placement"))...)
	if spec.Failover != nil {
		errs = append(errs, failover(spec.Failover, spec.PropagateDeps, path.Child("failover"))...)
	}
	if s := spec.Suspension; s != nil && s.Dispatching != nil && *s.Dispatching &&
		s.DispatchingOnClusters != nil && len(s.DispatchingOnClusters.ClusterNames) > 0 {
		errs = append(errs, field.Invalid(path.Child("suspension"), *s.Dispatching,
			"suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"))
	}
	return errs
}

// identity requires the permanent id of a policy, and rejects changes of it: claims refer to the policy by it.
func identity(p, old policyv1alpha1.Propagation) field.ErrorList {
	label := policyID(p).label
	path := field.NewPath("metadata", "labels").Key(label)
	id := p.GetLabels()[label]
	if id == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("label %s is required", label))}
	}
	if old != nil && old.GetLabels()[label] != id {
		return field.ErrorList{field.Invalid(path, id, fmt.Sprintf("label %s is immutable", label))}
	}
	return nil
}

func selectors(list []policyv1alpha1.ResourceSelector, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range list {
		if namespace != "" && s.Namespace != "" && s.Namespace != namespace {
			errs = append(errs, field.Invalid(path.Index(i).Child("namespace"), s.Namespace,
				fmt.Sprintf("the namespace of a selector must be that of the policy, %q", namespace)))
		}
		errs = append(errs, labelSelector(s.LabelSelector, path.Index(i).Child("labelSelector"))...)
	}
	return errs
}
