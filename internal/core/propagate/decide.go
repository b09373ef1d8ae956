package propagate

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Observed is the state on which the claim of a template depends. Decide does not change it.
type Observed struct {
	Template *unstructured.Unstructured
	// Binding is the binding of the template, see Find; nil if there is none.
	Binding workv1alpha2.Binding
	// Policies are all policies that may select the template, in any order.
	Policies []policyv1alpha1.Propagation
	// OverrideExists looks up an override policy that a policy depends on.
	OverrideExists func(types.NamespacedName) bool
	// Exposed reports that a MultiClusterService places the template.
	Exposed bool
	// Creating reports that the claim goes into the write that creates the template.
	Creating bool
	// Unchanged reports that no user has changed the template since Binding was made, whatever its digest is: a recorded
	// template can lack data.
	Unchanged bool
}

// Action is a change of the binding of a template.
type Action string

// The actions. KeepBinding also applies without a binding.
const (
	KeepBinding   Action = ""
	UpdateBinding Action = "Update" // writes Decision.Binding
	MakeBinding   Action = "Make"   // makes the binding under Decision.Policy, see Binding
	DeleteBinding Action = "Delete" // the template of the binding was deleted and created again
)

// Decision is which policy claims a template, and what follows.
type Decision struct {
	// Policy claims the template from now on; nil if no policy does.
	Policy policyv1alpha1.Propagation
	// Preempted is the policy that Policy takes the template from; nil without preemption.
	Preempted policyv1alpha1.Propagation
	// Claimed is the template with a new claim, to write before the binding; nil if its claim stays.
	Claimed *unstructured.Unstructured
	// Released is the template without its claim, or without the mark of a Lazy policy that now takes effect, to write
	// after the binding: a policy that is being deleted stays while a template names it. Nil if there is nothing to
	// remove.
	Released *unstructured.Unstructured
	Action   Action
	Binding  workv1alpha2.Binding
	// Pending is a policy that cannot take effect yet: override policies are missing or, if MissingOverrides is empty,
	// it is Lazy and would change the binding. Nil without one.
	Pending          policyv1alpha1.Propagation
	MissingOverrides []string
}

// Decide decides which policy claims a template.
func Decide(o Observed) Decision {
	t := match.TemplateOf(o.Template)
	if errors.Is(Belongs(o.Template, o.Binding), ErrOutlived) {
		return Decision{Action: DeleteBinding}
	}

	// 1. Is the claim still valid? Templates that policies must not select keep a valid claim.
	var claimant policyv1alpha1.Propagation
	if claim, claimed := Claimed(o.Template); claimed {
		i := slices.IndexFunc(o.Policies, func(p policyv1alpha1.Propagation) bool { return StillSelects(p, claim, t) })
		if i >= 0 {
			claimant = o.Policies[i]
		}
	}
	d := Decision{Policy: claimant}
	if o.Template.GetDeletionTimestamp() != nil || Excluded(t) || ManagedElsewhere(t) || o.Exposed {
		return d.release(o)
	}

	// 2. A claim stays unless another policy preempts it.
	policies := slices.DeleteFunc(slices.Clone(o.Policies), func(p policyv1alpha1.Propagation) bool { return ID(p) == "" })
	next, found := Match(t, policies)
	if claimant != nil {
		next, found = Preempt(t, claimant, policies)
	}
	if found {
		if d.MissingOverrides = o.missingOverrides(next); len(d.MissingOverrides) > 0 {
			d.Pending = next
		} else {
			d.Policy, d.Preempted = next, claimant
		}
	}
	if d.Policy == nil {
		return d.release(o)
	}
	template := o.Template
	if !ClaimedBy(template, ClaimOf(d.Policy)) {
		template = template.DeepCopy()
		Claim(template, d.Policy)
		if !o.Creating {
			Await(template, d.Policy)
		}
		d.Claimed = template
	}

	// 3. The binding. A claim from the write that created the template does not wait for overrides; the binding does.
	if o.Binding == nil && d.Policy == claimant {
		if missing := o.missingOverrides(claimant); len(missing) > 0 {
			d.Pending, d.MissingOverrides = claimant, missing
			return d
		}
	}
	switch {
	case activated(template, d.Policy, o.Binding, o.Unchanged):
		d.Action = MakeBinding
		if Waiting(template) {
			d.Released = template.DeepCopy()
			StopWaiting(d.Released)
		}
		return d
	case o.Binding != nil && Belongs(template, o.Binding) == nil:
		d.Action, d.Binding = UpdateBinding, claimedBinding(template, d.Policy, o.Binding)
	}
	if d.Pending == nil && changes(template, d.Policy, o.Binding) {
		d.Pending = d.Policy
	}
	return d
}

// release removes every claim from d, if no policy claims the template. Binding and Works remain, so that the workload
// keeps running until another policy claims it.
func (d Decision) release(o Observed) Decision {
	if d.Policy != nil {
		return d
	}
	if o.Binding != nil && Belongs(o.Template, o.Binding) == nil && !ClaimedBy(o.Binding, PolicyClaim{}) {
		d.Action, d.Binding = UpdateBinding, o.Binding.DeepCopyObject().(workv1alpha2.Binding)
		Unclaim(d.Binding)
	}
	if !ClaimedBy(o.Template, PolicyClaim{}) || Waiting(o.Template) {
		d.Released = o.Template.DeepCopy()
		Unclaim(d.Released)
		StopWaiting(d.Released)
	}
	return d
}

// missingOverrides returns the override policies that p depends on and that do not exist.
func (o Observed) missingOverrides(p policyv1alpha1.Propagation) []string {
	return slices.DeleteFunc(slices.Clone(p.PropagationSpec().DependentOverrides), func(name string) bool {
		return o.OverrideExists(types.NamespacedName{Namespace: p.GetNamespace(), Name: name})
	})
}
