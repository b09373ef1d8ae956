package fleet

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

const (
	// PlanAnnotation on a binding is the plan of the release that is under way, or that was aborted: a Plan.
	PlanAnnotation = wellknown.ReleasePlanAnnotation
	// EffectiveRevisionAnnotation on a binding names the ReleaseRevision whose pods members get instead of those of the
	// template. On a Work it names the ReleaseRevision that its manifest was made from.
	EffectiveRevisionAnnotation = wellknown.EffectiveRevisionAnnotation
)

// Plan paces the rollout of one revision. It takes the place of the rollout annotations of the template.
type Plan struct {
	// Release and UID are of the release that the plan belongs to.
	Release string `json:"release"`
	UID     string `json:"uid"`
	// Revision is the ReleaseRevision that is rolled out. The plan does not apply to any other.
	Revision string `json:"revision"`
	// From is the ReleaseRevision that clusters get which have no Work yet and whose stage has not come; empty if it is
	// not known.
	From string `json:"from,omitempty"`
	// Unit is UnitPods or UnitCluster: how the template could be updated when the release started. The plan does not
	// apply to a template that is updated otherwise. Empty for a plan without stages.
	Unit   string      `json:"unit,omitempty"`
	Stages []PlanStage `json:"stages"`
	// At is how many stages have begun; 0 for none.
	At int `json:"at"`
	// Hold stops the rollout: new pods stay, and no more pods are released.
	Hold bool `json:"hold,omitempty"`
	// Joining is what clusters outside all stages get. Include: the new revision with the last stage. Defer: the old
	// revision. Hold: nothing.
	Joining string `json:"joining,omitempty"`
	// Skipped are clusters that do not answer and that the rollout does not wait for.
	Skipped []string `json:"skipped,omitempty"`
	// FailedPods takes the place of wellknown.FailedPodsThresholdAnnotation.
	FailedPods string `json:"failedPods,omitempty"`
	// Done is true if all stages have ended. Clusters that were lost or that joined still get the revision.
	Done bool `json:"done,omitempty"`
	// Continue is true if failing pods do not stop the rollout.
	Continue bool `json:"continue,omitempty"`
	// RollsBack is the ReleaseRevision that a rollback replaces by Revision; empty if there is no rollback.
	RollsBack string `json:"rollsBack,omitempty"`
	// SameRevision is true if failover may not move replicas to clusters that run another revision.
	SameRevision bool `json:"sameRevision,omitempty"`
}

// The units of a Plan.
const (
	// UnitPods: some pods of a cluster can be new while others are old.
	UnitPods = "Pods"
	// UnitCluster: a cluster is all old or all new.
	UnitCluster = "Cluster"
)

// Fits reports whether the template can still be updated in the unit of the plan. A template without replicas has
// nothing to divide, and fits.
func (p *Plan) Fits(template *unstructured.Unstructured, divided bool) bool {
	if n, ok := whole(field(template.Object, "spec", "replicas")); p.Unit == UnitPods && ok && n == 0 {
		divided = true
	}
	staged, wholeClusters := Staged(template, divided)
	return p.Unit == "" || staged && wholeClusters == (p.Unit == UnitCluster)
}

// PlanStage is a stage of a Plan.
type PlanStage struct {
	Name string `json:"name"`
	// Same is true if the stage has the clusters of the stage before it. It is set in text only.
	Same bool `json:"same,omitempty"`
	// Clusters in the order in which they are updated.
	Clusters []string `json:"clusters,omitempty"`
	// Part of the pods in Clusters, or of the clusters, is new at the end of the stage, rounded up: Part[0]/Part[1]. Pods
	// is a number instead.
	Part [2]int64 `json:"part,omitzero"`
	Pods int64    `json:"pods,omitempty"`
	// WholeClusters is true if all pods of a cluster have the same revision; Part and Pods then count clusters.
	WholeClusters bool `json:"wholeClusters,omitempty"`
	// MaxClusters is how many clusters are updated at the same time; 0 for all.
	MaxClusters int `json:"maxClusters,omitempty"`
	// InOrder is true if clusters are updated one after the other.
	InOrder bool `json:"inOrder,omitempty"`
	// Skip is true if the stage updates no pod. Its clusters keep their pods.
	Skip bool `json:"skip,omitempty"`
}

// String returns the value for PlanAnnotation.
func (p *Plan) String() string {
	short := *p
	short.Stages = slices.Clone(p.Stages)
	for k := len(short.Stages) - 1; k > 0; k-- {
		if slices.Equal(p.Stages[k].Clusters, p.Stages[k-1].Clusters) {
			short.Stages[k].Same, short.Stages[k].Clusters = true, nil
		}
	}
	return words.JSON(short)
}

// PlanOf returns the plan in the annotations of a binding, nil without one. A plan for another revision than the
// effective one, or one that cannot be read, holds all clusters.
func PlanOf(annotations map[string]string) *Plan {
	text, ok := annotations[PlanAnnotation]
	if !ok {
		return nil
	}
	effective := annotations[EffectiveRevisionAnnotation]
	p := &Plan{}
	if err := json.Unmarshal([]byte(text), p); err != nil || p.Revision != effective || effective == "" {
		return &Plan{Release: p.Release, UID: p.UID, Revision: effective, Unit: p.Unit, Hold: true}
	}
	for k := range p.Stages {
		if s := &p.Stages[k]; s.Same && k > 0 {
			s.Same, s.Clusters = false, p.Stages[k-1].Clusters
		}
	}
	return p
}

// options returns the options of the template's annotations, and of the plan if there is one.
func (in Input) options() (options, error) {
	annotations := in.Template.GetAnnotations()
	if in.Plan == nil {
		return optionsOf(annotations)
	}
	for _, key := range []string{wellknown.RolloutOrderAnnotation, wellknown.RolloutStagesAnnotation,
		wellknown.RolloutStageAnnotation, wellknown.RolloutClustersAnnotation,
		wellknown.FailedPodsThresholdAnnotation, wellknown.AutoHaltAnnotation} {
		delete(annotations, key) // GetAnnotations returns a copy
	}
	o, err := optionsOf(annotations)
	o.order, o.plan, o.neverHalt = inStages, in.Plan, in.Plan.Continue
	if text := in.Plan.FailedPods; text != "" {
		o.failedPods = unquote(text)
	}
	return o, err
}

// ignores reports whether a rollout does not wait for a cluster that does not answer.
func (o options) ignores(cluster string) bool {
	return o.ignoreLost || o.plan != nil && slices.Contains(o.plan.Skipped, cluster)
}

// isPaused reports whether a release holds the rollout.
func (o options) isPaused() bool { return o.plan != nil && o.plan.Hold }

// waits reports whether a cluster without a Work gets none from the plan, so that its pods are not missing.
func (o options) waits(cluster string) bool {
	p := o.plan
	return p != nil && p.Joined(cluster) && (p.Joining == "Hold" || p.From == "")
}

// Skips reports whether a stage makes no pod new.
func (p *Plan) Skips() bool {
	return slices.ContainsFunc(p.Stages, func(s PlanStage) bool { return s.Skip })
}

// Joined reports whether a cluster is in no stage.
func (p *Plan) Joined(cluster string) bool {
	return !slices.ContainsFunc(p.Stages, func(s PlanStage) bool { return slices.Contains(s.Clusters, cluster) })
}

// PlannedPods are the pods of a cluster when the stages that have begun are complete. Clusters with equal values run
// the same revisions in the same parts.
type PlannedPods struct {
	// Revisions is "revision R", or has two revisions while stages update a part of the pods. It is empty if the cluster
	// gets no pods.
	Revisions string
	// stages are those that update a part of the pods.
	stages string
}

// PodsIn returns the pods of a cluster. A cluster without a Work may get none. While the plan holds, pods that should
// be new may still be old.
func (p *Plan) PodsIn(cluster string, hasWork bool) PlannedPods {
	joined := p.Joined(cluster)
	var parts []string
	for k, s := range p.Stages[:min(p.At, len(p.Stages))] {
		if s.Skip || !slices.Contains(s.Clusters, cluster) &&
			!(joined && p.Joining == "Include" && k+1 == len(p.Stages)) {
			continue
		}
		if s.Pods == 0 && s.Part[0] >= s.Part[1] {
			return PlannedPods{Revisions: "revision " + p.Revision}
		}
		parts = append(parts, s.Name)
	}
	former := "revision " + p.From
	switch {
	case !hasWork && (p.From == "" || joined && p.Joining == "Hold"):
		return PlannedPods{}
	case p.RollsBack != "" && hasWork && !joined:
		former = "revision " + p.RollsBack
	case p.From == "":
		former = "the revision before release " + p.Release
	}
	if len(parts) == 0 {
		return PlannedPods{Revisions: former}
	}
	return PlannedPods{"revision " + p.Revision + " and " + former, words.JSON(parts)}
}

// WantedPods returns the pods that replicas of a cluster should have if they move to another one: the same or, in a
// rollback, those of the former revision.
func (p *Plan) WantedPods(cluster string) PlannedPods {
	if p.RollsBack != "" {
		return PlannedPods{Revisions: "revision " + p.Revision}
	}
	return p.PodsIn(cluster, true)
}

// Remaining says for people why clusters have different revisions.
func (p *Plan) Remaining() string {
	switch {
	case p.At >= len(p.Stages):
		return fmt.Sprintf("release %s keeps pods of two revisions", p.Release)
	case p.RollsBack != "":
		return fmt.Sprintf("release %s has not rolled back stage %s", p.Release, p.Stages[p.At].Name)
	}
	return fmt.Sprintf("release %s has not started stage %s", p.Release, p.Stages[p.At].Name)
}

// targets returns the new pods of each cluster at the end of the current stage, at least those that are new already.
// done reports whether that many are new and available.
func (p *Plan) targets(clusters []string, seats []Seat, done func([]int64) bool) []int64 {
	released := make([]int64, len(seats))
	for i, s := range seats {
		released[i] = min(s.Floor, s.Cap)
	}
	targets := released
	for k := range min(p.At, len(p.Stages)) {
		stage := p.Stages[k]
		if stage.Skip {
			continue
		}
		if k+1 == len(p.Stages) && p.Joining == "Include" {
			stage.Clusters = slices.Clone(stage.Clusters)
			for _, c := range clusters {
				if p.Joined(c) {
					stage.Clusters = append(stage.Clusters, c)
				}
			}
		}
		targets = stage.targets(clusters, seats, targets)
		if k+1 == p.At && stage.MaxClusters > 0 {
			stage.limit(clusters, targets, released, done)
		}
	}
	return targets
}

// targets returns the new pods at the end of the stage where before are new at its start.
func (s PlanStage) targets(clusters []string, seats []Seat, before []int64) []int64 {
	// 1. The seats of the stage, in its order.
	var at []int
	var own []Seat
	var total int64
	for _, c := range s.Clusters {
		if i := slices.Index(clusters, c); i >= 0 {
			at = append(at, i)
			own = append(own, Seat{Weight: seats[i].Weight, Cap: seats[i].Cap, Floor: before[i]})
			total += seats[i].Cap
		}
	}
	// 2. The pods, or clusters, that are new in the end.
	var shares []int64
	switch {
	case s.WholeClusters:
		shares = make([]int64, len(own))
		left := s.amount(int64(len(own)))
		for _, whole := range []bool{true, false} { // those that are new already count first
			for i, seat := range own {
				if (seat.Floor >= seat.Cap) != whole {
					continue
				}
				shares[i] = seat.Floor
				if left > 0 {
					shares[i] = seat.Cap
					left--
				}
			}
		}
	case s.InOrder:
		shares = inOrder(s.amount(total), own)
	default:
		shares = Split(s.amount(total), own)
	}
	targets := slices.Clone(before)
	for k, i := range at {
		targets[i] = max(shares[k], targets[i])
	}
	return targets
}

// amount returns how many of the pods are new at the end of the stage.
func (s PlanStage) amount(of int64) int64 {
	if s.Pods > 0 {
		return min(s.Pods, of)
	}
	if s.Part[1] <= 0 {
		return of
	}
	n := new(big.Int).Mul(big.NewInt(of), big.NewInt(s.Part[0]))
	n.Add(n, big.NewInt(s.Part[1]-1))
	return min(n.Quo(n, big.NewInt(s.Part[1])).Int64(), of)
}

// limit lets only so many clusters be updated at the same time; the others keep what is released there.
func (s PlanStage) limit(clusters []string, targets, released []int64, done func([]int64) bool) {
	complete := func(i int) bool {
		one := make([]int64, len(targets))
		one[i] = targets[i]
		return done(one)
	}
	free := s.MaxClusters
	var waiting []int
	for _, c := range s.Clusters {
		switch i := slices.Index(clusters, c); {
		case i < 0 || targets[i] == 0 || complete(i): // or it is lost and not waited for
		case released[i] < targets[i]:
			waiting = append(waiting, i)
		default:
			free--
		}
	}
	for _, i := range waiting {
		if free--; free < 0 {
			targets[i] = released[i]
		}
	}
}

// keepFormer keeps the pods of a cluster whose stage has not started: a Work of another revision stays unchanged, and
// a cluster without a Work gets the previous revision or waits. same is true if the Work has the pods of the template;
// target is how many of all pods are to be new.
func (f *fleet) keepFormer(m *member, same bool, target, all int64) (kept bool) {
	p := f.options.plan
	switch {
	case p == nil:
		return false
	case m.before != nil:
		if same || target > 0 {
			return false
		}
		f.result.PodsKept = append(f.result.PodsKept, m.Cluster)
		return true
	case target >= all && (target > 0 || !p.Joined(m.Cluster)) || f.isNew() && p.From == "":
		return false
	case p.Joining == "Hold" && p.Joined(m.Cluster) || p.From == "":
		f.result.Waiting = append(f.result.Waiting, m.Cluster)
	default:
		f.result.Former = append(f.result.Former, m.Cluster)
	}
	return true
}

// keepAllPods keeps the pods of all clusters, of a template that has no stages.
func (f *fleet) keepAllPods() {
	for _, m := range f.members {
		f.keepFormer(m, m.hasPods(), 0, 1)
	}
}

// isNew reports whether the template is in no cluster yet.
func (f *fleet) isNew() bool {
	return !slices.ContainsFunc(f.members, func(m *member) bool { return m.before != nil })
}

// former returns the share of a cluster that keeps the pods of its Work: none of them changes.
func (p party) former(o outcome) outcome {
	if !p.hasWork {
		o.released = p.replicas
		return o
	}
	o.released = max(0, p.replicas-(p.written.replicas-p.written.released))
	o.unavailable, o.surging = p.written.unavailable, p.written.surging
	if p.note != nil {
		o.note = *p.note
	}
	return o
}

// unlimited returns a copy that lets all clusters of a stage be updated at the same time.
func (p *Plan) unlimited() *Plan {
	out := *p
	out.Stages = slices.Clone(p.Stages)
	for k := range out.Stages {
		out.Stages[k].MaxClusters = 0
	}
	return &out
}

// ClusterProgress is how far a Plan is in one cluster.
type ClusterProgress struct {
	Cluster string
	// Replicas that the cluster has; Target of them are to be new, Released may be, New are, and Available are new and
	// available.
	Replicas, Target, Released, New, Available int64
	// Reached is true if the cluster has reported the revision of the plan with Target pods new and available.
	Reached bool
	// Current is true if the Work in the cluster is of the revision of the plan.
	Current bool
	// Failed is true if new pods fail there. Refused is true if the member rejected its Work.
	Failed, Refused bool
	// Message is the member's error.
	Message string
	// Contested is true if a client in the member changes the object repeatedly.
	Contested bool
	// Lost is true if the cluster does not answer.
	Lost bool
}

// ProgressOf is how far the plan of in is in each cluster, by the Works alone: Base and Local of the members are not
// used. The targets belong to the current stage and ignore its limit of concurrent clusters.
func ProgressOf(in Input) ([]ClusterProgress, error) {
	if in.Plan == nil {
		return nil, fmt.Errorf("there is no plan")
	}
	plan := in.Plan.unlimited()
	in.Plan = plan
	o, err := in.options()
	if err != nil {
		return nil, err
	}
	f, err := fleetOf(in, o)
	if err != nil {
		return nil, err
	}
	all := make([]ClusterProgress, len(f.members))
	for i, m := range f.members {
		m.Base, m.Local = nil, nil
		current := m.Work != nil && m.before != nil && m.Work.Annotations[EffectiveRevisionAnnotation] == plan.Revision
		if current {
			m.Base, m.Local = m.before, m.before
		}
		all[i] = ClusterProgress{Cluster: m.Cluster, Current: current,
			Refused: m.refused && refuses(m.Work), Lost: !m.Reachable, Contested: m.Work != nil &&
				meta.IsStatusConditionTrue(m.Work.Status.Conditions, workv1alpha1.WorkContested)}
		if all[i].Refused {
			all[i].Message = refusal(m.Work)
		}
	}
	handler := handlerOf(in.Template)
	if plan.Unit == UnitCluster || plan.Unit == "" && handler.stagesClusters(o, in.Template, in.Divided) {
		f.clusterProgress(all)
		return all, nil
	}
	w, known := workloadOf(in.Template.GroupVersionKind().GroupKind())
	if !known {
		return nil, fmt.Errorf("a %s cannot be rolled out in stages", in.Template.GetKind())
	}
	return all, f.podProgress(w, all)
}

// planStage returns the stage that the plan of in is at.
func (in Input) planStage() (s Stage, ok bool) {
	p := in.Plan
	progress, err := ProgressOf(in)
	if err != nil || len(progress) == 0 || len(p.Stages) == 0 {
		return Stage{}, false
	}
	reached := !slices.ContainsFunc(progress, func(c ClusterProgress) bool {
		return !c.Reached && !(c.Lost && slices.Contains(p.Skipped, c.Cluster))
	})
	s = Stage{Number: min(p.At, len(p.Stages)), Of: len(p.Stages), State: StageInProgress}
	switch last := s.Number == s.Of; {
	case p.Done || last && reached:
		s.State = StageCompleted
	case p.Hold:
		s.State = StagePaused
	case s.Number == 0 || reached:
		s.State = StageWaitingForRelease
	}
	return s, true
}

// refuses reports whether the member has rejected its current Work. A rejection of an older generation does not count,
// nor does a temporary failure.
func refuses(w *workv1alpha1.Work) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkFailure)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration < w.Generation {
		return false
	}
	switch c.Reason {
	case workv1alpha1.ReasonRejected, workv1alpha1.ReasonForbidden, workv1alpha1.ReasonKindNotServed,
		workv1alpha1.ReasonNamespaceMissing, workv1alpha1.ReasonObjectUnmanaged, workv1alpha1.ReasonObjectOfAnother:
		return true
	}
	return false
}

// rejects reports whether the member's admission has rejected its current Work.
func rejects(w *workv1alpha1.Work) bool {
	return refuses(w) &&
		meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkFailure).Reason == workv1alpha1.ReasonRejected
}

// refusal returns the message of a member that did not take a Work.
func refusal(w *workv1alpha1.Work) string {
	for _, kind := range []string{workv1alpha1.WorkFailure, workv1alpha1.WorkApplied} {
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// podProgress fills in the progress of a template whose pods are divided.
func (f *fleet) podProgress(w workload, all []ClusterProgress) error {
	ro, parties, total, err := f.begin(w)
	if err != nil {
		return err
	}
	if f.options.failedPods != nil {
		if ro.tolerated, err = Resolve(f.options.failedPods, total, Down); err != nil {
			return err
		}
	}
	a, err := ro.goal(parties)
	if err != nil {
		return err
	}
	steps := make([]step, len(parties))
	for i, p := range parties {
		steps[i] = step{party: p, to: outcome{target: a.targets[i]}}
	}
	failing := ro.unhealthyClusters(steps)
	for i, p := range parties {
		c := &all[i]
		c.Replicas, c.Target = p.replicas, a.targets[i]
		if p.sameTemplate {
			c.Released = p.written.released
		}
		if p.sameTemplate && f.members[i].counts {
			c.New, c.Available = min(p.updated, p.replicas), min(p.updatedAvailable, p.replicas)
		}
		c.Reached = c.Target == 0 || p.sameTemplate && p.fresh && !c.Refused && c.Released >= c.Target &&
			p.hasReached(c.Target)
		c.Failed = slices.Contains(failing, p.cluster)
	}
	return nil
}

// clusterProgress is the progress of a template that each cluster has whole.
func (f *fleet) clusterProgress(all []ClusterProgress) {
	targets, _ := f.stageOfClusters()
	for i, m := range f.members {
		c := &all[i]
		c.Replicas = max(m.Replicas, 1)
		if n, ok := whole(field(f.Template.Object, "spec", "replicas")); ok && !f.Divided {
			c.Replicas = n
		} else if n, ok := whole(m.status["desiredNumberScheduled"]); ok {
			c.Replicas = n // a DaemonSet has as many pods as nodes
		}
		if targets[i] > 0 {
			c.Target = c.Replicas
		}
		if c.Current {
			c.Released = c.Replicas
			c.New, c.Available = m.counted(c.Replicas)
		}
		c.Reached = c.Target == 0 || c.Current && !c.Refused && m.rolledOut()
		c.Failed = c.Current && m.fresh && m.unhealthy && c.Target > 0 && !f.options.neverHalt
	}
}

// counted returns the new pods, and of them the available ones, that a member reports; of kinds that do not report
// them, all or none.
func (m *member) counted(replicas int64) (updated, available int64) {
	pods, counts := interpret.PodsOf(m.before.GroupVersionKind().GroupKind(), m.status)
	switch {
	case !m.counts, !counts && !m.rolledOut():
		return 0, 0
	case !counts:
		return replicas, replicas
	}
	updated = min(pods.Updated, replicas)
	return updated, min(updated, max(0, pods.Updated-(pods.All-pods.Available)))
}

// Staged reports whether the hub can pace the rollout of a template by a plan, and whether only by whole clusters.
func Staged(template *unstructured.Unstructured, divided bool) (ok, wholeClusters bool) {
	o, err := Input{Template: template, Plan: &Plan{}}.options()
	if err != nil {
		return false, false
	}
	h := handlerOf(template)
	return h.hasStages(o, template, divided), h.stagesClusters(o, template, divided)
}

// HasPartition reports whether the template itself keeps pods on their old revision.
func HasPartition(template *unstructured.Unstructured) bool {
	w, ok := workloadOf(template.GroupVersionKind().GroupKind())
	if !ok {
		return false
	}
	kept, err := w.kept(strategy(template.Object, "partition"), 100)
	return err != nil || kept > 0
}

// KeepsOldPods reports whether a Work keeps pods on their old revision, which the template does not ask for. The
// partition that a change of replicas leaves in a Work keeps none if no pod was old before.
func KeepsOldPods(w *workv1alpha1.Work, template *unstructured.Unstructured) (bool, error) {
	m, err := observe(Member{Work: w})
	if err != nil || m.before == nil || !HasPartition(m.before) || HasPartition(template) {
		return false, err
	}
	if pods, counts := interpret.PodsOf(m.before.GroupVersionKind().GroupKind(), m.status); counts && m.fresh {
		return pods.Updated < pods.All, nil
	}
	return m.note == nil || !m.note.Settled, nil
}

// MaxUnavailable returns how many of so many pods an update of a template may make unavailable at the same time. ok is
// false if the hub does not limit that for the kind.
func MaxUnavailable(template *unstructured.Unstructured, replicas int64) (n int64, ok bool) {
	_, n, err := Limits(template, replicas)
	return n, err == nil && kind.Facts(template).Rolling != nil
}

// Targets returns the new pods of clusters with so many replicas at the end of a stage, counted from 1, if all were old
// before the first one.
func (p *Plan) Targets(clusters []string, replicas []int64, at int) []int64 {
	begun := p.unlimited()
	begun.At = at
	seats := make([]Seat, len(replicas))
	for i, n := range replicas {
		seats[i] = Seat{Weight: n, Cap: n}
	}
	return begun.targets(clusters, seats, func([]int64) bool { return true })
}
