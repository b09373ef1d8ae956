package dispatch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/filter"
)

// forbidsOverwrite returns why a template may not overwrite objects in members; empty if it may. A Namespace is in
// itself.
func (r *reconciler) forbidsOverwrite(ctx context.Context, tmpl *unstructured.Unstructured) (string, error) {
	if tmpl.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		return dispatch.Forbidden(r.ForbidOverwrite, tmpl.GetName(), tmpl.GetLabels()), nil
	}
	namespace := tmpl.GetNamespace()
	if r.ForbidOverwrite || namespace == "" {
		return dispatch.Forbidden(r.ForbidOverwrite, namespace, nil), nil
	}
	ns := &corev1.Namespace{}
	// The templates of a deleted namespace are deleted as well.
	if err := r.client.Get(ctx, client.ObjectKey{Name: namespace}, ns,
		client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get namespace %s: %w", namespace, err)
	}
	return dispatch.Forbidden(false, namespace, ns.Labels), nil
}

// overwriteForbidden selects namespaces whose permission to overwrite changes.
var overwriteForbidden = filter.Updates(func(was, is client.Object) bool {
	forbidden := func(ns client.Object) bool { return dispatch.Forbidden(false, ns.GetName(), ns.GetLabels()) != "" }
	return forbidden(was) != forbidden(is)
})

func (r *reconciler) bindingsOfNamespace(ctx context.Context, ns client.Object) []reconcile.Request {
	return r.bindings(ctx, nil, client.MatchingFields{byTemplate: templateIndex("", ns.GetName())})
}
