package kruise

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// Whatever the object, and whichever version it begins in: there and back it is what it was, and on the way it has
// nothing that the other version does not know.
func TestThereAndBackNothingIsLost(t *testing.T) {
	for gk, k := range kinds() {
		t.Run(gk.String(), func(t *testing.T) {
			for seed := range int64(60) {
				for _, from := range []string{alpha, beta} {
					obj := random(seed, gk, k, from)
					before := obj.DeepCopy()
					there := convertTo(t, obj, otherVersion(from))
					back := convertTo(t, there, from)
					if diff := cmp.Diff(before.Object, back.Object); diff != "" {
						t.Fatalf("seed %d from %s (-before +after):\n%s\nas %s:\n%s", seed, from, diff,
							otherVersion(from), text(t, there))
					}
					if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
						t.Fatalf("seed %d from %s: the conversion changed what it was given:\n%s", seed, from, diff)
					}
					known := there.DeepCopy()
					for _, part := range []string{"spec", "status"} {
						s := k.schemas[otherVersion(from)].Properties[part]
						prune(known.Object[part], &s)
					}
					if diff := cmp.Diff(there.Object, known.Object); diff != "" {
						t.Fatalf("seed %d from %s: fields that %s does not have:\n%s", seed, from, otherVersion(from), diff)
					}
				}
			}
		})
	}
}

// What a client of one version wrote over what it had read is what other clients of that version read, whatever the
// other version says besides.
func TestVersionReadsItsOwnWrites(t *testing.T) {
	for gk, k := range kinds() {
		t.Run(gk.String(), func(t *testing.T) {
			for seed := range int64(60) {
				for _, stored := range []string{alpha, beta} {
					version := otherVersion(stored)
					read := convertTo(t, random(seed, gk, k, stored), version)
					written := random(seed+1000, gk, k, version) // all of its spec is another
					written.SetAnnotations(maps.Clone(read.GetAnnotations()))
					got := convertTo(t, convertTo(t, written, stored), version)
					// Where the two happen to agree, what the other version said may hold still.
					wrong := differences(got.Object["spec"].(map[string]any), written.Object["spec"].(map[string]any))
					if len(wrong) > 0 {
						t.Fatalf("seed %d, %s over %s: %v\nread:\n%s\nwritten:\n%s\nread again:\n%s", seed, version, stored, wrong,
							text(t, read), text(t, written), text(t, got))
					}
				}
			}
		})
	}
}

func TestConversionOfFields(t *testing.T) {
	for _, tc := range []struct{ name, old, new string }{
		{
			"a CloneSet's update is told below rollingUpdate, and reuse of claims the other way round",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {updateStrategy: {type: InPlaceIfPossible, partition: 90%, maxUnavailable: 1, paused: true}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {scaleStrategy: {enablePVCReuse: true}, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 90%, maxUnavailable: 1, paused: true}}}}`,
		},
		{
			"a CloneSet that keeps its claims to itself",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {scaleStrategy: {disablePVCReuse: true, podsToDelete: [a]}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {scaleStrategy: {podsToDelete: [a]}}}`,
		},
		{
			"annotations and labels of a CloneSet are fields",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x, labels: {apps.kruise.io/cloneset-scaling-exclude-preparing-delete: "true"}, annotations: {apps.kruise.io/image-predownload-parallelism: 30%, apps.kruise.io/image-predownload-timeout-seconds: "60"}}, spec: {}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {scaleStrategy: {enablePVCReuse: true, excludePreparingDelete: true}, updateStrategy: {rollingUpdate: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 30%, imagePreDownloadTimeoutSeconds: 60}}}}}`,
		},
		{
			"a SidecarSet's version is a field",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: x, labels: {apps.kruise.io/sidecarset-custom-version: v1}}, spec: {containers: [{name: c, image: i}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {customVersion: v1, containers: [{name: c, image: i}]}}`,
		},
		{
			"the CloneSet in a UnitedDeployment has the shape of its version",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: x}, spec: {template: {cloneSetTemplate: {spec: {updateStrategy: {type: InPlaceOnly, partition: 1}}}}}, status: {updateStatus: {updatedRevision: r}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: x}, spec: {template: {cloneSetTemplate: {spec: {scaleStrategy: {enablePVCReuse: true}, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 1}}}}}}, status: {updatedRevision: r}}`,
		},
		{
			"the clusters of a UnitedDeployment's subsets, which are the hub's own",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: x}, spec: {topology: {subsets: [{name: a, clusterAffinity: {clusterNames: [c], labelSelector: {matchLabels: {a: b}}}}]}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: x}, spec: {topology: {subsets: [{name: a, clusterAffinity: {clusterNames: [c], labelSelector: {matchLabels: {a: b}}}}]}}}`,
		},
		{
			"the revision of a DaemonSet",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {name: x}, status: {daemonSetHash: h, numberReady: 2}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {name: x}, status: {updateRevision: h, numberReady: 2}}`,
		},
		{
			"what is known of a container's run is status",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {name: x}, spec: {podName: p, containers: [{name: c, statusContext: {containerID: i, restartCount: 1}}]}, status: {}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {name: x}, spec: {podName: p, containers: [{name: c}]}, status: {containerStatusSnapshot: [{name: c, containerID: i, restartCount: 1}]}}`,
		},
		{
			"the namespaces of a ResourceDistribution",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ResourceDistribution, metadata: {name: x}, spec: {targets: {namespaceLabelSelector: {matchLabels: {a: b}}}}, status: {conditions: [{type: T, status: "True", failedNamespace: [n]}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: x}, spec: {targets: {namespaceSelector: {matchLabels: {a: b}}}}, status: {conditions: [{type: T, status: "True", failedNamespaces: [n]}]}}`,
		},
		{
			"the nodes of a WorkloadSpread",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, metadata: {name: x}, spec: {subsets: [{name: a, requiredNodeSelectorTerm: {t: 1}, preferredNodeSelectorTerms: [{w: 1}]}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {name: x}, spec: {subsets: [{name: a, requiredNodeSelector: {t: 1}, preferredNodeSelector: [{w: 1}]}]}}`,
		},
		{
			"the topology of a PersistentPodState",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {name: x}, spec: {requiredPersistentTopology: {nodeTopologyKeys: [a]}, preferredPersistentTopology: [{weight: 1, preference: {nodeTopologyKeys: [b]}}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {name: x}, spec: {requiredPersistentTopology: {keys: [a]}, preferredPersistentTopology: [{weight: 1, preference: {keys: [b]}}]}}`,
		},
		{
			"annotations of a PodUnavailableBudget are fields",
			`{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: x, annotations: {kruise.io/pub-protect-operations: "DELETE,UPDATE", pub.kruise.io/protect-total-replicas: "5", own: kept}}, spec: {maxUnavailable: 1}}`,
			`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: x, annotations: {own: kept}}, spec: {maxUnavailable: 1, protectOperations: [DELETE, UPDATE], protectTotalReplicas: 5}}`,
		},
		{
			"the weight of a Rollout's step is traffic, and its workload is at the top",
			`{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout, metadata: {name: x, annotations: {rollouts.kruise.io/rolling-style: partition}}, spec: {objectRef: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}}, strategy: {canary: {steps: [{weight: 5, replicas: 1}]}}}}`,
			`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: x}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}, strategy: {canary: {steps: [{traffic: 5%, replicas: 1}]}}}}`,
		},
		{
			"the workload of a BatchRelease",
			`{apiVersion: rollouts.kruise.io/v1alpha1, kind: BatchRelease, metadata: {name: x}, spec: {targetReference: {workloadRef: {name: d}}, releasePlan: {}}}`,
			`{apiVersion: rollouts.kruise.io/v1beta1, kind: BatchRelease, metadata: {name: x}, spec: {workloadRef: {name: d}, releasePlan: {}}}`,
		},
	} {
		old, new := parse(t, tc.old), parse(t, tc.new)
		if diff := cmp.Diff(new.Object, convertTo(t, old, beta).Object); diff != "" {
			t.Errorf("%s, as v1beta1 (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(old.Object, convertTo(t, new, alpha).Object); diff != "" {
			t.Errorf("%s, as v1alpha1 (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestASidecarSetOfOneNamespaceIsNotInjectedIntoOthers(t *testing.T) {
	old := parse(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: x}, spec: {namespace: shop, containers: [{name: c}]}}`)
	got, err := ForMember(old, []string{"apps.kruise.io/v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}, containers: [{name: c}]}}`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("in the member (-want +got):\n%s", diff)
	}
}

func TestClientOfOneVersionKeepsFieldsOfTheOther(t *testing.T) {
	stored := parse(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 3, reserveOrdinals: [1, 2-4], ordinals: {start: 2}}}`)
	read := convertTo(t, stored, alpha)
	read.Object["spec"].(map[string]any)["replicas"] = int64(5)
	want := stored.DeepCopy()
	want.Object["spec"].(map[string]any)["replicas"] = int64(5)
	if diff := cmp.Diff(want.Object, convertTo(t, read, beta).Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemberGetsAServedVersionOrAReason(t *testing.T) {
	const oldAPI, newAPI = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
	for _, tc := range []struct {
		name, obj, served string
		version           string // empty: as it is
		lost              []string
	}{
		{"the version that it has", `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {}}`,
			newAPI + " " + oldAPI, newAPI, nil},
		{"the older", `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {updateStrategy: {type: RollingUpdate}}}`, oldAPI, oldAPI, nil},
		{"the newer", `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {}}`, newAPI, newAPI,
			nil},
		{"no version that is known here",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {}}`, "apps.kruise.io/v2", "", nil},
		{"no conversion of a kind of one version",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, metadata: {name: x}, spec: {}}`, newAPI, "", nil},
		{"what only v1beta1 of CloneSet says",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {updateStrategy: {type: OnDelete}}}`, oldAPI, "", []string{"spec.updateStrategy.type"}},
		{"what only v1beta1 of StatefulSet says",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x}, spec: {reserveOrdinals: [1], ordinals: {start: 3}, lifecycle: {preDelete: {markPodNotReady: true}}}}`, oldAPI, "", []string{"spec.lifecycle.preDelete.markPodNotReady", "spec.ordinals.start", "spec.reserveOrdinals"}},
		{"what goes without saying", `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x}, spec: {reserveOrdinals: [], ordinals: {start: 0}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}}`, oldAPI, oldAPI, nil},
		{"a job that v1alpha1 of AdvancedCronJob cannot make",
			`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, metadata: {name: x}, spec: {template: {imageListPullJobTemplate: {spec: {images: [a]}}}}}`, oldAPI, "", []string{"spec.template.imageListPullJobTemplate.spec.images"}},
		{"a Rollout's blue and green", `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: x}, spec: {strategy: {blueGreen: {steps: [{traffic: 5%}]}}}}`, "rollouts.kruise.io/v1alpha1", "", []string{"spec.strategy.blueGreen.steps"}},
	} {
		obj := parse(t, tc.obj)
		got, err := ForMember(obj, strings.Fields(tc.served))
		var lossy *Lossy
		switch {
		case tc.lost != nil:
			if !errors.As(err, &lossy) || !slices.Equal(lossy.Fields, tc.lost) {
				t.Errorf("%s: error %v, want one about %v", tc.name, err, tc.lost)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.version == "":
			if got != nil {
				t.Errorf("%s: %v, want nothing", tc.name, got)
			}
		case got == nil || got.GetAPIVersion() != tc.version || len(got.GetAnnotations()) > 0:
			t.Errorf("%s: %v, want %s without annotations", tc.name, got, tc.version)
		}
	}
}

// The template is stored as v1beta1, with what its author wrote as v1alpha1 in an annotation. Members do not get the
// annotation, and those that serve v1alpha1 get what the author wrote.
func TestFieldsOfOneVersionReachMembersServingIt(t *testing.T) {
	written := parse(t, `{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout, metadata: {name: x}, spec: {rolloutID: "7", objectRef: {workloadRef: {name: d}}}}`)
	stored := convertTo(t, written, beta)
	if _, ok := stored.GetAnnotations()[wellknown.RestAnnotation(alpha)]; !ok {
		t.Fatalf("nothing is kept: %s", text(t, stored))
	}
	got, err := ForMember(stored, []string{"rollouts.kruise.io/v1alpha1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Object, got.Object); diff != "" {
		t.Errorf("in a member of v1alpha1 (-want +got):\n%s", diff)
	}
	_, err = ForMember(stored, []string{"rollouts.kruise.io/v1beta1"})
	if err == nil || !strings.Contains(err.Error(), "Rollout of rollouts.kruise.io/v1beta1 has no spec.rolloutID") {
		t.Errorf("in a member of v1beta1: %v, want that rolloutID has no place there", err)
	}
}

func TestInvalidAnnotationIsRejectedByName(t *testing.T) {
	for _, text := range []string{"{", "[{}]", `[{"at":[]}]`} {
		obj := parse(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {}}`)
		obj.SetAnnotations(map[string]string{wellknown.RestAnnotation(beta): text})
		if _, err := Convert(obj, "apps.kruise.io/v1beta1"); err == nil ||
			!strings.Contains(err.Error(), "metadata.annotations[argosy.io/v1beta1-rest]") {
			t.Errorf("%s: %v", text, err)
		}
	}
	// Steps that lead elsewhere than they did are no fault: somebody changed the object.
	obj := parse(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 1}}`)
	obj.SetAnnotations(map[string]string{wellknown.RestAnnotation(
		beta): `[{"at":["spec","replicas","x"],"is":1},{"at":["spec",{"item":0,"of":1}],"is":1},{"at":[{"name":"x"},"y"],"is":1},{"at":[7],"is":1}]`})
	got := convertTo(t, obj, beta)
	if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); n != 1 {
		t.Errorf("%s", text(t, got))
	}
}

// Whoever may write one object must not keep all others from being listed in a version, nor make of it what typed
// clients cannot read.
func TestInvalidObjectIsReadableAndNotWritable(t *testing.T) {
	for name, annotation := range map[string]string{
		"no JSON":           "garbage",
		"no step":           `[{"at":[],"is":1}]`,
		"another name":      `[{"at":["metadata","name"],"was":"x","is":"y"},{"at":["kind"],"was":"CloneSet","is":"y"},{"at":["metadata"],"was":{"name":"x"},"is":1}]`,
		"another type":      `[{"at":["spec","replicas"],"was":7,"is":"x"}]`,
		"a fraction":        `[{"at":["spec","replicas"],"was":7,"is":1.5}]`,
		"no object":         `[{"at":["spec"],"was":{"replicas":7},"is":[]}]`,
		"a mark of no text": `[{"at":["metadata","labels"],"is":{"a":1}}]`,
		"a list of others":  `[{"at":["spec","scaleStrategy"],"is":{"podsToDelete":[{}]}}]`,
		"a step by a map":   `[{"at":["spec","scaleStrategy","podsToDelete",{"a":{}},"x"],"is":1},{"at":["spec","volumeClaimTemplates",{"metadata":{}},"x"],"is":1}]`,
		"deep within":       `[{"at":["spec","template"],"is":7}]`,
	} {
		stored := parse(t, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 7, volumeClaimTemplates: [{metadata: {}}],
			scaleStrategy: {enablePVCReuse: true}}}`)
		stored.SetAnnotations(map[string]string{wellknown.RestAnnotation(alpha): annotation})
		read, err := Convert(stored, "apps.kruise.io/v1alpha1")
		if err != nil {
			t.Errorf("%s: it cannot be read: %v", name, err)
			continue
		}
		if n, ok, err := unstructured.NestedInt64(read.Object, "spec", "replicas"); n != 7 || !ok || err != nil ||
			read.GetName() != "x" || read.GetKind() != "CloneSet" {
			t.Errorf("%s: it is read as %s", name, text(t, read))
		}
	}
	for name, annotation := range map[string]string{
		"another type":      `[{"at":["spec","replicas"],"was":7,"is":"x"}]`,
		"a mark of no text": `[{"at":["metadata","labels"],"is":{"a":1}}]`,
	} {
		written := parse(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 7}}`)
		written.SetAnnotations(map[string]string{wellknown.RestAnnotation(beta): annotation})
		if _, err := Convert(written, "apps.kruise.io/v1beta1"); err == nil ||
			!strings.Contains(err.Error(), "metadata.annotations[argosy.io/v1beta1-rest]: gives") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// More than an annotation bears: it is listed with the others, and writing it back would lose what is not in it.
	large := parse(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 7}}`)
	ordinals := make([]any, restLimit/4)
	for i := range ordinals {
		ordinals[i] = int64(10_000 + i)
	}
	large.Object["spec"].(map[string]any)["reserveOrdinals"] = ordinals
	read, err := Convert(large, "apps.kruise.io/v1alpha1")
	if err != nil {
		t.Fatalf("it cannot be read: %v", err)
	}
	if _, err := Convert(read, "apps.kruise.io/v1beta1"); err == nil ||
		!strings.Contains(err.Error(), "read and write this object as v1beta1") {
		t.Errorf("it is written back: %v", err)
	}
	if _, err := ForMember(large, []string{"apps.kruise.io/v1alpha1"}); err == nil {
		t.Error("a member gets it without what its version cannot say")
	}
}

func TestOnlyKnownConversionsAreDone(t *testing.T) {
	for _, tc := range []struct{ obj, to string }{
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`, "apps/v1beta1"},
		{`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, metadata: {name: x}}`, "apps.kruise.io/v1beta1"},
		{`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}}`, "policy.kruise.io/v1beta1"},
		{`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}}`, "apps.kruise.io/v1"},
		{`{apiVersion: apps.kruise.io/v1, kind: CloneSet, metadata: {name: x}}`, "apps.kruise.io/v1beta1"},
	} {
		if _, err := Convert(parse(t, tc.obj), tc.to); err == nil || !strings.Contains(err.Error(), "cannot convert") {
			t.Errorf("%s to %s: %v", tc.obj, tc.to, err)
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}, updateStrategy: {type: InPlaceIfPossible, partition: 1}}}`), &obj.Object); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Convert(obj, "apps.kruise.io/v1beta1"); err != nil {
			b.Fatal(err)
		}
	}
}

// random returns an object of a kind in a version, with about half of its fields, and half of the labels and
// annotations that mean something.
func random(seed int64, gk schema.GroupKind, k kind, version string) *unstructured.Unstructured {
	r := rand.New(rand.NewSource(seed))
	obj := map[string]any{"apiVersion": gk.Group + "/" + version, "kind": gk.Kind}
	metadata := map[string]any{"name": "x", "labels": map[string]any{"app": "x"},
		"annotations": map[string]any{"own": "kept"}}
	for in, names := range map[string][]string{
		"labels": {excludePreparingDelete, customVersion},
		"annotations": {predownloadMinReady, predownloadParallelism, predownloadTimeout, protectOperations,
			protectTotalReplicas, rollingStyle, trafficRouting},
	} {
		for _, name := range names {
			if r.Intn(2) == 0 {
				metadata[in].(map[string]any)[name] = []string{"true", "5", "5%", "", "partition", "DELETE, UPDATE"}[r.Intn(6)]
			}
		}
	}
	obj["metadata"] = metadata
	for _, part := range []string{"spec", "status"} {
		s := k.schemas[version].Properties[part]
		obj[part] = anything(r, &s)
	}
	// A CloneSet inside may be in either shape.
	if clone := embedded(obj); clone != nil && r.Intn(2) == 0 {
		cloneSet := kinds()[apps("CloneSet")].schemas[[]string{alpha, beta}[r.Intn(2)]].Properties["spec"]
		clone["spec"] = anything(r, &cloneSet)
	}
	return &unstructured.Unstructured{Object: obj}
}

func anything(r *rand.Rand, s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.XIntOrString:
		if r.Intn(2) == 0 {
			return int64(r.Intn(3))
		}
		return fmt.Sprintf("%d%%", r.Intn(101))
	case len(s.Enum) > 0:
		return strings.Trim(string(s.Enum[r.Intn(len(s.Enum))].Raw), `"`)
	case s.Type == "string":
		return []string{"", "a", "b"}[r.Intn(3)]
	case s.Type == "boolean":
		return r.Intn(2) == 0
	case s.Type == "integer":
		return int64(r.Intn(3))
	case s.Type == "array":
		list := []any{}
		for range r.Intn(4) {
			list = append(list, anything(r, s.Items.Schema))
		}
		return list
	}
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if p := s.Properties[name]; r.Intn(2) == 0 {
			object[name] = anything(r, &p)
		}
	}
	if s.AdditionalProperties != nil {
		for range r.Intn(3) {
			object[string(rune('a'+r.Intn(3)))] = anything(r, s.AdditionalProperties.Schema)
		}
	}
	if s.XPreserveUnknownFields != nil && r.Intn(2) == 0 {
		object["anything"] = map[string]any{"list": []any{int64(r.Intn(9)), nil, map[string]any{}}}
	}
	return object
}

func convertTo(t *testing.T, obj *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	out, err := Convert(obj, obj.GroupVersionKind().Group+"/"+version)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var parse = coretest.Object

func text(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	data, err := yaml.Marshal(obj.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
