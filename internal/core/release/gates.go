package release

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// gates reads the gates before or after stage k, and reports whether all have passed.
func (s *stepper) gates(k int, position releasev1alpha1.GatePosition) (passed bool, t transition) {
	var approvals, checks []string
	checkReason := ""
	for _, gate := range gatesAt(s.status.Strategy.Stages[k], position) {
		g := s.gate(k, gate, position)
		if g.Phase == releasev1alpha1.GatePassed {
			continue
		}
		var approved, rejected []string
		var comments map[string]string
		if g.Check != nil {
			opened, failed, reason := s.checkGate(k, gate, g)
			if failed != stay {
				return false, failed
			}
			if opened {
				continue
			}
			if checkReason == "" || checkReason == releasev1alpha1.ReasonChecking {
				checkReason = reason
			}
		} else {
			approved, rejected, comments = s.verdicts(k, gate, position)
		}
		switch {
		case len(rejected) > 0:
			g.Comments = commentsOf(rejected[:1], comments)
			s.closeGate(k, g, releasev1alpha1.GateRejected, rejected[:1])
			message := "gate " + gate.Name + " was rejected by " + rejected[0]
			if comment := comments[rejected[0]]; comment != "" {
				message += ": " + comment
			}
			return false, s.fail(k, releasev1alpha1.ReasonGateFailed, message, s.begunTargets()...)
		case g.Check == nil && len(approved) >= int(max(countOf(gate), 1)):
			g.Comments = commentsOf(approved, comments)
			s.closeGate(k, g, releasev1alpha1.GatePassed, approved)
			continue
		case g.Until != nil && !s.now.Before(g.Until.Time):
			if g.Check != nil && s.latestCheck(g).Report {
				g.Check = ptr.To(s.latestCheck(g))
				s.closeGate(k, g, releasev1alpha1.GatePassed, nil)
				continue
			}
			s.closeGate(k, g, releasev1alpha1.GateTimedOut, approved)
			message := "gate " + gate.Name + " timed out"
			if g.Check != nil && SampleText(*g.Check) != "" {
				message += ": " + SampleText(*g.Check)
			}
			if gate.OnTimeout == releasev1alpha1.GateTimeoutFail {
				return false, s.fail(k, releasev1alpha1.ReasonGateFailed, message)
			}
			return false, s.pauseByFailure(k, releasev1alpha1.ReasonGateFailed, message)
		}
		if g.Until != nil {
			s.wake(g.Until.Time)
		}
		if g.Check != nil {
			checks = append(checks, gate.Name)
			continue
		}
		if !slices.Equal(g.By, approved) {
			g.By, g.Comments, s.changed = approved, commentsOf(approved, comments), true
		}
		approvals = append(approvals, gate.Name)
	}
	switch {
	case len(approvals) > 0:
		s.wait(releasev1alpha1.ReasonWaitingForApproval, "gates %s of stage %s", strings.Join(approvals, ", "),
			s.status.Stages[k].Name)
	case len(checks) > 0:
		s.wait(checkReason, "gates %s of stage %s", strings.Join(checks, ", "), s.status.Stages[k].Name)
	}
	return len(approvals)+len(checks) == 0, stay
}

// gatesAt are the gates before or after a stage.
func gatesAt(stage releasev1alpha1.ReleaseStage, position releasev1alpha1.GatePosition) []releasev1alpha1.ReleaseGate {
	if position == releasev1alpha1.GateAfter {
		return stage.After
	}
	return stage.Before
}

// specOf is the gate of the stage under way that a status is of; nil if it is not known.
func specOf(r *releasev1alpha1.Release, g releasev1alpha1.ReleaseGateStatus) *releasev1alpha1.ReleaseGate {
	k := currentStage(r.Status.Stages)
	if r.Status.Strategy == nil || k >= len(r.Status.Strategy.Stages) {
		return nil
	}
	for _, gate := range gatesAt(r.Status.Strategy.Stages[k], g.Position) {
		if gate.Name == g.Name {
			return &gate
		}
	}
	return nil
}

// gate is the status of a gate, a new one if it has none.
func (s *stepper) gate(k int, gate releasev1alpha1.ReleaseGate,
	position releasev1alpha1.GatePosition) *releasev1alpha1.ReleaseGateStatus {
	stage := &s.status.Stages[k]
	for i := range stage.Gates {
		if g := &stage.Gates[i]; g.Name == gate.Name && g.Position == position {
			return g
		}
	}
	g := releasev1alpha1.ReleaseGateStatus{Name: gate.Name, Position: position, Phase: releasev1alpha1.GateWaiting,
		Since: s.time(), Check: s.newCheck(k, gate, position)}
	if gate.Timeout != nil {
		g.Until = timeOf(s.now.Add(gate.Timeout.Duration))
	}
	stage.Gates = append(stage.Gates, g)
	s.changed = true
	return &stage.Gates[len(stage.Gates)-1]
}

func (s *stepper) closeGate(k int, g *releasev1alpha1.ReleaseGateStatus, phase releasev1alpha1.GatePhase, by []string) {
	g.Phase, g.By = phase, by
	message := g.Name
	if len(g.Comments) > 0 {
		message += " (" + strings.Join(g.Comments, "; ") + ")"
	}
	s.journal(releasev1alpha1.JournalGate, s.status.Stages[k].Name, "", strings.Join(by, ", "), string(phase), message)
}

// commentsOf returns the comments of users, such as "ann: see SHOP-17".
func commentsOf(users []string, comments map[string]string) (all []string) {
	for _, name := range users {
		if comment := comments[name]; comment != "" {
			all = append(all, cut(name+": "+comment))
		}
	}
	return all
}

func countOf(gate releasev1alpha1.ReleaseGate) int32 {
	if gate.Approval == nil {
		return 1
	}
	return gate.Approval.Count
}

// verdicts are the users who approve and reject at a gate, each once, sorted, and their comments. Verdicts about
// another release, revision or attempt do not count, nor do those without a user that the hub has set.
func (s *stepper) verdicts(k int, gate releasev1alpha1.ReleaseGate,
	position releasev1alpha1.GatePosition) (approved, rejected []string, comments map[string]string) {
	stage := s.status.Stages[k]
	comments = map[string]string{}
	for i := range s.Approvals {
		a := &s.Approvals[i]
		if differs, _ := mismatch(s.Release, s.status.Revision, stage, a); differs != "" || a.Spec.Gate != gate.Name ||
			positionOf(a) != position || a.Spec.By == nil || MayApprove(s.Release, gate.Approval, *a.Spec.By) != "" {
			continue
		}
		if a.Spec.Verdict == releasev1alpha1.VerdictReject || comments[a.Spec.By.User] == "" {
			comments[a.Spec.By.User] = strings.TrimSpace(a.Spec.Comment)
		}
		switch a.Spec.Verdict {
		case releasev1alpha1.VerdictReject:
			rejected = append(rejected, a.Spec.By.User)
		case releasev1alpha1.VerdictApprove:
			approved = append(approved, a.Spec.By.User)
		}
	}
	slices.Sort(approved)
	slices.Sort(rejected)
	return slices.Compact(approved), slices.Compact(rejected), comments
}
