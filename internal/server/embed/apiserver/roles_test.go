package apiserver

import (
	"slices"
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
	for _, r := range slices.Concat(rules["system:aggregate-to-view"], rules["system:aggregate-to-edit"]) {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
					role := roles.Lack(verb, group, resource, "shop").Role
					if named[role]++; role != "" && !permitted(role, verb, group, resource) {
						t.Errorf("%s does not permit to %s %s of group %q", role, verb, resource, group)
					}
				}
			}
		}
	}
	if named["view"] < 30 || named["edit"] < 40 {
		t.Errorf("the roles are named %v times", named)
	}
}
