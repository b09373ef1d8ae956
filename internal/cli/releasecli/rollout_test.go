package releasecli

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRolloutStatusCountsReplicasOfTheObservedGenerationOnly(t *testing.T) {
	status := func(template, generation, observed float64) map[string]any {
		return map[string]any{"replicas": 3.0, "updatedReplicas": 3.0, "readyReplicas": 2.0,
			"resourceTemplateGeneration": template, "generation": generation, "observedGeneration": observed}
	}
	for name, c := range map[string]struct {
		status  map[string]any
		updated int64
	}{
		"the member observed the change":         {status(4, 7, 7), 3},
		"its controller has not observed it yet": {status(4, 7, 6), 0},
		"the member has not got the change yet":  {status(3, 6, 6), 0},
		"the member does not report a generation": {map[string]any{"replicas": 3.0, "updatedReplicas": 3.0,
			"readyReplicas": 2.0}, 3},
		"it keeps the pods of a former revision": {map[string]any{"replicas": 3.0, "updatedReplicas": 3.0,
			"readyReplicas": 2.0, "resourceTemplateGeneration": 4.0, "formerRevision": "web-1"}, 0},
		"there is no status yet": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := []any{"eu", "Healthy", int64(3), c.updated, int64(2)}
			if c.status == nil {
				want = []any{"eu", "Healthy", int64(0), int64(0), int64(0)}
			}
			state := clusterState{cluster: "eu", health: "Healthy", status: c.status}
			template := &unstructured.Unstructured{}
			template.SetGeneration(4)
			if got := state.replicaCells(template); !reflect.DeepEqual(got, want) {
				t.Errorf("the row is %v, want %v", got, want)
			}
		})
	}
}
