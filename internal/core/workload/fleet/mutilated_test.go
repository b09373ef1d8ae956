package fleet

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
)

const kruise = "apps.kruise.io"

var cloneSetKind = schema.GroupKind{Group: kruise, Kind: "CloneSet"}

// whole objects of each kind, of which tests break parts.
var examples = map[schema.GroupKind]string{
	{Group: kruise, Kind: "CloneSet"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 6, template: {spec: {a: 1}},
		updateStrategy: {partition: 50%, maxUnavailable: 2, maxSurge: 1}, scaleStrategy: {maxUnavailable: 1, podsToDelete: [x-1]}}}`,
	{Group: kruise, Kind: "StatefulSet"}: `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}},
		spec: {replicas: 6, ordinals: {start: 1}, reserveOrdinals: [2, 4-5], template: {spec: {a: 1}}, updateStrategy: {rollingUpdate: {partition: 2}}}}`,
	{Group: "apps", Kind: "StatefulSet"}: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {replicas: 6, ordinals: {start: 1}, template: {a: 1}}}`,
	{Group: kruise, Kind: "UnitedDeployment"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: x}, spec: {replicas: 6,
		topology: {subsets: [{name: a, replicas: 50%}, {name: b, minReplicas: 1, maxReplicas: 4}, {name: c, replicas: 0, clusterAffinity: {clusterNames: [c1]}}]}, updateStrategy: {manualUpdate: {partitions: {a: 1, b: 1}}}}}`,
	{Group: kruise, Kind: "SidecarSet"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, ` + fleetWide + `, spec: {containers: [{name: c}],
		injectionStrategy: {revision: {customVersion: v}}, updateStrategy: {partition: 50%}}}`,
	{Group: kruise, Kind: "WorkloadSpread"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, ` + fleetWide +
		`, spec: {subsets: [{name: a, maxReplicas: 3}, {name: b}]}}`,
	{Group: "rollouts.kruise.io", Kind: "Rollout"}: `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, ` +
		fleetWide + `, spec: {strategy: {canary: {steps: [{replicas: 2}, {replicas: 50%}]}}}}`,
	{Group: kruise, Kind: "BroadcastJob"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, ` + fleetWide +
		`, spec: {parallelism: 1, paused: false}}`,
	{Group: kruise, Kind: "ContainerRecreateRequest"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {name: x},
		spec: {podName: p, containers: [{name: c}]}}`,
	{Group: kruise, Kind: "EphemeralJob"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, ` + fleetWide +
		`, spec: {replicas: 4, parallelism: 2}}`,
	{Group: kruise, Kind: "ImagePullJob"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, ` + fleetWide +
		`, spec: {parallelism: 2}}`,
	{Group: kruise, Kind: "ImageListPullJob"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: ImageListPullJob, ` +
		fleetWide + `, spec: {parallelism: 2, images: [a, b]}}`,
	{Group: kruise, Kind: "DaemonSet"}: `{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, ` + fleetWide +
		`, spec: {template: {a: 1}, updateStrategy: {rollingUpdate: {maxSurge: 1}}}}`,
	{Group: "game.kruise.io", Kind: "GameServerSet"}: `{apiVersion: game.kruise.io/v1alpha1, kind: GameServerSet, metadata: {name: x}, spec: {replicas: 6, gameServerTemplate: {spec: {a: 1}}, updateStrategy: {rollingUpdate: {partition: 2, maxUnavailable: 30%}}, scaleStrategy: {maxUnavailable: 2}}}`,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: `{apiVersion: autoscaling/v2, ` +
		`kind: HorizontalPodAutoscaler, ` + fleetWide + `, spec: {minReplicas: 2, maxReplicas: 9}}`,
	{Group: "keda.sh", Kind: "ScaledObject"}: `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: x, ` +
		`annotations: {argosy.io/rollout-scope: Fleet, autoscaling.keda.sh/paused-replicas: "4"}}, ` +
		`spec: {maxReplicaCount: 9}}`,
	{Group: "policy", Kind: "PodDisruptionBudget"}: `{apiVersion: policy/v1, kind: PodDisruptionBudget, ` +
		fleetWide + `, spec: {minAvailable: 50%}}`,
	{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}: `{apiVersion: policy.kruise.io/v1alpha1, ` +
		`kind: PodUnavailableBudget, ` + fleetWide + `, spec: {maxUnavailable: 3}}`,
}

func TestMutilatedObjectsAreRefusedOrDividedAndBreakNothing(t *testing.T) {
	for k := range kind.List() {
		if k.Divides != kind.DividesNothing && examples[k.GroupKind] == "" {
			t.Errorf("there is no example of %s", k)
		}
	}
	for gk, example := range examples {
		t.Run(gk.String(), func(t *testing.T) {
			rounds := int64(300)
			if testing.Short() {
				rounds /= 10
			}
			for seed := range rounds {
				random := rand.New(rand.NewSource(seed))
				h := newHub(t, example, 3, 3)
				h.in.Divided = handlerOf(h.in.Template).divides
				h.in.Pods = map[string][]string{"p": {"c1", "c2"}}
				// One Work stands and has reported; both, and the template, may be broken.
				h.look()
				h.report("replicas: 3, latestRevision: a", "desired: 1, matchedPods: 2")
				breaks(random, h.in.Template.Object, "spec")
				for i := range h.in.Members {
					m := &h.in.Members[i]
					m.Base = h.in.Template.DeepCopy()
					m.Local = m.Base.DeepCopy()
					breaks(random, m.Local.Object, "spec")
					m.Work = m.Work.DeepCopy()
					var manifest unstructured.Unstructured
					if err := manifest.UnmarshalJSON(m.Work.Spec.Workload.Manifests[0].Raw); err != nil {
						t.Fatal(err)
					}
					breaks(random, manifest.Object, "spec")
					raw, err := manifest.MarshalJSON()
					if err != nil {
						t.Fatal(err)
					}
					m.Work.Spec.Workload.Manifests[0].Raw = raw
					m.Work.Annotations[wellknown.FleetAnnotation] = []string{"", "{", `{"grant": -4}`,
						`{"partition": "x"}`}[random.Intn(4)]
					if random.Intn(2) == 0 {
						m.Work.Status.ManifestStatuses[0].Status = &runtime.RawExtension{Raw: []byte(
							`{"replicas":"x","updatedReplicas":-5,"desired":1e300,"subsetStatuses":[1,{"name":2}]}`)}
					}
				}
				h.in.Record = []string{"", `{"c1":[0]}`, `{"c9":["0-1"]}`, "x"}[random.Intn(4)]
				before := fmt.Sprint(h.in.Template.Object, h.in.Members[0].Base.Object)
				if result, err := Shares(h.in); err == nil && len(result.Manifests) > 2 {
					t.Errorf("seed %d: there are %d manifests for two members", seed, len(result.Manifests))
				}
				if fmt.Sprint(h.in.Template.Object, h.in.Members[0].Base.Object) != before {
					t.Fatalf("seed %d: the arguments are changed", seed)
				}
			}
		})
	}
}

// breaks puts something of another type somewhere below key, or takes it away.
func breaks(random *rand.Rand, m map[string]any, key string) {
	inner, ok := m[key].(map[string]any)
	if ok && len(inner) > 0 && random.Intn(4) > 0 {
		n := random.Intn(len(inner))
		for _, k := range sortedKeys(inner) {
			if n--; n < 0 {
				breaks(random, inner, k)
				return
			}
		}
	}
	if v := []any{nil, "x", int64(-3), int64(1 << 40), 1.5, true, []any{}, []any{"a", nil, map[string]any{}},
		map[string]any{}, "90%", "999999999999%"}[random.Intn(11)]; v == nil {

		delete(m, key)
	} else {
		m[key] = v
	}
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
