package kruise

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// observed is what a decision rests on. Nothing in it is written to.
type observed struct {
	// pods are those of the set, terminating ones included.
	pods []*corev1.Pod
	// revisions are the templates by revision name; update is the spec's own, current the one that the pods had before.
	revisions       map[string]*corev1.PodTemplateSpec
	update, current string
	now             time.Time
}

// steps are what to do next. A pass either scales or updates, and what is done shows in the pods of the next one.
type steps struct {
	create  []creation
	remove  []*corev1.Pod
	inPlace []*corev1.Pod
	// finish are the pods whose containers run the images that an in-place update asked for.
	finish []*corev1.Pod
	// toDelete, unless nil, is what is left of the pods that the spec names for deletion.
	toDelete []string
	// recheck is when time alone changes the outcome; zero means never.
	recheck time.Duration
	// blocked is why an update cannot go on.
	blocked string
}

type creation struct {
	pod    *corev1.Pod
	claims []*corev1.PersistentVolumeClaim
}

func active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.ControllerRevisionHashLabelKey] }

func condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	_, c := podutil.GetPodCondition(&p.Status, t)
	return c
}

func ready(p *corev1.Pod) bool {
	c := condition(p, corev1.PodReady)
	return p.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionTrue
}

// availableIn is how long a ready pod still lacks to have been ready for minReady seconds; ok is false if it is not
// ready.
func availableIn(p *corev1.Pod, minReady int32, now time.Time) (wait time.Duration, ok bool) {
	if !ready(p) {
		return 0, false
	}
	since := condition(p, corev1.PodReady).LastTransitionTime
	return max(0, since.Add(time.Duration(minReady)*time.Second).Sub(now)), true
}

func available(p *corev1.Pod, minReady int32, now time.Time) bool {
	wait, ok := availableIn(p, minReady, now)
	return ok && wait == 0
}

// status returns what sets of both kinds report; messages are the failures by condition type.
func (o observed) status(set *metav1.ObjectMeta, selector *metav1.LabelSelector, minReady int32,
	messages map[string]string) SetStatus {
	t := SetStatus{ObservedGeneration: set.Generation, CurrentRevision: o.current, UpdateRevision: o.update,
		Conditions: failureConditions(messages, o.now), LabelSelector: metav1.FormatLabelSelector(selector)}
	for _, p := range o.pods {
		if !active(p) {
			continue
		}
		t.Replicas++
		updated := int32(0)
		if revisionOf(p) == o.update {
			updated = 1
		}
		t.UpdatedReplicas += updated
		if ready(p) {
			t.ReadyReplicas++
			t.UpdatedReadyReplicas += updated
		}
		if available(p, minReady, o.now) {
			t.AvailableReplicas++
			t.UpdatedAvailableReplicas += updated
		}
	}
	return t
}

// common returns the steps that do not depend on the kind: in-place updates to finish, and when a pod becomes
// available.
func (o observed) common(minReady int32) steps {
	var s steps
	for _, p := range o.pods {
		if !active(p) {
			continue
		}
		if inPlaceDone(p) {
			s.finish = append(s.finish, p)
		}
		if wait, _ := availableIn(p, minReady, o.now); wait > 0 && (s.recheck == 0 || wait < s.recheck) {
			s.recheck = wait
		}
	}
	return s
}

// update updates a pod to the newest revision, in place if the policy and the change allow it; otherwise the pod goes.
// It reports whether the update can go on.
func (s *steps) update(o observed, p *corev1.Pod, policy string) bool {
	inPlace := policy == inPlaceIfPossible || policy == inPlaceOnly
	switch {
	case inPlace && canUpdateInPlace(o.revisions[revisionOf(p)], o.revisions[o.update]):
		s.inPlace = append(s.inPlace, p)
	case policy == inPlaceOnly:
		s.blocked = "pod " + p.Name + " cannot be updated in place: more than images changed"
	default:
		s.remove = append(s.remove, p)
	}
	return s.blocked == ""
}

// failureConditions returns the conditions of one sync, from the messages by condition type. Like the real manager, it
// gives no reason, dates each condition with this sync and repeats none of an earlier sync.
func failureConditions(messages map[string]string, now time.Time) []Condition {
	var out []Condition
	for t, message := range messages {
		if message != "" {
			out = append(out, Condition{Type: t, Status: corev1.ConditionTrue, Message: message,
				LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))})
		}
	}
	slices.SortFunc(out, func(a, b Condition) int { return cmp.Compare(a.Type, b.Type) })
	return out
}
