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
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// rightsKinds are the kinds that Workflows need to report results, although templates do not name them.
var rightsKinds = []schema.GroupKind{dependency.RoleBindingKind, dependency.RoleKind}

// authorized returns the RoleBindings and Roles that let the service accounts of a Workflow report results, and what to
// watch for more. It returns nothing for other kinds. After a restart, while they are unknown, the recorded ones stay
// and known is false.
func (r *reconciler) authorized(ctx context.Context, b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (rights, watched []configv1alpha1.DependentObjectReference, known bool,
	err error) {
	if !kind.Facts(tpl).RunsSteps() {
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
	// Index them before the lookup, so that no change is missed.
	r.index.add(client.ObjectKeyFromObject(b), watched)
	r.Templates.Want(rightsKinds...)
	if !r.Templates.Synced(dependency.RoleBindingKind) || !r.Templates.Synced(dependency.RoleKind) {
		for _, ref := range recorded(b) {
			if slices.Contains(rightsKinds, match.GroupKind(ref.APIVersion, ref.Kind)) {
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

// inNamespace returns the namespace of a role that is bound in the given namespace.
func inNamespace(kind schema.GroupKind, namespace string) string {
	if kind == dependency.RoleKind {
		return namespace
	}
	return ""
}
