// Package kind has facts about kinds, one file per kind: where its objects have pods, which fields of its status count
// pods, how its controller reports failures, whether it runs once, and how users pause, scale and restart it. How the
// hub interprets and divides a kind is in core/workload.
package kind

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind has the facts about a kind. The zero value is a kind that the hub knows nothing about.
type Kind struct {
	schema.GroupKind
	// Pods are the fields that describe pods.
	Pods Pods
	// Counters are the status fields that count pods; the zero value for a kind that does not count updated pods.
	Counters Counters
	// Failures are the types of the conditions with which its controller reports failures.
	Failures []string
	// Once describes a kind that runs once; nil for others.
	Once *Once
	// Pause returns the field by which a rollout of an object of a version stops where it is; nil if there is none.
	Pause func(version string) []string
	// Scale is true if the kind has the subresource scale, Restart if `kubectl rollout restart` restarts its pods.
	Scale, Restart bool
	// Revisions is true if its controller keeps revisions of the pods, or of what it injects.
	Revisions bool
	// StatusIsShared is true if a controller writes the status, which is no subresource, and both the hub and members
	// write spec.suspend.
	StatusIsShared bool
}

// Lookup returns the facts about a kind. They are read-only.
func Lookup(gk schema.GroupKind) *Kind {
	if k := table[gk]; k != nil {
		return k
	}
	return &unknown
}

// List returns the kinds that the hub knows, in no order. They are read-only.
func List() []*Kind { return all }

var unknown Kind

// table has each kind once.
var table = func() map[schema.GroupKind]*Kind {
	t := make(map[schema.GroupKind]*Kind, len(all))
	for _, k := range all {
		if t[k.GroupKind] != nil {
			panic(k.String() + " has two descriptions")
		}
		t[k.GroupKind] = k
	}
	return t
}()

// Counters are the names of status fields that count pods. Those of 0 pods may be missing.
type Counters struct{ All, Updated, Ready, Available string }

// OfReplicas are the counters of Deployments, which many kinds have.
var OfReplicas = Counters{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"}

// ofDaemons are the counters of DaemonSets.
var ofDaemons = Counters{"desiredNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable"}

// pauses returns the field for all versions.
func pauses(path ...string) func(string) []string { return func(string) []string { return path } }

// The groups of kinds.
const (
	core   = ""
	apps   = "apps"
	batch  = "batch"
	kruise = "apps.kruise.io"
	argo   = "argoproj.io"
)

func groupKind(group, name string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: name}
}
