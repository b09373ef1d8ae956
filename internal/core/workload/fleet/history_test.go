package fleet

import (
	"fmt"
	"testing"
)

func TestRevisionHistoryLimit(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {revisionHistoryLimit: 0, containers: []}}")
	var kept []Revision
	remember := func(want string) {
		t.Helper()
		store, surplus := Remember(h.in.Template, kept)
		for _, s := range surplus {
			for i := range kept {
				if kept[i].Name == s.Name {
					kept = append(kept[:i:i], kept[i+1:]...)
					break
				}
			}
		}
		if store != nil {
			kept = append(kept, *store)
		}
		var numbers []int64
		for _, r := range kept {
			numbers = append(numbers, r.Number)
		}
		if got := fmt.Sprint(numbers); got != want {
			t.Errorf("kept are %s, want %s", got, want)
		}
		if again, more := Remember(h.in.Template, kept); again != nil || len(more) > 0 {
			t.Errorf("once more, %v is stored and %v deleted", again, more)
		}
	}
	if !KeepsHistory(h.in.Template) {
		t.Error("no history is kept")
	}
	remember("[1]")
	h.inject("v1", "s:1")
	remember("[1 2]")
	h.inject("v2", "s:1") // another name of the same content
	remember("[1 2]")
	h.inject("v3", "s:3")
	remember("[2 3]")
	h.inject("v4", "s:1") // a return to earlier content
	remember("[3 4]")
}

func TestRevisionWithAFormerNameIsStoredOnce(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: []}}")
	h.inject("v1", "s:1")
	now, _ := Remember(h.in.Template, nil)
	for name, data := range map[string]string{
		"the same bytes":      string(now.Data),
		"another order":       `{"containers": [{"name": "s", "image": "s:1"}]}`,
		"another order again": `{"containers":[{"image":"s:1","name":"s"}]}`,
	} {
		former := Revision{Name: "v1-former", Number: 4, Data: []byte(data)}
		if store, surplus := Remember(h.in.Template, []Revision{former}); store != nil || len(surplus) > 0 {
			t.Errorf("%s: %v is stored, and %v deleted", name, store, surplus)
		}
		if !former.IsCurrent(h.in.Template) {
			t.Errorf("%s: it is not the current revision", name)
		}
		other := Revision{Name: "other", Number: 5, Data: []byte(`{"containers":[]}`)}
		store, surplus := Remember(h.in.Template, []Revision{former, other})
		if store == nil || store.Number != 6 || len(surplus) != 1 || surplus[0].Name != former.Name {
			t.Errorf("%s: after a return to it, %v is stored, and %v deleted", name, store, surplus)
		}
		if other.IsCurrent(h.in.Template) {
			t.Errorf("%s: other content is the current revision", name)
		}
	}
}
