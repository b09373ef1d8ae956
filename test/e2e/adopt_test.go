package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// command runs a verb against the hub, and returns all that it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary,
		append([]string{"--kubeconfig=" + fleet.Lab.Hub.Kubeconfig()}, args...)...).CombinedOutput()
	return string(out), err
}

// anyWorkload is one of any kind with a pod template, of which two pods run.
func anyWorkload(apiVersion, kind, ns, image string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: shop, namespace: %s}, spec: {replicas: 2, selector: {matchLabels: {app: shop}},
		template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: main, image: "example.com/%s"}]}}}}`, apiVersion, kind, ns, image)
}

// podsOf are the pods of m1 by name, as they were made.
func podsOf(t *testing.T, ns string) map[string]string {
	made := map[string]string{}
	for _, p := range pods(t, "m1", ns, "shop") {
		made[p.Name] = fmt.Sprint(p.UID, p.Spec.Containers[0].Image, p.DeletionTimestamp)
	}
	return made
}

// What a member has becomes the fleet's, and neither its definition nor its pods change by that.
func TestAWorkloadIsAdoptedWithoutARestart(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ apiVersion, kind, how string }{
		{"apps.kruise.io/v1alpha1", "CloneSet", "adopt"}, {"apps.kruise.io/v1beta1", "StatefulSet", "adopt"},
		{"apps/v1", "Deployment", "promote"},
	} {
		t.Run(k.kind, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			m1 := fleet.Members["m1"]
			fleet.Hub.Apply(t, propagation(ns, "other", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: "+
				placedOn("m1")+"}"))
			kit.Eventually(t, "the namespace is there", func() string {
				if m1.Find(t, "v1", "Namespace", "", ns) == nil {
					return "it is not"
				}
				return ""
			})
			m1.Apply(t, anyWorkload(k.apiVersion, k.kind, ns, "shop:1"))
			waitFor(t, "its pods run", int64(2), func() int64 {
				n, _ := inMember(t, "m1", k.apiVersion, k.kind, ns, "shop", "status", "readyReplicas").(int64)
				return n
			})
			made, before := podsOf(t, ns), m1.Find(t, k.apiVersion, k.kind, ns, "shop")
			if len(made) != 2 {
				t.Fatalf("pods are %v", made)
			}
			resource := strings.ToLower(k.kind)
			if group, _, _ := strings.Cut(k.apiVersion, "/"); group != "apps" {
				resource += "." + group
			}
			args := []string{k.how, resource, "shop", "-n", ns, "--cluster", "m1"}
			unadopted := func(why string) {
				t.Helper()
				if now := m1.Find(t, k.apiVersion, k.kind, ns, "shop"); now.GetLabels()["karmada.io/managed"] != "" ||
					now.GetGeneration() != before.GetGeneration() {
					t.Fatalf("%s, and it is adopted: %v", why, now.Object["metadata"])
				}
				if fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "shop-"+
					strings.ToLower(k.kind)) != nil {
					t.Fatalf("%s, and there is a policy", why)
				}
			}

			out, err := command(t, append(args, "--dry-run")...)
			if err != nil || !strings.Contains(out, "can be adopted") ||
				!strings.Contains(out, "Only the labels and annotations of the hub change") {
				t.Fatalf("dry run: %v\n%s", err, out)
			}
			if unadopted("dry run"); fleet.Hub.Find(t, k.apiVersion, k.kind, ns, "shop") != nil {
				t.Fatal("dry run, and there is a template")
			}

			fleet.Hub.Apply(t, anyWorkload(k.apiVersion, k.kind, ns, "shop:2"))
			out, err = command(t, args...)
			if err == nil || !strings.Contains(out, "spec.template.spec.containers.0.image: pods would be recreated") ||
				!strings.Contains(out, "example.com/shop:1 → example.com/shop:2") {
				t.Fatalf("another template is there: %v\n%s", err, out)
			}
			unadopted("it was refused")
			fleet.Hub.Remove(t, k.apiVersion, k.kind, ns, "shop")

			if k.how == "promote" { // as karmadactl, it prints manifests with -o
				out, err = command(t, append(args, "-o", "yaml")...)
				if err != nil || !strings.Contains(out, "kind: PropagationPolicy") || !strings.Contains(out, "kind: "+k.kind) {
					t.Fatalf("%v\n%s", err, out)
				}
				unadopted("it was printed")
				args[0] = "adopt"
			}
			out, err = command(t, append(args, "-o", "json")...)
			var output struct {
				Adopted, AskedMember bool
				Differences          []any
			}
			if err != nil || json.Unmarshal([]byte(out), &output) != nil || !output.Adopted || !output.AskedMember ||
				len(output.Differences) > 0 {
				t.Fatalf("%v\n%s", err, out)
			}
			after := m1.Find(t, k.apiVersion, k.kind, ns, "shop")
			// Annotations alone make a new generation of a Deployment.
			same := k.kind == "Deployment" || after.GetGeneration() == before.GetGeneration()
			if after.GetLabels()["karmada.io/managed"] != "true" || after.GetUID() != before.GetUID() || !same ||
				!reflect.DeepEqual(after.Object["spec"], before.Object["spec"]) {
				t.Errorf("it is %v, and was %v", after.Object["metadata"], before.Object["metadata"])
			}
			waitFor(t, "the template tells of it", int64(2), func() int64 {
				n, _ := kit.Field(fleet.Hub.Find(t, k.apiVersion, k.kind, ns, "shop"), "status", "readyReplicas").(int64)
				return n
			})
			if now := podsOf(t, ns); !maps.Equal(now, made) {
				t.Errorf("pods are %v, and were %v", now, made)
			}
			if out, err := command(t, args...); err != nil || !strings.Contains(out, "is adopted already") {
				t.Errorf("again: %v\n%s", err, out)
			}
			scale := func(n int64) {
				fleet.Hub.Change(t, k.apiVersion, k.kind, ns, "shop", func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
				})
			}
			scale(3)
			waitFor(t, "and the hub steers it", 3, func() int { return len(podsOf(t, ns)) })
		})
	}
}

// A policy may have sent a template where an object of that name existed already. It reports a conflict, and is then
// adopted.
func TestConflictIsAdoptedIfTheTemplateIsEqual(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	createForeign(t, "m1", ns, "c")
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "the conflict is reported", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "c", "already exists")
	})
	kit.Eventually(t, "the other member's is reported", func() string {
		if b := binding(t, ns, "c-configmap"); !slices.ContainsFunc(b.Status.AggregatedStatus,
			func(i workv1alpha2.AggregatedStatusItem) bool { return i.ClusterName == "m2" && i.Applied }) {
			return "it is not"
		}
		return ""
	})
	var kubeconfig string
	for _, m := range fleet.Lab.Fleet.Members() {
		if m.Name == "m1" {
			kubeconfig = m.Kubeconfig
		}
	}
	out, err := command(t, "adopt", "cm/c", "-n", ns, "-C", "m1", "--cluster-kubeconfig", kubeconfig)
	if err != nil || !strings.Contains(out, "data.key: ") || !strings.Contains(out, "is adopted") {
		t.Fatalf("%v\n%s", err, out)
	}
	kit.Eventually(t, "the hub manages it", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
}
