package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Input determines the shares of a template. It is read-only.
type Input struct {
	// Template as it is on the hub.
	Template *unstructured.Unstructured
	// Divided is true if its replicas are divided among the members.
	Divided bool
	// Members in the order that the placement gives, each cluster once.
	Members []Member
	// Record is the wellknown.OrdinalsAnnotation of the binding, Progress its wellknown.RolloutProgressAnnotation.
	Record, Progress string
	// Routed is the wellknown.RoutedToAnnotation of the binding, Approved its wellknown.ApprovedStageAnnotation.
	Routed, Approved string
	// Plan of the binding, see PlanOf; nil without a release.
	Plan *Plan
	// Leaving are former members that still run the workload: until others have replaced it, or until it can be deleted.
	Leaving []string
	// Now is the time of progress.
	Now time.Time
	// Pods maps the pod names in PodsAskedFor to the clusters that have such a pod in the template's namespace. An empty
	// list means that all clusters have answered and none has it.
	Pods map[string][]string
	// Target are the replicas by cluster of the workload that TargetOf names; nil if they are not known.
	Target map[string]int64
}

// Member is a cluster that gets the workload.
type Member struct {
	Cluster string
	// Replicas of the cluster, if they are divided.
	Replicas int64
	// Subsets are the replicas of subsets that name this cluster, by the subset's name. They are part of Replicas.
	Subsets map[string]int64
	// Kubernetes is the version of the cluster, such as v1.34.1; empty if unknown.
	Kubernetes string
	// Reachable: the cluster responds. Suspended: its Work is currently not written or sent.
	Reachable, Suspended bool
	// Scaled is true if an autoscaler in the cluster sets the replicas. The actual number may then differ from Replicas.
	Scaled bool
	// Base is its manifest without overrides.
	Base *unstructured.Unstructured
	// Local is Base with the overrides of the cluster. Fields that overrides change are not divided.
	Local *unstructured.Unstructured
	// Work of the cluster; nil if none exists.
	Work *workv1alpha1.Work
}

// Result has the shares of the members.
type Result struct {
	// Manifests by cluster, if they differ from Base.
	Manifests map[string]*unstructured.Unstructured
	// Waiting are clusters that get no Work until it is their turn. None of them has one.
	Waiting []string
	// PodsKept are clusters whose pods stay at the revision of their Works. All other changes of the template are
	// applied.
	PodsKept []string
	// Former are clusters without a Work that get the pods of Plan.From.
	Former []string
	// Notes are the values of wellknown.FleetAnnotation on the Works, by cluster.
	Notes map[string]string
	// Record is the value for wellknown.OrdinalsAnnotation on the binding, empty for none. It has to be written before the
	// Works.
	Record string
	// Progress is the value for wellknown.RolloutProgressAnnotation on the binding, empty for none.
	Progress string
	// Routed is the value for wellknown.RoutedToAnnotation on the binding, Approved for wellknown.ApprovedStageAnnotation;
	// empty for none.
	Routed, Approved string
	// RecheckAfter is when to call Shares again without a change; 0 for never.
	RecheckAfter time.Duration
	// Conditions for users, in a fixed order.
	Conditions []Condition
}

// Condition of a template in its fleet, for users.
type Condition struct {
	// Type is one of the constants below.
	Type string
	// Message is what happened and what the user can do.
	Message string
}

// Condition types of a binding about its template in the fleet. Each is True while it applies, with the type as
// reason, and otherwise absent.
//
//reference:condition ResourceBinding and ClusterResourceBinding
const (
	// PartitionRaisedNoRollback: the partition was raised, but pods that are updated stay updated. Roll the template
	// back to revert them.
	PartitionRaisedNoRollback = "PartitionRaisedNoRollback"
	// FleetHalted: the rollout is halted in all clusters, because the new revision is unhealthy in one. Fix the
	// template, or set argosy.io/auto-halt. With a release, the template may also have changed so that it can no longer be
	// updated in the unit of the release. Undo that change.
	FleetHalted = "FleetHalted"
	// PodNotFound: a pod that the template names, to delete or to recreate, is in no cluster.
	PodNotFound = "PodNotFound"
	// StageClusterNotFound: a rollout stage names a cluster where the workload does not run.
	StageClusterNotFound = "StageClusterNotFound"
	// StagesIgnored: the kind or its update strategy has no rollout stages, so all clusters are updated at once.
	StagesIgnored = "StagesIgnored"
	// RevisionSkew: clusters inject different revisions of a SidecarSet, because of overrides or because one has not
	// applied the change.
	RevisionSkew = "RevisionSkew"
	// RevisionMissing: a SidecarSet names a revision that some cluster does not have.
	RevisionMissing = "RevisionMissing"
	// StaleVolume: ordinals of a StatefulSet were moved to another cluster and may have left volumes behind.
	StaleVolume = "StaleVolume"
	// OrdinalsUnassigned: replicas do not run, because their ordinals stay with their volumes in a cluster that is
	// gone.
	OrdinalsUnassigned = "OrdinalsUnassigned"
	// BudgetExceedsPods: a disruption budget is larger than the number of pods that it protects.
	BudgetExceedsPods = "BudgetExceedsPods"
	// BudgetBlocksEviction: a disruption budget allows no disruption in some cluster, so its nodes cannot be drained.
	BudgetBlocksEviction = "BudgetBlocksEviction"
	// BoundsTooLow: the maximum of an autoscaler is less than the number of clusters, each of which needs at least one
	// pod.
	BoundsTooLow = "BoundsTooLow"
	// StatusIncomplete: the status that an interpreter reports lacks the updated replicas, so a rollout cannot see its
	// progress.
	StatusIncomplete = "StatusIncomplete"
	// ProgressDeadlineExceeded: no new pod has become available in any cluster for spec.progressDeadlineSeconds.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ChangeAwaitsRelease: the template or its overrides differ from the ReleaseRevision that clusters keep until a
	// release.
	ChangeAwaitsRelease = "ChangeAwaitsRelease"
	// ConfigMapMissing: pods read a version of a ConfigMap that was deleted or replaced, and that the hub cannot make
	// again.
	ConfigMapMissing = "ConfigMapMissing"
	// OverwriteForbidden: the template or its policy requests Overwrite, which an administrator forbids. It is treated
	// as Abort.
	OverwriteForbidden = "OverwriteForbidden"
)

// ConditionTypes returns all types.
func ConditionTypes() []string {
	return []string{PartitionRaisedNoRollback, FleetHalted, PodNotFound, StageClusterNotFound, StagesIgnored, RevisionSkew,
		RevisionMissing, StaleVolume, OrdinalsUnassigned,
		BudgetExceedsPods, BudgetBlocksEviction, BoundsTooLow, StatusIncomplete, ProgressDeadlineExceeded,
		ChangeAwaitsRelease, ConfigMapMissing, OverwriteForbidden}
}

// Concerns reports whether the numbers of a template count the pods of all clusters; if not, there is no need to call
// Shares. The error describes an invalid annotation.
func Concerns(template *unstructured.Unstructured, divided bool) (bool, error) {
	h := handlerOf(template)
	if h.share == nil && !InStages(template) {
		return false, nil
	}
	o, err := optionsOf(template.GetAnnotations())
	if err != nil {
		return false, err
	}
	return h.concerned(o, template, divided) || h.stagesClusters(o, template, divided), nil
}

// concerned reports whether any number of the template is divided.
func (h handler) concerned(o options, template *unstructured.Unstructured, divided bool) bool {
	return h.partial != nil && h.partial(template) || h.arithmetic(o, template, divided) ||
		h.always != nil && h.always(template.Object) && !h.retained(template)
}

// retained reports whether a user left the replicas of the template to members. The hub then cannot divide numbers by
// replicas. If autoscalers set them, the hub knows them.
func (h handler) retained(template *unstructured.Unstructured) bool {
	return h.divides && template.GetLabels()[policyv1alpha1.RetainReplicasLabel] == "true" &&
		template.GetAnnotations()[wellknown.ScaledByAnnotation] == ""
}

// arithmetic reports whether numbers of the template count pods of the whole fleet.
func (h handler) arithmetic(o options, template *unstructured.Unstructured, divided bool) bool {
	switch {
	case h.share == nil, h.retained(template):
		return false
	case h.divides:
		return divided && o.scope != "Cluster"
	}
	return o.scope == "Fleet"
}

// Shares returns each member's share of the template. It is deterministic. Once its result is written to the Works, it
// returns the same result until a member reports a change.
//
// An error means that the template cannot be divided; then nothing should be written.
func Shares(in Input) (Result, error) {
	handler := handlerOf(in.Template)
	if handler.share == nil && !InStages(in.Template) && in.Plan == nil {
		return Result{}, nil
	}
	o, err := in.options()
	if err != nil {
		return Result{}, err
	}
	if p := in.Plan; p != nil && !p.Fits(in.Template, in.Divided) {
		return handler.pauseUnfit(in, o)
	}
	if !handler.concerned(o, in.Template, in.Divided) && !handler.stagesClusters(o, in.Template, in.Divided) {
		return Result{Conditions: ignoredStages(in.Template)}, nil
	}
	if o.leavesToMember(len(in.Members)) && handler.always == nil && handler.partial == nil && !o.uniqueOrdinals {
		if o.order == inStages {
			return Result{Approved: in.Approved}, nil // it is in no cluster for now
		}
		return Result{}, nil // one cluster does the arithmetic itself
	}
	f, err := fleetOf(in, o)
	if err != nil {
		return Result{}, err
	}
	if handler.hasStages(o, in.Template, in.Divided) {
		f.reportAbsentClusters()
	} else {
		f.result.Conditions = ignoredStages(in.Template)
	}
	if handler.concerned(o, in.Template, in.Divided) {
		if err := handler.share(f); err != nil {
			return Result{}, fmt.Errorf("divide %s among clusters: %w", in.Template.GetKind(), err)
		}
	}
	if handler.stagesClusters(o, in.Template, in.Divided) {
		f.keepLaterClusters()
	} else if o.isPaused() && !handler.hasStages(o, in.Template, in.Divided) && !runsOnce(in.Template) {
		f.keepAllPods() // so that a later update strategy that replaces pods finds the old ones
	}
	return f.result, nil
}

// fleet has the state of one call of Shares.
type fleet struct {
	Input
	options options
	// members are in the order in which ties are broken.
	members []*member
	result  Result
}

func fleetOf(in Input, o options) (*fleet, error) {
	names := make([]string, len(in.Members))
	byName := make(map[string]Member, len(in.Members))
	for i, m := range in.Members {
		names[i], byName[m.Cluster] = m.Cluster, m
	}
	f := &fleet{Input: in, options: o, result: Result{
		Manifests: map[string]*unstructured.Unstructured{}, Notes: map[string]string{}, Record: in.Record}}
	for _, name := range o.sorted(names) {
		m, err := observe(byName[name])
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, m)
	}
	if o.order == inStages {
		f.options.approved, f.result.Approved = o.approval.counts(RevisionOf(in.Template), in.Approved)
	}
	return f, nil
}

// member is a cluster with the content of its Work and its reported status.
type member struct {
	Member
	// before is the manifest of its Work, nil without one.
	before *unstructured.Unstructured
	note   *Note
	// status is as reported, nil if never. fresh is true if it is about the current content of the Work, counts if its
	// updated pods are those of the Work.
	status        map[string]any
	fresh, counts bool
	// healthy and unhealthy are the hub's assessment. refused is true if the member rejected the current content of the
	// Work.
	healthy, unhealthy, refused bool
}

// handler has the division of a kind.
type handler struct {
	// divides is true if the kind is divided by default when its replicas are; otherwise only on request.
	divides bool
	// always reports whether the template needs a division whatever its scope; nil if the kind never does.
	always func(template map[string]any) bool
	// partial reports whether the template differs by cluster, so that it is sent to no cluster unchanged; nil if the
	// kind never does.
	partial func(template *unstructured.Unstructured) bool
	share   func(*fleet) error
}

// observe reads the Work of m.
func observe(m Member) (*member, error) {
	out := &member{Member: m}
	if m.Work == nil || len(m.Work.Spec.Workload.Manifests) != 1 {
		return out, nil
	}
	out.before = &unstructured.Unstructured{}
	if err := out.before.UnmarshalJSON(m.Work.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("read the manifest of the work in cluster %q: %w", m.Cluster, err)
	}
	if text, ok := m.Work.Annotations[wellknown.FleetAnnotation]; ok {
		note := &Note{}
		// Ignore an invalid note.
		if json.Unmarshal([]byte(text), note) == nil {
			out.note = note
		}
	}
	if len(m.Work.Status.ManifestStatuses) == 0 {
		return out, nil
	}
	reported := m.Work.Status.ManifestStatuses[0]
	if reported.Status == nil || len(reported.Status.Raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(reported.Status.Raw, &out.status); err != nil {
		return nil, fmt.Errorf("read the status that cluster %q reported: %w", m.Cluster, err)
	}
	out.healthy = reported.Health == workv1alpha1.ResourceHealthy
	out.unhealthy = reported.Health == workv1alpha1.ResourceUnhealthy
	applied := meta.FindStatusCondition(m.Work.Status.Conditions, workv1alpha1.WorkApplied)
	seen, _ := interpret.ObservedGeneration(out.status)
	out.refused = applied != nil && applied.Status == metav1.ConditionFalse
	out.fresh = applied != nil && applied.Status == metav1.ConditionTrue &&
		applied.ObservedGeneration >= m.Work.Generation &&
		seen >= number(out.status, "generation") && madeOf(out.status, out.before)
	// A partition that was written since says nothing about the pods. Without a release, an override may change them.
	out.counts = interpret.CountsManifest(out.status, out.before) &&
		(out.fresh || m.Work.Annotations[EffectiveRevisionAnnotation] != "")
	return out, nil
}

// madeOf reports whether a status is of the template generation that the manifest was made from. It is true if the
// status names no generation.
func madeOf(status map[string]any, manifest *unstructured.Unstructured) bool {
	n, ok := whole(status["resourceTemplateGeneration"])
	return !ok || fmt.Sprint(n) == manifest.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]
}

// addCondition adds a condition to the result.
func (f *fleet) addCondition(of, format string, args ...any) {
	f.result.Conditions = append(f.result.Conditions, Condition{of, fmt.Sprintf(format, args...)})
}

func (f *fleet) manifest(m *member) *unstructured.Unstructured {
	if u := f.result.Manifests[m.Cluster]; u != nil {
		return u
	}
	return m.Base
}

// hasMember reports whether the cluster is a member.
func (f *fleet) hasMember(cluster string) bool { return slices.Contains(f.clusters(), cluster) }

func (f *fleet) clusters() []string {
	names := make([]string, len(f.members))
	for i, m := range f.members {
		names[i] = m.Cluster
	}
	return names
}

// rollOut divides partition, maxUnavailable and maxSurge. If byOrdinal is set, it returns the new pods of each cluster
// when the given number of old pods remains in all.
func (f *fleet) rollOut(w workload, byOrdinal func(kept int64) []int64) error {
	if !rolls(f.Template.Object) {
		return nil
	}
	ro, parties, total, err := f.begin(w)
	if err != nil {
		return err
	}
	clock := f.progress(parties)
	ro.stalled = clock.stalled()
	if f.options.failedPods != nil {
		if ro.tolerated, err = Resolve(f.options.failedPods, total, Down); err != nil {
			return fmt.Errorf("annotation %s: %w", wellknown.FailedPodsThresholdAnnotation, err)
		}
	}
	if ro.unavailable, ro.surge, err = w.budgets(f.Template.Object, total); err != nil {
		return err
	}
	if byOrdinal != nil && f.options.order == inProportion {
		ro.targets = func(n int64, seats []Seat, _ func([]int64) bool) ([]int64, Stage) {
			targets := byOrdinal(total - n)
			for i := range targets {
				targets[i] = max(min(targets[i], seats[i].Cap), min(seats[i].Floor, seats[i].Cap))
			}
			return targets, Stage{}
		}
	}
	outcomes, halted, err := ro.next(parties)
	if err != nil {
		return err
	}
	for i, m := range f.members {
		if p := parties[i]; f.keepFormer(m, p.sameTemplate, outcomes[i].target, p.replicas) {
			outcomes[i] = p.former(outcomes[i])
		}
	}
	for i, m := range f.members {
		if m.Base == nil {
			continue
		}
		manifest, err := w.write(f.manifest(m), outcomes[i])
		if err != nil {
			return fmt.Errorf("cluster %q: %w", m.Cluster, err)
		}
		f.result.Manifests[m.Cluster] = manifest
		f.result.Notes[m.Cluster] = outcomes[i].note.String()
	}
	f.trackDeadline(clock, outcomes)
	if p := f.options.plan; len(halted) > 0 && p != nil {
		f.addCondition(FleetHalted, "the rollout is halted in all clusters because new pods fail in %s; see release %s",
			strings.Join(unique(halted), ", "), p.Release)
	} else if len(halted) > 0 && f.options.failedPods != nil {
		f.addCondition(FleetHalted, "the rollout is halted in all clusters because more than %d new pods are failing, in %s; fix the template, or raise the annotation %s",
			ro.tolerated, strings.Join(unique(halted), ", "), wellknown.FailedPodsThresholdAnnotation)
	} else if len(halted) > 0 {
		f.addCondition(FleetHalted, "the rollout is halted in all clusters because the new revision is unhealthy in %s; fix the template, or continue regardless with the annotation %s: \"false\"",
			strings.Join(unique(halted), ", "), wellknown.AutoHaltAnnotation)
	}
	var silent []string
	for i, m := range f.members {
		if _, ok := whole(m.status[w.Counters.Updated]); !ok && m.fresh && parties[i].replicas > 0 {
			silent = append(silent, m.Cluster)
		}
	}
	if len(silent) > 0 {
		f.addCondition(StatusIncomplete, "the status reported from %s has no %s, so a rollout cannot tell when it is done there; add it to the InterpretStatus operation of the customization of the kind",
			strings.Join(unique(silent), ", "), w.Counters.Updated)
	}
	var extra []string
	for i, p := range parties {
		if outcomes[i].note.Raised && p.fresh && p.sameTemplate && p.updated > outcomes[i].released {
			extra = append(extra, p.cluster)
		}
	}
	if len(extra) > 0 {
		f.addCondition(PartitionRaisedNoRollback,
			"the partition was raised, but pods that were already updated stay updated in %s, unless OpenKruise's feature gate CloneSetPartitionRollback is enabled there; to revert them, roll the template back",
			strings.Join(unique(extra), ", "))
	}
	return nil
}

// rollOutAndScale also divides the limit of pods that are created.
func (f *fleet) rollOutAndScale(w workload, byOrdinal func(kept int64) []int64) error {
	if err := f.rollOut(w, byOrdinal); err != nil || !w.Rolling.LimitsScaling {
		return err
	}
	return f.scaleLimit(rounding(w.Rolling.UnavailableRoundsDown), w.Rolling.Numeric)
}

// begin returns the rollout of the template without its budgets, the part of each member, and the replicas of all.
func (f *fleet) begin(w workload) (ro rollout, parties []party, total int64, err error) {
	parties = make([]party, len(f.members))
	for i, m := range f.members {
		if parties[i], err = w.party(m); err != nil {
			return rollout{}, nil, 0, err
		}
		parties[i].rewritten = m.before != nil && !m.madeFrom(f.Template)
		total += parties[i].replicas
	}
	partition := strategy(f.Template.Object, "partition")
	if f.options.plan != nil {
		partition = nil
	}
	return rollout{partition: partition, kept: w.kept, options: f.options,
		single: ordered(f.Template.Object), targets: f.options.targets(f.clusters())}, parties, total, nil
}

// party returns the part of m in a rollout.
func (w workload) party(m *member) (party, error) {
	p := party{cluster: m.Cluster, replicas: m.Replicas, reachable: m.Reachable, suspended: m.Suspended || m.Base == nil,
		hasWork: m.before != nil, note: m.note,
		scaled: m.Scaled, percent: m.Scaled && w.percentages(),
		known: m.status != nil, fresh: m.fresh, unhealthy: m.unhealthy}
	if w.perNode() {
		p.replicas = number(m.status, w.Counters.Desired)
	}
	if m.Base != nil && m.Local != nil {
		// A field that an override sets is not divided.
		base, local := m.Base.Object, m.Local.Object
		if v := strategy(local, "partition"); !reflect.DeepEqual(v, strategy(base, "partition")) {
			kept, err := w.kept(v, p.replicas)
			if err != nil {
				return party{}, fmt.Errorf("as overridden in cluster %q: %w", m.Cluster, err)
			}
			p.fixedKept = &kept
		}
		unavailable, surge := strategy(local, "maxUnavailable"), strategy(local, "maxSurge")
		if !reflect.DeepEqual(unavailable, strategy(base, "maxUnavailable")) ||
			!reflect.DeepEqual(surge, strategy(base, "maxSurge")) {
			n, _, err := w.budgets(local, p.replicas)
			if err != nil {
				return party{}, fmt.Errorf("as overridden in cluster %q: %w", m.Cluster, err)
			}
			p.fixedUnavailable = &n
		}
		p.sameTemplate = m.hasPods()
	}
	if p.hasWork {
		replicas := p.replicas
		if !w.perNode() {
			replicas = 1
			if n, ok := whole(field(m.before.Object, w.Replicas...)); ok {
				replicas = n
			}
		}
		if _, isText := strategy(m.before.Object, "partition").(string); isText && p.percent {
			replicas = p.replicas // whatever the manifest has, the percentage is of what there is
		}
		var err error
		if p.written, err = w.shareOf(m.before.Object, replicas); err != nil {
			// The written value is invalid, for example by a former override: treat all pods as unreleased.
			p.written = share{replicas: replicas, unavailable: 1}
		}
	}
	c := w.Counters
	p.pods, p.updated = sumOf(m.status, c.Present()), number(m.status, c.Updated)
	p.available = number(m.status, c.Available)
	p.updatedAvailable = min(p.updated, max(0, p.updated-(p.pods-p.available)))
	if n, ok := whole(m.status[c.UpdatedAvailable]); ok && c.UpdatedAvailable != "" {
		p.updatedAvailable = n
	} else if c.UpdatedAvailable != "" {
		// OpenKruise omits it at zero, and its older versions do not have it.
		p.updatedAvailable = min(number(m.status, "updatedReadyReplicas"), p.available)
	}
	return p, nil
}

// handlerOf returns the division of a template's kind.
func handlerOf(template *unstructured.Unstructured) handler {
	k := kind.Facts(template)
	switch k.Divides {
	case kind.DividesRollout:
		return handler{divides: k.Replicas != nil, share: func(f *fleet) error { return f.rollOutAndScale(workload{k}, nil) }}
	case kind.DividesRolloutAndPods:
		return handler{divides: true, share: (*fleet).cloneSet,
			always: func(template map[string]any) bool { return len(list(template, podsToDeletePath...)) > 0 }}
	case kind.DividesRolloutAndOrdinals:
		return handler{divides: true, share: (*fleet).statefulSet,
			always: func(template map[string]any) bool { return len(list(template, reservedPath...)) > 0 }}
	case kind.DividesOrdinals:
		return handler{share: (*fleet).nativeStatefulSet, always: func(template map[string]any) bool {
			return text(template, "metadata", "annotations", wellknown.UniqueOrdinalsAnnotation) == "true"
		}}
	case kind.DividesInjection:
		return handler{share: (*fleet).sidecarSet, always: versioned}
	case kind.DividesSubsets:
		return handler{divides: true, share: (*fleet).unitedDeployment, partial: NamesClusters}
	case kind.DividesSubsetLimits:
		return handler{share: (*fleet).workloadSpread}
	case kind.DividesSteps:
		return handler{share: (*fleet).kruiseRollout}
	case kind.DividesBudget:
		return handler{share: func(f *fleet) error { return f.shareBudget(k.Counters) }}
	case kind.DividesParallelism:
		return handler{share: func(f *fleet) error { return f.parallelism(k) }}
	case kind.DividesPodsAndParallelism:
		return handler{share: (*fleet).ephemeralJob}
	case kind.DividesBounds:
		return handler{share: func(f *fleet) error { return f.shareBounds(k.Scaler) }}
	case kind.DividesNothingButPods:
		return handler{share: (*fleet).recreateRequest, always: func(map[string]any) bool { return true }}
	}
	return handler{}
}

// cloneSet divides a CloneSet's rollout, if its replicas are divided, and routes the pods to delete in any case.
func (f *fleet) cloneSet() error {
	names := podsNamed(f.Template)
	if f.options.leavesToMember(len(f.members)) {
		switch {
		case len(names) == 0:
		case f.placedTooMany():
			f.routePods(names, f.podRoutes(names))
		default:
			for _, m := range f.members {
				if m.Base != nil {
					f.passPods(m)
				}
			}
		}
		return nil // its member divides nothing
	}
	routes := f.podRoutes(names)
	f.delayScaleDown(routes)
	if f.Divided && f.options.scope != "Cluster" {
		if err := f.rollOutAndScale(workload{kind.Facts(f.Template)}, nil); err != nil {
			return err
		}
	}
	f.routePods(names, routes)
	return nil
}

// unique returns the names without duplicates, sorted.
func unique(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}
