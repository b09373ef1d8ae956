package sample

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/utils/ptr"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// WindowVariable is the variable of the queries of an SLO for the time that they count events in.
const WindowVariable = "window"

// Events are the answers to the queries for the good events and for all events of a window.
type Events struct{ Good, Total Answer }

// burnRate returns how fast the events spend the error budget: 1 spends exactly the budget. Without data or an answer,
// it returns the sample for that.
func (e Events) burnRate(objective string) (rate float64, unclear *Sample) {
	percent, err := ParseObjective(objective)
	if err != nil {
		s := Failure("objective: " + err.Error())
		return 0, &s
	}
	var counts [2]float64
	for i, a := range []Answer{e.Good, e.Total} {
		what := [2]string{"good", "total"}[i]
		numbers, err := a.numbers()
		if err != nil {
			s := Failure(what + ": " + err.Error())
			return 0, &s
		}
		for _, n := range numbers {
			counts[i] += n
		}
		if len(numbers) == 0 || math.IsNaN(counts[i]) || math.IsInf(counts[i], 0) {
			return 0, &Sample{Outcome: NoData, Message: what + ": the query has no data"}
		}
	}
	good, total := counts[0], counts[1]
	if total <= 0 {
		return 0, &Sample{Outcome: NoData, Message: "total: there are no events"}
	}
	return max(1-good/total, 0) / (1 - percent/100), nil
}

// ParseObjective reads the objective of an SLO.
func ParseObjective(text string) (percent float64, err error) {
	percent, err = strconv.ParseFloat(text, 64)
	if err != nil || percent <= 0 || percent >= 100 {
		return 0, fmt.Errorf("%q is not a percentage between 0 and 100, such as 99.9", text)
	}
	return percent, nil
}

// BudgetLeft returns how many percent of the error budget are left after the events of its window. The number is
// negative if more than the budget is spent. Without data or an answer, it returns the sample for that.
func BudgetLeft(objective string, window Events) (percent float64, unclear *Sample) {
	rate, unclear := window.burnRate(objective)
	return (1 - rate) * 100, unclear
}

// OfSLO judges an SLO by the events of its window and of the window of its burn rate. An answer that it does not need
// may be missing; see ChecksBudget.
func OfSLO(slo *releasev1alpha1.SLOCheck, window, recent Events) Sample {
	s := Sample{Outcome: Pass}
	if ChecksBudget(slo) {
		percent, unclear := BudgetLeft(slo.Objective, window)
		if unclear != nil {
			return *unclear
		}
		least := ptr.Deref(slo.MinBudgetLeft, 0)
		s.Value = BudgetText(percent) + "% of the error budget"
		if percent < float64(least) {
			s.Outcome, s.Message = Fail, fmt.Sprintf("less than %d%% of the error budget is left", least)
		}
	}
	if slo.MaxBurnRate == "" {
		return s
	}
	most, err := strconv.ParseFloat(slo.MaxBurnRate, 64)
	if err != nil {
		return Failure("maxBurnRate: " + strconv.Quote(slo.MaxBurnRate) + " is not a number")
	}
	rate, unclear := recent.burnRate(slo.Objective)
	switch {
	case unclear != nil && s.Outcome != Fail:
		return *unclear
	case unclear != nil:
		return s
	case s.Value != "":
		s.Value += ", "
	}
	s.Value += "burn rate " + numberText(rate)
	if rate > most && s.Outcome != Fail {
		s.Outcome, s.Message = Fail, "the burn rate is above "+slo.MaxBurnRate
	}
	return s
}

// ChecksBudget reports whether a gate with the SLO checks what is left of the budget.
func ChecksBudget(slo *releasev1alpha1.SLOCheck) bool {
	return slo.MinBudgetLeft != nil || slo.MaxBurnRate == ""
}

// BudgetText is a percentage of an error budget with one decimal.
func BudgetText(percent float64) string { return strconv.FormatFloat(percent, 'f', 1, 64) }
