package search

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/search"
)

func TestConditionOfARegistry(t *testing.T) {
	openSearch := searchv1alpha1.ResourceRegistry{Spec: searchv1alpha1.ResourceRegistrySpec{
		BackendStore: &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{}}}}
	for _, c := range []struct {
		registry searchv1alpha1.ResourceRegistry
		report   search.Report
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		{report: search.Report{Resources: 2, Clusters: 3, Objects: 1234, Bytes: 34 << 20}, status: metav1.ConditionTrue,
			reason: searchv1alpha1.ReasonCached, message: "2 resources in 3 clusters: about 1000 objects, 30Mi"},
		{report: search.Report{Problems: []string{"no selected cluster that responds serves Ship of example.com/v1"}},
			status: metav1.ConditionFalse, reason: searchv1alpha1.ReasonIncomplete,
			message: "not cached: no selected cluster that responds serves Ship of example.com/v1"},
		{report: search.Report{Problems: []string{"a", "b", "c", "d", "e"}}, status: metav1.ConditionFalse,
			reason: searchv1alpha1.ReasonIncomplete, message: "not cached: a; b; c; and 2 others"},
		{registry: openSearch, status: metav1.ConditionFalse, reason: searchv1alpha1.ReasonBackendNotSupported,
			message: "does not write into OpenSearch"},
	} {
		got := Condition(&c.registry, c.report)
		if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
			t.Errorf("the condition is %+v, want %s %s with %q", got, c.status, c.reason, c.message)
		}
	}
}
