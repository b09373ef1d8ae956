package builtin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// cloneSet is OpenKruise's CloneSet, v1alpha1 (strategy directly in updateStrategy) and v1beta1 (in rollingUpdate).
//
// Revise sets only the replicas. Other shares are divided where all clusters are known.
func cloneSet(k *kind.Kind) *interpret.Hooks {
	h := ofFacts(k)
	h.Retain = retainAll(retainReplicas, retainPodsToDelete, retainRollout, retainImmutable(immutableSelector))
	return h
}

// retainPodsToDelete drops the names that the member's controller removed from its list because the pods are gone.
// Sending them again would be rejected or repeat forever. A name that the hub has not sent yet is new, not removed. A
// new generation of the template may use names again.
func retainPodsToDelete(_ context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	path := []string{"spec", "scaleStrategy", "podsToDelete"}
	names, left := list(desired.Object, path...), list(observed.Object, path...)
	made := func(obj *unstructured.Unstructured) string {
		return text(obj.Object, "metadata", "annotations", workv1alpha2.TemplateGenerationAnnotation)
	}
	if len(names) == 0 || made(desired) != made(observed) {
		return desired, nil
	}
	// An object from an older hub has no record. Then all names count as sent.
	sent, recorded := observed.GetAnnotations()[wellknown.SentPodsToDeleteAnnotation]
	gone := func(name any) bool {
		if text, ok := name.(string); ok && recorded && !slices.Contains(strings.Split(sent, ","), text) {
			return false
		}
		return !slices.ContainsFunc(left, func(there any) bool { return equal(name, there) })
	}
	kept := slices.DeleteFunc(slices.Clone(names), gone)
	if len(kept) == len(names) {
		return desired, nil
	}
	return withField(desired, kept, path...)
}

// advancedStatefulSet is OpenKruise's StatefulSet, v1alpha1 and v1beta1, with equal fields here.
//
// Revise sets only the replicas. Other shares, including ordinals, are divided where all clusters are known.
func advancedStatefulSet(k *kind.Kind) *interpret.Hooks {
	h := ofFacts(k, addVolumeClaims)
	h.Retain = retainAll(retainReplicas, retainRollout, retainImmutable(immutableSelector,
		immutableText("spec", "serviceName"), immutableText("spec", "podManagementPolicy"), immutableStorage))
	return h
}

// addVolumeClaims adds up the claims per claim template over the clusters.
func addVolumeClaims(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	var claims []any
	byName := map[string]map[string]any{}
	for _, r := range rs {
		for _, c := range objects(r.status, "volumeClaims") {
			name := text(c, "volumeClaimName")
			sum := byName[name]
			if sum == nil {
				sum = map[string]any{"volumeClaimName": name}
				byName[name] = sum
				claims = append(claims, sum)
			}
			for _, counter := range []string{"compatibleReplicas", "compatibleReadyReplicas"} {
				sum[counter] = number(sum, counter) + number(c, counter)
			}
		}
	}
	if claims == nil {
		return nil
	}
	sortBy(claims, "volumeClaimName")
	status["volumeClaims"] = claims
	return nil
}

// advancedDaemonSet is OpenKruise's DaemonSet, v1alpha1 and v1beta1, which differ in the status field of the new
// revision. It has no replicas to divide: nodes decide the number.
func advancedDaemonSet() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:  retainAll(retainRollout, retainImmutable(immutableSelector)),
		Reflect: reflectWhole,
		Health:  rollingHealth,
		Aggregate: counting(settled, daemonSetCounters, daemonSetDone, addCollisions, addConditions,
			addDaemonSetRevision),
	}
}

// addDaemonSetRevision adds the common revision of the clusters, or an empty one, because the field is required.
func addDaemonSetRevision(status map[string]any, template *unstructured.Unstructured, rs []report) error {
	either := make([]report, len(rs))
	for i, r := range rs {
		either[i] = r
		if r.status != nil {
			either[i].status = map[string]any{"revision": cmp.Or(text(r.status, "updateRevision"),
				text(r.status, "daemonSetHash"))}
		}
	}
	name := "updateRevision"
	if oldVersion(template) {
		name = "daemonSetHash"
	}
	status[name] = common(either, "revision")
	return nil
}

// workloadSpread is OpenKruise's WorkloadSpread, v1alpha1 and v1beta1. Its webhook records each pod in the status. That
// and its copies per revision are specific to the cluster and not reported, so a rollout causes no writes.
func workloadSpread() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			status := interpret.WholeStatus(observed)
			if status == nil {
				return nil, nil
			}
			delete(status, "versionedSubsetStatuses")
			for _, subset := range objects(status, "subsetStatuses") {
				delete(subset, "creatingPods")
				delete(subset, "deletingPods")
			}
			return interpret.WithOrigin(status, observed), nil
		},
		Health: judgedFresh(func(_, status map[string]any) interpret.Health {
			for _, subset := range objects(status, "subsetStatuses") {
				if conditionText(subset, "Schedulable", "status") == "False" && number(subset, "missingReplicas") != 0 {
					return interpret.Progressing
				}
			}
			return interpret.Healthy
		}),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{"observedGeneration": observedGeneration(template, rs, false)}
			if subsets := spreadSubsets(template, rs); subsets != nil {
				status["subsetStatuses"] = subsets
			}
			return status
		}),
	}
}

// unlimited is the missingReplicas of a subset without maxReplicas.
const unlimited = -1

// spreadSubsets aggregates the subsets by name, in the order of the template.
func spreadSubsets(template *unstructured.Unstructured, rs []report) []any {
	var subsets []any
	for name, of := range byName(rs, func(r report) []map[string]any { return objects(r.status, "subsetStatuses") }) {
		subset := sums(of, "replicas", "missingReplicas")
		subset["name"] = name
		if lowest, _, _ := least(of, "missingReplicas"); lowest == unlimited {
			subset["missingReplicas"] = int64(unlimited)
		}
		setConditions(subset, of, func(string) bool { return false }, "lastTransitionTime")
		subsets = append(subsets, subset)
	}
	order := map[string]int{}
	for i, subset := range objects(template.Object, "spec", "subsets") {
		// subsets that the template does not name (0) come last
		order[text(subset, "name")] = i - len(list(template.Object, "spec", "subsets"))
	}
	slices.SortFunc(subsets, func(a, b any) int {
		x, y := text(a.(map[string]any), "name"), text(b.(map[string]any), "name")
		return cmp.Or(cmp.Compare(order[x], order[y]), cmp.Compare(x, y))
	})
	return subsets
}

// persistentPodState is OpenKruise's PersistentPodState, v1alpha1 and v1beta1. The nodes of pods are specific to each
// cluster, and pod names may repeat, so the template's list stays empty. The binding has the lists per cluster.
func persistentPodState() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect:   reflectWhole,
		Health:    judged(alwaysHealthy),
		Aggregate: counting(settled, nil, unknown),
	}
}

// podUnavailableBudget is OpenKruise's PodUnavailableBudget, v1alpha1 and v1beta1. It omits the pods in its status,
// which are specific to a cluster and change with every eviction.
func podUnavailableBudget() *interpret.Hooks {
	return budget(settled, "currentAvailable", "desiredAvailable", "unavailableAllowed", "totalReplicas")
}

// podProbeMarker is OpenKruise's PodProbeMarker.
func podProbeMarker() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect:   reflectWhole,
		Health:    judgedFresh(alwaysHealthy),
		Aggregate: counting(settled, []string{"matchedPods"}, unknown),
	}
}

// resourceDistribution is OpenKruise's ResourceDistribution, v1alpha1 and v1beta1, which spell the list of failed
// namespaces differently. It distributes within a cluster, so failed namespaces are listed as cluster/namespace.
func resourceDistribution() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: judgedFresh(func(_, status map[string]any) interpret.Health {
			if number(status, "failed") > 0 {
				return interpret.Degraded
			}
			return interpret.Healthy
		}),
		Aggregate: counting(settled, []string{"desired", "succeeded", "failed"}, unknown,
			func(status map[string]any, template *unstructured.Unstructured, rs []report) error {
				always := func(string) bool { return true } // all conditions report failures
				setConditions(status, rs, always, "lastTransitionTime")
				for _, c := range objects(status, "conditions") {
					failedNamespaces(c, template, rs)
				}
				return nil
			}),
	}
}

// failedNamespaces lists in an aggregated condition the namespaces of the clusters in its state.
func failedNamespaces(condition map[string]any, template *unstructured.Unstructured, rs []report) {
	const old, present = "failedNamespace", "failedNamespaces"
	var names []any
	for _, r := range rs {
		for _, c := range objects(r.status, "conditions") {
			if text(c, "type") != text(condition, "type") || text(c, "status") != text(condition, "status") {
				continue
			}
			for _, spelling := range []string{old, present} {
				for _, ns := range list(c, spelling) {
					if name, ok := ns.(string); ok && len(names) < listed {
						names = append(names, r.cluster+"/"+name)
					}
				}
			}
		}
	}
	if names == nil {
		return
	}
	if oldVersion(template) {
		condition[old] = names
	} else {
		condition[present] = names
	}
}
