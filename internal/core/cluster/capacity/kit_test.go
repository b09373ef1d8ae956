package capacity

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// list parses "cpu 2, memory 4Gi".
func list(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for entry := range strings.SplitSeq(text, ",") {
		if fields := strings.Fields(entry); len(fields) == 2 {
			l[corev1.ResourceName(fields[0])] = resource.MustParse(fields[1])
		}
	}
	return l
}

// aNode returns a ready node with the given changes.
func aNode(name, allocatable string, differs ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = list(allocatable)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, d := range differs {
		d(n)
	}
	return n
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[key] = value
	}
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// aPod returns a pod in namespace shop. It has no node if node is empty.
func aPod(name, node, requests string, differs ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(requests)}}}
	for _, d := range differs {
		d(p)
	}
	return p
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
	}
}

// madeBy sets a ReplicaSet of the Deployment as the owner.
func madeBy(deployment string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		ownedBy("ReplicaSet", deployment+"-5d4f")(p)
		p.Labels = map[string]string{"pod-template-hash": "5d4f"}
	}
}

// set adds objects to the state.
func (m *ClusterState) set(objects ...any) *ClusterState {
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			m.SetNode(NodeOf(o))
		case *corev1.Pod:
			if p, live := PodOf(o); live {
				m.SetPod(p)
			} else {
				m.RemovePod(o.Namespace, o.Name)
			}
		case *corev1.ResourceQuota:
			m.SetQuota(QuotaOf(o))
		default:
			panic(fmt.Sprintf("%T", o))
		}
	}
	return m
}

// needs returns the requirement of a replica in namespace shop.
func needs(requests string, claim *workv1alpha2.NodeClaim) *Requirement {
	return newRequirement(list(requests), claim, "shop", "")
}

// uses returns the requirement of a replica in namespace shop that counts these entries in quotas, too.
func uses(requests, limits string, terminating bool) *Requirement {
	r := needs(requests, nil)
	r.setQuotaUse(QuotaUse{Limits: list(limits), Terminating: terminating})
	return r
}

// assume adds a placement of a Deployment that had before replicas and will have replicas.
func (m *ClusterState) assume(deployment, requests string, before, replicas int64) bool {
	return m.Assume(Assumption{Key: deployment, Workload: Workload{"shop", "Deployment", deployment},
		Parts:  []Part{{needs(requests, nil), 1}},
		Before: before, Replicas: replicas})
}

// Assumes reports whether an assumption exists.
func (m *ClusterState) Assumes(key string) bool {
	m.settle()
	return m.assumptions[key] != nil
}
