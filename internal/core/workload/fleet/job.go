package fleet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	broadcastJobKind     = schema.GroupKind{Group: kruise, Kind: "BroadcastJob"}
	imagePullJobKind     = schema.GroupKind{Group: kruise, Kind: "ImagePullJob"}
	imageListPullJobKind = schema.GroupKind{Group: kruise, Kind: "ImageListPullJob"}
	ephemeralJobKind     = schema.GroupKind{Group: kruise, Kind: "EphemeralJob"}
)

// job is how a kind that runs once counts what it runs on.
type job struct {
	// desired and active are the status fields that count all nodes or pods, and those in progress. They are empty for a
	// kind that counts something else; then ended reports whether a status is final.
	desired, active string
	ended           func(status map[string]any) bool
	// pauses is true if the kind can be paused.
	pauses bool
}

// pullsListed reports whether the images of an ImageListPullJob have all been tried. One that never completes counts
// those of which it has pulled all.
func pullsListed(status map[string]any) bool {
	images := number(status, "desired")
	return text(status, "completionTime") != "" || images > 0 &&
		max(number(status, "completed"), number(status, "succeeded")+
			int64(len(list(status, "failedImageStatuses")))) >= images
}

// ephemeralJob divides to how many pods containers are added, by the pods that match in each cluster, evenly until that
// is reported; one that cannot have any gets no copy. What runs or ran in a cluster stays its part. Then parallelism is
// divided.
func (f *fleet) ephemeralJob() error {
	if v := field(f.Template.Object, "spec", "replicas"); v != nil {
		n, ok := whole(v)
		if !ok || n < 0 {
			return fmt.Errorf("spec.replicas: %v is not a number of pods", v)
		}
		seats, before := make([]Seat, len(f.members)), make([]int64, len(f.members))
		fits := true
		for i, m := range f.members {
			matched, known := whole(m.status["match"])
			ran := number(m.status, "running") + number(m.status, "succeeded") + number(m.status, "failed")
			seats[i] = Seat{Weight: 1, Cap: n}
			if known {
				seats[i] = Seat{Weight: matched, Cap: max(matched, ran)}
			}
			if m.before == nil {
				continue
			}
			before[i] = number(m.before.Object, "spec", "replicas")
			if known {
				before[i] = max(before[i], 1)
			}
			// It has a copy, which would be done at once with no pod to go to.
			seats[i].Cap = max(seats[i].Cap, 1)
			seats[i].Floor = max(min(before[i], ran), 1)
			fits = fits && before[i] <= seats[i].Cap
		}
		shares := Split(n, seats)
		if fits && sum(before) == sum(shares) {
			shares = before
		}
		var routed []string
		for i, m := range f.members {
			if shares[i] == 0 {
				f.result.Waiting = append(f.result.Waiting, m.Cluster)
				continue
			}
			routed = append(routed, m.Cluster)
			f.put(m, shares[i], "spec", "replicas")
		}
		f.result.Routed = strings.Join(unique(routed), ",")
	}
	return f.parallelism(job{desired: "match", active: "running", pauses: true})
}

// parallelism divides how many pods run, or nodes pull, at once, by the nodes of each cluster that are still to be
// done; evenly until they are reported, and where they never are. What runs in a cluster is given up when it has ended,
// not before, and what it is granted no longer goes to another one when the cluster is seen to be granted less. A
// percentage means the same in every cluster. Where a share is nothing a BroadcastJob is paused until it is its turn;
// an ImagePullJob cannot be, so that it is not sent before, and keeps one until it has ended.
func (f *fleet) parallelism(j job) error {
	pauses := j.pauses
	v := field(f.Template.Object, "spec", "parallelism")
	n, ok := whole(v)
	if !ok {
		if v != nil {
			if _, err := Resolve(v, 0, Up); err != nil {
				return err
			}
		}
		return nil
	}
	seats, before, known := make([]Seat, len(f.members)), make([]int64, len(f.members)), make([]bool, len(f.members))
	for i, m := range f.members {
		desired, reported := whole(m.status[j.desired])
		known[i] = reported
		if most, set := whole(field(f.manifest(m).Object, "spec", "replicas")); set && m.Base != nil {
			desired = min(desired, most)
		}
		if slices.Contains(f.result.Waiting, m.Cluster) {
			seats[i] = Seat{}
		} else if j.ended != nil && j.ended(m.status) {
			seats[i] = Seat{}
		} else if !reported {
			// It may have any number of nodes; what it was given it may be using.
			seats[i] = Seat{Weight: 1, Cap: n}
		} else {
			left := max(0, desired-number(m.status, "succeeded")-number(m.status, "failed"))
			seats[i] = Seat{Weight: desired, Cap: left}
		}
		if m.before != nil && seats[i].Cap > 0 {
			if had, ok := whole(field(m.before.Object, "spec", "parallelism")); ok &&
				(field(m.before.Object, "spec", "paused") != true || !pauses) {
				before[i] = had
				seats[i].Floor = min(had, seats[i].Cap)
				if reported {
					seats[i].Floor = min(seats[i].Floor, max(number(m.status, j.active), 0))
				}
			}
			if !pauses {
				seats[i].Floor = max(seats[i].Floor, 1)
			}
		}
	}
	if sum(before) > n {
		// The limit was lowered. A member that has not reported its usage also gives up seats.
		for i := range seats {
			if !known[i] {
				seats[i].Floor = min(seats[i].Floor, int64(b2i(!pauses)))
			}
		}
	}
	if !pauses {
		// Those that wait come before those that could have more.
		free := n
		for _, s := range seats {
			free -= min(s.Floor, s.Cap)
		}
		for i, m := range f.members {
			if m.before == nil && seats[i].Cap > 0 && free > 0 {
				seats[i].Floor = 1
				free--
			}
		}
	}
	// A lower number than runs lets no more begin. What is given up is given to others when that is seen.
	shares, using := Split(n, seats), make([]int64, len(f.members))
	free := n
	for i, m := range f.members {
		if seats[i].Cap == 0 {
			continue
		}
		using[i] = before[i]
		if m.note != nil && !m.fresh {
			using[i] = max(using[i], m.note.Pending)
		}
		if using[i] = min(using[i], seats[i].Cap); known[i] {
			free -= max(using[i], number(m.status, j.active), min(shares[i], before[i]))
		} else {
			free -= max(using[i], min(shares[i], before[i]))
		}
	}
	for i := range f.members {
		if base := max(using[i], before[i]); shares[i] > base {
			more := min(shares[i]-base, max(free, 0))
			shares[i], free = base+more, free-more
		} else if shares[i] > before[i] {
			shares[i] = min(shares[i], base)
		}
	}
	for i, m := range f.members {
		switch {
		case seats[i].Cap == 0 && m.before != nil:
			// It is done, and stays as it is.
			f.put(m, field(m.before.Object, "spec", "parallelism"), "spec", "parallelism")
			if paused := field(m.before.Object, "spec", "paused"); pauses && paused != nil {
				f.put(m, paused, "spec", "paused")
			}
		case shares[i] == 0 && pauses:
			f.put(m, int64(1), "spec", "parallelism")
			f.put(m, true, "spec", "paused")
		case shares[i] == 0 && m.before == nil && n > 0:
			f.result.Waiting = append(f.result.Waiting, m.Cluster)
		default:
			f.put(m, max(1, shares[i]), "spec", "parallelism")
			if pauses && field(f.Template.Object, "spec", "paused") == nil && m.before != nil &&
				field(m.before.Object, "spec", "paused") != nil {
				f.put(m, false, "spec", "paused")
			}
		}
		if note := parseNote(f.result.Notes[m.Cluster]); using[i] > shares[i] && m.before != nil {
			note.Pending = using[i]
			f.result.Notes[m.Cluster] = note.String()
		}
	}
	return nil
}
