package upkeep

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func well() Store {
	return Store{Revision: 10, Size: 100 << 20, InUse: 90 << 20, Quota: 8 << 30, Free: 50 << 30, Disk: 100 << 30,
		Fsync: 5 * time.Millisecond}
}

func TestAStoreIsJudged(t *testing.T) {
	tests := map[string]struct {
		change func(*Store)
		want   string // name and part of the message, empty for nothing
		stops  bool
	}{
		"one that is well": {func(*Store) {}, "", false},
		"one that is full": {func(s *Store) { s.Alarms = []string{NoSpace}; s.Size = s.Quota },
			"store-alarm NOSPACE", true},
		"one that is damaged": {func(s *Store) { s.Alarms = []string{Corrupt} }, "store-alarm CORRUPT",
			true},
		"one near its quota": {func(s *Store) { s.Quota = 120 << 20 },
			"store-size 100 MiB of its quota of 120 MiB", false},
		"one on a disk nearly full":            {func(s *Store) { s.Free = 900 << 20 }, "store-disk 900 MiB", false},
		"one on a small disk with space":       {func(s *Store) { s.Disk, s.Free = 1<<30, 600<<20 }, "", false},
		"one on a big disk with a small share": {func(s *Store) { s.Disk, s.Free = 10<<40, 20<<30 }, "", false},
		"one on a slow disk":                   {func(s *Store) { s.Fsync = 2 * time.Second }, "store-fsync 2s", false},
		"one whose disk is not ours":           {func(s *Store) { s.Free, s.Disk = 0, 0 }, "", false},
		"one that stopped for a disk that fills": {func(s *Store) { s.Alarms = []string{NoSpace}; s.Free = 1 << 20 },
			"store-alarm because the disk of the data folder has only 1 MiB free", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := well()
			test.change(&s)
			got := Judge(s)
			if test.want == "" {
				if len(got) != 0 {
					t.Fatalf("found %+v", got)
				}
				return
			}
			which, part, _ := strings.Cut(test.want, " ")
			if len(got) == 0 || got[0].Name != which || !strings.Contains(got[0].Message, part) || got[0].Stops != test.stops ||
				got[0].Next == "" {
				t.Errorf("found %+v, want %s", got, test.want)
			}
		})
	}
}

func TestWritesStopBeforeTheDiskIsFullAndResumeLater(t *testing.T) {
	for free := int64(0); free < 1<<30; free += 8 << 20 {
		for _, alarm := range [][]string{nil, {NoSpace}} {
			s := well()
			s.Free, s.Alarms = free, alarm
			raise, disarm := Guard(s)
			if raise != (alarm == nil && free < Reserve) || disarm != (alarm != nil && free >= 2*Reserve) {
				t.Errorf("%d MiB free, alarms %v: raise %v, disarm %v", free>>20, alarm, raise, disarm)
			}
			s.Size = s.Quota
			if _, disarm := Guard(s); disarm {
				t.Error("the alarm of a store at its quota was disarmed")
			}
		}
	}
}

func TestDefragmentationNeedsEnoughFreeSpace(t *testing.T) {
	tests := map[string]struct {
		size, inUse, free int64
		alarm             bool
		since             time.Duration
		want              bool
	}{
		"half of it is unused":                    {400 << 20, 150 << 20, 50 << 30, false, 2 * time.Hour, true},
		"half of it is unused, one has just been": {400 << 20, 150 << 20, 50 << 30, false, time.Minute, false},
		"it is small":                             {40 << 20, 4 << 20, 50 << 30, false, 2 * time.Hour, false},
		"most of it is in use":                    {400 << 20, 300 << 20, 50 << 30, false, 2 * time.Hour, false},
		"there is no room to copy it":             {400 << 20, 150 << 20, 200 << 20, false, 2 * time.Hour, false},
		"it takes no writes, a tenth is unused":   {40 << 20, 35 << 20, 50 << 30, true, 2 * time.Minute, true},
		"it takes no writes, all is in use":       {40 << 20, 39 << 20, 50 << 30, true, 2 * time.Hour, false},
	}
	for name, test := range tests {
		s := well()
		s.Size, s.InUse, s.Free = test.size, test.inUse, test.free
		if test.alarm {
			s.Alarms = []string{NoSpace}
		}
		if got := DefragPays(s, test.since); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Promised: however the clock is set, backups are taken no later than the interval says, and the newest are never those
// that go.
func TestClockChangesDelayNoBackupAndRemoveNoNewOne(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const year = 365 * 24 * time.Hour
	for _, step := range []time.Duration{-year, -time.Hour, 0, time.Hour, year} {
		taken := &Backup{Revision: 5, Time: now}
		stepped := now.Add(10 * time.Minute).Add(step)
		if !BackupDue(stepped, taken, time.Hour, time.Hour, false, 6) {
			t.Errorf("clock set by %v: an hour has passed, and no backup is due", step)
		}
		if BackupDue(stepped, taken, time.Hour, 10*time.Minute, false, 6) {
			t.Errorf("clock set by %v: ten minutes have passed, and a backup is due", step)
		}
		if got := BackupDue(stepped, taken, time.Hour, 0, true, 6); got != (step != 0) {
			t.Errorf("clock set by %v and the hub started anew: due %v", step, got)
		}
		if BackupDue(stepped, taken, time.Hour, 2*time.Hour, false, 5) {
			t.Error("a backup is due though nothing was written")
		}
		all := []Backup{{"a", 1, now}, {"b", 2, now.Add(time.Hour)}, {"c", 3, stepped}}
		if gone := Expired(all, 2); len(gone) != 1 || gone[0].File != "a" {
			t.Errorf("clock set by %v: %v go", step, gone)
		}
	}
	if BackupDue(now, nil, 0, year, true, 6) {
		t.Error("a backup is due though none are to be taken")
	}
	if gone := Expired([]Backup{{"a", 1, now}}, 0); len(gone) != 0 {
		t.Error("the last backup goes")
	}
}

func TestABackupLeavesRoomToTheHub(t *testing.T) {
	if err := Room(100<<20, 10<<30); err != nil {
		t.Error(err)
	}
	if err := Room(100<<20, 300<<20); err == nil || !strings.Contains(err.Error(), fmt.Sprint(456)) {
		t.Error(err)
	}
}
