package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// history returns the revisions of a template, including the current one: a revision is stored before a Work names it,
// so that clusters that join later can get it.
func (r *reconciler) history(ctx context.Context, tmpl *unstructured.Unstructured,
	works map[string]*workv1alpha1.Work) ([]fleet.Revision, error) {
	if !fleet.KeepsHistory(tmpl) {
		return nil, nil
	}
	var list appsv1.ControllerRevisionList
	if err := r.client.List(ctx, &list, client.InNamespace(names.System),
		client.MatchingLabels{wellknown.RevisionOfLabel: string(tmpl.GetUID())}); err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", tmpl.GetKind(), err)
	}
	stored := make([]fleet.Revision, 0, len(list.Items)+1)
	for i := range list.Items {
		c := &list.Items[i]
		stored = append(stored, fleet.Revision{Name: strings.TrimPrefix(c.Name, revisionPrefix(tmpl)),
			Version: c.Annotations[wellknown.RevisionVersionAnnotation], Number: c.Revision, Data: c.Data.Raw})
	}
	next, surplus := fleet.Remember(tmpl, works, stored)
	for _, s := range surplus {
		err := r.client.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: names.System,
			Name: revisionPrefix(tmpl) + s.Name}})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete revision %s of %s %s: %w", s.Name, tmpl.GetKind(), tmpl.GetName(), err)
		}
		stored = slices.DeleteFunc(stored, func(r fleet.Revision) bool { return r.Name == s.Name })
	}
	if next == nil {
		return stored, nil
	}
	err := r.client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.System, Name: revisionPrefix(tmpl) + next.Name,
			Labels: map[string]string{wellknown.RevisionOfLabel: string(tmpl.GetUID())},
			// It is no label, because a version may be any text.
			Annotations:     map[string]string{wellknown.RevisionVersionAnnotation: next.Version},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(tmpl, tmpl.GroupVersionKind())},
		},
		Revision: next.Number,
		Data:     runtime.RawExtension{Raw: next.Data},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) { // the cache is milliseconds behind
		return nil, fmt.Errorf("store version %q of %s %s: %w", next.Version, tmpl.GetKind(), tmpl.GetName(), err)
	}
	return append(stored, *next), nil
}

// revisionPrefix begins the names of a template's revisions.
func revisionPrefix(tmpl *unstructured.Unstructured) string {
	return strings.ToLower(tmpl.GetKind()) + "-" + string(tmpl.GetUID()) + "-"
}
