package identity_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/object/identity"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestIdentityOfAnObjectIsImmutable(t *testing.T) {
	const namespaced, cluster = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`
	for _, c := range []struct{ what, was, is, field string }{
		{"itself", namespaced, namespaced, ""},
		{"another version of its group", namespaced,
			`{apiVersion: apps/v1beta2, kind: Deployment, metadata: {namespace: shop, name: web}}`, ""},
		{"what it says", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, labels: {a: b}}, spec: {replicas: 3}}`, ""},
		{"an empty namespace is none", cluster, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: ""}}`,
			""},
		{"another group", namespaced, `{apiVersion: apps.kruise.io/v1, kind: Deployment, metadata: {namespace: shop, name: web}}`, "apiVersion"},
		{"the core group", namespaced, `{apiVersion: v1, kind: Deployment, metadata: {namespace: shop, name: web}}`,
			"apiVersion"},
		{"out of the core group", cluster,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Namespace, metadata: {name: shop}}`, "apiVersion"},
		{"what is no version and would count as the core group", cluster,
			`{apiVersion: a/b/c, kind: Namespace, metadata: {name: shop}}`, "apiVersion"},
		{"a slash alone", cluster, `{apiVersion: /, kind: Namespace, metadata: {name: shop}}`, "apiVersion"},
		{"an empty group that is written", cluster, `{apiVersion: /v1, kind: Namespace, metadata: {name: shop}}`,
			"apiVersion"},
		{"no version", namespaced, `{apiVersion: apps/, kind: Deployment, metadata: {namespace: shop, name: web}}`,
			"apiVersion"},
		{"no apiVersion", cluster, `{kind: Namespace, metadata: {name: shop}}`, "apiVersion"},
		{"another kind", namespaced, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: web}}`,
			"kind"},
		{"a kind that is no text", namespaced, `{apiVersion: apps/v1, kind: 1, metadata: {namespace: shop, name: web}}`,
			"kind"},
		{"another name", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: db}}`,
			"metadata.name"},
		{"no name", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, generateName: web}}`,
			"metadata.name"},
		{"another namespace", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: bank, name: web}}`,
			"metadata.namespace"},
		{"no namespace", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`, "metadata.namespace"},
		{"a namespace where there was none", cluster,
			`{apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: bank}}`, "metadata.namespace"},
		{"a namespace that is no text", cluster, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: 5}}`,
			"metadata.namespace"},
		{"no metadata", namespaced, `{apiVersion: apps/v1, kind: Deployment}`, "metadata.name"},
		{"metadata that is a list", namespaced, `{apiVersion: apps/v1, kind: Deployment, metadata: [web]}`, "metadata"},
	} {
		err := identity.FromManifest(object(t, c.was)).Keeps(object(t, c.is))
		var changed *identity.ChangedError
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.field != "" && (!errors.As(err, &changed) || changed.Field != c.field):
			t.Errorf("%s: got %v, want that %s is refused", c.what, err, c.field)
		}
	}
}

func TestRefusalNamesItsSubject(t *testing.T) {
	web := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}}`)
	err := identity.FromManifest(web).
		Keeps(object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: bank, name: web}}`))
	const want = `metadata.namespace of Deployment.apps shop/web would become "bank"; an override cannot change the group, kind, namespace or name of an object`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
