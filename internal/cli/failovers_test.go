package cli

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/failover"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

func TestGetFailoversListsWhatLeavesAndWhatHasLeft(t *testing.T) {
	s := see(t, map[string]*membertest.Server{"eu": nil, "us": nil})
	kind := func(gv schema.GroupVersion, kind, plural string, namespaced bool) membertest.Kind {
		return membertest.Kind{GroupVersionKind: gv.WithKind(kind), Plural: plural, Namespaced: namespaced}
	}
	for _, served := range []membertest.Kind{kind(workv1alpha2.GroupVersion, "ResourceBinding", "resourcebindings", true), kind(workv1alpha2.GroupVersion, "ClusterResourceBinding", "clusterresourcebindings", false),
		kind(workv1alpha1.GroupVersion, "Work", "works", true), kind(appsv1.SchemeGroupVersion, "Deployment", "deployments", true)} {
		s.api.Serve(served)
	}
	began := metav1.NewTime(time.Now().Add(-7 * time.Minute).Truncate(time.Second))
	for _, name := range []string{"web", "api"} {
		s.api.Put(&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		placement := policyv1alpha1.Placement{}
		b := &workv1alpha2.ResourceBinding{TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment", Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(&placement)}}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		b.Spec.Placement = &placement
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "us"}}
		b.Generation, b.Status.SchedulerObservedGeneration = 1, 1
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: "Success"})
		b.Annotations[failover.RecordAnnotation] = `{"eu":{"since":"` + began.UTC().Format(time.RFC3339) + `","reason":"TaintUntolerated","to":[{"name":"us","replicas":2}]`
		if name == "web" {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "eu", Reason: "TaintUntolerated", Producer: "TaintManager", CreationTimestamp: &began}}
		} else {
			b.Annotations[failover.RecordAnnotation] += `,"ended":"` + time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339) + `"`
		}
		b.Annotations[failover.RecordAnnotation] += "}}"
		s.api.Put(b)
	}
	out, _, err := s.run(newGet, "", "failovers")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		t.Fatalf("listed are\n%s", out)
	}
	for i, want := range []string{"NAMESPACE KIND NAME FROM TO REASON WAITING FOR SINCE", "shop Deployment api eu us:2 TaintUntolerated ended ", "shop Deployment web eu us:2 TaintUntolerated ReplacementNotHealthy "} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	out, _, err = s.run(newGet, "", "failovers", "-o", "json")
	if err != nil || !strings.Contains(out, `"waitingFor": "ReplacementNotHealthy"`) || !strings.Contains(out, `cluster \"us\"`) {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}
