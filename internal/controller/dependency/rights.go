package dependency

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// rightsKinds are those that no template names, and that Workflows need to report.
var rightsKinds = []schema.GroupKind{dependency.RoleBindingKind, dependency.RoleKind}

// authorized are the RoleBindings and Roles by which the accounts of a Workflow report, which depends on refs, and what
// is to be watched for others; nothing for other kinds. What was recorded stays while that is not known, as at a start;
// known is false then.
func (r *reconciler) authorized(ctx context.Context, b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (rights, watched []configv1alpha1.DependentObjectReference, known bool,
	err error) {
	if !dependency.RunsWorkflows(tpl.GroupVersionKind().GroupKind()) {
		return nil, nil, true, nil
	}
	namespace := tpl.GetNamespace()
	accounts := dependency.Accounts(namespace, refs, dependency.Reporter(tpl))
	if len(accounts) == 0 {
		return nil, nil, true, nil
	}
	for _, gk := range rightsKinds {
		watched = append(watched, configv1alpha1.DependentObjectReference{APIVersion: gk.Group + "/v1", Kind: gk.Kind,
			Namespace: namespace, LabelSelector: &metav1.LabelSelector{}})
	}
	// Before anything is looked up: what appears from here on wakes this binding.
	r.index.add(client.ObjectKeyFromObject(b), watched)
	r.Templates.Want(rightsKinds...)
	if !r.Templates.Synced(dependency.RoleBindingKind) || !r.Templates.Synced(dependency.RoleKind) {
		for _, ref := range recorded(b) {
			if slices.Contains(rightsKinds, propagate.GroupKind(ref.APIVersion, ref.Kind)) {
				rights = append(rights, ref)
			}
		}
		return rights, watched, false, nil
	}
	for _, binding := range r.Templates.List(dependency.RoleBindingKind, namespace, nil) {
		if !slices.ContainsFunc(accounts, func(account string) bool {
			return dependency.Binds(binding, namespace, account)
		}) {
			continue
		}
		kind, name := dependency.RoleOf(binding)
		role, found, err := r.Templates.Get(ctx, kind, inNamespace(kind, namespace), name)
		if err != nil {
			return nil, nil, false, err
		}
		if found && dependency.Reports(role) {
			rights = append(rights, dependency.Rights(binding)...)
		}
	}
	return interpret.SortDependencies(rights), watched, true, nil
}

// inNamespace is where a role of a kind is that is bound in a namespace.
func inNamespace(kind schema.GroupKind, namespace string) string {
	if kind == dependency.RoleKind {
		return namespace
	}
	return ""
}
