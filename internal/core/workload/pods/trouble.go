// Package pods finds out why pods of a member do not run, quotes the member's reasons and messages, and finds the
// template that each pod belongs to. It does no I/O.
package pods

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Limits in bytes for texts from a member.
const (
	messageMost = 256
	reasonMost  = 64
	nameMost    = 253
)

// SlowAfter is how long a pod may be in a state such as ContainerCreating before it counts as a trouble. The kubelet
// waits equally long for volumes.
const SlowAfter = 2 * time.Minute

// backOffReset is how long a container must run until the kubelet resets its crash back-off.
const backOffReset = 10 * time.Minute

// Reasons for troubles without a reason from the member.
const (
	// Pending: neither a scheduler nor a kubelet has handled the pod.
	Pending = "Pending"
	// ContainersNotReady is Kubernetes' reason of the pod condition, used here for a running container that is not ready.
	ContainersNotReady = "ContainersNotReady"
)

// Reasons from the kubelet that code depends on.
const (
	crashLoop     = "CrashLoopBackOff"
	imageBackOff  = "ImagePullBackOff"
	imageError    = "ErrImagePull"
	creating      = "ContainerCreating"
	initializing  = "PodInitializing"
	unschedulable = corev1.PodReasonUnschedulable
)

// Trouble is the reason why one pod does not run as it should, as reported by its member.
type Trouble struct {
	Namespace, Name string
	// Workload is the workload of the pod. For a pod without a controller it is the pod itself.
	Workload capacity.Workload
	// Reason is for example ImagePullBackOff or Unschedulable. Container is empty if the whole pod is concerned.
	Reason, Message, Container string
	// Restarts and Last termination of the container. Last is nil if it has not terminated before.
	Restarts int32
	Last     *End
	// Forgotten is when the last crash stops being the reason. It is zero if no crash is the reason.
	Forgotten time.Time
	// Slow troubles count only if they last longer than SlowAfter.
	Slow  bool
	Since time.Time
}

// End is the termination of a container. It omits the termination message, which the application writes.
type End struct {
	Reason   string `json:"reason,omitempty"`
	ExitCode int32  `json:"exitCode"`
}

// TroubleOf returns the trouble of a pod. ok is false for a pod that is well, terminating or ended.
func TroubleOf(p *corev1.Pod) (Trouble, bool) {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return Trouble{}, false
	}
	t, ails := findTrouble(p)
	if !ails {
		return Trouble{}, false
	}
	t.Namespace, t.Name = text.Cut(p.Namespace, nameMost), text.Cut(p.Name, nameMost)
	t.Workload = capacity.WorkloadOfPod(p)
	if t.Workload.Name == "" {
		t.Workload.Kind, t.Workload.Name = "Pod", p.Name
	}
	t.Reason, t.Message, t.Container = plain(t.Reason, reasonMost), plain(t.Message, messageMost),
		text.Cut(t.Container, nameMost)
	return t, true
}

// plain returns one line of printable characters with at most the given number of bytes, because it is shown on
// terminals.
func plain(s string, most int) string {
	s = text.Cut(s, 4*most)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return text.Cut(s, most)
}

func findTrouble(p *corev1.Pod) (Trouble, bool) {
	if p.Spec.NodeName == "" {
		return schedulingTrouble(p)
	}
	// 1. The containers, in start order. An immediate trouble takes precedence over a slow one.
	var slow *Trouble
	for _, of := range []struct {
		statuses []corev1.ContainerStatus
		specs    []corev1.Container
		init     bool
	}{{p.Status.InitContainerStatuses, p.Spec.InitContainers, true},
		{p.Status.ContainerStatuses, p.Spec.Containers, false}} {
		for i := range of.statuses {
			t, ails := containerTrouble(p, &of.statuses[i], of.init, sidecar(of.specs, of.statuses[i].Name))
			if ails && !t.Slow {
				return t, true
			}
			if ails && slow == nil {
				slow = &t
			}
		}
	}
	if slow != nil {
		return *slow, true
	}
	// 2. The pod as a whole.
	if len(p.Status.ContainerStatuses) == 0 {
		return Trouble{Reason: Pending, Message: "the kubelet of node " + p.Spec.NodeName + " has not started it", Slow: true,
			Since: scheduledAt(p)}, true
	}
	if c := condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse && c.Reason != "PodCompleted" &&
		!(c.Reason == ContainersNotReady && onlyDone(p)) {
		return Trouble{Reason: cmp.Or(c.Reason, "NotReady"), Message: c.Message, Slow: true,
			Since: c.LastTransitionTime.Time}, true
	}
	return Trouble{}, false
}

// onlyDone reports whether all containers that are not ready have completed successfully.
func onlyDone(p *corev1.Pod) bool {
	done := false
	for _, s := range p.Status.ContainerStatuses {
		if s.Ready {
			continue
		}
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
			return false
		}
		done = true
	}
	return done
}

// schedulingTrouble returns the trouble of a pod without a node. A scheduling gate is not a trouble: the pod waits on
// purpose, for example in a Kueue queue.
func schedulingTrouble(p *corev1.Pod) (t Trouble, ails bool) {
	c := condition(p, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return Trouble{Reason: Pending, Message: fmt.Sprintf("no scheduler has handled it; its schedulerName is %q",
			p.Spec.SchedulerName), Slow: true, Since: p.CreationTimestamp.Time}, true
	}
	if c.Reason == corev1.PodReasonSchedulingGated {
		return Trouble{}, false
	}
	return Trouble{Reason: cmp.Or(c.Reason, Pending), Message: c.Message, Slow: c.Reason != unschedulable,
		Since: c.LastTransitionTime.Time}, true
}

// containerTrouble returns the trouble of one container of a pod with a node.
func containerTrouble(p *corev1.Pod, s *corev1.ContainerStatus, init, sidecar bool) (Trouble, bool) {
	t := Trouble{Container: s.Name, Restarts: s.RestartCount, Last: endOf(s.LastTerminationState.Terminated)}
	crashed := t.Last != nil && t.Last.ExitCode != 0
	switch state := s.State; {
	case state.Waiting != nil:
		t.Reason, t.Message = state.Waiting.Reason, state.Waiting.Message
		switch t.Reason {
		case crashLoop:
			t.Message = "" // only repeats the back-off and the pod's name
		case "", creating, initializing:
			t.Reason, t.Slow, t.Since = cmp.Or(t.Reason, creating), true, scheduledAt(p)
		}
		return t, true
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		t.Reason, t.Last = cmp.Or(state.Terminated.Reason, "Error"), endOf(state.Terminated)
		return t, true
	case state.Running != nil && !s.Ready && (!init || sidecar):
		// The container crashed before and runs until it crashes again.
		if t.Since = state.Running.StartedAt.Time; crashed && s.RestartCount > 0 {
			t.Reason, t.Forgotten = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(backOffReset)
			return t, true
		}
		t.Reason, t.Message, t.Slow = ContainersNotReady, notReady, true
		return t, true
	case state.Running != nil && init && !sidecar && crashed && s.RestartCount > 0:
		t.Since = state.Running.StartedAt.Time
		t.Reason, t.Forgotten = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(backOffReset)
		return t, true
	}
	return Trouble{}, false
}

// current returns the trouble at the given time. After backOffReset without a crash the container is only not ready.
func (t Trouble) current(now time.Time) Trouble {
	if t.Forgotten.IsZero() || now.Before(t.Forgotten) {
		return t
	}
	t.Reason, t.Message, t.Last, t.Slow = ContainersNotReady, notReady, nil, true
	return t
}

const notReady = "the container is running, and not ready"

func endOf(t *corev1.ContainerStateTerminated) *End {
	if t == nil {
		return nil
	}
	return &End{Reason: plain(t.Reason, reasonMost), ExitCode: t.ExitCode}
}

// sidecar reports whether an init container is a sidecar (restartPolicy: Always).
func sidecar(specs []corev1.Container, name string) bool {
	for _, c := range specs {
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

func condition(p *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == of {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// scheduledAt returns when the pod got its node, or else its creation time.
func scheduledAt(p *corev1.Pod) time.Time {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}
