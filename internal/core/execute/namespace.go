package execute

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// IsNamespace reports whether an object is a Namespace.
func IsNamespace(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == namespaceKind
}

// IsDefinition reports whether an object is a CustomResourceDefinition.
func IsDefinition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == definitionKind
}

// TakesAlong reports whether the deletion of an object of this kind deletes others: those in a namespace, or all of a
// definition's kind.
func TakesAlong(gk schema.GroupKind) bool { return gk == namespaceKind || gk == definitionKind }

// noteCreation sets wellknown.CreatedAnnotation on a namespace or definition that does not exist yet, and keeps it
// later.
func noteCreation(manifest, observed *unstructured.Unstructured) {
	if !TakesAlong(manifest.GroupVersionKind().GroupKind()) {
		return
	}
	annotations := fields.Ensure(manifest.Object, "metadata", "annotations")
	delete(annotations, wellknown.CreatedAnnotation) // A template must not set it.
	if observed == nil || field(observed, "annotations", wellknown.CreatedAnnotation) == marked {
		annotations[wellknown.CreatedAnnotation] = marked
	}
}

// Content is the metadata of an object in a namespace of a member, or of a definition's kind.
type Content struct {
	schema.GroupKind
	// Name includes the namespace for an object of a definition's kind: "shop/web".
	Name string
	UID  types.UID
	// Owners are the owners of the object. OwnedAbove means that one of them is cluster-scoped, so it is not among the
	// contents.
	Owners     []types.UID
	OwnedAbove bool
	// Going is true if it is being deleted.
	Going bool
	// Managed is true if it has the hub's marks. Work is the Work that they name.
	Managed bool
	Work    types.NamespacedName
	// ServiceAccount is the owner of the token in a Secret.
	ServiceAccount string
}

// WorkState is the state of a Work that an object names.
type WorkState int

// The states of Works.
const (
	WorkAbsent WorkState = iota
	WorkStands
	WorkGoes
)

// Fate is the end of a namespace or definition in a member when its Work is deleted.
type Fate string

// The fates.
const (
	FateDeleted  Fate = "Deleted"
	FateReleased Fate = "Released"
	FateWaits    Fate = "Waits" // the hub is about to delete or release objects in it
)

// WorksSettle is the time for which the deletion of a definition or namespace waits for deletions of its objects: users
// delete several templates, or move them to other clusters, one after another.
const WorksSettle = 5 * time.Second

// AwaitsWorks reports whether the deletion of w, the Work of a namespace or definition, waits for Works of objects in
// it that are not being deleted yet. If the hub requested the deletion of a namespace, it waits until they leave, as
// the hub can recall w. It does not for a ManifestWork, which waits for w.
func AwaitsWorks(w *workv1alpha1.Work, observed *unstructured.Unstructured, now time.Time) bool {
	return now.Sub(w.DeletionTimestamp.Time) < WorksSettle ||
		IsNamespace(observed) && Ordered(w) && w.Annotations[wellknown.ManifestWorkAnnotation] == ""
}

// Recallable reports whether the deletion of w can end without an effect on the member, because the hub sends the
// object to the cluster again: w is the Work of a namespace, and may wait for objects in it. The next Work adopts it.
func Recallable(w *workv1alpha1.Work) bool {
	if !Ordered(w) {
		return false // Decoding is slow.
	}
	m, err := Manifest(w)
	return err == nil && IsNamespace(m)
}

const notMade = "it existed before the hub propagated it"

// EndNamespace decides what happens to the observed namespace: it is deleted if the hub created it, and if its deletion
// would delete neither objects of others nor preserved objects.
func EndNamespace(observed *unstructured.Unstructured, contents []Content,
	workOf func(types.NamespacedName) WorkState) (fate Fate, reason string) {
	if field(observed, "annotations", wellknown.CreatedAnnotation) != marked {
		return FateReleased, notMade
	}
	there := make(map[types.UID]bool, len(contents))
	for _, c := range contents {
		there[c.UID] = true
	}
	var staying []string
	waits := ""
	for _, c := range contents {
		switch {
		case c.Going, comesByItself(c):
		case slices.ContainsFunc(c.Owners, func(owner types.UID) bool { return there[owner] }):
			// It is deleted with its owner, which is here too.
		case len(c.Owners) > 0 && !c.OwnedAbove:
			// Its owners are gone, and the member's garbage collector deletes it.
		case c.Managed && workOf(c.Work) == WorkGoes:
			waits = c.Kind + " " + c.Name
		default:
			staying = append(staying, c.Kind+" "+c.Name)
		}
	}
	switch {
	case len(staying) > 0:
		return FateReleased, "it contains objects that remain: " + someOf(staying)
	case waits != "":
		return FateWaits, waits + " is deleted first"
	}
	return FateDeleted, "the hub created it, and it is empty"
}

// EndDefinition decides what happens to the observed definition: it is deleted if the hub created it and all remaining
// objects of its kind are being deleted. more means that there are other objects than these.
func EndDefinition(observed *unstructured.Unstructured, objects []Content, more bool,
	workOf func(types.NamespacedName) WorkState) (fate Fate, reason string) {
	if field(observed, "annotations", wellknown.CreatedAnnotation) != marked {
		return FateReleased, notMade
	}
	var staying, owned []string
	waits := ""
	for _, c := range objects {
		switch name := c.Kind + " " + c.Name; {
		case c.Going:
		case c.Managed && workOf(c.Work) == WorkGoes:
			waits = name
		case len(c.Owners) > 0:
			owned = append(owned, name) // perhaps by what goes first
		default:
			staying = append(staying, name)
		}
	}
	switch {
	case len(staying) > 0:
		return FateReleased, "objects of this kind remain: " + someOf(slices.Concat(staying, owned))
	case waits != "":
		return FateWaits, waits + " is deleted first"
	case len(owned) > 0:
		return FateReleased, "objects of this kind remain: " + someOf(owned)
	case more:
		return FateWaits, "objects of this kind are deleted first"
	}
	return FateDeleted, "the hub created it, and no objects of this kind remain"
}

func someOf(names []string) string {
	slices.Sort(names)
	return text.Names(names, 3)
}

// injected are the objects that clusters create in every namespace.
var injected = map[schema.GroupKind][]string{
	{Kind: "ConfigMap"}: {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert",
		"linkerd-identity-trust-roots"},
	{Kind: "ServiceAccount"}: {"default"},
}

// Transient reports whether clusters create objects of this kind themselves, for other objects.
func Transient(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return true
	}
	return false
}

// comesByItself reports whether clusters create the object in every namespace.
func comesByItself(c Content) bool {
	return Transient(c.GroupKind) || slices.Contains(injected[c.GroupKind], c.Name) ||
		c.GroupKind == schema.GroupKind{Kind: "Secret"} && c.ServiceAccount == "default"
}

// ManagedBy reports whether an object has the hub's marks, and returns the Work that they name.
func ManagedBy(obj metav1.Object) (managed bool, work types.NamespacedName) {
	annotations := obj.GetAnnotations()
	work = types.NamespacedName{Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation],
		Name: annotations[workv1alpha2.WorkNameAnnotation]}
	if work.Namespace == "" || work.Name == "" {
		return false, work
	}
	return obj.GetLabels()[workv1alpha2.ManagedLabel] == marked, work
}
