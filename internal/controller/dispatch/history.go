package dispatch

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// storeRevision stores the current revision of a template, and deletes those beyond its limit. Users go back to them. A
// failure only costs a way back, so clusters get the change, and the next reconcile tries again.
func (r *reconciler) storeRevision(ctx context.Context, tmpl *unstructured.Unstructured) error {
	if !fleet.KeepsHistory(tmpl) || tmpl.GetNamespace() != "" && release.StrategyOf(tmpl) != "" {
		return nil // the ReleaseRevisions of a workload that waits for releases are its history
	}
	var list appsv1.ControllerRevisionList
	namespace := fleet.HistoryNamespace(tmpl)
	if err := r.client.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingFields{byRevised: string(tmpl.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the revisions of %s: %w", tmpl.GetKind(), err)
	}
	stored := make([]fleet.Revision, 0, len(list.Items))
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], tmpl) {
			stored = append(stored, fleet.StoredRevision(tmpl, &list.Items[i]))
		}
	}
	next, surplus := fleet.Remember(tmpl, stored)
	for _, s := range surplus {
		err := r.client.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: fleet.RevisionPrefix(tmpl) + s.Name}})
		if client.IgnoreNotFound(err) != nil {
			ctrl.LoggerFrom(ctx).Error(err, "delete a revision", "template", commit.Name(tmpl))
		}
	}
	if next == nil {
		return nil
	}
	err := r.client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fleet.RevisionPrefix(tmpl) + next.Name,
			Labels:          map[string]string{wellknown.RevisionOfLabel: string(tmpl.GetUID())},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(tmpl, tmpl.GroupVersionKind())},
		},
		Revision: next.Number,
		Data:     runtime.RawExtension{Raw: next.Data},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) { // the cache is milliseconds behind; a quota may refuse it
		ctrl.LoggerFrom(ctx).Error(err, "store a revision", "template", commit.Name(tmpl))
	}
	return nil
}

// byRevised is the index of ControllerRevisions by the UID of their template.
const byRevised = "revisedTemplate"

// revisedTemplate returns the index of a ControllerRevision.
func revisedTemplate(obj client.Object) []string {
	return []string{obj.GetLabels()[wellknown.RevisionOfLabel]}
}
