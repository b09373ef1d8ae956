package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func TestAPIEnablementsAreSortedAndWithoutSubresources(t *testing.T) {
	got := APIEnablements([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}, {Name: "pods/log", Kind: "Pod"},
			{Name: "configmaps", Kind: "ConfigMap"}}},
		{GroupVersion: "empty/v1"},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"},
			{Name: "deployments/scale", Kind: "Scale"}}},
	})
	want := []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"},
			{Name: "pods", Kind: "Pod"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected enablements (-want +got):\n%s", diff)
	}
}

func TestCompleteAPIEnablementsNamesMissingKinds(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	some := []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}
	for name, tc := range map[string]struct {
		apis            []clusterv1alpha1.APIEnablement
		failed          map[string]string
		status          metav1.ConditionStatus
		reason, message string
	}{
		"all": {some, nil, "True", "Complete", "collected complete APIEnablements"},
		"some": {some, map[string]string{"b/v1": "down", "a/v1": "stale"}, "False", "Partial",
			"might collect partial APIEnablements: a/v1: stale; b/v1: down"},
		"none": {nil, nil, "False", "Empty", "collected empty APIEnablements"},
	} {
		t.Run(name, func(t *testing.T) {
			got := CompleteAPIEnablements(nil, tc.apis, tc.failed, now)
			want := metav1.Condition{Type: "CompleteAPIEnablements", Status: tc.status, Reason: tc.reason, Message: tc.message,
				LastTransitionTime: metav1.NewTime(now)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected condition (-want +got):\n%s", diff)
			}
			if again := CompleteAPIEnablements(&got, tc.apis, tc.failed, now.Add(time.Hour)); again != got {
				t.Errorf("an hour later the same became %v", again)
			}
		})
	}
}

// The API rejects a status with a message above 32768 characters, and then the member would never become NotReady.
func TestFailedDiscoveryMessageIsLimited(t *testing.T) {
	failed := map[string]string{}
	for i := range 1000 {
		failed[fmt.Sprintf("g%04d.io/v1", i)] = strings.Repeat("x", 1000*(i%3+1))
	}
	c := CompleteAPIEnablements(nil, nil, failed, time.Now())
	if len(c.Message) > 32768 || !strings.Contains(c.Message, "g0000.io/v1: xxx") ||
		!strings.Contains(c.Message, "and 980 more") {
		t.Errorf("it has %d characters: %.100s", len(c.Message), c.Message)
	}
}
