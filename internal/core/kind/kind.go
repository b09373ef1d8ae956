// Package kind has facts about kinds, one file per kind: where its objects have pods, which fields of its status count
// pods, how its controller reports failures, whether it runs once, how users pause, scale and restart it, and what of
// it the hub divides among clusters. Other packages ask for a fact; internal/core/literals_test.go lists the few that
// name kinds.
package kind

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind has the facts about a kind. The zero value is a kind that the hub knows nothing about.
type Kind struct {
	schema.GroupKind
	// ClusterScoped is true if its objects have no namespace.
	ClusterScoped bool
	// MemberMade is true if controllers in members create its objects for other objects: copies from the hub would
	// conflict with them.
	MemberMade bool
	// Pods are the fields that describe pods.
	Pods Pods
	// Replicas is the path of the number of pods; nil if its objects have none.
	Replicas []string
	// Counters are the status fields that count pods.
	Counters Counters
	// Failures are the conditions with which its controller reports failures.
	Failures []Failure
	// Once describes a kind that runs once; nil for others.
	Once *Once
	// Runs is the number of clusters in which an object that runs something by itself does so.
	Runs Runs
	// Workflow is the path of the spec with the steps of a workflow; nil for other kinds.
	Workflow []string
	// Rolling describes an update strategy with a partition; nil for others.
	Rolling *Rolling
	// Divides is what of its objects the hub divides among clusters.
	Divides Division
	// Pause returns the field by which a rollout of an object of a version stops where it is; nil if there is none. It
	// is beside the partition.
	Pause func(version string) []string
	// Scale is true if the kind has the subresource scale, Restart if `kubectl rollout restart` restarts its pods.
	Scale, Restart bool
	// Revisions is true if its controller keeps revisions of the pods, or of what it injects.
	Revisions bool
	// Revision are the fields that make pods new; nil for the pod templates.
	Revision [][]string
	// UpdatesAll is true if its controller never keeps old pods in the end: it has no partition and no update on
	// deletion.
	UpdatesAll bool
	// StatusIsShared is true if a controller writes the status, which is no subresource, and both the hub and members
	// write spec.suspend.
	StatusIsShared bool
	// Generated are the labels and annotations that the hub's controllers set, and that are not sent.
	Generated []string
	// Refers describes how its objects refer to workloads; nil for others.
	Refers *References
	// Scaler describes a kind whose objects set the replicas of the workloads that they refer to; nil for others.
	Scaler *Scaler
	// Feedback are the values of its status that Open Cluster Management calls well-known: fields under their
	// capitalized names, or NAME=FIELD.
	Feedback []string
	// Defaults are what webhooks in members set in its spec.
	Defaults *Defaults
}

// Lookup returns the facts about a kind. They are read-only.
func Lookup(gk schema.GroupKind) *Kind {
	if k := table[gk]; k != nil {
		return k
	}
	return &unknown
}

// Facts returns the facts about the kind of an object. They are read-only.
func Facts(obj interface {
	GroupVersionKind() schema.GroupVersionKind
}) *Kind {
	return Lookup(obj.GroupVersionKind().GroupKind())
}

// List returns the kinds that the hub knows, in no order. They are read-only.
func List() iter.Seq[*Kind] { return maps.Values(table) }

// Select returns the kinds with a fact, sorted by name.
func Select(has func(*Kind) bool) []schema.GroupKind {
	var kinds []schema.GroupKind
	for k := range List() {
		if has(k) {
			kinds = append(kinds, k.GroupKind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

var (
	unknown Kind
	table   = map[schema.GroupKind]*Kind{}
	// ownsPods and ownsReplicaSets have the names of kinds, of whatever group: a pod names its owner so.
	ownsPods, ownsReplicaSets = map[string]bool{}, map[string]bool{}
)

// Register adds a kind, while packages are initialized.
func Register(k Kind) *Kind {
	if table[k.GroupKind] != nil {
		panic(k.String() + " has two descriptions")
	}
	table[k.GroupKind] = &k
	if k.Pods.Owned {
		ownsPods[k.Kind] = true
	}
	if slices.Equal(k.Pods.Makers, []string{"ReplicaSet"}) {
		ownsReplicaSets[k.Kind] = true
	}
	return &k
}

// OwnsPods reports whether a kind of this name, of whatever group, owns pods itself.
func OwnsPods(name string) bool { return ownsPods[name] }

// OwnsReplicaSets reports whether a kind of this name, of whatever group, owns its pods through ReplicaSets only.
func OwnsReplicaSets(name string) bool { return ownsReplicaSets[name] }

// RevisionPaths returns the fields that make pods new.
func (k *Kind) RevisionPaths() [][]string {
	if k.Revision != nil {
		return k.Revision
	}
	return k.Pods.Templates
}

// Strategy returns the path of the fields of the update strategy in a version: the partition and the limits.
func (k *Kind) Strategy(version string) []string {
	if k.Rolling != nil && k.Pause != nil {
		path := k.Pause(version)
		return path[: len(path)-1 : len(path)-1]
	}
	return []string{"spec", "updateStrategy", "rollingUpdate"}
}

// RunsSteps reports whether pods of the kind are steps of a workflow that runs once or by a schedule.
func (k *Kind) RunsSteps() bool { return k.Workflow != nil && k.StatusIsShared }

// IsWorkflow reports whether each object of the kind is one run of a workflow.
func (k *Kind) IsWorkflow() bool { return k.Workflow != nil && k.Once != nil }

// WorkloadPaths returns the paths at which objects of the kind name a workload.
func (k *Kind) WorkloadPaths() [][]string {
	if k.Refers == nil {
		return nil
	}
	return k.Refers.Paths
}

// Counters are the names of status fields that count pods. Those of 0 pods may be missing.
type Counters struct {
	// All, Ready and Available pods, and the Updated ones, which have the latest pods of the object; empty for a kind that
	// does not count them.
	All, Updated, Ready, Available string
	// UpdatedAvailable counts the pods that are both; empty if the kind does not count them.
	UpdatedAvailable string
	// Desired counts the pods to run, for kinds whose spec has no number of them.
	Desired string
	// Existing count the pods that exist, or have existed, if All does not.
	Existing []string
	// Others count something else, which adds up over clusters.
	Others []string
	// Active counts the pods of a run that have not ended.
	Active string
}

// Present returns the fields that count the pods that exist.
func (c Counters) Present() []string {
	if c.Existing != nil {
		return c.Existing
	}
	return []string{c.All}
}

// OfReplicas are the counters of Deployments, which many kinds have.
var OfReplicas = Counters{All: "replicas", Updated: "updatedReplicas", Ready: "readyReplicas",
	Available: "availableReplicas"}

// ofPods returns the counters of OpenKruise, which also count updated pods that are available.
func ofPods(others ...string) Counters {
	c := OfReplicas
	c.UpdatedAvailable, c.Others = "updatedAvailableReplicas", others
	return c
}

// ofDaemons are the counters of DaemonSets.
var ofDaemons = Counters{All: "desiredNumberScheduled", Updated: "updatedNumberScheduled", Ready: "numberReady",
	Available: "numberAvailable", Desired: "desiredNumberScheduled", Existing: []string{"currentNumberScheduled"}}

// Failure is a condition with which a controller reports a failure.
type Failure struct {
	Type string
	// Updating is true if no pods are missing because of it.
	Updating bool
	// Current is true if it ends with the failure. Other conditions may be True after an error that is over.
	Current bool
}

// ReplicaFailure is the condition of a Deployment while pods cannot be created. In a rollout these may be additional
// ones, while enough run.
var ReplicaFailure = Failure{Type: "ReplicaFailure", Current: true}

// Runs is where an object that runs something by itself does so.
type Runs int

// The values of Runs.
const (
	_ Runs = iota
	// InOneCluster: several clusters would do its work several times.
	InOneCluster
	// InEachCluster: it runs in each cluster that gets it, which may be intended.
	InEachCluster
)

// References are how objects of a kind refer to workloads.
type References struct {
	// Paths are those of an apiVersion, kind and name, in any version of the kind. If one is set, the selector is ignored.
	Paths [][]string
	// Default is the kind of a workload where an object names none; zero if it must.
	Default schema.GroupKind
	// Selects is true if spec.selector selects pods, Everything if an empty selector selects all pods.
	Selects, Everything bool
	// Follows is true if its objects go to the clusters of their workloads.
	Follows bool
	// Generates is the annotation on a workload with which members create an object for it themselves.
	Generates string
	// Paces is true if its objects pace the rollouts of their workloads.
	Paces bool
}

// Defaults are fields with their default values.
type Defaults struct {
	// Spec are those of the spec, Rolling those of the rolling update.
	Spec, Rolling map[string]any
	// Policy is the field for the way to update a pod, and Way its default.
	Policy, Way string
}

// pauses returns the field for all versions.
func pauses(path ...string) func(string) []string { return func(string) []string { return path } }

var (
	replicas      = []string{"spec", "replicas"}
	pausesRolling = pauses("spec", "updateStrategy", "rollingUpdate", "paused")
)

// The groups of kinds.
const (
	core     = ""
	apps     = "apps"
	batch    = "batch"
	kruise   = "apps.kruise.io"
	rollouts = "rollouts.kruise.io"
	argo     = "argoproj.io"
)

func groupKind(group, name string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: name}
}
