package why

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// Pods are the facts about the pods of a template in members.
type Pods struct {
	// In has the reports about pods that are not running, by cluster; nil if unknown.
	In map[string]pods.Report
	// More counts the other clusters with such pods.
	More int
	// Unseen is true if the user may not read the reports.
	Unseen bool
}

// ailing returns the report about pods in a cluster, and whether it has problems: pods that do not run, or that the
// controller cannot create. A cluster that is not ready has none.
func (e *explanation) ailing(row *Cluster, away bool, item workv1alpha2.AggregatedStatusItem) (r pods.Report,
	ails bool) {
	r = e.Pods.In[row.Name]
	if item.Health != workv1alpha1.ResourceHealthy {
		status := state.StatusOf(item)
		missing := pods.Missing(e.template.GroupKind(), status, int64(row.Replicas))
		if why := interpret.Refusal(e.template.GroupKind(), status, missing > 0); why != "" {
			r = r.WithRefusal(row.Name, missing, int64(row.Replicas), why)
		}
	}
	return r, !away && len(r.Troubles) > 0
}

// explainOtherPods reports that pods are not running in more clusters than those whose reasons are known.
func (e *explanation) explainOtherPods() {
	if e.Pods.More > 0 {
		e.find(Attention, "", fmt.Sprintf("pods are not running in %s; their reasons are not shown",
			text.Count(e.Pods.More, "more cluster")), "")
	}
}

// unseenPods returns which permission the user needs to see the reasons of pods; empty if the user has it.
func (e *explanation) unseenPods() string {
	if b := e.ownBinding(); !e.Pods.Unseen || b == nil || b.BindingSpec().Replicas == 0 {
		return ""
	}
	return fmt.Sprintf("; to see the reasons of its pods, you need permission to get resourcebindings/pods in namespace %s", e.template.Namespace)
}

// helpPods returns what to do about the most frequent problem of the pods of a manifest in a cluster.
func (e *explanation) helpPods(cluster string, r pods.Report, manifest *unstructured.Unstructured,
	item workv1alpha2.AggregatedStatusItem) string {
	help := e.helpTrouble(cluster, r)
	path, certain := fleet.FormerPodsKept(manifest, item)
	switch {
	case path == "":
		return help
	case certain:
		return fmt.Sprintf("these pods are of a former revision, and %s of the template keeps them: lower it, such as to 0, "+
			"to replace them by pods of the template", path)
	}
	return fmt.Sprintf("if these pods are of a former revision, which %s of the template keeps, lower it, such as to 0; "+
		"otherwise %s", path, help)
}

// helpTrouble returns what to do about the most frequent problem of pods of the template.
func (e *explanation) helpTrouble(cluster string, r pods.Report) string {
	g, ns := r.Troubles[0], e.template.Namespace
	logs := fmt.Sprintf("argosy logs %s -n %s -C %s", g.Pod, ns, cluster)
	if g.Container != "" {
		logs += " -c " + g.Container
	}
	if g.Last != nil && (g.Restarts > 0 || g.Last.Reason == "OOMKilled") {
		logs += " --previous"
	}
	logs = "`" + logs + "`"
	switch {
	case strings.Contains(g.Reason, "Image") || g.Reason == "RegistryUnavailable":
		return fmt.Sprintf("check the name and tag of the image, whether cluster %s can reach its registry, and imagePullSecrets", cluster)
	case g.Reason == corev1.PodReasonUnschedulable || g.Reason == pods.FailedCreate:
		return adviceFor(g, cluster, ns)
	case g.Reason == corev1.PodReasonSchedulingGated:
		return "find out which controller removes the scheduling gates of pod " + g.Pod
	case strings.HasPrefix(g.Reason, "CreateContainer"):
		return fmt.Sprintf("create what the message names in namespace %s of cluster %s; with propagateDeps: true in the policy, the hub propagates the ConfigMaps and Secrets of a workload", ns, cluster)
	case g.Last != nil && g.Last.Reason == "OOMKilled":
		return fmt.Sprintf("raise the memory limit of container %s, or find out what uses the memory: %s", g.Container, logs)
	case g.Last != nil || g.Reason == pods.ContainersNotReady:
		return logs
	}
	return fmt.Sprintf("`argosy get events -n %s -C %s --field-selector involvedObject.name=%s`", ns, cluster, g.Pod)
}
