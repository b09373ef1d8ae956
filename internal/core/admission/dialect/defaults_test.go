package dialect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The defaults are those of the section about each kind in the reference of OpenKruise, and of apis/apps/defaults in
// its source: SetDefaultsCloneSet, SetDefaultsCloneSetV1beta1, SetDefaultsStatefulSet, SetDefaultsDaemonSet and
// SetDefaultsDaemonSetV1beta1.
func TestKruiseWorkloadsGetTheDefaultsOfTheirWebhooks(t *testing.T) {
	for _, c := range []struct{ name, version, kind, spec, want string }{
		{"CloneSet v1alpha1: the policy is the type", "v1alpha1", "CloneSet", `{}`, `{replicas: 1, revisionHistoryLimit: 10,
			updateStrategy: {type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`},
		{"CloneSet v1alpha1 in place", "v1alpha1", "CloneSet", `{updateStrategy: {type: InPlaceIfPossible}}`,
			`{replicas: 1, revisionHistoryLimit: 10, updateStrategy: {type: InPlaceIfPossible, partition: 0,
			maxUnavailable: 20%, maxSurge: 0, inPlaceUpdateStrategy: {}}}`},
		{"CloneSet v1beta1: the same below rollingUpdate", "v1beta1", "CloneSet", `{}`, `{replicas: 1,
			revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate,
			partition: 0, maxUnavailable: 20%, maxSurge: 0}}}`},
		{"CloneSet v1beta1 in place", "v1beta1", "CloneSet",
			`{updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}}`, `{replicas: 1, revisionHistoryLimit: 10,
			updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 0,
			maxUnavailable: 20%, maxSurge: 0, inPlaceUpdateStrategy: {}}}}`},
		{"CloneSet v1beta1 without a rolling update", "v1beta1", "CloneSet", `{updateStrategy: {type: OnDelete}}`,
			`{replicas: 1, revisionHistoryLimit: 10, updateStrategy: {type: OnDelete}}`},
		{"values stay, zero too", "v1beta1", "CloneSet", `{replicas: 0, revisionHistoryLimit: 3, updateStrategy:
			{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 50%, maxUnavailable: 2, maxSurge: 1,
			paused: true}}}`, `{replicas: 0, revisionHistoryLimit: 3, updateStrategy: {type: RollingUpdate, rollingUpdate:
			{podUpdatePolicy: ReCreate, partition: 50%, maxUnavailable: 2, maxSurge: 1, paused: true}}}`},
		{"null is not set", "v1alpha1", "CloneSet", `{replicas: null, updateStrategy: null}`, `{replicas: 1,
			revisionHistoryLimit: 10, updateStrategy: {type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`},
		{"a shape that the schema refuses stays", "v1beta1", "CloneSet", `{replicas: 1, revisionHistoryLimit: 1,
			updateStrategy: {type: RollingUpdate, rollingUpdate: soon}}`, `{replicas: 1, revisionHistoryLimit: 1,
			updateStrategy: {type: RollingUpdate, rollingUpdate: soon}}`},
		{"StatefulSet v1beta1", "v1beta1", "StatefulSet", `{}`, `{replicas: 1, revisionHistoryLimit: 10,
			podManagementPolicy: OrderedReady, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate,
			partition: 0, maxUnavailable: 1, minReadySeconds: 0}}}`},
		{"StatefulSet v1alpha1", "v1alpha1", "StatefulSet", `{podManagementPolicy: Parallel, updateStrategy:
			{rollingUpdate: {maxUnavailable: 50%}}}`, `{replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: Parallel,
			updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0,
			maxUnavailable: 50%, minReadySeconds: 0}}}`},
		{"StatefulSet without a rolling update", "v1beta1", "StatefulSet", `{updateStrategy: {type: OnDelete}}`,
			`{replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: OrderedReady, updateStrategy: {type: OnDelete}}`},
		{"DaemonSet v1alpha1", "v1alpha1", "DaemonSet", `{}`, `{burstReplicas: 250, revisionHistoryLimit: 10,
			updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1,
			maxSurge: 0}}}`},
		{"DaemonSet v1beta1: a surge is instead of unavailable pods", "v1beta1", "DaemonSet",
			`{updateStrategy: {rollingUpdate: {maxSurge: 1}}}`, `{burstReplicas: 250, revisionHistoryLimit: 10,
			updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxSurge: 1}}}`},
		{"DaemonSet without a rolling update", "v1beta1", "DaemonSet", `{updateStrategy: {type: OnDelete}}`,
			`{burstReplicas: 250, revisionHistoryLimit: 10, updateStrategy: {type: OnDelete}}`},
		{"another kind", "v1beta1", "BroadcastJob", `{}`, `{}`},
	} {
		parse := func(spec string) *unstructured.Unstructured {
			raw, err := yaml.YAMLToJSON([]byte("{apiVersion: apps.kruise.io/" + c.version + ", kind: " + c.kind + ", spec: " +
				spec + "}"))
			u := &unstructured.Unstructured{}
			if err == nil {
				err = u.UnmarshalJSON(raw)
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return u
		}
		got := parse(c.spec)
		Default(got)
		if diff := cmp.Diff(parse(c.want).Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got): %s", c.name, diff)
		}
		again := got.DeepCopy()
		if Default(again); !cmp.Equal(got.Object, again.Object) {
			t.Errorf("%s: a second run changes it", c.name)
		}
	}
	native := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet",
		"spec": map[string]any{}}}
	if Default(native); len(native.Object["spec"].(map[string]any)) > 0 {
		t.Errorf("the StatefulSet of Kubernetes gets %v", native.Object["spec"])
	}
}
