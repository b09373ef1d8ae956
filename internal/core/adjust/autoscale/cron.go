package autoscale

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/crontab"
)

// includes reports whether t matches the schedule.
func includes(s crontab.Schedule, t time.Time) bool { return s.Next(t.Add(-time.Second)).Equal(t) }

// last returns the last match until now, given a match first. Long gaps are searched from the end.
func last(s crontab.Schedule, first, now time.Time) time.Time {
	for _, back := range []time.Duration{time.Hour, 25 * time.Hour, 32 * 24 * time.Hour, 370 * 24 * time.Hour} {
		if from := now.Add(-back); from.After(first) {
			if t := s.Next(from); !t.IsZero() && !t.After(now) {
				first = t
				break
			}
		}
	}
	for {
		next := s.Next(first)
		if next.IsZero() || next.After(now) {
			return first
		}
		first = next
	}
}

// Execution is a due rule and the time for which it is due.
type Execution struct {
	Rule autoscalingv1alpha1.CronFederatedHPARule
	At   time.Time
}

// Due returns the rules to execute now in order of their times, the status with the next execution times, and the
// earliest of these (zero if none).
//
// Of several missed times only the last one is due. New, changed and resumed rules have missed nothing. Invalid rules
// are skipped, because admission rejects them.
func Due(c *autoscalingv1alpha1.CronFederatedHPA,
	now time.Time) (due []Execution, status autoscalingv1alpha1.CronFederatedHPAStatus, next time.Time) {
	for _, rule := range c.Spec.Rules {
		h := autoscalingv1alpha1.ExecutionHistory{RuleName: rule.Name}
		if i := slices.IndexFunc(c.Status.ExecutionHistories, func(h autoscalingv1alpha1.ExecutionHistory) bool {
			return h.RuleName == rule.Name
		}); i >= 0 {
			h = *c.Status.ExecutionHistories[i].DeepCopy()
		}
		planned := h.NextExecutionTime
		h.NextExecutionTime = nil
		s, err := crontab.Parse(rule.Schedule, ptr.Deref(rule.TimeZone, ""))
		if err == nil && !ptr.Deref(rule.Suspend, false) {
			if planned != nil && !planned.After(now) && includes(s, planned.In(now.Location())) {
				due = append(due, Execution{rule, last(s, planned.In(now.Location()), now)})
			}
			if t := s.Next(now); !t.IsZero() {
				h.NextExecutionTime = new(metav1.NewTime(t))
				if next.IsZero() || t.Before(next) {
					next = t
				}
			}
		}
		h.SuccessfulExecutions = h.SuccessfulExecutions[:min(len(h.SuccessfulExecutions), limit(rule.SuccessfulHistoryLimit))]
		h.FailedExecutions = h.FailedExecutions[:min(len(h.FailedExecutions), limit(rule.FailedHistoryLimit))]
		status.ExecutionHistories = append(status.ExecutionHistories, h)
	}
	slices.SortStableFunc(due, func(a, b Execution) int { return a.At.Compare(b.At) })
	return due, status, next
}

func limit(n *int32) int { return int(ptr.Deref(n, 3)) }

// Postpone makes an execution due again.
func Postpone(status *autoscalingv1alpha1.CronFederatedHPAStatus, e Execution) {
	for i := range status.ExecutionHistories {
		if h := &status.ExecutionHistories[i]; h.RuleName == e.Rule.Name {
			h.NextExecutionTime = new(metav1.NewTime(e.At))
		}
	}
}

// Record adds the result of an execution to the history in the status, within the limits of the rule.
func Record(status *autoscalingv1alpha1.CronFederatedHPAStatus, e Execution, failure error, now time.Time) {
	i := slices.IndexFunc(status.ExecutionHistories, func(h autoscalingv1alpha1.ExecutionHistory) bool {
		return h.RuleName == e.Rule.Name
	})
	if i < 0 {
		return
	}
	h, at, executed := &status.ExecutionHistories[i], metav1.NewTime(e.At), metav1.NewTime(now)
	if failure != nil {
		all := append([]autoscalingv1alpha1.FailedExecution{{ScheduleTime: &at, ExecutionTime: &executed,
			Message: failure.Error()}}, h.FailedExecutions...)
		h.FailedExecutions = all[:min(len(all), limit(e.Rule.FailedHistoryLimit))]
		return
	}
	all := append([]autoscalingv1alpha1.SuccessfulExecution{{ScheduleTime: &at, ExecutionTime: &executed,
		AppliedReplicas:    e.Rule.TargetReplicas,
		AppliedMinReplicas: e.Rule.TargetMinReplicas, AppliedMaxReplicas: e.Rule.TargetMaxReplicas}},
		h.SuccessfulExecutions...)
	h.SuccessfulExecutions = all[:min(len(all), limit(e.Rule.SuccessfulHistoryLimit))]
}
