package fleet

import (
	"slices"
	"strconv"

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
	// Turn is when the cluster last got or returned its part of a budget that clusters use one after the other.
	Turn string `json:"turn,omitempty"`
	// Stood has the revisions of the Kruise Rollouts of other clusters, as they were when the Rollout of this cluster was
	// last idle: cluster=revision, separated by commas.
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
	// fixedKept is the number of old pods that an override of partition keeps, fixedUnavailable the maxUnavailable that
	// an override sets. Each is nil without such an override.
	fixedKept, fixedUnavailable *int64

	// hasWork is true if a Work exists. The following fields are about it.
	hasWork bool
	// written is the share in the manifest of the Work.
	written share
	// note is nil if the Work was written before notes existed.
	note *Note
	// sameTemplate is true if the next write does not change the pod template.
	sameTemplate bool
	// rewritten is true if the Work must be written, because the template has changed.
	rewritten bool

	// known is true if the member has reported at all; fresh if it has reported about the current Work.
	known, fresh bool
	unhealthy    bool

	// The numbers of pods in the last report.
	pods, updated, updatedAvailable, available int64
}

// overridden reports whether an override limits the rollout in the cluster.
func (p party) overridden() bool { return p.fixedKept != nil || p.fixedUnavailable != nil }

// rollout has the settings of a template.
type rollout struct {
	// partition is the template's.
	partition any
	// kept returns how many of a number of replicas a partition keeps old.
	kept func(partition any, replicas int64) (int64, error)
	// unavailable and surge are the budgets of the fleet. At least one is not 0.
	unavailable, surge int64
	// single limits each cluster to one unavailable pod, because the controller of the kind updates one pod at a time.
	single bool
	// stalled is true if the deadline has passed without progress.
	stalled bool
	// tolerated is how many pods may fail before the rollout halts.
	tolerated int64
	// targets divides n new pods among the parties. The result is in their order, and each gets at least its floor. done
	// reports whether a stage with the given targets is complete.
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

// goal is the state at the end of a rollout or of its current stage. Its slices are in the order of the parties.
type goal struct {
	// targets are the numbers of new pods.
	targets []int64
	// stage is the current stage, or empty without stages.
	stage Stage
	// seats have the numbers of pods that are already new as their floors.
	seats []Seat
	// budget is the part of the unavailable pods that overrides leave to the other clusters.
	budget int64
	// raised is true if the partition was raised during this rollout, justRaised if it was raised since the Works were
	// written.
	raised, justRaised bool
}

// goal decides the number of new pods by cluster.
func (ro rollout) goal(parties []party) (goal, error) {
	// 1. Fields that overrides set are not divided.
	var total, fixedKept, fixedTotal int64
	budget := ro.unavailable
	for _, p := range parties {
		total += p.replicas
		if p.fixedKept != nil {
			fixedKept += min(*p.fixedKept, p.replicas)
			fixedTotal += p.replicas
		}
		if p.fixedUnavailable != nil {
			budget -= *p.fixedUnavailable
		}
	}
	kept, err := ro.kept(ro.partition, total)
	if err != nil {
		return goal{}, err
	}
	if budget < 1 && ro.unavailable > 0 {
		budget = 1
	}
	wanted := max(0, min(total-fixedTotal-max(0, kept-fixedKept), total-fixedTotal))

	// 2. New pods stay new, unless the partition was raised. If the template returns to an earlier revision, pods of
	//    that revision are new at once. Only members know how many there are.
	raised, justRaised, mixed := false, false, false
	for _, p := range parties {
		if !p.hasWork || !p.sameTemplate {
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
		if p.fixedKept != nil {
			seats[i] = Seat{}
			continue
		}
		if !p.hasWork || !p.sameTemplate || justRaised {
			continue
		}
		seats[i].Floor = min(p.written.released, p.replicas)
		// A scale-up creates new pods.
		if p.fresh && mixed && !raised && !p.percent {
			seats[i].Floor = min(max(seats[i].Floor, p.updated), p.replicas)
		}
	}
	allLost := !slices.ContainsFunc(parties, func(p party) bool { return p.reachable })
	done := func(targets []int64) bool {
		if allLost && sum(targets) > 0 {
			return false // the hub has probably lost its network
		}
		for i, p := range parties {
			if !p.reachable && ro.options.ignores(p.cluster) {
				continue
			}
			if p.fixedKept == nil && targets[i] > 0 &&
				!(p.hasWork && p.sameTemplate && p.fresh && p.hasReached(p.expressible(targets[i]))) {
				return false
			}
		}
		return true
	}
	targets, stage := ro.targets(wanted, seats, done)
	for i, p := range parties {
		targets[i] = p.expressible(targets[i])
	}
	return goal{targets, stage, seats, budget, raised, justRaised}, nil
}

// step is the next step of a rollout in one cluster.
type step struct {
	party
	to outcome
	// using and surging are how much of the two budgets the cluster may use now. down is its number of unavailable pods.
	using, surging, down int64
	// lost is true if the cluster does not respond. All its pods then count as unavailable.
	lost bool
}

// next returns the next step of a rollout, and the clusters that halt it. Without new reports it returns the same step.
// It keeps the invariant
//
//	Σ max(granted, unavailable) ≤ the budget
//
// where granted is what a cluster may use of the budget until the member reports that it uses less. Pods that are
// unavailable for other reasons count too: while they use up the budget, only their own clusters continue.
//
// A cluster without a grant is paused by its partition, which stays at the number of new pods, because OpenKruise
// rejects a budget of zero. A cluster whose released pods are all new needs no write to be paused.
func (ro rollout) next(parties []party) (outcomes []outcome, halted []string, err error) {
	a, err := ro.goal(parties)
	if err != nil {
		return nil, nil, err
	}
	steps := make([]step, len(parties))
	for i, p := range parties {
		steps[i] = ro.withoutGrant(p, a, a.targets[i], a.seats[i].Floor)
	}
	if halted = ro.unhealthyClusters(steps); len(halted) > 0 || ro.options.isPaused() {
		// An unhealthy rollout, or one that a release pauses, stops in all clusters. New pods stay new.
		for i := range steps {
			steps[i].halt(slices.Contains(halted, steps[i].cluster))
		}
	} else {
		ro.grantBudgets(steps, a.budget)
	}
	return ro.outcomes(steps), halted, nil
}

// withoutGrant returns the step of p that starts no further updates. floor is the number of new pods in p.
func (ro rollout) withoutGrant(p party, a goal, target, floor int64) step {
	s := step{party: p, to: outcome{target: target}}
	s.to.replicas = p.replicas
	s.to.note = Note{Partition: quote(ro.partition), Raised: a.raised, Settled: !a.raised && p.settled()}
	// 1. Its use of the budgets, and its unavailable pods.
	switch {
	case p.overridden(), !p.hasWork && ro.options.waits(p.cluster):
	case p.reachable:
		s.using, s.surging = p.maxUse()
		s.down = max(0, p.running(p.replicas)-p.available)
	case !ro.options.ignores(p.cluster):
		s.using, s.surging = p.maxUse()
		s.down, s.lost = p.replicas, true
	}
	if s.using > 0 {
		s.to.note.Grant = p.granted()
	}
	if s.surging > 0 {
		s.to.note.Surge = p.grantedSurge()
	}
	// 2. The share in its Work.
	if p.hasWork {
		s.to.unavailable, s.to.surging = p.written.unavailable, p.written.surging
	}
	switch {
	case p.fixedKept != nil:
		s.to.released = p.replicas - min(*p.fixedKept, p.replicas)
	case !p.hasWork, p.fixedUnavailable != nil:
		s.to.released = target
	case a.justRaised:
		s.to.released = min(target, p.written.released)
	case p.sameTemplate:
		s.to.released = min(target, p.releasableNow(floor))
	}
	return s
}

// halt stops the release of pods. unhealthy is true if the rollout made the workload in this cluster unhealthy.
func (s *step) halt(unhealthy bool) {
	s.to.note.Halted = unhealthy
	if s.overridden() || !s.hasWork || !s.sameTemplate {
		return
	}
	if s.fresh {
		s.to.released = min(s.to.released, max(s.updated, 0))
	}
	s.recordPendingGrants()
}

// recordPendingGrants records earlier grants that the cluster may still use.
func (s *step) recordPendingGrants() {
	if s.using > s.to.note.Grant {
		s.to.note.Pending = s.using
	}
	if s.surging > s.to.note.Surge {
		s.to.note.PendingSurge = s.surging
	}
}

// grantBudgets grants the budgets to the clusters with pods to update. budget is the one for unavailable pods.
func (ro rollout) grantBudgets(steps []step, budget int64) {
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
		s.recordPendingGrants()
	}
}

// need returns how many pods are still to update, including those that are being updated. It is 0 if the cluster gets
// no part of the budgets.
func (ro rollout) need(s step) int64 {
	inFlight := s.sameTemplate && s.using+s.surging > 0
	switch {
	case s.overridden(), !s.hasWork, !s.reachable, s.suspended, s.to.target <= s.to.released && !inFlight:
		return 0
	case ro.single:
		return 1
	case s.sameTemplate && s.known:
		return max(1, s.to.target-min(s.to.target, s.updatedAvailable))
	}
	return max(1, s.to.target)
}

// releasableNow returns how many replicas of p can be released without updating more pods than its Work does. At most
// floor pods of p are new.
func (p party) releasableNow(floor int64) int64 {
	switch more := p.replicas - p.written.replicas; {
	case more >= 0:
		// Pods are created only when there are fewer than the replicas, and these are new.
		return max(floor, p.written.released+p.replicas-max(p.written.replicas, p.pods))
	case p.fresh:
		return max(min(floor, p.updated), p.written.released+more)
	default:
		// Until the member reports, all remaining pods may be old.
		return max(0, p.written.released+more)
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

// hasReached reports whether enough pods of p are new and available when n of its replicas are released. If an
// autoscaler in the cluster keeps fewer pods than the replicas on the hub, fewer suffice. If it keeps more, at most
// the kept share may be old; new pods that it adds need not be available yet.
func (p party) hasReached(n int64) bool {
	if !p.percent || !p.fresh || p.pods == p.replicas {
		return p.updatedAvailable >= n
	}
	percent, _ := PercentKeeping(p.replicas-n, p.replicas)
	kept, _ := KeptOld(percent, p.pods, Up) // a percentage is never wrong
	return p.updatedAvailable >= min(n, p.pods-kept) && (p.pods < p.replicas || p.pods-p.updated <= kept)
}

// settled reports whether no pod of p is old, by its last report or by one before the last write of its Work.
func (p party) settled() bool {
	if !p.hasWork || !p.sameTemplate {
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
		return p.written.unavailable
	}
	return p.note.Grant
}

// grantedSurge returns the number of pods beyond the replicas that the Work of p allows.
func (p party) grantedSurge() int64 {
	if p.note == nil {
		return p.written.surging
	}
	return p.note.Surge
}

// maxUse returns how much of the two budgets p may use now.
func (p party) maxUse() (unavailable, surge int64) {
	if !p.hasWork {
		return 0, 0
	}
	unavailable, surge = p.granted(), p.grantedSurge()
	switch {
	case !p.fresh && p.note != nil:
		return max(unavailable, p.note.Pending), max(surge, p.note.PendingSurge)
	case !p.fresh:
		return unavailable, surge
	}
	if p.hasReached(min(p.written.released, p.written.replicas)) {
		unavailable = 0
		if p.pods <= p.written.replicas {
			surge = 0
		}
	}
	return unavailable, surge
}

// request is what a cluster asks of a budget. need is the number of pods to update, using what it may use of the budget
// now, and down its number of unavailable pods.
type request struct{ need, using, down, replicas int64 }

// grant divides a budget among requests and returns the grant of each; what a cluster uses is part of its grant. The
// sum never exceeds the budget. While as many pods are unavailable as the budget allows, only clusters with unavailable
// pods get grants, because updating these pods takes no further pods away.
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
	wish := ro.options.divide(budget, seats)
	// The cap of each cluster includes the whole spare, which all share.
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

// unhealthyClusters returns the clusters where the rollout made the workload unhealthy. It returns none while only the
// tolerated number of pods fails, or when no cluster has old pods any more.
func (ro rollout) unhealthyClusters(steps []step) (clusters []string) {
	if ro.options.neverHalt || !slices.ContainsFunc(steps, func(s step) bool {
		return s.hasWork && s.sameTemplate && !s.settled()
	}) {
		return nil
	}
	var failed int64
	stopped := false
	for _, s := range steps {
		if !s.hasWork || !s.sameTemplate || s.to.target == 0 {
			continue
		}
		// The pods may still fail although the member stopped reporting it after the write that halted the rollout.
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

// outcomes returns what to write: budgets are adjusted to values that members accept, and unchanged Works keep their
// notes.
func (ro rollout) outcomes(steps []step) []outcome {
	weights := make([]int64, len(steps))
	for i, s := range steps {
		weights[i] = s.replicas
	}
	unavailable, surge := proportional(ro.unavailable, weights), proportional(ro.surge, weights)
	all := make([]outcome, len(steps))
	for i, s := range steps {
		o := s.to
		o.released, o.scaled, o.percent = s.expressible(o.released), s.scaled, s.percent
		if !s.hasWork {
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
		if s.hasWork && s.sameTemplate && s.note != nil && o.share == s.written && s.note.Partition == o.note.Partition &&
			s.note.Raised == o.note.Raised && s.note.Halted == o.note.Halted && !s.rewritten {
			// A change of Settled alone causes no write.
			settled := o.note.Settled
			o.note = *s.note
			if !settled {
				o.note.Settled = settled
			}
		}
		all[i] = o
	}
	return all
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
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}
