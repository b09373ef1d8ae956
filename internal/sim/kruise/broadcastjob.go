package kruise

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Values of a BroadcastJob.
const (
	always   = "Always"
	never    = "Never"
	failFast = "FailFast"
	goOn     = "Continue"
	pause    = "Pause"

	jobCompleted = "completed"
	jobRunning   = "running"
	jobPaused    = "paused"
	jobFailed    = "failed"

	jobComplete        = "Complete"
	jobFailedCondition = "Failed"

	jobNameLabel = "broadcastjob-name"
	jobUIDLabel  = "broadcastjob-controller-uid"
)

// BroadcastJobSpec is complete once admission has defaulted it; a nil or empty value then has the meaning of its
// default.
type BroadcastJobSpec struct {
	Parallelism      *intstr.IntOrString    `json:"parallelism,omitempty"`
	Template         corev1.PodTemplateSpec `json:"template"`
	Paused           bool                   `json:"paused,omitempty"`
	CompletionPolicy struct {
		Type                    string `json:"type,omitempty"`
		TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	} `json:"completionPolicy"`
	FailurePolicy struct {
		Type string `json:"type,omitempty"`
	} `json:"failurePolicy"`
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

func (s *BroadcastJobStatus) finished() bool {
	return slices.ContainsFunc(s.Conditions, func(c Condition) bool {
		return (c.Type == jobComplete || c.Type == jobFailedCondition) && c.Status == corev1.ConditionTrue
	})
}

// fits reports whether the job wants a pod on the node: one that takes pods, that the template selects, and whose
// taints it tolerates.
func fits(template *corev1.PodTemplateSpec, n *corev1.Node) bool {
	pod := &corev1.Pod{Spec: template.Spec}
	if n.DeletionTimestamp != nil || n.Spec.Unschedulable {
		return false
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n); err != nil || !ok {
		return false
	}
	_, untolerated := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, template.Spec.Tolerations,
		func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
	return !untolerated
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
	s, status, expired, err := decideBroadcastJob(job, o.pods, nodes.Items, o.now, func() string { return rand.String(5) })
	if err != nil {
		return 0, err
	}
	if expired {
		return 0, client.IgnoreNotFound(r.client.Delete(ctx, u, client.Preconditions{UID: &job.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	_, err = r.act(ctx, u, o, s)
	return s.recheck, joined(err, r.report(ctx, u, &status))
}

// decideBroadcastJob returns which pods to make and to remove for a job and what to report. expired means that the job
// has outlived its time and goes away.
func decideBroadcastJob(job *BroadcastJob, pods []*corev1.Pod, nodes []corev1.Node, now time.Time,
	id newID) (s steps, status BroadcastJobStatus, expired bool, err error) {
	spec := &job.Spec
	status = job.Status
	status.Conditions = slices.Clone(job.Status.Conditions)
	stamp := metav1.NewTime(now.Truncate(time.Second))
	if status.finished() {
		if ttl := spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil && status.CompletionTime != nil &&
			spec.CompletionPolicy.Type != never {
			left := status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(now)
			s.recheckIn(left)
			return s, status, left <= 0, nil
		}
		return s, status, false, nil
	}
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
		if n := &nodes[i]; !on[n.Name] && fits(&spec.Template, n) {
			missing = append(missing, n.Name)
		}
	}
	slices.Sort(missing)
	status.Desired = int32(len(on) + len(missing))

	// 2. End, for good or bad.
	end := func(condition, phase, reason, message string) {
		status.Phase = phase
		status.Conditions = append(status.Conditions, Condition{Type: condition, Status: corev1.ConditionTrue,
			LastProbeTime: &stamp, LastTransitionTime: stamp, Reason: reason, Message: message})
		status.CompletionTime = &stamp
		for _, p := range running {
			s.remove = append(s.remove, removal{pod: p})
		}
		status.Active = 0
		if ttl := spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil {
			s.recheckIn(time.Duration(*ttl)*time.Second + time.Millisecond)
		}
	}
	runsOnce := spec.CompletionPolicy.Type != never
	policy := cmp.Or(spec.FailurePolicy.Type, failFast)
	switch {
	case policy == failFast && status.Failed > 0:
		end(jobFailedCondition, jobFailed, "PodFailed", fmt.Sprintf("failure policy is FailFast and %d pods have failed",
			status.Failed))
		return s, status, false, nil
	case runsOnce && status.Succeeded+status.Failed == status.Desired && len(missing) == 0 && len(running) == 0:
		end(jobComplete, jobCompleted, "", "Job completed")
		return s, status, false, nil
	}

	// 3. Wait, or go on to further nodes.
	if spec.Paused || (policy == pause && status.Failed > 0) {
		status.Phase = jobPaused
		return s, status, false, nil
	}
	status.Phase = jobRunning
	limit := int32(math.MaxInt32)
	if spec.Parallelism != nil {
		if limit, err = share(spec.Parallelism, status.Desired, fleet.Up); err != nil {
			return s, status, false, fmt.Errorf("parallelism: %w", err)
		}
	}
	for _, node := range missing[:min(int32(len(missing)), max(0, limit-status.Active))] {
		s.create = append(s.create, creation{pod: broadcastPod(job, node, id())})
	}
	return s, status, false, nil
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
