package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// The defaults of a ReleaseCheck.
const (
	defaultInterval          = 30 * time.Second
	defaultInconclusiveLimit = 4
)

// CheckCall is a check that a release waits for.
type CheckCall struct {
	// Stage, Environment, Gate and Position are the gate of the check.
	Stage, Environment, Gate string
	Position                 releasev1alpha1.GatePosition
	// Clusters of the stage but those that the release goes on without.
	Clusters []string
	// Args are the arguments of the gate, and Since is when it began to wait.
	Args  map[string]releasev1alpha1.CheckArgument
	Since time.Time
	// Status as it is stored.
	Status releasev1alpha1.ReleaseCheckStatus
}

// CheckCalls returns the checks that a release waits for. Their attempts are stored, so a call that is repeated after a
// restart has the same key.
func CheckCalls(r *releasev1alpha1.Release) []CheckCall {
	k := currentStage(r.Status.Stages)
	if r.Status.Phase != releasev1alpha1.ReleaseRunning || k == len(r.Status.Stages) || r.DeletionTimestamp != nil {
		return nil
	}
	stage := r.Status.Stages[k]
	if stage.Phase != releasev1alpha1.StageGated && stage.Phase != releasev1alpha1.StageChecking {
		return nil
	}
	var calls []CheckCall
	for _, g := range stage.Gates {
		if g.Check == nil || g.Phase != releasev1alpha1.GateWaiting {
			continue
		}
		call := CheckCall{Stage: stage.Name, Gate: g.Name, Position: g.Position, Status: *g.Check.DeepCopy()}
		if g.Since != nil {
			call.Since = g.Since.Time
		}
		if s := r.Status.Strategy; s != nil && k < len(s.Stages) {
			call.Environment = s.Stages[k].Environment
		}
		if spec := specOf(r, g); spec != nil && spec.CheckRef != nil {
			call.Args = spec.CheckRef.Args
		}
		for _, name := range clusterNames(r.Status.Stages, k) {
			if !skips(&r.Status, name) {
				call.Clusters = append(call.Clusters, name)
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// Variables are the values that the queries of a check can contain, but for the cluster.
func (c CheckCall) Variables(r *releasev1alpha1.Release) sample.Variables {
	name := ""
	if len(r.Spec.Targets) > 0 {
		name = r.Spec.Targets[0].Ref.Name
	}
	all := sample.Variables{"release": r.Name, "namespace": r.Namespace, "name": name, "revision": r.Status.Revision,
		"stage": c.Stage, "environment": c.Environment, "clusters": strings.Join(c.Clusters, "|")}
	for arg, value := range c.Args {
		all[sample.ArgumentPrefix+arg] = string(value)
	}
	return all
}

func (c CheckCall) WebhookBody(r *releasev1alpha1.Release) []byte {
	targets := []PlannedTarget{}
	for i, t := range r.Status.Targets {
		if i < len(r.Spec.Targets) {
			ref := r.Spec.Targets[i].Ref
			targets = append(targets, PlannedTarget{t.Name, ref.Kind, ref.Name, t.From, t.To})
		}
	}
	body := map[string]any{"key": c.Status.Key, "namespace": r.Namespace, "release": r.Name,
		"releaseUID": r.UID, "revision": r.Status.Revision, "stage": c.Stage, "environment": c.Environment, "gate": c.Gate,
		"position": c.Position, "attempt": c.Status.Attempt, "clusters": c.Clusters, "targets": targets}
	if len(c.Args) > 0 {
		body["args"] = c.Args
	}
	return []byte(text.JSON(body))
}

// Due reports when the next sample of a check is due; at once if the time is zero. status is that after the last
// sample.
func (c CheckCall) Due(spec *releasev1alpha1.ReleaseCheckSpec,
	status releasev1alpha1.ReleaseCheckStatus) (at time.Time) {
	if status.NextAt != nil {
		return status.NextAt.Time
	}
	if status.SampledAt == nil && spec.InitialDelay != nil && !c.Since.IsZero() {
		return c.Since.Add(spec.InitialDelay.Duration)
	}
	return time.Time{}
}

// SampleLimits returns the interval of a check, and how many samples in a row may be without data, or errors.
func SampleLimits(spec *releasev1alpha1.ReleaseCheckSpec) (interval time.Duration, inconclusive int32) {
	return duration(spec.Interval, defaultInterval), ptr.Deref(spec.InconclusiveLimit, defaultInconclusiveLimit)
}

// IsDecided reports whether no other sample can change a verdict.
func IsDecided(status releasev1alpha1.ReleaseCheckStatus) bool {
	return status.Verdict == releasev1alpha1.CheckPass || status.Verdict == releasev1alpha1.CheckFail
}

// WithSample returns the state of a check after another sample. A sample without data, or without an answer, neither
// passes nor fails.
func WithSample(spec *releasev1alpha1.ReleaseCheckSpec, status releasev1alpha1.ReleaseCheckStatus, s sample.Sample,
	now time.Time) releasev1alpha1.ReleaseCheckStatus {
	if IsDecided(status) {
		return status
	}
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	interval, limit := SampleLimits(spec)
	next := metav1.NewTime(now.Add(cmp.Or(s.After, interval)).UTC().Truncate(time.Second))
	status.SampledAt, status.NextAt = &at, &next
	status.Value, status.Control, status.Message = s.Value, s.Control, cut(s.Message)
	status.Report = spec.Report
	unclear := func(verdict releasev1alpha1.CheckVerdict) {
		if status.Unclear = min(status.Unclear+1, limit+1); status.Unclear > limit {
			status.Verdict = verdict
		}
	}
	switch s.Outcome {
	case sample.Pass:
		status.Passed, status.Unclear, status.Verdict = status.Passed+1, 0, ""
	case sample.Fail:
		status.Failed, status.Unclear, status.Verdict = status.Failed+1, 0, ""
	case sample.NoData:
		unclear(releasev1alpha1.CheckInconclusive)
	case sample.Error:
		unclear(releasev1alpha1.CheckError)
	}
	switch {
	case status.Failed > spec.FailureLimit:
		status.Verdict = releasev1alpha1.CheckFail
	case status.Passed >= max(spec.Count, 1):
		status.Verdict = releasev1alpha1.CheckPass
	}
	if IsDecided(status) {
		status.NextAt = nil
	}
	return status
}

// checkKey identifies what a verdict counts for. It tells a webhook and a Job that a call is repeated.
func checkKey(r *releasev1alpha1.Release, revision string, stage releasev1alpha1.ReleaseStageStatus,
	position releasev1alpha1.GatePosition, gate string) string {
	sum := sha256.Sum256([]byte(text.JSON([]any{r.UID, revision, stage.Name, stage.Attempt, position, gate})))
	return hex.EncodeToString(sum[:16])
}

// newCheck is the state of a check before its first sample; nil for a gate of another type.
func (s *stepper) newCheck(k int, gate releasev1alpha1.ReleaseGate,
	position releasev1alpha1.GatePosition) *releasev1alpha1.ReleaseCheckStatus {
	if !isCheck(gate) {
		return nil
	}
	stage := s.status.Stages[k]
	return &releasev1alpha1.ReleaseCheckStatus{Name: gate.CheckRef.Name, Attempt: stage.Attempt,
		Key: checkKey(s.Release, s.status.Revision, stage, position, gate.Name)}
}

// checkGate decides a gate by its check. passed is true if the gate has passed; failed is not empty if the stage has
// failed or the release pauses. Otherwise the gate waits, and reason is that of Progressing.
func (s *stepper) checkGate(k int, gate releasev1alpha1.ReleaseGate,
	g *releasev1alpha1.ReleaseGateStatus) (passed bool, failed transition, reason string) {
	is := s.latestCheck(g)
	message := fmt.Sprintf("check %s of gate %s", is.Name, gate.Name)
	if detail := SampleText(is); detail != "" {
		message += ": " + detail
	}
	closed := func(phase releasev1alpha1.GatePhase) {
		g.Check = is.DeepCopy()
		g.Phase = phase
		s.journal(releasev1alpha1.JournalGate, s.status.Stages[k].Name, "", "", string(phase), message)
	}
	if is.Report && is.Verdict != "" {
		message += "; the check only reports"
		closed(releasev1alpha1.GatePassed)
		return true, stay, ""
	}
	action := cmp.Or(gate.OnInconclusive, releasev1alpha1.InconclusiveWait)
	switch is.Verdict {
	case releasev1alpha1.CheckPass:
		closed(releasev1alpha1.GatePassed)
		return true, stay, ""
	case releasev1alpha1.CheckFail:
		closed(releasev1alpha1.GateFailed)
		return false, s.fail(k, releasev1alpha1.ReasonCheckFailed, message, s.begunTargets()...), ""
	case releasev1alpha1.CheckInconclusive:
		reason = releasev1alpha1.ReasonCheckInconclusive
	case releasev1alpha1.CheckError:
		reason = releasev1alpha1.ReasonCheckUnavailable
	default:
		s.keepCheck(g, is)
		return false, stay, releasev1alpha1.ReasonChecking
	}
	switch {
	case action == releasev1alpha1.InconclusivePass && is.Verdict == releasev1alpha1.CheckInconclusive:
		closed(releasev1alpha1.GatePassed)
		return true, stay, ""
	case action == releasev1alpha1.InconclusiveFail:
		closed(releasev1alpha1.GateFailed)
		return false, s.fail(k, reason, message), ""
	case action == releasev1alpha1.InconclusivePause:
		closed(releasev1alpha1.GateFailed)
		s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionFalse, reason, message)
		return false, s.pauseByFailure(k, reason, message), ""
	}
	s.keepCheck(g, is)
	return false, stay, reason
}

// latestCheck is the state of the check of a gate as of its last sample.
func (s *stepper) latestCheck(g *releasev1alpha1.ReleaseGateStatus) releasev1alpha1.ReleaseCheckStatus {
	if known, ok := s.Checks[g.Check.Key]; ok && known.Key == g.Check.Key && known.Name == g.Check.Name {
		return known
	}
	return *g.Check
}

// keepCheck stores the state of a check if its verdict has changed, or another sample has failed. Other samples are not
// worth a write: after a restart they are taken again.
func (s *stepper) keepCheck(g *releasev1alpha1.ReleaseGateStatus, is releasev1alpha1.ReleaseCheckStatus) {
	if is.Verdict != g.Check.Verdict || is.Failed != g.Check.Failed {
		g.Check, s.changed = is.DeepCopy(), true
	}
}

// SampleText describes the last sample of a check, such as "0.97, control 0.99: the condition is false".
func SampleText(c releasev1alpha1.ReleaseCheckStatus) string {
	parts := c.Value
	if c.Control != "" {
		parts += ", control " + c.Control
	}
	switch {
	case c.Message == "":
		return parts
	case parts == "":
		return c.Message
	}
	return parts + ": " + c.Message
}

// CheckText describes the state of a check for people, such as "1 of its samples failed, last 0.97: …".
func CheckText(c *releasev1alpha1.ReleaseCheckStatus) string {
	var parts []string
	if c.Report {
		parts = append(parts, "only reports")
	}
	if c.Verdict != "" {
		parts = append(parts, string(c.Verdict))
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", c.Failed))
	}
	if detail := SampleText(*c); detail != "" {
		parts = append(parts, "last "+detail)
	}
	return strings.Join(parts, ", ")
}

// isCheck reports whether a ReleaseCheck opens a gate.
func isCheck(gate releasev1alpha1.ReleaseGate) bool {
	return gate.Type == releasev1alpha1.GateCheck && gate.CheckRef != nil
}

// missingCheck is the name of a ReleaseCheck that a strategy names and that does not exist; empty if there is none, or
// if it is not known which exist.
func (in Input) missingCheck(strategy *releasev1alpha1.ReleaseStrategySpec) string {
	if in.ReleaseChecks == nil {
		return ""
	}
	for _, stage := range strategy.Stages {
		for _, gate := range slices.Concat(stage.Before, stage.After) {
			if isCheck(gate) && !in.ReleaseChecks[gate.CheckRef.Name] {
				return gate.CheckRef.Name
			}
		}
	}
	return ""
}

// failureAction returns the reaction to a failure of stage k.
func failureAction(strategy *releasev1alpha1.ReleaseStrategySpec, k int) releasev1alpha1.FailureAction {
	stage := strategy.Stages[k]
	switch {
	case strategy.Failure.Action != "":
		return strategy.Failure.Action
	case slices.ContainsFunc(slices.Concat(stage.Before, stage.After), isCheck):
		return releasev1alpha1.FailureRollback
	}
	return releasev1alpha1.FailurePause
}
