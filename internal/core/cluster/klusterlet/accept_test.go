package klusterlet

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAcceptanceHasTheTextsThatToolsKnow(t *testing.T) {
	failed := errors.Join(errors.New("role a: no"), errors.New("role b: no"))
	for story, tc := range map[string]struct {
		accepts bool
		failed  error
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"accepted":             {true, nil, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"},
		"denied":               {false, nil, "False", "HubClusterAdminDenied", "Denied by hub cluster admin"},
		"accepted, and failed": {true, failed, "False", "Error", "role a: no\nrole b: no"},
		"denied, and failed":   {false, failed, "False", "Error", "role a: no\nrole b: no"},
	} {
		mc := managed(60)
		mc.Spec.HubAcceptsClient = tc.accepts
		want := metav1.Condition{Type: "HubAcceptedManagedCluster", Status: tc.status, Reason: tc.reason,
			Message: tc.message, LastTransitionTime: metav1.NewTime(now)}
		if got := Acceptance(mc, tc.failed, now); got != want {
			t.Errorf("%s: %+v, want %+v", story, got, want)
		}
	}
	if got := Acceptance(managed(60), errors.New(strings.Repeat("x", 1<<16)), now); len(got.Message) > 32<<10 {
		t.Errorf("the message has %d characters, which an API server refuses", len(got.Message))
	}
}
