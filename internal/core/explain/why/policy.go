package why

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
)

// Policy is the policy that has claimed the template, and why others have not.
type Policy struct {
	// ClaimedBy is the policy that has claimed it, as "PropagationPolicy shop/web"; empty for none.
	ClaimedBy string `json:"holder,omitempty"`
	// Why is what else propagates the template, or why policies ignore it.
	Why string `json:"why,omitempty"`
	// Candidates are the policies that select its kind: first the one that has claimed it, last those that do not select
	// it.
	Candidates []PolicyCandidate `json:"candidates,omitempty"`
	// OtherKinds counts the policies that only select other kinds.
	OtherKinds int `json:"otherKinds,omitempty"`
}

// PolicyCandidate is a policy that selects the template's kind.
type PolicyCandidate struct {
	Policy   string `json:"policy"`
	Priority int32  `json:"priority"`
	// Selects is the kind of selector: name, label or all; empty if the policy does not select the template.
	Selects string `json:"selects,omitempty"`
	Holds   bool   `json:"holds,omitempty"`
	// Why it has not claimed the template; empty if it has.
	Why string `json:"why,omitempty"`
}

var closeness = map[match.ImplicitPriority]string{match.All: "all", match.Label: "label",
	match.Name: "name"}

// explainPolicy finds the policy that has claimed the template, and why the others have not.
func (e *explanation) explainPolicy() {
	t, out := e.template, &e.answer.Policy
	claim, claimed := propagate.Claimed(e.Facts.Template)
	claimed = claimed && !propagate.Excluded(t) // a binding has the labels of its template's policy
	for _, p := range e.Policies {
		if claimed && propagate.ClaimOf(p) == claim {
			e.claiming = p
			out.ClaimedBy = describe(p)
		}
	}
	if claimed && e.claiming == nil && claim.Namespace == "" && hidden(e.Missing, "clusterpropagationpolicies") {
		out.ClaimedBy = claim.String()
	}
	best, selected := propagate.Match(t, e.Policies)
	for _, p := range e.Policies {
		if !slices.ContainsFunc(p.PropagationSpec().ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
			return match.GroupKind(s.APIVersion, s.Kind) == t.GroupKind()
		}) {
			out.OtherKinds++
			continue
		}
		c := PolicyCandidate{Policy: describe(p), Priority: propagate.Priority(p),
			Selects: closeness[propagate.Selected(p, t)]}
		switch {
		case e.claiming != nil && describe(p) == describe(e.claiming):
			c.Holds = true
		case e.claiming != nil:
			c.Why = e.whyNot(p, e.claiming)
			if d := e.decision; len(d.MissingOverrides) > 0 && describe(d.Pending) == describe(p) {
				c.Why = "preempts that policy as soon as the override policies exist that it depends on"
			}
		case out.ClaimedBy != "":
			c.Why = out.ClaimedBy + " has claimed it"
		case selected && describe(p) != describe(best):
			c.Why = e.whyNot(p, best)
		case selected:
			c.Why = e.unclaimed()
		default:
			c.Why = misses(p, t)
		}
		out.Candidates = append(out.Candidates, c)
	}
	slices.SortFunc(out.Candidates, func(a, b PolicyCandidate) int {
		rank := func(c PolicyCandidate) int {
			switch {
			case c.Holds:
				return 0
			case c.Selects != "":
				return 1
			}
			return 2
		}
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.Policy, b.Policy)
	})

	switch {
	case e.claiming == nil && e.actsOnHub():
		out.Why = "the hub acts on it, so it needs no policy"
	case propagate.Excluded(t):
		excluded := propagate.ExclusionOf(t)
		out.Why = "the hub never propagates it: " + string(excluded)
		e.find(Attention, "", out.Why, remedyOfExclusion(t, excluded))
	case propagate.ManagedElsewhere(t):
		out.Why = fmt.Sprintf("%s propagates it (label %s), so policies ignore it", t.Labels[policyv1alpha1.ClaimedByLabel],
			policyv1alpha1.ClaimedByLabel)
	case e.Exposed && e.claiming == nil:
		out.Why = fmt.Sprintf("MultiClusterService %s propagates it, so policies ignore it",
			text.Path(t.Namespace, t.Name))
	case e.claiming != nil:
		e.explainClaim()
	case out.ClaimedBy != "": // the user may not read it
	case t.GroupKind() == schema.GroupKind{Kind: "Namespace"} && !selected && !claimed &&
		t.Labels[policyv1alpha1.NamespaceSkipAutoPropagationLabel] == "true":
		out.Why = "the hub does not propagate it: it has the label " + policyv1alpha1.NamespaceSkipAutoPropagationLabel
		e.find(Attention, "", out.Why, "remove the label to propagate it to every cluster, "+
			"or select it by a ClusterPropagationPolicy")
	case e.sentByItself():
		out.Why = "namespaces are propagated to every cluster without a policy"
	case len(e.decision.MissingOverrides) > 0:
		e.explainMissingOverrides()
	case selected:
		e.find(Waiting, "", describe(best)+" selects it, and has not claimed it yet",
			"wait some seconds; if it stays unclaimed, check that the controllers of the hub run: `argosy status`")
	case e.Binding != nil && propagate.Belongs(e.Facts.Template, e.Binding) == nil &&
		len(e.Binding.BindingSpec().RequiredBy) > 0:
		out.Why = "it is propagated as a dependency of " + requirers(e.Binding.BindingSpec().RequiredBy)
		if p, ok, _ := companion.PointerOf(e.Facts.Template); ok {
			out.Why = fmt.Sprintf("it is propagated with the object that it refers to, %s: %s", p,
				requirers(e.Binding.BindingSpec().RequiredBy))
		}
	default:
		e.unselected(claim, claimed)
	}
}

// remedyOfExclusion returns how to propagate something else instead; empty if there is nothing to do.
func remedyOfExclusion(t match.Template, why propagate.Exclusion) string {
	switch {
	case t.GroupKind() == releasev1alpha1.GroupVersion.WithKind("Release").GroupKind():
		return fmt.Sprintf("`argosy release status %s -n %s` shows its state", t.Name, t.Namespace)
	case why == propagate.ExcludedNamespace && t.Namespace != "":
		return "to propagate its content, create it in a namespace of your own"
	case why == propagate.ExcludedNamespace:
		return "to propagate objects, create them in a namespace of your own"
	case why == propagate.ExcludedOwn:
		return "to propagate its content, create a " + t.Kind + " with another name"
	}
	return ""
}

// unclaimed returns why the policy that ranks first has not claimed the template.
func (e *explanation) unclaimed() string {
	t := e.template
	switch {
	case e.actsOnHub(), propagate.Excluded(t):
		return "selects it, but it is never propagated"
	case propagate.ManagedElsewhere(t):
		return "selects it, but " + t.Labels[policyv1alpha1.ClaimedByLabel] + " propagates it"
	case e.Exposed:
		return "selects it, but a MultiClusterService propagates it"
	}
	return "selects it and ranks first; has not claimed it yet"
}

// explainClaim reports if the policy that has claimed the template is deleted, lazy, preempted or no longer selects
// it.
func (e *explanation) explainClaim() {
	p, t, d := e.claiming, e.template, e.decision
	if !hidden(e.Missing, "clusters") {
		// A weight for a cluster that has left is no fault.
		named := slices.DeleteFunc(validate.NamesOf(p).Clusters, func(n validate.Named) bool {
			return !strings.HasPrefix(n.Path.String(), "spec.placement.clusterAffinit")
		})
		for _, warning := range missingClusters(named, e.Clusters) {
			e.find(Attention, "", describe(p)+", "+warning, "correct the name, or join a cluster of that name")
		}
	}
	switch {
	case p.GetDeletionTimestamp() != nil:
		e.find(Waiting, "", describe(p)+" has claimed it and is being deleted; the hub releases the template first", "")
	case !propagate.StillSelects(p, propagate.ClaimOf(p), t):
		e.find(Waiting, "", describe(p)+" claimed it and no longer selects it: "+misses(p, t), "")
	case d.Pending != nil && d.Preempted == nil && len(d.MissingOverrides) == 0:
		e.find(Waiting, "", describe(p)+" is Lazy: it takes effect with the next change of the template",
			"change the template, for example an annotation; or remove activationPreference: Lazy from the policy")
	}
	if d.Preempted != nil {
		e.find(Waiting, "", fmt.Sprintf("%s preempts %s and is about to claim the template", describe(d.Policy),
			describe(d.Preempted)), "")
	}
	e.explainMissingOverrides()
}

// explainMissingOverrides reports the override policies that a policy depends on and that do not exist. Without them
// the template is not placed. If another policy has claimed it, only the preemption waits.
func (e *explanation) explainMissingOverrides() {
	d := e.decision
	if len(d.MissingOverrides) == 0 {
		return
	}
	what := fmt.Sprintf("%s waits for the override policies that it depends on: %s", describe(d.Pending),
		strings.Join(d.MissingOverrides, ", "))
	const next = "create them, or remove them from dependentOverrides of the policy"
	if e.claiming != nil && describe(e.claiming) != describe(d.Pending) {
		e.find(Waiting, "", what+"; then it preempts "+describe(e.claiming), next)
		return
	}
	e.find(Problem, "", what, next)
}

// unselected reports that no policy selects the template, and what to change.
func (e *explanation) unselected(claim propagate.PolicyClaim, claimed bool) {
	t := e.template
	kind := "PropagationPolicy in namespace " + t.Namespace
	if t.Namespace == "" {
		kind = "ClusterPropagationPolicy"
	}
	severity, what := Problem, "no policy selects it, so it stays on the hub"
	if hidden(e.Missing, "clusterpropagationpolicies") {
		what = "no policy has claimed it, so it stays on the hub, and none that you may read selects it"
	}
	if e.ownBinding() != nil {
		severity, what = Attention, "no policy selects it anymore: its objects stay in the clusters unchanged"
	}
	if claimed {
		severity, what = Problem, fmt.Sprintf(
			"the policy that claimed it, %s, was deleted, and no other selects it: its objects stay in the clusters unchanged",
			strings.Trim(claim.Namespace+"/"+claim.Name, "/"))
	}
	next := fmt.Sprintf("create a %s with resourceSelectors: [{apiVersion: %s, kind: %s, name: %s}]", kind, t.APIVersion,
		t.Kind, t.Name)
	const shown = 3
	near := slices.DeleteFunc(slices.Clone(e.answer.Policy.Candidates), func(c PolicyCandidate) bool {
		return !slices.ContainsFunc(e.Policies, func(p policyv1alpha1.Propagation) bool {
			return describe(p) == c.Policy && e.isNear(p)
		})
	})
	for _, c := range near[:min(shown, len(near))] {
		next += fmt.Sprintf("; or add that selector to %s: %s", c.Policy, c.Why)
	}
	if more := len(near) - shown; more > 0 {
		next += fmt.Sprintf("; or to one of %d more, listed below", more)
	}
	switch p, ok, err := companion.PointerOf(e.Facts.Template); {
	case err != nil:
		next += "; or, to propagate it with the workloads that it refers to, fix it: " + err.Error()
	case ok:
		next += fmt.Sprintf("; or propagate it with the object that it refers to, %s: set propagateDeps: true in the policy of that object", p)
	}
	e.find(severity, "", what, next)
}

// isNear reports whether a policy that does not select the template may be meant for it: the hub decides that it claims
// the template with one more selector, it is of the template's scope, and does not only select in other namespaces or
// objects of other names.
func (e *explanation) isNear(p policyv1alpha1.Propagation) bool {
	t := e.template
	if t.Namespace == "" && propagate.Namespaced(p) {
		return false
	}
	changed := p.DeepCopyObject().(policyv1alpha1.Propagation)
	spec := changed.PropagationSpec()
	named := slices.DeleteFunc(slices.Clone(spec.ResourceSelectors), func(s policyv1alpha1.ResourceSelector) bool {
		return match.GroupKind(s.APIVersion, s.Kind) != t.GroupKind() || s.Namespace != "" && s.Namespace != t.Namespace ||
			s.Name != "" && s.Name != t.Name && text.MeantObject(s.Name, []string{t.Name}) == ""
	})
	spec.ResourceSelectors = append(spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: t.APIVersion,
		Kind: t.Kind, Name: t.Name})
	o := e.Observed
	o.Policies = []policyv1alpha1.Propagation{changed}
	return len(named) > 0 && propagate.Decide(o).Policy != nil
}

// whyNot returns why q has claimed the template and p has not.
func (e *explanation) whyNot(p, q policyv1alpha1.Propagation) string {
	t := e.template
	mine, theirs := propagate.Selected(p, t), propagate.Selected(q, t)
	if mine == match.None {
		return misses(p, t)
	}
	if first, _ := propagate.Match(t, []policyv1alpha1.Propagation{p, q}); theirs != match.None &&
		describe(first) == describe(p) {
		if takesOver(t, p, q, change{}) {
			return "preempts that policy and is about to claim the template"
		}
		if p.PropagationSpec().Preemption != policyv1alpha1.PreemptAlways {
			if !takesOver(t, p, q, change{preempts: true}) {
				return "ranks higher, but another policy had already claimed the template; set preemption: Always and a higher " +
					"priority to take it over"
			}
			return "ranks higher, but another policy had already claimed the template; set preemption: Always to take it over"
		}
		return "preempts only policies of a lower scope or priority"
	}
	switch {
	case propagate.Namespaced(p) != propagate.Namespaced(q):
		return "a policy in the namespace takes precedence over any cluster policy"
	case propagate.Priority(p) != propagate.Priority(q):
		return fmt.Sprintf("its priority %d is lower than %d", propagate.Priority(p), propagate.Priority(q))
	case mine != theirs:
		return fmt.Sprintf("selects by %s, which is less specific than by %s", closeness[mine], closeness[theirs])
	}
	return "same priority; the other policy sorts first by name"
}

// misses returns why p does not select t.
func misses(p policyv1alpha1.Propagation, t match.Template) string {
	if p.GetDeletionTimestamp() != nil {
		return "is being deleted"
	}
	var whys []string
	for _, s := range p.PropagationSpec().ResourceSelectors {
		if match.GroupKind(s.APIVersion, s.Kind) != t.GroupKind() {
			continue
		}
		why := ""
		switch {
		case s.Namespace != "" && s.Namespace != t.Namespace:
			why = "it selects in namespace " + s.Namespace
		case s.Name != "":
			why = "it selects the name " + s.Name
		case s.LabelSelector != nil:
			why = "it selects the labels " + metav1.FormatLabelSelector(s.LabelSelector) + ", the template has " +
				labelsOf(t.Labels)
		}
		if why != "" && !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	if len(whys) == 0 {
		return "it does not select this kind in this namespace"
	}
	return strings.Join(whys, "; ")
}

func labelsOf(l map[string]string) string {
	shown := map[string]string{}
	for k, v := range l {
		if !strings.Contains(k, "karmada.io/") {
			shown[k] = v
		}
	}
	if len(shown) == 0 {
		return "none"
	}
	return labels.Set(shown).String()
}

// sentByItself reports whether the template is a namespace that is propagated to every cluster without a policy.
func (e *explanation) sentByItself() bool {
	gk := e.template.GroupKind()
	return gk.Group == "" && gk.Kind == "Namespace" && dispatch.AutoPropagated(e.Facts.Template)
}
