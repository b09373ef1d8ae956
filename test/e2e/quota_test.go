package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// used is what a quota of the hub counts of a resource, as its status says; empty without.
func used(t *testing.T, ns, name, resource string) string {
	t.Helper()
	u := fleet.Hub.Find(t, "v1", "ResourceQuota", ns, name)
	if u == nil {
		return "no quota"
	}
	n, _ := kit.Field(u, "status", "used", resource).(string)
	return n
}

func TestAQuotaOfTheHubBoundsTemplatesOfAnyKind(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: ResourceQuota
metadata: {name: bound, namespace: %s}
spec: {hard: {count/deployments.apps: "1", count/clonesets.apps.kruise.io: "1", count/resourcebindings.work.karmada.io: "0"}}`, ns))
	for _, resource := range []string{"count/deployments.apps", "count/clonesets.apps.kruise.io"} {
		waitFor[any](t, resource+" is counted", "0", func() any { return used(t, ns, "bound", resource) })
	}
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", placedOn("m1")))
	template := func(apiVersion, kind, name string) string {
		return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: busybox}]}}}}`,
			apiVersion, kind, name, ns)
	}
	for resource, of := range map[string][2]string{"deployments.apps": {"apps/v1", "Deployment"},
		"clonesets.apps.kruise.io": {"apps.kruise.io/v1alpha1", "CloneSet"}} {
		if err := fleet.Hub.Create(t.Context(), kit.Object(t, template(of[0], of[1], "first"))); err != nil {
			t.Fatal(err)
		}
		err := fleet.Hub.Create(t.Context(), kit.Object(t, template(of[0], of[1], "second")))
		want := fmt.Sprintf("exceeded quota: bound, requested: count/%s=1, used: count/%s=1, limited: count/%s=1", resource,
			resource, resource)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("a second one of %s: %v, want it refused: %s", resource, err, want)
		}
	}
	kit.Eventually(t, "the hub's own binding is not refused", func() string {
		return lacks(t, "apps/v1", "Deployment", ns, "first", "m1")
	})

	fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, "first")
	kit.Eventually(t, "room is counted again", func() string {
		if err := fleet.Hub.Create(t.Context(), kit.Object(t, template("apps/v1", "Deployment", "second"))); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestClaimedQuotaAppliesInMembersAndNotOnTheHub(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ResourceQuota", placedOn("m1")))
	fleet.Hub.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: ResourceQuota
metadata: {name: theirs, namespace: %s}
spec: {hard: {count/secrets: "0", count/configmaps: "5"}}`, ns))
	kit.Eventually(t, "the member has it", func() string { return lacks(t, "v1", "ResourceQuota", ns, "theirs", "m1") })
	waitFor[any](t, "the member counts", "0", func() any {
		return inMember(t, "m1", "v1", "ResourceQuota", ns, "theirs", "status", "used", "count/secrets")
	})
	secret := kit.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}}`, ns))
	if err := fleet.Hub.Create(t.Context(), secret); err != nil {
		t.Errorf("on the hub it refuses %v", err)
	}
	if n := used(t, ns, "theirs", "count/secrets"); n != "" {
		t.Errorf("the hub counts %s", n)
	}
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "p")
	waitFor[any](t, "without a policy the hub counts", "1", func() any { return used(t, ns, "theirs", "count/secrets") })
	another := kit.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: another, namespace: %s}}`, ns))
	// The admission reads the quota from a cache of its own, which follows the count.
	kit.Eventually(t, "without a policy the hub refuses another", func() string {
		if err := fleet.Hub.Create(t.Context(), another.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("it lets it through: %v", err)
		}
		return ""
	})
}

// Each is a way to have one more object, or more of one, than a quota that has room for one.
func TestNoWayOfWritingGoesAroundAQuotaOfTheHub(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	// It comes by itself. Kubernetes counts what is made at the same moment as its quota some minutes later.
	kit.Eventually(t, "kube-root-ca.crt is there", func() string {
		if fleet.Hub.Find(t, "v1", "ConfigMap", ns, "kube-root-ca.crt") == nil {
			return "it is not"
		}
		return ""
	})
	fleet.Hub.Apply(t, fmt.Sprintf(`apiVersion: v1
kind: ResourceQuota
metadata: {name: bound, namespace: %s}
spec: {hard: {count/configmaps: "2", count/leases.coordination.k8s.io: "1", count/propagationpolicies.policy.karmada.io: "1"}}`, ns))
	waitFor[any](t, "ConfigMaps are counted", "1", func() any { return used(t, ns, "bound", "count/configmaps") })
	waitFor[any](t, "Leases are counted", "0",
		func() any { return used(t, ns, "bound", "count/leases.coordination.k8s.io") })
	waitFor[any](t, "policies are counted", "0", func() any {
		return used(t, ns, "bound", "count/propagationpolicies.policy.karmada.io")
	})
	configMap := func(name string) *unstructured.Unstructured {
		return kit.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}`, name, ns))
	}
	dry := configMap("dry")
	if err := fleet.Hub.Client.Create(t.Context(), dry, client.DryRunAll); err != nil {
		t.Errorf("a dry run that fits: %v", err)
	}
	// Many at once: the place that is left is given once.
	made := make(chan error, 20)
	for i := range cap(made) {
		go func() { made <- fleet.Hub.Client.Create(context.Background(), configMap(fmt.Sprint("c", i))) }()
	}
	got := 0
	for range cap(made) {
		if err := <-made; err == nil {
			got++
		} else if !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
			t.Errorf("a create at the same time: %v", err)
		}
	}
	if got > 1 {
		t.Errorf("%d of %d at once were let through, where one fits", got, cap(made))
	}
	if got == 0 { // all were in each other's way
		if err := fleet.Hub.Client.Create(t.Context(), configMap("alone")); err != nil {
			t.Fatalf("one that fits: %v", err)
		}
	}
	waitFor[any](t, "the quota is full", "2", func() any { return used(t, ns, "bound", "count/configmaps") })

	named := configMap("x")
	named.SetName("")
	named.SetGenerateName("x-")
	lease := func(name string) client.Object {
		return kit.Object(t, fmt.Sprintf(
			`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: %s}}`, name, ns))
	}
	if err := fleet.Hub.Client.Create(t.Context(), lease("first")); err != nil {
		t.Fatal(err)
	}
	for way, try := range map[string]func() error{
		"a create":         func() error { return fleet.Hub.Client.Create(t.Context(), configMap("x")) },
		"a generated name": func() error { return fleet.Hub.Client.Create(t.Context(), named) },
		"a dry run":        func() error { return fleet.Hub.Client.Create(t.Context(), configMap("x"), client.DryRunAll) },
		"an apply": func() error {
			return fleet.Hub.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(configMap("x")),
				client.FieldOwner("me"), client.ForceOwnership)
		},
		"an update that makes a Lease": func() error { return fleet.Hub.Client.Update(t.Context(), lease("second")) },
	} {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: bound") {
			t.Errorf("%s: %v, want it refused", way, err)
		}
	}

	// Policies are bounded too, each of which makes bindings and Works.
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1")))
	other := kit.Object(t, policy(ns, "q", "v1", "ConfigMap", placedOn("m1")))
	kit.Eventually(t, "a second policy is refused", func() string {
		if err := fleet.Hub.Client.Create(t.Context(), other.DeepCopy()); !apierrors.IsForbidden(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
}
