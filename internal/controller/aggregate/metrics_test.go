package aggregate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/scope"
)

func TestMetricsCountTemplatesByClusterAndHealth(t *testing.T) {
	binding := func(namespace string, healths map[string]workv1alpha1.ResourceHealth,
		clusters ...string) workv1alpha2.Binding {
		b := scope.Bindings.New(namespace)
		for _, c := range clusters {
			b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		for c, health := range healths {
			b.BindingStatus().AggregatedStatus = append(b.BindingStatus().AggregatedStatus,
				workv1alpha2.AggregatedStatusItem{ClusterName: c, Health: health})
		}
		return b
	}
	got := healths([]workv1alpha2.Binding{
		binding("shop", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy,
			"m2": workv1alpha1.ResourceUnhealthy}, "m1", "m2"),
		binding("", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy}, "m1", "m2"),
		// It is leaving m1, and counts there no more.
		binding("shop", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy, "m2": ""}, "m2"),
		binding("shop", nil),
	})
	want := map[healthIn]int{
		{"m1", workv1alpha1.ResourceHealthy}:   2,
		{"m2", workv1alpha1.ResourceUnhealthy}: 1,
		{"m2", workv1alpha1.ResourceUnknown}:   2,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(healthIn{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetricsCountTemplatesThatStayUnhealthy(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ill := func(cluster string, health workv1alpha1.ResourceHealth, ago time.Duration) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: health,
			UnhealthySince: new(metav1.NewTime(now.Add(-ago)))}
	}
	binding := func(clusters []string, items ...workv1alpha2.AggregatedStatusItem) workv1alpha2.Binding {
		b := scope.Bindings.New("shop")
		for _, c := range clusters {
			b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		b.BindingStatus().AggregatedStatus = items
		return b
	}
	unknown := workv1alpha2.AggregatedStatusItem{ClusterName: "m2", Health: workv1alpha1.ResourceUnhealthy}
	all := []workv1alpha2.Binding{
		binding([]string{"m1", "m2"}, ill("m1", workv1alpha1.ResourceUnhealthy, time.Hour), unknown),
		binding([]string{"m1"}, ill("m1", workv1alpha1.ResourceUnhealthy, 15*time.Minute)),
		binding([]string{"m1"}, ill("m1", workv1alpha1.ResourceUnhealthy, 14*time.Minute)),
		// It is leaving m1.
		binding([]string{"m2"}, ill("m1", workv1alpha1.ResourceUnhealthy, 2*time.Hour)),
		binding([]string{"m2"}, ill("m2", workv1alpha1.ResourceUnknown, 2*time.Hour)),
	}
	for label, want := range map[string]map[string]int{
		"15m": {"m1": 2, "m2": 0}, "1h": {"m1": 1, "m2": 0}, "1d": {"m1": 0, "m2": 0},
	} {
		if diff := cmp.Diff(want, unhealthy(all, now.Add(-lasting[label]))); diff != "" {
			t.Errorf("lasting %s (-want +got):\n%s", label, diff)
		}
	}
}

func TestMetricsCountTemplatesThatCannotBeInterpreted(t *testing.T) {
	with := func(conditions ...metav1.Condition) workv1alpha2.Binding {
		b := scope.Bindings.New("shop")
		b.BindingStatus().Conditions = conditions
		return b
	}
	fault := func(operation configv1alpha1.InterpreterOperation) metav1.Condition {
		return metav1.Condition{Type: string(operation), Status: metav1.ConditionFalse, Reason: interpret.ReasonFault}
	}
	got := notInterpreted([]workv1alpha2.Binding{
		with(fault(configv1alpha1.InterpreterOperationInterpretHealth), fault(configv1alpha1.InterpreterOperationRetain)),
		with(fault(configv1alpha1.InterpreterOperationInterpretHealth)),
		with(metav1.Condition{Type: "Retain", Status: metav1.ConditionFalse, Reason: "Other"}),
		with(),
	})
	want := map[configv1alpha1.InterpreterOperation]int{
		configv1alpha1.InterpreterOperationInterpretReplica: 0, configv1alpha1.InterpreterOperationInterpretComponent: 0,
		configv1alpha1.InterpreterOperationReviseReplica: 0, configv1alpha1.InterpreterOperationRetain: 1,
		configv1alpha1.InterpreterOperationAggregateStatus: 0, configv1alpha1.InterpreterOperationInterpretStatus: 0,
		configv1alpha1.InterpreterOperationInterpretHealth: 2, configv1alpha1.InterpreterOperationInterpretDependency: 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
