package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/test/kit"
)

// kubectlGet runs kubectl get through the global proxy as a user, and returns what it prints.
func kubectlGet(t *testing.T, as rest.ImpersonationConfig, args ...string) string {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config {
		config := rest.CopyConfig(fleet.Hub.Config)
		config.Host, config.Impersonate = config.Host+search.ProxyPath, as
		return config
	})
	var out bytes.Buffer
	failed := ""
	cmdutil.BehaviorOnFatal(func(text string, _ int) { failed = text; panic(failed) })
	defer cmdutil.DefaultBehaviorOnFatal()
	func() {
		defer func() {
			if p := recover(); p != nil && failed == "" {
				panic(p)
			}
		}()
		cmd := kubectlget.NewCmdGet("kubectl", cmdutil.NewFactory(flags), genericiooptions.IOStreams{Out: &out, ErrOut: &out})
		flags.AddFlags(cmd.Flags())
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			failed = err.Error()
		}
	}()
	return out.String() + failed
}

// kubectl as it is lists the objects of all clusters through the global proxy: those that the hub and the cluster let
// the user read. The test is not parallel, because kubectl has one way to fail for the whole process.
func TestKubectlListsWhatTheUserMayReadInEachCluster(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	alice := "alice-" + ns
	for _, m := range []string{"m1", "m2", "m3"} {
		fleet.Members[m].Apply(t, fmt.Sprintf(
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-%s, namespace: default, labels: {run: %[1]s}}}", ns, m))
		if m != "m2" { // there, she may read nothing
			fleet.Members[m].Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: search-%[1]s, namespace: default}
subjects: [{kind: User, name: %[2]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}`, ns, alice))
		}
	}
	letIn(t, ns, "search", "[m1, m2]", fmt.Sprintf("[{kind: User, name: %s, apiGroup: rbac.authorization.k8s.io}]", alice))
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-global}
rules: [{apiGroups: [search.karmada.io], resources: [proxying/proxy, search/api], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-global}
subjects: [{kind: User, name: %[2]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: %[1]s-global, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: %[1]s}
spec: {targetCluster: {}, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default}]}`, ns, alice))
	kit.Eventually(t, "the registry is ready", func() string {
		out, err := command(t, "get", "resourceregistry", ns)
		if err == nil && strings.Contains(out, "True") && strings.Contains(out, "1 resources in 3 clusters") {
			return ""
		}
		return out
	})
	list := []string{"configmaps", "-n", "default", "-l", "run=" + ns, "--chunk-size=1"}
	kit.Eventually(t, "alice sees what she may read", func() string {
		out := kubectlGet(t, named(alice), list...)
		if strings.Contains(out, ns+"-m1") && strings.Contains(out, "CLUSTER") && strings.Contains(out, "DATA") &&
			!strings.Contains(out, ns+"-m2") && !strings.Contains(out, ns+"-m3") {
			return ""
		}
		return out
	})
	kit.Eventually(t, "the administrator sees all", func() string {
		out := kubectlGet(t, rest.ImpersonationConfig{}, list...)
		if strings.Count(out, ns+"-m") == 3 {
			return ""
		}
		return out
	})
	if out := kubectlGet(t, named("eve-"+ns), list...); !strings.Contains(out, `cannot get resource "proxying/proxy"`) {
		t.Errorf("eve gets %s", out)
	}
	out := kubectlGet(t, rest.ImpersonationConfig{}, "configmap", ns+"-m3", "-n", "default", "-o", "yaml")
	if !strings.Contains(out, "cached-from-cluster: m3") {
		t.Errorf("one object is %s", out)
	}

	// The command line.
	line := []string{"search", "configmaps", "-n", "default", "-l", "run=" + ns, "-o", "name"}
	if out, err := command(t, line...); err != nil || strings.Count(out, "configmaps/"+ns) != 3 {
		t.Errorf("the administrator finds %s: %v", out, err)
	}
	if out, err := command(t, append(line, "--as="+alice)...); err != nil || out != "configmaps/"+ns+"-m1\n" {
		t.Errorf("alice finds %s: %v", out, err)
	}
	verifyWriteAndWatch(t, ns)
}

// A write goes to the cluster that has the object, and a watch from the version of a list reports it.
func verifyWriteAndWatch(t *testing.T, ns string) {
	t.Helper()
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Host += search.ProxyPath
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	listed, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "run=" + ns})
	if err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "run=" + ns,
		ResourceVersion: listed.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := maps.Delete(t.Context(), ns+"-m3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		if o, ok := event.Object.(*corev1.ConfigMap); !ok || event.Type != watch.Deleted || o.Name != ns+"-m3" {
			t.Errorf("the watch reports %+v", event)
		}
	case <-time.After(kit.Timeout):
		t.Error("the watch reports nothing")
	}
}
