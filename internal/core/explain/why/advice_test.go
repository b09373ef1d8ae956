package why_test

import (
	"strings"
	"testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// The sentences are those of kube-scheduler and of the API server of Kubernetes 1.34.
func TestNextStepFollowsTheSentenceOfTheMember(t *testing.T) {
	const nodes = "add nodes to cluster m2"
	for reason, cases := range map[string][][2]string{
		"Unschedulable": {
			{"0/3 nodes are available: 3 Insufficient cpu.",
				nodes + " or lower the requests"},
			{"0/3 nodes are available: 3 Too many pods.",
				nodes},
			{"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
				"label nodes of cluster m2"},
			{"0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, " +
				"2 Insufficient memory. preemption: 0/3 nodes are available: 1 Preemption is not helpful for " +
				"scheduling, 2 No preemption victims found.",
				nodes + " or lower the requests"},
			{"0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, " +
				"2 node(s) didn't match Pod's node affinity/selector.",
				"label nodes of cluster m2"},
			{"0/3 nodes are available: 3 node(s) had untolerated taint {gpu: only}.",
				"tolerate the taint gpu in the template, or remove it from nodes of cluster m2"},
			{"0/3 nodes are available: 3 node(s) had untolerated taint(s).",
				"tolerate the taint in the template"},
			{"0/3 nodes are available: 3 node(s) were unschedulable.",
				"uncordon nodes of cluster m2"},
			{"0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.",
				"use no host port"},
			{"0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
				"where the volume of the pod is"},
			{"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
				"StorageClass"},
			{`0/3 nodes are available: persistentvolumeclaim "data" not found.`,
				"create PersistentVolumeClaim data in namespace shop of cluster m2"},
			{"0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.",
				"relax topologySpreadConstraints"},
			{"0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
				"relax podAntiAffinity"},
			{"0/3 nodes are available: 3 node(s) didn't match pod affinity rules.",
				"run the pods that podAffinity"},
			{"a plugin of ours says no",
				"change what the message names in cluster m2"},
		},
		pods.FailedCreate: {
			{`pods "web-5d4f-a" is forbidden: exceeded quota: tenant, requested: limits.cpu=1, used: ` +
				`limits.cpu=2, limited: limits.cpu=2`,
				"raise ResourceQuota tenant in namespace shop of cluster m2"},
			{`pods "web-5d4f-a" is forbidden: failed quota: tenant: must specify limits.cpu for: web`,
				"ResourceQuota tenant counts it"},
			{`pods "web-5d4f-a" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
				"change the LimitRange in namespace shop of cluster m2"},
			{`pods "web-5d4f-a" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi`,
				"change the LimitRange in namespace shop of cluster m2"},
			{`pods "web-5d4f-a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation ` +
				`!= false`,
				"of namespace shop in cluster m2"},
			{`admission webhook "pods.example.com" denied the request: no`,
				"what pods.example.com in cluster m2 denies"},
			{`pods "web-5d4f-a" is forbidden: ValidatingAdmissionPolicy 'ours' with binding 'ours' denied request: no`,
				"what ours in cluster m2 denies"},
			{`Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: ` +
				`connection refused`,
				"check the webhook pods.example.com in cluster m2"},
			{`pods "web-5d4f-a" is forbidden: no PriorityClass with name high was found`,
				"create PriorityClass high in cluster m2"},
			{`pods "web-5d4f-a" is forbidden: error looking up service account shop/robot: serviceaccount "robot" ` +
				`not found`,
				"create ServiceAccount robot in namespace shop of cluster m2"},
			{`pods "web-5d4f-a" is forbidden: pod rejected: RuntimeClass "kata" not found`,
				"create RuntimeClass kata in cluster m2"},
			{`Internal error occurred: something else`,
				"change what the message names in namespace shop of cluster m2"},
		},
	} {
		for _, c := range cases {
			message, want := c[0], c[1]
			h := ailing(t, workv1alpha1.ResourceUnhealthy, pods.Report{Pods: 3, Troubles: []pods.Group{{Pods: 1,
				Pod: "web-5d4f-a", Reason: reason, Message: message}}})
			next := ""
			for _, f := range explain(h.Facts).Findings {
				if f.Cluster == "m2" && f.Severity == why.Problem {
					next = f.Next
				}
			}
			scarce := strings.Contains(message, "Insufficient") || strings.Contains(message, "Too many pods")
			checkNext(t, next)
			if !strings.Contains(next, want) || strings.Contains(next, "lower the requests") != scarce {
				t.Errorf("%s: the next step is %q, want %q", message, next, want)
			}
		}
	}
}

func TestConditionsTellWhyThereIsNoPod(t *testing.T) {
	const kruise = "apps.kruise.io/v1beta1"
	const quota = `pods \"web-a\" is forbidden: exceeded quota: tenant`
	condition := func(kind string) string {
		return `"conditions": [{"type": "` + kind + `", "status": "True", "message": "` + quota + `"}]`
	}
	for name, c := range map[string]struct {
		kind, status string
		health       workv1alpha1.ResourceHealth
		want         string
	}{
		"a Deployment": {"apps/v1 Deployment", `{"replicas": 2, "readyReplicas": 2, ` + condition("ReplicaFailure") + `}`,
			workv1alpha1.ResourceUnknown, "m2: 4 of 6 pods: FailedCreate: "},
		"a Deployment that is Unhealthy": {"apps/v1 Deployment", `{"replicas": 2, ` + condition("ReplicaFailure") + `}`,
			workv1alpha1.ResourceUnhealthy, "m2: 4 of 6 pods: FailedCreate: "},
		"a rollout that lacks its next pod": {"apps/v1 Deployment", `{"replicas": 6, "updatedReplicas": 0, ` +
			condition("ReplicaFailure") + `}`, workv1alpha1.ResourceUnknown, "m2: 1 of 6 pods: FailedCreate: "},
		"a CloneSet": {kruise + " CloneSet", `{"replicas": 5, ` + condition("FailedScale") + `}`,
			workv1alpha1.ResourceUnknown, "m2: 1 of 6 pods: FailedCreate: "},
		"an Advanced StatefulSet": {kruise + " StatefulSet", `{"replicas": 1, ` + condition("FailedCreatePod") + `}`,
			workv1alpha1.ResourceUnknown, "m2: 5 of 6 pods: FailedCreate: "},
		"a CloneSet with an error that is over": {kruise + " CloneSet", `{"replicas": 6, ` + condition("FailedScale") + `}`,
			workv1alpha1.ResourceUnknown, ""},
		"a CloneSet that is healthy again": {kruise + " CloneSet", `{"replicas": 5, ` + condition("FailedScale") + `}`,
			workv1alpha1.ResourceHealthy, ""},
		"a failure that ended": {"apps/v1 Deployment",
			`{"replicas": 2, "conditions": [{"type": "ReplicaFailure", "status": "False", "message": "` + quota + `"}]}`,
			workv1alpha1.ResourceUnknown, ""},
	} {
		version, kind, _ := strings.Cut(c.kind, " ")
		h := start(t, strings.NewReplacer("apps/v1", version, "Deployment", kind).Replace(deployment), fleet()...)
		for _, cluster := range h.Clusters {
			cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: version, Resources: []clusterv1alpha1.APIResource{{Kind: kind}}})
		}
		h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: "+version+", kind: "+kind+"}]}"))
		h.answers(c.health, c.status, "m2")
		found := ""
		for _, f := range explain(h.Facts).Findings {
			if f.Cluster == "m2" && strings.Contains(f.What, "FailedCreate") {
				found = f.What + " next: " + f.Next
			}
		}
		if c.want == "" && found != "" || !strings.HasPrefix(found, c.want) || c.want != "" &&
			(!strings.Contains(found, "raise ResourceQuota tenant") || strings.Count(found, "exceeded quota") != 1) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}
