package execute

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/text"
)

// CreatedAnnotation is on a namespace or definition in a member that the hub made, and did not find there and adopt:
// others are never deleted.
const CreatedAnnotation = "argosy.io/created"

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// IsNamespace says whether an object is a namespace, with all that this means for what is in it.
func IsNamespace(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == namespaceKind
}

// noteCreation says on what is to be made and takes others along, in place, that the hub made it, and keeps that from
// then on.
func noteCreation(manifest, observed *unstructured.Unstructured) {
	if !TakesAlong(manifest.GroupVersionKind().GroupKind()) {
		return
	}
	annotations := child(child(manifest.Object, "metadata"), "annotations")
	delete(annotations, CreatedAnnotation) // the template does not say so
	if observed == nil || field(observed, "annotations", CreatedAnnotation) == marked {
		annotations[CreatedAnnotation] = marked
	}
}

// Content is an object in a namespace of a member, or of a definition there, by its metadata.
type Content struct {
	schema.GroupKind
	// Name is with the namespace, "shop/web", for an object of a definition.
	Name string
	UID  types.UID
	// Owners are the objects that it goes with; OwnedAbove says that one of them is in no namespace, so that it is not
	// looked for.
	Owners     []types.UID
	OwnedAbove bool
	// Going says that it is being deleted.
	Going bool
	// Managed says that it has the hub's marks; Work is by its marks the one that it is of, empty without.
	Managed bool
	Work    types.NamespacedName
	// ServiceAccount is whose token it holds, for a Secret.
	ServiceAccount string
}

// WorkState is how a Work is that an object names.
type WorkState int

// The states of Works.
const (
	WorkAbsent WorkState = iota
	WorkStands
	WorkGoes
)

// Fate is what becomes of a namespace or definition in a member when its Work goes.
type Fate string

// The fates.
const (
	FateDeleted  Fate = "Deleted"
	FateReleased Fate = "Released"
	FateWaits    Fate = "Waits" // for objects that the hub is about to delete or release
)

const notMade = "it existed before the hub propagated it"

// EndNamespace decides what becomes of the observed namespace, by what is in it: it is deleted if the hub made it, and
// if nothing would go with it that the hub did not send there or has preserved. Whatever stays, reason says.
func EndNamespace(observed *unstructured.Unstructured, contents []Content,
	workOf func(types.NamespacedName) WorkState) (fate Fate, reason string) {
	if field(observed, "annotations", CreatedAnnotation) != marked {
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
			// It goes, or stays, with its owner, which is here too.
		case len(c.Owners) > 0 && !c.OwnedAbove:
			// Its owners are gone, and the member's garbage collector is about to see that.
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

// someOf names the first objects by name.
func someOf(names []string) string {
	slices.Sort(names)
	return text.Names(names, 3)
}

// injected are the objects that clusters put into every namespace.
var injected = map[schema.GroupKind][]string{
	{Kind: "ConfigMap"}: {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert",
		"linkerd-identity-trust-roots"},
	{Kind: "ServiceAccount"}: {"default"},
}

// Transient says whether objects of a kind are made by clusters themselves for what else is there, and are nothing to
// keep.
func Transient(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return true
	}
	return false
}

// comesByItself says whether every namespace has an object like that.
func comesByItself(c Content) bool {
	return Transient(c.GroupKind) || slices.Contains(injected[c.GroupKind], c.Name) ||
		c.GroupKind == schema.GroupKind{Kind: "Secret"} && c.ServiceAccount == "default"
}

// ManagedBy reads the marks of an object: whether it has the hub's, and the Work that they name, by its present name.
func ManagedBy(gk schema.GroupKind, obj metav1.Object) (managed bool, work types.NamespacedName) {
	annotations := obj.GetAnnotations()
	work = types.NamespacedName{Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation],
		Name: annotations[workv1alpha2.WorkNameAnnotation]}
	if work.Namespace == "" || work.Name == "" {
		return false, work
	}
	work.Name = renamedWork(work.Name, gk, obj.GetNamespace(), obj.GetName(),
		annotations[workv1alpha2.ClusterResourceBindingNameAnnotation])
	return obj.GetLabels()[workv1alpha2.ManagedLabel] == marked, work
}
