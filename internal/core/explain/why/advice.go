package why

import (
	"regexp"
	"strings"

	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// Advice by the sentences of Kubernetes, which has these reasons in no other form: an expression, and what to do. NAME
// is what its group matches. The first match counts. What only some nodes lack comes first; the taint, which nodes of
// the control plane have in any cluster, last.
var (
	unschedulable = [][2]string{
		{`persistentvolumeclaim "([^"]+)" not found`,
			"create PersistentVolumeClaim NAME in namespace NS of cluster CLUSTER; propagateDeps: true in the policy propagates it"},
		{"unbound immediate PersistentVolumeClaims",
			"check why claims of the pod in namespace NS of cluster CLUSTER are not bound, such as their StorageClass"},
		{"volume node affinity conflict|didn't find available persistent volumes",
			"make room in cluster CLUSTER where the volume of the pod is, or recreate its claim in namespace NS"},
		{"Insufficient |Too many pods", "add nodes to cluster CLUSTER or lower the requests of the pods; " +
			"a WorkloadRebalancer moves replicas to clusters with capacity"},
		{"didn't have free ports", "add nodes to cluster CLUSTER, or use no host port: a node has each port once"},
		{"node affinity/selector", "label nodes of cluster CLUSTER as nodeSelector and node affinity of the template require, " +
			"change these by an override, or exclude the cluster from the policy"},
		{"topology spread constraints", "add nodes to the domains of cluster CLUSTER that have fewer pods, " +
			"or relax topologySpreadConstraints of the template"},
		{"anti-affinity", "add nodes to cluster CLUSTER, or relax podAntiAffinity of the template"},
		{"pod affinity", "run the pods that podAffinity of the template names in cluster CLUSTER, or relax it"},
		{"were unschedulable", "uncordon nodes of cluster CLUSTER, or add some"},
		{`untolerated taint(?:\(s\))?(?: \{([^:}]+))?`, "tolerate the taint NAME in the template, " +
			"or remove it from nodes of cluster CLUSTER"},
		{"", "change what the message names in cluster CLUSTER, or in the template"},
	}
	refused = [][2]string{
		{"exceeded quota: ([^,]+)", "raise ResourceQuota NAME in namespace NS of cluster CLUSTER, " +
			"or lower the replicas, requests or limits there"},
		{"failed quota: ([^:]+): must specify", "set what the message names in the template, " +
			"or as default by a LimitRange in namespace NS of cluster CLUSTER: ResourceQuota NAME counts it"},
		{"per (?:Container|Pod)", "change the LimitRange in namespace NS of cluster CLUSTER, or the template"},
		{"violates PodSecurity", "set securityContext of the template as the message says, " +
			"or relax the label pod-security.kubernetes.io/enforce of namespace NS in cluster CLUSTER"},
		{`failed calling webhook "([^"]+)"`, "check the webhook NAME in cluster CLUSTER: it does not answer"},
		{`admission webhook "([^"]+)" denied|ValidatingAdmissionPolicy '([^']+)'`,
			"change what NAME in cluster CLUSTER denies, in the template or by an override for the cluster"},
		{`PriorityClass with name (\S+) was found`, "create PriorityClass NAME in cluster CLUSTER, or propagate it there"},
		{`serviceaccount "([^"]+)" not found`,
			"create ServiceAccount NAME in namespace NS of cluster CLUSTER; propagateDeps: true in the policy propagates it"},
		{`RuntimeClass "([^"]+)" not found`, "create RuntimeClass NAME in cluster CLUSTER, or propagate it there"},
		{"", "change what the message names in namespace NS of cluster CLUSTER, or in the template"},
	}
)

// adviceFor returns what to do about pods without a node, or that cannot be created.
func adviceFor(g pods.Group, cluster, namespace string) string {
	known := unschedulable
	if g.Reason == pods.FailedCreate {
		known = refused
	}
	for _, a := range known {
		if found := regexp.MustCompile(a[0]).FindStringSubmatch(g.Message); found != nil {
			name := strings.TrimRight(" "+strings.Join(found[1:], ""), " ")
			return strings.NewReplacer(" NAME", name, "NS", namespace, "CLUSTER", cluster).Replace(a[1])
		}
	}
	return ""
}
