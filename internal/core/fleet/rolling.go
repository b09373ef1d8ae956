package fleet

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Note is what the share in a Work's manifest does not tell about a rollout, as JSON in NoteAnnotation.
type Note struct {
	// Partition is the template's when the Work was written, as text.
	Partition string `json:"partition,omitempty"`
	// Raised says that the partition was raised during this rollout: pods that are new already may be asked back.
	Raised bool `json:"raised,omitempty"`
	// Halted says that the rollout made the copy in this cluster unhealthy, as far as was seen last.
	Halted bool `json:"halted,omitempty"`
	// Settled says that all pods in the cluster were seen to be of the revision in the Work: none is old, whatever the
	// member has yet to report about a later write.
	Settled bool `json:"settled,omitempty"`
	// Grant is how many pods the rollout may make unavailable in the cluster; 0 while it is held there.
	Grant int64 `json:"grant,omitempty"`
	// Pending is the most that it may have been granted before, as long as the member has not seen the Grant.
	Pending int64 `json:"pending,omitempty"`
	// Surge and PendingSurge are the same of pods beyond the replicas.
	Surge        int64 `json:"surge,omitempty"`
	PendingSurge int64 `json:"pendingSurge,omitempty"`
	// Deleted are the pods that the cluster was told to delete and that are gone, though the template still names them;
	// Missing are those that were in no cluster: names, with commas between.
	Deleted string `json:"deleted,omitempty"`
	Missing string `json:"missing,omitempty"`
	// Turn is when the cluster was last given a part of a budget that clusters take turns with, or gave it back.
	Turn string `json:"turn,omitempty"`
	// Versions are those of a SidecarSet that the cluster has had before the one it has: names, with commas between.
	Versions string `json:"versions,omitempty"`
	// Revisions are names by which a SidecarSet names a revision, with the cluster's own name of it: name=own, with commas
	// between.
	Revisions string `json:"revisions,omitempty"`
	// Stood is what the Kruise Rollouts of other clusters had rolled out when that of this one was last seen at rest:
	// cluster=revision, with commas between.
	Stood string `json:"stood,omitempty"`
}

func (n Note) String() string {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err) // numbers and text
	}
	return string(raw)
}

// share is what a manifest says of a rollout in its cluster: replicas-released pods stay old.
type share struct {
	replicas, released   int64
	unavailable, surging int64
}

// party is a cluster's part in a rollout.
type party struct {
	cluster  string
	replicas int64
	// reachable says that the cluster answers; suspended that its Work is not sent.
	reachable, suspended bool
	// percent says that the partition is written as a percentage.
	percent bool
	// fixed is how many pods an override keeps old there, -1 if none does; own is what an override lets be unavailable, -1
	// for none.
	fixed, own int64

	// there says that a Work stands; the following is of it.
	there bool
	was   share
	note  *Note // nil: written before there were notes
	// same says that its pods are of the same template as they will be.
	same bool
	// rewritten says that the Work is written in any case, because the template has changed.
	rewritten bool

	// known says that the member has reported at all; fresh that it did so since it saw what the Work says.
	known, fresh bool
	unhealthy    bool

	pods, updated, updatedAvailable, available int64
}

// rollout is what a template asks of a fleet.
type rollout struct {
	// partition as the template has it; kept resolves it on a number of replicas.
	partition any
	kept      func(partition any, of int64) (int64, error)
	// unavailable and surge are the budgets of the fleet; not both are 0.
	unavailable, surge int64
	// single lets no cluster have more than one pod unavailable: its controller does one at a time by itself.
	single bool
	// stalled says that its deadline has passed without progress; tolerated is how many pods may fail, -1 if nothing is
	// said.
	stalled   bool
	tolerated int64
	// targets says how many pods shall be new where, in the order of the parties: of the number given in all, from the
	// floors.
	targets func(n int64, seats []Seat, done func(targets []int64) bool) ([]int64, Stage)
	options options
}

// outcome is what is to be written in one cluster.
type outcome struct {
	share
	note Note
	// held says that the rollout waits there for its turn.
	held bool
	// percent says that the partition is written as a percentage.
	percent bool
	// target is how many pods shall be new there in the end, or at the end of this stage.
	target int64
}

// aim is what a rollout works towards.
type aim struct {
	// targets are the new pods that there shall be by cluster, in the end or at the end of a stage; stage is that one.
	targets []int64
	stage   Stage
	// seats have the pods that are new already as their floors.
	seats []Seat
	// budget is what overrides leave of the unavailable pods.
	budget int64
	// raised says that the partition was raised during this rollout, justRaised that it was since the Works were written.
	raised, justRaised bool
}

// aim decides how many pods shall be new where.
func (ro rollout) aim(parties []party) (aim, error) {
	// 1. What overrides have said is not divided.
	var total, fixedKept, fixedTotal int64
	budget := ro.unavailable
	for _, p := range parties {
		total += p.replicas
		if p.fixed >= 0 {
			fixedKept += min(p.fixed, p.replicas)
			fixedTotal += p.replicas
		}
		if p.own >= 0 {
			budget -= p.own
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

	// 2. What is new stays new, unless the partition was raised. Pods of an earlier template to which this one goes back
	//    are new at once, which only the members know.
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
		if p.fixed >= 0 {
			seats[i] = Seat{}
			continue
		}
		if !p.there || !p.same || justRaised {
			continue
		}
		seats[i].Floor = min(p.was.released, p.replicas)
		// Where the pods are scaled, more of them are new because there are more.
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
			if !p.reachable && ro.options.ignoreLost {
				continue
			}
			if p.fixed < 0 && targets[i] > 0 &&
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

// next is the next step of a rollout: the same again if nothing happened. It keeps
//
//	Σ max(granted, unavailable) ≤ the budget
//
// where granted is the most that a cluster may have in use, counted until the member is seen to have less, and where
// what is unavailable for other reasons is nobody's fault: it stops others, and only its own cluster may go on.
//
// A cluster without a grant is held by its partition, which stays at what is new there already: OpenKruise refuses
// budgets of nothing, and a cluster whose released pods are all new is held without another write.
func (ro rollout) next(parties []party) (outcomes []outcome, halted []string, err error) {
	n := len(parties)
	outcomes = make([]outcome, n)
	// 1 and 2.
	a, err := ro.aim(parties)
	if err != nil {
		return nil, nil, err
	}
	targets, seats := a.targets, a.seats

	// 3. What each may be using of the budgets now, and what is down.
	using, surging, down := make([]int64, n), make([]int64, n), make([]int64, n)
	lost := false
	for i, p := range parties {
		using[i], surging[i] = p.using()
		if p.own >= 0 || p.fixed >= 0 {
			using[i], surging[i] = 0, 0
			continue
		}
		switch {
		case p.reachable:
			down[i] = max(0, p.running(p.replicas)-p.available)
		case ro.options.ignoreLost:
			using[i], surging[i] = 0, 0
		default:
			down[i], lost = p.replicas, true
		}
	}

	// 4. Without a new grant: as much as does not bring more pods to their update than before.
	creating := true
	for i, p := range parties {
		o := &outcomes[i]
		o.replicas, o.target = p.replicas, targets[i]
		o.note = Note{Partition: quote(ro.partition), Raised: a.raised, Settled: !a.raised && p.settled()}
		switch {
		case p.fixed >= 0:
			o.released = p.replicas - min(p.fixed, p.replicas)
		case !p.there, p.own >= 0:
			o.released = targets[i]
		case a.justRaised:
			o.released = min(targets[i], p.was.released)
		case p.same:
			o.released = min(targets[i], max(seats[i].Floor, p.replicas-(p.was.replicas-p.was.released)))
		}
		if p.there {
			creating = false
			o.unavailable, o.surging = p.was.unavailable, p.was.surging
		}
		if using[i] > 0 {
			o.note.Grant = p.granted()
		}
		if surging[i] > 0 {
			o.note.Surge = p.grantedSurge()
		}
	}

	// 5. A rollout that broke a member stops everywhere: what is new stays, and no more follows.
	if halted = ro.broken(parties, targets); len(halted) > 0 {
		for i, p := range parties {
			o := &outcomes[i]
			o.note.Halted = slices.Contains(halted, p.cluster)
			if p.fixed >= 0 || p.own >= 0 || !p.there || !p.same {
				continue
			}
			if p.fresh {
				o.released = min(o.released, max(p.updated, 0))
			}
			o.pend(using[i], surging[i])
		}
		return ro.settle(parties, outcomes, creating), halted, nil
	}

	// 6. The budgets go to those that have pods to update, in flight or not.
	need := make([]int64, n)
	for i, p := range parties {
		if p.fixed >= 0 || p.own >= 0 || !p.there || !p.reachable || p.suspended {
			continue
		}
		if targets[i] > outcomes[i].released || using[i]+surging[i] > 0 && p.same {
			need[i] = targets[i]
			if p.same && p.known {
				need[i] -= min(targets[i], p.updatedAvailable)
			}
			need[i] = max(need[i], 1)
			if ro.single {
				need[i] = 1
			}
		}
	}
	grants := ro.grant(a.budget, need, using, down, parties)
	noDown := make([]int64, n)
	surges := ro.grant(ro.surge, need, surging, noDown, parties)
	for i := range parties {
		o := &outcomes[i]
		if need[i] == 0 {
			o.pend(using[i], surging[i])
			continue
		}
		granted := grants[i] > 0 || ro.unavailable == 0 && surges[i] > 0 && !lost
		if !granted {
			o.held = true
			o.pend(using[i], surging[i])
			continue
		}
		o.released = targets[i]
		o.unavailable, o.surging = grants[i], surges[i]
		o.note.Grant, o.note.Surge = grants[i], surges[i]
		o.pend(using[i], surging[i])
	}
	return ro.settle(parties, outcomes, creating), nil, nil
}

// expressible is n, or the next lower number of new pods that the partition of p can express.
func (p party) expressible(n int64) int64 {
	if !p.percent || n >= p.replicas {
		return n
	}
	_, keeps := PercentKeeping(p.replicas-n, p.replicas)
	return p.replicas - keeps
}

// running is how many of n pods an autoscaler in the cluster keeps.
func (p party) running(n int64) int64 {
	if p.percent && p.fresh {
		return min(n, p.pods)
	}
	return n
}

// due is how many pods of p must be new when n of its replicas are released: as many as the percentage allows if an
// autoscaler in the cluster keeps fewer pods than the replicas on the hub.
func (p party) due(n int64) int64 {
	pods := p.running(p.replicas)
	if pods == p.replicas {
		return n
	}
	percent, _ := PercentKeeping(p.replicas-n, p.replicas)
	kept, _ := KeptOld(percent, pods, Up) // a percentage is never wrong
	return min(n, pods-kept)
}

// settled says that no pod of p is old, by its last report or by one before the last write of its Work.
func (p party) settled() bool {
	if !p.there || !p.same {
		return false
	}
	if p.fresh {
		return p.updated >= p.pods
	}
	return p.note != nil && p.note.Settled
}

// granted is what the Work of p lets be unavailable.
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

// using is the most that p may be using of the budgets now.
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

// pend records what may still be in use beyond what is granted from now on.
func (o *outcome) pend(using, surging int64) {
	if using > o.note.Grant {
		o.note.Pending = using
	}
	if surging > o.note.Surge {
		o.note.PendingSurge = surging
	}
}

// grant gives out a budget to those in need, beside what is in use: never more in all, and none to anybody while as
// many are down; but to a cluster whose own pods are down, which loses nothing by it. The result is what each has from
// now on.
func (ro rollout) grant(budget int64, need, using, down []int64, parties []party) []int64 {
	inUse, all := sum(using), int64(0)
	for i := range using {
		all += max(using[i], down[i])
	}
	free, spare := budget-inUse, max(0, budget-all)
	seats := make([]Seat, len(need))
	for i := range need {
		seats[i] = Seat{Cap: using[i], Floor: using[i]}
		if need[i] > 0 {
			seats[i].Weight = parties[i].replicas
			seats[i].Cap = max(using[i], min(need[i], max(using[i], down[i])+spare))
		}
	}
	var wish []int64
	switch {
	case budget <= 0:
		return make([]int64, len(need))
	case free < 0:
		// The budget was lowered: those who have it get less of it, and none gets a new one.
		for i := range seats {
			seats[i] = Seat{Weight: using[i], Cap: using[i]}
		}
		wish = Split(budget, seats)
		for i := range wish {
			if need[i] > 0 && using[i] > 0 {
				wish[i] = max(wish[i], 1)
			}
		}
		return wish
	case ro.options.order == oneByOne:
		wish = inOrder(budget, seats)
	default:
		wish = Split(budget, seats)
	}
	// The caps let each have what is spare, and together they have it once.
	for i := range wish {
		base := max(using[i], down[i])
		if beyond := wish[i] - base; beyond > 0 {
			beyond = min(beyond, spare)
			spare -= beyond
			wish[i] = base + beyond
		}
	}
	return wish
}

// broken are the clusters whose copies the rollout has made unhealthy, while there are old pods left anywhere.
func (ro rollout) broken(parties []party, targets []int64) (clusters []string) {
	if ro.options.neverHalt || !slices.ContainsFunc(parties, func(p party) bool {
		return p.there && p.same && !p.settled()
	}) {
		return nil
	}
	var failed int64
	stopped := false
	for i, p := range parties {
		if !p.there || !p.same || targets[i] == 0 {
			continue
		}
		// The write that halted the rollout may have ended the failure that was reported, but not the failing pods.
		halted := p.note != nil && p.note.Halted
		fails := p.unhealthy || halted || ro.stalled && ro.tolerated >= 0
		switch down := p.updated - p.updatedAvailable; {
		case p.fresh && fails && down > 0:
			failed += down
			clusters = append(clusters, p.cluster)
		case !p.fresh && halted:
			// What was written to stop it has yet to be seen there.
			stopped = true
			clusters = append(clusters, p.cluster)
		}
	}
	if failed <= ro.tolerated && !stopped {
		return nil
	}
	return clusters
}

// settle sees to budgets that members accept, and keeps the note of what does not change.
func (ro rollout) settle(parties []party, outcomes []outcome, creating bool) []outcome {
	weights := make([]int64, len(parties))
	for i, p := range parties {
		weights[i] = p.replicas
	}
	unavailable, surge := proportional(ro.unavailable, weights), proportional(ro.surge, weights)
	for i, p := range parties {
		o := &outcomes[i]
		o.released, o.percent = p.expressible(o.released), p.percent
		if !p.there || creating {
			o.unavailable, o.surging = unavailable[i], surge[i]
		}
		if ro.single {
			o.unavailable = min(o.unavailable, 1)
		}
		// DaemonSets are refused with both.
		if ro.surge == 0 {
			o.note.PendingSurge = max(o.note.PendingSurge, o.note.Surge)
			o.surging, o.note.Surge = 0, 0
		}
		if ro.unavailable == 0 {
			o.note.Pending = max(o.note.Pending, o.note.Grant)
			o.unavailable, o.note.Grant = 0, 0
		}
		if o.unavailable+o.surging < 1 {
			// Not to be used: the partition holds it, or all its pods are made new.
			if ro.unavailable > 0 {
				o.unavailable = 1
			} else {
				o.surging = 1
			}
		}
		if p.there && p.same && p.note != nil && o.share == p.was && p.note.Partition == o.note.Partition &&
			p.note.Raised == o.note.Raised && p.note.Halted == o.note.Halted {
			// That it has settled is worth no write of its own.
			settled := o.note.Settled
			o.note = *p.note
			if p.rewritten || !settled {
				o.note.Settled = settled
			}
		}
	}
	return outcomes
}

// quote is a partition as text, unquote the partition again.
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
