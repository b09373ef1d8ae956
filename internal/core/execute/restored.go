package execute

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// RestoreMark is the ConfigMap in karmada-system that exists from a restore of the hub until a user accepts it.
const RestoreMark = "argosy-restore"

// Unchecked reports whether the state of the object of w is unknown since the backup: a user who accepts the restore
// would not know what is overwritten. checked means that the hub checked the object since the restore.
func Unchecked(w *workv1alpha1.Work, checked bool) bool {
	return !checked && (appliedGeneration(w) > 0 || w.DeletionTimestamp != nil) &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
}

// PauseReason returns why action must not be taken for w because the hub's store may be older than the member; empty
// if it may. A hub that was restored from a backup changes no object that differs from what it applied before the
// backup:
//
// - An object with a higher generation of its template than the hub's is never rolled back.
// - While unsettled is true, that is, until the Work was checked once after the restore, no applied object is changed
// or recreated, and no object of another template is deleted. An object of another Work is never deleted, see Plan.
// - An object stays paused until a user accepts it, or it matches the hub's state.
//
// By changing marks in a member, users can only keep the hub from writing an object.
func PauseReason(w *workv1alpha1.Work, action Action, desired, observed *unstructured.Unstructured,
	unsettled bool) string {
	switch {
	case action.Kind == Delete:
		return deletionPauseReason(w, observed, unsettled)
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
	paused := meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
	if !paused && (!unsettled || appliedGeneration(w) == 0) {
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

// deletionPauseReason returns why the object of w, which is being deleted, must not be deleted; empty if it may be. If
// the object has another template than w, that template was created after the deletion was requested.
func deletionPauseReason(w *workv1alpha1.Work, observed *unstructured.Unstructured, unsettled bool) string {
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

// newerTemplate compares the generations of a template in the hub and in the member. Kinds without a spec have none.
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

// more returns a key of the data that only observed has. It is no difference, but the next apply would remove it.
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

// PauseMessage returns the message of the condition HeldAfterRestore: the object, the reason, and what to do.
func PauseMessage(w *workv1alpha1.Work, manifest *unstructured.Unstructured, why string) string {
	cluster, err := names.ClusterOf(w.Namespace)
	if err != nil {
		cluster = w.Namespace
	}
	namespace := namespaceFlag(manifest)
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

// namespaceFlag returns the flag of a command for the namespace of an object, with a space before it; empty for none.
func namespaceFlag(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return ""
	}
	return " -n " + u.GetNamespace()
}

// Acceptance returns the value of AcceptRestoredAnnotation that accepts w: the time since when it is paused, so that
// it counts only once. It is empty if w is not paused.
func Acceptance(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.LastTransitionTime.UTC().Format(time.RFC3339)
}

// Accepted reports whether a user accepted w.
func Accepted(w *workv1alpha1.Work) bool {
	a := Acceptance(w)
	return a != "" && w.Annotations[wellknown.AcceptRestoredAnnotation] == a
}

// FormerCluster returns the cluster for whose Work the hub wrote a member's object, and the Work, if the member is
// joined under another name now. An object with a controller does not count, as in WorkOf, nor do names that no Work
// can have: users of the member may write them.
func (h HubID) FormerCluster(u *unstructured.Unstructured, cluster string) (former string, key types.NamespacedName) {
	key = MarkedWork(u)
	former, err := names.ClusterOf(key.Namespace)
	if _, is := WorkOf(u, former); err != nil || !is || former == cluster || h == "" ||
		len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(key.Name)) > 0 ||
		field(u, "annotations", wellknown.HubAnnotation) != string(h) {
		return "", types.NamespacedName{}
	}
	return former, key
}

// WorkOf returns the Work of a member's object by its marks, if the Work is this hub's for this cluster. An object with
// a controller does not count: it may have copied marks.
func WorkOf(u *unstructured.Unstructured, cluster string) (types.NamespacedName, bool) {
	key := MarkedWork(u)
	return key, key.Namespace == names.ExecutionSpace(cluster) && key.Name != "" &&
		field(u, "labels", workv1alpha2.ManagedLabel) == marked &&
		metav1.GetControllerOfNoCopy(u) == nil
}
