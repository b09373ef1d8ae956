package argo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheNodesOfALargeWorkflowAreCompressed(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		small bool
	}{{"of ten steps", 10, true}, {"of ten thousand", 10000, false}} {
		t.Run(c.name, func(t *testing.T) {
			nodes := map[string]any{}
			for i := range c.nodes {
				id := fmt.Sprintf("w-%d", i)
				nodes[id] = map[string]any{"id": id, "phase": "Succeeded", "message": strings.Repeat("x", 100)}
			}
			u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Running", "nodes": nodes}}}
			was := u.DeepCopy()
			if err := compress(u); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			_, as, _ := unstructured.NestedMap(u.Object, "status", "nodes")
			_, less, _ := unstructured.NestedString(u.Object, "status", compressed)
			if as != c.small || less == c.small || len(raw) > largest {
				t.Errorf("nodes as they are: %v, compressed: %v, %d bytes", as, less, len(raw))
			}
			if err := expand(u); err != nil || !reflect.DeepEqual(u, was) {
				t.Errorf("it is not what it was (%v)", err)
			}
		})
	}
}

func TestInvalidCompressedNodesAreAnError(t *testing.T) {
	for _, text := range []string{"no base64", "bm8gZ3ppcA=="} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{compressed: text}}}
		if err := expand(u); err == nil {
			t.Errorf("%q became %v", text, u.Object)
		}
	}
}
