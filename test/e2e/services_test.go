package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// webService is a Service for the pods of a Deployment called web.
const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %s}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}`

// podIPs are the addresses of web's pods in members, sorted.
func podIPs(t *testing.T, ns string, members ...string) (all []string) {
	t.Helper()
	for _, m := range members {
		var list corev1.PodList
		if err := fleet.Members[m].List(t.Context(), &list, client.InNamespace(ns),
			client.MatchingLabels{"app": "web"}); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil && p.Status.PodIP != "" {
				all = append(all, m+" "+p.Status.PodIP)
			}
		}
	}
	slices.Sort(all)
	return all
}

// sentAddresses returns the addresses that the hub sent to a member for a Service, each with its source, sorted.
func sentAddresses(t *testing.T, member, ns, service string) (all []string) {
	t.Helper()
	var list discoveryv1.EndpointSliceList
	if err := fleet.Members[member].List(t.Context(), &list, client.InNamespace(ns),
		client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		from := s.Annotations["endpointslice.karmada.io/provision-cluster"]
		for _, e := range s.Endpoints {
			if from != "" {
				all = append(all, from+" "+e.Addresses[0])
			}
		}
	}
	slices.Sort(all)
	return all
}

// knows waits until a member has the addresses of that many pods of other members, and no other addresses.
func knows(t *testing.T, member, ns, service string, pods int, others ...string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%s reaches the %d pods of %v by %s", member, pods, others, service), func() string {
		want, got := podIPs(t, ns, others...), sentAddresses(t, member, ns, service)
		if len(want) != pods || !slices.Equal(want, got) {
			return fmt.Sprintf("pods have %v, it was told of %v", want, got)
		}
		return ""
	})
}

func TestExportedServiceIsReachableWhereImported(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "web", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}, {apiVersion: v1, kind: Service, name: web}],
		placement: {clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`))
	fleet.Hub.Apply(t, deployment(ns, "web", 4, "nginx:1"))
	fleet.Hub.Apply(t, fmt.Sprintf(webService, ns))

	// Members do not have the API of exports; the hub creates what they need.
	const group = "multicluster.x-k8s.io/v1alpha1"
	fleet.Hub.Apply(t, policy(ns, "export", group, "ServiceExport", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, policy(ns, "import", group, "ServiceImport", placedOn("m3")))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: ServiceExport, metadata: {name: web, namespace: %s}}", group,
		ns))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: %s, kind: ServiceImport, metadata: {name: web, namespace: %s}, spec: {type: ClusterSetIP, ports: [{name: http, port: 80}]}}", group, ns))

	knows(t, "m3", ns, "derived-web", 4, "m1", "m2")
	kit.Eventually(t, "exports and imports are in their members", func() string {
		return applied(t, ns, "web-serviceexport", "m1", "m2") + applied(t, ns, "web-serviceimport", "m3")
	})
	if ip, _ := inMember(t, "m3", "v1", "Service", ns, "derived-web", "spec", "clusterIP").(string); ip == "" ||
		ip == "None" {
		t.Errorf("the derived Service has the address %q", ip)
	}
	waitFor(t, "the import says who exports", "m1 m2", func() string {
		list, _ := kit.Field(fleet.Hub.Find(t, group, "ServiceImport", ns, "web"), "status", "clusters").([]any)
		var names []string
		for _, c := range list {
			names = append(names, c.(map[string]any)["cluster"].(string))
		}
		return strings.Join(names, " ")
	})

	// Pods come and go.
	scale(t, ns, "web", 6)
	knows(t, "m3", ns, "derived-web", 6, "m1", "m2")

	// m2 exports it no more, but runs it on.
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "export",
		func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"m1"}, "spec", "placement", "clusterAffinity",
				"clusterNames")
		})
	knows(t, "m3", ns, "derived-web", 3, "m1")

	// Whoever deletes what the hub brought gets it again.
	var list discoveryv1.EndpointSliceList
	if err := fleet.Members["m3"].List(t.Context(), &list, client.InNamespace(ns),
		client.MatchingLabels{discoveryv1.LabelServiceName: "derived-web"}); err != nil || len(list.Items) == 0 {
		t.Fatalf("slices %v, %v", list.Items, err)
	}
	if name := list.Items[0].Name; !strings.HasPrefix(name, "imported-m1-web-") {
		t.Errorf("a slice is called %s", name)
	}
	fleet.Members["m3"].Remove(t, "discovery.k8s.io/v1", "EndpointSlice", ns, list.Items[0].Name)
	knows(t, "m3", ns, "derived-web", 3, "m1")

	fleet.Hub.Remove(t, group, "ServiceImport", ns, "web")
	kit.Eventually(t, "nothing is left of the import", func() string {
		if got := sentAddresses(t, "m3", ns, "derived-web"); len(got) > 0 {
			return fmt.Sprint(got)
		}
		if fleet.Members["m3"].Find(t, "v1", "Service", ns, "derived-web") != nil {
			return "the derived Service is there"
		}
		return ""
	})
}

func TestAMultiClusterServiceIsReachedUnderItsOwnName(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "web", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		placement: {clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`))
	fleet.Hub.Apply(t, deployment(ns, "web", 4, "nginx:1"))
	fleet.Hub.Apply(t, fmt.Sprintf(webService, ns))
	const group = "networking.karmada.io/v1alpha1"
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: MultiClusterService, metadata: {name: web, namespace: %s}, spec: {types: [CrossCluster],
		providerClusters: [{name: m1}, {name: m2}], consumerClusters: [{name: m2}, {name: m3}]}}`, group, ns))

	kit.Eventually(t, "the Service is where it is provided and consumed", func() string {
		return applied(t, ns, "web-service", "m1", "m2", "m3")
	})
	knows(t, "m3", ns, "web", 4, "m1", "m2")
	knows(t, "m2", ns, "web", 2, "m1") // its own it has itself
	if got := sentAddresses(t, "m1", ns, "web"); len(got) > 0 {
		t.Errorf("m1 consumes nothing, and was told of %v", got)
	}
	for _, condition := range []string{"ServiceApplied", "EndpointSliceDispatched"} {
		waitFor(t, condition, "True "+condition+"Succeed", func() string {
			list, _ := kit.Field(fleet.Hub.Find(t, group, "MultiClusterService", ns, "web"), "status", "conditions").([]any)
			for _, c := range list {
				if c := c.(map[string]any); c["type"] == condition {
					return fmt.Sprint(c["status"], " ", c["reason"])
				}
			}
			return "none"
		})
	}

	scale(t, ns, "web", 2)
	knows(t, "m3", ns, "web", 2, "m1", "m2")

	fleet.Hub.Remove(t, group, "MultiClusterService", ns, "web")
	kit.Eventually(t, "no event was recorded of endpoints any more", func() string {
		return strings.Join(append(sentAddresses(t, "m3", ns, "web"), sentAddresses(t, "m2", ns, "web")...), ", ")
	})
	if fleet.Members["m3"].Find(t, "v1", "Service", ns, "web") == nil {
		t.Error("the Service went with it")
	}
}
