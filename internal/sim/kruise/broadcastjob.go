package kruise

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
)

// Values of a BroadcastJob.
const (
	jobCompleted = "completed"
	jobRunning   = "running"
	jobFailed    = "failed"

	jobComplete        = "Complete"
	jobFailedCondition = "Failed"

	jobNameLabel = "broadcastjob-name"
	jobUIDLabel  = "broadcastjob-controller-uid"
)

// BroadcastJobSpec is what the simulation acts on: a pod on each node, of which none may fail.
type BroadcastJobSpec struct {
	Template corev1.PodTemplateSpec `json:"template"`
}

// BroadcastJobStatus is all of a BroadcastJob's status.
type BroadcastJobStatus struct {
	Conditions     []Condition  `json:"conditions,omitempty"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	Active         int32        `json:"active"`
	Succeeded      int32        `json:"succeeded"`
	Failed         int32        `json:"failed"`
	Desired        int32        `json:"desired"`
	Phase          string       `json:"phase,omitempty"`
}

// fits reports whether the job wants a pod on the node: one that takes pods, that the template selects, and whose
// taints it tolerates.
func fits(template *corev1.PodTemplateSpec, n *corev1.Node) bool {
	run, _ := daemon.NodeShouldRunDaemonPod(klog.Background(), n, &appsv1.DaemonSet{
		Spec: appsv1.DaemonSetSpec{Template: *template}})
	return run && n.DeletionTimestamp == nil && !n.Spec.Unschedulable
}

// syncBroadcastJob runs a job.
func (r *reconciler) syncBroadcastJob(ctx context.Context, u *unstructured.Unstructured) (time.Duration, error) {
	job, err := read[BroadcastJob](u)
	if err != nil {
		return 0, err
	}
	o := observed{now: time.Now()}
	ours := map[string]any{"matchLabels": map[string]any{jobUIDLabel: string(job.UID)}}
	if o.pods, err = r.pods(ctx, u, ours); err != nil {
		return 0, err
	}
	var nodes corev1.NodeList
	if err := r.reader.List(ctx, &nodes); err != nil {
		return 0, fmt.Errorf("list nodes: %w", err)
	}
	s, status := decideBroadcastJob(job, o.pods, nodes.Items, o.now, func() string { return rand.String(5) })
	_, err = r.act(ctx, u, o, s)
	return 0, joined(err, r.report(ctx, u, &status))
}

// decideBroadcastJob returns which pods to make and to remove for a job and what to report.
func decideBroadcastJob(job *BroadcastJob, pods []*corev1.Pod, nodes []corev1.Node, now time.Time,
	id newID) (s steps, status BroadcastJobStatus) {
	status = job.Status
	if status.CompletionTime != nil {
		return s, status
	}
	stamp := metav1.NewTime(now.Truncate(time.Second))
	if status.StartTime == nil {
		status.StartTime = &stamp
	}

	// 1. Count. A node that has a pod of ours counts even if it would get none now.
	status.Active, status.Succeeded, status.Failed = 0, 0, 0
	on := map[string]bool{}
	var running []*corev1.Pod
	for _, p := range pods {
		node, _ := daemonutil.GetTargetNodeName(p) // each has one
		on[node] = true
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			status.Succeeded++
		case p.Status.Phase == corev1.PodFailed:
			status.Failed++
		case p.DeletionTimestamp == nil:
			status.Active++
			running = append(running, p)
		}
	}
	var missing []string
	for i := range nodes {
		if n := &nodes[i]; !on[n.Name] && fits(&job.Spec.Template, n) {
			missing = append(missing, n.Name)
		}
	}
	slices.Sort(missing)
	status.Desired = int32(len(on) + len(missing))

	// 2. End, for good or bad, or go on to further nodes.
	end := func(condition, phase, reason, message string) {
		status.Phase, status.CompletionTime, status.Active, s.remove = phase, &stamp, 0, running
		status.Conditions = []Condition{{Type: condition, Status: corev1.ConditionTrue, LastProbeTime: &stamp,
			LastTransitionTime: stamp, Reason: reason, Message: message}}
	}
	switch {
	case status.Failed > 0:
		end(jobFailedCondition, jobFailed, "PodFailed", fmt.Sprintf("failure policy is FailFast and %d pods have failed",
			status.Failed))
	case status.Succeeded == status.Desired:
		end(jobComplete, jobCompleted, "", "Job completed")
	default:
		status.Phase = jobRunning
		for _, node := range missing {
			s.create = append(s.create, creation{pod: broadcastPod(job, node, id())})
		}
	}
	return s, status
}

// broadcastPod returns the job's pod for one node. Placing it is the scheduler's, who has no other choice.
func broadcastPod(job *BroadcastJob, node, id string) *corev1.Pod {
	pod := fromTemplate(&job.Spec.Template, &job.ObjectMeta, *metav1.NewControllerRef(job, job.GroupVersionKind()), "")
	delete(pod.Labels, "controller-revision-hash")
	pod.Name = job.Name + "-" + id
	pod.Labels[jobNameLabel], pod.Labels[jobUIDLabel] = job.Name, string(job.UID)
	// The terms of the template held when the node was chosen.
	pod.Spec.Affinity = daemonutil.ReplaceDaemonSetPodNodeNameNodeAffinity(pod.Spec.Affinity, node)
	return pod
}
