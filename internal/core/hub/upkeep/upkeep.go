// Package upkeep decides how a hub's store is kept well: what is wrong with it, when a defragmentation pays, when
// writes must stop before the disk is full, when a backup is due and which of them go. Asking and doing are left to its
// callers.
package upkeep

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Store is what is known of a store and of the disk that it is on.
type Store struct {
	// Revision counts its writes.
	Revision int64 `json:"revision"`
	// Size on disk, InUse of it, and Quota as the maximum of Size.
	Size  int64 `json:"sizeBytes"`
	InUse int64 `json:"inUseBytes"`
	Quota int64 `json:"quotaBytes"`
	// Alarms are etcd's, NOSPACE and CORRUPT.
	Alarms []string `json:"alarms,omitempty"`
	// Free and Disk are what is left of the disk of the data folder, and all of it. Disk is 0 where it is not ours, as
	// with an external etcd.
	Free int64 `json:"diskFreeBytes,omitempty"`
	Disk int64 `json:"diskBytes,omitempty"`
	// Fsync is how long 99 of 100 writes to the log took to be on the disk lately; 0 if there were none.
	Fsync time.Duration `json:"fsyncNanoseconds,omitempty"`
}

// The alarms of etcd.
const (
	NoSpace = "NOSPACE"
	Corrupt = "CORRUPT"
)

const (
	// Reserve is kept free on the store's disk: etcd ends the process at a write that does not fit, and takes 64 MiB at
	// once for a new file of its log and 16 MiB for its store.
	Reserve = 128 << 20
	// scarce is below what share of the disk, and scarceBytes below how much, it is nearly full.
	scarce      = 0.05
	scarceBytes = 1 << 30
	// nearQuota is the share of its quota from which a store is nearly full, roomy the share below which it has room
	// again.
	nearQuota, roomy = 0.8, 0.8
	// slowFsync is too long for a write: leaders of etcd clusters are deposed, and users wait.
	slowFsync = time.Second
)

// Finding is something about a store that is not as it should be.
type Finding struct {
	// Name is what was looked at: store-alarm, store-size, store-disk, store-fsync or backup.
	Name string `json:"name"`
	// Stops is true if the hub does not take writes for it.
	Stops   bool   `json:"stops,omitempty"`
	Message string `json:"message"`
	// Next is what to do.
	Next string `json:"next"`
}

// Judge returns the problems of a store.
func Judge(s Store) []Finding {
	var all []Finding
	if slices.Contains(s.Alarms, Corrupt) {
		all = append(all, Finding{Name: "store-alarm", Stops: true, Message: "alarm CORRUPT: the store is damaged",
			Next: "stop the hub, and restore the newest backup with `argosy restore`"})
	}
	full := s.Disk > 0 && s.Free < 2*Reserve
	if slices.Contains(s.Alarms, NoSpace) {
		f := Finding{Name: "store-alarm", Stops: true,
			Message: fmt.Sprintf("alarm NOSPACE: the store rejects writes; its size is %s, its quota %s", bytes(s.Size),
				bytes(s.Quota)),
			Next: "delete what is not needed, or restart the hub with a larger --etcd-quota; then run `argosy defrag --disarm`"}
		if full {
			f.Message = fmt.Sprintf("alarm NOSPACE: the store rejects writes, because the disk of the data folder has only %s free", bytes(s.Free))
			f.Next = fmt.Sprintf("free space on that disk: the hub accepts writes again when %s are free", bytes(2*Reserve))
		}
		all = append(all, f)
	} else if s.Quota > 0 && float64(s.Size) >= nearQuota*float64(s.Quota) {
		next := "delete what is not needed, or restart the hub with a larger --etcd-quota: a full store rejects writes"
		if s.InUse*4 <= s.Size*3 {
			next = "run `argosy defrag`: a full store rejects writes"
		}
		all = append(all, Finding{Name: "store-size",
			Message: fmt.Sprintf("the size of the store is %s of its quota of %s; %s of it are in use", bytes(s.Size),
				bytes(s.Quota), bytes(s.InUse)), Next: next})
	}
	if s.Disk > 0 && (s.Free < 2*Reserve || s.Free < scarceBytes && float64(s.Free) < scarce*float64(s.Disk)) {
		all = append(all, Finding{Name: "store-disk",
			Message: fmt.Sprintf("the disk of the data folder is nearly full: %s of %s are free", bytes(s.Free), bytes(s.Disk)),
			Next:    fmt.Sprintf("free space: below %s the hub rejects writes", bytes(Reserve))})
	}
	if s.Fsync >= slowFsync {
		all = append(all, Finding{Name: "store-fsync",
			Message: fmt.Sprintf("writes to the disk of the data folder are slow: 1 %% took %s or more in the last minute",
				s.Fsync.Round(time.Millisecond)),
			Next: "move the data folder to a faster disk, or find out what else writes to this one"})
	}
	return all
}

// Guard reports whether writes are to be stopped now, by the alarm NOSPACE, since the disk is nearly full: what was
// acknowledged is safe then, and the hub reads on. Or whether that alarm may go, since there is room again.
func Guard(s Store) (raise, disarm bool) {
	if s.Disk == 0 {
		return false, false
	}
	alarm := slices.Contains(s.Alarms, NoSpace)
	return !alarm && s.Free < Reserve, alarm && s.Free >= 2*Reserve && float64(s.Size) < roomy*float64(s.Quota)
}

const (
	// minReclaimed is the least that a defragmentation must give back, and restBetween how long none follows another:
	// reads and writes wait while it runs.
	minReclaimed = 64 << 20
	restBetween  = time.Hour
)

// DefragPays reports whether a defragmentation is worth its delay of reads and writes: half of a store of some size is
// unused, or the store accepts no writes and a tenth is unused. since is the time since the last one, by a monotonic
// clock.
func DefragPays(s Store, since time.Duration) bool {
	unused := s.Size - s.InUse
	if s.Disk > 0 && s.Free < s.InUse+Reserve {
		return false // it copies what is in use
	}
	if slices.Contains(s.Alarms, NoSpace) {
		return since >= time.Minute && unused*10 >= s.Size
	}
	return since >= restBetween && unused >= minReclaimed && unused*2 >= s.Size
}

// Backup is one that was taken.
type Backup struct {
	File     string
	Revision int64
	Time     time.Time
}

// BackupDue reports whether the next backup is due. newest is the last one, nil for none; since is the time since this
// process took one, or started, by a monotonic clock. The wall clock counts only at a start: if it was changed, there
// may be one backup too many, never one too few.
func BackupDue(now time.Time, newest *Backup, interval, since time.Duration, first bool, revision int64) bool {
	switch {
	case interval <= 0 || newest != nil && newest.Revision == revision:
		return false
	case first:
		return newest == nil || newest.Time.After(now) || now.Sub(newest.Time) >= interval
	}
	return since >= interval
}

// Expired returns the backups to delete so that keep remain: those with the lowest revisions, because clocks can be set
// back and revisions cannot.
func Expired(all []Backup, keep int) []Backup {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Backup) int {
		if a.Revision != b.Revision {
			if a.Revision > b.Revision {
				return -1
			}
			return 1
		}
		return strings.Compare(b.File, a.File)
	})
	return sorted[min(max(keep, 1), len(sorted)):]
}

// Room returns why there is no room on a disk for a backup of a store: it is written once as it is, and once packed.
func Room(inUse, free int64) error {
	if need := 2*inUse + 2*Reserve; free < need {
		return fmt.Errorf("its disk has %s free, and %s are required, including a reserve for the hub", bytes(free),
			bytes(need))
	}
	return nil
}

// bytes returns a size for people.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
}
