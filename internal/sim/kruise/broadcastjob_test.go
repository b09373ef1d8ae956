package kruise

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

func (b *broadcast) pass() (expired bool) {
	b.t.Helper()
	s, status, expired, err := decideBroadcastJob(b.job, b.pods, b.nodes, b.now,
		func() string { b.made++; return fmt.Sprint(b.made) })
	if err != nil {
		b.t.Fatal(err)
	}
	b.job.Status = status
	for _, c := range s.create {
		c.pod.Status.Phase = corev1.PodRunning
		b.pods = append(b.pods, c.pod)
	}
	for _, r := range s.remove {
		for i, p := range b.pods {
			if p == r.pod {
				b.pods = append(b.pods[:i:i], b.pods[i+1:]...)
			}
		}
	}
	return expired
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
	if !b.job.Status.finished() || b.job.Status.CompletionTime == nil || b.made != 2 {
		t.Errorf("status %+v, %d pods made", b.job.Status, b.made)
	}
	b.nodes[2].Spec.Taints = nil
	b.pass()
	b.expect("a node that comes too late", jobCompleted, 0, 2, 0, 2)
}

func TestEndlessBroadcastJobFollowsTheNodes(t *testing.T) {
	b := newBroadcast(t, 1)
	b.job.Spec.CompletionPolicy.Type = never
	for range 3 {
		b.pass()
		b.end(9, corev1.PodSucceeded)
	}
	b.expect("one node", jobRunning, 0, 1, 0, 1)
	b.nodes = newBroadcast(t, 2).nodes
	b.pass()
	b.pass()
	b.expect("a node more", jobRunning, 1, 1, 0, 2)
}

func TestParallelismOfABroadcastJob(t *testing.T) {
	b := newBroadcast(t, 5)
	percent := intstr.FromString("30%") // rounds up to 2
	b.job.Spec.Parallelism = &percent
	for range 4 {
		b.pass()
		if len(b.pods)-int(b.job.Status.Succeeded) > 2 {
			t.Fatalf("%d pods run", len(b.pods)-int(b.job.Status.Succeeded))
		}
		b.end(2, corev1.PodSucceeded)
	}
	b.pass()
	b.expect("done", jobCompleted, 0, 5, 0, 5)
}

func TestFailurePolicyOfABroadcastJob(t *testing.T) {
	for policy, want := range map[string]string{failFast: jobFailed, "": jobFailed, goOn: jobCompleted, pause: jobPaused} {
		b := newBroadcast(t, 3)
		b.job.Spec.FailurePolicy.Type = policy
		two := intstr.FromInt32(2)
		b.job.Spec.Parallelism = &two
		b.pass()
		b.end(1, corev1.PodFailed)
		for range 4 {
			b.pass()
			b.end(2, corev1.PodSucceeded)
		}
		if b.job.Status.Phase != want || b.job.Status.Failed != 1 {
			t.Errorf("%q: %s with %d failed, want %s", policy, b.job.Status.Phase, b.job.Status.Failed, want)
		}
		if made := map[string]int{jobFailed: 2, jobCompleted: 3, jobPaused: 2}[want]; b.made != made {
			t.Errorf("%q: %d pods made, want %d", policy, b.made, made)
		}
	}
}

func TestABroadcastJobHasItsTime(t *testing.T) {
	b := newBroadcast(t, 1)
	ttl := int32(5)
	b.job.Spec.CompletionPolicy.TTLSecondsAfterFinished = &ttl
	b.pass()
	b.end(1, corev1.PodFailed)
	b.pass()
	b.expect("it failed", jobFailed, 0, 0, 1, 1)
	if b.now = b.now.Add(4 * time.Second); b.pass() {
		t.Error("it goes too early")
	}
	if b.now = b.now.Add(time.Second); !b.pass() {
		t.Error("it stays")
	}
}

func TestAPausedBroadcastJobMakesNoPods(t *testing.T) {
	b := newBroadcast(t, 2)
	b.job.Spec.Paused = true
	b.pass()
	b.expect("paused", jobPaused, 0, 0, 0, 2)
	b.job.Spec.Paused = false
	b.pass()
	b.pass()
	b.expect("on", jobRunning, 2, 0, 0, 2)
}
