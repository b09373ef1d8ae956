package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// observation summarizes the reports of members about the clusters of a stage.
type observation struct {
	// reached is true if all clusters have reached the stage but those that the release goes on without. reachedTargets
	// has the same for each target.
	reached        bool
	reachedTargets map[string]bool
	// available are the new pods that are.
	available int64
	counts    releasev1alpha1.ReleaseStageCounts
	clusters  []releasev1alpha1.ReleaseClusterStatus
	// behind are the clusters that have not reached the stage. lost are those of them that do not answer; onlyLost is true
	// if there are no others.
	behind, lost []string
	isLost       map[string]bool
	onlyLost     bool
	// refused is a cluster that does not take its Work.
	refused string
	// failure is the reason why the stage fails, empty if it does not; failedTargets are the targets that fail.
	failure, message string
	failedTargets    []string
}

// observe reads the clusters of stage k.
func (s *stepper) observe(k int) observation {
	return s.observeClusters(clusterNames(s.status.Stages, k), k+1 == len(s.status.Stages) &&
		s.status.Strategy.OnNewCluster != releasev1alpha1.NewClusterDefer &&
		s.status.Strategy.OnNewCluster != releasev1alpha1.NewClusterHold)
}

// observeClusters reads clusters. With joined, clusters of no stage count too, if the plan updates them.
func (s *stepper) observeClusters(names []string, joined bool) observation {
	o := observation{reached: true, reachedTargets: map[string]bool{}, isLost: map[string]bool{}}
	perCluster := map[string]bool{} // whether it is reached
	failed := map[string]bool{}
	var failing int64
	for _, spec := range s.Release.Spec.Targets {
		reached := true
		for _, p := range s.Targets[spec.Name].Progress {
			own := slices.Contains(names, p.Cluster)
			if p.Lost {
				o.isLost[p.Cluster] = true
			}
			if !own && !(joined && p.Target > 0) {
				continue
			}
			skipped := p.Lost && skips(&s.status, p.Cluster)
			done := p.Reached && !p.Lost
			was, seen := perCluster[p.Cluster]
			perCluster[p.Cluster] = done && (was || !seen)
			o.counts.Pods += p.Target
			o.counts.New += p.New
			o.counts.Available += p.Available
			o.available += p.Available
			refused := p.Refused && p.Current && s.refusalCounts()
			bad := p.Failed || refused
			if bad {
				failed[p.Cluster] = true
				failing += max(0, p.New-p.Available)
				if !slices.Contains(o.failedTargets, spec.Name) {
					o.failedTargets = append(o.failedTargets, spec.Name)
				}
			}
			if refused {
				o.refused = p.Cluster
			}
			phase := releasev1alpha1.ClusterUpdating
			switch {
			case skipped:
				phase = releasev1alpha1.ClusterSkipped
			case p.Lost:
				phase = releasev1alpha1.ClusterLost
			case bad:
				phase = releasev1alpha1.ClusterFailed
			case done:
				continue
			}
			o.clusters = append(o.clusters, releasev1alpha1.ReleaseClusterStatus{Name: p.Cluster, Workload: spec.Name,
				Replicas: p.Replicas, Target: p.Target, New: p.New, Available: p.Available, Phase: phase,
				Message: cut(p.Message)})
			if !skipped && !bad {
				reached = false
			}
		}
		o.reachedTargets[spec.Name] = reached
		o.reached = o.reached && reached
	}
	o.conclude(s, perCluster, failed, failing)
	return o
}

// behindTargets are the targets that are not reached, sorted.
func (o observation) behindTargets() (names []string) {
	for name, reached := range o.reachedTargets {
		if !reached {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// refusalGrace is for how long a retried stage, and a rollback, do not count refusals: a member may have been fixed,
// and the hub asks it again every two minutes at the latest.
const refusalGrace = 3 * time.Minute

// refusalCounts reports whether the refusal of a cluster fails the stage or the rollback under way.
func (s *stepper) refusalCounts() bool {
	var since *metav1.Time
	if r := s.status.Rollback; r != nil {
		since = &r.StartedAt
	} else if k := s.current(); k < len(s.status.Stages) && s.status.Stages[k].Attempt > 1 {
		since = s.status.Stages[k].StartedAt
	}
	if since == nil {
		return true
	}
	until := since.Add(refusalGrace)
	if s.now.Before(until) {
		s.wake(until)
		return false
	}
	return true
}

// conclude counts clusters, and decides whether the stage fails.
func (o *observation) conclude(s *stepper, perCluster, failed map[string]bool, failing int64) {
	for name, done := range perCluster {
		o.counts.Clusters++
		switch {
		case done:
			o.counts.Reached++
		case o.isLost[name] && skips(&s.status, name):
			o.counts.Skipped++
			o.lost = append(o.lost, name)
		case failed[name]:
			o.counts.Failed++
		default:
			o.behind = append(o.behind, name)
			if o.isLost[name] {
				o.lost = append(o.lost, name)
			}
		}
	}
	slices.Sort(o.behind)
	slices.Sort(o.lost)
	o.clusters = o.clusters[:min(len(o.clusters), 200)]
	o.onlyLost = len(o.behind) > 0 && !slices.ContainsFunc(o.behind, func(name string) bool { return !o.isLost[name] })
	names := slices.Sorted(maps.Keys(failed))
	rule := s.status.Strategy.Failure
	switch {
	case len(names) == 0:
	case len(names) <= limitOf(rule.MaxFailedClusters, len(perCluster), 0) &&
		failing <= int64(limitOf(rule.MaxFailedPods, int(o.counts.Pods), 0)):
	case o.refused != "":
		o.failure, o.message = releasev1alpha1.ReasonRefused, fmt.Sprintf("the workload is refused in %s",
			text.Names(names, 3))
	case failing > 0:
		o.failure, o.message = releasev1alpha1.ReasonPodsFailed, fmt.Sprintf("%d new pods fail in %s", failing,
			text.Names(names, 3))
	default:
		o.failure, o.message = releasev1alpha1.ReasonCopyUnhealthy, fmt.Sprintf("the workload is unhealthy in %s",
			text.Names(names, 3))
	}
}

// skips reports whether a release goes on without a cluster.
func skips(status *releasev1alpha1.ReleaseStatus, cluster string) bool {
	return slices.ContainsFunc(status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool {
		return l.Name == cluster && l.Skipped
	})
}

// missing waits for a ReleaseRevision that is not stored. One that was just stored may not be in the cache yet.
func (s *stepper) missing(target, revision string) {
	since := s.status.StartedAt
	if s.status.Rollback != nil {
		since = &s.status.Rollback.StartedAt
	} else if k := s.current(); k < len(s.status.Stages) && s.status.Stages[k].StartedAt != nil {
		since = s.status.Stages[k].StartedAt
	}
	if until := since.Add(missingGrace); s.now.Before(until) {
		s.wake(until)
		return
	}
	s.wait(releasev1alpha1.ReasonRevisionNotFound,
		"ReleaseRevision %s of target %s does not exist: restore it, or release another revision", revision, target)
}

// synced reports whether the bindings say what the status asks for, so that what members report is about it. Where
// something prevents that, the release waits with a reason.
func (s *stepper) synced() bool {
	for _, t := range s.status.Targets {
		if target := s.Targets[t.Name]; target.Template == nil || target.Binding == nil {
			s.wait(releasev1alpha1.ReasonTargetNotFound, "target %s does not exist, or no policy propagates it", t.Name)
			return false
		}
	}
	for name, want := range s.bindings() {
		t := s.Targets[name]
		if t.effective() != want.Revision ||
			t.Binding.GetAnnotations()[fleet.PlanAnnotation] != want.Plan.String() {
			return false
		}
		if t.Progress == nil {
			s.missing(name, want.Revision)
			return false
		}
		if !want.Plan.Fits(t.Template, t.Divided) {
			s.wait(releasev1alpha1.ReasonFleetHalted,
				"the template of target %s can no longer be updated by %s, as when the release started: undo that change", name,
				strings.ToLower(want.Plan.Unit))
			return false
		}
	}
	return true
}
