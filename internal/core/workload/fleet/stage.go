package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// RevisionPaths returns the fields of a kind that make pods new.
func RevisionPaths(gk schema.GroupKind) [][]string {
	return kind.Lookup(gk).RevisionPaths()
}

// samePods reports whether two objects of a kind ask for the same pods.
func samePods(a, b *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(kind.Facts(a).RevisionPaths(), func(path []string) bool {
		return !reflect.DeepEqual(field(a.Object, path...), field(b.Object, path...))
	})
}

// hasPods reports whether the Work asks for the pods of the template.
func (m *member) hasPods() bool {
	return m.before != nil && m.Local != nil && samePods(m.Local, m.before)
}

// RevisionOf names the pods of a template. It changes when the template asks for other pods.
func RevisionOf(template *unstructured.Unstructured) string {
	h := fnv.New64a()
	for _, path := range kind.Facts(template).RevisionPaths() {
		raw, _ := json.Marshal(field(template.Object, path...)) // it was read from JSON
		_, _ = h.Write(raw)                                     // never fails
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Approval is the value of wellknown.RolloutStageAnnotation.
type Approval struct {
	// Stage is the number of a stage, from 1. Its pause and those of earlier stages are approved.
	Stage int64 `json:"stage"`
	// Revision of the template that is rolled out; empty if the value is only a number.
	Revision string `json:"revision,omitempty"`
}

// String returns the value for wellknown.RolloutStageAnnotation.
func (a Approval) String() string { return words.JSON(a) }

// approvalOf reads wellknown.RolloutStageAnnotation: an Approval, or the number of a stage.
func approvalOf(value string) (a Approval, err error) {
	if json.Unmarshal([]byte(value), &a.Stage) == nil && a.Stage >= 0 {
		return a, nil
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&a); {
	case err != nil, a.Stage < 0:
		return Approval{}, fmt.Errorf(`%q is neither the number of a stage nor {"stage": 1, "revision": "…"}`, value)
	case a.Revision == "":
		return Approval{}, errors.New(`"revision" is missing: write the number of the stage alone, or run ` +
			"`argosy rollout approve`")
	}
	return a, nil
}

// counts returns the last stage whose pause a approves. A number without a revision counts for one revision only:
// record names it, and next is the record to store.
func (a Approval) counts(revision, record string) (stage int64, next string) {
	if a.Stage == 0 {
		return 0, ""
	}
	if a.Revision == "" {
		var was Approval
		if json.Unmarshal([]byte(record), &was) != nil || was.Stage != a.Stage {
			was = Approval{a.Stage, revision}
		}
		a, next = was, was.String()
	}
	if a.Revision != revision {
		return 0, next
	}
	return a.Stage, next
}

// StagesCompleted: the template is rolled out in stages, and all are complete. The reason has the stage, such as
// Stage1Of3InProgress, Stage1Of3WaitingForApproval or Stage3Of3Completed, and under a Release also
// Stage1Of3WaitingForRelease and Stage1Of3Paused; observedGeneration is the generation of the template.
//
//reference:condition ResourceBinding and ClusterResourceBinding
const StagesCompleted = "StagesCompleted"

// StageState is the state of a stage.
type StageState string

// The states of a stage.
const (
	// StageInProgress: pods, or clusters, of the stage are not new and available yet.
	StageInProgress StageState = "InProgress"
	// StageWaiting: they are, and the stage pauses.
	StageWaiting StageState = "WaitingForApproval"
	// StageCompleted: all stages are complete.
	StageCompleted StageState = "Completed"
	// StageWaitingForRelease: they are, and the Release has not started the next stage.
	StageWaitingForRelease StageState = "WaitingForRelease"
	// StagePaused: the Release is paused, or has ended before the last stage.
	StagePaused StageState = "Paused"
)

// Stage is the stage of a rollout.
type Stage struct {
	// Number counts from 1, and is 0 before a Release starts the first one; Of is how many stages there are.
	Number, Of int
	State      StageState
}

// String returns a sentence without its end.
func (s Stage) String() string {
	switch s.State {
	case StageCompleted:
		return fmt.Sprintf("all %d stages are complete", s.Of)
	case StageWaiting:
		return fmt.Sprintf("stage %d of %d is complete and waits for an approval", s.Number, s.Of)
	case StageWaitingForRelease:
		if s.Number == 0 {
			return fmt.Sprintf("the first of %d stages waits for its Release", s.Of)
		}
		return fmt.Sprintf("stage %d of %d is complete, and the next one waits for its Release", s.Number, s.Of)
	case StagePaused:
		return fmt.Sprintf("stage %d of %d is paused by its Release", s.Number, s.Of)
	default:
		return fmt.Sprintf("stage %d of %d is in progress", s.Number, s.Of)
	}
}

// Condition is StagesCompleted of a template of that generation.
func (s Stage) Condition(generation int64) metav1.Condition {
	c := metav1.Condition{Type: StagesCompleted, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: fmt.Sprintf("Stage%dOf%d%s", s.Number, s.Of, s.State), Message: s.String()}
	switch s.State {
	case StageCompleted:
		c.Status = metav1.ConditionTrue
	case StageWaiting:
		c.Message += ": approve it with `argosy rollout approve`, or with the annotation " + wellknown.RolloutStageAnnotation
	}
	return c
}

// ReportedStage returns the stage in the conditions of a binding. ok is false if there is none for the generation of
// the template.
func ReportedStage(conditions []metav1.Condition, generation int64) (s Stage, ok bool) {
	c := meta.FindStatusCondition(conditions, StagesCompleted)
	if c == nil || c.ObservedGeneration != generation {
		return Stage{}, false
	}
	n, err := fmt.Sscanf(c.Reason, "Stage%dOf%d%s", &s.Number, &s.Of, &s.State)
	return s, err == nil && n == 3
}

// InStages reports whether a template asks for a rollout in stages.
func InStages(template *unstructured.Unstructured) bool {
	return template.GetAnnotations()[wellknown.RolloutOrderAnnotation] == string(inStages)
}

// StageOf returns the stage of a rollout by its Works alone: Base and Local of the members are not used. ok is false
// for a template, or a plan, without stages, or with invalid ones.
func StageOf(in Input) (s Stage, ok bool) {
	if in.Plan != nil {
		return in.planStage()
	}
	o, err := optionsOf(in.Template.GetAnnotations())
	if err != nil || o.order != inStages || !handlerOf(in.Template).hasStages(o, in.Template, in.Divided) {
		return Stage{}, false
	}
	f, err := fleetOf(in, o)
	if err != nil || len(f.members) == 0 {
		return Stage{}, false
	}
	for _, m := range f.members {
		m.Base, m.Local = in.Template, in.Template
		if m.before != nil && (m.madeFrom(in.Template) ||
			samePods(in.Template, m.before)) {
			m.Base, m.Local = m.before, m.before
		}
	}
	if handlerOf(in.Template).stagesClusters(o, in.Template, in.Divided) {
		_, s = f.stageOfClusters()
		return s, true
	}
	w, known := workloadOf(in.Template.GroupVersionKind().GroupKind())
	if !known || !rolls(in.Template.Object) {
		return Stage{}, false
	}
	ro, parties, _, err := f.begin(w)
	if err != nil {
		return Stage{}, false
	}
	a, err := ro.goal(parties)
	if err != nil {
		return Stage{}, false
	}
	for _, p := range parties {
		if !p.settled() {
			return a.stage, true
		}
	}
	// Without old pods, the pauses of a rollout have no effect.
	return Stage{Number: a.stage.Of, Of: a.stage.Of, State: StageCompleted}, true
}

// stagesClusters reports whether the stages of a template are whole clusters, each of which has the new pods or not:
// the hub divides no partition of it. What runs once has no stages.
func (h handler) stagesClusters(o options, template *unstructured.Unstructured, divided bool) bool {
	divides := kind.Facts(template).Rolling != nil
	if o.order != inStages || divides && h.arithmetic(o, template, divided) {
		return false
	}
	return !runsOnce(template) && len(interpret.PodTemplates(template)) > 0
}

// runsOnce reports whether pods of the kind are never replaced.
func runsOnce(template *unstructured.Unstructured) bool {
	k := kind.Facts(template)
	return k.Once != nil || k.Pods.IsPod()
}

// hasStages reports whether the hub can roll out the template in stages: of pods, or of whole clusters.
func (h handler) hasStages(o options, template *unstructured.Unstructured, divided bool) bool {
	return h.stagesClusters(o, template, divided) ||
		kind.Facts(template).Rolling != nil && h.arithmetic(o, template, divided) && rolls(template.Object)
}

// ignoredStages returns the condition of a template that asks for stages and cannot have them; none without stages.
func ignoredStages(template *unstructured.Unstructured) []Condition {
	if !InStages(template) {
		return nil
	}
	return []Condition{{StagesIgnored, fmt.Sprintf("stages do not apply to this %s, so all clusters get the template at "+
		"once: stages need a pod template, and an update strategy that replaces pods; remove the annotation %s",
		template.GetKind(), wellknown.RolloutOrderAnnotation)}}
}

// stageOfClusters decides which clusters have the new pods, or get them, by 1 and 0 in the order of the members. A
// cluster without a Work gets them at once. A cluster is done when it has them and is healthy; see member.rolledOut.
func (f *fleet) stageOfClusters() (targets []int64, at Stage) {
	seats := make([]Seat, len(f.members))
	same := make([]bool, len(f.members))
	settled := true
	for i, m := range f.members {
		same[i] = m.before == nil && f.options.plan == nil ||
			m.hasPods()
		seats[i] = Seat{Weight: 1, Cap: 1}
		if same[i] {
			seats[i].Floor = 1
		}
		settled = settled && same[i] && m.rolledOut()
	}
	allLost := !slices.ContainsFunc(f.members, func(m *member) bool { return m.Reachable })
	targets, at = f.options.targets(f.clusters())(int64(len(seats)), seats, func(targets []int64) bool {
		if allLost && sum(targets) > 0 {
			return false // the hub is probably cut off
		}
		for i, m := range f.members {
			if targets[i] > 0 && (m.Reachable || !f.options.ignores(m.Cluster)) && !(same[i] && m.rolledOut()) {
				return false
			}
		}
		return true
	})
	if settled {
		at = Stage{Number: at.Of, Of: at.Of, State: StageCompleted}
	}
	return targets, at
}

// rolledOut reports whether the cluster is healthy with the pods of its Work. A paused workload counts as healthy, so
// its status must also show that all pods are new and available. A Deployment may also be paused in the member, by a
// Kruise Rollout, and an Argo Rollout by a step.
func (m *member) rolledOut() bool {
	if !m.fresh || !m.healthy {
		return false
	}
	of := kind.Facts(m.before)
	if !pausesPods(m.before) && text(m.status, "phase") != "Paused" && !of.UpdatesAll {
		return true
	}
	pods, _ := interpret.PodsOf(of.GroupKind, m.status)
	return pods.Updated >= pods.All && pods.Available >= pods.All
}

// pausesPods reports whether obj, or the workload in a UnitedDeployment, is paused: beside its pod template.
func pausesPods(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(interpret.PodTemplates(obj), func(path []string) bool {
		spec := object(obj.Object, path[:len(path)-1]...)
		return fields.Yes(spec, "paused") || fields.Yes(spec, "updateStrategy", "paused") ||
			fields.Yes(spec, "updateStrategy", "rollingUpdate", "paused")
	})
}

// keepLaterClusters keeps the pods of the clusters whose stage has not come.
func (f *fleet) keepLaterClusters() {
	targets, _ := f.stageOfClusters()
	for i, m := range f.members {
		if f.options.plan != nil {
			f.keepFormer(m, m.hasPods(), targets[i], 1)
		} else if targets[i] == 0 {
			f.result.PodsKept = append(f.result.PodsKept, m.Cluster)
		}
		if f.result.Notes[m.Cluster] == "" {
			f.result.Notes[m.Cluster] = Note{}.String() // statuses of such Works are events
		}
	}
}
