// Package pods says what keeps pods of a member from running, in their own words, and which template they belong to.
// Who follows pods, and who may ask, is left to internal/member, internal/capacity and internal/why.
package pods

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/core/capacity"
	"github.com/argosy-io/argosy/internal/core/text"
)

// What a member says is repeated up to these lengths, in bytes.
const (
	messageMost = 256
	reasonMost  = 64
	nameMost    = 253
)

// Patience is how long a pod may be on its way, such as ContainerCreating, before that is trouble: a kubelet waits so
// long for volumes.
const Patience = 2 * time.Minute

// forgets is how long a kubelet remembers that a container crashed: one that runs for longer is restarted without a
// back-off.
const forgets = 10 * time.Minute

// Reasons of ours, where the pod has none.
const (
	// Pending: neither a scheduler nor a kubelet has handled the pod.
	Pending = "Pending"
	// ContainersNotReady is Kubernetes' reason of the pod's condition, here of a container that runs and is not ready.
	ContainersNotReady = "ContainersNotReady"
)

// Kubelet's reasons that something is decided by.
const (
	crashLoop     = "CrashLoopBackOff"
	imageBackOff  = "ImagePullBackOff"
	imageError    = "ErrImagePull"
	creating      = "ContainerCreating"
	initializing  = "PodInitializing"
	unschedulable = corev1.PodReasonUnschedulable
)

// Trouble is what keeps one pod from running as it should, in the words of its member.
type Trouble struct {
	Namespace, Name string
	// Workload is what the pod is of; of a pod without a controller it is the pod.
	Workload capacity.Workload
	// Reason is such as ImagePullBackOff or Unschedulable, Container the one that it is about; empty for the pod as a
	// whole.
	Reason, Message, Container string
	// Restarts of the container, and how it ended last; nil if it has not.
	Restarts int32
	Last     *End
	// Forgotten is when a crash before the container started is no reason any more; zero if none is given as one.
	Forgotten time.Time
	// Slow is what is trouble only if it lasts: longer than Patience after Since.
	Slow  bool
	Since time.Time
}

// End is how a container ended. Its termination message is the application's own, and left out.
type End struct {
	Reason   string `json:"reason,omitempty"`
	ExitCode int32  `json:"exitCode"`
}

// Of is what ails a pod; false for one that is well, is being deleted, or has ended: its workload makes another, or
// counts it.
func Of(p *corev1.Pod) (Trouble, bool) {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return Trouble{}, false
	}
	t, ails := ailment(p)
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

// plain is one line of printable characters, of most bytes at most: it ends on terminals.
func plain(s string, most int) string {
	s = text.Cut(s, 4*most)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return text.Cut(s, most)
}

func ailment(p *corev1.Pod) (Trouble, bool) {
	if p.Spec.NodeName == "" {
		return unplaced(p)
	}
	// 1. The containers, in the order in which they start; what is trouble at once comes before what may only be slow.
	var slow *Trouble
	for _, of := range []struct {
		statuses []corev1.ContainerStatus
		specs    []corev1.Container
		init     bool
	}{{p.Status.InitContainerStatuses, p.Spec.InitContainers, true},
		{p.Status.ContainerStatuses, p.Spec.Containers, false}} {
		for i := range of.statuses {
			t, ails := ofContainer(p, &of.statuses[i], of.init, sidecar(of.specs, of.statuses[i].Name))
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

// onlyDone says whether the containers that are not ready have all done their work.
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

// unplaced is a pod without a node. One with a gate is to wait, such as for its turn in a queue of Kueue.
func unplaced(p *corev1.Pod) (t Trouble, ails bool) {
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

// ofContainer is what ails one container of a pod that has a node.
func ofContainer(p *corev1.Pod, s *corev1.ContainerStatus, init, sidecar bool) (Trouble, bool) {
	t := Trouble{Container: s.Name, Restarts: s.RestartCount, Last: endOf(s.LastTerminationState.Terminated)}
	crashed := t.Last != nil && t.Last.ExitCode != 0
	switch state := s.State; {
	case state.Waiting != nil:
		t.Reason, t.Message = state.Waiting.Reason, state.Waiting.Message
		switch t.Reason {
		case crashLoop:
			t.Message = "" // that it is restarted, and this pod's names
		case "", creating, initializing:
			t.Reason, t.Slow, t.Since = cmp.Or(t.Reason, creating), true, scheduledAt(p)
		}
		return t, true
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		t.Reason, t.Last = cmp.Or(state.Terminated.Reason, "Error"), endOf(state.Terminated)
		return t, true
	case state.Running != nil && !s.Ready && (!init || sidecar):
		// Between two crashes a container runs for a while.
		if t.Since = state.Running.StartedAt.Time; crashed && s.RestartCount > 0 {
			t.Reason, t.Forgotten = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(forgets)
			return t, true
		}
		t.Reason, t.Message, t.Slow = ContainersNotReady, notReady, true
		return t, true
	case state.Running != nil && init && !sidecar && crashed && s.RestartCount > 0:
		t.Since = state.Running.StartedAt.Time
		t.Reason, t.Forgotten = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(forgets)
		return t, true
	}
	return Trouble{}, false
}

// at is the trouble as it is at a time: a container that has run for long after a crash is only not ready.
func (t Trouble) at(now time.Time) Trouble {
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

// sidecar says whether an init container runs beside the others.
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

// scheduledAt is when the pod got its node, as far as it tells.
func scheduledAt(p *corev1.Pod) time.Time {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}
