package fleet_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

func TestAnnotationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/openkruise.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range fleet.HubAnnotations() {
		if !strings.Contains(string(text), "| `"+key+"` |") {
			t.Errorf("docs/openkruise.md has no row for %s", key)
		}
	}
}

// A template author who could write the record would have the hub name pods that it never sent.
func TestTemplateDoesNotRecordSentPods(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1alpha1",
		"kind": "CloneSet"}}
	template.SetAnnotations(map[string]string{wellknown.SentPodsToDeleteAnnotation: "a", "team": "web"})
	fleet.Bare(template)
	if got := template.GetAnnotations(); len(got) != 1 || got["team"] != "web" {
		t.Errorf("annotations sent to members are %v, want only team", got)
	}
}
