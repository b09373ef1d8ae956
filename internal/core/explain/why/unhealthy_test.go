package why_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

func TestFormerPodsThatAPartitionKeepsAreNotBlamedOnTheImage(t *testing.T) {
	const pods80 = `{apiVersion: %s, kind: %s, metadata: {name: web, namespace: shop, uid: a}, spec: {replicas: 5,
		updateStrategy: %s, template: {spec: {containers: [{name: web, image: "web:1"}]}}}}`
	const kruise, native = "apps.kruise.io/v1beta1", "apps/v1"
	pulls := func(image string) pods.Group {
		return pods.Group{Pods: 1, Pod: "web-a", Reason: "ImagePullBackOff",
			Message: `Back-off pulling image "` + image + `"`}
	}
	crashes := pods.Group{Pods: 1, Pod: "web-a", Reason: "CrashLoopBackOff", Container: "web", Restarts: 3,
		Last: &pods.End{Reason: "Error", ExitCode: 2}}
	rolling := "{rollingUpdate: {partition: %s}}"
	for name, c := range map[string]struct {
		version, kind, strategy, status string
		trouble                         pods.Group
		next                            string
	}{
		"a CloneSet": {"apps.kruise.io/v1alpha1", "CloneSet", `{partition: "80%"}`,
			`{"replicas": 5, "updatedReplicas": 4, "updatedAvailableReplicas": 4}`, pulls("web:2"),
			"spec.updateStrategy.partition of the template keeps them"},
		"a CloneSet whose former pods crash": {kruise, "CloneSet", fmt.Sprintf(rolling, "2"),
			`{"replicas": 5, "updatedReplicas": 4, "updatedAvailableReplicas": 4}`, crashes,
			"spec.updateStrategy.rollingUpdate.partition of the template keeps them"},
		"an Advanced StatefulSet": {kruise, "StatefulSet", fmt.Sprintf(rolling, "3"),
			`{"replicas": 5, "updatedReplicas": 2, "updatedAvailableReplicas": 2}`, crashes, "rollingUpdate.partition"},
		"an Advanced DaemonSet": {kruise, "DaemonSet", fmt.Sprintf(rolling, "3"),
			`{"desiredNumberScheduled": 5, "currentNumberScheduled": 5, "updatedNumberScheduled": 2}`, pulls("web:2"),
			"rollingUpdate.partition"},
		"a StatefulSet": {native, "StatefulSet", fmt.Sprintf(rolling, "3"), `{"replicas": 5, "updatedReplicas": 2}`,
			pulls("web:2"), "rollingUpdate.partition"},
		"new pods of a CloneSet": {"apps.kruise.io/v1alpha1", "CloneSet", `{partition: "80%"}`,
			`{"replicas": 5, "updatedReplicas": 1, "updatedAvailableReplicas": 0}`, pulls("web:1"), "check the name and tag"},
		"new pods of a StatefulSet": {native, "StatefulSet", fmt.Sprintf(rolling, "3"),
			`{"replicas": 5, "updatedReplicas": 2}`, pulls("web:1"), "check the name and tag"},
		"no partition": {"apps.kruise.io/v1alpha1", "CloneSet", "{}",
			`{"replicas": 5, "updatedReplicas": 4, "updatedAvailableReplicas": 4}`, pulls("web:2"), "check the name and tag"},
	} {
		h := start(t, fmt.Sprintf(pods80, c.version, c.kind, c.strategy), fleet()...)
		for _, cluster := range h.Clusters {
			cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: c.version, Resources: []clusterv1alpha1.APIResource{{Kind: c.kind}}})
		}
		h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: "+c.version+", kind: "+c.kind+"}]}"))
		h.answers(workv1alpha1.ResourceUnhealthy, c.status, "m2")
		h.Pods = why.Pods{In: map[string]pods.Report{"m2": {Cluster: "m2", Pods: 5, Troubles: []pods.Group{c.trouble}}}}
		found := false
		for _, f := range explain(h.Facts).Findings {
			found = found || f.Cluster == "m2" && strings.Contains(f.Next, c.next)
		}
		if !found {
			t.Errorf("%s: the findings are %+v, want %q", name, explain(h.Facts).Findings, c.next)
		}
	}
}

// The user sees the brake before the hub has a change for the cluster. When the Work reports it, the finding has
// the same command.
func TestABrakeIsFoundFromTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		brakes, failed string
		want           int // findings with the command
	}{
		"no brake":             {},
		"another namespace":    {brakes: "bank"},
		"nothing to change":    {brakes: "kube-system", want: 1},
		"the namespace":        {brakes: "bank shop", want: 1},
		"a change is withheld": {brakes: "kube-system", failed: workv1alpha1.ReasonHandsOff, want: 1},
	} {
		h := start(t, deployment, fleet()...)
		h.runAll(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}"))
		h.answers(workv1alpha1.ResourceHealthy, `{"replicas": 1, "readyReplicas": 1}`, "m1")
		h.Clusters[0].Status.Brakes = strings.Fields(c.brakes)
		if c.failed != "" {
			h.refuses("m1", c.failed, "the annotation is set")
		}
		found := 0
		for _, f := range explain(h.Facts).Findings {
			if strings.Contains(f.Next, "`argosy brake off -C m1") {
				found++
			}
		}
		if found != c.want {
			t.Errorf("%s: %d findings have the command, want %d", name, found, c.want)
		}
	}
}

func TestOnlyPoliciesThatMayBeMeantAreProposed(t *testing.T) {
	const ofKind = "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, "
	const labelled = ofKind + "labelSelector: {matchLabels: {tier: front}}}]}"
	now := metav1.Unix(1, 0)
	for name, c := range map[string]struct {
		template, namespace, spec string
		change                    func(policyv1alpha1.Propagation)
		proposed                  bool
	}{
		"selects other labels":             {namespace: "shop", spec: labelled, proposed: true},
		"a cluster policy of other labels": {spec: labelled, proposed: true},
		"a similar name":                   {namespace: "shop", spec: ofKind + "name: wep}]}", proposed: true},
		"names another object":             {namespace: "shop", spec: ofKind + "name: checkout}]}"},
		"selects in another namespace":     {spec: ofKind + "namespace: bank}]}"},
		"a policy of another namespace": {template: "{apiVersion: v1, kind: Namespace, metadata: {name: team}}",
			namespace: "shop",
			spec:      "{resourceSelectors: [{apiVersion: v1, kind: Namespace, labelSelector: {matchLabels: {tier: front}}}]}"},
		"is being deleted": {namespace: "shop", spec: labelled, change: func(p policyv1alpha1.Propagation) {
			p.SetDeletionTimestamp(&now)
		}},
		"has no ID yet": {namespace: "shop", spec: labelled, change: func(p policyv1alpha1.Propagation) { p.SetLabels(nil) }},
	} {
		h := start(t, cmp.Or(c.template, deployment), fleet()...)
		p := h.policy(c.namespace, "p", c.spec)
		if c.change != nil {
			c.change(p)
		}
		proposed := false
		for _, f := range explain(h.Facts).Findings {
			proposed = proposed || strings.Contains(f.Next, "add that selector to")
		}
		if proposed != c.proposed {
			t.Errorf("%s: proposed is %t", name, proposed)
		}
	}
}
