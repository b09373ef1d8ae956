// Package pods finds the reasons why pods of a member do not run, as the member reports them, and the template that
// each pod belongs to. It does no I/O.
package pods

import (
	"cmp"
	"fmt"
	"time"

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

// SlowAfter is how long a pod may be in a state such as ContainerCreating before it is reported. The kubelet waits for
// volumes for the same time.
const SlowAfter = 2 * time.Minute

// backOffReset is how long a container must run until the kubelet resets its crash back-off.
const backOffReset = 10 * time.Minute

// Reasons of troubles for which the member gives none.
const (
	// Pending: neither a scheduler nor a kubelet has handled the pod.
	Pending = "Pending"
	// ContainersNotReady: a container is running and not ready. Kubernetes sets this reason in the condition Ready.
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

// Trouble is why a pod does not run or is not ready, as its member reports it.
type Trouble struct {
	Namespace, Name string
	// Workload is the workload of the pod. For a pod without a controller it is the pod itself.
	Workload capacity.Workload
	// Reason is for example ImagePullBackOff or Unschedulable.
	Reason, Message string
	// Container is empty if the trouble is the pod's.
	Container string
	// Restarts of the container.
	Restarts int32
	// Last is the last termination of the container, or nil.
	Last *End
	// CrashExpires is when the last crash is no longer the reason. It is zero if a crash is not the reason.
	CrashExpires time.Time
	// Slow is true if the trouble counts only when it lasts longer than SlowAfter.
	Slow bool
	// Since is when the trouble began. It is zero if that does not matter.
	Since time.Time
}

// End is the termination of a container, without the termination message, which may contain data of the application.
type End struct {
	Reason   string `json:"reason,omitempty"`
	ExitCode int32  `json:"exitCode"`
}

// TroubleOf returns the trouble of a pod. ok is false for a pod without one, and for one that is terminating or ended.
func TroubleOf(p *corev1.Pod) (t Trouble, ok bool) {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return Trouble{}, false
	}
	if t, ok = findTrouble(p); !ok {
		return Trouble{}, false
	}
	t.Namespace, t.Name = text.Cut(p.Namespace, nameMost), text.Cut(p.Name, nameMost)
	t.Workload = capacity.WorkloadOfPod(p)
	if t.Workload.Name == "" {
		t.Workload.Kind, t.Workload.Name = "Pod", p.Name
	}
	t.Reason, t.Message, t.Container = text.Plain(t.Reason, reasonMost), text.Plain(t.Message, messageMost),
		text.Cut(t.Container, nameMost)
	return t, true
}

func findTrouble(p *corev1.Pod) (Trouble, bool) {
	if p.Spec.NodeName == "" {
		return schedulingTrouble(p)
	}
	// 1. The containers, in start order. An immediate trouble takes precedence over a slow one.
	var slow *Trouble
	for _, group := range []struct {
		statuses []corev1.ContainerStatus
		specs    []corev1.Container
		init     bool
	}{{p.Status.InitContainerStatuses, p.Spec.InitContainers, true},
		{p.Status.ContainerStatuses, p.Spec.Containers, false}} {
		for i := range group.statuses {
			s := &group.statuses[i]
			t, ok := containerTrouble(p, s, group.init, sidecar(group.specs, s.Name))
			if ok && !t.Slow {
				return t, true
			}
			if ok && slow == nil {
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
		!(c.Reason == ContainersNotReady && othersCompleted(p)) {
		return Trouble{Reason: cmp.Or(c.Reason, "NotReady"), Message: c.Message, Slow: true,
			Since: c.LastTransitionTime.Time}, true
	}
	return Trouble{}, false
}

// othersCompleted reports whether all containers that are not ready have completed successfully, and at least one has.
func othersCompleted(p *corev1.Pod) bool {
	completed := false
	for _, s := range p.Status.ContainerStatuses {
		if s.Ready {
			continue
		}
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
			return false
		}
		completed = true
	}
	return completed
}

// schedulingTrouble returns the trouble of a pod without a node. A scheduling gate is none: the pod waits on purpose,
// for example in a queue of Kueue.
func schedulingTrouble(p *corev1.Pod) (t Trouble, ok bool) {
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
			t.Message = "" // it repeats the back-off and the name of the pod
		case "", creating, initializing:
			t.Reason, t.Slow, t.Since = cmp.Or(t.Reason, creating), true, scheduledAt(p)
		}
		return t, true
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		t.Reason, t.Last = cmp.Or(state.Terminated.Reason, "Error"), endOf(state.Terminated)
		return t, true
	case state.Running != nil && !s.Ready && (!init || sidecar):
		// The container crashed before, and may crash again until the kubelet resets the back-off.
		if t.Since = state.Running.StartedAt.Time; crashed && s.RestartCount > 0 {
			t.Reason, t.CrashExpires = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(backOffReset)
			return t, true
		}
		t.Reason, t.Message, t.Slow = ContainersNotReady, notReady, true
		return t, true
	case state.Running != nil && init && !sidecar && crashed && s.RestartCount > 0:
		t.Since = state.Running.StartedAt.Time
		t.Reason, t.CrashExpires = cmp.Or(t.Last.Reason, "Error"), t.Since.Add(backOffReset)
		return t, true
	}
	return Trouble{}, false
}

// current returns the trouble at the given time. After CrashExpires, the container is merely not ready.
func (t Trouble) current(now time.Time) Trouble {
	if t.CrashExpires.IsZero() || now.Before(t.CrashExpires) {
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
	return &End{Reason: text.Plain(t.Reason, reasonMost), ExitCode: t.ExitCode}
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

// scheduledAt returns when the pod was scheduled to its node, or its creation time if that is unknown.
func scheduledAt(p *corev1.Pod) time.Time {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}

// Ledger stores the pods of one member with troubles, or with delays that may become troubles. It has no limit of its
// own, which pods of one namespace could use up: the limit of the watch that fills it bounds it. It is not safe for
// concurrent use.
type Ledger struct {
	troubles map[string]map[string]Trouble // by namespace and name; no namespace is empty
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{troubles: map[string]map[string]Trouble{}} }

// Set adds or updates the trouble of a pod.
func (l *Ledger) Set(t Trouble) {
	if l.troubles[t.Namespace] == nil {
		l.troubles[t.Namespace] = map[string]Trouble{}
	}
	l.troubles[t.Namespace][t.Name] = t
}

// Remove removes a pod that is well or was deleted.
func (l *Ledger) Remove(namespace, name string) {
	delete(l.troubles[namespace], name)
	if len(l.troubles[namespace]) == 0 {
		delete(l.troubles, namespace)
	}
}

// Current returns the troubles in a namespace (all if empty) at the given time, in any order.
func (l *Ledger) Current(namespace string, now time.Time) (found []Trouble) {
	in := l.troubles
	if namespace != "" {
		in = map[string]map[string]Trouble{namespace: in[namespace]}
	}
	for _, troubles := range in {
		for _, t := range troubles {
			if t = t.current(now); t.lasts(now) {
				found = append(found, t)
			}
		}
	}
	return found
}

func (t Trouble) lasts(now time.Time) bool { return !t.Slow || !now.Before(t.Since.Add(SlowAfter)) }
