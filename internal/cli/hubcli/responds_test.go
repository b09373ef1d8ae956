package hubcli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// Unjoin explains that everything stays in a member that does not respond. That is not true for a member that only
// rejects this request.
func TestMemberRespondsIfItRejectsARequest(t *testing.T) {
	for story, tc := range map[string]struct {
		code   int
		causes string
		silent bool
	}{
		"it answers": {code: http.StatusOK},
		"it does not answer the hub": {code: http.StatusServiceUnavailable,
			causes: `{"reason": "ClusterNotReachable"}`, silent: true},
		"there is no token to act as users with":   {code: http.StatusServiceUnavailable},
		"too many requests are on their way to it": {code: http.StatusTooManyRequests},
		"this user may not ask":                    {code: http.StatusForbidden},
		"it is not well":                           {code: http.StatusInternalServerError},
	} {
		t.Run(story, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "details": {"causes": [%s]}}`, tc.code, tc.causes)
			}))
			defer api.Close()
			if err := Responds(t.Context(), &rest.Config{Host: api.URL}, "eu"); (err != nil) != tc.silent {
				t.Errorf("it is not responding: %v", err)
			}
		})
	}
}
