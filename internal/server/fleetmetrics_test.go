package server

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/argosy-io/argosy/test/kit"
)

// An APIService of a user, such as that of Karmada's metrics adapter, is served in place of the hub's own metrics.
func TestMetricsOfTheFleetGiveWayToAnAPIService(t *testing.T) {
	h := useSharedHub(t)
	const own = "custom.metrics.k8s.io"
	// listed reports whether discovery lists the version that only the hub serves.
	listed := func() bool {
		groups, err := h.admin.Discovery().ServerGroups()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
			return g.Name == own && slices.ContainsFunc(g.Versions,
				func(v metav1.GroupVersionForDiscovery) bool { return v.Version == "v1beta2" })
		})
	}
	ask := func(path string) error {
		return h.admin.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
	}
	const metric = "/apis/" + own + "/v1beta1/namespaces/default/pods/*/hits"
	serves := func(what string, want bool, is func(error) bool) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			if got, err := listed(), ask(metric); got != want || !is(err) {
				return fmt.Sprintf("discovery lists it: %t, and a metric gives %v", got, err)
			}
			return ""
		})
	}
	if err := clientAs(t, h.adminConfig, "nobody").Discovery().RESTClient().Get().AbsPath(
		"/apis/metrics.k8s.io/v1beta1/nodes").Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role gets %v", err)
	}
	serves("the hub serves custom metrics", true, func(err error) bool { return err != nil })

	services := dynamic.NewForConfigOrDie(h.adminConfig).Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	if _, err := services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1." + own},
		"spec": map[string]any{"group": own, "version": "v1beta1", "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(200),
			"service": map[string]any{"namespace": "default", "name": "metrics-adapter"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serves("the aggregator answers", false, apierrors.IsServiceUnavailable)
	if err := services.Delete(t.Context(), "v1beta1."+own, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	serves("the hub serves custom metrics again", true, func(err error) bool { return err != nil })
}
