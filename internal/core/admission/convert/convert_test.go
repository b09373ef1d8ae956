package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

const (
	legacy  = "work.karmada.io/v1alpha1"
	current = "work.karmada.io/v1alpha2"
)

const scheduled = `
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: nginx-deployment, namespace: default, annotations: {a: b}}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: nginx, uid: u, resourceVersion: "7"}
  propagateDeps: true
  replicas: 3
  replicaRequirements: {resourceRequest: {cpu: 100m}, namespace: default}
  placement: {}
  clusters: [{name: a, replicas: 2, components: [{name: c, replicas: 2}]}, {name: b, replicas: 1}]
status:
  schedulerObservedGeneration: 9007199254740993
  conditions: [{type: Scheduled, status: "True"}]
  aggregatedStatus: [{clusterName: a, applied: true, health: Healthy, status: {readyReplicas: 2}}, {clusterName: b, applied: true}]
`

func TestOldClientReadsItsFields(t *testing.T) {
	got := mustConvert(t, parse(t, scheduled), legacy)
	rest := got.GetAnnotations()[wellknown.BindingRestAnnotation]
	got.SetAnnotations(map[string]string{"a": "b"})
	want := parse(t, `
apiVersion: work.karmada.io/v1alpha1
kind: ResourceBinding
metadata: {name: nginx-deployment, namespace: default, annotations: {a: b}}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: nginx, resourceVersion: "7", replicas: 3, resourcePerReplicas: {cpu: 100m}}
  clusters: [{name: a, replicas: 2}, {name: b, replicas: 1}]
status:
  conditions: [{type: Scheduled, status: "True"}]
  aggregatedStatus: [{clusterName: a, applied: true, status: {readyReplicas: 2}}, {clusterName: b, applied: true}]
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
	for _, known := range []string{"nginx", "100m", "readyReplicas", `"b"`} {
		if strings.Contains(rest, known) {
			t.Errorf("the rest repeats %s: %s", known, rest)
		}
	}
	// What the types of v1alpha1 do not know would be refused by the schema.
	var typed workv1alpha1.ResourceBinding
	strict(t, got, &typed)
}

func TestNothingIsLostOnTheWayThroughV1alpha1(t *testing.T) {
	for name, text := range map[string]string{
		"scheduled": scheduled,
		"bare": "apiVersion: " + current +
			"\nkind: ClusterResourceBinding\nmetadata: {name: x}\nspec: {resource: {apiVersion: v1, kind: Namespace, name: x}}\n",
		"empty requirements mean something": "apiVersion: " + current +
			"\nkind: ResourceBinding\nmetadata: {name: x}\nspec: {replicaRequirements: {}, resource: {apiVersion: v1, kind: Pod, name: x}}\n",
	} {
		want := parse(t, text)
		got := mustConvert(t, mustConvert(t, want, legacy), current)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
		var typed workv1alpha2.ResourceBinding
		strict(t, got, &typed)
	}
}

func TestChangeOfAnOldClientIsStored(t *testing.T) {
	old := mustConvert(t, parse(t, scheduled), legacy)
	spec := old.Object["spec"].(map[string]any)
	spec["clusters"] = []any{map[string]any{"name": "a", "replicas": int64(5)}, map[string]any{"name": "c"}}
	got := mustConvert(t, old, current)
	want := []any{
		map[string]any{"name": "a", "replicas": int64(5),
			"components": []any{map[string]any{"name": "c", "replicas": int64(2)}}},
		map[string]any{"name": "c"},
	}
	if diff := cmp.Diff(want, got.Object["spec"].(map[string]any)["clusters"]); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestWriteWithoutAReadIsConvertedCompletely(t *testing.T) {
	got := mustConvert(t, parse(t, `
apiVersion: work.karmada.io/v1alpha1
kind: ResourceBinding
metadata: {name: x, namespace: default}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, name: x, replicas: 2, resourcePerReplicas: {cpu: "1"}}
  clusters: [{name: a}]
`), current)
	want := parse(t, `
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: x, namespace: default}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, name: x}
  replicas: 2
  replicaRequirements: {resourceRequest: {cpu: "1"}}
  clusters: [{name: a}]
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("v1alpha2 (-want +got):\n%s", diff)
	}
}

func TestARestOfAnotherShapeIsIgnored(t *testing.T) {
	want := parse(t, "apiVersion: "+current+"\nkind: ResourceBinding\nmetadata: {name: x}\n"+
		"spec: {resource: {apiVersion: v1, kind: Pod, name: x}, clusters: [{name: a}]}\nstatus: {}\n")
	for _, rest := range []string{"null", "[]", `"text"`, `{"spec": 1, "status": []}`, `{"spec": {"resource": "text"}}`} {
		old := mustConvert(t, want, legacy)
		old.SetAnnotations(map[string]string{wellknown.BindingRestAnnotation: rest})
		if diff := cmp.Diff(want, mustConvert(t, old, current)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rest, diff)
		}
	}
}

func TestConversionLeavesItsInputAlone(t *testing.T) {
	obj := parse(t, scheduled)
	mustConvert(t, obj, legacy)
	if diff := cmp.Diff(parse(t, scheduled), obj); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestARestTooLargeIsLeftOut(t *testing.T) {
	obj := parse(t, scheduled)
	obj.Object["spec"].(map[string]any)["placement"] = map[string]any{"x": strings.Repeat("y", restLimit)}
	if _, ok := mustConvert(t, obj, legacy).GetAnnotations()[wellknown.BindingRestAnnotation]; ok {
		t.Error("the annotation would not be accepted")
	}
}

func TestReview(t *testing.T) {
	raw := func(text string) runtime.RawExtension {
		data, err := parse(t, text).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	const other = "apiVersion: " + legacy +
		"\nkind: ClusterResourceBinding\nmetadata: {name: x}\nspec: {resource: {apiVersion: v1, kind: Namespace, name: x}}\n"
	request := func(objects ...runtime.RawExtension) *apiextensionsv1.ConversionReview {
		return &apiextensionsv1.ConversionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
			Request:  &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: legacy, Objects: objects},
		}
	}

	answer := Review(request(raw(scheduled), raw(other)))
	if answer.Kind != "ConversionReview" || answer.Request != nil || answer.Response.UID != "u" ||
		answer.Response.Result.Status != metav1.StatusSuccess {
		t.Fatalf("answer %+v", answer)
	}
	var names []string
	for _, o := range answer.Response.ConvertedObjects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(o.Raw); err != nil {
			t.Fatal(err)
		}
		names = append(names, obj.GetAPIVersion()+" "+obj.GetName())
	}
	if diff := cmp.Diff([]string{legacy + " nginx-deployment", legacy + " x"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	for want, review := range map[string]*apiextensionsv1.ConversionReview{
		"object 1: decode": request(raw(scheduled), runtime.RawExtension{Raw: []byte("{")}),
		"Work has only one version": request(raw("apiVersion: " + current +
			"\nkind: Work\nmetadata: {name: w}\n")),
		"cannot convert ResourceBinding": request(
			raw("apiVersion: a/v1\nkind: ResourceBinding\nmetadata: {name: w}\n")),
		"the ConversionReview has no request": {},
		"annotation argosy.io/v1alpha2-rest: ": {Request: &apiextensionsv1.ConversionRequest{DesiredAPIVersion: current,
			Objects: []runtime.RawExtension{raw("apiVersion: " + legacy +
				"\nkind: ResourceBinding\nmetadata: {name: w, annotations: {argosy.io/v1alpha2-rest: x}}\n")}}},
	} {
		answer := Review(review)
		if r := answer.Response.Result; r.Status != metav1.StatusFailure || !strings.Contains(r.Message, want) {
			t.Errorf("result %+v, want a failure with %q", r, want)
		}
	}
}

func mustConvert(t *testing.T, obj *unstructured.Unstructured, to string) *unstructured.Unstructured {
	t.Helper()
	out, err := Binding(obj, to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func strict(t *testing.T, obj *unstructured.Unstructured, into any) {
	t.Helper()
	data, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%v in %s", err, data)
	}
}

var parse = coretest.Object
