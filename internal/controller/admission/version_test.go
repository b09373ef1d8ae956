package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/test/kit/membertest"
)

// versionOf returns a version of the ConfigMap settings that a ReleaseRevision uses.
func versionOf(t *testing.T, revision string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings-1f0c9a2e, namespace: shop,
		annotations: {argosy.io/version-of: settings}, ownerReferences: [{apiVersion: release.argosy.io/v1alpha1,
		kind: ReleaseRevision, name: `+revision+`, uid: r-1}]}, immutable: true, data: {value: "1"}}`)
}

// bindingNaming returns the binding of the CloneSet web that names a ReleaseRevision.
func bindingNaming(t *testing.T, revision string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: web-cloneset,
		namespace: shop, annotations: {argosy.io/effective-revision: `+revision+`}}, spec: {resource: {
		apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, namespace: shop, name: web}}}`)
}

func TestUsersKeepVersionsThatPodsRead(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, bindingNaming(t, "web-1"))
		used, unused := versionOf(t, "web-1"), versionOf(t, "web-0")
		const refusal = "pods of CloneSet web read ConfigMap settings-1f0c9a2e, a version of ConfigMap settings"
		without := func(u *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
			u = u.DeepCopy()
			unstructured.RemoveNestedField(u.Object, path...)
			return u
		}
		for name, change := range map[string]func(u *unstructured.Unstructured) *unstructured.Unstructured{
			"data": func(u *unstructured.Unstructured) *unstructured.Unstructured {
				return changed(t, u, "2", "data", "value")
			},
			"immutable": func(u *unstructured.Unstructured) *unstructured.Unstructured {
				return without(u, "immutable")
			},
			"owners": func(u *unstructured.Unstructured) *unstructured.Unstructured {
				return without(u, "metadata", "ownerReferences")
			},
		} {
			h.refuses("admin", change(used), used, refusal, "change ConfigMap settings and release CloneSet web")
			if _, _, err := h.write("admin", change(used), used); !apierrors.IsForbidden(err) {
				t.Errorf("a change of %s: %v, want Forbidden", name, err)
			}
			for who, version := range map[string]*unstructured.Unstructured{"admin": unused, user.APIServerUser: used} {
				if _, _, err := h.write(who, change(version), version); err != nil {
					t.Errorf("a change of %s by %s: %v", name, who, err)
				}
			}
		}
		if _, _, err := h.write("admin", changed(t, used, "b", "metadata", "labels", "a"), used); err != nil {
			t.Errorf("a label: %v", err)
		}
		if err := h.delete("admin", used); !apierrors.IsForbidden(err) {
			t.Errorf("deletion by a user: %v, want Forbidden", err)
		}
		// The garbage collector and the deletion of the namespace are the hub's own.
		if err := h.delete(user.APIServerUser, used); err != nil {
			t.Errorf("deletion by the hub: %v", err)
		}
		if err := h.delete("admin", standing("v1", "Namespace", "", "shop")); err != nil {
			t.Errorf("deletion of the namespace: %v", err)
		}
		if err := h.delete("admin", unused); err != nil {
			t.Errorf("deletion of one that no pod reads: %v", err)
		}
	})
}

func TestUsersMakeNoVersions(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		version := versionOf(t, "web-1")
		plain := version.DeepCopy()
		plain.SetAnnotations(nil)
		const key = "annotation argosy.io/version-of"
		h.refuses("admin", version, nil, "only the hub sets the "+key)
		h.refuses("admin", version, plain, "only the hub sets the "+key)
		h.refuses("admin", plain, version, "only the hub removes the "+key)
		for _, w := range []struct{ obj, old *unstructured.Unstructured }{{version, nil}, {version, plain},
			{plain, version}} {
			if _, _, err := h.write(user.APIServerUser, w.obj, w.old); err != nil {
				t.Errorf("the hub is refused: %v", err)
			}
		}
	})
}

func TestOrdinaryConfigMapsNeedNoOtherObject(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, bindingNaming(t, "web-1"))
		version := versionOf(t, "web-1")
		plain := version.DeepCopy()
		plain.SetAnnotations(nil)
		labelled := changed(t, version, "b", "metadata", "labels", "a")
		h.client.ClearActions()
		for _, w := range []struct{ obj, old *unstructured.Unstructured }{{plain, nil},
			{changed(t, plain, "2", "data", "value"), plain}, {labelled, version}} {
			if _, _, err := h.write("admin", w.obj, w.old); err != nil {
				t.Error(err)
			}
		}
		if err := h.delete("admin", plain); err != nil {
			t.Error(err)
		}
		if err := h.delete(user.APIServerUser, version); err != nil {
			t.Error(err)
		}
		for _, action := range h.client.Actions() {
			if action.Matches("list", "resourcebindings") {
				t.Error("bindings are read")
			}
		}
	})
}

func TestUsersKeepRevisionsInForce(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, changed(t, bindingNaming(t, "web-1"), `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop",`+
			`"name":"settings-1f0c9a2e"}]`, "metadata", "annotations", "resourcebinding.karmada.io/dependencies"))
		revision := func(name string) *unstructured.Unstructured {
			return standing("release.argosy.io/v1alpha1", "ReleaseRevision", "shop", name)
		}
		if err := h.delete("admin", revision("web-1")); !apierrors.IsForbidden(err) {
			t.Errorf("deletion of the one that the binding names: %v, want Forbidden", err)
		}
		if err := h.delete(user.APIServerUser, revision("web-1")); err != nil {
			t.Errorf("deletion by the hub: %v", err)
		}
		reads := revision("web-0")
		reads.Object["spec"] = map[string]any{"config": []any{map[string]any{"kind": "ConfigMap", "name": "settings",
			"hash": "1f0c9a2e"}}}
		if err := h.delete("admin", reads); !apierrors.IsForbidden(err) {
			t.Errorf("deletion of one whose version is in clusters: %v, want Forbidden", err)
		}
		if err := h.delete("admin", revision("web-0")); err != nil {
			t.Errorf("deletion of another one: %v", err)
		}
	})
}
