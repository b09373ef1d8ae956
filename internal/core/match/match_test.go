package match_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

func kind(apiVersion, kind string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind}
}

func named(s policyv1alpha1.ResourceSelector, name string) policyv1alpha1.ResourceSelector {
	s.Name = name
	return s
}

func within(s policyv1alpha1.ResourceSelector, namespace string) policyv1alpha1.ResourceSelector {
	s.Namespace = namespace
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

func TestSelector(t *testing.T) {
	clusterRole := match.Template{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader"}
	invalid := deployments
	invalid.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
		Operator: "Like"}}}
	for name, c := range map[string]struct {
		sel  policyv1alpha1.ResourceSelector
		t    match.Template
		want match.ImplicitPriority
	}{
		"a kind alone selects all of it": {deployments, web, match.All},
		"another version of the same kind is the same kind": {kind("apps/v1beta2", "Deployment"), web,
			match.All},
		"the same kind name in another group is another kind": {kind("example.io/v1", "Deployment"), web,
			match.None},
		"a core kind is not one of a group named like a version": {kind("v1", "Deployment"), web, match.None},
		"another kind is not selected":                           {kind("apps/v1", "StatefulSet"), web, match.None},
		"the exact name":                                         {named(deployments, "web"), web, match.Name},
		"another name":                                           {named(deployments, "db"), web, match.None},
		"a matching label": {labelled(deployments, map[string]string{"app": "web"}),
			web, match.Label},
		"a label that differs": {labelled(deployments, map[string]string{"app": "db"}), web,
			match.None},
		"an empty label selector is one all the same": {labelled(deployments, nil), web, match.Label},
		"a name wins over a label that differs": {named(labelled(deployments,
			map[string]string{"app": "db"}), "web"), web, match.Name},
		"an invalid label selector selects nothing": {invalid, web, match.None},
		"its namespace":     {within(deployments, "shop"), web, match.All},
		"another namespace": {within(deployments, "bank"), web, match.None},
		"a cluster-scoped template has no namespace to be in": {within(kind("rbac.authorization.k8s.io/v1", "ClusterRole"),
			"shop"), clusterRole, match.None},
		"a cluster-scoped template": {kind("rbac.authorization.k8s.io/v1", "ClusterRole"),
			clusterRole, match.All},
	} {
		t.Run(name, func(t *testing.T) {
			if got := match.Selector(c.sel, c.t); got != c.want {
				t.Errorf("Selects(%+v) = %d, want %d", c.sel, got, c.want)
			}
		})
	}
}
