package execute

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// marked is the value of the label karmada.io/managed on what is ours.
const marked = "true"

// Mark marks manifest as the object of w, in place. It lists the manifest's labels and annotations, so that a key that
// is dropped later can be removed from the member's object. A second Mark changes nothing.
func Mark(manifest *unstructured.Unstructured, w *workv1alpha1.Work) {
	metadata := fields.Ensure(manifest.Object, "metadata")
	labels, annotations := fields.Ensure(metadata, "labels"), fields.Ensure(metadata, "annotations")

	labels[workv1alpha2.ManagedLabel] = marked
	if id := w.Labels[workv1alpha2.WorkPermanentIDLabel]; id != "" {
		labels[workv1alpha2.WorkPermanentIDLabel] = id
	}
	annotations[workv1alpha2.WorkNamespaceAnnotation] = w.Namespace
	annotations[workv1alpha2.WorkNameAnnotation] = w.Name
	if r := w.Annotations[workv1alpha2.ConflictResolutionAnnotation]; r != "" &&
		annotations[workv1alpha2.ConflictResolutionAnnotation] == nil {
		annotations[workv1alpha2.ConflictResolutionAnnotation] = r
	}

	// The lists name themselves too, so they go with the rest.
	annotations[workv1alpha2.ManagedLabelsAnnotation] = ""
	annotations[workv1alpha2.ManagedAnnotationsAnnotation] = ""
	annotations[workv1alpha2.ManagedLabelsAnnotation] = keyList(labels)
	annotations[workv1alpha2.ManagedAnnotationsAnnotation] = keyList(annotations)
}

func keyList(m map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(m)), ",") }

// owner is the owner of a member's object, by its marks.
type owner int

const (
	unmarked  owner = iota // not marked: it existed before
	ours                   // marked as the Work's
	damaged                // the Work's, but some of the marks were removed
	neighbour              // marked as another Work's of the same cluster
	stranger               // marked as a Work's of another hub, or of the cluster under another name
)

// Owns reports whether observed is marked as the object of w.
func Owns(w *workv1alpha1.Work, observed *unstructured.Unstructured) bool {
	return ownerOf(observed, w) == ours
}

// Anothers reports whether observed, which w was applied to, has the permanent ID of a later Work with the same name.
// That happens if the store is older than the member. An object that w was never applied to may have the ID of an
// earlier Work.
func Anothers(w *workv1alpha1.Work, observed *unstructured.Unstructured) bool {
	own, is := w.Labels[workv1alpha2.WorkPermanentIDLabel], field(observed, "labels", workv1alpha2.WorkPermanentIDLabel)
	return own != "" && is != "" && own != is && appliedGeneration(w) > 0
}

// ownerOf returns the owner of observed, from the view of w. Only ours may be deleted; damaged marks are repaired.
func ownerOf(observed *unstructured.Unstructured, w *workv1alpha1.Work) owner {
	label := func(key string) string { return field(observed, "labels", key) }
	annotation := func(key string) string { return field(observed, "annotations", key) }

	namespace, name := annotation(workv1alpha2.WorkNamespaceAnnotation), annotation(workv1alpha2.WorkNameAnnotation)
	sameName := name != "" && sameWork(name, w.Name, observed)
	managed := label(workv1alpha2.ManagedLabel) == marked
	id := label(workv1alpha2.WorkPermanentIDLabel)
	sameID := id != "" && id == w.Labels[workv1alpha2.WorkPermanentIDLabel]

	switch {
	case namespace == w.Namespace && sameName:
		if managed {
			return ours
		}
		// Controllers copy annotations of an object to its children, but not labels.
		if sameID {
			return damaged
		}
		return unmarked
	case namespace == "" || name == "":
		if managed && sameID {
			return damaged
		}
		return unmarked
	case !managed:
		return unmarked
	case namespace == w.Namespace:
		return neighbour
	default:
		return stranger
	}
}

// field returns a string in a map of the metadata. Unlike GetLabels it copies nothing.
func field(obj *unstructured.Unstructured, in, key string) string {
	return fields.Text(obj.Object, "metadata", in, key)
}

// hubKeys are the labels and annotations that templates and overrides cannot set on objects in members: those by which
// the hub marks an object as its own, which it sets last, and wellknown.HandsOffAnnotation, which it never sets.
var hubKeys = map[string]bool{
	workv1alpha2.ManagedLabel:                           true,
	wellknown.HubAnnotation:                             true,
	workv1alpha2.WorkPermanentIDLabel:                   true,
	workv1alpha2.WorkNamespaceAnnotation:                true,
	workv1alpha2.WorkNameAnnotation:                     true,
	workv1alpha2.ResourceBindingPermanentIDLabel:        true,
	workv1alpha2.ResourceBindingNamespaceAnnotation:     true,
	workv1alpha2.ResourceBindingNameAnnotation:          true,
	workv1alpha2.ClusterResourceBindingPermanentIDLabel: true,
	workv1alpha2.ClusterResourceBindingNameAnnotation:   true,
	workv1alpha2.TemplateUIDAnnotation:                  true,
	workv1alpha2.TemplateGenerationAnnotation:           true,
	wellknown.FormerRevisionAnnotation:                  true,
	workv1alpha2.ManagedAnnotationsAnnotation:           true,
	workv1alpha2.ManagedLabelsAnnotation:                true,
	wellknown.TemplateSuspendsAnnotation:                true,
	wellknown.ManifestWorkAnnotation:                    true,
	wellknown.CreatedAnnotation:                         true,
	wellknown.HandsOffAnnotation:                        true,
}

// comeAlong are the labels and annotations that a copy gets from its template: the policy's mark and the users'
// conflict resolution. Other karmada.io keys, such as retain-replicas, belong to users.
var comeAlong = map[string]bool{
	workv1alpha2.ConflictResolutionAnnotation:               true,
	policyv1alpha1.PropagationPolicyPermanentIDLabel:        true,
	policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: true,
	policyv1alpha1.PropagationPolicyNamespaceAnnotation:     true,
	policyv1alpha1.PropagationPolicyNameAnnotation:          true,
	policyv1alpha1.ClusterPropagationPolicyNameAnnotation:   true,
}

// Marks reports whether a label or annotation is set by the hub only, whatever a template sets.
func Marks(key string) bool { return hubKeys[key] }

// Unmark takes the hub's marks off a manifest, in place, before it puts its own on: a template may carry those of
// another object.
func Unmark(manifest *unstructured.Unstructured) {
	for _, in := range []string{"labels", "annotations"} {
		maps.DeleteFunc(fields.Object(manifest.Object, "metadata", in), func(key string, _ any) bool { return hubKeys[key] })
	}
}

// Released returns observed without the hub's marks: then no hub owns it. observed is not changed.
func Released(observed *unstructured.Unstructured) *unstructured.Unstructured {
	out := observed.DeepCopy()
	metadata, ok := out.Object["metadata"].(map[string]any)
	if !ok {
		return out
	}
	for _, in := range []string{"labels", "annotations"} {
		m, ok := metadata[in].(map[string]any)
		if !ok {
			continue
		}
		maps.DeleteFunc(m, func(key string, _ any) bool { return hubKeys[key] || comeAlong[key] })
		if len(m) == 0 {
			delete(metadata, in)
		}
	}
	return out
}
