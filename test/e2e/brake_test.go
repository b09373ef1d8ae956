package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// kubeconfigAs writes a kubeconfig by which a user without rights uses the hub.
func kubeconfigAs(t *testing.T, user string) (file string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range config.AuthInfos {
		u.Impersonate = user
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBrakeStopsTheHubInNamespace(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent", func() string { return applied(t, ns, "c-configmap", "m1") })
	value := func() any { return kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "key") }
	annotation := func() string {
		return fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns).GetAnnotations()["argosy.io/hands-off"]
	}

	// 1. The hub refuses users who may not use its proxy, and whoever its roles let in needs the right in the member.
	alice := "alice-" + ns
	refused := func(why string) {
		t.Helper()
		kit.Eventually(t, "alice is refused: "+why, func() string {
			out, err := command(t, "--kubeconfig="+kubeconfigAs(t, alice), "brake", "on", "--cluster", "m1", "-n", ns)
			if err == nil || !strings.Contains(out, why) {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	refused("clusters/proxy")
	letIn(t, ns, "brake", "[m1]", fmt.Sprintf("[{kind: User, name: %s, apiGroup: rbac.authorization.k8s.io}]", alice))
	refused(fmt.Sprintf(`User %q cannot get resource "namespaces"`, alice))
	if got := annotation(); got != "" {
		t.Fatalf("a user without rights has set the annotation to %q", got)
	}

	// 2. An administrator stops the hub.
	if out, err := command(t, "brake", "on", "--cluster", "m1", "-n", ns); err != nil || annotation() != "true" {
		t.Fatalf("%v\n%s", err, out)
	}
	fleet.Hub.Change(t, "v1", "ConfigMap", ns, "c",
		func(u *unstructured.Unstructured) { kit.Field(u, "data").(map[string]any)["key"] = "2" })
	kit.Eventually(t, "the Work is not applied, because of the annotation", func() string {
		w := work(t, "m1", "ConfigMap", ns, "c")
		c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkHandsOff)
		if c == nil || !strings.Contains(c.Message, "namespace "+ns) ||
			!meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkApplied) {
			return fmt.Sprintf("%+v", w.Status.Conditions)
		}
		return ""
	})
	if got := value(); got != "1" {
		t.Errorf("the object has %v, want 1", got)
	}
	if out, err := command(t, "why", "configmap", "c", "-n", ns); !strings.Contains(out,
		"namespace "+ns+" of the member") {
		t.Errorf("argosy why does not show the brake: %v\n%s", err, out)
	}

	// 3. And lets it continue.
	if out, err := command(t, "brake", "off", "--cluster", "m1", "-n", ns); err != nil || annotation() != "" {
		t.Fatalf("%v\n%s", err, out)
	}
	kit.Eventually(t, "it is applied", func() string {
		if got := value(); got != "2" {
			return fmt.Sprint(got)
		}
		return applied(t, ns, "c-configmap", "m1")
	})
}
