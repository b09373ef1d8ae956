package why_test

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

const nameless = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: NS, labels: {app: NAME}}}`

// holds returns the facts of a policy of a hub, with the templates in it.
func holds(p policyv1alpha1.Propagation, hubs ...*hub) why.PolicyFacts {
	f := why.PolicyFacts{Propagation: p}
	for _, h := range hubs {
		f.Clusters, f.Policies = h.Clusters, append(f.Policies, h.Policies...)
		f.Templates = append(f.Templates, why.Selectable{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template})
		if h.Binding != nil {
			f.Bindings = append(f.Bindings, h.Binding)
		}
	}
	return f
}

func named(t *testing.T, namespace, name string, others ...*hub) *hub {
	clusters := fleet()
	if len(others) > 0 {
		clusters = others[0].Clusters
	}
	return start(t, strings.NewReplacer("NAME", name, "NS", namespace).Replace(nameless), clusters...)
}

// policyStories are as stories, of policies.
var policyStories = []struct {
	name       string
	given      func(t *testing.T) why.PolicyFacts
	severity   why.Severity
	want, next string
}{
	{name: "all is well", given: func(t *testing.T) why.PolicyFacts {
		h := start(t, deployment, fleet()...)
		p := h.policy("shop", "web", "{"+ofDeployments+", placement: {"+byWeights+"}}")
		return holds(p, h.runAll(p))
	}},
	{name: "held by others", severity: why.Attention, want: "has claimed none of the templates that it selects",
		next: "give it a priority above 5, and preemption: Always",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], priority: 5}"))
			return holds(h.policy("shop", "all", "{"+ofDeployments+", priority: 1}"), h)
		}},
	{name: "some are held by others", given: func(t *testing.T) why.PolicyFacts {
		one, two := named(t, "shop", "api"), named(t, "shop", "web")
		one.runAll(one.policy("shop", "api", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: api}]}"))
		p := two.policy("shop", "everything", "{"+ofDeployments+"}")
		return holds(p, one, two.runAll(p))
	}},
	{name: "not selected any more", given: func(t *testing.T) why.PolicyFacts {
		h := start(t, deployment, fleet()...)
		p := h.policy("shop", "web", "{"+ofDeployments+"}")
		h.runAll(p)
		p.PropagationSpec().ResourceSelectors[0].LabelSelector = nil
		p.PropagationSpec().ResourceSelectors[0].Name = "api"
		return holds(p, h, named(t, "shop", "api"))
	}},
	{name: "another namespace", severity: why.Problem,
		want: "in namespace bank, but a policy in namespace shop selects only in its own namespace",
		next: "in the namespace of the template",
		given: func(t *testing.T) why.PolicyFacts {
			h := named(t, "bank", "ledger")
			return holds(h.policy("shop", "ledger",
				"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: ledger}]}"), h)
		}},
	{name: "another namespace of a cluster policy", severity: why.Problem, want: "in namespace bank, not in shop",
		next: "set namespace: bank",
		given: func(t *testing.T) why.PolicyFacts {
			h := named(t, "bank", "ledger")
			return holds(h.policy("", "ledger",
				"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: ledger}]}"), h)
		}},
	{name: "another name", severity: why.Attention, want: "has no Deployment.apps of that name; it has api, web",
		next: "correct the name to web",
		given: func(t *testing.T) why.PolicyFacts {
			h := named(t, "shop", "web")
			return holds(h.policy("shop", "wbe", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: wbe}]}"),
				named(t, "shop", "api"), h)
		}},
	{name: "other labels", severity: why.Attention, want: "api has app=api", next: "correct the labels",
		given: func(t *testing.T) why.PolicyFacts {
			h := named(t, "shop", "web")
			return holds(h.policy("shop", "front",
				"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: front}}}]}"),
				named(t, "shop", "api"), h)
		}},
	{name: "nothing there yet", severity: why.Attention, want: "there is no Deployment.apps in namespace shop",
		next: "create one",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			f := holds(h.policy("shop", "web", "{"+ofDeployments+"}"), h)
			f.Templates = nil
			return f
		}},
	{name: "another group", severity: why.Problem,
		want: "does not serve the kind StatefulSet.kruise.io; it serves StatefulSet in another group",
		next: "set apiVersion: apps/v1 or apps.kruise.io/v1beta1, kind: StatefulSet",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			f := holds(h.policy("shop", "db", "{resourceSelectors: [{apiVersion: kruise.io/v1, kind: StatefulSet}]}"), h)
			f.Unknown = map[schema.GroupKind][]schema.GroupVersionKind{{Group: "kruise.io", Kind: "StatefulSet"}: {
				{Group: "apps", Version: "v1", Kind: "StatefulSet"},
				{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}}}
			return f
		}},
	{name: "a kind of nobody", severity: why.Problem, want: "does not serve the kind Train.example.com",
		next: "CustomResourceDefinition",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			f := holds(h.policy("shop", "trains", "{resourceSelectors: [{apiVersion: example.com/v1, kind: Train}]}"), h)
			f.Unknown = map[schema.GroupKind][]schema.GroupVersionKind{{Group: "example.com", Kind: "Train"}: nil}
			return f
		}},
	{name: "a misspelt kind", severity: why.Problem,
		want: "does not serve the kind Deploymnet.apps; did you mean Deployment?",
		next: "set apiVersion: apps/v1, kind: Deployment",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			f := holds(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deploymnet}]}"), h)
			f.Unknown = map[schema.GroupKind][]schema.GroupVersionKind{{Group: "apps", Kind: "Deploymnet"}: nil}
			f.Kinds = []validate.NamedKind{{APIVersion: "apps/v1", Kind: "DaemonSet"},
				{APIVersion: "apps/v1", Kind: "Deployment"}}
			return f
		}},
	{name: "a misspelt cluster", severity: why.Attention,
		want: `spec.placement.clusterAffinity.clusterNames[1]: no cluster is named "m-2"; did you mean m2?`,
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			p := h.policy("shop", "web", "{"+ofDeployments+", placement: {clusterAffinity: {clusterNames: [m1, m-2]}}}")
			return holds(p, h.runAll(p))
		}},
	{name: "no cluster", severity: why.Problem, want: "its placement allows no cluster for Deployment.apps: 0/3 clusters",
		next: "the fleet has no m9, which clusterNames lists",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			return holds(h.policy("shop", "web", "{"+ofDeployments+", placement: {clusterAffinity: {clusterNames: [m9]}}}"), h)
		}},
	{name: "affinity terms", given: func(t *testing.T) why.PolicyFacts {
		h := start(t, deployment, cluster("m1", tainted("gpu", corev1.TaintEffectNoSchedule)), cluster("m2"), cluster("m3"),
			cluster("m4", serves("ConfigMap")))
		return holds(h.policy("shop", "web", "{"+ofDeployments+
			", placement: {clusterAffinities: [{affinityName: near, clusterNames: [m1, m2]}, {affinityName: far, clusterNames: [m3, m2, m4]}]}}"), h)
	}},
	{name: "an override policy that fails", severity: why.Problem, want: "nothing new is sent: ",
		next: "fix what the message names",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]}"))
			h.override("eu", "{"+ofDeployments+", overrideRules: [{overriders: {plaintext: [{path: /a/b, operator: remove}]}}]}")
			h.Binding.BindingStatus().Conditions = append(h.Binding.BindingStatus().Conditions, metav1.Condition{
				Type: workv1alpha2.WorksWritten, Status: metav1.ConditionFalse, Reason: workv1alpha2.ReasonWorksRefused,
				Message: `cluster "m1": apply OverridePolicy shop/eu, spec.overrideRules[0].overriders.plaintext[0]: no`})
			f := holds(nil, h)
			f.Override = h.Overrides[0]
			return f
		}},
	{name: "an override policy", severity: why.Attention, want: "overrideRules[1] matches no cluster",
		next: "the fleet has no m9",
		given: func(t *testing.T) why.PolicyFacts {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]}"))
			h.override("fewer", "{"+ofDeployments+
				", overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}, {targetCluster: {clusterNames: [m9]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}")
			f := holds(nil, h, named(t, "shop", "api"))
			f.Override = h.Overrides[0]
			return f
		}},
}

func TestPolicyStories(t *testing.T) {
	for _, s := range policyStories {
		t.Run(s.name, func(t *testing.T) {
			f := s.given(t)
			answer := why.ExplainPolicy(f)
			switch {
			case s.severity == "" && len(answer.Findings) > 0:
				t.Errorf("all is well, and it finds %+v", answer.Findings)
			case s.severity != "" && len(answer.Findings) == 0:
				t.Errorf("it finds nothing, want %s: %s", s.severity, s.want)
			case s.severity != "":
				if f := answer.Findings[0]; f.Severity != s.severity || !strings.Contains(f.What, s.want) ||
					!strings.Contains(f.Next, s.next) {
					t.Errorf("first is\n%s: %s\n→ %s\nwant\n%s: %s\n→ %s", f.Severity, f.What, f.Next, s.severity, s.want, s.next)
				}
			}
			dice := rand.New(rand.NewPCG(1, 2))
			for range 5 {
				o := f
				o.Templates, o.Policies, o.Bindings, o.Clusters = shuffled(dice, f.Templates), shuffled(dice, f.Policies),
					shuffled(dice, f.Bindings), shuffled(dice, f.Clusters)
				if diff := cmp.Diff(answer, why.ExplainPolicy(o)); diff != "" {
					t.Fatalf("in another order it says (-first +then):\n%s", diff)
				}
			}
			var text bytes.Buffer
			if err := answer.Write(&text); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "policies", strings.ReplaceAll(s.name, " ", "-")+".txt"), text.String())
		})
	}
}

func TestAPolicyThatLosesHasARemedyForItsReason(t *testing.T) {
	const ofWeb = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]"
	for name, c := range map[string]struct {
		namespace, spec, winner, won string
		claimed                      bool
		want                         string
	}{
		"a cluster policy, and one of the namespace claimed it": {spec: "{" + ofWeb + ", priority: 9, preemption: Always}",
			winner: "shop", won: "{" + ofDeployments + "}", claimed: true,
			want: "remove the template from the selectors of PropagationPolicy shop/winner, or delete that policy"},
		"a cluster policy, and one of the namespace ranks first": {spec: "{" + ofWeb + ", priority: 9}",
			winner: "shop", won: "{" + ofDeployments + "}",
			want: "remove the template from the selectors of PropagationPolicy shop/winner, or delete that policy"},
		"a policy of the namespace, and a cluster policy claimed it": {namespace: "shop", spec: "{" + ofDeployments + "}",
			won: "{" + ofWeb + ", priority: 9}", claimed: true, want: "set preemption: Always, to take over"},
		"a higher priority that does not preempt": {namespace: "shop", spec: "{" + ofDeployments + ", priority: 4}",
			winner: "shop", won: "{" + ofWeb + ", priority: 3}", claimed: true, want: "set preemption: Always, to take over"},
		"a lower priority": {namespace: "shop", spec: "{" + ofWeb + "}", winner: "shop",
			won: "{" + ofDeployments + ", priority: 3}", want: "give it a priority above 3"},
		"a lower priority, and the other has claimed it": {spec: "{" + ofWeb + "}",
			won: "{" + ofDeployments + ", priority: 3}", claimed: true,
			want: "give it a priority above 3, and preemption: Always"},
		"a lower priority that preempts": {spec: "{" + ofWeb + ", preemption: Always}",
			won: "{" + ofDeployments + ", priority: 3}", claimed: true, want: "give it a priority above 3"},
		"it is about to take it over": {spec: "{" + ofWeb + ", preemption: Always, priority: 4}",
			won: "{" + ofDeployments + ", priority: 3}", claimed: true},
	} {
		h := start(t, deployment, fleet()...)
		loser, winner := h.policy(c.namespace, "loser", c.spec), h.policy(c.winner, "winner", c.won)
		if c.claimed {
			propagate.Claim(h.Template, winner)
		}
		a := why.ExplainPolicy(why.PolicyFacts{Propagation: loser, Policies: h.Policies, Clusters: h.Clusters,
			Templates: []why.Selectable{{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
		severity := why.Attention
		if c.want == "" {
			severity = why.Waiting
		}
		if len(a.Findings) != 1 || a.Findings[0].Severity != severity || !strings.Contains(a.Findings[0].Next, c.want) ||
			c.want == "" && a.Findings[0].Next != "" || strings.HasSuffix(c.want, "3") && a.Findings[0].Next != c.want {
			t.Errorf("%s: found %+v, want %q", name, a.Findings, c.want)
		}
	}
}
