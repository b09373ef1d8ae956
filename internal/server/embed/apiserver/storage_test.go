package apiserver

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// asked is the codec behind; it answers nothing.
type asked struct{ runtime.Codec }

var errAsked = errors.New("the schema was asked")

func (asked) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errAsked
}

func TestWhatIsStoredAsItIsWantedIsTakenAsItIs(t *testing.T) {
	codec := trusted{asked{}, schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}}
	into := &unstructured.Unstructured{}
	got, kind, err := codec.Decode([]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work","metadata":{"generation":9007199254740993},"status":null}`), nil, into)
	want := map[string]any{"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": map[string]any{"generation": int64(9007199254740993)}, "status": nil}
	if err != nil || got != into || *kind != codec.kind || !reflect.DeepEqual(into.Object, want) {
		t.Errorf("got %v of %v, %v; want what was stored", into.Object, kind, err)
	}
	for text, want := range map[string]string{
		`{"apiVersion":"work.karmada.io/v1alpha2","kind":"Work"}`:  errAsked.Error(),
		`{"apiVersion":"work.karmada.io/v1alpha1","kind":"Other"}`: errAsked.Error(),
		`{"metadata":{}}`: errAsked.Error(),
		`null`:            "the stored object is null",
	} {
		if _, _, err := codec.Decode([]byte(text), nil, &unstructured.Unstructured{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
