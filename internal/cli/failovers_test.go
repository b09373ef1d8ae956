package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// serveBindings makes the hub serve the kinds that failovers depend on.
func (s *seeing) serveBindings() {
	for _, k := range []struct {
		gv           schema.GroupVersion
		kind, plural string
		namespaced   bool
	}{
		{workv1alpha2.GroupVersion, "ResourceBinding", "resourcebindings", true},
		{workv1alpha2.GroupVersion, "ClusterResourceBinding", "clusterresourcebindings", false},
		{policyv1alpha1.GroupVersion, "PropagationPolicy", "propagationpolicies", true},
		{policyv1alpha1.GroupVersion, "ClusterPropagationPolicy", "clusterpropagationpolicies", false},
		{workv1alpha1.GroupVersion, "Work", "works", true},
		{appsv1.SchemeGroupVersion, "Deployment", "deployments", true},
		{releasev1alpha1.GroupVersion, "Release", "releases", true},
		{ocmv1.GroupVersion, "ManifestWork", "manifestworks", true},
	} {
		s.api.Serve(membertest.Kind{GroupVersionKind: k.gv.WithKind(k.kind), Plural: k.plural, Namespaced: k.namespaced})
	}
}

// boundDeployment returns the binding of a Deployment in namespace shop that is placed in cluster us.
func boundDeployment(name string, tasks ...workv1alpha2.GracefulEvictionTask) *workv1alpha2.ResourceBinding {
	placement := policyv1alpha1.Placement{}
	b := &workv1alpha2.ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment", Generation: 1},
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: name}
	b.Spec.Placement, b.Spec.GracefulEvictionTasks = &placement, tasks
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "us"}}
	b.Status.SchedulerObservedGeneration = 1
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: "Success"}}
	b.Annotations = map[string]string{
		policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(&placement)}
	return b
}

func TestGetFailoversListsCurrentAndFormerEvictions(t *testing.T) {
	s := see(t, map[string]*membertest.Server{"eu": nil, "us": nil})
	s.serveBindings()
	began := metav1.NewTime(time.Now().Add(-7 * time.Minute).Truncate(time.Second))
	record := fmt.Sprintf(`"since": %q, "reason": "TaintUntolerated", "to": [{"name": "us", "replicas": 2}]`,
		began.UTC().Format(time.RFC3339))
	ended := fmt.Sprintf(`, "ended": %q`, time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339))
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: "eu", Reason: "TaintUntolerated", Producer: "TaintManager", CreationTimestamp: &began}
	for name, tasks := range map[string][]workv1alpha2.GracefulEvictionTask{"web": {task}, "api": nil} {
		s.api.Put(&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		b := boundDeployment(name, tasks...)
		of := record
		if tasks == nil {
			of += ended
		}
		b.Annotations[wellknown.FailoverAnnotation] = `{"eu": {` + of + `}}`
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
	for i, want := range []string{
		"NAMESPACE KIND NAME FROM TO REASON WAITING FOR SINCE",
		"shop Deployment api eu us:2 TaintUntolerated ended ",
		"shop Deployment web eu us:2 TaintUntolerated ReplacementNotHealthy ",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	out, _, err = s.run(newGet, "", "failovers", "-o", "json")
	waits := strings.Contains(out, `"waitingFor": "ReplacementNotHealthy"`) && strings.Contains(out, `cluster \"us\"`)
	if err != nil || !waits {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

func TestStatusShowsFailovers(t *testing.T) {
	var out bytes.Buffer
	h := health{Healthy: true, Failovers: []failover.Move{
		{Kind: "Deployment", Namespace: "shop", Name: "web", From: "eu", Reason: "TaintUntolerated",
			WaitingFor: failover.NothingFits}}}
	if err := h.print(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if want := "shop Deployment web eu <none> TaintUntolerated NothingFits <unknown>"; !strings.Contains(text, want) {
		t.Errorf("status prints %q, without %q", text, want)
	}
	if strings.Contains(text, "All is well") {
		t.Errorf("status says that all is well: %q", text)
	}
}
