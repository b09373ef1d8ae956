package autoscale

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
)

func day(text string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04", text, time.UTC)
	if err != nil {
		panic(err)
	}
	return t
}

// rule returns a rule. The schedule may end with @ and a time zone.
func rule(name, schedule string, replicas int32) autoscalingv1alpha1.CronFederatedHPARule {
	r := autoscalingv1alpha1.CronFederatedHPARule{Name: name, TargetReplicas: &replicas}
	var zone string
	if r.Schedule, zone, _ = strings.Cut(schedule, "@"); zone != "" {
		r.TimeZone = &zone
	}
	return r
}

// describe returns the executions that are due, as "up 08:00", then the time of the next.
func describe(due []Execution, next time.Time) string {
	out := ""
	for _, e := range due {
		out += fmt.Sprintf("%s %s, ", e.Rule.Name, e.At.UTC().Format("02 15:04"))
	}
	if next.IsZero() {
		return out + "never"
	}
	return out + "next " + next.UTC().Format("02 15:04")
}

func TestRuleIsDueOnceAtItsTime(t *testing.T) {
	c := &autoscalingv1alpha1.CronFederatedHPA{Spec: autoscalingv1alpha1.CronFederatedHPASpec{
		Rules: []autoscalingv1alpha1.CronFederatedHPARule{
			rule("up", "0 8 * * *", 9), rule("down", "0 18 * * *", 2)}}}
	look := func(when, want string) {
		t.Helper()
		due, status, next := Due(c, day(when))
		if got := describe(due, next); got != want {
			t.Errorf("at %s: %s, want %s", when, got, want)
		}
		for _, e := range due {
			Record(&status, e, nil, day(when))
		}
		c.Status = status
	}
	look("2027-01-11 07:00", "next 11 08:00")
	look("2027-01-11 07:59", "next 11 08:00")
	look("2027-01-11 08:00", "up 11 08:00, next 11 18:00")
	look("2027-01-11 08:00", "next 11 18:00")
	look("2027-01-11 08:01", "next 11 18:00")
	// The hub was down for two days: the last time of each counts, once, and the later one last.
	look("2027-01-14 09:00", "down 13 18:00, up 14 08:00, next 14 18:00")
	look("2027-01-14 09:00", "next 14 18:00")
	if h := c.Status.ExecutionHistories[0]; len(h.SuccessfulExecutions) != 2 ||
		h.SuccessfulExecutions[0].ScheduleTime.UTC() != day("2027-01-14 08:00") ||
		*h.SuccessfulExecutions[0].AppliedReplicas != 9 {
		t.Errorf("the history is %v", h.SuccessfulExecutions)
	}

	// Suspended, a rule lets its times pass; afterwards it has missed nothing.
	yes := true
	c.Spec.Rules[1].Suspend = &yes
	look("2027-01-14 17:00", "next 15 08:00")
	if h := c.Status.ExecutionHistories[1]; h.NextExecutionTime != nil {
		t.Errorf("a suspended rule is next at %v", h.NextExecutionTime)
	}
	look("2027-01-14 19:00", "next 15 08:00")
	c.Spec.Rules[1].Suspend = nil
	look("2027-01-14 19:01", "next 15 08:00")

	// A schedule that changed has missed nothing; a rule that is gone has no history.
	c.Spec.Rules = []autoscalingv1alpha1.CronFederatedHPARule{rule("up", "30 7 * * *", 9)}
	look("2027-01-15 08:30", "next 16 07:30")
	if n := len(c.Status.ExecutionHistories); n != 1 {
		t.Errorf("%d histories of one rule", n)
	}
	// A new one neither.
	c.Spec.Rules = append(c.Spec.Rules, rule("new", "0 0 * * *", 1))
	look("2027-01-15 08:31", "next 16 00:00")
	c.Spec.Rules = []autoscalingv1alpha1.CronFederatedHPARule{rule("never", "0 0 31 2 *", 1)}
	look("2027-01-15 08:32", "never")
}

func TestOnlyTheLastMissedTimeIsDue(t *testing.T) {
	for schedule, want := range map[string]string{"* * * * *": "11 12:00", "0 * * * *": "11 12:00",
		"30 11 * * *": "11 11:30", "0 9 * * 1": "11 09:00", "0 9 1 * *": "01 09:00", "0 9 24 12 *": "24 09:00"} {
		c := &autoscalingv1alpha1.CronFederatedHPA{Spec: autoscalingv1alpha1.CronFederatedHPASpec{
			Rules: []autoscalingv1alpha1.CronFederatedHPARule{rule("r", schedule, 1)}}}
		_, c.Status, _ = Due(c, day("2024-01-01 00:00"))
		due, _, _ := Due(c, day("2027-01-11 12:00"))
		if len(due) != 1 || due[0].At.UTC().Format("02 15:04") != want {
			t.Errorf("%s: %v is due, want %s", schedule, due, want)
		}
	}
}

func TestScheduleUsesTimeZone(t *testing.T) {
	c := &autoscalingv1alpha1.CronFederatedHPA{Spec: autoscalingv1alpha1.CronFederatedHPASpec{
		Rules: []autoscalingv1alpha1.CronFederatedHPARule{
			rule("berlin", "0 8 * * *@Europe/Berlin", 1), rule("shanghai", "0 8 * * *@Asia/Shanghai", 1)}}}
	_, c.Status, _ = Due(c, day("2027-07-01 01:00"))
	if got := describe(nil, c.Status.ExecutionHistories[0].NextExecutionTime.Time); got != "next 01 06:00" {
		t.Errorf("eight in a summer of Berlin: %s", got)
	}
	due, _, next := Due(c, day("2027-07-02 00:00"))
	if got := describe(due, next); got != "shanghai 02 00:00, next 02 06:00" &&
		got != "berlin 01 06:00, shanghai 02 00:00, next 02 06:00" {
		t.Errorf("eight in Shanghai: %s", got)
	}
	_, c.Status, _ = Due(c, day("2027-01-01 12:00"))
	if got := describe(nil, c.Status.ExecutionHistories[0].NextExecutionTime.Time); got != "next 02 07:00" {
		t.Errorf("eight in a winter of Berlin: %s", got)
	}
}

func TestHistoryLimits(t *testing.T) {
	r := rule("r", "* * * * *", 3)
	two, none := int32(2), int32(0)
	r.SuccessfulHistoryLimit = &two
	c := &autoscalingv1alpha1.CronFederatedHPA{Spec: autoscalingv1alpha1.CronFederatedHPASpec{
		Rules: []autoscalingv1alpha1.CronFederatedHPARule{r}}}
	begin := day("2027-01-11 08:00")
	_, c.Status, _ = Due(c, begin)
	for i := range 10 {
		now := begin.Add(time.Duration(i+1) * time.Minute)
		due, status, _ := Due(c, now)
		var failure error
		if i%2 == 1 {
			failure = errors.New("no such workload")
		}
		for _, e := range due {
			Record(&status, e, failure, now)
		}
		c.Status = status
	}
	h := c.Status.ExecutionHistories[0]
	if len(h.SuccessfulExecutions) != 2 || len(h.FailedExecutions) != 3 ||
		h.FailedExecutions[0].Message != "no such workload" {
		t.Errorf("%d that did, %d that failed: %v", len(h.SuccessfulExecutions), len(h.FailedExecutions), h)
	}
	if newest := metav1.NewTime(begin.Add(10 * time.Minute)); !h.FailedExecutions[0].ScheduleTime.Equal(&newest) {
		t.Errorf("the newest is %v, want %v", h.FailedExecutions[0].ScheduleTime, newest)
	}
	c.Spec.Rules[0].FailedHistoryLimit = &none
	if _, status, _ := Due(c, begin); len(status.ExecutionHistories[0].FailedExecutions) != 0 {
		t.Errorf("a limit of none keeps %v", status.ExecutionHistories[0].FailedExecutions)
	}
}
