package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release/window"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Guard is a ReleaseGuard.
type Guard struct {
	*releasev1alpha1.ReleaseGuard
	// Pods of all workloads in the namespaces of the guard, by cluster: limits of pods are percentages of them. If it is
	// nil, these limits are not checked.
	Pods map[string]int64
	// Budget is the error budget by the samples of this process of the hub; nil if there was none. The status of the guard
	// may have an older one, which must not let a stage start.
	Budget *releasev1alpha1.ReleaseGuardBudget
}

// GuardsNamespace reports whether a guard may select releases of a namespace.
func GuardsNamespace(g *releasev1alpha1.ReleaseGuard, namespace string) bool {
	return len(g.Spec.Selector.Namespaces) == 0 || slices.Contains(g.Spec.Selector.Namespaces, namespace)
}

// LimitsPods reports whether a guard has limits of pods.
func LimitsPods(g *releasev1alpha1.ReleaseGuard) bool {
	l := g.Spec.Limits
	return l != nil && (l.PodsPercent != nil || l.UnavailablePercent != nil)
}

// RequiredBy returns the name of a guard with a requirement for workloads of a namespace; empty if there is none.
func RequiredBy(guards []releasev1alpha1.ReleaseGuard, namespace string,
	requirement releasev1alpha1.ReleaseRequirement) string {
	var names []string
	for i := range guards {
		if g := &guards[i]; g.Spec.Require == requirement && GuardsNamespace(g, namespace) {
			names = append(names, g.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// guardView has guards, and the clusters and releases that they are compared with.
type guardView struct {
	guards   []Guard // by name
	clusters map[string]*clusterv1alpha1.Cluster
	// peers are all releases of the hub.
	peers []releasev1alpha1.Release
	now   time.Time
}

func (in Input) guardView() guardView {
	guards := slices.SortedFunc(slices.Values(in.Guards), func(a, b Guard) int { return cmp.Compare(a.Name, b.Name) })
	return guardView{guards, in.Clusters, in.Peers, in.Now}
}

// selects returns the clusters of stage k of a release that a guard counts; ok is false if the guard is not for the
// stage.
func (v guardView) selects(g Guard, r *releasev1alpha1.Release, k int) (names []string, ok bool) {
	selector, stage := g.Spec.Selector, r.Status.Strategy.Stages[k]
	if !GuardsNamespace(g.ReleaseGuard, r.Namespace) ||
		len(selector.Environments) > 0 && !slices.Contains(selector.Environments, stage.Environment) {
		return nil, false
	}
	names = clusterNames(r.Status.Stages, k)
	if selector.Clusters == nil {
		return names, true
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		c := v.clusters[name]
		return c == nil || !match.Labels(selector.Clusters, c.Labels)
	})
	return names, len(names) > 0
}

// use is a number of releases, clusters and pods, for the limits of a guard.
type use struct{ releases, clusters, pods, unavailable int64 }

// useByValue is use by the value of the label of the guard; the empty value without one.
type useByValue map[string]use

func (u useByValue) add(other useByValue) {
	for value, o := range other {
		t := u[value]
		u[value] = use{t.releases + o.releases, t.clusters + o.clusters, t.pods + o.pods, t.unavailable + o.unavailable}
	}
}

func (v guardView) valueOf(g Guard, cluster string) string {
	if c := v.clusters[cluster]; g.Spec.Limits != nil && g.Spec.Limits.Per != "" && c != nil {
		return c.Labels[g.Spec.Limits.Per]
	}
	return ""
}

// useOfRelease returns what a release counts for limits of releases, in each part of the fleet that it has stages in.
func (v guardView) useOfRelease(g Guard, r *releasev1alpha1.Release) useByValue {
	out := useByValue{}
	for k := range r.Status.Stages {
		names, ok := v.selects(g, r, k)
		if ok && len(names) == 0 {
			out[""] = use{releases: 1}
		}
		for _, name := range names {
			out[v.valueOf(g, name)] = use{releases: 1}
		}
	}
	return out
}

// useOfStages returns what stages of a release count. With limited, no more clusters count than a stage updates at the
// same time.
func (v guardView) useOfStages(g Guard, r *releasev1alpha1.Release, stages []int, limited bool) useByValue {
	out, seen, most := useByValue{}, map[string]bool{}, int64(0)
	var unavailable int64
	for _, k := range stages {
		names, ok := v.selects(g, r, k)
		if !ok {
			continue
		}
		all := len(clusterNames(r.Status.Stages, k))
		most = max(most, int64(cmp.Or(limitOf(r.Status.Strategy.Stages[k].MaxConcurrentClusters, all, 1), all)))
		for _, name := range names {
			if value := v.valueOf(g, name); !seen[name] {
				u := out[value]
				u.clusters++
				out[value], seen[name] = u, true
			}
		}
		reserved := r.Status.Stages[k].Reserved
		if reserved == nil {
			continue
		}
		unavailable += reserved.Unavailable
		for _, p := range reserved.Pods {
			if slices.Contains(names, p.Cluster) {
				value := v.valueOf(g, p.Cluster)
				u := out[value]
				u.pods += p.Pods
				out[value] = u
			}
		}
	}
	for value, u := range out {
		u.unavailable = min(u.pods, unavailable)
		if limited {
			u.clusters = min(u.clusters, most)
		}
		out[value] = u
	}
	return out
}

// inUse returns what a release counts now: with the stage under way, or in a rollback with all stages that have begun.
func (v guardView) inUse(g Guard, r *releasev1alpha1.Release) useByValue {
	if !r.Status.Phase.UnderWay() || r.Status.Strategy == nil || IsRecord(r) {
		return nil
	}
	back := r.Status.Phase == releasev1alpha1.ReleaseRollingBack
	var stages []int
	for k, stage := range r.Status.Stages {
		if stage.StartedAt != nil && (back || stage.EndedAt == nil) {
			stages = append(stages, k)
		}
	}
	out := v.useOfRelease(g, r)
	out.add(v.useOfStages(g, r, stages, !back))
	return out
}

// total returns the use of a guard by all other releases.
func (v guardView) total(g Guard, self *releasev1alpha1.Release) useByValue {
	out := useByValue{}
	for i := range v.peers {
		if p := &v.peers[i]; !sameRelease(p, self) {
			out.add(v.inUse(g, p))
		}
	}
	return out
}

func sameRelease(a, b *releasev1alpha1.Release) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}

// limit is a limit of a guard for one value of its label.
type limit struct {
	name releasev1alpha1.ReleaseLimit
	most int64
	// count returns what is limited of a use.
	count func(use) int64
	// what is limited, and percent of what; 0 for a number.
	what    string
	percent int32
}

// limitsOf are the limits of a guard for one value of its label: those of releases that start, or those of stages.
func (v guardView) limitsOf(g Guard, value string, starts bool) (all []limit) {
	l := g.Spec.Limits
	switch {
	case l == nil:
		return nil
	case starts:
		if l.Releases != nil {
			all = append(all, limit{releasev1alpha1.LimitReleases, int64(*l.Releases),
				func(u use) int64 { return u.releases }, "releases", 0})
		}
		return all
	}
	if l.Clusters != nil {
		all = append(all, limit{releasev1alpha1.LimitClusters, int64(*l.Clusters),
			func(u use) int64 { return u.clusters }, "clusters", 0})
	}
	if g.Pods == nil {
		return all
	}
	var pods int64
	for name, n := range g.Pods {
		if c := v.clusters[name]; v.valueOf(g, name) == value && (g.Spec.Selector.Clusters == nil ||
			c != nil && match.Labels(g.Spec.Selector.Clusters, c.Labels)) {
			pods += n
		}
	}
	part := func(percent int32) int64 { return max((pods*int64(percent)+99)/100, 1) }
	if l.PodsPercent != nil {
		all = append(all, limit{releasev1alpha1.LimitPods, part(*l.PodsPercent),
			func(u use) int64 { return u.pods }, "pods", *l.PodsPercent})
	}
	if l.UnavailablePercent != nil {
		all = append(all, limit{releasev1alpha1.LimitUnavailable, part(*l.UnavailablePercent),
			func(u use) int64 { return u.unavailable }, "unavailable pods", *l.UnavailablePercent})
	}
	return all
}

// text names a limit, such as "2 releases" or "10 percent of the pods".
func (l limit) text() string {
	if l.percent > 0 {
		return fmt.Sprintf("%d %s (%d percent)", l.most, l.what, l.percent)
	}
	return fmt.Sprintf("%d %s", l.most, l.what)
}

// obstacle is the reason why guards do not let a stage start, or a release with it.
type obstacle struct {
	reason, message string
	wait            releasev1alpha1.ReleaseGuardWait
	until           time.Time
}

// closed returns the guard for stage k that opens last; nil if all are open.
func (v guardView) closed(r *releasev1alpha1.Release, k int) (last *obstacle) {
	for _, g := range v.guards {
		if _, ok := v.selects(g, r, k); !ok {
			continue
		}
		s := window.StateOf(g.Spec.Windows, v.now)
		if s.Open || last != nil && (last.until.IsZero() || !s.Until.IsZero() && !s.Until.After(last.until)) {
			continue
		}
		last = &obstacle{reason: s.Reason, message: closedMessage(g.Name, s), until: s.Until,
			wait: releasev1alpha1.ReleaseGuardWait{Name: g.Name}}
		if !s.Until.IsZero() {
			last.wait.Until = timeOf(s.Until)
		}
	}
	return last
}

// closedMessage says why a guard is closed, and until when.
func closedMessage(name string, s window.State) string {
	message := "ReleaseGuard " + name + " is closed"
	if !s.Until.IsZero() {
		message += " until " + s.Until.Format(time.RFC3339)
	}
	if s.Because != "" {
		message += ": " + s.Because
	}
	return message
}

// exceeded returns the limit that stage k would exceed, or the release with it if it starts; nil if there is none. A
// release that waits for a limit has a place in the queues of all guards that limit it: no younger release overtakes it
// there. What starts and what continues have queues of their own, so that a release under way never waits for one that
// is not. A release waits before it counts for a limit of stages, so that no two wait for each other.
func (v guardView) exceeded(r *releasev1alpha1.Release, k int, starts bool) *obstacle {
	var first *obstacle
	var queues []string
	for _, g := range v.guards {
		if g.Spec.Limits == nil {
			continue
		}
		needs := v.useOfRelease(g, r)
		if !starts {
			needs = v.useOfStages(g, r, []int{k}, true)
		}
		total := v.total(g, r)
		for _, value := range slices.Sorted(maps.Keys(needs)) {
			limits := v.limitsOf(g, value, starts)
			if len(limits) == 0 {
				continue
			}
			queues = append(queues, queueOf(g, value))
			for _, l := range limits {
				need, used := l.count(needs[value]), l.count(total[value])
				switch {
				case need > l.most:
					return unfit(g, value, l, need, r.Status.Stages[k].Name)
				case first == nil && need > 0 && used+need > l.most:
					first = reached(g, value, l, "the limit of "+l.text()+" is reached")
				}
			}
		}
	}
	for i := range v.peers {
		p := &v.peers[i]
		if w := p.Status.Guard; first != nil || w == nil || w.Limit == "" || sameRelease(p, r) || !goesBefore(p, r) ||
			(p.Status.Phase == releasev1alpha1.ReleaseQueued) != starts || p.Status.Phase.Ended() {
			continue
		}
		for _, g := range v.guards {
			for _, queue := range queues {
				if first == nil && slices.Contains(p.Status.Guard.Queues, queue) && queueGuard(queue) == g.Name {
					first = &obstacle{reason: releasev1alpha1.ReasonLimitReached,
						message: "ReleaseGuard " + g.Name + ": older releases wait for its limits and go first",
						wait:    releasev1alpha1.ReleaseGuardWait{Name: g.Name, Limit: p.Status.Guard.Limit}}
				}
			}
		}
	}
	if first != nil {
		first.wait.Queues = queues
	}
	return first
}

// queueOf is the name of the queue for the limits of a guard for one value of its label.
func queueOf(g Guard, value string) string {
	if g.Spec.Limits.Per == "" {
		return g.Name
	}
	return g.Name + "/" + value
}

// queueGuard is the guard of a queue. Names of guards have no slash.
func queueGuard(queue string) string {
	name, _, _ := strings.Cut(queue, "/")
	return name
}

// goesBefore reports whether release a goes before b in a queue: the older one does.
func goesBefore(a, b *releasev1alpha1.Release) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) || a.Namespace == b.Namespace {
		return older(a, b)
	}
	return a.Namespace < b.Namespace
}

func reached(g Guard, value string, l limit, what string) *obstacle {
	message := "ReleaseGuard " + g.Name + ": " + what
	if per := g.Spec.Limits.Per; per != "" {
		message += fmt.Sprintf(" for %s=%s", per, value)
	}
	return &obstacle{reason: releasev1alpha1.ReasonLimitReached, message: message,
		wait: releasev1alpha1.ReleaseGuardWait{Name: g.Name, Limit: l.name}}
}

// unfit is the obstacle for a stage that exceeds a limit by itself. It has no place in a queue: it would block all
// others.
func unfit(g Guard, value string, l limit, need int64, stage string) *obstacle {
	advice := "use smaller stages"
	if l.name == releasev1alpha1.LimitClusters {
		advice = fmt.Sprintf("set maxConcurrentClusters: %d", l.most)
	}
	return reached(g, value, l, fmt.Sprintf("stage %s needs %d %s and can never start, because the limit is %s; abort "+
		"the release, and %s in its strategy", stage, need, l.what, l.text(), advice))
}

// obstacleTo returns why guards do not let stage k start, or the release with it; nil if they do. A stage that is
// started again counts already, so its limits are not checked.
func (v guardView) obstacleTo(r *releasev1alpha1.Release, k int, starts bool) *obstacle {
	if k >= len(r.Status.Stages) || r.Status.Strategy == nil {
		return nil
	}
	if o := v.closed(r, k); o != nil {
		return o
	}
	if o := v.budgetObstacle(r, k); o != nil {
		return o
	}
	if !starts && r.Status.Stages[k].StartedAt != nil {
		return nil
	}
	return v.exceeded(r, k, starts)
}

// waitsForGuards reports whether guards keep stage k from starting, or the release with it, and says so.
func (s *stepper) waitsForGuards(r *releasev1alpha1.Release, k int, starts bool) bool {
	if len(s.Guards) == 0 {
		return false
	}
	o := s.guardView().obstacleTo(r, k, starts)
	if o == nil {
		return false
	}
	if !s.breaksGlass(r.Status.Stages[k]) {
		s.waitFor(o)
		return true
	}
	by, message := s.verbFor(releasev1alpha1.BreakGlassAnnotation), o.message
	if by.Reason != "" {
		message = by.Reason + " (" + message + ")"
	}
	s.journal(releasev1alpha1.JournalVerb, r.Status.Stages[k].Name, "", by.User, BrokeGlass, message)
	return false
}

// breaksGlass reports whether a user starts a stage in spite of guards. The first stage is not entered yet when the
// release starts.
func (s *stepper) breaksGlass(stage releasev1alpha1.ReleaseStageStatus) bool {
	stage.Attempt = max(stage.Attempt, 1)
	return s.Release.Annotations[releasev1alpha1.BreakGlassAnnotation] == stageAttempt(stage)
}

// waitFor sets what the release waits for.
func (s *stepper) waitFor(o *obstacle) {
	s.wait(o.reason, "%s", o.message)
	s.guard = &o.wait
	switch {
	case !o.until.IsZero():
		s.wake(o.until)
	case o.wait.Limit == releasev1alpha1.LimitPods || o.wait.Limit == releasev1alpha1.LimitUnavailable ||
		o.wait.Limit == releasev1alpha1.LimitErrorBudget:
		s.wake(s.Now.Add(time.Minute)) // the number of pods, or the budget, may change without an event
	}
}

// reserving is the release as it is now, with what stage k will count for limits of pods.
func (s *stepper) reserving(k int, reserved *releasev1alpha1.ReleaseReservation) *releasev1alpha1.Release {
	r := s.asIs().Release
	r.Status.Stages[k].Reserved = reserved
	return r
}

// BrokeGlass is the reason of the journal entry about a stage that a user started in spite of ReleaseGuards.
const BrokeGlass = "BreakGlass"

// reservation returns what stage k will count for limits of pods; nil if no guard may limit pods of the release.
func (s *stepper) reservation(k int) *releasev1alpha1.ReleaseReservation {
	if !slices.ContainsFunc(s.Guards, func(g Guard) bool {
		return LimitsPods(g.ReleaseGuard) && GuardsNamespace(g.ReleaseGuard, s.Release.Namespace)
	}) {
		return nil
	}
	out, pods := &releasev1alpha1.ReleaseReservation{}, map[string]int64{}
	for _, spec := range s.Release.Spec.Targets {
		t := s.Targets[spec.Name]
		if t.Binding == nil || t.Template == nil {
			continue
		}
		whole := s.target(spec.Name).Unit == releasev1alpha1.UnitCluster
		plan := s.forward(spec.Name)
		clusters, units := t.replicas(whole)
		_, replicas := t.replicas(false)
		before, after := plan.Targets(clusters, units, k), plan.Targets(clusters, units, k+1)
		var added, all int64
		for i, name := range clusters {
			n := max(after[i]-before[i], 0)
			if whole {
				n *= replicas[i]
			}
			pods[name] += n
			added, all = added+n, all+replicas[i]
		}
		budget, ok := fleet.MaxUnavailable(t.Template, all)
		if whole || !ok {
			budget = added
		}
		out.Unavailable += min(added, budget)
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if pods[name] > 0 {
			out.Pods = append(out.Pods, releasev1alpha1.ReservedPods{Cluster: name, Pods: pods[name]})
		}
	}
	return out
}

// guardGate returns the gate that guards add before stage k; nil if they add none.
func (v guardView) guardGate(r *releasev1alpha1.Release, k int) *releasev1alpha1.ReleaseGate {
	rule := &releasev1alpha1.ReleaseApprovalRule{}
	for _, g := range v.guards {
		if _, ok := v.selects(g, r, k); ok && g.Spec.Approvals != nil {
			rule.Count = max(rule.Count, g.Spec.Approvals.Count, 1)
			rule.NotAuthor = rule.NotAuthor || g.Spec.Approvals.NotAuthor
		}
	}
	if rule.Count == 0 {
		return nil
	}
	name := GuardGate
	for slices.ContainsFunc(r.Status.Strategy.Stages[k].Before, func(g releasev1alpha1.ReleaseGate) bool {
		return g.Name == name
	}) {
		name += "-x"
	}
	return &releasev1alpha1.ReleaseGate{Name: name, Type: releasev1alpha1.GateApproval, Approval: rule}
}

// GuardGate is the name of the gate that ReleaseGuards add before a stage.
const GuardGate = "release-guard"

// GuardedStage is the effect of guards on a stage of a release that is not created yet.
type GuardedStage struct {
	// Gate that they add before the stage; nil for none.
	Gate *releasev1alpha1.ReleaseGate
	// Waits is the reason why the stage could not start now; empty if it could.
	Waits string
}

// PreviewGuards returns what guards say about each stage of a release that Accept accepts.
func PreviewGuards(in Input) []GuardedStage {
	a := Accept(in)
	if a.Reason != releasev1alpha1.ReasonPlanned {
		return nil
	}
	s := &stepper{Input: in, status: *in.Release.Status.DeepCopy()}
	s.assume(a)
	v := in.guardView()
	out := make([]GuardedStage, len(s.status.Stages))
	for k := range out {
		s.status.Stages[k].Reserved = s.reservation(k)
		r := in.Release.DeepCopy()
		r.Status, r.CreationTimestamp = *s.status.DeepCopy(), *timeOf(in.Now)
		out[k].Gate = v.guardGate(r, k)
		o := v.obstacleTo(r, k, k == 0)
		if o == nil {
			o = v.obstacleTo(r, k, false)
		}
		if o != nil {
			out[k].Waits = o.message
		}
	}
	return out
}

// GuardStatus returns the status of a guard, and when it changes without a release that changes; zero for never.
// releases are all of the hub. budget is the error budget after the last sample; nil if there was none.
func GuardStatus(g *releasev1alpha1.ReleaseGuard, releases []releasev1alpha1.Release,
	clusters map[string]*clusterv1alpha1.Cluster, budget *releasev1alpha1.ReleaseGuardBudget,
	now time.Time) (releasev1alpha1.ReleaseGuardStatus, time.Time) {
	w := window.StateOf(g.Spec.Windows, now)
	status := releasev1alpha1.ReleaseGuardStatus{ObservedGeneration: g.Generation, Open: w.Open, Reason: w.Reason,
		Message: w.Because}
	if g.Spec.Limits != nil && g.Spec.Limits.MinErrorBudget != nil {
		if status.ErrorBudget = g.Status.ErrorBudget; budget != nil {
			status.ErrorBudget = budget
		}
	}
	switch {
	case w.Until.IsZero():
	case w.Open:
		status.NextClose = timeOf(w.Until)
	default:
		status.NextOpen = timeOf(w.Until)
	}
	v := guardView{clusters: clusters}
	for i := range releases {
		r := &releases[i]
		u := v.inUse(Guard{ReleaseGuard: g}, r)
		if len(u) > 0 {
			status.InUse.Releases++
		}
		for _, part := range u {
			status.InUse.Clusters += int32(part.clusters)
		}
		if r.Status.Guard != nil && r.Status.Guard.Name == g.Name {
			status.Waiting++
		}
	}
	return status, w.Until
}
