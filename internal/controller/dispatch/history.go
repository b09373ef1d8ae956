package dispatch

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// history returns the revisions of a template, including the current one: a revision is stored before a Work names it,
// so that clusters that join later can get it.
func (r *reconciler) history(ctx context.Context, tmpl *unstructured.Unstructured,
	works map[string]*workv1alpha1.Work) ([]fleet.Revision, error) {
	if !fleet.KeepsHistory(tmpl) || tmpl.GetNamespace() != "" && release.StrategyOf(tmpl) != "" {
		return nil, nil // the ReleaseRevisions of a workload that waits for releases are its history
	}
	var list appsv1.ControllerRevisionList
	namespace := fleet.HistoryNamespace(tmpl)
	if err := r.client.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingFields{byRevised: string(tmpl.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", tmpl.GetKind(), err)
	}
	stored := make([]fleet.Revision, 0, len(list.Items)+1)
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], tmpl) {
			stored = append(stored, fleet.StoredRevision(tmpl, &list.Items[i]))
		}
	}
	next, surplus := fleet.Remember(tmpl, works, stored)
	for _, s := range surplus {
		err := r.client.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: fleet.RevisionPrefix(tmpl) + s.Name}})
		if client.IgnoreNotFound(err) != nil && tmpl.GetNamespace() != "" {
			ctrl.LoggerFrom(ctx).Error(err, "delete a revision", "template", commit.Name(tmpl))
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete revision %s of %s %s: %w", s.Name, tmpl.GetKind(), tmpl.GetName(), err)
		}
		stored = slices.DeleteFunc(stored, func(r fleet.Revision) bool { return r.Name == s.Name })
	}
	if next == nil {
		return stored, nil
	}
	annotations := map[string]string(nil)
	if next.Version != "" {
		// It is no label, because a version may be any text.
		annotations = map[string]string{wellknown.RevisionVersionAnnotation: next.Version}
	}
	err := r.client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fleet.RevisionPrefix(tmpl) + next.Name,
			Labels:          map[string]string{wellknown.RevisionOfLabel: string(tmpl.GetUID())},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(tmpl, tmpl.GroupVersionKind())},
		},
		Revision: next.Number,
		Data:     runtime.RawExtension{Raw: next.Data},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) { // the cache is milliseconds behind
		if tmpl.GetNamespace() != "" {
			// A quota may refuse it. Only a way back is lost, so clusters get the change; the next reconcile tries again.
			ctrl.LoggerFrom(ctx).Error(err, "store a revision", "template", commit.Name(tmpl))
			return stored, nil
		}
		return nil, fmt.Errorf("store revision %d of %s %s: %w", next.Number, tmpl.GetKind(), tmpl.GetName(), err)
	}
	return append(stored, *next), nil
}

// byRevised is the index of ControllerRevisions by the UID of their template.
const byRevised = "revisedTemplate"

// revisedTemplate returns the index of a ControllerRevision.
func revisedTemplate(obj client.Object) []string {
	return []string{obj.GetLabels()[wellknown.RevisionOfLabel]}
}
