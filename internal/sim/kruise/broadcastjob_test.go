package kruise

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// broadcast is a member in memory with a job: each pass makes and removes pods.
type broadcast struct {
	t     *testing.T
	job   *BroadcastJob
	nodes []corev1.Node
	pods  []*corev1.Pod
	now   time.Time
	made  int
}

func newBroadcast(t *testing.T, nodes int) *broadcast {
	b := &broadcast{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		job: &BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "1"}}}
	for i := range nodes {
		b.nodes = append(b.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i),
			Labels: map[string]string{"n": fmt.Sprint(i)}}})
	}
	return b
}

func (b *broadcast) pass() {
	s, status := decideBroadcastJob(b.job, b.pods, b.nodes, b.now,
		func() string { b.made++; return fmt.Sprint(b.made) })
	b.job.Status = status
	for _, c := range s.create {
		c.pod.Status.Phase = corev1.PodRunning
		b.pods = append(b.pods, c.pod)
	}
	for _, r := range s.remove {
		for i, p := range b.pods {
			if p == r {
				b.pods = append(b.pods[:i:i], b.pods[i+1:]...)
			}
		}
	}
}

// end gives the first pods that run this phase.
func (b *broadcast) end(n int, phase corev1.PodPhase) {
	for _, p := range b.pods {
		if n > 0 && p.Status.Phase == corev1.PodRunning {
			p.Status.Phase = phase
			n--
		}
	}
	b.now = b.now.Add(time.Second)
}

func (b *broadcast) expect(what, phase string, active, succeeded, failed, desired int32) {
	b.t.Helper()
	s := b.job.Status
	if s.Phase != phase || s.Active != active || s.Succeeded != succeeded || s.Failed != failed || s.Desired != desired {
		b.t.Errorf("%s: %s with %d active, %d succeeded, %d failed of %d; want %s %d %d %d of %d",
			what, s.Phase, s.Active, s.Succeeded, s.Failed, s.Desired, phase, active, succeeded, failed, desired)
	}
}

func TestABroadcastJobRunsOnEachNodeOnce(t *testing.T) {
	b := newBroadcast(t, 3)
	b.nodes[2].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	b.pass()
	b.pass()
	b.expect("begun", jobRunning, 2, 0, 0, 2)
	b.end(1, corev1.PodSucceeded)
	b.pass()
	b.expect("half", jobRunning, 1, 1, 0, 2)
	b.end(1, corev1.PodSucceeded)
	b.pass()
	b.expect("done", jobCompleted, 0, 2, 0, 2)
	if b.job.Status.CompletionTime == nil || b.made != 2 {
		t.Errorf("status %+v, %d pods made", b.job.Status, b.made)
	}
	b.nodes[2].Spec.Taints = nil
	b.pass()
	b.expect("a node that comes too late", jobCompleted, 0, 2, 0, 2)
}

func TestABroadcastJobEndsWithItsFirstFailure(t *testing.T) {
	b := newBroadcast(t, 3)
	b.pass()
	b.end(1, corev1.PodFailed)
	b.pass()
	b.expect("it failed", jobFailed, 0, 0, 1, 3)
	if len(b.pods) != 1 || b.job.Status.Conditions[0].Type != "Failed" {
		t.Errorf("%d pods, status %+v", len(b.pods), b.job.Status)
	}
	b.pass()
	b.expect("it stays so", jobFailed, 0, 0, 1, 3)
}
