package fleet

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	broadcastJobKind = schema.GroupKind{Group: kruise, Kind: "BroadcastJob"}
	imagePullJobKind = schema.GroupKind{Group: kruise, Kind: "ImagePullJob"}
)

// parallelism divides how many pods run, or nodes pull, at once, by the nodes of each cluster that are still to be done; evenly
// until they are reported. What runs in a cluster is given up when it has ended, not before. A percentage means the same in
// every cluster. Where a share is nothing a BroadcastJob is paused until it is its turn; an ImagePullJob cannot be, so that it
// is not sent before, and keeps one until it has ended.
func (f *fleet) parallelism(pauses bool) error {
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
	seats := make([]Seat, len(f.members))
	for i, m := range f.members {
		desired, known := whole(m.status["desired"])
		if !known || m.status == nil {
			// It may have any number of nodes; what it was given it may be using.
			seats[i] = Seat{Weight: 1, Cap: n}
		} else {
			left := max(0, desired-number(m.status, "succeeded")-number(m.status, "failed"))
			seats[i] = Seat{Weight: desired, Cap: left}
		}
		if m.before != nil && seats[i].Cap > 0 {
			if before, ok := whole(field(m.before.Object, "spec", "parallelism")); ok && (field(m.before.Object, "spec", "paused") != true || !pauses) {
				seats[i].Floor = min(before, seats[i].Cap)
				if m.status != nil && known {
					seats[i].Floor = min(seats[i].Floor, max(number(m.status, "active"), 0))
				}
			}
			if !pauses {
				seats[i].Floor = max(seats[i].Floor, 1)
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
	// A lower number than runs lets no more begin.
	shares := Split(n, seats)
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
			if pauses && field(f.Template.Object, "spec", "paused") == nil && m.before != nil && field(m.before.Object, "spec", "paused") != nil {
				f.put(m, false, "spec", "paused")
			}
		}
	}
	return nil
}
