package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// deploymentConditions are used by kubectl wait and kubectl rollout status.
var deploymentConditions = []nativeCondition{
	{kind: "Available", good: "True", final: "MinimumReplicasAvailable", expected: true,
		fine: "Deployment has minimum availability."},
	{kind: "Progressing", good: "True", final: "NewReplicaSetAvailable", expected: true,
		fine: "Deployment has successfully progressed."},
	{kind: "ReplicaFailure", good: "False"},
}

// deployment also aggregates conditions, unlike Karmada.
func deployment() *interpret.Hooks {
	counters := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain:   retainAll(retainReplicas, retainDeploymentRollout),
		Reflect:  reflectConditions(deploymentConditions, append(counters, "observedGeneration")...),
		Health:   deploymentHealth,
		Aggregate: counting(settledNative, counters, reaching("updatedReplicas", "availableReplicas"),
			nativeConditions(deploymentConditions)),
	}
}

func deploymentHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	updated := number(status, "updatedReplicas")
	switch {
	case !fresh(observed):
		return interpret.Progressing, nil
	case overdue(status):
		return interpret.Degraded, nil
	case yes(observed.Object, "spec", "paused"):
		return interpret.Suspended, nil
	case updated < wanted,
		number(status, "replicas") > updated, // old replicas still exist
		number(status, "availableReplicas") < updated:
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}

var replicaSetConditions = []nativeCondition{{kind: "ReplicaFailure", good: "False"}}

func replicaSet() *interpret.Hooks {
	counters := []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain:   retainReplicas,
		Reflect:  reflectConditions(replicaSetConditions, append(counters, "observedGeneration")...),
		Health:   replicaSetHealth,
		Aggregate: counting(settledNative, counters, reaching("availableReplicas"),
			nativeConditions(replicaSetConditions)),
	}
}

func replicaSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	switch status := object(observed.Object, "status"); {
	case !fresh(observed):
		return interpret.Progressing, nil
	case isTrue(status, "ReplicaFailure"):
		return interpret.Degraded, nil
	case number(status, "replicas") != wanted, number(status, "availableReplicas") < wanted:
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}

func statefulSet() *interpret.Hooks {
	counters := []string{"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"}
	return &interpret.Hooks{
		Replicas:  replicas,
		Revise:    revise,
		Retain:    retainAll(retainReplicas, retainRollout),
		Reflect:   reflectFields(append(counters, "currentRevision", "updateRevision", "observedGeneration")...),
		Health:    statefulSetHealth,
		Aggregate: counting(settledNative, counters, reaching("readyReplicas"), addRevisions),
	}
}

func statefulSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	partition, err := specNumber(observed, 0, "updateStrategy", "rollingUpdate", "partition")
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	updated := number(status, "updatedReplicas")
	if !fresh(observed) || number(status, "replicas") != wanted || number(status, "availableReplicas") < wanted {
		return interpret.Progressing, nil
	}
	if text(observed.Object, "spec", "updateStrategy", "type") == "OnDelete" {
		return interpret.Healthy, nil
	}
	// A partition is an ordinal: pods from it on are updated.
	first := number(observed.Object, "spec", "ordinals", "start")
	keptOld := min(max(partition-first, 0), wanted)
	switch {
	case updated < wanted-keptOld:
		return interpret.Progressing, nil
	case updated < wanted:
		return interpret.Suspended, nil
	}
	return interpret.Healthy, nil
}

// daemonSet has no replicas to divide: nodes decide the number.
func daemonSet() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect:   reflectFields(append([]string{"observedGeneration"}, daemonSetCounters...)...),
		Health:    rollingHealth,
		Aggregate: counting(settledNative, daemonSetCounters, daemonSetDone),
	}
}

// daemonSetCounters are the counters in the status of DaemonSets of Kubernetes and OpenKruise.
var daemonSetCounters = []string{
	"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
	"numberReady", "numberUnavailable", "updatedNumberScheduled",
}

// daemonSetDone reports whether all nodes have an updated and available pod.
func daemonSetDone(_ *unstructured.Unstructured, status map[string]any) bool {
	desired := number(status, "desiredNumberScheduled")
	return number(status, "updatedNumberScheduled") >= desired && number(status, "numberAvailable") >= desired
}

// cronJob lists the active Jobs of all clusters by cluster, and the latest times.
func cronJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: judged(cronJobHealth),
		Aggregate: foldingNative(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{}
			var active []any
			for _, r := range rs {
				active = append(active, list(r.status, "active")...)
			}
			if active != nil {
				status["active"] = runtime.DeepCopyJSONValue(active)
			}
			for _, when := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
				setText(status, when, latest(textsOf(rs, when)...))
			}
			return status
		}),
	}
}

// cronJobHealth reports a failed last run: no active Job, and the last success is older than the last schedule. RFC
// 3339 times in UTC compare as strings.
func cronJobHealth(obj, status map[string]any) interpret.Health {
	last := text(status, "lastScheduleTime")
	switch {
	case yes(obj, "spec", "suspend"):
		return interpret.Suspended
	case last != "" && len(list(status, "active")) == 0 && text(status, "lastSuccessfulTime") < last:
		return interpret.Degraded
	}
	return interpret.Healthy
}

// persistentVolumeClaim is bound if it is bound in all clusters.
func persistentVolumeClaim() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainFields([]string{"spec", "volumeName"}),
		Health:    byPhase("Lost", "Bound"),
		Aggregate: aggregatePhase("Pending", "Lost", "Pending", "Bound"),
	}
}

// byPhase returns the health by status.phase. In all other phases it is Progressing.
func byPhase(degraded string, healthy ...string) healthHook {
	return judged(func(_, status map[string]any) interpret.Health {
		switch phase := text(status, "phase"); {
		case phase == degraded:
			return interpret.Degraded
		case slices.Contains(healthy, phase):
			return interpret.Healthy
		}
		return interpret.Progressing
	})
}

// aggregatePhase sets status.phase to the first of the phases that any cluster is in, or to the initial one. They are
// sorted by urgency, most urgent first.
func aggregatePhase(initial string, phases ...string) aggregator {
	return foldingNative(func(_ *unstructured.Unstructured, rs []report) map[string]any {
		return map[string]any{"phase": firstOf(phases, initial, rs)}
	})
}

func persistentVolume() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainFields([]string{"spec", "claimRef"}),
		Health:    byPhase("Failed", "Available", "Bound", "Released"),
		Aggregate: aggregatePhase("Pending", "Failed", "Pending", "Available", "Bound", "Released"),
	}
}

// podDisruptionBudget omits disruptedPods, because pod names are valid only in one cluster.
func podDisruptionBudget() *interpret.Hooks {
	return budget(settledNative, "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
}

// budget is Degraded while the current number of pods is below the desired one. others are its other counters.
func budget(settle settler, current, desired string, others ...string) *interpret.Hooks {
	counters := append(others, current, desired)
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "observedGeneration")...),
		Health: judgedFresh(func(_, status map[string]any) interpret.Health {
			if number(status, current) < number(status, desired) {
				return interpret.Degraded
			}
			return interpret.Healthy
		}),
		Aggregate: counting(settle, counters, unknown),
	}
}

// horizontalPodAutoscaler omits currentMetrics: they change constantly, and averages cannot be averaged.
func horizontalPodAutoscaler() *interpret.Hooks {
	counters := []string{"currentReplicas", "desiredReplicas"}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "lastScaleTime", "conditions", "observedGeneration")...),
		Health:  judged(autoscalerHealth),
		Aggregate: counting(settledNative, counters, unknown,
			func(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
				setText(status, "lastScaleTime", latest(textsOf(rs, "lastScaleTime")...))
				limited := func(kind string) bool { return kind == "ScalingLimited" }
				setConditions(status, rs, limited, "lastTransitionTime")
				return nil
			}),
	}
}

// autoscalerHealth reports an autoscaler that cannot scale or waits for its target or metrics. One without a status is
// healthy, because clusters may have no controller for it.
func autoscalerHealth(_, status map[string]any) interpret.Health {
	reason := func(kind string) string {
		if conditionText(status, kind, "status") != "False" {
			return ""
		}
		return cmp.Or(conditionText(status, kind, "reason"), "Unknown")
	}
	able, active := reason("AbleToScale"), reason("ScalingActive")
	switch {
	case active == "ScalingDisabled": // the target has zero replicas
		return interpret.Suspended
	case strings.HasPrefix(active, "Invalid"), active == "AmbiguousSelector", able == "FailedUpdateScale":
		return interpret.Degraded
	case active != "", able == "FailedGetScale":
		return interpret.Progressing
	}
	return interpret.Healthy
}

func ingress() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			return reflectLoadBalancer(observed), nil
		},
		Health: judged(func(_, status map[string]any) interpret.Health {
			if !hasAddress(status) {
				return interpret.Progressing
			}
			return interpret.Healthy
		}),
		Aggregate: aggregateLoadBalancer,
		// The TLS Secrets.
		Dependencies: needing(func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
			var names []any
			for _, tls := range objects(obj.Object, "spec", "tls") {
				names = append(names, text(tls, "secretName"))
			}
			return secretsNamed(obj, names)
		}),
	}
}

// secret keeps a service account token that the member created. The hub's would be invalid there.
func secret() *interpret.Hooks {
	keep := retainFields([]string{"data"}, []string{"metadata", "annotations", corev1.ServiceAccountUIDKey})
	return &interpret.Hooks{
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if text(desired.Object, "type") != string(corev1.SecretTypeServiceAccountToken) {
				return desired, nil
			}
			return keep(ctx, desired, observed)
		},
	}
}

// serviceAccount keeps the secrets that the member added to the account, such as tokens and pull secrets. It depends on
// its pull secrets and mountable secrets, except tokens, which each cluster creates itself.
func serviceAccount() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return interpret.RetainEntries(desired, observed), nil
		},
		Dependencies: needing(func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
			var names []any
			for _, s := range append(objects(obj.Object, "imagePullSecrets"), objects(obj.Object, "secrets")...) {
				if name := text(s, "name"); !strings.HasPrefix(name, obj.GetName()+"-token-") {
					names = append(names, name)
				}
			}
			return secretsNamed(obj, names)
		}),
	}
}

// serviceImport depends on the derived Service and its EndpointSlices.
func serviceImport() *interpret.Hooks {
	return &interpret.Hooks{
		Dependencies: needing(func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
			derived := names.DerivedService(obj.GetName())
			return []configv1alpha1.DependentObjectReference{
				{APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: derived},
				{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: obj.GetNamespace(),
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{discoveryv1.LabelServiceName: derived}}},
			}
		}),
	}
}

// customResourceDefinition keeps the member's webhook client configuration once the operator in the member has set it.
// The operator creates its own certificate, without which objects of the kind could not be read.
func customResourceDefinition() *interpret.Hooks {
	keep := retainFields([]string{"spec", "conversion", "webhook", "clientConfig"})
	return &interpret.Hooks{
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if text(desired.Object, "spec", "conversion", "strategy") != "Webhook" ||
				text(observed.Object, "spec", "conversion", "strategy") != "Webhook" {
				return desired, nil
			}
			return keep(ctx, desired, observed)
		},
		Health: judged(func(_, status map[string]any) interpret.Health {
			switch {
			case isTrue(status, "Established"):
				return interpret.Healthy
			case conditionText(status, "NamesAccepted", "status") == "False":
				return interpret.Degraded
			}
			return interpret.Progressing
		}),
	}
}

// webhookConfiguration keeps the member's client configuration of each webhook, matched by name, once the operator has
// set a certificate. OpenKruise removes webhooks of disabled feature gates and stores the original list in an
// annotation. Webhooks that it removed stay removed.
func webhookConfiguration() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			given := text(observed.Object, "metadata", "annotations", "template")
			kept, changed := []any{}, false
			for _, w := range list(desired.Object, "webhooks") {
				want, _ := w.(map[string]any)
				have := withName(objects(observed.Object, "webhooks"), text(want, "name"), "name")
				if have == nil && given != "" && strings.Contains(given, fmt.Sprintf(`"name":%q`, text(want, "name"))) {
					changed = true
					continue
				}
				if text(have, "clientConfig", "caBundle") != "" {
					want = runtime.DeepCopyJSON(want)
					want["clientConfig"] = runtime.DeepCopyJSONValue(have["clientConfig"])
					kept, changed = append(kept, want), true
					continue
				}
				kept = append(kept, w)
			}
			if !changed {
				return desired, nil
			}
			retained := desired.DeepCopy()
			retained.Object["webhooks"] = kept
			return retained, nil
		},
	}
}
