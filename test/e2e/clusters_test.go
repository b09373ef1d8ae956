package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// The tests in this file change who is in the fleet. Those beside which they run name the clusters that they are about.

// startMember starts a member for one test. It is not joined yet.
func startMember(t *testing.T, name string) (*sim.Running, kit.Cluster) {
	t.Helper()
	return ownMember(t, sim.Member{Name: name, Nodes: 2})
}

func ownMember(t *testing.T, member sim.Member) (*sim.Running, kit.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
	defer cancel()
	s, err := sim.Start(ctx, sim.Options{Binary: fleet.Lab.Hub.Binary, Dir: t.TempDir(), Members: []sim.Member{member}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	m := s.Members()[0]
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kit.Connect(member.Name, config)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

// argosy runs a verb that must succeed, and returns what it printed.
func argosy(t *testing.T, args ...string) string {
	t.Helper()
	out, err := fleet.Argosy(t.Context(), args...)
	if err != nil {
		t.Fatalf("argosy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs a verb that must fail, and wants its one line to say all of the words.
func refused(t *testing.T, words []string, args ...string) {
	t.Helper()
	out, err := fleet.Argosy(t.Context(), args...)
	if err == nil {
		t.Errorf("argosy %s succeeded: %s", strings.Join(args, " "), out)
	}
	if strings.Count(strings.TrimSpace(out), "\n") > 0 {
		t.Errorf("argosy %s says more than one line:\n%s", strings.Join(args, " "), out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("argosy %s says %q, which lacks %q", strings.Join(args, " "), out, word)
		}
	}
}

// joined joins a member, with further flags, and has it leave when the test ends.
func joined(t *testing.T, m *sim.Running, flags ...string) {
	t.Helper()
	argosy(t, append([]string{"join", m.Name, "--cluster-kubeconfig", m.Kubeconfig}, flags...)...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		out, err := fleet.Argosy(ctx, "unjoin", m.Name, "--yes", "--force", "--wait", "20s")
		if err != nil && !strings.Contains(out, "is not joined") {
			t.Errorf("unjoin %s: %v\n%s", m.Name, err, out)
		}
	})
	kit.Eventually(t, m.Name+" is ready", func() string { return ready(t, m.Name, metav1.ConditionTrue) })
}

// ready returns what is wrong if a cluster's condition Ready has not that status.
func ready(t *testing.T, name string, want metav1.ConditionStatus) string {
	t.Helper()
	cond := meta.FindStatusCondition(clusterOf(t, name).Status.Conditions, "Ready")
	if cond == nil || cond.Status != want {
		return fmt.Sprintf("cluster %s: Ready is %+v", name, cond)
	}
	return ""
}

func clusterOf(t *testing.T, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return c
}

// get reads an object that must be there.
func get[T client.Object](t *testing.T, c kit.Cluster, obj T, namespace, name string) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return obj
}

func TestJoinAndUnjoinManageExpectedObjects(t *testing.T) {
	t.Parallel()
	m, member := startMember(t, "c1")
	dead := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(dead, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	system := string(get(t, member, &corev1.Namespace{}, "", "kube-system").UID)
	fleet.Hub.Apply(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: taken}, spec: {syncMode: Push, id: somebody, apiEndpoint: "https://127.0.0.1:2"}}`)

	// What is refused leaves no trace.
	refused(t, []string{`cluster "c1" at https://127.0.0.1:1 is not responding: connection refused`,
		"--cluster-kubeconfig"}, "join", "c1", "--cluster-kubeconfig", dead)
	refused(t, []string{"nothing-here"}, "join", "c1", "--cluster-kubeconfig", "/nothing-here")
	refused(t, []string{`the name "taken" belongs to another cluster`, "somebody", system}, "join", "taken",
		"--cluster-kubeconfig", m.Kubeconfig)
	refused(t, []string{"C_1", "lower case"}, "join", "C_1", "--cluster-kubeconfig", m.Kubeconfig)
	refused(t, []string{`cluster "c1" is not joined`}, "unjoin", "c1")
	if member.Find(t, "v1", "Namespace", "", "karmada-cluster") != nil ||
		fleet.Hub.Find(t, "v1", "Secret", "karmada-cluster", "c1") != nil {
		t.Error("a refused join left something")
	}

	if out := argosy(t, "join", "c1", "--cluster-kubeconfig", m.Kubeconfig, "--cluster-provider", "p", "--cluster-region",
		"r", "--cluster-zones", "z1,z2"); out != "cluster(c1) is joined successfully\n" {
		t.Errorf("join says %q", out)
	}
	kit.Eventually(t, "it is ready", func() string { return ready(t, "c1", metav1.ConditionTrue) })
	kit.Eventually(t, "its execution space opens", func() string {
		if fleet.Hub.Find(t, "v1", "Namespace", "", "karmada-es-c1") == nil {
			return "not yet"
		}
		return ""
	})

	t.Run("in the member", func(t *testing.T) {
		for _, name := range []string{"karmada-c1", "karmada-impersonator"} {
			account := get(t, member, &corev1.ServiceAccount{}, "karmada-cluster", name)
			if account.Labels["karmada.io/system"] != "true" {
				t.Errorf("%s: labels %v", name, account.Labels)
			}
			var tokens corev1.SecretList // what each token goes with
			if err := member.List(t.Context(), &tokens, client.InNamespace("karmada-cluster"),
				client.MatchingLabels{"argosy.io/token-of": name, "karmada.io/system": "true"}); err != nil {
				t.Fatal(err)
			}
			if len(tokens.Items) != 1 || len(tokens.Items[0].Data) != 0 ||
				tokens.Items[0].Type == corev1.SecretTypeServiceAccountToken {
				t.Errorf("tokens of %s go with %v, want one empty Secret", name, tokens.Items)
			}
		}
		const role = "karmada-controller-manager:karmada-c1"
		rules := get(t, member, &rbacv1.ClusterRole{}, "", role).Rules
		all := []string{"*"}
		if len(rules) != 2 || !slices.Equal(rules[0].APIGroups, all) || !slices.Equal(rules[0].Resources, all) ||
			!slices.Equal(rules[0].Verbs, all) ||
			!slices.Equal(rules[1].NonResourceURLs, all) || !slices.Equal(rules[1].Verbs, []string{"get"}) {
			t.Errorf("the role allows %v", rules)
		}
		bound := get(t, member, &rbacv1.ClusterRoleBinding{}, "", role)
		if bound.RoleRef.Name != role || len(bound.Subjects) != 1 || bound.Subjects[0].Name != "karmada-c1" ||
			bound.Subjects[0].Namespace != "karmada-cluster" {
			t.Errorf("the role is bound as %+v", bound)
		}
	})
	t.Run("in the hub", func(t *testing.T) {
		c := clusterOf(t, "c1")
		if c.Spec.ID != system || c.Spec.SyncMode != "Push" || c.Spec.APIEndpoint != m.Server ||
			c.Spec.InsecureSkipTLSVerification ||
			c.Spec.Provider != "p" || c.Spec.Region != "r" || !slices.Equal(c.Spec.Zones, []string{"z1", "z2"}) ||
			len(c.Spec.ResourceModels) != 9 {
			t.Errorf("the cluster is %+v", c.Spec)
		}
		if *c.Spec.SecretRef != (clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "c1"}) ||
			*c.Spec.ImpersonatorSecretRef != (clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster",
				Name: "c1-impersonator"}) {
			t.Errorf("its secrets are %v and %v", c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef)
		}
		if !slices.Equal(c.Finalizers, []string{"karmada.io/cluster-controller"}) {
			t.Errorf("finalizers %v", c.Finalizers)
		}
		for name, keys := range map[string][]string{"c1": {"caBundle", "token"}, "c1-impersonator": {"token"}} {
			secret := get(t, fleet.Hub, &corev1.Secret{}, "karmada-cluster", name)
			for _, key := range keys {
				if len(secret.Data[key]) == 0 {
					t.Errorf("secret %s lacks %s", name, key)
				}
			}
			if len(secret.Data) != len(keys) {
				t.Errorf("secret %s has %d keys, want %v", name, len(secret.Data), keys)
			}
			if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != c.UID ||
				secret.OwnerReferences[0].Kind != "Cluster" {
				t.Errorf("secret %s is owned by %v", name, secret.OwnerReferences)
			}
		}
		if space := get(t, fleet.Hub, &corev1.Namespace{}, "", "karmada-es-c1"); space.Labels["karmada.io/system"] != "true" {
			t.Errorf("the execution space has labels %v", space.Labels)
		}
		if c.Status.KubernetesVersion == "" || c.Status.NodeSummary == nil || c.Status.NodeSummary.TotalNum != 2 ||
			len(c.Status.APIEnablements) < 10 ||
			!meta.IsStatusConditionTrue(c.Status.Conditions, "CompleteAPIEnablements") || c.Status.ResourceSummary == nil ||
			c.Status.ResourceSummary.Allocatable.Cpu().Value() != 64 {
			t.Errorf("the status is %s, nodes %+v, %d APIs, %+v", c.Status.KubernetesVersion, c.Status.NodeSummary,
				len(c.Status.APIEnablements), c.Status.ResourceSummary)
		}
	})
	t.Run("joining again renews, and another name is refused", func(t *testing.T) {
		before := clusterOf(t, "c1")
		out := argosy(t, "join", "c1", "--cluster-kubeconfig", m.Kubeconfig)
		if !strings.Contains(out, "was joined before") || !strings.HasSuffix(out, "cluster(c1) is joined successfully\n") {
			t.Errorf("join says %q", out)
		}
		if after := clusterOf(t, "c1"); after.UID != before.UID || after.Generation != before.Generation ||
			after.Spec.Region != "r" {
			t.Errorf("joining again made %+v of %+v", after.Spec, before.Spec)
		}
		refused(t, []string{`under the name "c1" already`, system}, "join", "c2", "--cluster-kubeconfig", m.Kubeconfig)
	})
	t.Run("get clusters", func(t *testing.T) {
		lines := strings.Split(argosy(t, "get", "clusters"), "\n")
		if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME VERSION MODE READY AGE TAINTS BRAKE" {
			t.Errorf("the head is %q", got)
		}
		line := func(out string) string {
			for l := range strings.SplitSeq(out, "\n") {
				if strings.HasPrefix(l, "c1 ") {
					return strings.Join(strings.Fields(l), " ")
				}
			}
			return "no line for c1"
		}
		version := clusterOf(t, "c1").Status.KubernetesVersion
		if got, want := line(strings.Join(lines, "\n")), "c1 "+version+" Push True "; !strings.HasPrefix(got, want) {
			t.Errorf("the line is %q, want %q", got, want)
		}
		if got, want := line(argosy(t, "get", "clusters", "-o", "wide")), "z1,z2 r p "+m.Server+
			" <none> v1alpha1"; !strings.HasSuffix(got, want) {
			t.Errorf("wide, the line is %q, want it to end in %q", got, want)
		}
		var one clusterv1alpha1.Cluster
		if err := json.Unmarshal([]byte(argosy(t, "get", "cluster", "c1", "-o", "json")), &one); err != nil ||
			one.Name != "c1" || one.Kind != "Cluster" || one.Spec.ID != system {
			t.Errorf("as JSON: %v, %+v", err, one.Spec)
		}
		var list clusterv1alpha1.ClusterList
		if err := json.Unmarshal([]byte(argosy(t, "get", "clusters", "-o", "json")), &list); err != nil ||
			len(list.Items) < 5 {
			t.Errorf("as JSON: %v, %d clusters", err, len(list.Items))
		}
	})
	fleet.Hub.Remove(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "taken") // it takes seconds to go
	t.Run("leaving takes what was sent there along, but for what is preserved", func(t *testing.T) {
		ns := fleet.Namespace(t)
		fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [c1, m1]}}"))
		fleet.Hub.Apply(t, configMap(ns, "sent", "1"))
		fleet.Hub.Apply(t, strings.Replace(policy("default", "kept-of-c1", "v1", "ConfigMap",
			"{clusterAffinity: {clusterNames: [c1]}}"),
			"kind: ConfigMap}]", "kind: ConfigMap, name: kept-of-c1}]\n  preserveResourcesOnDeletion: true", 1))
		fleet.Hub.Apply(t, configMap("default", "kept-of-c1", "1"))
		for _, name := range []string{"sent", "kept-of-c1"} {
			kit.Eventually(t, name+" is there", func() string {
				if member.Find(t, "v1", "ConfigMap", map[string]string{"sent": ns, "kept-of-c1": "default"}[name], name) == nil {
					return "not yet"
				}
				return ""
			})
		}
		refused(t, []string{"another cluster"}, "unjoin", "c1", "--cluster-kubeconfig", fleet.Fleet.Members()[0].Kubeconfig)
		if out := argosy(t, "unjoin", "c1", "--yes", "--cluster-kubeconfig", m.Kubeconfig); !strings.HasSuffix(out,
			"cluster(c1) is unjoined successfully\n") {
			t.Errorf("unjoin says %q", out)
		}
		if member.Find(t, "v1", "ConfigMap", ns, "sent") != nil {
			t.Error("what the hub sent is left in the member")
		}
		kept := member.Find(t, "v1", "ConfigMap", "default", "kept-of-c1")
		if kept == nil || kept.GetLabels()["karmada.io/managed"] != "" || len(kept.GetAnnotations()) > 0 {
			t.Errorf("what is to be preserved is %v", kept)
		}
		gone(t, "c1")
		kit.Eventually(t, "its accounts go", func() string {
			for _, obj := range []struct{ apiVersion, kind, namespace, name string }{
				{"v1", "ServiceAccount", "karmada-cluster", "karmada-c1"},
				{"v1", "ServiceAccount", "karmada-cluster", "karmada-impersonator"},
				{"v1", "Namespace", "", "karmada-cluster"},
				{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "karmada-controller-manager:karmada-c1"},
				{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "karmada-controller-manager:karmada-c1"},
			} {
				if member.Find(t, obj.apiVersion, obj.kind, obj.namespace, obj.name) != nil {
					return fmt.Sprintf("%+v is left", obj)
				}
			}
			return ""
		})
		kit.Eventually(t, "the binding goes on without it", func() string { return placed(t, ns, "sent-configmap", "m1") })
	})
}

// gone checks that the hub has nothing of a cluster that has left.
func gone(t *testing.T, name string) {
	t.Helper()
	kit.Eventually(t, "nothing of "+name+" is left on the hub", func() string {
		switch {
		case clusterOf(t, name).Name != "":
			return "the Cluster is there"
		case fleet.Hub.Find(t, "v1", "Namespace", "", names.ExecutionSpace(name)) != nil:
			return "its execution space is there"
		case fleet.Hub.Find(t, "v1", "Secret", "karmada-cluster", name) != nil,
			fleet.Hub.Find(t, "v1", "Secret", "karmada-cluster", name+"-impersonator") != nil:
			return "a secret is there"
		}
		return ""
	})
}

// placed returns what is wrong if a binding is not for these clusters, and applied in all of them.
func placed(t *testing.T, namespace, name string, clusters ...string) string {
	t.Helper()
	b := binding(t, namespace, name)
	if b == nil {
		return "there is no binding"
	}
	var targets, answered []string
	for _, c := range b.Spec.Clusters {
		targets = append(targets, c.Name)
	}
	for _, item := range b.Status.AggregatedStatus {
		if item.Applied {
			answered = append(answered, item.ClusterName)
		}
	}
	slices.Sort(targets)
	if !slices.Equal(targets, clusters) || !slices.Equal(answered, clusters) ||
		!meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
		return fmt.Sprintf("binding %s is for %v and applied in %v: %+v", name, targets, answered, b.Status.Conditions)
	}
	return ""
}

// The members fail side by side, since the hub gives each half a minute before it believes in a change.
func TestFailedMemberIsReportedAndAffectsNoOther(t *testing.T) {
	kit.Long(t)
	// reaches waits until a new template is in m1 although the other member does not answer.
	reaches := func(t *testing.T, ns, name string) {
		t.Helper()
		fleet.Hub.Apply(t, configMap(ns, name, "1"))
		kit.Eventually(t, "m1 holds "+name, func() string {
			if fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, name) == nil {
				return "not yet"
			}
			return ""
		})
	}
	// fails waits until the condition of a cluster says what is wrong.
	fails := func(t *testing.T, name, reason string, words ...string) {
		t.Helper()
		kit.Eventually(t, "the condition tells", func() string { return ready(t, name, metav1.ConditionFalse) })
		kit.Eventually(t, "with reason and message", func() string {
			cond := meta.FindStatusCondition(clusterOf(t, name).Status.Conditions, "Ready")
			for _, word := range words {
				if cond.Reason != reason || !strings.Contains(cond.Message, word) {
					return fmt.Sprintf("%s: %s; want %s with %q", cond.Reason, cond.Message, reason, word)
				}
			}
			return ""
		})
		kit.Eventually(t, "its taint follows", func() string {
			if !slices.ContainsFunc(clusterOf(t, name).Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == "cluster.karmada.io/not-ready" && taint.Effect == corev1.TaintEffectNoSchedule
			}) {
				return "not there"
			}
			return ""
		})
		if out := argosy(t, "get", "clusters", name, "--no-headers"); !strings.Contains(out, "False") {
			t.Errorf("get clusters says %q", out)
		}
	}
	// failed returns what is wrong unless the binding tells that the cluster is behind, and m1 is not.
	failed := func(t *testing.T, ns, name string) string {
		b := binding(t, ns, name)
		if b == nil || len(b.Spec.Clusters) != 2 {
			return fmt.Sprintf("the binding is %+v", b)
		}
		for _, item := range b.Status.AggregatedStatus {
			if item.Applied != (item.ClusterName == "m1") {
				return fmt.Sprintf("%+v", item)
			}
		}
		if cond := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied); cond == nil ||
			cond.Status != metav1.ConditionFalse {
			return fmt.Sprintf("FullyApplied is %+v", cond)
		}
		return ""
	}

	for story, run := range map[string]func(t *testing.T){
		"its account is deleted": func(t *testing.T) {
			m, member := startMember(t, "c2")
			joined(t, m)
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [c2, m1]}}"))
			fleet.Hub.Apply(t, configMap(ns, "before", "1"))
			kit.Eventually(t, "both hold it", func() string { return placed(t, ns, "before-configmap", "c2", "m1") })
			token := string(get(t, fleet.Hub, &corev1.Secret{}, "karmada-cluster", "c2").Data["token"])
			if err := member.Delete(t.Context(),
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster",
					Name: "karmada-c2"}}); err != nil {
				t.Fatal(err)
			}
			// The API server of the member keeps the answer about a token for 10 s.
			kit.Eventually(t, "the member refuses the token of the hub", func() string {
				config := rest.AnonymousClientConfig(member.Config)
				config.BearerToken = token
				_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
				if !apierrors.IsUnauthorized(err) {
					return fmt.Sprint(err)
				}
				return ""
			})
			reaches(t, ns, "meanwhile")
			kit.Eventually(t, "the binding tells who is behind", func() string { return failed(t, ns, "meanwhile-configmap") })
			fails(t, "c2", "ClusterNotReady", "rejects the credentials", "401", "join it again")
			if member.Find(t, "v1", "ConfigMap", ns, "before") == nil {
				t.Error("what was there before is gone")
			}
			argosy(t, "join", "c2", "--cluster-kubeconfig", m.Kubeconfig)
			kit.Eventually(t, "it is ready again", func() string { return ready(t, "c2", metav1.ConditionTrue) })
			kit.Eventually(t, "it catches up", func() string { return placed(t, ns, "meanwhile-configmap", "c2", "m1") })
			kit.Eventually(t, "its taint goes", func() string {
				if taints := clusterOf(t, "c2").Spec.Taints; len(taints) > 0 {
					return fmt.Sprint(taints)
				}
				return ""
			})
		},
		"it hangs": func(t *testing.T) {
			m, member := startMember(t, "c3")
			joined(t, m)
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [c3, m1]}}"))
			fleet.Hub.Apply(t, configMap(ns, "before", "1"))
			kit.Eventually(t, "both hold it", func() string { return placed(t, ns, "before-configmap", "c3", "m1") })
			signal(t, m, syscall.SIGSTOP)
			defer signal(t, m, syscall.SIGCONT)
			for i := range 20 { // more than there are workers for its lane
				fleet.Hub.Apply(t, configMap(ns, fmt.Sprintf("many-%d", i), "1"))
			}
			reaches(t, ns, "meanwhile")
			fails(t, "c3", "ClusterNotReachable", "no answer in time", "spec.apiEndpoint")
			reaches(t, ns, "later")
			kit.Eventually(t, "the binding tells who is behind", func() string { return failed(t, ns, "meanwhile-configmap") })
			kit.Eventually(t, "what is new goes elsewhere", func() string { return placed(t, ns, "later-configmap", "m1") })
			signal(t, m, syscall.SIGCONT)
			kit.Eventually(t, "it is ready again", func() string { return ready(t, "c3", metav1.ConditionTrue) })
			for _, name := range []string{"meanwhile", "later", "many-0", "many-19"} {
				kit.Eventually(t, "it catches up", func() string { return placed(t, ns, name+"-configmap", "c3", "m1") })
			}
			if member.Find(t, "v1", "ConfigMap", ns, "later") == nil {
				t.Error("the hub says that it is applied, and it is not there")
			}
		},
		"it leaves while works are in flight": func(t *testing.T) {
			m, member := startMember(t, "c4")
			joined(t, m)
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [c4, m1]}}"))
			fleet.Hub.Apply(t, policy(ns, "d", "apps/v1", "Deployment", `
    clusterAffinity: {clusterNames: [c4, m1]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}`))
			fleet.Hub.Apply(t, deployment(ns, "web", 4, "example.com/web:1"))
			kit.Eventually(t, "both have a half", func() string { return placed(t, ns, "web-deployment", "c4", "m1") })
			left := make(chan error, 1)
			for i := range 40 {
				fleet.Hub.Apply(t, configMap(ns, fmt.Sprintf("many-%d", i), "1"))
				if i == 10 {
					go func() {
						out, err := fleet.Argosy(t.Context(), "unjoin", "c4", "--yes", "--cluster-kubeconfig", m.Kubeconfig)
						if err != nil {
							err = fmt.Errorf("%w: %s", err, out)
						}
						left <- err
					}()
				}
			}
			if err := <-left; err != nil {
				t.Fatal(err)
			}
			gone(t, "c4")
			kit.Eventually(t, "the replicas move", func() string {
				if got := kit.Field(fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web"), "spec",
					"replicas"); got != int64(4) {
					return fmt.Sprintf("m1 has %v", got)
				}
				return placed(t, ns, "web-deployment", "m1")
			})
			for i := range 40 {
				kit.Eventually(t, "every binding goes on without it", func() string {
					return placed(t, ns, fmt.Sprintf("many-%d-configmap", i), "m1")
				})
			}
			var stray corev1.ConfigMapList
			if err := member.List(t.Context(), &stray, client.InNamespace(ns),
				client.MatchingLabels{"karmada.io/managed": "true"}); err != nil || len(stray.Items) > 0 {
				t.Errorf("%v: %d objects are left in the member", err, len(stray.Items))
			}
		},
		"it dies and is removed": func(t *testing.T) {
			m, member := startMember(t, "c5")
			joined(t, m)
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [c5, m1]}}"))
			fleet.Hub.Apply(t, policy(ns, "d", "apps/v1", "Deployment", `
    clusterAffinity: {clusterNames: [c5, m1]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}`))
			fleet.Hub.Apply(t, configMap(ns, "before", "1"))
			fleet.Hub.Apply(t, deployment(ns, "web", 4, "example.com/web:1"))
			kit.Eventually(t, "both hold it", func() string { return placed(t, ns, "before-configmap", "c5", "m1") })
			kit.Eventually(t, "both have a half", func() string { return placed(t, ns, "web-deployment", "c5", "m1") })
			m.Kill()
			fleet.Hub.Apply(t, configMap(ns, "after", "1"))
			refused(t, []string{"is not responding: connection refused", "--force"}, "unjoin", "c5", "--cluster-kubeconfig",
				m.Kubeconfig)
			out, err := fleet.Argosy(t.Context(), "unjoin", "c5", "--yes")
			if err == nil || !strings.Contains(out, "2 replicas of 1 workload may keep running there") ||
				!strings.Contains(out, "--force") || clusterOf(t, "c5").DeletionTimestamp != nil {
				t.Errorf("a dead cluster is let go without --force: %v\n%s", err, out)
			}
			argosy(t, "unjoin", "c5", "--yes", "--force")
			gone(t, "c5")
			for _, name := range []string{"before", "after"} {
				kit.Eventually(t, "the bindings go on without it", func() string { return placed(t, ns, name+"-configmap", "m1") })
			}
			var works workv1alpha1.WorkList
			if err := fleet.Hub.List(t.Context(), &works, client.InNamespace("karmada-es-c5")); err != nil ||
				len(works.Items) > 0 {
				t.Errorf("%v: %d Works are left", err, len(works.Items))
			}
			waitFor(t, "all replicas are elsewhere", any(int64(4)), func() any {
				return kit.Field(fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web"), "spec", "replicas")
			})

			// It is back, with what was left there.
			ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
			defer cancel()
			if err := m.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			joined(t, m)
			for _, name := range []string{"before", "after"} {
				kit.Eventually(t, "what belongs there is taken over", func() string {
					return placed(t, ns, name+"-configmap", "c5", "m1")
				})
			}
			waitFor(t, "what no longer belongs there is listed", true, func() bool {
				out, _ := fleet.Argosy(t.Context(), "orphans", "-n", ns, "-C", "c5")
				return strings.Contains(out, "Deployment") && strings.Contains(out, "web")
			})
			argosy(t, "orphans", "delete", "deployment", "web", "-n", ns, "-C", "c5", "--yes")
			kit.Eventually(t, "and goes when its user says so", func() string {
				if member.Find(t, "apps/v1", "Deployment", ns, "web") != nil {
					return "it is there"
				}
				return ""
			})
		},
	} {
		t.Run(story, func(t *testing.T) { t.Parallel(); run(t) })
	}
}

// signal reaches the member's process, which is a group of its own.
func signal(t *testing.T, m *sim.Running, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(m.PID(), s); err != nil {
		t.Error(err)
	}
}
