package why

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/core/pods"
	"github.com/argosy-io/argosy/internal/core/text"
)

// Pods is what is known of the pods of a template in members.
type Pods struct {
	// In are those in trouble, by cluster; nil if nobody knows.
	In map[string]pods.Report
	// More is in how many other clusters some are.
	More int
	// Unseen says that who asks may not know.
	Unseen bool
}

// ailing is what the pods in a cluster say; nothing of one that does not answer, where that is old.
func (e *explanation) ailing(cluster string, away bool) (r pods.Report, ails bool) {
	r, ails = e.Pods.In[cluster]
	return r, ails && !away && len(r.Troubles) > 0
}

// untoldPods says that pods are in trouble in more clusters than the reasons were told of.
func (e *explanation) untoldPods() {
	if e.Pods.More > 0 {
		e.find(Attention, "", fmt.Sprintf("pods are in trouble in %s whose reasons are not shown", text.Count(e.Pods.More, "more cluster")), "")
	}
}

// unseenPods is what to add where somebody would look for the reason of pods that he may not see.
func (e *explanation) unseenPods() string {
	if b := e.own(); !e.Pods.Unseen || b == nil || b.BindingSpec().Replicas == 0 {
		return ""
	}
	return fmt.Sprintf("; to be told the reasons of its pods, ask for the right to get resourcebindings/pods in namespace %s", e.template.Namespace)
}

// helpPods is what to do about what most of the pods have.
func (e *explanation) helpPods(cluster string, r pods.Report) string {
	g, ns := r.Troubles[0], e.template.Namespace
	logs := fmt.Sprintf("argosy logs %s -n %s -C %s", g.Pod, ns, cluster)
	if g.Container != "" {
		logs += " -c " + g.Container
	}
	switch {
	case strings.Contains(g.Reason, "Image") || g.Reason == "RegistryUnavailable":
		return fmt.Sprintf("check the name and tag of the image, that cluster %s reaches its registry, and imagePullSecrets", cluster)
	case g.Reason == corev1.PodReasonUnschedulable:
		return fmt.Sprintf("add nodes to cluster %s or lower what the pods request; a WorkloadRebalancer moves replicas to clusters with room", cluster)
	case g.Reason == corev1.PodReasonSchedulingGated:
		return "find out who is to remove the scheduling gates of pod " + g.Pod
	case strings.HasPrefix(g.Reason, "CreateContainer"):
		return fmt.Sprintf("create what the message names in namespace %s of cluster %s; propagateDeps of the policy sends the ConfigMaps and Secrets that a workload names", ns, cluster)
	case g.Last != nil && g.Last.Reason == "OOMKilled":
		return fmt.Sprintf("raise the memory limit of container %s, or see what takes the memory: %s --previous", g.Container, logs)
	case g.Last != nil && g.Restarts > 0:
		return logs + " --previous"
	case g.Last != nil || g.Reason == pods.ContainersNotReady:
		return logs
	}
	return fmt.Sprintf("argosy get events -n %s -C %s --field-selector involvedObject.name=%s", ns, cluster, g.Pod)
}
