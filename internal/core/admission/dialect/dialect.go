// Package dialect rewrites spellings of public guides that the APIs of Karmada and OpenKruise do not have to the
// canonical ones, and warns the author. core/admission/validate decides whether the result is valid.
package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// submittedLimit is the length from which a submitted value is only described: all annotations of an object share
// 256 KiB.
const submittedLimit = 256

var rewrites = map[schema.GroupKind]func(*rewrite){
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "PropagationPolicy"}:                (*rewrite).propagation,
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "ClusterPropagationPolicy"}:         (*rewrite).propagation,
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "OverridePolicy"}:                   (*rewrite).override,
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "ClusterOverridePolicy"}:            (*rewrite).override,
	{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster"}:                         (*rewrite).cluster,
	{Group: configv1alpha1.GroupVersion.Group, Kind: "ResourceInterpreterCustomization"}: (*rewrite).customization,
	{Group: configv1alpha1.GroupVersion.Group, Kind: "ReplicaSchedulingPolicy"}:          (*rewrite).rescheduling,
	{Group: networkingv1alpha1.GroupVersion.Group, Kind: "MultiClusterService"}:          (*rewrite).multiClusterService,
	{Group: networkingv1alpha1.GroupVersion.Group, Kind: "MultiClusterIngress"}:          (*rewrite).multiClusterIngress,
	{Group: kruiseGroup, Kind: "CloneSet"}:                                               (*rewrite).cloneSet,
	{Group: kruiseGroup, Kind: "StatefulSet"}:                                            (*rewrite).selector,
	{Group: kruiseGroup, Kind: "DaemonSet"}:                                              (*rewrite).selector,
	{Group: kruiseGroup, Kind: "SidecarSet"}:                                             (*rewrite).sidecarSet,
	{Group: kruiseGroup, Kind: "UnitedDeployment"}:                                       (*rewrite).unitedDeployment,
}

const kruiseGroup = "apps.kruise.io"

var advices = map[schema.GroupKind]func(spec map[string]any) []string{
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "PropagationPolicy"}:                advisePropagation,
	{Group: policyv1alpha1.GroupVersion.Group, Kind: "ClusterPropagationPolicy"}:         advisePropagation,
	{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster"}:                         adviseTaints,
	{Group: configv1alpha1.GroupVersion.Group, Kind: "ResourceInterpreterCustomization"}: adviseCustomization,
}

// Normalise rewrites obj in place and warns of each rewrite. A second run changes nothing. Other kinds are left alone.
// With an error, a join of *Error, two spellings contradict each other or one cannot be translated; obj is then half
// rewritten and must be dropped.
func Normalise(obj *unstructured.Unstructured) (changed bool, warnings []string, err error) {
	apply, ok := rewrites[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return false, nil, nil
	}
	spec, ok := obj.Object["spec"].(map[string]any)
	if !ok {
		return false, nil, nil
	}
	r := &rewrite{obj: obj, spec: spec, submitted: map[string]json.RawMessage{}}
	// An unreadable annotation is no error: the submitted fields are then unknown.
	_ = json.Unmarshal([]byte(obj.GetAnnotations()[wellknown.SubmittedFieldsAnnotation]), &r.submitted)
	apply(r)
	if r.changed && len(r.submitted) > 0 {
		fields.SetAnnotation(obj, wellknown.SubmittedFieldsAnnotation, text.JSON(r.submitted))
	}
	return r.changed, r.warnings, errors.Join(r.errs...)
}

// Advise warns of fields of a normalised obj that are valid but probably a mistake. It changes nothing.
func Advise(obj *unstructured.Unstructured) []string {
	advise, ok := advices[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return nil
	}
	spec, ok := obj.Object["spec"].(map[string]any)
	if !ok {
		return nil
	}
	return advise(spec)
}

// rewrite changes one object to the canonical form. It skips fields of a wrong type: the schema rejects them later.
type rewrite struct {
	obj       *unstructured.Unstructured
	spec      map[string]any
	submitted map[string]json.RawMessage
	changed   bool
	warnings  []string
	errs      []error
}

// rewritten notes that the value at path was stored otherwise.
func (r *rewrite) rewritten(path string, value any, stored string) {
	r.changed = true
	r.warnings = append(r.warnings, fmt.Sprintf("%s: stored as %s", path, stored))
	text, err := json.Marshal(value)
	if err != nil || len(text) > submittedLimit {
		text = fmt.Appendf(nil, "%q", fmt.Sprintf("(%d bytes)", len(text)))
	}
	if r.submitted == nil { // the annotation is null
		r.submitted = map[string]json.RawMessage{}
	}
	r.submitted[path] = text
}

// Error is a value that cannot be understood, and its field.
type Error struct{ Field, Message string }

func (e *Error) Error() string { return e.Field + ": " + e.Message }

func (r *rewrite) refuse(path, format string, args ...any) {
	r.errs = append(r.errs, &Error{path, fmt.Sprintf(format, args...)})
}

// submittedBefore reports whether the stored value came from a spelling at path, so that the same spelling may replace
// it.
func (r *rewrite) submittedBefore(path string) bool {
	_, ok := r.submitted[path]
	return ok
}

// rename moves parent[from] to parent[to]; path is the parent's. also are further spellings: an author of one of them
// may change to this one.
func (r *rewrite) rename(parent map[string]any, path, from, to string, also ...string) {
	if parent[from] != nil {
		for _, spelling := range also {
			if spelling = path + "." + spelling; r.submittedBefore(spelling) {
				delete(r.submitted, spelling)
				r.submitted[path+"."+from] = nil
			}
		}
	}
	r.move(parent, from, path+"."+from, parent, to, to)
}

// move moves source[from] to target[to]. If target has another value, it is rejected with "from: duplicates stored".
func (r *rewrite) move(source map[string]any, from, path string, target map[string]any, to, stored string) {
	value, ok := source[from]
	if !ok {
		return
	}
	delete(source, from)
	if value == nil {
		r.changed = true
		return
	}
	if present, ok := target[to]; ok && !equalJSON(present, value) && !r.submittedBefore(path) {
		r.refuse(path, "duplicates %s", stored)
		return
	}
	target[to] = value
	r.rewritten(path, value, stored)
}

// equalJSON compares decoded JSON, in which one number may be an int64 or a float64.
func equalJSON(a, b any) bool {
	if x, ok := fields.Float(a); ok {
		y, ok := fields.Float(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

// The short names by which this package reads objects.
var (
	child = fields.Object
	strs  = fields.Texts
)

// objects returns the items of parent[key] that are objects, by index.
func objects(parent map[string]any, key string) []map[string]any {
	list, _ := parent[key].([]any)
	items := make([]map[string]any, len(list))
	for i := range list {
		items[i], _ = list[i].(map[string]any)
	}
	return items
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// union keeps the order in which the items first appear.
func union(lists ...[]string) []string {
	var out []string
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
