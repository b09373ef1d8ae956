package crontab

import (
	"strings"
	"testing"
	"time"
)

// parseTime returns a time in UTC.
func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestInvalidSchedulesAreRejected(t *testing.T) {
	for _, c := range []struct{ schedule, zone, want string }{
		{"0 8 * *", "", "five fields as in crontab"},
		{"0 25 * * *", "", "five fields"},
		{"tomorrow", "", "five fields"},
		{"@every 1h", "", "*/10 * * * *"},
		{"TZ=Asia/Tokyo 0 8 * * *", "", "use timeZone"},
		{"0 8 * * *", "Europe/Cologne", "is not a time zone such as Europe/Berlin"},
		{"0 8 * * *", "Local", "give a time zone"},
	} {
		if _, err := Parse(c.schedule, c.zone); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %q: %v, want %q in it", c.schedule, c.zone, err, c.want)
		}
	}
	if _, err := Parse("@daily", "UTC"); err != nil {
		t.Error(err)
	}
}

func TestScheduleAcrossDaylightSavingChanges(t *testing.T) {
	s, err := Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{
		"2027-03-27 12:00": "2027-03-29 00:30", // on the 28th there is no half past two
		"2027-10-30 12:00": "2027-10-31 00:30",
		"2027-10-31 00:30": "2027-10-31 01:30", // it comes twice
		"2027-10-31 01:30": "2027-11-01 01:30",
	} {
		if got := s.Next(parseTime(t, after)).UTC().Format("2006-01-02 15:04"); got != want {
			t.Errorf("after %s it is %s, want %s", after, got, want)
		}
	}
}
