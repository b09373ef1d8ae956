package fleet

import (
	"slices"
	"strconv"
	"strings"

	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// Note is the state of a rollout that is not in the Work's manifest, as JSON in wellknown.FleetAnnotation.
type Note struct {
	// Partition is the template's when the Work was written, as text.
	Partition string `json:"partition,omitempty"`
	// Raised is true if the partition was raised during this rollout: the rollout may then revert new pods.
	Raised bool `json:"raised,omitempty"`
	// Halted is true if the rollout made the workload in this cluster unhealthy, by the last report.
	Halted bool `json:"halted,omitempty"`
	// Settled is true if all pods in the cluster were once reported at the revision in the Work. It stays true until the
	// member reports about a later write.
	Settled bool `json:"settled,omitempty"`
	// Grant is how many pods the rollout may make unavailable in the cluster; 0 while it is paused there.
	Grant int64 `json:"grant,omitempty"`
	// Pending is the largest earlier grant that may be in use, until the member has observed Grant.
	Pending int64 `json:"pending,omitempty"`
	// Surge and PendingSurge are the same for pods beyond the replicas.
	Surge        int64 `json:"surge,omitempty"`
	PendingSurge int64 `json:"pendingSurge,omitempty"`
	// Deleted are the pods that the cluster deleted on request and that the template still names. Missing are names that
	// no cluster had. Both are comma-separated.
	Deleted string `json:"deleted,omitempty"`
	Missing string `json:"missing,omitempty"`
	// Turn is when the cluster last got or returned its part of a budget that clusters use in turns.
	Turn string `json:"turn,omitempty"`
	// Versions are earlier versions of a SidecarSet in the cluster: names, separated by commas.
	Versions string `json:"versions,omitempty"`
	// Revisions map the name of a revision in the template to its name in the cluster: name=own, separated by commas.
	Revisions string `json:"revisions,omitempty"`
	// Stood are the revisions of the Kruise Rollouts in other clusters when the Rollout in this cluster was last idle:
	// cluster=revision, separated by commas.
	Stood string `json:"stood,omitempty"`
}

func (n Note) String() string { return words.JSON(n) }

// share is the part of a rollout in a manifest: replicas-released pods stay old.
type share struct {
	replicas, released   int64
	unavailable, surging int64
}

// party is a cluster's part in a rollout.
type party struct {
	cluster  string
	replicas int64
	// reachable: the cluster responds. suspended: its Work is not sent.
	reachable, suspended bool
	// scaled is true if an autoscaler in the cluster sets the replicas. percent is true if the partition is therefore a
	// percentage.
	scaled, percent bool
	// fixed is the partition that an override sets, own the maxUnavailable that an override sets; nil without an override.
	fixed, own *int64

	// there is true if a Work exists. The following fields are about it.
	there bool
	was   share
	note  *Note // nil: written before there were notes
	// same is true if the next write does not change the pod template.
	same bool
	// rewritten is true if the Work must be written, because the template has changed.
	rewritten bool

	// known is true if the member has reported at all; fresh if it has reported about the current Work.
	known, fresh bool
	unhealthy    bool

	pods, updated, updatedAvailable, available int64
}

// overridden reports whether an override limits the rollout in the cluster.
func (p party) overridden() bool { return p.fixed != nil || p.own != nil }

// rollout has the settings of a template.
type rollout struct {
	// partition of the template; kept resolves it for a number of replicas.
	partition any
	kept      func(partition any, of int64) (int64, error)
	// unavailable and surge are the budgets of the fleet; not both are 0.
	unavailable, surge int64
	// single limits each cluster to one unavailable pod, because the controller of the kind updates one pod at a time.
	single bool
	// stalled is true if its deadline has passed without progress; tolerated is how many pods may fail.
	stalled   bool
	tolerated int64
	// targets divides n new pods among the parties, in their order. Each gets at least its floor.
	targets func(n int64, seats []Seat, done func(targets []int64) bool) ([]int64, Stage)
	options options
}

// outcome has the fields to write in one cluster.
type outcome struct {
	share
	note Note
	// scaled and percent as in party.
	scaled, percent bool
	// target is the number of new pods in the cluster at the end of the rollout or of this stage.
	target int64
}

// aim is the goal of a rollout.
type aim struct {
	// targets are the numbers of new pods by cluster at the end of the rollout or of stage.
	targets []int64
	stage   Stage
	// seats have the number of pods that are already new as their floors.
	seats []Seat
	// budget is the number of unavailable pods that is left after overrides.
	budget int64
	// raised is true if the partition was raised during this rollout; justRaised if it was since the Works were written.
	raised, justRaised bool
}

// aim decides the number of new pods by cluster.
func (ro rollout) aim(parties []party) (aim, error) {
	// 1. Fields that overrides set are not divided.
	var total, fixedKept, fixedTotal int64
	budget := ro.unavailable
	for _, p := range parties {
		total += p.replicas
		if p.fixed != nil {
			fixedKept += min(*p.fixed, p.replicas)
			fixedTotal += p.replicas
		}
		if p.own != nil {
			budget -= *p.own
		}
	}
	kept, err := ro.kept(ro.partition, total)
	if err != nil {
		return aim{}, err
	}
	if budget < 1 && ro.unavailable > 0 {
		budget = 1
	}
	wanted := max(0, min(total-fixedTotal-max(0, kept-fixedKept), total-fixedTotal))

	// 2. New pods stay new, unless the partition was raised. If the template returns to an earlier revision, pods of
	//    that revision are new at once; only members know them.
	raised, justRaised, mixed := false, false, false
	for _, p := range parties {
		if !p.there || !p.same {
			continue
		}
		if p.fresh && p.updated < p.pods {
			mixed = true
		}
		if p.note == nil {
			continue
		}
		raised = raised || p.note.Raised
		if before, err := ro.kept(unquote(p.note.Partition), total); err == nil && before < kept {
			raised, justRaised = true, true
		}
	}
	seats := make([]Seat, len(parties))
	for i, p := range parties {
		seats[i] = Seat{Weight: p.replicas, Cap: p.replicas}
		if p.fixed != nil {
			seats[i] = Seat{}
			continue
		}
		if !p.there || !p.same || justRaised {
			continue
		}
		seats[i].Floor = min(p.was.released, p.replicas)
		// After a scale-up, more pods are new because there are more pods.
		if p.fresh && mixed && !raised && !p.percent {
			seats[i].Floor = min(max(seats[i].Floor, p.updated), p.replicas)
		}
	}
	allLost := !slices.ContainsFunc(parties, func(p party) bool { return p.reachable })
	done := func(targets []int64) bool {
		if allLost && sum(targets) > 0 {
			return false // the hub is probably cut off
		}
		for i, p := range parties {
			if !p.reachable && ro.options.ignores(p.cluster) {
				continue
			}
			if p.fixed == nil && targets[i] > 0 &&
				!(p.there && p.same && p.fresh && p.updatedAvailable >= p.due(p.expressible(targets[i]))) {
				return false
			}
		}
		return true
	}
	targets, stage := ro.targets(wanted, seats, done)
	for i, p := range parties {
		targets[i] = p.expressible(targets[i])
	}
	return aim{targets, stage, seats, budget, raised, justRaised}, nil
}

// step is the next step of a rollout in one cluster.
type step struct {
	party
	to outcome
	// using and surging are the maximum use of the budgets in the cluster now. down is its number of unavailable pods.
	using, surging, down int64
	// lost is true if the cluster does not respond; its pods then count as unavailable.
	lost bool
}

// next returns the next step of a rollout. It is idempotent: without news, the step is the same. It keeps
//
//	Σ max(granted, unavailable) ≤ the budget
//
// Here granted is the maximum that a cluster may have in use; it counts until the member reports less. Pods that are
// unavailable for other reasons count for the whole fleet: they pause other clusters, and only their own cluster may
// continue.
//
// A cluster without a grant is paused by its partition, which stays at the number of new pods: OpenKruise rejects a
// budget of zero. A cluster whose released pods are all new needs no write to be paused.
func (ro rollout) next(parties []party) (outcomes []outcome, halted []string, err error) {
	a, err := ro.aim(parties)
	if err != nil {
		return nil, nil, err
	}
	steps := make([]step, len(parties))
	for i, p := range parties {
		steps[i] = ro.stay(p, a, a.targets[i], a.seats[i].Floor)
	}
	if halted = ro.broken(steps); len(halted) > 0 || ro.options.isPaused() {
		// An unhealthy rollout, or one that a release pauses, stops in all clusters. New pods stay new.
		for i := range steps {
			steps[i].halt(slices.Contains(halted, steps[i].cluster))
		}
	} else {
		ro.advance(steps, a.budget)
	}
	return ro.settle(steps), halted, nil
}

// stay returns the step of p without a new grant: it starts no further updates. floor is the number of new pods in p.
func (ro rollout) stay(p party, a aim, target, floor int64) step {
	s := step{party: p, to: outcome{target: target}}
	s.to.replicas = p.replicas
	s.to.note = Note{Partition: quote(ro.partition), Raised: a.raised, Settled: !a.raised && p.settled()}
	// 1. The maximum use of the budgets now, and the unavailable pods.
	switch {
	case p.overridden(), !p.there && ro.options.waits(p.cluster):
	case p.reachable:
		s.using, s.surging = p.using()
		s.down = max(0, p.running(p.replicas)-p.available)
	case !ro.options.ignores(p.cluster):
		s.using, s.surging = p.using()
		s.down, s.lost = p.replicas, true
	}
	if s.using > 0 {
		s.to.note.Grant = p.granted()
	}
	if s.surging > 0 {
		s.to.note.Surge = p.grantedSurge()
	}
	// 2. The content of its Work.
	if p.there {
		s.to.unavailable, s.to.surging = p.was.unavailable, p.was.surging
	}
	switch {
	case p.fixed != nil:
		s.to.released = p.replicas - min(*p.fixed, p.replicas)
	case !p.there, p.own != nil:
		s.to.released = target
	case a.justRaised:
		s.to.released = min(target, p.was.released)
	case p.same:
		s.to.released = min(target, p.undisturbed(floor))
	}
	return s
}

// halt stops the release of pods. broken is true if the rollout made the workload in this cluster unhealthy.
func (s *step) halt(broken bool) {
	s.to.note.Halted = broken
	if s.overridden() || !s.there || !s.same {
		return
	}
	if s.fresh {
		s.to.released = min(s.to.released, max(s.updated, 0))
	}
	s.pend()
}

// pend records earlier grants that may still be in use.
func (s *step) pend() {
	if s.using > s.to.note.Grant {
		s.to.note.Pending = s.using
	}
	if s.surging > s.to.note.Surge {
		s.to.note.PendingSurge = s.surging
	}
}

// advance grants the budgets to clusters with pods to update, in flight or not. budget is for unavailable pods.
func (ro rollout) advance(steps []step, budget int64) {
	unavailable, surging := make([]request, len(steps)), make([]request, len(steps))
	lost := false
	for i, s := range steps {
		need := ro.need(s)
		unavailable[i] = request{need: need, using: s.using, down: s.down, replicas: s.replicas}
		surging[i] = request{need: need, using: s.surging, replicas: s.replicas}
		lost = lost || s.lost
	}
	grants, surges := ro.grant(budget, unavailable), ro.grant(ro.surge, surging)
	for i := range steps {
		s := &steps[i]
		switch granted := grants[i] > 0 || ro.unavailable == 0 && surges[i] > 0 && !lost; {
		case unavailable[i].need == 0:
		case granted:
			s.to.released = s.to.target
			s.to.unavailable, s.to.surging = grants[i], surges[i]
			s.to.note.Grant, s.to.note.Surge = grants[i], surges[i]
		}
		s.pend()
	}
}

// need returns the number of pods to update, in flight or not; 0 if the cluster gets no part of the budgets.
func (ro rollout) need(s step) int64 {
	inFlight := s.same && s.using+s.surging > 0
	switch {
	case s.overridden(), !s.there, !s.reachable, s.suspended, s.to.target <= s.to.released && !inFlight:
		return 0
	case ro.single:
		return 1
	case s.same && s.known:
		return max(1, s.to.target-min(s.to.target, s.updatedAvailable))
	}
	return max(1, s.to.target)
}

// undisturbed returns how many replicas of p can be released without further updates compared to its Work. At most
// floor pods of p are new.
func (p party) undisturbed(floor int64) int64 {
	switch more := p.replicas - p.was.replicas; {
	case more >= 0:
		// Pods are created only when there are fewer than the replicas, and these are new.
		return max(floor, p.was.released+p.replicas-max(p.was.replicas, p.pods))
	case p.fresh:
		return max(min(floor, p.updated), p.was.released+more)
	default:
		// Until the member reports, all remaining pods may be old.
		return max(0, p.was.released+more)
	}
}

// expressible returns the largest number of new pods up to n that the partition of p can express.
func (p party) expressible(n int64) int64 {
	if !p.percent || n >= p.replicas {
		return n
	}
	_, keeps := PercentKeeping(p.replicas-n, p.replicas)
	return p.replicas - keeps
}

// running returns how many of n pods an autoscaler in the cluster keeps.
func (p party) running(n int64) int64 {
	if p.percent && p.fresh {
		return min(n, p.pods)
	}
	return n
}

// due returns how many pods of p must be new when n of its replicas are released: as many as the percentage allows if
// an autoscaler in the cluster keeps fewer pods than the replicas on the hub.
func (p party) due(n int64) int64 {
	pods := p.running(p.replicas)
	if pods == p.replicas {
		return n
	}
	percent, _ := PercentKeeping(p.replicas-n, p.replicas)
	kept, _ := KeptOld(percent, pods, Up) // a percentage is never wrong
	return min(n, pods-kept)
}

// settled reports whether no pod of p is old, by its last report or by one before the last write of its Work.
func (p party) settled() bool {
	if !p.there || !p.same {
		return false
	}
	if p.fresh {
		return p.updated >= p.pods
	}
	return p.note != nil && p.note.Settled
}

// granted returns the number of unavailable pods that the Work of p allows.
func (p party) granted() int64 {
	if p.note == nil {
		return p.was.unavailable
	}
	return p.note.Grant
}

func (p party) grantedSurge() int64 {
	if p.note == nil {
		return p.was.surging
	}
	return p.note.Surge
}

// using returns the maximum use of the budgets in p now.
func (p party) using() (unavailable, surge int64) {
	if !p.there {
		return 0, 0
	}
	unavailable, surge = p.granted(), p.grantedSurge()
	switch {
	case !p.fresh && p.note != nil:
		return max(unavailable, p.note.Pending), max(surge, p.note.PendingSurge)
	case !p.fresh:
		return unavailable, surge
	}
	if p.updatedAvailable >= p.due(min(p.was.released, p.was.replicas)) {
		unavailable = 0
		if p.pods <= p.was.replicas {
			surge = 0
		}
	}
	return unavailable, surge
}

// request is a cluster's need for a budget, in addition to its use. down is its number of unavailable pods.
type request struct{ need, using, down, replicas int64 }

// grant divides a budget among requests, in addition to the use. The sum never exceeds the budget. While as many pods
// are unavailable as the budget allows, only clusters with unavailable pods get grants, because updating those pods
// costs nothing. The result is the new grant of each cluster.
func (ro rollout) grant(budget int64, requests []request) []int64 {
	if budget <= 0 {
		return make([]int64, len(requests))
	}
	var inUse, all int64
	for _, r := range requests {
		inUse += r.using
		all += max(r.using, r.down)
	}
	seats := make([]Seat, len(requests))
	if inUse > budget {
		// The budget was lowered: reduce the present grants, and make no new ones.
		for i, r := range requests {
			seats[i] = Seat{Weight: r.using, Cap: r.using}
		}
		wish := Split(budget, seats)
		for i, r := range requests {
			if r.need > 0 && r.using > 0 {
				wish[i] = max(wish[i], 1)
			}
		}
		return wish
	}
	spare := max(0, budget-all)
	for i, r := range requests {
		seats[i] = Seat{Cap: r.using, Floor: r.using}
		if r.need > 0 {
			seats[i].Weight = r.replicas
			seats[i].Cap = max(r.using, min(r.need, max(r.using, r.down)+spare))
		}
	}
	divide := Split
	if ro.options.order == oneByOne {
		divide = inOrder
	}
	wish := divide(budget, seats)
	// Each cap is the whole rest, so divide the rest only once.
	for i, r := range requests {
		base := max(r.using, r.down)
		if beyond := wish[i] - base; beyond > 0 {
			beyond = min(beyond, spare)
			spare -= beyond
			wish[i] = base + beyond
		}
	}
	return wish
}

// broken returns the clusters where the rollout made the workload unhealthy, while old pods remain in any cluster.
func (ro rollout) broken(steps []step) (clusters []string) {
	if ro.options.neverHalt || !slices.ContainsFunc(steps, func(s step) bool {
		return s.there && s.same && !s.settled()
	}) {
		return nil
	}
	var failed int64
	stopped := false
	for _, s := range steps {
		if !s.there || !s.same || s.to.target == 0 {
			continue
		}
		// The write that halted the rollout may have ended the failure that was reported, but not the failing pods.
		halted := s.note != nil && s.note.Halted
		fails := s.unhealthy || halted || ro.stalled && ro.options.failedPods != nil
		switch down := s.updated - s.updatedAvailable; {
		case s.fresh && fails && down > 0:
			failed += down
			clusters = append(clusters, s.cluster)
		case !s.fresh && halted:
			// The member has not yet observed the write that stops the rollout.
			stopped = true
			clusters = append(clusters, s.cluster)
		}
	}
	if failed <= ro.tolerated && !stopped {
		return nil
	}
	return clusters
}

// settle adjusts budgets to values that members accept, and keeps the notes of unchanged Works.
func (ro rollout) settle(steps []step) []outcome {
	weights := make([]int64, len(steps))
	for i, s := range steps {
		weights[i] = s.replicas
	}
	unavailable, surge := proportional(ro.unavailable, weights), proportional(ro.surge, weights)
	outcomes := make([]outcome, len(steps))
	for i, s := range steps {
		o := s.to
		o.released, o.scaled, o.percent = s.expressible(o.released), s.scaled, s.percent
		if !s.there {
			o.unavailable, o.surging = unavailable[i], surge[i]
		}
		if ro.single {
			o.unavailable = min(o.unavailable, 1)
		}
		// Members reject DaemonSets with both.
		if ro.surge == 0 {
			o.note.PendingSurge = max(o.note.PendingSurge, o.note.Surge)
			o.surging, o.note.Surge = 0, 0
		}
		if ro.unavailable == 0 {
			o.note.Pending = max(o.note.Pending, o.note.Grant)
			o.unavailable, o.note.Grant = 0, 0
		}
		if o.unavailable+o.surging < 1 {
			// The value has no effect: the partition pauses the cluster, or all its pods are released.
			if ro.unavailable > 0 {
				o.unavailable = 1
			} else {
				o.surging = 1
			}
		}
		if s.there && s.same && s.note != nil && o.share == s.was && s.note.Partition == o.note.Partition &&
			s.note.Raised == o.note.Raised && s.note.Halted == o.note.Halted && !s.rewritten {
			// A change of Settled alone causes no write.
			settled := o.note.Settled
			o.note = *s.note
			if !settled {
				o.note.Settled = settled
			}
		}
		outcomes[i] = o
	}
	return outcomes
}

// quote formats a partition as text. unquote reverses it.
func quote(partition any) string {
	if n, ok := whole(partition); ok {
		return strconv.FormatInt(n, 10)
	}
	text, _ := partition.(string)
	return text
}

func unquote(text string) any {
	if text == "" || strings.HasSuffix(text, "%") {
		if text == "" {
			return nil
		}
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return n
}
