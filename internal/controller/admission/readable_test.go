package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// A klusterlet or an agent writes the status of some objects. The schema accepts times that encoding/json does not.
func TestAStatusThatCannotBeReadIsRefused(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		options := Options{Scheme: func() (*runtime.Scheme, error) { return controllertest.Scheme(), nil }}
		o := newObjects(nil, options)
		for _, of := range []string{
			"work.karmada.io/v1alpha1, kind: Work",
			"work.karmada.io/v1alpha2, kind: ResourceBinding",
			"cluster.karmada.io/v1alpha1, kind: Cluster",
			"work.open-cluster-management.io/v1, kind: ManifestWork",
			"work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet",
			"cluster.open-cluster-management.io/v1, kind: ManagedCluster",
			"cluster.open-cluster-management.io/v1beta1, kind: Placement",
			"cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet",
			"addon.open-cluster-management.io/v1beta1, kind: ManagedClusterAddOn",
			"addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn",
			"release.argosy.io/v1alpha1, kind: Release",
		} {
			status := func(at string) (err error) {
				obj := object(t, `{apiVersion: `+of+`, metadata: {name: it, namespace: eu}, status: {conditions: [{type: Applied,
					status: "True", reason: Reported, message: "", lastTransitionTime: "`+at+`"}]}}`)
				return o.refuseUnreadable(admission.NewAttributesRecord(obj, obj, obj.GroupVersionKind(), "eu", "it",
					schema.GroupVersionResource{}, "status", admission.Update, nil, false, &user.DefaultInfo{Name: "agent"}))
			}
			if err := status("2026-01-01T00:00:00Z"); err != nil {
				t.Errorf("%s: %v", of, err)
			}
			if err := status("2026-01-01t00:00:00z"); err == nil || !strings.Contains(err.Error(), "2026-01-01t00:00:00z") {
				t.Errorf("%s with a time in lower case: %v", of, err)
			}
		}
		// The schema would not refuse it.
		mw := object(t, `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: it, namespace: eu},
			spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}, status: {conditions: [
			{type: Applied, status: "True", reason: Reported, message: "", lastTransitionTime: "2026-01-01t00:00:00z"}]}}`)
		_, _, err := newHubWith(t, options).writeTo("status", "agent", mw, mw)
		if err == nil || !strings.Contains(err.Error(), "parsing time") {
			t.Errorf("through the schema: %v", err)
		}
	})
}
