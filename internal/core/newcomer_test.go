package core_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// A kind of a made-up operator, as CONTRIBUTING.md says: this is all that the hub knows about it. A file
// of internal/core/kind has the same call.
var _ = kind.Register(kind.Kind{
	GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Convoy"},
	Pods: kind.Pods{
		Templates: [][]string{{"spec", "ships", "template"}, {"spec", "lead", "template"}},
		Makers:    []string{"StatefulSet"},
	},
	Replicas:  []string{"spec", "ships", "number"},
	Counters:  kind.Counters{All: "ships", Updated: "newShips", Ready: "readyShips", Available: "readyShips"},
	Failures:  []kind.Failure{{Type: "ShipLost", Current: true}},
	Pause:     func(string) []string { return []string{"spec", "anchored"} },
	Revisions: true,
})

// convoy returns an object of it with more fields.
func convoy(t *testing.T, more string) *unstructured.Unstructured {
	return coretest.Object(t, `
apiVersion: sea.example.com/v1
kind: Convoy
metadata: {name: tea, namespace: shop, generation: 4}
spec:
  ships:
    number: 6
    template:
      metadata: {labels: {app: tea}}
      spec: {containers: [{name: hull, image: "hull:1", resources: {requests: {cpu: 200m}}, envFrom: [{configMapRef: {name: route}}]}]}
  lead: {template: {spec: {containers: [{name: wheel, image: "wheel:1", envFrom: [{secretRef: {name: charts}}]}]}}}
`+more)
}

func TestNewKindNeedsOneFile(t *testing.T) {
	in := interpret.New(builtin.Tier(), builtin.Standard(builtin.Tier()))
	template := convoy(t, "")
	gk := template.GroupVersionKind().GroupKind()

	n, needs, divided, err := in.Replicas(t.Context(), template)
	if err != nil || n != 6 || !divided || needs == nil || needs.ResourceRequest.Cpu().MilliValue() != 200 {
		t.Errorf("it has %d replicas that need %+v, %t, %v; want 6 of 200m", n, needs, divided, err)
	}
	part, err := in.Revise(t.Context(), template, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(part.Object, "spec", "ships", "number"); got != 2 {
		t.Errorf("a cluster with two of them gets %d", got)
	}
	part.SetLabels(map[string]string{"resourcetemplate.karmada.io/retain-replicas": "true"})
	if kept, err := in.Retain(t.Context(), part, template); err != nil {
		t.Error(err)
	} else if got, _, _ := unstructured.NestedInt64(kept.Object, "spec", "ships", "number"); got != 6 {
		t.Errorf("where members scale, the hub sends %d", got)
	}

	for what, c := range map[string]struct {
		spec, status string
		want         interpret.Health
	}{
		"not observed": {"", "{observedGeneration: 3, ships: 6, newShips: 6, readyShips: 6}", interpret.Progressing},
		"old pods":     {"", "{observedGeneration: 4, ships: 6, newShips: 5, readyShips: 6}", interpret.Progressing},
		"not ready":    {"", "{observedGeneration: 4, ships: 6, newShips: 6, readyShips: 5}", interpret.Progressing},
		"done":         {"", "{observedGeneration: 4, ships: 6, newShips: 6, readyShips: 6}", interpret.Healthy},
		"paused":       {"  anchored: true\n", "{observedGeneration: 4, ships: 6, newShips: 2, readyShips: 6}", interpret.Suspended},
	} {
		if got, err := in.Health(t.Context(), convoy(t, c.spec+"status: "+c.status)); err != nil || got != c.want {
			t.Errorf("%s: it is %v, %v; want %v", what, got, err, c.want)
		}
	}

	var reports []workv1alpha2.AggregatedStatusItem
	for cluster, status := range map[string]string{
		"eu": `{"ships": 4, "newShips": 4, "readyShips": 3, "observedGeneration": 2, "generation": 2, "resourceTemplateGeneration": 4}`,
		"us": `{"ships": 2, "newShips": 1, "readyShips": 2, "observedGeneration": 2, "generation": 2, "resourceTemplateGeneration": 4}`,
	} {
		reports = append(reports, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true,
			Status: &runtime.RawExtension{Raw: []byte(status)}})
	}
	whole, err := in.Aggregate(t.Context(), template, reports)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]int64{"ships": 6, "newShips": 5, "readyShips": 5, "observedGeneration": 4} {
		if got, _, _ := unstructured.NestedInt64(whole.Object, "status", field); got != want {
			t.Errorf("status.%s is %d, want %d", field, got, want)
		}
	}

	deps, err := in.Dependencies(t.Context(), template)
	if err != nil || len(deps) != 2 || deps[0].Name != "route" || deps[1].Name != "charts" {
		t.Errorf("it depends on %+v, %v; want what both templates refer to", deps, err)
	}
	var images []string
	for _, c := range interpret.Containers(template) {
		images = append(images, c.Image)
	}
	if !slices.Equal(images, []string{"hull:1", "wheel:1"}) {
		t.Errorf("its images are %v, want those of both templates", images)
	}
	if path := strings.Join(rollout.PausePath(template), "."); path != "spec.anchored" {
		t.Errorf("it is paused by %s", path)
	}
	if !fleet.KeepsHistory(template) || len(fleet.HistoryPaths(template)) != 2 {
		t.Errorf("users go back to %v, want both templates", fleet.HistoryPaths(template))
	}
	lost := map[string]any{"conditions": []any{map[string]any{"type": "ShipLost", "status": "True", "message": "storm"}}}
	if got := interpret.Refusal(gk, lost, false); got != "storm" {
		t.Errorf("it lacks pods because of %q", got)
	}
	if !pods.HasPods(&workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
		APIVersion: "sea.example.com/v1", Kind: "Convoy"}}) {
		t.Error("it has no pods")
	}
}
