package ocm

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// For any ManifestWork each Work is in the execution namespace of its cluster, and contains exactly the named object
// with the Work's labels, whatever the member has.
func FuzzManifestWorks(f *testing.F) {
	const webhook = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"kube-system","annotations":{"work.karmada.io/name":"other","argosy.io/manifest-work":"x"},"labels":{"karmada.io/managed":"false"}}}`
	f.Add([]byte(`{"workload":{"manifests":[`+webhook+
		`,{"apiVersion":"a/b/c","kind":"X","metadata":{"name":"y"}},{"kind":5},7]}}`), ".data", "/metadata/name",
		`{"data":{"a":"b"}}`)
	f.Add([]byte(`{"workload":{"manifests":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"name":"c","namespace":"shop"},"spec":{"replicas":1}}]}}`), ".status.replicas", "/spec/replicas", `{"spec":{"replicas":3},"status":{"replicas":2}}`)
	f.Add([]byte(`{"workload":{"manifests":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"karmada-cluster"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"karmada-cluster"}}]},"deleteOption":{"propagationPolicy":"Orphan"},"executor":{}}`), "..", "/kind", `{}`)
	f.Add([]byte(`{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"}}]},"manifestConfigs":[{"resourceIdentifier":{"resource":"configmaps","name":"*","namespace":"*"},"updateStrategy":{"type":"CreateOnly"}}]}`), ".metadata.annotations['a']", "/metadata", `{"metadata":5}`)
	f.Fuzz(func(t *testing.T, spec []byte, path, ignored, content string) {
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "it", Generation: 2, UID: "mw-uid"}}
		if json.Unmarshal(spec, &mw.Spec) != nil {
			return
		}
		for _, item := range Items(mw, eu()) {
			if item.Object != nil {
				mw.Spec.ManifestConfigs = append(mw.Spec.ManifestConfigs, ocmv1.ManifestConfigOption{
					ResourceIdentifier: ocmv1.ResourceIdentifier{Group: item.Meta.Group, Resource: item.Meta.Resource,
						Namespace: item.Meta.Namespace, Name: item.Meta.Name},
					FeedbackRules: []ocmv1.FeedbackRule{{Type: ocmv1.FeedbackJSONPaths,
						JsonPaths: []ocmv1.JsonPath{{Name: "a", Path: path}}}},
					UpdateStrategy: &ocmv1.UpdateStrategy{Type: ocmv1.UpdateStrategyServerSideApply,
						ServerSideApply: &ocmv1.ServerSideApplyConfig{Force: true,
							IgnoreFields: []ocmv1.IgnoreField{{Condition: ocmv1.IgnoreOnSpokeChange, JSONPaths: []string{ignored}}}}},
				})
			}
		}
		asked := map[string]identity.Object{}
		for _, item := range Items(mw, eu()) {
			if item.Object != nil {
				asked[item.WorkName(mw.Name, nil)] = identity.FromManifest(item.Object)
			}
		}
		for _, w := range decide(mw).Works {
			m, err := execute.Manifest(w)
			if err != nil {
				continue // it is not applied
			}
			if w.Namespace != names.ExecutionSpace("eu") || w.Annotations[wellknown.ManifestWorkAnnotation] != mw.Name ||
				!execute.Owns(w, m) {
				t.Fatalf("the Work is %+v", w)
			}
			if want, ok := asked[w.Name]; !ok || want.Keeps(m) != nil {
				t.Fatalf("the Work of %s has %s", want, identity.FromManifest(m))
			}
			observed := m.DeepCopy()
			var more map[string]any
			if json.Unmarshal([]byte(content), &more) == nil {
				for key, value := range more {
					if key != "apiVersion" && key != "kind" && key != "metadata" {
						observed.Object[key] = runtime.DeepCopyJSONValue(value)
					}
				}
			}
			desired, err := execute.Desired(w, observed,
				func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
					return Leave(w, desired, observed)
				})
			if err == nil && identity.FromManifest(m).Keeps(desired) != nil {
				t.Fatalf("%s reaches the member as %s", identity.FromManifest(m), identity.FromManifest(desired))
			}
			_, _ = Feedback([]ocmv1.FeedbackRule{{Type: ocmv1.FeedbackJSONPaths,
				JsonPaths: []ocmv1.JsonPath{{Name: "a", Path: path}}}, {Type: ocmv1.FeedbackWellKnownStatus}}, observed)
		}
	})
}
