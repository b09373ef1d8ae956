package builtin

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// laid is v with what over says laid over it: objects key by key, lists item by item, anything else as a whole.
func laid(v, over any) any {
	switch o := over.(type) {
	case map[string]any:
		m, _ := v.(map[string]any)
		out := map[string]any{}
		for key, value := range m {
			out[key] = value
		}
		for key, value := range o {
			out[key] = laid(out[key], value)
		}
		return out
	case []any:
		l, _ := v.([]any)
		out := append([]any{}, l...)
		for i, value := range o {
			if i < len(out) {
				out[i] = laid(out[i], value)
				continue
			}
			out = append(out, value)
		}
		return out
	}
	return over
}

// A member's webhooks write defaults, its controllers and Kruise Rollouts write the spec. None of it is undone, and
// none of it is applied against again and again: at most one apply, then quiet, and what is the member's stays.
func TestRetainIsStable(t *testing.T) {
	const pods = `template: {metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: "app:1", ports: [{containerPort: 80}], resources: {requests: {cpu: 0.5}}, readinessProbe: {httpGet: {path: /, port: 80}}}], volumes: [{name: c, configMap: {name: c}}]}}`
	const defaultedPods = `template: {spec: {restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler, terminationGracePeriodSeconds: 30, securityContext: {}, readinessGates: [{conditionType: InPlaceUpdateReady}],
		containers: [{imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, resources: {requests: {cpu: 500m}}, ports: [{protocol: TCP}], readinessProbe: {httpGet: {scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10}}], volumes: [{configMap: {defaultMode: 420}}]}}`
	const claims = `volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}]`
	const defaultedClaims = `volumeClaimTemplates: [{spec: {volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}]`
	for _, c := range []struct {
		name, manifest string
		member         string // laid over the manifest
		applies        int
		stays          string // what the object has then at any rate
	}{
		{
			"a CloneSet of the old version with defaults",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {selector: {matchLabels: {app: x}}, updateStrategy: {type: InPlaceIfPossible, partition: 50%}, ` + claims + `, ` + pods + `}}`,
			`{spec: {replicas: 1, revisionHistoryLimit: 10, scaleStrategy: {}, updateStrategy: {maxUnavailable: 20%, maxSurge: 0, inPlaceUpdateStrategy: {}}, ` + defaultedClaims + `, ` + defaultedPods + `}}`,
			0, `{spec: {updateStrategy: {maxUnavailable: 20%}}}`,
		},
		{
			"a CloneSet of the new version with defaults",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchLabels: {app: x}}, ` + pods + `}}`,
			`{spec: {replicas: 1, revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 20%, podUpdatePolicy: ReCreate}}, ` + defaultedPods + `}}`,
			0, `{spec: {updateStrategy: {type: RollingUpdate}}}`,
		},
		{
			"a CloneSet that an autoscaler has scaled",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			`{spec: {replicas: 9}}`, 0, `{spec: {replicas: 9}}`,
		},
		{
			"a CloneSet whose pods to delete are gone",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "2"}}, spec: {scaleStrategy: {podsToDelete: [x-1]}}}`,
			`{spec: {scaleStrategy: {podsToDelete: null}}}`, 0, `{spec: {scaleStrategy: {podsToDelete: null}}}`,
		},
		{
			"a CloneSet in the midst of a rollout",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {updateStrategy: {partition: 0, paused: true}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {minReadySeconds: 5, updateStrategy: {partition: 80%, paused: false}}}`,
			1, `{spec: {minReadySeconds: 5, updateStrategy: {partition: 80%, paused: false}}}`,
		},
		{
			"an Advanced StatefulSet with defaults",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: x}}, reserveOrdinals: [0, "2-3"], ` + claims + `, ` + pods + `}}`,
			`{spec: {podManagementPolicy: OrderedReady, revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 1, podUpdatePolicy: ReCreate}}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}, ` + defaultedClaims + `, ` + defaultedPods + `}}`,
			0, `{spec: {podManagementPolicy: OrderedReady}}`,
		},
		{
			"an Advanced StatefulSet with a field that cannot change",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {serviceName: new}}`,
			`{spec: {serviceName: old}}`, 1,
			`{metadata: {annotations: {argosy.io/immutable-fields: 'spec.serviceName is still "old", but the template has "new"'}}, spec: {serviceName: old}}`,
		},
		{
			"a SidecarSet with defaults and hashes",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {annotations: {kruise.io/sidecarset-hash: exported}}, spec: {selector: {matchLabels: {app: x}}, containers: [{name: log, image: "log:1"}], volumes: [{name: v, emptyDir: {}}]}}`,
			`{metadata: {annotations: {kruise.io/sidecarset-hash: h1, kruise.io/sidecarset-hash-without-image: h2}}, spec: {updateStrategy: {type: RollingUpdate, partition: 0, maxUnavailable: 1}, revisionHistoryLimit: 10,
				containers: [{podInjectPolicy: BeforeAppContainer, upgradeStrategy: {upgradeType: ColdUpgrade}, shareVolumePolicy: {type: disabled}, imagePullPolicy: IfNotPresent}]}}`,
			1, `{metadata: {annotations: {kruise.io/sidecarset-hash: h1, kruise.io/sidecarset-hash-without-image: h2}}}`,
		},
		{
			"a UnitedDeployment with defaults",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: {replicas: 4, template: {cloneSetTemplate: {metadata: {labels: {app: x}}, spec: {` + pods + `}}}, topology: {subsets: [{name: a, replicas: 2, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z1]}]}}, {name: b}]}}}`,
			`{spec: {revisionHistoryLimit: 10, updateStrategy: {type: Manual}, template: {cloneSetTemplate: {spec: {replicas: 1, ` + defaultedPods + `}}}, topology: {scheduleStrategy: {type: Fixed}}}}`,
			0, `{spec: {updateStrategy: {type: Manual}}}`,
		},
		{
			"an Advanced DaemonSet with defaults",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {selector: {matchLabels: {app: x}}, ` + pods + `}}`,
			`{spec: {burstReplicas: 250, revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Standard, maxUnavailable: 1, maxSurge: 0, partition: 0}}, ` + defaultedPods + `}}`,
			0, `{spec: {burstReplicas: 250}}`,
		},
		{
			"an Advanced DaemonSet in the midst of a rollout",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 32767}}}}`,
			1, `{spec: {updateStrategy: {rollingUpdate: {partition: 32767}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest := read(t, c.manifest)
			manifest.SetName("x")
			manifest.SetNamespace("ns")
			raw, err := json.Marshal(manifest.Object)
			if err != nil {
				t.Fatal(err)
			}
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "x", Generation: 1}}
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
				ObservedGeneration: 1}}
			created, err := execute.Desired(w, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			observed := &unstructured.Unstructured{Object: laid(created.Object, tree(t, c.member)).(map[string]any)}

			applies := 0
			for {
				desired, err := execute.Desired(w, observed,
					func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
						return interpreter.Retain(context.Background(), desired, observed)
					})
				if err != nil {
					t.Fatal(err)
				}
				plan := execute.Plan(w, desired, observed)
				if plan.Kind == execute.Nothing {
					break
				}
				if applies++; applies > 3 {
					t.Fatalf("it goes on and on: %s, %s", plan.Kind, plan.Reason)
				}
				observed = &unstructured.Unstructured{Object: laid(observed.Object, plan.Object.Object).(map[string]any)}
			}
			if applies != c.applies {
				t.Errorf("%d applies, want %d", applies, c.applies)
			}
			if want := laid(observed.Object, tree(t, c.stays)); !reflect.DeepEqual(any(observed.Object), want) {
				t.Errorf("the member has\n%swant\n%s", show(observed.Object), show(want))
			}
		})
	}
}
