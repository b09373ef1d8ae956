package window

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func windows(t *testing.T, text string) []releasev1alpha1.ReleaseWindow {
	t.Helper()
	var all []releasev1alpha1.ReleaseWindow
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func describe(s State) string {
	text := "open"
	if !s.Open {
		text = s.Reason
		if s.Because != "" {
			text += " (" + s.Because + ")"
		}
	}
	if s.Until.IsZero() {
		return text
	}
	return text + " until " + s.Until.Format("2006-01-02 15:04")
}

const (
	workdays = `[{kind: Allow, schedule: 0 9 * * 1-5, duration: 8h, timeZone: Europe/Berlin}]`
	holidays = `[{kind: Allow, schedule: 0 9 * * 1-5, duration: 8h},
		{kind: Deny, from: "2026-12-21T00:00:00Z", to: "2027-01-04T00:00:00Z", reason: holidays}]`
)

func TestWindowsOpenAndClose(t *testing.T) {
	for _, c := range []struct{ windows, now, want string }{
		{`[]`, "2026-01-05 12:00", "open"},
		{workdays, "2026-01-05 07:59", "OutsideWindow until 2026-01-05 08:00"}, // a Monday
		{workdays, "2026-01-05 08:00", "open until 2026-01-05 16:00"},
		{workdays, "2026-01-05 16:00", "OutsideWindow until 2026-01-06 08:00"},
		{workdays, "2026-01-09 20:00", "OutsideWindow until 2026-01-12 08:00"},
		{holidays, "2026-12-18 10:00", "open until 2026-12-18 17:00"},
		{holidays, "2026-12-18 18:00", "OutsideWindow until 2027-01-04 09:00"},
		{holidays, "2026-12-22 10:00", "Frozen (holidays) until 2027-01-04 09:00"},
		{`[{kind: Deny, from: "2026-01-01T00:00:00Z"}]`, "2026-01-05 12:00", "Frozen"},
		{`[{kind: Deny, to: "2026-01-06T00:00:00Z"}]`, "2026-01-05 12:00", "Frozen until 2026-01-06 00:00"},
		{`[{kind: Allow, to: "2026-01-06T00:00:00Z"}]`, "2026-01-07 12:00", "OutsideWindow"},
		// Two windows that follow each other are one, and so is one that begins again when it ends.
		{`[{kind: Deny, schedule: 0 0 * * *, duration: 12h}, {kind: Deny, schedule: 0 12 * * *, duration: 2h}]`,
			"2026-01-05 01:00", "Frozen until 2026-01-05 14:00"},
		{`[{kind: Deny, schedule: 0 0 * * *, duration: 24h}]`, "2026-01-05 01:00", "Frozen"},
		// It lasts longer than the time between two beginnings.
		{`[{kind: Deny, schedule: 0 0 * * 5, duration: 72h}]`, "2026-01-11 23:00", "Frozen until 2026-01-12 00:00"},
	} {
		if got := describe(StateOf(windows(t, c.windows), parseTime(t, c.now))); got != c.want {
			t.Errorf("at %s, %s is %s, want %s", c.now, c.windows, got, c.want)
		}
	}
}

// Clocks in Berlin are set from 2:00 to 3:00 on 29 March 2026, at 1:00 UTC, and from 3:00 to 2:00 on 25 October, at
// 1:00 UTC. Those in Cairo are set from 0:00 to 1:00 on 24 April, at 22:00 UTC of the day before.
func TestWindowsAcrossDaylightSavingChanges(t *testing.T) {
	const (
		daily    = `[{kind: Deny, schedule: 0 9 * * *, duration: 1h, timeZone: Europe/Berlin}]`
		night    = `[{kind: Deny, schedule: 30 2 * * *, duration: 1h, timeZone: Europe/Berlin}]`
		over     = `[{kind: Deny, schedule: 0 22 * * *, duration: 8h, timeZone: Europe/Berlin}]`
		midnight = `[{kind: Deny, schedule: 0 0 24 4 *, duration: 2h, timeZone: Africa/Cairo}]`
	)
	for _, c := range []struct{ windows, now, want string }{
		{daily, "2026-03-28 07:00", "open until 2026-03-28 08:00"},
		{daily, "2026-03-29 06:00", "open until 2026-03-29 07:00"},
		{daily, "2026-10-25 06:00", "open until 2026-10-25 08:00"},
		// There is no half past two: the window begins when the clock is set forward.
		{night, "2026-03-29 00:30", "open until 2026-03-29 01:00"},
		{night, "2026-03-29 01:30", "Frozen until 2026-03-29 02:00"},
		{night, "2026-03-29 02:00", "open until 2026-03-30 00:30"},
		// Half past two comes twice, and the two windows follow each other.
		{night, "2026-10-25 00:30", "Frozen until 2026-10-25 02:30"},
		// The duration is elapsed time.
		{over, "2026-03-28 22:00", "Frozen until 2026-03-29 05:00"},
		{over, "2026-10-24 22:00", "Frozen until 2026-10-25 04:00"},
		{midnight, "2026-04-23 12:00", "open until 2026-04-23 22:00"},
		{midnight, "2026-04-23 23:00", "Frozen until 2026-04-24 00:00"},
	} {
		if got := describe(StateOf(windows(t, c.windows), parseTime(t, c.now))); got != c.want {
			t.Errorf("at %s, %s is %s, want %s", c.now, c.windows, got, c.want)
		}
	}
}

// The state does not change before Until, and it does then.
func TestStateLastsUntilItsEnd(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"}
	for n := range 200 {
		var all []releasev1alpha1.ReleaseWindow
		for range 1 + random.Intn(3) {
			all = append(all, windows(t, fmt.Sprintf(`[{kind: %s, schedule: "%d %d * * %d", duration: %dm, timeZone: %s}]`,
				[]string{"Allow", "Deny"}[random.Intn(2)], random.Intn(60), random.Intn(24), random.Intn(7),
				1+random.Intn(3000), zones[random.Intn(len(zones))]))...)
		}
		now := time.Date(2026, 1, 1, 0, random.Intn(365*24*60), 0, 0, time.UTC)
		s := StateOf(all, now)
		if s.Until.IsZero() {
			continue
		}
		for range 20 {
			t0 := now.Add(time.Duration(random.Int63n(int64(s.Until.Sub(now)))))
			if got := StateOf(all, t0); got.Open != s.Open || !got.Until.Equal(s.Until) {
				t.Fatalf("history %d: at %s it is %s, and at %s %s: %v", n, now, describe(s), t0, describe(got), all)
			}
		}
		if got := StateOf(all, s.Until); got.Open == s.Open {
			t.Fatalf("history %d: at %s it is %s, and then still %s: %v", n, now, describe(s), describe(got), all)
		}
	}
}
