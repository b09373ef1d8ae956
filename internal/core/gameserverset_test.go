package core_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

const arena = `
apiVersion: game.kruise.io/v1alpha1
kind: GameServerSet
metadata: {name: arena, namespace: games, generation: 3}
spec:
  replicas: 6
  gameServerTemplate:
    metadata: {labels: {app: arena}}
    spec:
      containers: [{name: game, image: "arena:2", volumeMounts: [{name: save, mountPath: /save}]}]
      volumes: [{name: save, persistentVolumeClaim: {claimName: save}}, {name: maps, configMap: {name: maps}}]
    volumeClaimTemplates: [{metadata: {name: save}}]
  updateStrategy: {rollingUpdate: {partition: 3, maxUnavailable: 50%, podUpdatePolicy: InPlaceIfPossible}}
  scaleStrategy: {maxUnavailable: 3}
`

func TestGameServerSetIsInterpreted(t *testing.T) {
	in := interpret.New(builtin.Tier())
	template := coretest.Object(t, arena)
	if n, _, divided, err := in.Replicas(t.Context(), template); n != 6 || !divided || err != nil {
		t.Errorf("it has %d replicas, %t, %v", n, divided, err)
	}
	deps, err := in.Dependencies(t.Context(), template)
	if err != nil || len(deps) != 1 || deps[0].Name != "maps" {
		t.Errorf("it depends on %+v, %v; want the ConfigMap, and no claim, which members create", deps, err)
	}
	// Its status.replicas repeats the spec.
	status := func(observed, pods, updated, available string) string {
		return "status: {replicas: 6, observedGeneration: " + observed + ", currentReplicas: " + pods +
			", updatedReplicas: " + updated + ", availableReplicas: " + available + "}\n"
	}
	for what, c := range map[string]struct {
		status string
		want   interpret.Health
	}{
		"not observed":            {status("2", "6", "6", "6"), interpret.Progressing},
		"too few pods":            {status("3", "5", "3", "6"), interpret.Progressing},
		"one is not available":    {status("3", "6", "3", "5"), interpret.Progressing},
		"one is to be updated":    {status("3", "6", "2", "6"), interpret.Progressing},
		"waits at its partition":  {status("3", "6", "3", "6"), interpret.Suspended},
		"all are updated already": {status("3", "6", "6", "6"), interpret.Healthy},
	} {
		if got, err := in.Health(t.Context(), coretest.Object(t, arena+c.status)); got != c.want || err != nil {
			t.Errorf("%s: it is %v, %v; want %v", what, got, err, c.want)
		}
	}
}

func TestGameServerSetIsRolledOutInTheFleet(t *testing.T) {
	template := coretest.Object(t, arena)
	in := fleet.Input{Template: template, Divided: true}
	for cluster, n := range map[string]int64{"eu": 4, "us": 2} {
		part := template.DeepCopy()
		if err := unstructured.SetNestedField(part.Object, n, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		in.Members = append(in.Members, fleet.Member{Cluster: cluster, Replicas: n, Reachable: true, Base: part, Local: part})
	}
	result, err := fleet.Shares(in)
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][3]int64{"eu": {2, 2, 2}, "us": {1, 1, 1}} {
		m := result.Manifests[cluster]
		if m == nil {
			t.Fatalf("nothing is divided: %+v", result)
		}
		rolling := fields.Object(m.Object, "spec", "updateStrategy", "rollingUpdate")
		got := [3]int64{fields.Number(rolling, "partition"), fields.Number(rolling, "maxUnavailable"),
			fields.Number(m.Object, "spec", "scaleStrategy", "maxUnavailable")}
		if got != want {
			t.Errorf("%s keeps, may lose and creates %v pods, want %v", cluster, got, want)
		}
	}
}
