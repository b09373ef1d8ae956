package membercli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestGetFailoversListsCurrentAndFormerEvictions(t *testing.T) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": nil, "us": nil})
	s.ServeBindings()
	began := metav1.NewTime(time.Now().Add(-7 * time.Minute).Truncate(time.Second))
	record := fmt.Sprintf(`"since": %q, "reason": "TaintUntolerated", "to": [{"name": "us", "replicas": 2}]`,
		began.UTC().Format(time.RFC3339))
	ended := fmt.Sprintf(`, "ended": %q`, time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339))
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: "eu", Reason: "TaintUntolerated", Producer: "TaintManager", CreationTimestamp: &began}
	for name, tasks := range map[string][]workv1alpha2.GracefulEvictionTask{"web": {task}, "api": nil} {
		s.Api.Put(&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		b := clitest.BoundDeployment(name, tasks...)
		of := record
		if tasks == nil {
			of += ended
		}
		b.Annotations[wellknown.FailoverAnnotation] = `{"eu": {` + of + `}}`
		s.Api.Put(b)
	}
	out, _, err := s.Run(NewGet, "", "failovers")
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
	for _, args := range [][]string{{"failovers", "api"}, {"failover", "api", "-o", "wide"}} {
		if out, _, err := s.Run(NewGet, "", args...); err != nil || !strings.Contains(out, "Deployment   api") ||
			strings.Contains(out, "web") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, _, err = s.Run(NewGet, "", "failovers", "-o", "json")
	waits := strings.Contains(out, `"waitingFor": "ReplacementNotHealthy"`) && strings.Contains(out, `cluster \"us\"`)
	if err != nil || !waits {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}
