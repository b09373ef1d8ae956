package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// app is a Deployment that reads a ConfigMap, and a Service, with a policy.
func app(ns string, replicas int, placement string) string {
	return fmt.Sprintf(`
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s}, spec: {propagateDeps: true,
 resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Service}], placement: {%[3]s}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %[1]s}, data: {a: b}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %[1]s}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx, envFrom: [{configMapRef: {name: settings}}]}]}}}}
`, ns, replicas, placement)
}

// objects are those of app in a member.
var objects = []struct{ apiVersion, kind, name string }{{"apps/v1", "Deployment", "web"}, {"v1", "Service", "web"},
	{"v1", "ConfigMap", "settings"}}

// expectObjects waits until a member has all objects of app, or none of them.
func expectObjects(t *testing.T, c kit.Cluster, ns string, all bool) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%s has the objects: %t", c.Name, all), func() string {
		for _, o := range objects {
			if u := c.Find(t, o.apiVersion, o.kind, ns, o.name); (u != nil && u.GetDeletionTimestamp() == nil) != all {
				return fmt.Sprintf("%s %s is there: %t", o.kind, o.name, u != nil)
			}
		}
		return ""
	})
}

// replicas waits until the Deployment of app has so many ready replicas in a member, and the binding reports it.
func replicas(t *testing.T, c kit.Cluster, ns, n string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%s has %s ready replicas, as the hub reports", c.Name, n), func() string {
		u := c.Find(t, "apps/v1", "Deployment", ns, "web")
		if u == nil || fmt.Sprint(kit.Field(u, "status", "readyReplicas")) != n {
			return "it is not ready"
		}
		b := &workv1alpha2.ResourceBinding{}
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web-deployment"}, b); err != nil {
			return err.Error()
		}
		for _, item := range b.Status.AggregatedStatus {
			if item.ClusterName == c.Name && item.Applied && string(item.Health) == "Healthy" &&
				item.Status != nil && strings.Contains(string(item.Status.Raw), `"readyReplicas":`+n) {
				return ""
			}
		}
		return fmt.Sprintf("the binding reports %+v", b.Status.AggregatedStatus)
	})
}

func ready(t *testing.T, name string, status string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("cluster %s is Ready=%s", name, status), func() string {
		c := &clusterv1alpha1.Cluster{}
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
			return err.Error()
		}
		if r := meta.FindStatusCondition(c.Status.Conditions, "Ready"); r == nil || string(r.Status) != status {
			return fmt.Sprintf("it is %+v", r)
		}
		return ""
	})
}

// startKarmadaAgent runs Karmada's agent with the arguments of its Deployment in the member, or with those that
// karmadactl register writes if there is none of Karmada's. Only addresses of the machine differ.
func startKarmadaAgent(t *testing.T, program string, m *kit.Member, c kit.Cluster) *kit.Process {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"}
	if err := c.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	hub := filepath.Join(t.TempDir(), "hub.kubeconfig")
	if err := os.WriteFile(hub, secret.Data["karmada-kubeconfig"], 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--cluster-name=" + c.Name, "--cluster-api-endpoint=" + m.Server, "--cluster-provider=lab",
		"--cluster-region=eu-west", "--cluster-zones=z1", "--controllers=*", "--proxy-server-address=",
		"--leader-elect-resource-namespace=karmada-system", "--cluster-namespace=karmada-cluster", "--v=2"}
	deployment := &appsv1.Deployment{}
	key.Name = "karmada-agent"
	if err := c.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	if command := deployment.Spec.Template.Spec.Containers[0].Command; len(command) > 0 {
		args = command[1:]
	}
	kept := args[:0:0]
	for _, a := range args {
		if !strings.HasPrefix(a, "--karmada-kubeconfig=") && !strings.HasPrefix(a, "--metrics-bind-address=") &&
			!strings.HasPrefix(a, "--health-probe-bind-address=") &&
			!strings.HasPrefix(a, "--cluster-status-update-frequency=") {
			kept = append(kept, a)
		}
	}
	return m.Run(t, []string{"KUBECONFIG=" + m.Kubeconfig}, program, append(kept, "--karmada-kubeconfig="+hub,
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0", "--cluster-status-update-frequency=2s")...)
}

// registrations register a member for Karmada's agent.
var registrations = map[string]func(t *testing.T, m *kit.Member, name string){
	"karmadactl register": func(t *testing.T, m *kit.Member, name string) {
		karmadactl := kit.Peers(t, "karmadactl")[0]
		join := tokenCommand(t)
		run(t, karmadactl, append(join, "--cluster-name", name, "--kubeconfig", m.Kubeconfig, "--cluster-provider=lab",
			"--cluster-region=eu-west", "--cluster-zones=z1", "--karmada-agent-image=agent")...)
	},
	"argosy register": func(t *testing.T, m *kit.Member, name string) {
		run(t, fleet.Lab.Hub.Binary, append(tokenCommand(t), "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig,
			"--apply")...)
	},
}

// tokenCommand creates a token, and returns the arguments of the command that registers a cluster with it.
func tokenCommand(t *testing.T) []string {
	t.Helper()
	fields := strings.Fields(run(t, fleet.Lab.Hub.Binary, "token", "create", "--print-register-command"))
	if len(fields) < 7 || fields[1] != "register" {
		t.Fatalf("the command is %q", fields)
	}
	return fields[1:7:7]
}

func TestKarmadaAgentIsAMember(t *testing.T) {
	for how, register := range registrations {
		t.Run(how, func(t *testing.T) {
			agent := kit.Peers(t, "karmada-agent")[0]
			name := strings.Fields(how)[0]
			m, member := fleet.StartMember(t, name)
			register(t, m, name)
			t.Cleanup(func() {
				ctx := context.WithoutCancel(t.Context())
				_, _ = fleet.Argosy(ctx, "unregister", name, "--yes", "--force", "--wait", "5s") // it may be gone
			})
			running := startKarmadaAgent(t, agent, m, member)
			ready(t, name, "True")

			// 1. It leads, and reports what its flags say of the cluster.
			lease := &coordinationv1.Lease{}
			election := client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent-" + name}
			if err := fleet.Hub.Get(t.Context(), election, lease); err != nil || lease.Spec.HolderIdentity == nil {
				t.Errorf("the Lease of the agent is %+v: %v", lease.Spec, err)
			}
			c := &clusterv1alpha1.Cluster{}
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
				t.Fatal(err)
			}
			if c.Spec.Region != "eu-west" || c.Spec.APIEndpoint != m.Server || c.Spec.SecretRef == nil ||
				c.Spec.ImpersonatorSecretRef == nil {
				t.Errorf("the Cluster is %+v", c.Spec)
			}

			// 2. It creates, updates and deletes.
			ns := fleet.Namespace(t)
			here := "clusterAffinity: {clusterNames: [" + name + "]}"
			fleet.Hub.Apply(t, app(ns, 2, here))
			expectObjects(t, member, ns, true)
			replicas(t, member, ns, "2")
			fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
			})
			replicas(t, member, ns, "3")
			for _, o := range objects {
				fleet.Hub.Remove(t, o.apiVersion, o.kind, ns, o.name)
			}
			expectObjects(t, member, ns, false)
			noWorks(t, name, ns)

			// 3. It survives a restart of the hub.
			fleet.Hub.Apply(t, app(ns, 2, here))
			replicas(t, member, ns, "2")
			fleet.Lab.Hub.Kill()
			if err := fleet.Lab.Hub.Start(t.Context(), hubArgs...); err != nil {
				t.Fatal(err)
			}
			fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
			})
			replicas(t, member, ns, "3")

			// 4. What it runs fails over to another cluster when it is lost, and leaves it when it is back.
			moving := fleet.Namespace(t)
			const tolerations = `, clusterTolerations: [{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10},
				{key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 10}]`
			ordered := func(first, second string) string {
				return fmt.Sprintf("clusterAffinities: [{affinityName: a, clusterNames: [%s]}, {affinityName: b, clusterNames: [%s]}]",
					first, second) + tolerations
			}
			fleet.Hub.Apply(t, app(moving, 2, ordered(name, "home")))
			replicas(t, member, moving, "2")
			running.Kill()
			expectObjects(t, fleet.Members["home"], moving, true)
			replicas(t, fleet.Members["home"], moving, "2")
			startKarmadaAgent(t, agent, m, member)
			ready(t, name, "True")
			expectObjects(t, member, moving, false)

			// 5. It takes over from another cluster.
			taken := fleet.Namespace(t)
			fleet.Hub.Apply(t, app(taken, 2, ordered("away", name)))
			replicas(t, fleet.Members["away"], taken, "2")
			taint(t, "away", "out")
			replicas(t, member, taken, "2")
			expectObjects(t, fleet.Members["away"], taken, false)

			// 6. "karmadactl unregister" is refused before it deletes something.
			if how == "karmadactl register" {
				cmd := exec.CommandContext(t.Context(), kit.Peers(t, "karmadactl")[0], "unregister", name, "--karmada-config",
					fleet.Lab.Hub.Kubeconfig(), "--cluster-kubeconfig", m.Kubeconfig)
				if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "use argosy unregister "+name) {
					t.Errorf("karmadactl unregister ended with %v:\n%s", err, out)
				}
				expectObjects(t, member, ns, true)
			}

			// 7. It unregisters: what the hub sent leaves the member.
			run(t, fleet.Lab.Hub.Binary, "unregister", name, "--cluster-kubeconfig", m.Kubeconfig, "--yes")
			expectObjects(t, member, ns, false)
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); !apierrors.IsNotFound(err) {
				t.Errorf("the Cluster is there: %v", err)
			}
			if member.Find(t, "apps/v1", "Deployment", "karmada-system", "karmada-agent") != nil {
				t.Error("the Deployment of the agent is there")
			}
		})
	}
}

// noWorks waits until no Work of a namespace's objects is left for a cluster.
func noWorks(t *testing.T, cluster, ns string) {
	t.Helper()
	kit.Eventually(t, "the Works are gone", func() string {
		list := &workv1alpha1.WorkList{}
		if err := fleet.Hub.List(t.Context(), list, client.InNamespace("karmada-es-"+cluster)); err != nil {
			return err.Error()
		}
		for _, w := range list.Items {
			if w.Annotations["resourcebinding.karmada.io/namespace"] == ns {
				return fmt.Sprintf("%s has the finalizers %v", w.Name, w.Finalizers)
			}
		}
		return ""
	})
}

// taint gives a cluster a NoExecute taint until the test ends.
func taint(t *testing.T, cluster, key string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	set := func(taints []corev1.Taint) {
		c := &clusterv1alpha1.Cluster{}
		if err := fleet.Hub.Get(ctx, client.ObjectKey{Name: cluster}, c); err != nil {
			t.Error(err)
		}
		was := c.DeepCopy()
		c.Spec.Taints = taints
		if err := fleet.Hub.Patch(ctx, c, client.MergeFrom(was)); err != nil {
			t.Error(err)
		}
	}
	set([]corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoExecute}})
	t.Cleanup(func() { set(nil) })
}
