package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Get reads an object from the member, managed or not; nil if there is none.
func (m *Member) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace,
	name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	client, _, err := m.resource(ctx, obj)
	if err != nil {
		return nil, m.failed("get", obj, err)
	}
	got, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, m.failed("get", obj, err)
	}
	trim(got)
	return got, nil
}

// Create creates an object. If the object exists, whoever created it, it is not changed, and the error is
// AlreadyExists.
func (m *Member) Create(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, gvr, err := m.resource(ctx, desired)
	if err != nil {
		return nil, m.failed("create", desired, err)
	}
	made, err := client.Create(ctx, body(desired, gvr.Version), metav1.CreateOptions{FieldManager: Manager})
	if err != nil {
		return nil, m.failed("create", desired, err)
	}
	trim(made)
	return made, nil
}

// Apply sets the fields of desired, also those that others own, and removes fields that an earlier desired set. Other
// fields stay. observed is the object as returned by Cached or Get. If it was replaced or deleted in the meantime,
// nothing is written and the error is a Conflict. If desired has a resourceVersion, any change in the meantime is a
// Conflict.
func (m *Member) Apply(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.apply(ctx, desired, observed, true)
}

// ApplyYielding is Apply without taking fields from other owners: if another owner has a different value, it returns an
// error for which FieldConflict is true.
func (m *Member) ApplyYielding(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.apply(ctx, desired, observed, false)
}

// FieldConflict reports whether an object was not applied because others set fields of it otherwise.
func FieldConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// NodePortRefused reports whether an API server refused a Service because a node port is taken or out of its range.
func NodePortRefused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return strings.HasPrefix(c.Field, "spec.ports[") && strings.HasSuffix(c.Field, ".nodePort")
	})
}

func (m *Member) apply(ctx context.Context, desired, observed *unstructured.Unstructured,
	force bool) (*unstructured.Unstructured, error) {
	client, gvr, err := m.resource(ctx, desired)
	if err != nil {
		return nil, m.failed("apply", desired, err)
	}
	want := body(desired, gvr.Version)
	want.SetUID(observed.GetUID())
	want.SetResourceVersion(desired.GetResourceVersion())
	if created(observed.GetManagedFields()) {
		version, err := takeOwnership(ctx, client, observed, want.GetResourceVersion())
		if err != nil {
			return nil, m.failed("take over the fields of", desired, err)
		}
		want.SetResourceVersion(version)
	}
	got, err := client.Apply(ctx, want.GetName(), want, metav1.ApplyOptions{FieldManager: Manager, Force: force})
	if apierrors.IsUnsupportedMediaType(err) {
		got, err = replace(ctx, client, want)
	}
	if err != nil {
		return nil, m.failed("apply", desired, err)
	}
	trim(got)
	return got, nil
}

// takeOwnership converts the managed fields of our creation into fields of our apply. Otherwise fields that the
// template drops later would stay. The fields include defaults, which the member sets again. If version is set, it
// returns the version after the write.
func takeOwnership(ctx context.Context, client dynamic.ResourceInterface, observed *unstructured.Unstructured,
	version string) (string, error) {
	live, err := client.Get(ctx, observed.GetName(), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	conflict := func(why string) (string, error) {
		return "", apierrors.NewConflict(schema.GroupResource{Resource: live.GetKind()}, live.GetName(), errors.New(why))
	}
	switch {
	case live.GetUID() != observed.GetUID():
		return conflict("it was replaced")
	case version != "" && live.GetResourceVersion() != version:
		return conflict("it has changed")
	}
	// The patch has the resourceVersion, so a change in the meantime is a conflict.
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(Manager), Manager)
	if err != nil || patch == nil {
		return version, err
	}
	owned, err := client.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil || version == "" {
		return "", err
	}
	return owned.GetResourceVersion(), nil
}

// replace is Apply for an API that does not support server-side apply. It copies the fields that the object needs in
// the cluster, and takes the rest from desired.
func replace(ctx context.Context, client dynamic.ResourceInterface,
	desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := client.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	want := desired.DeepCopy()
	if want.GetResourceVersion() == "" {
		want.SetResourceVersion(live.GetResourceVersion())
	}
	want.SetFinalizers(live.GetFinalizers())
	want.SetOwnerReferences(live.GetOwnerReferences())
	want.SetLabels(over(live.GetLabels(), desired.GetLabels()))
	want.SetAnnotations(over(live.GetAnnotations(), desired.GetAnnotations()))
	if status, ok := live.Object["status"]; ok {
		want.Object["status"] = status
	}
	return client.Update(ctx, want, metav1.UpdateOptions{FieldManager: Manager})
}

func over(base, top map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		return top
	}
	maps.Copy(all, top)
	return all
}

// Delete deletes the observed object; the member deletes its dependents afterwards. It returns no error if the object
// is gone or was replaced.
func (m *Member) Delete(ctx context.Context, observed *unstructured.Unstructured) error {
	client, _, err := m.resource(ctx, observed)
	if err != nil {
		return m.failed("delete", observed, err)
	}
	uid, version, background := observed.GetUID(), observed.GetResourceVersion(), metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if execute.TakesAlong(observed.GroupVersionKind().GroupKind()) {
		o.Preconditions.ResourceVersion = &version // Somebody may have taken it over, or stopped its deletion.
	}
	err = client.Delete(ctx, observed.GetName(), o)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return m.failed("delete", observed, err)
	}
	return nil
}

// Release removes the hub's labels and annotations from an object and gives up its fields, in one write. Others can
// then apply the fields without a conflict. Values stay. If the object was replaced, or its labels and annotations
// changed since observed, the error is a Conflict.
func (m *Member) Release(ctx context.Context, observed *unstructured.Unstructured) error {
	client, gvr, err := m.resource(ctx, observed)
	if err != nil {
		return m.failed("release", observed, err)
	}
	live, err := client.Get(ctx, observed.GetName(), metav1.GetOptions{}) // observed has no managed fields
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return m.failed("release", observed, err)
	}
	released := execute.Released(observed)
	meta := map[string]any{}
	for field, keys := range map[string]struct{ seen, stay, now map[string]string }{
		"labels":      {observed.GetLabels(), released.GetLabels(), live.GetLabels()},
		"annotations": {observed.GetAnnotations(), released.GetAnnotations(), live.GetAnnotations()},
	} {
		marks := removal(keys.seen, keys.stay)
		for key := range marks {
			if live.GetUID() != observed.GetUID() || keys.now[key] != keys.seen[key] {
				return m.failed("release", observed, apierrors.NewConflict(gvr.GroupResource(), observed.GetName(),
					errors.New("it was replaced, or its marks have changed")))
			}
		}
		switch len(marks) {
		case 0:
		case len(keys.now):
			meta[field] = nil // a manager that sets an empty map owns it
		default:
			meta[field] = marks
		}
	}
	if entries := live.GetManagedFields(); slices.ContainsFunc(entries, isOurs) {
		meta["managedFields"] = disowned(entries)
	}
	if len(meta) == 0 {
		return nil
	}
	meta["uid"], meta["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	patch := []byte(text.JSON(map[string]any{"metadata": meta}))
	_, err = client.Patch(ctx, observed.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil && !apierrors.IsNotFound(err) {
		return m.failed("release", observed, err)
	}
	return nil
}

// isOurs reports whether an entry of managed fields is of our manager.
func isOurs(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == Manager }

// disowned returns the managed fields without ours. Kubernetes treats an object without any managed fields as owned by
// "before-first-apply", and an apply of other values conflicts with that. So if no others remain, it keeps an entry
// with an unused field.
func disowned(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	others := slices.DeleteFunc(slices.Clone(entries), isOurs)
	if len(others) == 0 {
		last := entries[len(entries)-1]
		others = append(others, metav1.ManagedFieldsEntry{Manager: Manager + "-released",
			Operation:  metav1.ManagedFieldsOperationUpdate,
			APIVersion: last.APIVersion, Time: last.Time, FieldsType: last.FieldsType,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + wellknown.ReleasedField + `":{}}}}`)})
	}
	return others
}

// PatchStatus merges a patch into the status of the observed object. If the patch names a resourceVersion and the
// object has another one, nothing is written and the error is a Conflict.
func (m *Member) PatchStatus(ctx context.Context, observed *unstructured.Unstructured,
	patch map[string]any) (*unstructured.Unstructured, error) {
	client, _, err := m.resource(ctx, observed)
	if err != nil {
		return nil, m.failed("patch the status of", observed, err)
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, m.failed("patch the status of", observed, err)
	}
	got, err := client.Patch(ctx, observed.GetName(), types.MergePatchType, raw,
		metav1.PatchOptions{FieldManager: Manager}, "status")
	if err != nil {
		return nil, m.failed("patch the status of", observed, err)
	}
	trim(got)
	return got, nil
}

// removal returns the part of a merge patch that takes from a map the keys that are not to stay.
func removal(has, stays map[string]string) map[string]any {
	patch := map[string]any{}
	for key := range has {
		if _, ok := stays[key]; !ok {
			patch[key] = nil
		}
	}
	return patch
}

// resource returns the client for the object's kind in the version that the member serves.
func (m *Member) resource(ctx context.Context,
	obj *unstructured.Unstructured) (dynamic.ResourceInterface, schema.GroupVersionResource, error) {
	mapping, err := m.Mapping(ctx, obj.GroupVersionKind())
	if err != nil {
		return nil, schema.GroupVersionResource{}, err
	}
	client := m.Client().Resource(mapping.Resource)
	if mapping.Namespaced {
		return client.Namespace(obj.GetNamespace()), mapping.Resource, nil
	}
	return client, mapping.Resource, nil
}

// body returns what is sent of an object: no status, and only the metadata that a template may set.
func body(obj *unstructured.Unstructured, version string) *unstructured.Unstructured {
	sent := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	delete(sent.Object, "status")
	sent.Object["metadata"] = map[string]any{}
	gvk := obj.GroupVersionKind()
	gvk.Version = version
	sent.SetGroupVersionKind(gvk)
	sent.SetName(obj.GetName())
	sent.SetNamespace(obj.GetNamespace())
	sent.SetLabels(obj.GetLabels())
	sent.SetAnnotations(obj.GetAnnotations())
	return sent
}

// failed returns an error with the action, the object and the cluster.
func (m *Member) failed(action string, obj *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %s in cluster %q: %w", action, text.Object(obj.GetKind(), obj.GetNamespace(), obj.GetName()),
		m.Name, err)
}
