package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// Kinds of Kubernetes have types of their own in the API server, and custom kinds do not.
func TestAGuardRefusesDirectChangesOfWorkloads(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, `{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseGuard, metadata: {name: `+ns+`},
		spec: {selector: {namespaces: [`+ns+`]}, require: Enforce}}`)
	admin := newPerson(t, "root", "system:masters")
	pods := `selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
		spec: {containers: [{name: main, image: "web:1"}]}}`
	for _, kind := range []string{"apps/v1, kind: Deployment", "apps.kruise.io/v1alpha1, kind: CloneSet"} {
		web := fleet.Hub.Apply(t, `{apiVersion: `+kind+`, metadata: {name: web, namespace: `+ns+`},
			spec: {replicas: 1, `+pods+`}}`)[0]
		patch := func(body string) error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(web.GroupVersionKind())
			u.SetNamespace(ns)
			u.SetName("web")
			return admin.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(body)))
		}
		image := func(image string) string {
			return `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}`
		}
		// The API server reads guards from its cache, which follows a moment later.
		kit.Eventually(t, "the guard counts", func() string {
			err := patch(image("web:2"))
			if err == nil {
				err = patch(image("web:1"))
				return "a direct change is accepted: " + errorText(err)
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ReleaseGuard "+ns+" requires releases") {
				return err.Error()
			}
			return ""
		})
		for what, body := range map[string]string{
			"a change of the replicas": `{"spec":{"replicas":2}}`,
			"a change of the labels":   `{"metadata":{"labels":{"a":"b"}}}`,
			"a change that waits": `{"metadata":{"annotations":{"argosy.io/release-strategy":"s"}},` +
				`"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:3"}]}}}}`,
		} {
			if err := patch(body); err != nil {
				t.Errorf("%s of %s: %v", what, kind, err)
			}
		}
	}
}
