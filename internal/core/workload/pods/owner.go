package pods

import (
	"cmp"
	"slices"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Workload is a template with pods that have troubles in a cluster.
type Workload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Report     `json:",inline"`
}

// HasPods reports whether the template of a binding may have pods: its kind is known or its interpreter reports
// replicas. Other templates may share the name of a workload by coincidence.
func HasPods(b *workv1alpha2.ResourceBindingSpec) bool {
	return podsOf(b.Resource).HaveOwners() || b.Replicas > 0 || b.ReplicaRequirements != nil || len(b.Components) > 0
}

// Owner returns the index of the template that is the workload or created it; -1 for none. All templates must be in the
// workload's namespace and have pods.
//
// A pod names only its controller, so Owner infers the template from the name: known kinds first, then the longest
// prefix. The order of the templates does not matter.
func Owner(of capacity.Workload, templates []workv1alpha2.ObjectReference) int {
	best, owner := 0, -1
	for i, t := range templates {
		r := closeness(of, t)
		if r > best || r > 0 && r == best && comesBefore(t, templates[owner]) {
			best, owner = r, i
		}
	}
	return owner
}

func comesBefore(a, b workv1alpha2.ObjectReference) bool {
	return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind)) < 0
}

// closeness ranks how likely the workload belongs to the template; 0 means that it does not.
func closeness(of capacity.Workload, t workv1alpha2.ObjectReference) int {
	const itself, known, same = 1 << 20, 1 << 19, 1 << 18
	maker := capacity.Workload{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name}
	made := podsOf(t)
	isKnown, rank := made.HaveOwners(), 0
	switch {
	case of == maker:
		return itself
	case of.Kind == "Pod" || !of.BelongsTo(maker) || isKnown && !slices.Contains(made.Makers, of.Kind):
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

func podsOf(of workv1alpha2.ObjectReference) kind.Pods {
	return kind.Lookup(match.GroupKind(of.APIVersion, of.Kind)).Pods
}
