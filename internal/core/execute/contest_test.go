package execute_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/execute"
)

// play has somebody change an object again as soon as it is put right, for so long, and counts the repairs.
func play(c execute.Contest, from time.Time, lasts time.Duration) (execute.Contest, int) {
	repairs := 0
	for now := from; now.Before(from.Add(lasts)); {
		if wait := c.Pause(now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		c = c.Repaired("data.by", now)
		repairs++
		now = now.Add(time.Millisecond)
	}
	return c, repairs
}

func TestContestedObjectIsRepairedWithBackoff(t *testing.T) {
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var c execute.Contest
	for i := range 3 {
		if wait := c.Pause(start); wait != 0 || c.Contested(start) {
			t.Errorf("repair %d waits %s, contested %t; the first ones are immediate and nobody's concern", i+1, wait,
				c.Contested(start))
		}
		c = c.Repaired("data.by", start)
	}
	if !c.Contested(start) || c.Pause(start) != time.Second {
		t.Errorf("after three: contested %t, waits %s", c.Contested(start), c.Pause(start))
	}
	for lasts, most := range map[time.Duration]int{10 * time.Second: 7, time.Hour: 22, 24 * time.Hour: 300} {
		if _, n := play(execute.Contest{}, start, lasts); n > most || n < 4 {
			t.Errorf("in %s it is put right %d times, want at most %d", lasts, n, most)
		}
	}
	c, _ = play(execute.Contest{}, start, time.Hour)
	if wait := c.Pause(c.Last); wait != 5*time.Minute {
		t.Errorf("the longest pause is %s", wait)
	}
	if later := c.Last.Add(10 * time.Minute); c.Pause(later) != 0 || c.Contested(later) ||
		c.Repaired("x", later).Repairs != 1 {
		t.Error("after a calm it is not as if nobody had ever changed it")
	}
	if wait := c.Pause(c.Last.Add(-24 * time.Hour)); wait > 5*time.Minute {
		t.Errorf("a clock that went back has it wait %s", wait)
	}
}

func TestContestingManagerIsNamed(t *testing.T) {
	entry := func(manager, fields string, at int64) metav1.ManagedFieldsEntry {
		when := metav1.Unix(at, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	status := entry("kubelet", `{"f:spec":{"f:replicas":{}}}`, 9)
	status.Subresource = "status"
	entries := []metav1.ManagedFieldsEntry{
		entry("argosy", `{"f:spec":{"f:replicas":{}}}`, 9),
		entry("early", `{"f:spec":{"f:replicas":{}}}`, 1),
		entry("scaler", `{"f:spec":{"f:replicas":{}}}`, 2),
		entry("painter", `{"f:metadata":{"f:annotations":{"f:example.com/color.of":{}}}}`, 3),
		entry("injector", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:image":{}}}}}}}`, 4),
		entry("broken", `not json`, 5),
		status,
	}
	for path, want := range map[string]string{
		"spec.replicas": "scaler",
		"metadata.annotations.example.com/color.of": "painter",
		"spec.template.spec.containers.0.image":     "injector",
		"data.nobody":                               "",
		"":                                          "",
	} {
		if got := execute.ManagerOf(entries, path, "argosy"); got != want {
			t.Errorf("%q was set by %q, want %q", path, got, want)
		}
	}
	d := desired(t, work(t, service), nil)
	if got := execute.Contested("eu", d, "spec.type", "meddler"); !strings.Contains(got,
		`field manager "meddler" repeatedly changes spec.type of Service `) ||
		!strings.Contains(got, `in cluster "eu"; the hub reverts`) {
		t.Error(got)
	}
	if got := execute.Contested("eu", d, "", ""); !strings.HasPrefix(got,
		"a user or controller repeatedly deletes Service ") {
		t.Error(got)
	}
}
