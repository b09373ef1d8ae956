package builtin

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// What looks well and may not be, and what waits without a fault, is said where the status is reported.
func TestNotesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		health interpret.Health
		want   string // part of what is noted; empty for nothing
	}{
		"a SidecarSet in no pod": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {generation: 1}, status: {observedGeneration: 1}}",
			interpret.Healthy, "it is not injected into any pod"},
		"a SidecarSet of which nobody took note": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {generation: 2}, status: {observedGeneration: 1}}",
			interpret.Progressing, ""},
		"a SidecarSet in a pod": {
			"{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {generation: 1}, status: {observedGeneration: 1, matchedPods: 1, updatedPods: 1, updatedReadyPods: 1}}", interpret.Healthy, ""},
		"a UnitedDeployment with pods without a node": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 1}, spec: {replicas: 5}, status: {observedGeneration: 1, replicas: 5, readyReplicas: 5, updatedReplicas: 5, reservedPods: 3, " +
				"subsetStatuses: [{name: b, reservedPods: 1}, {name: a, reservedPods: 2}, {name: c}]}}", interpret.Progressing,
			"2 in subset a, 1 in subset b"},
		"a UnitedDeployment that says how many alone": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 1}, spec: {replicas: 5}, status: {observedGeneration: 1, replicas: 5, readyReplicas: 5, updatedReplicas: 5, reservedPods: 3}}", interpret.Progressing, "temporarily replaced elsewhere: 3"},
		"a UnitedDeployment that is well": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 1}, spec: {replicas: 5}, status: {observedGeneration: 1, replicas: 5, readyReplicas: 5, updatedReplicas: 5}}", interpret.Healthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := read(t, c.object)
			before := u.DeepCopy()
			interpreter := interpret.New(Tier())
			if h, err := interpreter.Health(t.Context(), u); err != nil || h != c.health {
				t.Errorf("it is %s, %v, want %s", h, err, c.health)
			}
			status, err := interpreter.Reflect(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(interpret.Notes(status), "; "); (got == "") != (c.want == "") ||
				!strings.Contains(got, c.want) {
				t.Errorf("noted is %q, want %q", got, c.want)
			}
			if !equal(before.Object, u.Object) {
				t.Error("the member's object was changed")
			}
			if u.GetKind() == "SidecarSet" || c.want == "" {
				return // its template has no conditions
			}
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			folded, err := interpreter.Aggregate(t.Context(), u, []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", Status: &runtime.RawExtension{Raw: raw}},
				{ClusterName: "m2", Status: &runtime.RawExtension{Raw: []byte(`{"conditions": []}`)}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := conditionText(object(folded.Object, "status"), interpret.PodsReserved, "message"); !strings.HasPrefix(got,
				"m1: ") || !strings.Contains(got, c.want) {
				t.Errorf("the template says %q", got)
			}
		})
	}
}
