package tenure_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func TestHubWritesOnlyToMembersWithItsStamp(t *testing.T) {
	self := tenure.Self{Hub: "a", Address: "https://a", Run: "a2", Ended: []string{"a0", "a1"}}
	restored := tenure.Self{Hub: "a", Address: "https://a", Run: "a3"}
	stamp := func(hub, run string) *tenure.Stamp {
		return &tenure.Stamp{Hub: hub, Address: "https://" + hub, Run: run, Since: now.Add(-time.Hour), Renewed: now}
	}
	for _, c := range []struct {
		story     string
		self      tenure.Self
		seen      *tenure.Stamp
		unchanged time.Duration
		want      tenure.Verdict
		writes    bool
		message   string
	}{
		{"no stamp is claimed", self, nil, 0, tenure.Claim, true, ""},
		{"a stamp that join wrote is claimed", self, stamp("a", ""), 0, tenure.Claim, true, ""},
		{"its own stamp is held without a write", self, stamp("a", "a2"), time.Second, tenure.Own, false, ""},
		{"its own stamp is renewed in time", self, stamp("a", "a2"), tenure.RenewPeriod, tenure.Own, true, ""},
		{"a new address is written", tenure.Self{Hub: "a", Address: "https://new", Run: "a2"}, stamp("a", "a2"), 0,
			tenure.Own, true, ""},
		{"a restart continues at once", self, stamp("a", "a1"), 0, tenure.Claim, true, ""},
		{"a restart continues at once where the run before it was killed too early to stamp", self, stamp("a", "a0"), 0,
			tenure.Claim, true, ""},
		{"a copy of the store waits while the hub lives", restored, stamp("a", "a2"), tenure.Quiet - 1, tenure.Yield, false,
			"copy"},
		{"a restored hub goes on when the old one is quiet", restored, stamp("a", "a2"), tenure.Quiet, tenure.Claim, true,
			""},
		{"a hub whose copy claimed stops", self, stamp("a", "a3"), 0, tenure.Yield, false, "copy"},
		{"another hub's member is left alone", self, stamp("b", "b1"), 0, tenure.Yield, false, "https://b"},
		{"another hub's member is left alone however long it is quiet", self, stamp("b", "b1"), 1000 * time.Hour,
			tenure.Yield, false, "argosy join eu --take-over"},
		{"another hub's member is left alone before any run of that saw it", self, stamp("b", ""), 0, tenure.Yield, false,
			"argosy unjoin eu"},
		{"a hub without an identity asks for no stamp", tenure.Self{}, stamp("b", "b1"), 0, tenure.Own, false, ""},
	} {
		t.Run(c.story, func(t *testing.T) {
			got := c.self.Decide("eu", c.seen, c.unchanged, now)
			if got.Verdict != c.want || (got.Stamp != nil) != c.writes || !strings.Contains(got.Message, c.message) {
				t.Errorf("got %+v, want %s, a write: %t, a message with %q", got, c.want, c.writes, c.message)
			}
			if got.Stamp != nil && (got.Stamp.Hub != c.self.Hub || got.Stamp.Run != c.self.Run ||
				!got.Stamp.Renewed.Equal(now)) {
				t.Errorf("it writes %+v", got.Stamp)
			}
			if got.Stamp != nil && c.seen != nil && !got.Stamp.Since.Equal(c.seen.Since) {
				t.Errorf("since when the hub has the member became %s", got.Stamp.Since)
			}
		})
	}
}

// Whatever two hubs, or two processes of one, see of each other: never do both write by the same stamp.
func TestNoTwoWriteByOneStamp(t *testing.T) {
	var all []tenure.Self
	for _, hub := range []string{"a", "b"} {
		for _, run := range []string{"1", "2"} {
			for _, ended := range []string{"", "1", "2"} {
				if ended != run {
					all = append(all, tenure.Self{Hub: hub, Run: run, Ended: []string{ended}})
				}
			}
		}
	}
	for _, x := range all {
		for _, y := range all {
			if x.Hub == y.Hub && x.Run == y.Run {
				continue
			}
			for _, s := range []*tenure.Stamp{{Hub: "a", Run: "1"}, {Hub: "a", Run: "2"}, {Hub: "b", Run: "1"}, {Hub: "c"}} {
				if x.Decide("eu", s, 0, now).Verdict == tenure.Own && y.Decide("eu", s, 0, now).Verdict == tenure.Own {
					t.Errorf("%+v and %+v both write by %+v", x, y, s)
				}
			}
		}
	}
}

func TestJoinRefusesAMemberOfAnotherLiveHub(t *testing.T) {
	stamp := func(hub string, renewed time.Time) *tenure.Stamp {
		return &tenure.Stamp{Hub: hub, Address: "https://other", Since: now.Add(-time.Hour), Renewed: renewed}
	}
	for _, c := range []struct {
		story    string
		seen     *tenure.Stamp
		takeOver bool
		refused  bool
		message  string
	}{
		{"nobody's", nil, false, false, ""},
		{"its own", stamp("a", now), false, false, ""},
		{"another's that lives", stamp("b", now.Add(-tenure.RenewPeriod)), false, true,
			"the hub at https://other (b) manages it"},
		{"another's that lives, by a clock that is ahead", stamp("b", now.Add(time.Hour)), false, true, "--take-over"},
		{"another's that lives, by word", stamp("b", now), true, false, "no longer writes there"},
		{"another's that is gone", stamp("b", now.Add(-tenure.Term)), false, false, "last renewed its lease"},
	} {
		t.Run(c.story, func(t *testing.T) {
			refusal, note := tenure.Joinable("a", "eu", c.seen, c.takeOver, now)
			if (refusal != "") != c.refused || !strings.Contains(refusal+note, c.message) {
				t.Errorf("refused with %q, noted %q", refusal, note)
			}
		})
	}
}

func TestAStampIsReadAsItWasWritten(t *testing.T) {
	lease := &coordinationv1.Lease{}
	if got := tenure.Read(lease); got != nil {
		t.Errorf("an empty lease is read as %+v", got)
	}
	a := tenure.Stamp{Hub: "a", Address: "https://a", Run: "1", Since: now, Renewed: now}
	a.Write(lease)
	if got := tenure.Read(lease); got == nil || *got != a {
		t.Errorf("read %+v, want %+v", got, a)
	}
	b := tenure.Stamp{Hub: "b", Since: now, Renewed: now}
	b.Write(lease)
	if got := tenure.Read(lease); got == nil || *got != b {
		t.Errorf("read %+v, want %+v: nothing of the hub before", got, b)
	}
	if n := lease.Spec.LeaseTransitions; n == nil || *n != 1 {
		t.Errorf("%v take-overs are counted, want 1", n)
	}
}
