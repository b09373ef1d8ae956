package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// contextKind is the kind of requests and responses.
const contextKind = "ResourceInterpreterContext"

// sizeLimit limits the result of a patch: with nested copies each operation may double the object.
const sizeLimit = 4 << 20

// convertTo returns obj in the version for a webhook.
func (t *Tier) convertTo(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	out, err := t.Convert.ConvertTo(obj, version)
	if err == nil && out == nil {
		gvk := obj.GroupVersionKind()
		err = fmt.Errorf("there is no conversion between %s %s and %s; list %s in the rule's apiVersions if the webhook understands it",
			gvk.Kind, gvk.Version, version, gvk.Version)
	}
	return out, err
}

// send sends one request and reads the response.
func (t *Tier) send(ctx context.Context, h asked, operation configv1alpha1.InterpreterOperation,
	in interpret.Inputs) (*configv1alpha1.ResourceInterpreterResponse, error) {
	failed := func(doing string, err error) error {
		return fmt.Errorf("interpreter webhook %s, %s: %s: %w", h.Hook, operation, doing, err)
	}
	request, err := t.request(h, operation, in)
	if err != nil {
		return nil, failed("write the request", err)
	}
	body, err := json.Marshal(configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: contextKind},
		Request:  request,
	})
	if err != nil {
		return nil, failed("write the request", err)
	}
	answer, err := t.Call(ctx, h.Hook, body)
	if err != nil {
		return nil, failed("ask it", err)
	}
	return read(h.Hook, request, answer)
}

// request returns the request of an operation, with objects in the version for the webhook.
func (t *Tier) request(h asked, operation configv1alpha1.InterpreterOperation,
	in interpret.Inputs) (*configv1alpha1.ResourceInterpreterRequest, error) {
	obj, err := t.convertTo(in.Object, h.version)
	if err != nil {
		return nil, err
	}
	gvk := obj.GroupVersionKind()
	r := &configv1alpha1.ResourceInterpreterRequest{
		UID:  t.NewID(),
		Kind: metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Name: obj.GetName(), Namespace: obj.GetNamespace(), Operation: operation,
	}
	if r.Object, err = raw(obj); err != nil {
		return nil, err
	}
	switch operation {
	case configv1alpha1.InterpreterOperationReviseReplica:
		r.DesiredReplicas = &in.Replicas
	case configv1alpha1.InterpreterOperationAggregateStatus:
		r.AggregatedStatus, err = t.Convert.Statuses(gvk, in.Items)
	case configv1alpha1.InterpreterOperationRetain:
		given, err := t.convertTo(in.Observed, h.version)
		if err != nil {
			return nil, fmt.Errorf("the member's object: %w", err)
		}
		observed, err := raw(given)
		r.ObservedObject = &observed
		return r, err
	}
	return r, err
}

// read decodes a response.
func read(h Hook, request *configv1alpha1.ResourceInterpreterRequest,
	answer []byte) (*configv1alpha1.ResourceInterpreterResponse, error) {
	var c configv1alpha1.ResourceInterpreterContext
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, nonsense(h, request.Operation, "is empty, but must be a %s in JSON", contextKind)
	}
	if err := json.Unmarshal(answer, &c); err != nil {
		return nil, nonsense(h, request.Operation, "is not a %s in JSON: %v: it begins with %q", contextKind, err,
			beginning(answer))
	}
	want := metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: contextKind}
	r := c.Response
	switch {
	case c.TypeMeta != (metav1.TypeMeta{}) && c.TypeMeta != want:
		return nil, nonsense(h, request.Operation, "is a %s of %s, not a %s of %s", cmp.Or(c.Kind, "object without a kind"),
			cmp.Or(c.APIVersion, "no apiVersion"), want.Kind, want.APIVersion)
	case r == nil:
		return nil, nonsense(h, request.Operation, "has no response: it begins with %q", beginning(answer))
	case r.UID != request.UID:
		// The message omits the uids, so that repeated errors have equal texts.
		return nil, nonsense(h, request.Operation, "belongs to another request: response.uid must equal request.uid")
	case !r.Successful:
		message, code := "no reason given", int32(0)
		if r.Status != nil {
			message, code = cmp.Or(r.Status.Message, message), r.Status.Code
		}
		return nil, fmt.Errorf("interpreter webhook %s, %s: it returned a failure: %s (code %d)", h, request.Operation,
			message, code)
	}
	return r, nil
}

// beginning returns the beginning of a response for a message.
func beginning(answer []byte) []byte {
	return bytes.ToValidUTF8(answer[:min(len(answer), 80)], []byte("?"))
}

// patched applies the patch of a response to the object in the webhook's version. Without a patch it returns the object
// itself.
func (t *Tier) patched(ctx context.Context, h asked, operation configv1alpha1.InterpreterOperation,
	in interpret.Inputs, answer *configv1alpha1.ResourceInterpreterResponse) (*unstructured.Unstructured, error) {
	obj := in.Object
	if len(answer.Patch) == 0 {
		if t.Unchanged != nil {
			t.Unchanged(ctx, Unchanged{h.Hook, operation, in})
		}
		return obj, nil
	}
	if answer.PatchType == nil || *answer.PatchType != configv1alpha1.PatchTypeJSONPatch {
		is := configv1alpha1.PatchType("not given")
		if answer.PatchType != nil {
			is = *answer.PatchType
		}
		return nil, nonsense(h.Hook, operation, "has a patch whose patchType is %s; it must be %s", is,
			configv1alpha1.PatchTypeJSONPatch)
	}
	given, err := t.convertTo(obj, h.version)
	if err != nil {
		return nil, fmt.Errorf("interpreter webhook %s, %s: %w", h.Hook, operation, err)
	}
	out, err := apply(answer.Patch, given)
	if err != nil {
		return nil, nonsense(h.Hook, operation, "has a patch that does not apply: %v", err)
	}
	if out.GroupVersionKind() != given.GroupVersionKind() || out.GetName() != obj.GetName() ||
		out.GetNamespace() != obj.GetNamespace() {
		return nil, nonsense(h.Hook, operation, "changes the identity of the object: %s %s/%s", out.GroupVersionKind(),
			out.GetNamespace(), out.GetName())
	}
	if out, err = t.convertTo(out, obj.GroupVersionKind().Version); err != nil {
		return nil, nonsense(h.Hook, operation, "has a patch after which the object cannot be converted to %s: %v",
			obj.GroupVersionKind().Version, err)
	}
	return out, nil
}

func apply(text []byte, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON patch: %w", err)
	}
	doc, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	for len(patch) > 0 {
		n := slices.IndexFunc(patch, func(o jsonpatch.Operation) bool { return o.Kind() == "copy" }) + 1
		if n == 0 {
			n = len(patch)
		}
		if doc, err = patch[:n].Apply(doc); err != nil {
			return nil, err
		}
		if len(doc) > sizeLimit {
			return nil, fmt.Errorf("the resulting object is larger than %d bytes", sizeLimit)
		}
		patch = patch[n:]
	}
	out := &unstructured.Unstructured{}
	return out, utiljson.Unmarshal(doc, &out.Object)
}

func replicas(h Hook, n *int32) (int32, error) {
	switch {
	case n == nil:
		return 0, nonsense(h, configv1alpha1.InterpreterOperationInterpretReplica, "has no replicas")
	case *n < 0:
		return 0, nonsense(h, configv1alpha1.InterpreterOperationInterpretReplica,
			"has %d replicas, which must be from 0 to %d", *n, math.MaxInt32)
	}
	return *n, nil
}

func health(h Hook, healthy *bool) (interpret.Health, error) {
	switch {
	case healthy == nil:
		return interpret.Unknown, nonsense(h, configv1alpha1.InterpreterOperationInterpretHealth,
			"does not set healthy to true or false")
	case *healthy:
		return interpret.Healthy, nil
	}
	return interpret.Degraded, nil
}

// status returns the status of a response; nil if there is none.
func status(h Hook, answer *runtime.RawExtension) (map[string]any, error) {
	if answer == nil || len(answer.Raw) == 0 || string(answer.Raw) == "null" {
		return nil, nil
	}
	var status map[string]any
	if err := utiljson.Unmarshal(answer.Raw, &status); err != nil {
		return nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretStatus,
			"has a rawStatus that is not an object: it begins with %q", beginning(answer.Raw))
	}
	return status, nil
}

// components returns the components sorted. Their names are unique.
func components(h Hook, all []workv1alpha2.Component) ([]workv1alpha2.Component, error) {
	slices.SortFunc(all, func(a, b workv1alpha2.Component) int { return cmp.Compare(a.Name, b.Name) })
	for i, c := range all {
		switch {
		case c.Name == "":
			return nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretComponent, "has a component without a name")
		case i > 0 && all[i-1].Name == c.Name:
			return nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretComponent, "has two components named %q", c.Name)
		case c.Replicas < 0:
			return nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretComponent, "has %d replicas for component %q",
				c.Replicas, c.Name)
		}
	}
	return all, nil
}

func dependencies(h Hook, all []configv1alpha1.DependentObjectReference) ([]configv1alpha1.DependentObjectReference,
	error) {
	for _, d := range all {
		if d.APIVersion == "" || d.Kind == "" || d.Name == "" && d.LabelSelector == nil {
			return nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretDependency,
				"has a dependency without apiVersion, kind, and one of name and labelSelector: %+v", d)
		}
	}
	return interpret.SortDependencies(all), nil
}

func raw(obj *unstructured.Unstructured) (runtime.RawExtension, error) {
	text, err := json.Marshal(obj.Object)
	return runtime.RawExtension{Raw: text}, err
}
