package apiserver

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// asked is the codec behind; it answers nothing.
type asked struct{ runtime.Codec }

var errAsked = errors.New("the schema was asked")

func (asked) Decode([]byte, *schema.GroupVersionKind,
	runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errAsked
}

func TestStoredVersionNeedsNoConversion(t *testing.T) {
	codec := trusted{asked{}, schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}}
	into := &unstructured.Unstructured{}
	got, kind, err := codec.Decode([]byte(
		`{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work","metadata":{"generation":9007199254740993},"status":null}`),
		nil, into)
	want := map[string]any{"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
		"metadata": map[string]any{"generation": int64(9007199254740993)}, "status": nil}
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

// kept is a store that remembers what it was given.
type kept struct {
	storage.Interface
	objects []runtime.Object
}

func (k *kept) Create(_ context.Context, _ string, obj, _ runtime.Object, _ uint64) error {
	k.objects = append(k.objects, obj)
	return nil
}

func (k *kept) GuaranteedUpdate(_ context.Context, _ string, _ runtime.Object, _ bool, _ *storage.Preconditions,
	try storage.UpdateFunc, cached runtime.Object) error {
	obj, _, err := try(cached, storage.ResponseMeta{})
	if err == nil {
		k.objects = append(k.objects, obj)
	}
	return err
}

func TestObjectsAreAmendedBeforeTheyAreStored(t *testing.T) {
	store, refusal := &kept{}, errors.New("refused")
	a := amending{store, func(_ context.Context, u *unstructured.Unstructured) error {
		if u.GetName() == "bad" {
			return refusal
		}
		u.SetLabels(map[string]string{"amended": "true"})
		return nil
	}}
	named := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(name)
		return u
	}
	update := func(name string, err error) error {
		return a.GuaranteedUpdate(t.Context(), "k", nil, false, nil,
			func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
				return named(name), nil, err
			}, nil)
	}
	conflict := errors.New("conflict")
	for name, err := range map[string]error{
		"a create":  a.Create(t.Context(), "k", named("good"), nil, 0),
		"an update": update("good", nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Create(t.Context(), "k", named("bad"), nil, 0); err != refusal {
		t.Errorf("a bad one was created: %v", err)
	}
	if err := update("bad", nil); err != refusal {
		t.Errorf("a bad one was written: %v", err)
	}
	if err := update("good", conflict); err != conflict {
		t.Errorf("a conflict became %v", err)
	}
	if len(store.objects) != 2 {
		t.Fatalf("%d objects were stored, want 2", len(store.objects))
	}
	for _, obj := range store.objects {
		if obj.(*unstructured.Unstructured).GetLabels()["amended"] != "true" {
			t.Errorf("stored as it came: %v", obj)
		}
	}
}
