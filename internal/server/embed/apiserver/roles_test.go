package apiserver

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// What the hub says about the rights of Kubernetes' roles is true.
func TestRolesOfKubernetesHaveTheRightsThatAreSaid(t *testing.T) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range bootstrappolicy.ClusterRoles() {
		rules[role.Name] = role.Rules
	}
	permitted := func(role, verb, group, resource string) bool {
		return slices.ContainsFunc(rules["system:aggregate-to-"+role], func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) &&
				slices.Contains(r.Resources, resource)
		})
	}
	named := map[string]int{}
	levels := []string{"view", "edit", "admin"}
	for at, of := range levels {
		for _, r := range rules["system:aggregate-to-"+of] {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						role := roles.Lack(verb, group, resource, "shop").Role
						named[role]++
						if at := slices.Index(levels[:at+1], role); at < 0 && common(group, resource, verb) ||
							role != "" && !slices.ContainsFunc(levels[:max(at, 0)+1], func(l string) bool {
								return permitted(l, verb, group, resource)
							}) {
							t.Errorf("to %s %s of group %q, %s is named; %s permits it", verb, resource, group, role, of)
						}
					}
				}
			}
		}
	}
	if named["view"] < 80 || named["edit"] < 80 || named["admin"] < 10 {
		t.Errorf("the roles are named %v times", named)
	}
}

// common reports whether a right should be known: not those of groups that are gone, and of few users.
func common(group, resource, verb string) bool {
	return resource != "secrets" && group != "extensions" && group != "authorization.k8s.io" && verb != "impersonate" &&
		resource != "deployments/rollback" && resource != "bindings" && !strings.HasSuffix(resource, "/status")
}
