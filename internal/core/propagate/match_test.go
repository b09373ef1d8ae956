package propagate_test

import (
	"math/rand"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// policy returns a PropagationPolicy, or with an empty namespace a ClusterPropagationPolicy.
func policy(namespace, name string, priority int32,
	selectors ...policyv1alpha1.ResourceSelector) policyv1alpha1.Propagation {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: selectors, Priority: &priority}
	if namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta, Spec: spec}
	}
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: spec}
}

func kind(apiVersion, kind string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind}
}

func named(s policyv1alpha1.ResourceSelector, name string) policyv1alpha1.ResourceSelector {
	s.Name = name
	return s
}

func labelled(s policyv1alpha1.ResourceSelector, l map[string]string) policyv1alpha1.ResourceSelector {
	s.LabelSelector = &metav1.LabelSelector{MatchLabels: l}
	return s
}

var (
	deployments = kind("apps/v1", "Deployment")
	web         = match.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Labels: map[string]string{"app": "web"}}
)

func TestMatch(t *testing.T) {
	deleted := policy("shop", "gone", 9, deployments)
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	byLabel := labelled(deployments, map[string]string{"app": "web"})
	for name, c := range map[string]struct {
		policies []policyv1alpha1.Propagation
		want     string // namespace/name; empty = none
	}{
		"nobody selects it": {policies: []policyv1alpha1.Propagation{policy("shop", "a", 0, kind("v1", "Secret"))}},
		"a namespaced policy outranks a cluster one of higher priority": {
			policies: []policyv1alpha1.Propagation{policy("", "a", 100, named(deployments, "web")),
				policy("shop", "b", 0, deployments)}, want: "shop/b"},
		"a namespaced policy of another namespace does not select": {
			policies: []policyv1alpha1.Propagation{policy("bank", "a", 0, deployments), policy("", "b", 0, deployments)},
			want:     "/b"},
		"explicit priority outranks the exact name": {
			policies: []policyv1alpha1.Propagation{policy("shop", "a", 0, named(deployments, "web")),
				policy("shop", "b", 1, deployments)}, want: "shop/b"},
		"a name outranks a label": {
			policies: []policyv1alpha1.Propagation{policy("shop", "a", 0, byLabel),
				policy("shop", "b", 0, named(deployments, "web"))}, want: "shop/b"},
		"a label outranks all": {
			policies: []policyv1alpha1.Propagation{policy("shop", "a", 0, deployments), policy("shop", "b", 0, byLabel)},
			want:     "shop/b"},
		"the closest selector of a policy counts": {
			policies: []policyv1alpha1.Propagation{policy("shop", "a", 0, byLabel),
				policy("shop", "b", 0, deployments, named(deployments, "web"))}, want: "shop/b"},
		"the smaller name decides at last": {
			policies: []policyv1alpha1.Propagation{policy("shop", "b", 0, deployments), policy("shop", "a", 0, deployments)},
			want:     "shop/a"},
		"a policy that is being deleted claims nothing": {
			policies: []policyv1alpha1.Propagation{deleted, policy("shop", "a", 0, deployments)}, want: "shop/a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p, ok := propagate.Match(web, c.policies); ok {
				got = p.GetNamespace() + "/" + p.GetName()
			}
			if got != c.want {
				t.Errorf("claimed by %q, want %q", got, c.want)
			}
		})
	}
}

// Whatever the policies and their order, the same one claims.
func TestMatchDoesNotDependOnInputOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	selectors := []policyv1alpha1.ResourceSelector{deployments, labelled(deployments, nil), named(deployments, "web"),
		kind("v1", "Secret")}
	for range 500 {
		var all []policyv1alpha1.Propagation
		for _, name := range []string{"a", "b", "c", "d"} {
			for _, namespace := range []string{"", "shop", "bank"} {
				if rng.Intn(2) == 0 {
					all = append(all, policy(namespace, name, int32(rng.Intn(3)), selectors[rng.Intn(len(selectors))]))
				}
			}
		}
		want, found := propagate.Match(web, all)
		for range 5 {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if got, ok := propagate.Match(web, all); ok != found || got != want {
				t.Fatalf("reordered policies claim differently: %v, then %v", want, got)
			}
		}
		if !found {
			continue
		}
		// Transitive: without one of the losers the winner stays.
		for i := range all {
			if all[i] == want {
				continue
			}
			rest := append(append([]policyv1alpha1.Propagation{}, all[:i]...), all[i+1:]...)
			if got, _ := propagate.Match(web, rest); got != want {
				t.Fatalf("removing a policy that lost changed the winner from %v to %v", want.GetName(), got.GetName())
			}
		}
	}
}

// Admission leaves a selector's namespace empty only for a cluster-scoped kind and an author who may write cluster
// policies.
func TestNamespacedPolicySelectsClusterScopedTemplates(t *testing.T) {
	set := match.Template{APIVersion: "apps.kruise.io/v1alpha1", Kind: "SidecarSet", Name: "mesh"}
	open := kind("apps.kruise.io/v1alpha1", "SidecarSet")
	filled := open
	filled.Namespace = "shop"
	if _, ok := propagate.Match(set, []policyv1alpha1.Propagation{policy("shop", "a", 0, filled)}); ok {
		t.Error("a selector that keeps to its namespace selected a template that has none")
	}
	first, ok := propagate.Match(set, []policyv1alpha1.Propagation{policy("shop", "a", 0, open),
		policy("bank", "a", 0, open)})
	if !ok || first.GetNamespace() != "bank" {
		t.Errorf("claimed by %v, want the policy of the smaller namespace, since nothing else tells them apart", first)
	}
}
