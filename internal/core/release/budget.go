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

// UnfitForBudget returns why a guard cannot use a check for its error budget, and what to do; empty if it can.
func UnfitForBudget(c *releasev1alpha1.ReleaseCheck) string {
	slo, what := c.Spec.SLO, "ReleaseCheck "+c.Namespace+"/"+c.Name
	switch {
	case slo == nil:
		return what + " has no slo: name a check with one"
	case slo.Member != nil:
		return what + " asks Services of clusters, and a guard has no clusters: set slo.url"
	}
	for _, name := range slices.Concat(sample.Names(slo.Good), sample.Names(slo.Total)) {
		if name != sample.WindowVariable {
			return what + " has {{" + name + "}}, which a guard cannot set: use only {{" + sample.WindowVariable + "}}"
		}
	}
	return ""
}

// StoredBudget returns the error budget that the status of a guard has. It was known to an earlier process of the hub:
// one sample without data, or an error, makes it unknown.
func StoredBudget(g *releasev1alpha1.ReleaseGuard) Budget {
	if g.Status.ErrorBudget == nil {
		return Budget{}
	}
	return Budget{ReleaseGuardBudget: *g.Status.ErrorBudget, Unclear: math.MaxInt32}
}

// AfterSample returns the error budget of a guard after another sample. percent is the share of the budget that is
// left; it does not count if unclear is set, a sample without data or an error. limit is the number of unclear samples
// in a row after which the budget is unknown with the next one.
func (b Budget) AfterSample(g *releasev1alpha1.ReleaseGuard, percent float64, unclear *sample.Sample,
	limit int32) Budget {
	if b.ObservedGeneration != g.Generation {
		b = Budget{}
	}
	b.ObservedGeneration = g.Generation
	if unclear != nil {
		if b.Unclear <= limit {
			b.Unclear++
		}
		if b.State == "" || b.Unclear > limit {
			b.State, b.Left, b.Message = releasev1alpha1.ErrorBudgetUnknown, "", cut(unclear.Message)
		}
		return b
	}
	state := releasev1alpha1.ErrorBudgetEnough
	if percent < float64(g.Spec.Limits.MinErrorBudget.Percent) {
		state = releasev1alpha1.ErrorBudgetSpent
	}
	if shown, err := strconv.ParseFloat(b.Left, 64); err != nil || state != b.State || math.Abs(shown-percent) >= 1 {
		b.Left = sample.BudgetText(percent)
	}
	b.State, b.Message, b.Unclear = state, "", 0
	return b
}

// budgetObstacle returns why the error budget of a guard does not let stage k start; nil if all budgets do. A stage
// also waits for a budget that is not known.
func (v guardView) budgetObstacle(r *releasev1alpha1.Release, k int) *obstacle {
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
		b := g.Budget
		if b == nil || b.ObservedGeneration != g.Generation {
			o.message += ": there is no sample yet"
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
