package why_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// A user who may not read Works gets the same explanation from the binding's status, except for what only a condition
// of the Work has.
func TestBindingExplainsAsMuchWithoutRightToReadWorks(t *testing.T) {
	compared := 0
	for _, s := range stories {
		h := s.given(t)
		if h.Binding == nil {
			continue
		}
		*h.Binding.BindingStatus() = aggregate.Binding(h.Binding, h.Works, nil, metav1.Time{})
		seen := explain(h.Facts)
		blind := h.Facts
		blind.Works, blind.Unseen = why.WorksInStatus(h.Binding), true
		answer := explain(blind)
		for _, c := range seen.Clusters {
			i := slices.IndexFunc(h.Works, func(w workv1alpha1.Work) bool { return w.Namespace == names.ExecutionSpace(c.Name) })
			if i < 0 || !slices.ContainsFunc(h.Binding.BindingStatus().AggregatedStatus,
				func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == c.Name }) {
				continue
			}
			got, ok := answer.ForCluster(c.Name)
			if !ok {
				t.Errorf("%s: nothing is explained about %s", s.name, c.Name)
				continue
			}
			compared++
			more := slices.ContainsFunc(h.Works[i].Status.Conditions, func(c metav1.Condition) bool {
				return c.Type != workv1alpha1.WorkApplied
			})
			if g := got.Clusters[0]; g.State != c.State || !more && g.Why != c.Why {
				t.Errorf("%s: %s is %s, %q; with access to Works it is %s, %q", s.name, c.Name, g.State, g.Why, c.State,
					c.Why)
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d clusters were compared", compared)
	}
}

// What no binding reports is not explained as about to come.
func TestUnreadableObjectsAreNotExplained(t *testing.T) {
	h := start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", cluster("m1"))
	h.Unseen = true
	answer := explain(h.Facts)
	if c := answer.Clusters[0]; c.State != state.Progressing ||
		c.Why != "its state there is in its Work, which you may not read" {
		t.Errorf("it says %s, %q", c.State, c.Why)
	}
}

// blind returns the facts that a user with the role view in the namespace of a template can read.
func blind(f why.Facts) why.Facts {
	f.Works, f.Unseen = why.WorksInStatus(f.Binding), true
	f.Clusters = nil
	f.Policies = slices.DeleteFunc(slices.Clone(f.Policies), func(p policyv1alpha1.Propagation) bool {
		return p.GetNamespace() == ""
	})
	f.Overrides = slices.DeleteFunc(slices.Clone(f.Overrides), func(o policyv1alpha1.Override) bool {
		return o.GetNamespace() == ""
	})
	f.Missing = []roles.Missing{roles.Lack("list", "policy.karmada.io", "clusterpropagationpolicies", ""),
		roles.Lack("list", "policy.karmada.io", "clusteroverridepolicies", ""),
		roles.Lack("list", "cluster.karmada.io", "clusters", "")}
	return f
}

// What a user of a namespace may not read is left out: no problem is invented, and each cluster has the state that the
// binding reports.
func TestUserOfANamespaceIsToldNothingFalse(t *testing.T) {
	compared := 0
	for _, s := range stories {
		h := s.given(t)
		if h.Template.GetNamespace() == "" {
			continue // such a user reads none of these
		}
		if h.Binding != nil {
			outages := aggregate.OutagesOf(h.Binding, func(name string) *clusterv1alpha1.Cluster {
				i := slices.IndexFunc(h.Clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == name })
				if i < 0 {
					return nil
				}
				return h.Clusters[i]
			})
			*h.Binding.BindingStatus() = aggregate.Binding(h.Binding, h.Works, outages, metav1.Time{})
		}
		seen, answer := explain(h.Facts), explain(blind(h.Facts))
		for _, f := range answer.Findings {
			if f.Severity == why.Problem && !slices.ContainsFunc(seen.Findings, func(o why.Finding) bool {
				return o.Severity == why.Problem && o.Cluster == f.Cluster
			}) {
				t.Errorf("%s: only without rights there is the problem %q; with rights: %+v", s.name, f.What, seen.Findings)
			}
		}
		if answer.Policy.ClaimedBy != seen.Policy.ClaimedBy {
			t.Errorf("%s: the policy is %q, with rights %q", s.name, answer.Policy.ClaimedBy, seen.Policy.ClaimedBy)
		}
		for _, c := range answer.Clusters {
			with, ok := seen.ForCluster(c.Name)
			if !ok || !c.Target {
				continue
			}
			compared++
			// That a cluster left the fleet is not in the binding.
			left := !slices.ContainsFunc(h.Clusters, func(known *clusterv1alpha1.Cluster) bool { return known.Name == c.Name })
			if c.State == state.Healthy && with.Clusters[0].State != state.Healthy && !left {
				t.Errorf("%s: %s is %s, with rights %s", s.name, c.Name, c.State, with.Clusters[0].State)
			}
		}
		var text bytes.Buffer
		if err := answer.Write(&text); err != nil || !strings.Contains(text.String(), "Not shown: you may not list "+
			"clusterpropagationpolicies.policy.karmada.io, clusteroverridepolicies.policy.karmada.io, "+
			"clusters.cluster.karmada.io; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it.") {
			t.Errorf("%s: the missing rights are not named together (%v):\n%s", s.name, err, text.String())
		}
	}
	if compared < 10 {
		t.Errorf("only %d clusters were compared", compared)
	}
}

func TestUnplacedTemplateIsExplainedWithoutTheFleet(t *testing.T) {
	h := start(t, deployment, cluster("m1"))
	h.claim(h.policy("shop", "p", "{"+ofDeployments+", placement: {clusterAffinity: {clusterNames: [m9]}}}"))
	status := h.Binding.BindingStatus()
	status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse,
		Reason: "NoClusterFit", Message: "0/1 clusters are available"}}
	answer := explain(blind(h.Facts))
	if !slices.ContainsFunc(answer.Findings, func(f why.Finding) bool {
		return f.Severity == why.Problem && f.What == "not scheduled: 0/1 clusters are available"
	}) {
		t.Errorf("it says %+v", answer.Findings)
	}
}

// A policy of the namespace is explained by what is in it.
func TestPolicyIsExplainedWithoutTheFleet(t *testing.T) {
	h := start(t, deployment, cluster("m1"))
	p := h.policy("shop", "p", "{"+ofDeployments+", placement: {clusterAffinity: {clusterNames: [m1]}}}")
	h.claim(p)
	f := blind(h.Facts)
	answer := why.ExplainPolicy(why.PolicyFacts{Propagation: p, Policies: f.Policies, Missing: f.Missing,
		Bindings: []workv1alpha2.Binding{h.Binding}, Templates: []why.Selectable{{
			GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
	if len(answer.Findings) > 0 || len(answer.Templates) != 1 || !answer.Templates[0].Claimed ||
		len(answer.Missing) != len(f.Missing) || len(answer.Clusters) > 0 {
		t.Errorf("it says %+v", answer)
	}
	other := h.policy("", "all", "{"+ofDeployments+", placement: {}}")
	propagate.Claim(h.Template, other)
	answer = why.ExplainPolicy(why.PolicyFacts{Propagation: p, Policies: f.Policies, Missing: f.Missing,
		Templates: []why.Selectable{{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
	if why := answer.Templates[0].Why; why != "is claimed by ClusterPropagationPolicy all" {
		t.Errorf("of what another policy claimed it says %q", why)
	}
}
