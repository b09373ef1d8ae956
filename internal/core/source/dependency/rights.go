package dependency

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Kinds of RBAC in a namespace.
var (
	RoleKind        = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	RoleBindingKind = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
)

// Reporter returns the service account with which the steps of a Workflow or CronWorkflow report results. It is empty
// for other kinds, and if a referenced template or a parameter may set it.
func Reporter(obj *unstructured.Unstructured) string {
	of := kind.Facts(obj)
	if !of.RunsSteps() {
		return ""
	}
	spec := fields.Object(obj.Object, of.Workflow...)
	for _, account := range []string{fields.Text(spec, "executor", "serviceAccountName"),
		fields.Text(spec, "serviceAccountName")} {
		switch {
		case strings.Contains(account, "{{"):
			return ""
		case account != "":
			return account
		}
	}
	if spec["workflowTemplateRef"] != nil {
		return ""
	}
	return "default"
}

// Accounts returns the service accounts in refs, without duplicates, or own if there is none.
func Accounts(namespace string, refs []configv1alpha1.DependentObjectReference, own string) (names []string) {
	for _, ref := range refs {
		if ref.LabelSelector == nil && ref.Namespace == namespace &&
			match.GroupKind(ref.APIVersion, ref.Kind) == (schema.GroupKind{Kind: "ServiceAccount"}) {
			names = append(names, ref.Name)
		}
	}
	if own != "" && !slices.Contains(names, own) {
		names = append(names, own)
	}
	return names
}

// Binds reports whether a RoleBinding or ClusterRoleBinding gives its role to the account, by name or group.
func Binds(binding *unstructured.Unstructured, namespace, account string) bool {
	return slices.ContainsFunc(fields.Objects(binding.Object, "subjects"), func(s map[string]any) bool {
		name := fields.Text(s, "name")
		switch fields.Text(s, "kind") {
		case "ServiceAccount":
			of := fields.Text(s, "namespace")
			return name == account && (of == namespace || of == "" && binding.GetNamespace() == namespace)
		case "User":
			return name == "system:serviceaccount:"+namespace+":"+account
		case "Group":
			return name == "system:serviceaccounts" || name == "system:serviceaccounts:"+namespace ||
				name == "system:authenticated"
		}
		return false
	})
}

// RoleOf returns the Role or ClusterRole of a binding.
func RoleOf(binding *unstructured.Unstructured) (kind schema.GroupKind, name string) {
	return schema.GroupKind{Group: RoleKind.Group, Kind: fields.Text(binding.Object, "roleRef", "kind")},
		fields.Text(binding.Object, "roleRef", "name")
}

// Reports reports whether a role allows the steps of Workflows to report results.
func Reports(role *unstructured.Unstructured) bool {
	may := func(verb string) bool {
		return slices.ContainsFunc(fields.Objects(role.Object, "rules"), func(rule map[string]any) bool {
			has := func(list, what string) bool {
				return slices.ContainsFunc(fields.List(rule, list), func(v any) bool { return v == what || v == "*" })
			}
			return has("apiGroups", "argoproj.io") && has("resources", "workflowtaskresults") && has("verbs", verb) &&
				rule["resourceNames"] == nil
		})
	}
	return may("create") && may("patch")
}

// Rights returns a RoleBinding and its Role as dependencies. A ClusterRole is omitted, because a namespace must not
// propagate it.
func Rights(binding *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
	const version = "rbac.authorization.k8s.io/v1"
	refs := []configv1alpha1.DependentObjectReference{{APIVersion: version, Kind: RoleBindingKind.Kind,
		Namespace: binding.GetNamespace(), Name: binding.GetName()}}
	if kind, name := RoleOf(binding); kind == RoleKind {
		refs = append(refs, configv1alpha1.DependentObjectReference{APIVersion: version, Kind: RoleKind.Kind,
			Namespace: binding.GetNamespace(), Name: name})
	}
	return refs
}
