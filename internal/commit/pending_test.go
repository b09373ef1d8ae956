package commit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func versionOf(name string, uid types.UID, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, ResourceVersion: version}}
}

func TestPendingWriteReplacesOlderCachedObject(t *testing.T) {
	key := types.NamespacedName{Name: "binding"}
	var pending PendingWrites[*metav1.PartialObjectMetadata]
	pending.Add(key, versionOf("a", "1", "9"))
	pending.Add(key, versionOf("a", "1", "10")) // replaces the first
	pending.Add(key, versionOf("b", "1", "20"))
	for _, step := range []struct {
		cached *metav1.PartialObjectMetadata
		want   string
		left   int
	}{
		{versionOf("a", "1", "9"), "10", 2},
		{versionOf("c", "1", "1"), "1", 2},   // nothing was written
		{versionOf("b", "0", "3"), "20", 2},  // an earlier object of the same name
		{versionOf("b", "2", "21"), "21", 1}, // a later one
		{versionOf("a", "1", "x"), "x", 0},   // cannot be compared
		{versionOf("a", "1", "10"), "10", 0}, // shows the write
	} {
		got := Newest(step.cached, pending.Get(key))
		pending.Seen(key, step.cached)
		if left := pending.Get(key); got.ResourceVersion != step.want || len(left) != step.left {
			t.Errorf("cached %s %s: newest version %s, %d pending, want %s and %d", step.cached.Name,
				step.cached.ResourceVersion, got.ResourceVersion, len(left), step.want, step.left)
		}
	}
	if pending.Add(key, versionOf("a", "1", "11")); pending.Len() != 1 {
		t.Error("the write is not recorded")
	}
	if pending.Forget(key); pending.Len() != 0 {
		t.Error("the write of a deleted object is kept")
	}
	pending.Add(key, versionOf("a", "2", "12"))
	if pending.Gone(key, versionOf("a", "1", "9")); pending.Len() != 1 {
		t.Error("the deletion of an earlier object forgets the write")
	}
	if pending.Gone(key, versionOf("a", "2", "8")); pending.Len() != 0 {
		t.Error("the write of an object is kept whose deletion is known only by an older state")
	}
}

func TestPendingWriteExpires(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pending := PendingWrites[*metav1.PartialObjectMetadata]{Life: time.Minute, Clock: clock}
	old, young := types.NamespacedName{Name: "old"}, types.NamespacedName{Name: "young"}
	pending.Add(old, versionOf("old", "1", "1"))
	clock.SetTime(clock.Now().Add(59 * time.Second))
	if len(pending.Get(old)) != 1 || len(pending.Older(old, 59*time.Second)) != 1 ||
		len(pending.Older(old, time.Minute)) != 0 {
		t.Error("the write expired early, or has another age")
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if len(pending.Get(old)) != 0 {
		t.Error("the write did not expire")
	}
	if pending.Add(young, versionOf("young", "1", "2")); pending.Len() != 1 || len(pending.Get(young)) != 1 {
		t.Error("expired writes are kept in memory")
	}
}
