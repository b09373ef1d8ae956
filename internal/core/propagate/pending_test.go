package propagate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// A Lazy policy that is in effect waits for nothing, until it would change the binding.
func TestALazyPolicyWaitsOnlyIfItWouldChangeTheBinding(t *testing.T) {
	for name, c := range map[string]struct {
		kind, apiVersion string
		change           func(policyv1alpha1.Propagation)
		waits            bool
	}{
		"a Deployment":                   {kind: "Deployment", apiVersion: "apps/v1"},
		"a Workflow, in one cluster":     {kind: "Workflow", apiVersion: "argoproj.io/v1alpha1"},
		"a CronWorkflow, in one cluster": {kind: "CronWorkflow", apiVersion: "argoproj.io/v1alpha1"},
		"another placement": {kind: "Workflow", apiVersion: "argoproj.io/v1alpha1", waits: true,
			change: func(p policyv1alpha1.Propagation) {
				p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}
			}},
		"a new priority": {kind: "Deployment", apiVersion: "apps/v1", waits: true,
			change: func(p policyv1alpha1.Propagation) {
				p.PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassName: "high"}
			}},
	} {
		p := identified(policy("shop", "lazy", 1, policyv1alpha1.ResourceSelector{APIVersion: c.apiVersion, Kind: c.kind}),
			"id-lazy")
		p.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.apiVersion, "kind": c.kind}}
		u.SetNamespace("shop")
		u.SetName("web")
		u.SetUID("u")
		propagate.Claim(u, p)
		binding := bind(t, u, p, meaning, nil)
		if c.change != nil {
			c.change(p)
		}
		d := propagate.Decide(propagate.Observed{Template: u, Policies: []policyv1alpha1.Propagation{p}, Binding: binding})
		if waits := d.Pending != nil; waits != c.waits {
			t.Errorf("%s: it waits: %t, want %t", name, waits, c.waits)
		}
	}
}
