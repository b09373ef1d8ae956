// Package crontab computes the times of cron schedules.
package crontab

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a parsed cron schedule.
type Schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// Parse parses a cron schedule with five fields or a macro such as @daily. An empty zone means the zone of the times
// passed to the methods.
func Parse(schedule, zone string) (Schedule, error) {
	var s Schedule
	if strings.Contains(schedule, "TZ") {
		return s, fmt.Errorf("a schedule cannot contain a time zone: use timeZone")
	}
	if strings.HasPrefix(strings.TrimSpace(schedule), "@every") {
		return s, fmt.Errorf("@every is not supported because it has no start time: use fields, such as */10 * * * *")
	}
	var err error
	if s.times, err = cron.ParseStandard(schedule); err != nil {
		return s, fmt.Errorf("must have five fields as in crontab (minute, hour, day of the month, month, day of the "+
			"week), such as 0 8 * * 1-5: %w", err)
	}
	if zone != "" {
		if s.zone, err = ParseZone(zone); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ParseZone returns the time zone with this name.
func ParseZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("the zone Local depends on where the hub runs: give a time zone such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// Next returns the first time after t, or zero if there is none, for example for February 31. A time over which the
// clock is set forward does not exist, and one that the clock shows twice is returned twice.
func (s Schedule) Next(t time.Time) time.Time {
	if s.zone != nil {
		t = t.In(s.zone)
	}
	return s.times.Next(t)
}

// NextOrSkipped is Next, but if the clock is set forward over a time of the schedule, the moment of that counts.
func (s Schedule) NextOrSkipped(t time.Time) time.Time {
	next, zone := s.Next(t), t.Location()
	if s.zone != nil {
		zone = s.zone
	}
	last := next
	if last.IsZero() {
		last = t.AddDate(1, 0, 0)
	}
	for from := t.In(zone); ; {
		_, change := from.ZoneBounds()
		if change.IsZero() || !change.Before(last) {
			return next
		}
		_, before := from.Zone()
		_, after := change.In(zone).Zone()
		// The clock of before, in which the skipped time exists.
		old := change.In(time.FixedZone("", before))
		skipped := s.times.Next(old.Add(-time.Second))
		if jump := time.Duration(after-before) * time.Second; !skipped.IsZero() && skipped.Before(old.Add(jump)) {
			return change.In(zone)
		}
		from = change.In(zone)
	}
}
