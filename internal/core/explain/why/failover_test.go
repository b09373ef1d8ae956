package why_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/explain/why"
)

func TestApplicationFailoverIsShownBeforeItHappens(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const once = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
	for name, c := range map[string]struct {
		policy string
		health workv1alpha1.ResourceHealth
		after  time.Duration
		// waits is what the failover waits for, and says the finding; both are empty without a failover.
		waits failover.Code
		says  string
		// until is after began.
		until time.Duration
	}{
		"it is about to leave": {once + "}, failover: {application: {decisionConditions: {}}", workv1alpha1.ResourceUnhealthy,
			2 * time.Minute, failover.Tolerated, "m1: it should leave the cluster (ApplicationFailure): " +
				"unless it is healthy before, it leaves at 2026-01-01T12:05:00Z", 5 * time.Minute},
		"it leaves": {once + "}, failover: {application: {decisionConditions: {}}", workv1alpha1.ResourceUnhealthy,
			5 * time.Minute, "", "m1: it should leave the cluster (ApplicationFailure): the hub is about to move it", 0},
		"nothing fits": {"clusterAffinity: {clusterNames: [m1]}}, failover: {application: {decisionConditions: {}}",
			workv1alpha1.ResourceUnhealthy, 5 * time.Minute, failover.NothingFits,
			"m1: it should leave the cluster (ApplicationFailure): no other cluster takes it", 0},
		"a rollout": {once + "}, failover: {application: {decisionConditions: {}}", workv1alpha1.ResourceUnknown,
			5 * time.Minute, "", "", 0},
		"without application failover": {once + "}, failover: {cluster: {}", workv1alpha1.ResourceUnhealthy, 5 * time.Minute,
			"", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, deployment, fleet()...)
			h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {"+c.policy+"}}"))
			h.answers(c.health, `{"replicas": 6, "readyReplicas": 0}`)
			*h.Binding.BindingStatus() = aggregate.Binding(h.Binding, h.Works, nil, metav1.NewTime(began))
			h.Failovers = moves(h.Facts, began.Add(c.after))
			answer := explain(h.Facts)
			var said string
			for _, f := range answer.Findings {
				if strings.Contains(f.What, "should leave") {
					said += f.What
				}
			}
			if !strings.HasPrefix(said, c.says) || c.says == "" && said != "" {
				t.Errorf("it says %q, want %q", said, c.says)
			}
			if len(answer.Failovers) == 0 {
				if c.says != "" {
					t.Error("no failover is listed")
				}
				return
			}
			m := answer.Failovers[0]
			if m.WaitingFor != c.waits || m.Since == nil || !m.Since.Equal(began) ||
				c.until != 0 && (m.Until == nil || !m.Until.Equal(began.Add(c.until))) {
				t.Errorf("the failover is %+v", m)
			}
		})
	}
}

func TestEventOfAFailoverIsShownWhileItWaits(t *testing.T) {
	warned := why.Warning{Object: "Deployment shop/web", Reason: "EvictWorkloadFromClusterFailed",
		Message: "Stays in cluster m1: no other cluster takes it", Last: metav1.Now()}
	other := why.Warning{Object: "Deployment shop/web", Reason: "AggregateStatusFailed", Message: "no", Last: metav1.Now()}
	for name, c := range map[string]struct {
		taints []with
		want   int
	}{
		"it waits for a user": {[]with{tainted("maintenance", corev1.TaintEffectNoExecute)}, 2},
		"the taint is gone":   {nil, 1},
	} {
		h := start(t, deployment, cluster("m1", c.taints...), cluster("m2"))
		h.runAll(h.policy("shop", "web", "{"+ofDeployments+", placement: {clusterAffinity: {clusterNames: [m1]}, "+
			"clusterTolerations: [{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]}}"))
		h.Warnings = []why.Warning{warned, other}
		h.Failovers = moves(h.Facts, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
		if answer := explain(h.Facts); len(answer.Warnings) != c.want {
			t.Errorf("%s: the warnings are %+v; failovers %+v", name, answer.Warnings, answer.Failovers)
		}
	}
}
