package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// pullsListed reports whether an ImageListPullJob has tried all images. A job that never completes counts images that
// are pulled on all nodes.
func pullsListed(status map[string]any) bool {
	images := number(status, "desired")
	return text(status, "completionTime") != "" || images > 0 &&
		max(number(status, "completed"), number(status, "succeeded")+
			int64(len(list(status, "failedImageStatuses")))) >= images
}

// ephemeralJob divides the number of pods that get containers by the matching pods in each cluster, and equally until
// they are reported. A cluster without a share gets no job. Containers that run or ran count for their cluster. Then it
// divides parallelism.
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
			// The job exists in the cluster, and would complete at once with a share of zero.
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
	return f.parallelism(kind.Facts(f.Template))
}

// parallelism divides the number of concurrent pods or pulls by the remaining nodes of each cluster, and equally if
// they are not reported. A cluster keeps the share of its running pods until they end. Another cluster gets a reduced
// share only once the member has observed the reduction. A percentage is copied. A BroadcastJob with a share of zero is
// paused until its turn. An ImagePullJob cannot be paused: it is sent at its turn, and keeps a share of one until it
// ends.
func (f *fleet) parallelism(of *kind.Kind) error {
	pauses, count := of.Once.Pauses, of.Counters
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
		desired, reported := whole(m.status[count.Desired])
		known[i] = reported
		if most, set := whole(field(f.manifest(m).Object, "spec", "replicas")); set && m.Base != nil {
			desired = min(desired, most)
		}
		if slices.Contains(f.result.Waiting, m.Cluster) {
			seats[i] = Seat{}
		} else if count.Desired == "" && pullsListed(m.status) {
			seats[i] = Seat{}
		} else if !reported {
			// It may have any number of nodes, and may be using its whole share.
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
					seats[i].Floor = min(seats[i].Floor, max(number(m.status, count.Active), 0))
				}
			}
			if !pauses {
				seats[i].Floor = max(seats[i].Floor, 1)
			}
		}
	}
	if sum(before) > n {
		// The limit was lowered. A member that has not reported its usage also loses seats.
		for i := range seats {
			if !known[i] {
				seats[i].Floor = min(seats[i].Floor, int64(b2i(!pauses)))
			}
		}
	}
	if !pauses {
		// Waiting clusters come before clusters that could use more.
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
	// A share below the running pods starts no others. Other clusters get the difference once it is observed.
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
			free -= max(using[i], number(m.status, count.Active), min(shares[i], before[i]))
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
			// The job has completed: keep its value.
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
