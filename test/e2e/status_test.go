package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

// status waits until fields of a template's status are as wanted; a missing field is <nil>.
func status(t *testing.T, apiVersion, kind, ns, name string, want map[string]any) {
	t.Helper()
	kit.Eventually(t, kind+" has the status of its members", func() string {
		u := fleet.Hub.Find(t, apiVersion, kind, ns, name)
		for field, value := range want {
			if got := kit.Field(u, append([]string{"status"}, strings.Split(field, ".")...)...); got != value {
				return fmt.Sprintf("%s is %v, want %v; all of it is %v", field, got, value, kit.Field(u, "status"))
			}
		}
		if seen := kit.Field(u, "status", "observedGeneration"); seen != nil && seen != u.GetGeneration() {
			return fmt.Sprintf("observedGeneration is %v of %d", seen, u.GetGeneration())
		}
		return ""
	})
}

// healths are the binding's answers by cluster, as "m1:Healthy m2:Unknown".
func healths(t *testing.T, ns, bindingName string) func() string {
	return func() string {
		b := binding(t, ns, bindingName)
		if b == nil {
			return ""
		}
		var all []string
		for _, item := range b.Status.AggregatedStatus {
			all = append(all, fmt.Sprintf("%s:%s", item.ClusterName, item.Health))
		}
		return strings.Join(all, " ")
	}
}

// podTemplate is the rest of a workload's spec.
func podTemplate(name, image string) string {
	return fmt.Sprintf(`selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: "%[2]s", resources: {requests: {cpu: 10m}}}]}}`, name, image)
}

func TestTheStatusesOfMembersComeBackAsOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		apiVersion, kind, spec string
		want                   map[string]any
	}{
		{"apps/v1", "Deployment", "{replicas: 2, " + podTemplate("x", "example.com/x:1") + "}",
			map[string]any{"replicas": int64(4), "readyReplicas": int64(4), "updatedReplicas": int64(4),
				"availableReplicas": int64(4)}},
		{"apps/v1", "StatefulSet", "{replicas: 2, serviceName: x, " + podTemplate("x", "example.com/x:1") + "}",
			map[string]any{"replicas": int64(4), "readyReplicas": int64(4), "updatedReplicas": int64(4),
				"availableReplicas": int64(4)}},
		{"apps/v1", "DaemonSet", "{" + podTemplate("x", "example.com/x:1") + "}",
			map[string]any{"desiredNumberScheduled": int64(6), "numberReady": int64(6), "updatedNumberScheduled": int64(6),
				"numberAvailable": int64(6)}},
		{"batch/v1", "Job", `{completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example.com/x:1"}]}}}`,
			map[string]any{"succeeded": int64(4)}},
		{"apps.kruise.io/v1alpha1", "CloneSet", "{replicas: 2, " + podTemplate("x", "example.com/x:1") + "}",
			map[string]any{"replicas": int64(4), "readyReplicas": int64(4), "updatedReplicas": int64(4),
				"updatedReadyReplicas": int64(4), "availableReplicas": int64(4)}},
		{"apps.kruise.io/v1beta1", "StatefulSet", "{replicas: 2, serviceName: x, " + podTemplate("x", "example.com/x:1") +
			"}",
			map[string]any{"replicas": int64(4), "readyReplicas": int64(4), "updatedReplicas": int64(4),
				"availableReplicas": int64(4)}},
	} {
		t.Run(strings.ReplaceAll(tt.apiVersion, "/", " ")+" "+tt.kind, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, policy(ns, "p", tt.apiVersion, tt.kind, placedOn("m1", "m2")))
			fleet.Hub.Apply(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x, namespace: %s}\nspec: %s",
				tt.apiVersion, tt.kind, ns, tt.spec))
			status(t, tt.apiVersion, tt.kind, ns, "x", tt.want)
			waitFor(t, "all members are healthy", "m1:Healthy m2:Healthy", healths(t, ns, "x-"+strings.ToLower(tt.kind)))
			if tt.kind == "Job" {
				conditions := fmt.Sprint(kit.Field(fleet.Hub.Find(t, tt.apiVersion, tt.kind, ns, "x"), "status", "conditions"))
				if !strings.Contains(conditions, "type:Complete") {
					t.Errorf("the Job's conditions are %s", conditions)
				}
			}
		})
	}
}

func TestTheAddressesOfAServiceAddUp(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "Service", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s}, spec: {type: LoadBalancer, selector: {app: s}, ports: [{port: 80}]}}", ns))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "s-service", "m1", "m2") })
	for member, ip := range map[string]string{"m1": "192.0.2.1", "m2": "192.0.2.2"} {
		u := fleet.Members[member].Find(t, "v1", "Service", ns, "s")
		u.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": ip}}}}
		if err := fleet.Members[member].Status().Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	kit.Eventually(t, "the template has both addresses", func() string {
		got := fmt.Sprint(kit.Field(fleet.Hub.Find(t, "v1", "Service", ns, "s"), "status", "loadBalancer", "ingress"))
		if !strings.Contains(got, "192.0.2.1") || strings.Index(got, "192.0.2.2") < strings.Index(got, "192.0.2.1") {
			return "it has " + got
		}
		return ""
	})
	waitFor(t, "and is healthy", "m1:Healthy m2:Healthy", healths(t, ns, "s-service"))
	if a, b := inMember(t, "m1", "v1", "Service", ns, "s", "spec", "clusterIP"),
		kit.Field(fleet.Hub.Find(t, "v1", "Service", ns, "s"), "spec", "clusterIP"); a == nil || a == "" {
		t.Errorf("m1 has the address %v, the template %v", a, b)
	}
	// A change of the template leaves what the member allocated.
	before := fmt.Sprint(inMember(t, "m1", "v1", "Service", ns, "s", "spec", "clusterIP"))
	fleet.Hub.Change(t, "v1", "Service", ns, "s",
		func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"v": "2"}) })
	waitFor[any](t, "a change arrives", "2", func() any {
		return inMember(t, "m1", "v1", "Service", ns, "s", "metadata", "labels", "v")
	})
	if after := fmt.Sprint(inMember(t, "m1", "v1", "Service", ns, "s", "spec", "clusterIP")); after != before {
		t.Errorf("the member's address was %s, is %s", before, after)
	}
}

// argoHealthy is how Argo CD judges a Deployment.
func argoHealthy(u *unstructured.Unstructured) bool {
	n := func(path ...string) int64 { v, _ := kit.Field(u, path...).(int64); return v }
	return n("status", "observedGeneration") >= u.GetGeneration() &&
		n("status", "updatedReplicas") >= n("spec", "replicas") &&
		n("status", "replicas") <= n("status", "updatedReplicas") &&
		n("status", "availableReplicas") >= n("status", "updatedReplicas")
}

// Whenever the template looks healthy, every member is.
func TestTemplateIsHealthyOnlyIfEveryMemberIs(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1, m2]}, "+
		divided("replicaDivisionPreference: Weighted")+"}"))
	// Slow enough for states in between to be seen.
	fleet.Hub.Apply(t, strings.Replace(deployment(ns, "web", 4, "example.com/web:0"), "  replicas:",
		"  minReadySeconds: 1\n  replicas:", 1))
	settled := func(image string) string {
		for _, m := range []string{"m1", "m2"} {
			u := fleet.Members[m].Find(t, "apps/v1", "Deployment", ns, "web")
			if u == nil || container(t, m, "apps/v1", "Deployment", ns, "web", "image") != image || !argoHealthy(u) {
				return fmt.Sprintf("%s is at generation %v with spec %v and status %v", m, kit.Field(u, "metadata", "generation"),
					kit.Field(u, "spec", "replicas"), kit.Field(u, "status"))
			}
		}
		return ""
	}
	for i, image := range []string{"example.com/web:0", "example.com/web:1", "example.com/web:bad", "example.com/web:3"} {
		if i > 0 {
			fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
				containers := kit.Field(u, "spec", "template", "spec", "containers").([]any)
				containers[0].(map[string]any)["image"] = image
			})
		}
		if strings.HasSuffix(image, ":bad") {
			kit.Eventually(t, "a bad image is being rolled out", func() string {
				if got := container(t, "m1", "apps/v1", "Deployment", ns, "web", "image"); got != image {
					return fmt.Sprintf("m1 has %v", got)
				}
				return ""
			})
			kit.Eventually(t, "a bad image shows in the binding", func() string {
				if got := healths(t, ns, "web-deployment")(); strings.Contains(got, "Healthy m") ||
					got == "m1:Healthy m2:Healthy" || strings.HasSuffix(got, ":Healthy") {
					return got
				}
				return ""
			})
			kit.Stays(t, "the template never looks healthy", 3*time.Second, func() string {
				if u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"); argoHealthy(u) {
					return fmt.Sprintf("it does: %v", kit.Field(u, "status"))
				}
				return ""
			})
			continue
		}
		kit.Eventually(t, image+" is rolled out", func() string {
			u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
			if !argoHealthy(u) {
				return fmt.Sprintf("generation %d, status %v", u.GetGeneration(), kit.Field(u, "status"))
			}
			if wrong := settled(image); wrong != "" {
				t.Fatalf("the template looks healthy, with %v, and %s", kit.Field(u, "status"), wrong)
			}
			return ""
		})
		waitFor(t, "the binding agrees", "m1:Healthy m2:Healthy", healths(t, ns, "web-deployment"))
	}
}
