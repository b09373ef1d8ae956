package execute

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/names"
)

// RestoreMark is the ConfigMap in karmada-system that stands from a restore of the hub until somebody accepts what
// follows from it.
const RestoreMark = "argosy-restore"

// UnseenAnnotation is on that ConfigMap, as JSON: by cluster, the Works whose objects there the hub has not looked at
// since the restore. Without it nobody has counted them yet.
const UnseenAnnotation = "argosy.io/restore-unseen"

// Unseen says whether it is not known yet what became of the object of w since the backup: to accept everything would
// change it, whatever it is. unseen says that w was not looked at since the restore.
func Unseen(w *workv1alpha1.Work, unseen bool) bool {
	return unseen && (appliedGeneration(w) > 0 || w.DeletionTimestamp != nil) &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
}

// Held says why action is not to be carried out for w, since the hub's store may be older than the member; empty if it
// may. A hub that was restored from a backup neither rolls back nor makes again, unseen, what it finds otherwise than
// it had left it:
//
//   - an object whose template's generation is higher than the hub's is never rolled back, whoever restored the store
//     and how;
//   - until the Work was looked at once after a restore, which unsettled says, nothing that it had sent is changed or
//     made again;
//   - until then it deletes nothing that is of another template by now; what is of another Work by now it never
//     deletes, see Plan;
//   - what is held stays so, whatever happens to its template, until a user accepts it, or the member has what the hub
//     wants.
//
// Users' marks in a member can only have an object left alone, which they could as well by taking its other marks off.
func Held(w *workv1alpha1.Work, action Action, desired, observed *unstructured.Unstructured, unsettled bool) string {
	switch {
	case action.Kind == Delete:
		return heldEnd(w, observed, unsettled)
	case desired == nil, action.Adopts, action.Kind == Conflict, action.Kind == Release, action.Kind == Leave:
		return ""
	case action.Kind != Create && action.Kind != Apply && (observed == nil || !Owns(w, observed) || Suspended(w)):
		return ""
	case Accepted(w):
		return ""
	}
	if action.Kind == Apply {
		if runs, hub, newer := newerTemplate(desired, observed); newer {
			return fmt.Sprintf("the cluster has generation %d of its template, but the hub has generation %d", runs, hub)
		}
	}
	held := meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
	if !held && (!unsettled || appliedGeneration(w) == 0) {
		return ""
	}
	if action.Kind == Create {
		return "it does not exist there, although the hub had dispatched it before the backup"
	}
	if action.Kind == Wait {
		return "it is being deleted there, although the hub had dispatched it before the backup"
	}
	const otherwise = "it differs from what the hub applied: "
	if path, differs := difference(desired, observed); differs {
		return otherwise + path + " differs"
	}
	if key := more(desired, observed); key != "" {
		return otherwise + key + " is not set by the hub"
	}
	return ""
}

// heldEnd says why the object of w, which is being deleted, is not deleted yet; empty if it may be. A user's word on
// what is held is an order as ever; that the object has another template than w shows that the order is of before that
// template was made.
func heldEnd(w *workv1alpha1.Work, observed *unstructured.Unstructured, unsettled bool) string {
	if !unsettled && !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore) || Accepted(w) {
		return ""
	}
	manifest, err := Manifest(w)
	if err != nil {
		return ""
	}
	was, is := field(manifest, "annotations", workv1alpha2.TemplateUIDAnnotation),
		field(observed, "annotations", workv1alpha2.TemplateUIDAnnotation)
	if was == "" || is == "" || was == is {
		return ""
	}
	return "its Work is being deleted, but it was created from another template, since the backup"
}

// newerTemplate compares the generations of the same template in the hub and in the member. Kinds without a spec have
// none.
func newerTemplate(desired, observed *unstructured.Unstructured) (runs, hub int64, newer bool) {
	uid := field(desired, "annotations", workv1alpha2.TemplateUIDAnnotation)
	if uid == "" || uid != field(observed, "annotations", workv1alpha2.TemplateUIDAnnotation) {
		return 0, 0, false
	}
	runs, err := strconv.ParseInt(field(observed, "annotations", workv1alpha2.TemplateGenerationAnnotation), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	hub, err = strconv.ParseInt(field(desired, "annotations", workv1alpha2.TemplateGenerationAnnotation), 10, 64)
	return runs, hub, err == nil && runs > hub
}

// more is a key that observed has and desired has not, of the kinds that have content and no generation: it is no
// difference, and went with the next change.
func more(desired, observed *unstructured.Unstructured) string {
	for _, in := range []string{"data", "binaryData"} {
		have, _ := observed.Object[in].(map[string]any)
		want, _ := desired.Object[in].(map[string]any)
		for key := range have {
			if _, ok := want[key]; !ok {
				return in + "." + key
			}
		}
	}
	return ""
}

// HeldMessage says of a Work that is held what it is about, and what to do.
func HeldMessage(w *workv1alpha1.Work, manifest *unstructured.Unstructured, why string) string {
	cluster, err := names.ClusterOf(w.Namespace)
	if err != nil {
		cluster = w.Namespace
	}
	namespace := ""
	if ns := manifest.GetNamespace(); ns != "" {
		namespace = " -n " + ns
	}
	if w.DeletionTimestamp != nil {
		return fmt.Sprintf("held after a restore of the hub: %s %s in cluster %s: %s. To delete it, in accordance with the hub's state: `argosy restore accept %s %s%s`; "+
			"to keep it, remove the label %s from it in the cluster",
			manifest.GetKind(), manifest.GetName(), cluster, why, manifest.GetKind(), manifest.GetName(), namespace,
			workv1alpha2.ManagedLabel)
	}
	return fmt.Sprintf("held after a restore of the hub: %s %s in cluster %s: %s. To apply the hub's state: `argosy restore accept %s %s%s`; "+
		"to keep it as it is in the cluster, change the template to match it first, or delete the template with its resources preserved",
		manifest.GetKind(), manifest.GetName(), cluster, why, manifest.GetKind(), manifest.GetName(), namespace)
}

// Acceptance is the value of AcceptRestoredAnnotation that accepts what is held of w now: when it began to be held, so
// that it is good once. Empty if nothing is held.
func Acceptance(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.LastTransitionTime.UTC().Format(time.RFC3339)
}

// Accepted says whether what is held of w was accepted.
func Accepted(w *workv1alpha1.Work) bool {
	a := Acceptance(w)
	return a != "" && w.Annotations[workv1alpha2.AcceptRestoredAnnotation] == a
}

// WorkOf is the Work that a member's object says it is of, if that is one of this hub for this cluster. What a
// controller there made of such an object may have its marks, and is nobody's but that controller's.
func WorkOf(u *unstructured.Unstructured, cluster string) (types.NamespacedName, bool) {
	key := MarkedWork(u)
	return key, key.Namespace == names.ExecutionSpace(cluster) && key.Name != "" &&
		field(u, "labels", workv1alpha2.ManagedLabel) == marked &&
		metav1.GetControllerOfNoCopy(u) == nil
}
