package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// countEvents counts events by object and reason, without those of clusters.
func countEvents(h *controllertest.Hub) map[string]int {
	out := map[string]int{}
	for _, e := range h.Events() {
		if about, _, _ := strings.Cut(e, ":"); !strings.HasPrefix(about, "Cluster ") {
			out[about]++
		}
	}
	return out
}

// A ConfigMap to three members costs 9 writes and its events: those of the default are the one that makes it 10.
func TestSuccessEventsFollowConfiguration(t *testing.T) {
	for level, want := range map[commit.SuccessEvents]map[string]int{
		commit.SuccessEventsNone:    {},
		commit.SuccessEventsDefault: {"ResourceBinding ScheduleBindingSucceed": 1},
		commit.SuccessEventsAll: {
			"ConfigMap ApplyPolicySucceed":           1,
			"PropagationPolicy ApplyPolicySucceed":   1,
			"ConfigMap ScheduleBindingSucceed":       1,
			"ConfigMap SyncWorkSucceed":              1,
			"ResourceBinding ScheduleBindingSucceed": 1,
			"ResourceBinding SyncWorkSucceed":        1,
			"ResourceBinding AggregateStatusSucceed": 1,
			"Work WorkDispatching":                   3,
			"Work SyncSucceed":                       3,
			"Work ReflectStatusSucceed":              3,
			"Work InterpretHealthSucceed":            3,
		},
	} {
		t.Run(string(level), func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h, _ := fleetWith(t, Options{Successes: level})
				h.Quiet()
				before := countEvents(h)
				p := policy("shop", "v1", "ConfigMap")
				h.Make(p)
				h.Quiet()
				h.Make(claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
					Data: map[string]string{"a": "b"}}, p))
				h.Eventually("everything is applied", func() string {
					b := &workv1alpha2.ResourceBinding{}
					if err := h.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "settings-configmap"}, b); err != nil ||
						!meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
						return fmt.Sprintf("%v %+v", err, b.Status)
					}
					return ""
				})
				if n := len(h.Quiet()); n != 9 {
					t.Errorf("%d writes besides events, want 9", n)
				}
				got := countEvents(h)
				for about, n := range before {
					if got[about] -= n; got[about] == 0 {
						delete(got, about)
					}
				}
				if !maps.Equal(got, want) {
					t.Errorf("reported: %v, want %v", got, want)
				}
			})
		})
	}
}

func TestOverridesAndDependenciesAreReportedByDefault(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, controllertest.Deployment)
		p := policy("shop", "apps/v1", "Deployment").(*policyv1alpha1.PropagationPolicy)
		p.Spec.PropagateDeps = true
		h.Make(p)
		h.Make(&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"},
			Spec: policyv1alpha1.OverrideSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
				OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
					LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverriderOpAdd,
						Value: map[string]string{"a": "b"}}}}}},
			}})
		h.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
		h.Quiet()
		labels := map[string]string{"app": "web"}
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "nginx"}},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}}}}}
		h.Make(claimed(web, p))
		h.Eventually("the dependency follows", func() string {
			if members["m1"].Object(membertest.ConfigMap, "shop", "settings") == nil {
				return "m1 lacks it"
			}
			return ""
		})
		want := []string{
			"Deployment ApplyOverridePolicySucceed: Apply override policy(shop/o) for cluster(m1, m2, m3) succeed.",
			"Deployment GetDependenciesSucceed: Get dependencies(ConfigMap shop/settings) succeed.",
			"ResourceBinding SyncScheduleResultToDependenciesSucceed: Sync schedule results to dependencies succeed.",
		}
		h.Eventually("it is reported", func() string {
			var lacks []string
			for _, w := range want {
				if !slices.Contains(h.Events(), w) {
					lacks = append(lacks, w)
				}
			}
			if len(lacks) > 0 {
				return fmt.Sprintf("reported: %q, which lack %q", h.Events(), lacks)
			}
			return ""
		})
	})
}
