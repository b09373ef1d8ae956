// Package override applies the override policies that select a manifest in one cluster. Callers supply the policies and
// use the result.
package override

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// Applied records the applied rules in order, and the overriders without effect.
type Applied struct {
	Rules     []Rule
	Untouched []Untouched
}

// Rule is one rule that targets the cluster. It shares the overriders with the policy.
type Rule struct {
	Namespaced bool
	Policy     string
	Overriders *policyv1alpha1.Overriders
}

// Untouched is an overrider without effect, which is allowed but probably a mistake.
type Untouched struct {
	Policy    string // "OverridePolicy ns/name" or "ClusterOverridePolicy name"
	Overrider string // path in the policy, such as spec.overrideRules[0].overriders.imageOverrider[1]
	Reason    string
}

func (u Untouched) String() string {
	return fmt.Sprintf("%s, %s changed nothing: %s", u.Policy, u.Overrider, u.Reason)
}

// Apply returns m for cluster c. It never modifies m; without rules it returns m itself.
//
// ClusterOverridePolicies apply first, then OverridePolicies of m's namespace. A cluster-scoped m gets OverridePolicies
// of all namespaces that select it. Within each group the order is: policies that select the kind, by label, by name;
// ties by policy name. Rules apply as listed. Overriders apply in the order image, command, args, resources, labels,
// annotations, field, plaintext.
//
// Paths are those of the version in the policy's selectors. The order of the argument does not matter. Apply returns
// the first error, because half an override is worse than none. Changing the identity of m is an error; see Reaches.
func Apply(m *unstructured.Unstructured, c *clusterv1alpha1.Cluster,
	policies []policyv1alpha1.Override) (*unstructured.Unstructured, Applied, error) {
	var applied Applied
	out, object := m, identity.FromManifest(m)
	for _, p := range ordered(match.TemplateOf(m), policies) {
		for _, r := range targeting(c, p) {
			if r.overriders.Empty() {
				continue
			}
			if out == m {
				out = m.DeepCopy()
			}
			in, err := spoken(out, p)
			if err != nil {
				return nil, Applied{}, err
			}
			run := run{manifest: in, object: object, policy: describe(p), at: r.at, applied: &applied}
			if err := run.applyAll(r.overriders); err != nil {
				return nil, Applied{}, err
			}
			if in != out {
				if out, err = kruise.Convert(in, m.GetAPIVersion()); err != nil {
					return nil, Applied{}, fmt.Errorf("%s, %s: %w", run.policy, run.at, err)
				}
			}
			applied.Rules = append(applied.Rules, Rule{Namespaced: p.GetNamespace() != "", Policy: p.GetName(),
				Overriders: r.overriders})
		}
	}
	return out, applied, nil
}

// Annotations returns the annotations of a Work that record what was applied.
func (a Applied) Annotations() map[string]string {
	type item struct {
		PolicyName string                     `json:"policyName"`
		Overriders *policyv1alpha1.Overriders `json:"overriders"`
	}
	items := map[string][]item{}
	for _, r := range a.Rules {
		key := policyv1alpha1.AppliedClusterOverridesAnnotation
		if r.Namespaced {
			key = policyv1alpha1.AppliedOverridesAnnotation
		}
		items[key] = append(items[key], item{r.Policy, r.Overriders})
	}
	annotations := map[string]string{}
	for key, all := range items {
		annotations[key] = text.JSON(all)
	}
	return annotations
}

// Selecting returns the policies that select a template, in the order of application.
func Selecting(template *unstructured.Unstructured, policies []policyv1alpha1.Override) []policyv1alpha1.Override {
	return ordered(match.TemplateOf(template), policies)
}

// ordered returns the policies that select t, in the order of application.
func ordered(t match.Template, policies []policyv1alpha1.Override) []policyv1alpha1.Override {
	type ranked struct {
		policy   policyv1alpha1.Override
		priority match.ImplicitPriority
	}
	var selecting []ranked
	for _, p := range policies {
		if priority := selects(p, t); priority != match.None {
			selecting = append(selecting, ranked{p, priority})
		}
	}
	slices.SortFunc(selecting, func(a, b ranked) int {
		// Names are unique in a namespace, so the order is total.
		return cmp.Or(
			cmp.Compare(scopeOf(a.policy), scopeOf(b.policy)),
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(a.policy.GetName(), b.policy.GetName()),
			cmp.Compare(a.policy.GetNamespace(), b.policy.GetNamespace()),
		)
	})
	out := make([]policyv1alpha1.Override, len(selecting))
	for i, s := range selecting {
		out[i] = s.policy
	}
	return out
}

// scopeOf returns 0 for cluster-wide policies, which come first, and 1 for namespaced ones.
func scopeOf(p policyv1alpha1.Override) int { return min(len(p.GetNamespace()), 1) }

// selectsClusterScoped reports whether a policy may select cluster-scoped templates. A namespaced policy does so with a
// selector without a namespace. Admission permits that only to authors who may write a ClusterOverridePolicy; see
// match.Selectors.
func selectsClusterScoped(p policyv1alpha1.Override) bool {
	return p.GetNamespace() == "" || slices.ContainsFunc(p.OverrideSpec().ResourceSelectors,
		func(s policyv1alpha1.ResourceSelector) bool { return s.Namespace == "" })
}

// selects returns how specifically the policy selects t. Without selectors it selects everything in its scope.
func selects(p policyv1alpha1.Override, t match.Template) match.ImplicitPriority {
	if ns := p.GetNamespace(); ns != "" && ns != t.Namespace && (t.Namespace != "" || !selectsClusterScoped(p)) {
		return match.None
	}
	selectors := p.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return match.All
	}
	return match.Selectors(p.GetNamespace(), selectors, t)
}

// rule is a rule of a policy with the path of its overriders.
type rule struct {
	at         string
	overriders *policyv1alpha1.Overriders
}

// TargetsCluster reports whether one of policies has a rule for cluster c.
func TargetsCluster(c *clusterv1alpha1.Cluster, policies []policyv1alpha1.Override) bool {
	return slices.ContainsFunc(policies, func(p policyv1alpha1.Override) bool { return len(targeting(c, p)) > 0 })
}

// targeting returns the rules of p for cluster c in order. The deprecated fields count if there are no rules.
func targeting(c *clusterv1alpha1.Cluster, p policyv1alpha1.Override) []rule {
	spec := p.OverrideSpec()
	matches := func(a *policyv1alpha1.ClusterAffinity) bool { return a == nil || match.Affinity(a, c) }
	if len(spec.OverrideRules) == 0 {
		if !matches(spec.TargetCluster) {
			return nil
		}
		return []rule{{"spec.overriders", &spec.Overriders}}
	}
	var rules []rule
	for i := range spec.OverrideRules {
		if r := &spec.OverrideRules[i]; matches(r.TargetCluster) {
			rules = append(rules, rule{fmt.Sprintf("spec.overrideRules[%d].overriders", i), &r.Overriders})
		}
	}
	return rules
}

func describe(p policyv1alpha1.Override) string {
	if p.GetNamespace() == "" {
		return "ClusterOverridePolicy " + p.GetName()
	}
	return "OverridePolicy " + p.GetNamespace() + "/" + p.GetName()
}

// run applies the overriders of one rule to one manifest in place.
type run struct {
	manifest *unstructured.Unstructured
	object   identity.Object // the identity, which must not change
	policy   string
	at       string
	applied  *Applied
}

// applyAll applies the overriders in their fixed order.
func (r run) applyAll(o *policyv1alpha1.Overriders) error {
	for _, apply := range []func() error{
		func() error { return applyEach(r, "imageOverrider", o.ImageOverrider, overrideImage) },
		func() error { return applyEach(r, "commandOverrider", o.CommandOverrider, overrideWords("command")) },
		func() error { return applyEach(r, "argsOverrider", o.ArgsOverrider, overrideWords("args")) },
		func() error { return applyEach(r, "resourcesOverrider", o.ResourcesOverrider, overrideResources) },
		func() error { return applyEach(r, "labelsOverrider", o.LabelsOverrider, overrideKeys("labels")) },
		func() error {
			return applyEach(r, "annotationsOverrider", o.AnnotationsOverrider, overrideKeys("annotations"))
		},
		func() error { return applyEach(r, "fieldOverrider", o.FieldOverrider, overrideField) },
	} {
		if err := apply(); err != nil {
			return err
		}
	}
	for i := range o.ReplicasOverrider {
		_ = r.record("replicasOverrider", i,
			nothing("the policy was stored before this spelling was supported; apply it again"))
	}
	if len(o.Plaintext) == 0 {
		return nil
	}
	if i, err := overridePlaintext(r.manifest, r.object, o.Plaintext); err != nil {
		return r.record("plaintext", i, err)
	}
	return nil
}

// applyEach applies the overriders of one kind.
func applyEach[T any](r run, overrider string, all []T, apply func(*unstructured.Unstructured, *T) error) error {
	for i := range all {
		if err := r.record(overrider, i, apply(r.manifest, &all[i])); err != nil {
			return err
		}
	}
	return nil
}

// record records an overrider without effect and returns other errors with the place.
func (r run) record(overrider string, index int, err error) error {
	if err == nil {
		err = r.object.Keeps(r.manifest)
	}
	if err == nil {
		return nil
	}
	at := fmt.Sprintf("%s.%s[%d]", r.at, overrider, index)
	if why, ok := err.(nothing); ok {
		r.applied.Untouched = append(r.applied.Untouched, Untouched{Policy: r.policy, Overrider: at, Reason: string(why)})
		return nil
	}
	return fmt.Errorf("apply %s, %s: %w", r.policy, at, err)
}

// nothing is the reason why an overrider had no effect.
type nothing string

func (n nothing) Error() string { return string(n) }

// spoken converts m to the version whose paths p uses, which is the version in its selectors. It returns m itself if
// they name m's version, several versions or none, or if the kind cannot be converted.
func spoken(m *unstructured.Unstructured, p policyv1alpha1.Override) (*unstructured.Unstructured, error) {
	kind := match.GroupKind(m.GetAPIVersion(), m.GetKind())
	if !kruise.Converts(kind) {
		return m, nil
	}
	version := ""
	for _, s := range p.OverrideSpec().ResourceSelectors {
		switch {
		case match.GroupKind(s.APIVersion, s.Kind) != kind || s.APIVersion == version:
		case s.APIVersion == m.GetAPIVersion() || version != "":
			return m, nil
		default:
			version = s.APIVersion
		}
	}
	if version == "" {
		return m, nil
	}
	in, err := kruise.Convert(m, version)
	if err != nil {
		return nil, fmt.Errorf("%s speaks of %s: %w", describe(p), version, err)
	}
	return in, nil
}
