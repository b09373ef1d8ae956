package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// PolicyFacts are the facts about a policy. They are read-only.
type PolicyFacts struct {
	// Propagation or Override is the policy; the other is nil.
	Propagation policyv1alpha1.Propagation
	Override    policyv1alpha1.Override
	// Templates are the objects of the kinds that its selectors name, wherever they are; their metadata suffices.
	Templates []Selectable
	// Unknown are the kinds among them that the hub does not serve, with the kinds of that name that it does.
	Unknown map[schema.GroupKind][]schema.GroupVersionKind
	// Kinds are the kinds that the hub serves; only set if a kind of Unknown exists in no other group.
	Kinds []validate.NamedKind
	// Unread are the kinds among them that the user may not list.
	Unread map[schema.GroupKind]bool
	// Policies are all propagation policies.
	Policies []policyv1alpha1.Propagation
	// Bindings are the bindings of claimed templates; for an override policy, all bindings.
	Bindings []workv1alpha2.Binding
	Clusters []*clusterv1alpha1.Cluster
	// Scheduler has the settings of the hub's scheduler.
	Scheduler schedule.Settings
	// Missing are rights that the user lacks. What they permit to read is not in these facts.
	Missing []roles.Missing
}

// Selectable is an object as far as policies look at it.
type Selectable struct {
	schema.GroupVersionKind
	metav1.Object
}

func (s Selectable) template() match.Template {
	version, kind := s.ToAPIVersionAndKind()
	return match.Template{APIVersion: version, Kind: kind, Namespace: s.GetNamespace(), Name: s.GetName(),
		Labels: s.GetLabels()}
}

// PolicyAnswer explains a policy.
type PolicyAnswer struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Summary   string `json:"summary"`
	// Findings are sorted by severity.
	Findings  []Finding  `json:"findings,omitempty"`
	Selectors []Selector `json:"selectors,omitempty"`
	// Templates are the templates that it selects or has claimed: first those that it has not claimed, then by kind,
	// namespace and name.
	Templates []Selected `json:"templates,omitempty"`
	// Clusters are the whole fleet; of an override policy, those that a rule targets.
	Clusters []PolicyCluster `json:"clusters,omitempty"`
	// Missing are the rights that the user lacks: the answer does without what they permit to read.
	Missing []roles.Missing `json:"missing,omitempty"`
}

// Selector is one of the policy's, as "Deployment.apps web".
type Selector struct {
	Selects string `json:"selects"`
	// Matches counts the templates. None is why there are none. Unread is true if the user may not list them.
	Matches int    `json:"matches"`
	None    string `json:"none,omitempty"`
	Unread  bool   `json:"unread,omitempty"`
}

// Selected is a template that the policy selects or has claimed.
type Selected struct {
	Template string `json:"template"`
	// By is the kind of selector: name, label or all; empty if it is claimed but no longer selected.
	By string `json:"by,omitempty"`
	// Claimed is true if the policy has claimed it; of an override policy, if any policy propagates it.
	Claimed bool `json:"held"`
	// Why it is not claimed, or is claimed although it is no longer selected.
	Why string `json:"why,omitempty"`
	// Placed are its clusters, as "m1:2 m2:1", and State is the first False condition of its binding.
	Placed string `json:"placed,omitempty"`
	State  string `json:"state,omitempty"`
	// Next is how the policy can claim it; empty if there is nothing to do but wait.
	Next string `json:"next,omitempty"`
}

// PolicyCluster is the result of the policy's placement, or of its rules' targets, for a cluster.
type PolicyCluster struct {
	Name string `json:"name"`
	// Takes is true if the cluster is eligible. Why is why it is not, and for which kind.
	Takes bool   `json:"takes"`
	Why   string `json:"why,omitempty"`
	// As are the affinity terms, or the override rules, that mean it.
	As []string `json:"as,omitempty"`
}

// policyExplanation is a PolicyAnswer in the making.
type policyExplanation struct {
	PolicyFacts
	answer    PolicyAnswer
	namespace string
	selectors []policyv1alpha1.ResourceSelector
	// failing counts the templates whose Works cannot be written.
	failing int
}

// ExplainPolicy answers. The same facts give the same answer, in whatever order they come.
func ExplainPolicy(f PolicyFacts) PolicyAnswer {
	e := &policyExplanation{PolicyFacts: f}
	var object metav1.Object = f.Propagation
	if f.Propagation != nil {
		e.answer.Kind, e.selectors = "PropagationPolicy", f.Propagation.PropagationSpec().ResourceSelectors
	} else {
		object = f.Override
		e.answer.Kind, e.selectors = "OverridePolicy", f.Override.OverrideSpec().ResourceSelectors
	}
	e.namespace = object.GetNamespace()
	if e.namespace == "" {
		e.answer.Kind = "Cluster" + e.answer.Kind
	}
	e.answer.Namespace, e.answer.Name, e.answer.Missing = e.namespace, object.GetName(), f.Missing
	if object.GetDeletionTimestamp() != nil {
		e.find(Waiting, "the policy is being deleted and no longer selects anything", "")
	}
	e.explainTemplates()
	e.explainSelectors()
	switch {
	case hidden(f.Missing, "clusters"):
	case f.Propagation != nil:
		e.explainPlacement()
	default:
		e.explainRules()
	}
	sortFindings(e.answer.Findings)
	e.answer.Summary = e.summary()
	return e.answer
}

func (e *policyExplanation) find(severity Severity, what, next string) {
	e.answer.Findings = append(e.answer.Findings, newFinding(severity, "", what, next))
}

// explainTemplates lists the templates that the policy selects, and which policies have claimed the others.
func (e *policyExplanation) explainTemplates() {
	out := &e.answer.Templates
	for _, s := range e.Templates {
		t := s.template()
		row := Selected{Template: text.Object(t.GroupKind().String(), t.Namespace, t.Name),
			By: closeness[e.closeness(t)]}
		claim, claimed := propagate.Claimed(s)
		if e.Override != nil {
			row.Claimed = claimed && !propagate.Excluded(t)
			if !row.Claimed {
				row.Why = "no policy propagates it to members, so nothing is overridden"
			}
		} else {
			row.Claimed = claimed && propagate.ClaimOf(e.Propagation) == claim && !propagate.Excluded(t)
			row.Why, row.Next = e.whyNotClaimed(row, t, claim, claimed)
		}
		if row.By == "" && !(row.Claimed && e.Propagation != nil) {
			continue
		}
		for _, b := range e.Bindings {
			if b.GetNamespace() == t.Namespace && propagate.IsBindingOf(b, t.GroupKind(), t.Name) {
				row.Placed = targets(sorted(b.BindingSpec().Clusters), schedule.MethodOf(b) != schedule.Everywhere)
				row.State = amiss(b)
				e.explainFailing(&row, b)
			}
		}
		*out = append(*out, row)
	}
	slices.SortFunc(*out, func(a, b Selected) int {
		switch {
		case a.Claimed == b.Claimed:
			return strings.Compare(a.Template, b.Template)
		case b.Claimed:
			return -1
		}
		return 1
	})
	if e.Propagation != nil && len(*out) > 0 &&
		!slices.ContainsFunc(*out, func(s Selected) bool { return s.Claimed || s.Why == notClaimedYet }) {
		e.findUnclaimed(*out)
	}
}

// explainFailing reports that the hub cannot write Works of a template, as with an override that fails: then no
// override of its last change is in effect.
func (e *policyExplanation) explainFailing(row *Selected, b workv1alpha2.Binding) {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.WorksWritten)
	if e.Override == nil || c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	e.failing++
	row.State = c.Message
	e.find(Problem, row.Template+": nothing new is sent: "+c.Message,
		"fix what the message names; the hub retries by itself")
}

// findUnclaimed reports that the policy has claimed none of the templates that it selects: a finding for each remedy,
// with the first template that has it.
func (e *policyExplanation) findUnclaimed(all []Selected) {
	var remedies []string
	for _, s := range all {
		if slices.Contains(remedies, s.Next) {
			continue
		}
		remedies = append(remedies, s.Next)
		severity := Attention
		if s.Next == "" {
			severity = Waiting
		}
		e.find(severity, "the policy has claimed none of the templates that it selects: "+s.Template+" "+s.Why, s.Next)
	}
}

func (e *policyExplanation) closeness(t match.Template) match.ImplicitPriority {
	if e.Propagation != nil {
		return propagate.Selected(e.Propagation, t)
	}
	if e.Override.GetDeletionTimestamp() != nil {
		return match.None
	}
	return match.Selectors(e.namespace, e.selectors, t)
}

// whyNotClaimed returns why the policy has not claimed a template that it selects, or that it no longer selects a
// claimed one, and how it can claim it.
func (e *policyExplanation) whyNotClaimed(row Selected, t match.Template, claim propagate.PolicyClaim,
	claimed bool) (why, next string) {
	const others = "select other templates, or delete the policy"
	stub := &explanation{template: t}
	switch {
	case row.Claimed && row.By == "":
		return "claimed, but no longer selected: " + misses(e.Propagation, t), ""
	case row.Claimed, row.By == "":
		return "", ""
	case propagate.ManagedElsewhere(t):
		return fmt.Sprintf("is propagated by %s (label %s)", t.Labels[policyv1alpha1.ClaimedByLabel],
			policyv1alpha1.ClaimedByLabel), others
	case propagate.Excluded(t):
		excluded := propagate.ExclusionOf(t)
		return "is never propagated: " + string(excluded), cmp.Or(remedyOfExclusion(t, excluded), others)
	case claimed:
		for _, p := range e.Policies {
			if propagate.ClaimOf(p) == claim {
				return "is claimed by " + describe(p) + "; this policy: " + stub.whyNot(e.Propagation, p),
					remedyToClaim(t, e.Propagation, p, true)
			}
		}
		if claim.Namespace == "" && hidden(e.Missing, "clusterpropagationpolicies") {
			return "is claimed by " + claim.String(), "ask a user who may read clusterpropagationpolicies"
		}
		return "is claimed by a policy that was deleted; the hub releases it first", ""
	}
	if best, ok := propagate.Match(t, e.Policies); ok && describe(best) != describe(e.Propagation) {
		return "is not claimed yet, and " + describe(best) + " ranks first; this policy: " +
			stub.whyNot(e.Propagation, best), remedyToClaim(t, e.Propagation, best, false)
	}
	return notClaimedYet, ""
}

// change is one of a policy: preemption Always, and a priority above that of another policy.
type change struct{ preempts, higher bool }

// made returns p with the change.
func (c change) made(p, q policyv1alpha1.Propagation) policyv1alpha1.Propagation {
	changed := p.DeepCopyObject().(policyv1alpha1.Propagation)
	if c.preempts {
		changed.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways
	}
	if c.higher {
		changed.PropagationSpec().Priority = new(propagate.Priority(q) + 1)
	}
	return changed
}

// takesOver reports whether p with a change takes over a template that q has claimed.
func takesOver(t match.Template, p, q policyv1alpha1.Propagation, c change) bool {
	_, takes := propagate.Preempt(t, q, []policyv1alpha1.Propagation{c.made(p, q)})
	return takes
}

// remedyToClaim returns the smallest change of p with which the hub decides that p claims a template, and not q; empty
// if p is about to claim it. claimed is true if q has claimed the template already.
func remedyToClaim(t match.Template, p, q policyv1alpha1.Propagation, claimed bool) string {
	wins := func(preempts, higher bool) bool {
		c := change{preempts, higher}
		if claimed {
			return takesOver(t, p, q, c)
		}
		changed := c.made(p, q)
		first, _ := propagate.Match(t, []policyv1alpha1.Propagation{changed, q})
		return first == changed
	}
	above := fmt.Sprintf("give it a priority above %d", propagate.Priority(q))
	switch {
	case wins(false, false):
		return ""
	case wins(true, false):
		return "set preemption: Always, to take over what another policy has claimed"
	case wins(false, true):
		return above
	case wins(true, true):
		return above + ", and preemption: Always, to take over what another policy has claimed"
	}
	return "a policy in the namespace takes precedence over any cluster policy, whatever its priority: remove the " +
		"template from the selectors of " + describe(q) + ", or delete that policy"
}

// notClaimedYet is the reason for a template that the policy is about to claim.
const notClaimedYet = "is not claimed yet"

// amiss returns the first False condition of a binding as text; empty if there is none.
func amiss(b workv1alpha2.Binding) string {
	for _, of := range []string{workv1alpha2.Scheduled, workv1alpha2.FullyApplied} {
		if of == workv1alpha2.Scheduled && aggregate.RunEnd(b.BindingStatus().Conditions) != nil {
			continue // it needs no cluster
		}
		for _, c := range b.BindingStatus().Conditions {
			if c.Type == of && c.Status == metav1.ConditionFalse {
				return fmt.Sprintf("%s=False: %s", c.Type, c.Message)
			}
		}
	}
	return ""
}

// explainSelectors counts what each selector matches, and names the nearest thing to what matches nothing.
func (e *policyExplanation) explainSelectors() {
	if len(e.selectors) == 0 && e.Override != nil {
		e.answer.Selectors = []Selector{{Selects: "everything in its scope", Matches: len(e.answer.Templates)}}
		return
	}
	for i, s := range e.selectors {
		gk := match.GroupKind(s.APIVersion, s.Kind)
		out := Selector{Selects: gk.String()}
		switch {
		case s.Name != "":
			out.Selects += " " + text.Path(s.Namespace, s.Name)
		case s.LabelSelector != nil:
			out.Selects += " " + metav1.FormatLabelSelector(s.LabelSelector)
		}
		for _, t := range e.Templates {
			if match.Selectors(e.namespace, []policyv1alpha1.ResourceSelector{s}, t.template()) != match.None {
				out.Matches++
			}
		}
		switch out.Unread = e.Unread[gk]; {
		case out.Unread:
			out.None = fmt.Sprintf("unknown: you may not list each %s", gk)
		case out.Matches == 0:
			severity, none, next := e.nearest(s)
			out.None = none
			e.find(severity, fmt.Sprintf("resourceSelectors[%d], %s, matches nothing: %s", i, out.Selects, none), next)
		}
		e.answer.Selectors = append(e.answer.Selectors, out)
	}
}

// nearest returns why a selector matches nothing, and what to change.
func (e *policyExplanation) nearest(s policyv1alpha1.ResourceSelector) (severity Severity, why, next string) {
	gk := match.GroupKind(s.APIVersion, s.Kind)
	if alike, unknown := e.Unknown[gk]; unknown {
		named := validate.NamedKind{APIVersion: s.APIVersion, Kind: s.Kind}
		if meant, ok := validate.MeantKind(named, e.Kinds); ok && len(alike) == 0 {
			return Problem, fmt.Sprintf("the hub does not serve the kind %s; did you mean %s?", gk, meant.Kind),
				fmt.Sprintf("set apiVersion: %s, kind: %s; or install the CustomResourceDefinition of %s in the hub",
					meant.APIVersion, meant.Kind, gk)
		}
		if len(alike) == 0 {
			return Problem, "the hub does not serve the kind " + gk.String(),
				"install its CustomResourceDefinition in the hub, or correct apiVersion and kind"
		}
		var versions []string
		for _, k := range alike {
			version, _ := k.ToAPIVersionAndKind()
			versions = append(versions, version)
		}
		return Problem, fmt.Sprintf("the hub does not serve the kind %s; it serves %s in another group", gk, alike[0].Kind),
			fmt.Sprintf("set apiVersion: %s, kind: %s", strings.Join(versions, " or "), alike[0].Kind)
	}
	in := cmp.Or(s.Namespace, e.namespace)
	var here, elsewhere, named []string
	var labelled string
	for _, t := range e.Templates {
		if t.GroupKind() != gk {
			continue
		}
		if t.GetName() == s.Name && t.GetNamespace() != in && in != "" {
			elsewhere = append(elsewhere, t.GetNamespace())
		}
		if in == "" || t.GetNamespace() == in {
			here = append(here, t.GetName())
			if labelled == "" || t.GetName() < named[0] {
				labelled, named = labelsOf(t.GetLabels()), []string{t.GetName()}
			}
		}
	}
	slices.Sort(here)
	slices.Sort(elsewhere)
	where := "the hub"
	if in != "" {
		where = "namespace " + in
	}
	switch {
	case len(elsewhere) > 0 && e.namespace != "":
		return Problem, fmt.Sprintf("an object of that name exists in namespace %s, but a policy in namespace %s selects only in its own namespace", some(elsewhere), e.namespace),
			"create the policy in the namespace of the template, or make it a cluster policy"
	case len(elsewhere) > 0:
		return Problem, fmt.Sprintf("an object of that name exists in namespace %s, not in %s", some(elsewhere), in),
			"set namespace: " + elsewhere[0]
	case len(here) == 0:
		return Attention, fmt.Sprintf("there is no %s in %s", gk, where),
			"create one; the policy claims it as soon as it exists"
	case s.Name != "":
		next = "correct the name, or create that object"
		if meant := text.MeantObject(s.Name, here); meant != "" {
			next = fmt.Sprintf("correct the name to %s, or create that object", meant)
		}
		return Attention, fmt.Sprintf("%s has no %s of that name; it has %s", where, gk, some(here)), next
	}
	return Attention, fmt.Sprintf("no %s in %s has these labels; %s has %s", gk, where, named[0], labelled),
		"correct the labels of the selector or of the templates"
}

// some names the first objects.
func some(names []string) string { return text.Names(names, 3) }

// explainPlacement lists which clusters are eligible and why the others are not, for each kind that the policy selects.
func (e *policyExplanation) explainPlacement() {
	fleet := e.Scheduler.Snapshot(e.Clusters)
	placement := e.Propagation.PropagationSpec().Placement
	kinds := map[schema.GroupKind]policyv1alpha1.ResourceSelector{}
	for _, s := range e.selectors {
		gk := match.GroupKind(s.APIVersion, s.Kind)
		if _, unknown := e.Unknown[gk]; !unknown {
			kinds[gk] = s
		}
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	})

	rows := map[string]*PolicyCluster{}
	for _, name := range fleet.Names() {
		rows[name] = &PolicyCluster{Name: name, Takes: true}
	}
	for _, gk := range order {
		b := bindingOf(kinds[gk], e.namespace, placement)
		terms := placement.ClusterAffinities
		may, refusals := map[string]bool{}, map[string]schedule.Rejection{}
		var candidates []schedule.Candidate
		for i := range max(1, len(terms)) {
			one := b.DeepCopy()
			name := ""
			if len(terms) > 0 {
				one.Spec.Placement.ClusterAffinities, name = terms[i:i+1], terms[i].AffinityName
			}
			takes, refused := schedule.Feasible(one, fleet)
			for _, c := range takes {
				candidates, may[c.Cluster.Name] = append(candidates, c), true
				if row := rows[c.Cluster.Name]; name != "" && !slices.Contains(row.As, name) {
					row.As = append(row.As, name)
				}
			}
			for _, r := range refused {
				// A rejection by a term that selects the cluster is more useful than the affinity of another term.
				if was, ok := refusals[r.Cluster]; !ok || was.Reason == schedule.ReasonAffinity {
					refusals[r.Cluster] = r
				}
			}
		}
		stub := &explanation{template: match.TemplateOf(templateOf(b)), fleet: fleet, claiming: e.Propagation}
		stub.Facts.Template, stub.Binding = templateOf(b), b
		for name, r := range refusals {
			if may[name] {
				continue
			}
			why, _ := stub.rejected(r)
			if row := rows[name]; !strings.Contains(row.Why, why) {
				row.Takes, row.Why = false, strings.TrimPrefix(row.Why+"; "+why, "; ") // of each kind
			}
		}
		if len(candidates) == 0 && len(order) > 0 {
			_, err := schedule.Schedule(b, fleet, nil)
			if err != nil {
				e.find(Problem, fmt.Sprintf("its placement allows no cluster for %s: %s", gk, err), schedule.Help(err))
			}
		}
	}
	e.findMissingClusters(validate.NamesOf(e.Propagation).Clusters)
	if len(order) == 0 {
		return // an unknown kind
	}
	for _, name := range fleet.Names() {
		e.answer.Clusters = append(e.answer.Clusters, *rows[name])
	}
}

// findMissingClusters reports the clusters that the policy names and the fleet does not have.
func (e *policyExplanation) findMissingClusters(named []validate.Named) {
	for _, warning := range missingClusters(named, e.Clusters) {
		e.find(Attention, warning, "")
	}
}

// missingClusters returns a warning about each cluster that a policy names and the fleet does not have, with the
// nearest name.
func missingClusters(named []validate.Named, fleet []*clusterv1alpha1.Cluster) (warnings []string) {
	if len(fleet) == 0 {
		return nil // policies may exist before the first cluster
	}
	known := map[string]bool{}
	for _, c := range fleet {
		known[c.Name] = true
	}
	names := slices.Sorted(maps.Keys(known))
	for _, n := range named {
		if !known[n.Value] {
			known[n.Value] = true
			warnings = append(warnings, validate.MissingCluster(n, names))
		}
	}
	return warnings
}

// bindingOf returns a binding of a template of the selector's kind, with the fields that filter clusters.
func bindingOf(s policyv1alpha1.ResourceSelector, namespace string,
	placement policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace = cmp.Or(s.Namespace, namespace)
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: b.Namespace,
		Name: s.Name}
	b.Spec.Placement = placement.DeepCopy()
	return b
}

// templateOf returns the template of such a binding.
func templateOf(b *workv1alpha2.ResourceBinding) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(b.Spec.Resource.APIVersion)
	u.SetKind(b.Spec.Resource.Kind)
	u.SetNamespace(b.Spec.Resource.Namespace)
	u.SetName(b.Spec.Resource.Name)
	return u
}

// explainRules lists the clusters that each rule of an override policy matches.
func (e *policyExplanation) explainRules() {
	spec := e.Override.OverrideSpec()
	rules, at := spec.OverrideRules, "overrideRules[%d]"
	if len(rules) == 0 {
		rules, at = []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}},
			"overriders"
	}
	rows := map[string]*PolicyCluster{}
	for i, r := range rules {
		name := at
		if strings.Contains(at, "%d") {
			name = fmt.Sprintf(at, i)
		}
		affinity := policyv1alpha1.ClusterAffinity{}
		if r.TargetCluster != nil {
			affinity = *r.TargetCluster
		}
		n := 0
		for _, c := range e.Clusters {
			if !match.Affinity(&affinity, c) {
				continue
			}
			n++
			if rows[c.Name] == nil {
				rows[c.Name] = &PolicyCluster{Name: c.Name, Takes: true}
			}
			rows[c.Name].As = append(rows[c.Name].As, name)
		}
		switch {
		case n == 0:
			b := bindingOf(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}, e.namespace,
				policyv1alpha1.Placement{ClusterAffinity: &affinity})
			_, err := schedule.Schedule(b, e.Scheduler.Snapshot(e.Clusters), nil)
			e.find(Attention, name+" matches no cluster: "+text.JSON(affinity), schedule.Help(err))
		case r.Overriders.Empty():
			e.find(Attention, name+" changes nothing: it has no overriders", "")
		}
	}
	e.findMissingClusters(validate.NamesOfOverride(e.Override).Clusters)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		e.answer.Clusters = append(e.answer.Clusters, *rows[name])
	}
}

// summary counts.
func (e *policyExplanation) summary() string {
	var claimed, lost int
	for _, t := range e.answer.Templates {
		if t.Claimed {
			claimed++
		} else {
			lost++
		}
	}
	parts := tally(e.answer.Findings)
	verb, not := "claims ", "not claimed"
	if e.Override != nil {
		verb, not = "overrides ", "not propagated"
	}
	switch n := claimed - e.failing; {
	case len(e.Unread) > 0 && n == 0:
		parts = append(parts, "not known which templates it "+strings.TrimSpace(verb))
	case len(e.Unread) > 0:
		parts = append(parts, verb+"at least "+text.Count(n, "template"))
	default:
		parts = append(parts, verb+text.Count(n, "template"))
	}
	if e.failing > 0 {
		parts = append(parts, "not in effect for "+text.Count(e.failing, "template"))
	}
	if lost > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", lost, not))
	}
	takes := 0
	for _, c := range e.answer.Clusters {
		if c.Takes {
			takes++
		}
	}
	if len(e.answer.Clusters) > 0 {
		parts = append(parts, fmt.Sprintf("for %d of %s", takes, text.Count(len(e.Clusters), "cluster")))
	}
	return strings.Join(parts, ", ")
}
