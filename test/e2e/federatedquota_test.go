package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// A namespace has a quota of two replicas, and a ResourceQuota in m1.
func TestFederatedResourceQuotaBoundsANamespace(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	const group, kind = "policy.karmada.io/v1alpha1", "FederatedResourceQuota"
	quota := func(cpu string) string {
		return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: team, namespace: %s}
spec: {overall: {cpu: %s, memory: 1Gi}, staticAssignments: [{clusterName: m1, hard: {cpu: %[4]s}}]}`, group, kind, ns, cpu)
	}
	fleet.Hub.Apply(t, quota("20m"))
	kit.Eventually(t, "m1 has the ResourceQuota", func() string {
		return lacks(t, "v1", "ResourceQuota", ns, "team", "m1")
	})
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", placedOn("m1")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	kit.Eventually(t, "it is placed", func() string { return placed(t, ns, "web-deployment", "m1") })
	used := func() any {
		return kit.Field(fleet.Hub.Find(t, group, kind, ns, "team"), "status", "overallUsed", "cpu")
	}
	waitFor[any](t, "the hub counts", "10m", used)

	// Whoever scales it up is warned, and its pods stay.
	c, heard := listening(t, "")
	scaled := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
	if err := unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "it is scaled", func() string {
		if err := c.Update(t.Context(), scaled); err != nil {
			version := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web").GetResourceVersion()
			scaled.SetResourceVersion(version)
			return err.Error()
		}
		return ""
	})
	if text := heard.take(); !strings.Contains(text, "limits cpu to 20m") {
		t.Errorf("the user is warned %q", text)
	}
	kit.Eventually(t, "the binding says why it is not scaled", func() string {
		b := binding(t, ns, "web-deployment")
		if b == nil {
			return "there is no binding"
		}
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if c == nil || c.Reason != workv1alpha2.ReasonQuotaExceeded || !strings.Contains(c.Message,
			fmt.Sprintf("FederatedResourceQuota(%s/team) exceeded for resource cpu: requested sum 30m, limit 20m", ns)) {
			return fmt.Sprint(c)
		}
		return ""
	})
	if n := inMember(t, "m1", "apps/v1", "Deployment", ns, "web", "spec", "replicas"); fmt.Sprint(n) != "1" {
		t.Errorf("m1 has %v replicas", n)
	}
	out := argosy(t, "why", "deployment", "web", "-n", ns)
	if !strings.Contains(out, "raise overall.cpu of FederatedResourceQuota team to 30m") {
		t.Errorf("why says\n%s", out)
	}

	// An administrator of the namespace cannot raise the quota; one of the hub can.
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: dev, namespace: %s},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: User, name: dev-%[1]s, apiGroup: rbac.authorization.k8s.io}]}`, ns))
	dev, _ := listening(t, "dev-"+ns)
	kit.Eventually(t, "the developer may write Deployments", func() string {
		web := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
		labels := web.GetLabels()
		labels["seen"] = "yes"
		web.SetLabels(labels)
		if err := dev.Update(t.Context(), web); err != nil {
			return err.Error()
		}
		return ""
	})
	stored := fleet.Hub.Find(t, group, kind, ns, "team")
	if err := dev.Update(t.Context(), stored); !apierrors.IsForbidden(err) {
		t.Errorf("the developer changes the quota: %v", err)
	}
	if err := dev.Delete(t.Context(), stored); !apierrors.IsForbidden(err) {
		t.Errorf("the developer deletes the quota: %v", err)
	}
	fleet.Hub.Apply(t, quota("30m"))
	waitFor[any](t, "m1 has all replicas", "3", func() any {
		return fmt.Sprint(inMember(t, "m1", "apps/v1", "Deployment", ns, "web", "spec", "replicas"))
	})
	waitFor[any](t, "the hub counts", "30m", used)
	fleet.Hub.Remove(t, group, kind, ns, "team")
	kit.Eventually(t, "m1 has no ResourceQuota", func() string { return lacks(t, "v1", "ResourceQuota", ns, "team") })
}
