package apiserver

import (
	"slices"
	"testing"
)

func TestFailedChecksAreReadFromTheHealthEndpoint(t *testing.T) {
	for body, want := range map[string]NotReadyError{
		"[+]ping ok\n[-]etcd failed: reason withheld\n[-]kms-providers failed: reason withheld\nreadyz check failed\n": {
			Checks: []string{"etcd", "kms-providers"}, Response: "etcd failed, kms-providers failed"},
		"not\nready": {Response: "not ready"},
	} {
		if got := failedChecks(body); !slices.Equal(got.Checks, want.Checks) || got.Response != want.Response {
			t.Errorf("%q is read as %q, %q; want %q, %q", body, got.Checks, got.Response, want.Checks, want.Response)
		}
	}
}
