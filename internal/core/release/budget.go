package release

import (
	"math"
	"slices"
	"strconv"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

// Budget is the error budget of a guard after its last sample.
type Budget struct {
	releasev1alpha1.ReleaseGuardBudget
	// Unclear is the number of samples without data, and of errors, since the last other one.
	Unclear int32
}

// UnfitForBudget returns why a guard cannot use a check for its error budget; empty if it can.
func UnfitForBudget(c *releasev1alpha1.ReleaseCheck) string {
	slo, what := c.Spec.SLO, "ReleaseCheck "+c.Namespace+"/"+c.Name
	switch {
	case slo == nil:
		return what + " has no slo"
	case slo.Member != nil:
		return what + " asks clusters of a stage: a guard needs a url"
	}
	for _, name := range slices.Concat(sample.Names(slo.Good), sample.Names(slo.Total)) {
		if name != sample.WindowVariable {
			return what + " has {{" + name + "}}, which a guard cannot set"
		}
	}
	return ""
}

// AfterSample returns the error budget of a guard after another sample: left is which percentage of it is left, unless
// no is set. limit is how many samples in a row may be without data, or errors, before the budget is unknown.
func (b Budget) AfterSample(g *releasev1alpha1.ReleaseGuard, left float64, no *sample.Sample,
	limit int32) Budget {
	if b.ObservedGeneration != g.Generation {
		b = Budget{}
	}
	b.ObservedGeneration = g.Generation
	if no != nil {
		b.Unclear = min(b.Unclear+1, limit+1)
		if b.State == "" || b.Unclear > limit {
			b.State, b.Left, b.Message = releasev1alpha1.ErrorBudgetUnknown, "", cut(no.Message)
		}
		return b
	}
	state := releasev1alpha1.ErrorBudgetEnough
	if left < float64(g.Spec.Limits.MinErrorBudget.Percent) {
		state = releasev1alpha1.ErrorBudgetSpent
	}
	if shown, err := strconv.ParseFloat(b.Left, 64); err != nil || state != b.State || math.Abs(shown-left) >= 1 {
		b.Left = sample.BudgetText(left)
	}
	b.State, b.Message, b.Unclear = state, "", 0
	return b
}

// short returns the error budget of a guard that does not let stage k start; nil if all do. A budget that is not known
// is neither enough nor spent: the stage waits.
func (v guardView) short(r *releasev1alpha1.Release, k int) *obstacle {
	for _, g := range v.guards {
		if g.Spec.Limits == nil || g.Spec.Limits.MinErrorBudget == nil {
			continue
		}
		if _, ok := v.selects(g, r, k); !ok {
			continue
		}
		o := &obstacle{reason: releasev1alpha1.ReasonErrorBudgetUnknown,
			message: "ReleaseGuard " + g.Name + ": the error budget is not known",
			wait:    releasev1alpha1.ReleaseGuardWait{Name: g.Name, Limit: releasev1alpha1.LimitErrorBudget}}
		b := g.Status.ErrorBudget
		if b == nil || b.ObservedGeneration != g.Generation {
			return o
		}
		switch b.State {
		case releasev1alpha1.ErrorBudgetEnough:
			continue
		case releasev1alpha1.ErrorBudgetSpent:
			o.reason = releasev1alpha1.ReasonErrorBudgetSpent
			o.message = "ReleaseGuard " + g.Name + ": " + strconv.Itoa(int(g.Spec.Limits.MinErrorBudget.Percent)) +
				"% of the error budget must be left"
		case releasev1alpha1.ErrorBudgetUnknown:
			if b.Message != "" {
				o.message += ": " + b.Message
			}
		}
		return o
	}
	return nil
}
