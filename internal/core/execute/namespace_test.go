package execute

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestNamespaceWithPreservedObjectsIsKept(t *testing.T) {
	ours := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "shop",
			"annotations": map[string]any{wellknown.CreatedAnnotation: "true"}}}}
	adopted := ours.DeepCopy()
	adopted.SetAnnotations(nil)
	object := func(group, kind, name string, change ...func(*Content)) Content {
		c := Content{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Name: name, UID: types.UID(kind + name)}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	of := func(work string) func(*Content) {
		return func(c *Content) {
			c.Managed, c.Work = true, types.NamespacedName{Namespace: "karmada-es-m1", Name: work}
		}
	}
	owned := func(uid string) func(*Content) {
		return func(c *Content) { c.Owners = append(c.Owners, types.UID(uid)) }
	}
	going := func(c *Content) { c.Going = true }
	always := []Content{object("", "ConfigMap", "kube-root-ca.crt"), object("", "ServiceAccount", "default"),
		object("", "Event", "e"),
		object("events.k8s.io", "Event", "e"), object("", "Endpoints", "web"),
		object("discovery.k8s.io", "EndpointSlice", "web-x"),
		object("", "Secret", "default-token-x", func(c *Content) { c.ServiceAccount = "default" })}
	states := map[string]WorkState{"goes": WorkGoes, "stands": WorkStands}

	for _, tc := range []struct {
		story    string
		ns       *unstructured.Unstructured
		contents []Content
		want     Fate
		wantText string
	}{
		{"it is empty but for what is in every namespace", ours, nil, FateDeleted, ""},
		{"it was there before", adopted, nil, FateReleased, "it existed before"},
		{"a volume that only the member has", ours, []Content{object("", "PersistentVolumeClaim", "data-db-0")}, FateReleased,
			"PersistentVolumeClaim data-db-0"},
		{"a Deployment that was preserved, with its pods", ours,
			[]Content{object("apps", "Deployment", "web"), object("apps", "ReplicaSet", "web-1", owned("Deploymentweb")),
				object("", "Pod", "web-1-a", owned("ReplicaSetweb-1"))}, FateReleased,
			"it contains objects that remain: Deployment web"},
		{"pods of a Deployment that has gone", ours, []Content{object("", "Pod", "web-1-a", owned("ReplicaSetweb-1"))},
			FateDeleted, ""},
		{"what goes already", ours, []Content{object("", "Pod", "web-1-a", going), object("", "Secret", "s", going)},
			FateDeleted, ""},
		{"what is about to go by the hub", ours, []Content{object("apps", "Deployment", "web", of("goes"))}, FateWaits,
			"Deployment web"},
		{"what is about to go, and what stays", ours,
			[]Content{object("apps", "Deployment", "web", of("goes")), object("", "Secret", "s")}, FateReleased, "Secret s"},
		{"what another Work still sends there", ours, []Content{object("apps", "Deployment", "web", of("stands"))},
			FateReleased, "Deployment web"},
		{"what no Work sends there any more", ours, []Content{object("apps", "Deployment", "web", of("lost"))}, FateReleased,
			"Deployment web"},
		{"what belongs to something in no namespace", ours,
			[]Content{object("", "Secret", "s", owned("other"), func(c *Content) { c.OwnedAbove = true })}, FateReleased,
			"Secret s"},
		{"another ServiceAccount", ours, []Content{object("", "ServiceAccount", "builder")}, FateReleased,
			"ServiceAccount builder"},
		{"many", ours, []Content{object("", "Secret", "a"), object("", "Secret", "b"), object("", "Secret", "c"),
			object("", "Secret", "d"), object("", "Secret", "e")},
			FateReleased, "Secret a, Secret b, Secret c and 2 more"},
	} {
		t.Run(tc.story, func(t *testing.T) {
			end, reason := EndNamespace(tc.ns, append(tc.contents, always...), func(w types.NamespacedName) WorkState {
				return states[w.Name]
			})
			if end != tc.want || !strings.Contains(reason, tc.wantText) {
				t.Errorf("it is %s: %s; want %s: … %s", end, reason, tc.want, tc.wantText)
			}
		})
	}
}

func TestNamespaceAwaitsWorksAndDefinitionsSettle(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	object := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind,
			"metadata": map[string]any{"name": "shop"}}}
	}
	namespace := object("v1", "Namespace")
	byUser := func(w *workv1alpha1.Work) { w.Finalizers = nil }
	ofManifestWork := func(w *workv1alpha1.Work) {
		w.Annotations = map[string]string{wellknown.ManifestWorkAnnotation: "m"}
	}
	none := func(*workv1alpha1.Work) {}
	for _, tc := range []struct {
		story              string
		object             *unstructured.Unstructured
		change             func(*workv1alpha1.Work)
		soon, later, taken bool
	}{
		{"a namespace that the hub deletes", namespace, none, true, true, true},
		{"a namespace whose Work a user deletes", namespace, byUser, true, false, false},
		{"a namespace of a ManifestWork", namespace, ofManifestWork, true, false, true},
		{"a definition", object("apiextensions.k8s.io/v1", "CustomResourceDefinition"), none, true, false, false},
		{"another kind called Namespace", object("example.com/v1", "Namespace"), none, true, false, false},
	} {
		t.Run(tc.story, func(t *testing.T) {
			w := &workv1alpha1.Work{}
			w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: at}, []string{OrderedFinalizer}
			raw, err := tc.object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			tc.change(w)
			if got := AwaitsWorks(w, tc.object, at.Add(WorksSettle-1)); got != tc.soon {
				t.Errorf("it awaits Works soon: %v", got)
			}
			if got := AwaitsWorks(w, tc.object, at.Add(time.Hour)); got != tc.later {
				t.Errorf("it awaits Works an hour later: %v", got)
			}
			if got := Recallable(w); got != tc.taken {
				t.Errorf("the hub can take its Work back: %v", got)
			}
		})
	}
}

func TestNamespacesAndDefinitionsOfTheHubAreMarked(t *testing.T) {
	for kind, apiVersion := range map[string]string{"Namespace": "v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1"} {
		t.Run(kind, func(t *testing.T) { saysThatTheHubMadeIt(t, apiVersion, kind) })
	}
	w := &workv1alpha1.Work{}
	w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)
	if desired, err := Desired(w, nil, nil); err != nil || desired.GetAnnotations()[wellknown.CreatedAnnotation] != "" {
		t.Errorf("another object says so, too: %v, %v", desired, err)
	}
}

func saysThatTheHubMadeIt(t *testing.T, apiVersion, kind string) {
	manifest := func() *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Namespace, w.Name = "karmada-es-m1", "w"
		w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
		w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"` + apiVersion + `","kind":"` + kind +
			`","metadata":{"name":"shop","annotations":{"argosy.io/created":"true"}}}`)
		return w
	}
	wantText := func(observed *unstructured.Unstructured) string {
		desired, err := Desired(manifest(), observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		return desired.GetAnnotations()[wellknown.CreatedAnnotation]
	}
	made, err := Desired(manifest(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := wantText(nil); got != "true" {
		t.Errorf("one that is made says %q", got)
	}
	if got := wantText(made); got != "true" {
		t.Errorf("one that was made says %q", got)
	}
	found := made.DeepCopy()
	found.SetAnnotations(nil)
	if got := wantText(found); got != "" {
		t.Errorf("one that was found says %q, whatever its template says", got)
	}
	if got := Released(made).GetAnnotations()[wellknown.CreatedAnnotation]; got != "" {
		t.Errorf("one that is released says %q", got)
	}
}
