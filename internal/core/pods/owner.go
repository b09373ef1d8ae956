package pods

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/capacity"
)

// Workload is a template with pods in trouble in a cluster.
type Workload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Report     `json:",inline"`
}

// makers are the kinds whose pods are known by how these are named: whose pods name the object itself, without a value,
// and those whose pods name something that the object made, with the kinds of that.
var makers = map[string][]string{
	"Pod": nil, "ReplicationController": nil, "ReplicaSet.apps": nil, "StatefulSet.apps": nil, "DaemonSet.apps": nil,
	"Job.batch":               nil,
	"CloneSet.apps.kruise.io": nil, "StatefulSet.apps.kruise.io": nil, "DaemonSet.apps.kruise.io": nil,
	"BroadcastJob.apps.kruise.io": nil,
	"Workflow.argoproj.io":        nil,
	"Deployment.apps":             {"ReplicaSet"}, "Rollout.argoproj.io": {"ReplicaSet"},
	"CronJob.batch": {"Job"}, "AdvancedCronJob.apps.kruise.io": {"Job", "BroadcastJob"},
	"CronWorkflow.argoproj.io":        {"Workflow"},
	"UnitedDeployment.apps.kruise.io": {"ReplicaSet", "StatefulSet", "CloneSet"},
}

// HasPods says whether the template of a binding may have pods: one of a kind that is known to, or that was interpreted
// to. Anything else may be named like a workload and has nothing to do with it.
func HasPods(b *workv1alpha2.ResourceBindingSpec) bool {
	_, known := makers[groupKind(b.Resource)]
	return known || b.Replicas > 0 || b.ReplicaRequirements != nil || len(b.Components) > 0
}

// Owner is the index of the template that a workload is, or that made it; -1 for none. Templates are of the namespace
// of the workload, and have pods. Pods name their controller and no more, so that what a template made is told by its
// name: of kinds that are known, and then of others, the template whose name is the longest beginning of it has it. The
// order of templates does not matter.
func Owner(of capacity.Workload, templates []workv1alpha2.ObjectReference) int {
	best, owner := 0, -1
	for i, t := range templates {
		r := closeness(of, t)
		if r > best || r > 0 && r == best && before(t, templates[owner]) {
			best, owner = r, i
		}
	}
	return owner
}

func before(a, b workv1alpha2.ObjectReference) bool {
	return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind)) < 0
}

// closeness is higher for a template that a workload is likelier of; 0 for one that it is not of.
func closeness(of capacity.Workload, t workv1alpha2.ObjectReference) int {
	const itself, known, same = 1 << 20, 1 << 19, 1 << 18
	maker := capacity.Workload{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name}
	makes, isKnown := makers[groupKind(t)]
	rank := 0
	switch {
	case of == maker:
		return itself
	case of.Kind == "Pod" || !of.BelongsTo(maker) || isKnown && !slices.Contains(makes, of.Kind):
		return 0
	case of.Name == t.Name:
		rank = same
	case strings.HasPrefix(of.Name, t.Name+"-"):
		rank = len(t.Name)
	default:
		return 0
	}
	if isKnown {
		rank += known
	}
	return rank
}

func groupKind(of workv1alpha2.ObjectReference) string {
	return schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind().String()
}
