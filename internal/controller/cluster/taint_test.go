package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// taints returns the taints of cluster m1 as kubectl prints them, and its resource version.
func (l *life) taints() (out []string, version string) {
	l.t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if !l.exists(c, "", "m1") {
		l.t.Fatal("the cluster is gone")
	}
	for _, t := range c.Spec.Taints {
		out = append(out, t.ToString())
	}
	return out, c.ResourceVersion
}

func (l *life) wantTaints(want ...string) {
	l.t.Helper()
	if got, _ := l.taints(); strings.Join(got, " ") != strings.Join(want, " ") {
		l.t.Fatalf("taints are %v, want %v", got, want)
	}
}

// becomes sets the condition Ready.
func (l *life) becomes(status metav1.ConditionStatus) {
	l.t.Helper()
	c := &clusterv1alpha1.Cluster{}
	l.exists(c, "", "m1")
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: status, Reason: "Test"})
	if err := l.client.Status().Update(l.t.Context(), c); err != nil {
		l.t.Fatal(err)
	}
}

// spaced returns a cluster with an execution namespace, so that all events are about taints.
func spaced(t *testing.T, status metav1.ConditionStatus) *life {
	return newLife(t, cluster(status),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1",
			Labels: map[string]string{"karmada.io/system": "true"}}})
}

func TestOutageTaintsKeepTheirTimeAcrossRestart(t *testing.T) {
	l := spaced(t, metav1.ConditionFalse)
	lost := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l.lifecycle.clock = clocktesting.NewFakePassiveClock(lost)
	l.reconcile()
	l.wantTaints("cluster.karmada.io/not-ready:NoSchedule", "cluster.karmada.io/not-ready:NoExecute")
	_, version := l.taints()

	l.lifecycle = &lifecycle{client: l.client, members: l.members, events: l.events,
		clock: clocktesting.NewFakePassiveClock(lost.Add(time.Hour))}
	l.reconcile()
	if _, again := l.taints(); again != version {
		t.Error("the restarted hub wrote the cluster")
	}
	c := &clusterv1alpha1.Cluster{}
	l.exists(c, "", "m1")
	if added := c.Spec.Taints[1].TimeAdded; added == nil || !added.Time.Equal(lost) {
		t.Errorf("the taint was added at %v, want %v", added, lost)
	}

	l.becomes(metav1.ConditionTrue)
	l.reconcile()
	l.wantTaints()
}

func TestPolicyAddsNoExecuteOnlyWithTheFlag(t *testing.T) {
	l := spaced(t, metav1.ConditionTrue)
	c := &clusterv1alpha1.Cluster{}
	l.exists(c, "", "m1")
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "DiskFull", Status: metav1.ConditionTrue,
		Reason: "Test"})
	if err := l.client.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	p := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: []policyv1alpha1.MatchCondition{{ConditionType: "DiskFull",
				Operator:     policyv1alpha1.MatchConditionOpIn,
				StatusValues: []metav1.ConditionStatus{"True"}}},
			Taints: []policyv1alpha1.Taint{{Key: "disk", Effect: corev1.TaintEffectNoExecute}},
		}}
	if err := l.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	l.wantTaints()
	l.noExecute = true
	l.reconcile()
	l.wantTaints("disk:NoExecute")
}

func TestPolicyTaintsClusterInOneWrite(t *testing.T) {
	l := spaced(t, metav1.ConditionTrue)
	p := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "outage"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: []policyv1alpha1.MatchCondition{{ConditionType: "Ready",
				Operator: policyv1alpha1.MatchConditionOpNotIn, StatusValues: []metav1.ConditionStatus{"True"}}},
			RemoveOnConditions: []policyv1alpha1.MatchCondition{{ConditionType: "Ready",
				Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{"True"}}},
			Taints: []policyv1alpha1.Taint{{Key: "outage", Effect: corev1.TaintEffectNoSchedule}},
		}}
	if err := l.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if woken := l.allClusters(t.Context(), p); len(woken) != 1 || woken[0].Name != "m1" {
		t.Errorf("the policy wakes %v, want m1", woken)
	}
	l.reconcile()
	l.wantSilence()

	l.becomes(metav1.ConditionFalse)
	l.reconcile()
	l.wantTaints("cluster.karmada.io/not-ready:NoSchedule", "cluster.karmada.io/not-ready:NoExecute", "outage:NoSchedule")
	l.wantEvent("TaintClusterSucceed")
	l.wantSilence()
	_, version := l.taints()
	l.reconcile()
	if _, again := l.taints(); again != version {
		t.Error("a second look wrote the cluster")
	}
	l.wantSilence()

	l.becomes(metav1.ConditionTrue)
	l.reconcile()
	l.wantTaints()
	l.wantEvent("TaintClusterSucceed")

	// What a policy added stays when the policy is deleted.
	l.becomes(metav1.ConditionUnknown)
	l.reconcile()
	if err := l.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.becomes(metav1.ConditionTrue)
	l.reconcile()
	l.wantTaints("outage:NoSchedule")
}
