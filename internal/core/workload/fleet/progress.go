package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// progress is when a rollout last went on, as JSON in wellknown.RolloutProgressAnnotation.
type progress struct {
	// Revision is of the pods that are rolled out.
	Revision string `json:"revision"`
	// Most is the largest number of them that was available in all clusters together, seen first at Since.
	Most  int64     `json:"most"`
	Since time.Time `json:"since"`
}

// clock is the deadline of a rollout: so long may it take for another pod to become available, anywhere in the fleet.
// In members the same deadline means theirs, and those that wait for their turn are not late by it.
type clock struct {
	now      time.Time
	deadline time.Duration // 0: there is none
	last     progress
	// available is the number of available new pods in reports about the current Works.
	available int64
}

// precision is the part of a deadline by which it may be late: progress is not written more often.
const precision = 10

// progress reads the clock of the rollout; it starts with another revision.
func (f *fleet) progress(parties []party) clock {
	c := clock{now: f.Now.UTC().Truncate(time.Second),
		deadline: time.Duration(number(f.Template.Object, "spec", "progressDeadlineSeconds")) * time.Second}
	if c.deadline <= 0 || f.Now.IsZero() {
		return clock{}
	}
	for _, p := range parties {
		if p.hasWork && p.sameTemplate && p.fresh {
			c.available += p.updatedAvailable
		}
	}
	revision := RevisionOf(f.Template)
	// Restart an invalid clock, or one from the future.
	if json.Unmarshal([]byte(f.Progress), &c.last) != nil || c.last.Revision != revision || c.last.Since.After(c.now) {
		c.last = progress{Revision: revision, Most: c.available, Since: c.now}
	}
	return c
}

// stalled reports whether the deadline has passed.
func (c clock) stalled() bool {
	return c.deadline > 0 && c.available <= c.last.Most && c.now.Sub(c.last.Since) >= c.deadline
}

// trackDeadline keeps the clock while pods are to become new, and reports when the deadline has passed. A rollout that
// is paused, or that has released all pods of its partition or stage, has no deadline.
func (f *fleet) trackDeadline(c clock, outcomes []outcome) {
	var target int64
	for _, o := range outcomes {
		target += o.target
	}
	if c.deadline == 0 || c.available >= target || strategy(f.Template.Object, "paused") == true {
		return
	}
	since := c.now.Sub(c.last.Since)
	switch more := c.available > c.last.Most; {
	case more && since >= c.deadline/precision:
		c.last.Most, c.last.Since = c.available, c.now
		f.result.RecheckAfter = c.deadline
	case more:
		f.result.RecheckAfter = c.deadline/precision - since
	case since < c.deadline:
		f.result.RecheckAfter = c.deadline - since
	default:
		f.addCondition(ProgressDeadlineExceeded, "no new pod has become available for %s: %d of %d new pods are available across all clusters; check the others, or roll the template back",
			c.deadline, c.last.Most, target)
	}
	f.result.Progress = words.JSON(c.last)
}
