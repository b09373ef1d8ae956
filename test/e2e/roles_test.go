package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit"
)

// accessPage are the objects of docs/access.md by kind and name, in the names of a test: those of the page are replaced
// in pairs.
func accessPage(t *testing.T, replaced ...string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for doc := range strings.SplitSeq(block[1], "---\n") {
			u := kit.Object(t, doc)
			objects[u.GetKind()+" "+u.GetName()] = strings.NewReplacer(replaced...).Replace(doc)
		}
	}
	return objects
}

// given applies some objects of a page.
func given(t *testing.T, c kit.Cluster, page map[string]string, names ...string) {
	t.Helper()
	for _, name := range names {
		if page[name] == "" {
			t.Fatalf("docs/access.md has no %s; it has %v", name, slices.Sorted(maps.Keys(page)))
		}
		c.Apply(t, page[name])
	}
}

// person is a user of the hub in one group.
type person struct {
	*testing.T
	client.Client
	config     *rest.Config
	kubeconfig string
}

func newPerson(t *testing.T, name, group string) person {
	t.Helper()
	p := person{T: t, config: rest.CopyConfig(fleet.Hub.Config), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	p.config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{group, "system:authenticated"}}
	c, err := kit.Connect(name, p.config)
	if err != nil {
		t.Fatal(err)
	}
	p.Client = c.Client
	k, err := clientcmd.LoadFromFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range k.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = name, p.config.Impersonate.Groups
	}
	if err := clientcmd.WriteToFile(*k, p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// argosy runs a verb as that person.
func (p person) argosy(args ...string) (string, error) {
	out, err := exec.CommandContext(p.Context(), fleet.Lab.Hub.Binary,
		append(args, "--kubeconfig", p.kubeconfig)...).CombinedOutput()
	return string(out), err
}

// shut tries what must be refused to that person for lack of a right, and not for another reason.
func (p person) shut(door string, err error) {
	p.Helper()
	if !apierrors.IsForbidden(err) {
		p.Errorf("%s: %v, want it forbidden", door, err)
	}
}

func (p person) creates(text string) error { return p.Create(p.Context(), kit.Object(p.T, text)) }

// throughProxy returns a client for a member through the hub's proxy.
func (p person) throughProxy(member string) kubernetes.Interface {
	p.Helper()
	config := rest.CopyConfig(p.config)
	config.Host += proxy.Path(member)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func TestDeveloperWorksInTheNamespaceAndIsRefusedElsewhere(t *testing.T) {
	t.Parallel()
	ns, bank := fleet.Namespace(t), fleet.Namespace(t)
	page := accessPage(t, "shop", ns, "see-the-fleet", "see-"+ns, "into-berlin", "into-"+ns, "berlin", "m1")
	given(t, fleet.Hub, page, "RoleBinding developers")
	dev := newPerson(t, "dev-"+ns, ns+"-developers")
	kit.Eventually(t, "the hub knows the developer", func() string {
		if err := dev.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "none"},
			kit.Object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy}")); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})

	// The developer propagates workloads of several kinds, and overrides one of them.
	for _, text := range []string{
		propagation(ns, "all", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}, {apiVersion: v1, kind: Secret}], placement: "+placedOn("m1", "m2")+"}"),
		override(ns, "us", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], overrideRules: [{targetCluster: {clusterNames: [m2]},
			overriders: {imageOverrider: [{component: Tag, operator: replace, value: "2"}]}}]}`),
		deployment(ns, "web", 1, "example.com/web:1"),
		"{apiVersion: v1, kind: Secret, metadata: {namespace: " + ns + ", name: key}, stringData: {a: b}}",
		"{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {namespace: " + ns +
			", name: cache}, spec: {replicas: 1, selector: {matchLabels: {app: c}}, template: {metadata: {labels: {app: c}}, spec: {containers: [{name: c, image: c}]}}}}",
		"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {namespace: " + ns +
			", name: w}, spec: {entrypoint: a, suspend: true, templates: [{name: a, container: {image: a}}]}}",
	} {
		if err := dev.creates(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	kit.Eventually(t, "the developer sees that it runs in both clusters", func() string {
		web := kit.Object(t, "{apiVersion: apps/v1, kind: Deployment}")
		if err := dev.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web); err != nil {
			return err.Error()
		}
		binding := kit.Object(t, "{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding}")
		if err := dev.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web-deployment"}, binding); err != nil {
			return err.Error()
		}
		if n := kit.Field(web, "status", "readyReplicas"); fmt.Sprint(n) != "2" {
			return fmt.Sprintf("%v replicas are ready", n)
		}
		return ""
	})
	if image := fmt.Sprint(inMember(t, "m2", "apps/v1", "Deployment", ns, "web", "spec", "template", "spec",
		"containers")); !strings.Contains(image, "example.com/web:2") {
		t.Errorf("in m2 it runs %s", image)
	}
	cache := kit.Object(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {namespace: "+ns+
		", name: cache}}")
	if err := dev.SubResource("scale").Patch(t.Context(), cache,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))); err != nil {
		t.Errorf("scale: %v", err)
	}
	if out, err := dev.argosy("rollout", "status", "deployment", "web", "-n", ns); err != nil ||
		!strings.Contains(out, "m2") {
		t.Errorf("rollout status: %v\n%s", err, out)
	}
	if out, err := dev.argosy("why", "deployment", "web", "-n", ns); err != nil || !strings.Contains(out,
		"healthy in 2 of 2 clusters") || !strings.Contains(out, "Not shown: you may not list "+
		"clusterpropagationpolicies.policy.karmada.io, clusteroverridepolicies.policy.karmada.io, "+
		"clusters.cluster.karmada.io; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it.") {
		t.Errorf("why, for who sees nothing of the fleet: %v\n%s", err, out)
	}
	if out, err := dev.argosy("why", "propagationpolicy", "all", "-n", ns); err != nil ||
		!strings.Contains(out, "Deployment.apps "+ns+"/web") || !strings.Contains(out, "argosy:fleet") {
		t.Errorf("why of the own policy: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"deployment", "web", "-n", bank}, {"cluster", "m1"},
		{"secret", "vault", "-n", bank}} {
		if out, err := dev.argosy(append([]string{"why"}, args...)...); err == nil || !strings.Contains(out, "forbidden") {
			t.Errorf("why %v: %v\n%s", args, err, out)
		}
	}
	given(t, fleet.Hub, page, "ClusterRoleBinding see-the-fleet")
	kit.Eventually(t, "an event reports the result", func() string {
		out, err := dev.argosy("why", "deployment", "web", "-n", ns)
		if err != nil || !strings.Contains(out, "Healthy") || strings.Contains(out, "about to be created") ||
			strings.Contains(out, "Not shown") {
			return fmt.Sprint(err, out)
		}
		return ""
	})
	if out, err := dev.argosy("get", "clusters"); err != nil || !strings.Contains(out, "m3") {
		t.Errorf("get clusters: %v\n%s", err, out)
	}

	// The other doors.
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+bank+
		", name: vault}, stringData: {gold: much}}")
	const space = "karmada-es-m1"
	for door, text := range map[string]string{
		"a Work": "{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: " + space +
			", name: " + ns + "}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}",
		"a Work in the developer's namespace": "{apiVersion: work.karmada.io/v1alpha1, kind: Work, " +
			"metadata: {namespace: " + ns + ", name: w}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}",
		"a ManifestWork": "{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {namespace: " + ns +
			", name: w}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}",
		"an EnclosedManifest": "{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest, metadata: {name: " +
			ns + "}, spec: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}}}",
		"a ClusterPropagationPolicy": propagation("", ns, "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: "+
			ns+"}], placement: "+placedOn("m1")+"}"),
		"a ClusterOverridePolicy": override("", ns, "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: "+ns+
			"}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}"),
		"another namespace": deployment(bank, "web", 1, "example.com/web:1"),
		"a policy there": propagation(bank, "p",
			"{resourceSelectors: [{apiVersion: v1, kind: Secret, name: vault}], placement: "+placedOn("m1")+"}"),
		"a binding": "{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: " + ns + ", name: b}, spec: {resource: {apiVersion: v1, kind: Secret, namespace: " + bank + ", name: vault}, clusters: [{name: m1}]}}",
		"a binding of the developer's own Secret": "{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: " + ns + ", name: c}, spec: {resource: {apiVersion: v1, kind: Secret, namespace: " + ns + ", name: key}, clusters: [{name: m3}]}}",
		"a Cluster": "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: " + ns +
			"}, spec: {syncMode: Pull}}",
		"a customization": "{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: " + ns + "}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {healthInterpretation: {luaScript: 'function InterpretHealth(o) return true end'}}}}",
		"a WorkloadRebalancer": "{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: " +
			ns + "}, spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: " + bank + ", name: web}]}}",
		"a ManagedCluster": "{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: " +
			ns + "}, spec: {hubAcceptsClient: true}}",
		"a ManagedClusterSet": "{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, " +
			"metadata: {name: " + ns + "}}",
		"a ManagedClusterSetBinding": "{apiVersion: cluster.open-cluster-management.io/v1beta2, " +
			"kind: ManagedClusterSetBinding, metadata: {namespace: " + ns + ", name: global}, spec: {clusterSet: global}}",
		"a ManagedClusterAddOn": "{apiVersion: addon.open-cluster-management.io/v1beta1, kind: ManagedClusterAddOn, " +
			"metadata: {namespace: " + ns + ", name: a}, spec: {}}",
		"a Remedy": "{apiVersion: remedy.karmada.io/v1alpha1, kind: Remedy, metadata: {name: " + ns +
			"}, spec: {clusterAffinity: {clusterNames: [none]}, actions: [TrafficControl]}}",
		"a SidecarSet": "{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: " + ns +
			"}, spec: {selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}]}}",
		"a Namespace": "{apiVersion: v1, kind: Namespace, metadata: {name: " + ns + "-2}}",
		"a Secret of the hub's own": "{apiVersion: v1, kind: Secret, metadata: {namespace: karmada-cluster, name: " + ns +
			"}}",
		"a right beyond the developer's own": "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: " + ns + ", name: more}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: User, name: dev, apiGroup: rbac.authorization.k8s.io}]}",
	} {
		dev.shut(door, dev.creates(text))
	}
	for door, what := range map[string]struct{ kind, namespace, name string }{
		"the Works of a cluster":          {"work.karmada.io/v1alpha1 Work", space, "any"},
		"the tokens of the hub":           {"v1 Secret", "karmada-cluster", "m1"},
		"a Secret of others":              {"v1 Secret", bank, "vault"},
		"a policy of others":              {"policy.karmada.io/v1alpha1 PropagationPolicy", bank, "p"},
		"a binding of others":             {"work.karmada.io/v1alpha2 ResourceBinding", bank, "b"},
		"what webhooks the hub asks":      {"config.karmada.io/v1alpha1 ResourceInterpreterWebhookConfiguration", "", "w"},
		"what an addon encloses":          {"release.argosy.io/v1alpha1 EnclosedManifest", "", "e"},
		"what a distribution gives":       {"apps.kruise.io/v1alpha1 ResourceDistribution", "", "d"},
		"a ManifestWork of the developer": {"work.open-cluster-management.io/v1 ManifestWork", ns, "w"},
		"what the fleet is rebalanced":    {"apps.karmada.io/v1alpha1 WorkloadRebalancer", "", "r"},
	} {
		apiVersion, kind, _ := strings.Cut(what.kind, " ")
		dev.shut(door, dev.Get(t.Context(), client.ObjectKey{Namespace: what.namespace, Name: what.name},
			kit.Object(t, "{apiVersion: "+apiVersion+", kind: "+kind+"}")))
	}
	m1 := kit.Object(t, "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1}}")
	dev.shut("a cluster's annotations",
		dev.Patch(t.Context(), m1, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"argosy.io/impersonate-system-names":"system:serviceaccount:`+ns+
				`:default"}}}`))))
	dev.shut("a cluster's end", dev.Delete(t.Context(), m1))
	binding := kit.Object(t, "{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: "+ns+
		", name: web-deployment}}")
	dev.shut("the binding", dev.Patch(t.Context(), binding,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":[{"name":"m3"}]}}`))))
	dev.shut("the binding's status", dev.Status().Patch(t.Context(), binding,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"aggregatedStatus":[]}}`))))
	for kind, status := range map[string]string{
		"networking.karmada.io/v1alpha1, kind: MultiClusterService": `{"status":{"conditions":[]}}`,
		"networking.karmada.io/v1alpha1, kind: MultiClusterIngress": `{"status":{"trafficBlockClusters":["m1"]}}`,
		"cluster.karmada.io/v1alpha1, kind: Cluster":                `{"status":{"remedyActions":[]}}`,
	} {
		obj := kit.Object(t, "{apiVersion: "+kind+", metadata: {namespace: "+ns+", name: m1}}")
		dev.shut("the status of "+kind, dev.Status().Patch(t.Context(), obj,
			client.RawPatch(types.MergePatchType, []byte(status))))
	}
	dev.shut("a workload's status", dev.Status().Patch(t.Context(), cache,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":7}}`))))

	// The developer has access to a member by name, with the permissions of the member.
	pods := func(member string) error {
		_, err := dev.throughProxy(member).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		return err
	}
	dev.shut("the proxy", pods("m1"))
	given(t, fleet.Hub, page, "ClusterRole into-berlin", "ClusterRoleBinding into-berlin")
	kit.Eventually(t, "the member rejects the developer by name", func() string {
		if err := pods("m1"); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), fmt.Sprintf("User %q cannot list", "dev-"+ns)) {
			return fmt.Sprint(err)
		}
		return ""
	})
	dev.shut("the proxy of another cluster", pods("m2"))
	given(t, fleet.Members["m1"], page, "RoleBinding developers-look")
	kit.Eventually(t, "the developer sees what the member allows", func() string { return errorText(pods("m1")) })
	_, err := dev.throughProxy("m1").CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	dev.shut("Secrets in the member", err)
}

func listOf(apiVersion, kind string) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": apiVersion, "kind": kind + "List"}}
}

// errorText returns an error's text; empty for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestViewersMayUseAllReadingCommands(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	page := accessPage(t, "name: on-call", "name: on-call-"+ns)
	given(t, fleet.Hub, page, "ClusterRoleBinding on-call")
	given(t, fleet.Hub, map[string]string{"argosy:view": strings.NewReplacer("on-call-"+ns, "alone-"+ns, "name: view",
		`name: "argosy:view"`).Replace(page["ClusterRoleBinding on-call"])}, "argosy:view")
	vic, alone := newPerson(t, "vic-"+ns, "on-call-"+ns), newPerson(t, "al-"+ns, "alone-"+ns)
	fleet.Hub.Apply(t, propagation(ns, "p",
		"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Secret}], placement: "+placedOn("m1")+
			"}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+ns+", name: key}, stringData: {a: hush}}")
	kit.Eventually(t, "it runs", func() string { return applied(t, ns, "web-deployment", "m1") })
	for _, c := range []struct {
		who   person
		args  []string
		words string
	}{
		{vic, []string{"get", "clusters"}, "m1"}, {vic, []string{"get", "deployments", "-n", ns}, "web"},
		{vic, []string{"get", "resourcebindings", "-A"}, "web-deployment"},
		{vic, []string{"why", "deployment", "web", "-n", ns}, "Healthy"}, {vic, []string{"why", "cluster", "m1"}, "m1"},
		{vic, []string{"rollout", "status", "deployment", "web", "-n", ns}, "m1"},
		{vic, []string{"status"}, "UNKNOWN: you may not"}, {alone, []string{"status"}, "m1"},
		{alone, []string{"get", "clusters"}, "m1"},
		{alone, []string{"get", "propagationpolicies", "-n", ns}, "p"}, {alone, []string{"why", "cluster", "m1"}, "m1"},
	} {
		kit.Eventually(t, strings.Join(c.args, " "), func() string {
			out, err := c.who.argosy(c.args...)
			// Tests beside this one may have a cluster that is not well.
			if err != nil && (c.args[0] != "status" || strings.Contains(out, "may list clusters") ||
				strings.Contains(out, "may read leases")) || !strings.Contains(out, c.words) {
				return fmt.Sprint(err, "\n", out)
			}
			return ""
		})
	}
	for _, args := range [][]string{{"get", "secrets", "-n", ns}, {"get", "works", "-A"},
		{"get", "secrets", "-n", "karmada-cluster"}, {"why", "secret", "key", "-n", ns},
		{"get", "pods", "-s", "members", "-n", ns}} {
		for _, who := range []person{vic, alone} {
			if out, err := who.argosy(args...); err == nil || !strings.Contains(out, "forbidden") &&
				!strings.Contains(out, "not allowed") && !strings.Contains(out, "may not") || strings.Contains(out, "hush") {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
	}
}

// It changes the fleet, and runs beside no other test.
func TestOperatorsLookAfterTheFleetAndReachNothingInIt(t *testing.T) {
	kit.Long(t)
	const name = "ops1"
	m, _ := startMember(t, name)
	page := accessPage(t, "berlin", name)
	given(t, fleet.Hub, page, "ClusterRoleBinding fleet-operators")
	oli := newPerson(t, "oli", "fleet-operators")
	kit.Eventually(t, "the hub knows the operator", func() string {
		return errorText(oli.List(t.Context(), listOf("cluster.karmada.io/v1alpha1", "Cluster")))
	})

	// To join takes the right to the credentials of that cluster, and nothing is half joined without.
	if out, err := oli.argosy("join", name, "--cluster-kubeconfig", m.Kubeconfig); err == nil ||
		!strings.Contains(out, "forbidden") {
		t.Errorf("join, without the right to its Secrets: %v\n%s", err, out)
	}
	if fleet.Hub.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", name) != nil {
		t.Error("the cluster is joined")
	}
	cluster := func(secret string) string {
		return "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: " + name +
			"}, spec: {syncMode: Push, apiEndpoint: 'https://127.0.0.1:1', secretRef: {namespace: karmada-cluster, name: " +
			secret + "}}}"
	}
	oli.shut("a Cluster", oli.creates(cluster(name)))
	given(t, fleet.Hub, page, "Role join-berlin", "RoleBinding join-berlin", "ClusterRole join", "ClusterRoleBinding join")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", name, "--yes", "--force", "--wait", "20s"); err != nil &&
			!strings.Contains(out, "is not joined") {
			t.Errorf("unjoin: %v\n%s", err, out)
		}
	})
	kit.Eventually(t, "the operator may join clusters", func() string {
		if err := oli.creates(cluster("m1")); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), `permission to get secrets "m1"`) {
			return fmt.Sprint(err)
		}
		return ""
	})
	kit.Eventually(t, "it is joined", func() string {
		out, err := oli.argosy("join", name, "--cluster-kubeconfig", m.Kubeconfig)
		if err != nil {
			return fmt.Sprint(err, out)
		}
		return ""
	})
	kit.Eventually(t, name+" is ready", func() string { return ready(t, name, metav1.ConditionTrue) })

	// The operator taints and labels clusters, and moves templates.
	patch := func(text string) error {
		return oli.Patch(t.Context(), kit.Object(t,
			"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: "+name+"}}"),
			client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err := patch(`{"metadata":{"labels":{"tier":"edge"}},"spec":{"taints":[{"key":"upkeep","effect":"NoSchedule"}]}}`); err != nil {
		t.Errorf("taint: %v", err)
	}
	ns := fleet.Namespace(t)
	for _, text := range []string{
		propagation("", "ops-"+ns, "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: "+ns+
			", name: everywhere}], placement: "+placedOn("m1")+"}"),
		"{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: ops-" + ns +
			"}, spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: " + ns + ", name: web}]}}",
	} {
		if err := oli.creates(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		fleet.Hub.RemoveAtEnd(t, kit.Object(t, text))
	}
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+ns+", name: everywhere}, data: {a: b}}")
	kit.Eventually(t, "the operator's policy propagates it", func() string {
		return applied(t, ns,
			"everywhere-configmap", "m1")
	})
	// ManifestWorks may hold Secrets, which are not for operators, and the lag is read from the members.
	if out, err := oli.argosy("status"); strings.Count(out, "may not") != 2 || !strings.Contains(out, name) ||
		!strings.Contains(out, "you may not list manifestworks") || !strings.Contains(out, "LAG is unknown for cluster") {
		t.Errorf("status: %v\n%s", err, out)
	}

	// The operator cannot set the address or the credentials of a cluster, and writes nothing that reaches a member.
	oli.shut("another address", patch(
		`{"spec":{"apiEndpoint":"https://127.0.0.1:1","secretRef":{"namespace":"karmada-cluster","name":"m1"}}}`))
	oli.shut("another cluster, sent to the operator's own address",
		oli.Patch(t.Context(), kit.Object(t,
			"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1}}"),
			client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"apiEndpoint":"`+m.Server+`","secretRef":{"namespace":"karmada-cluster","name":"`+name+
					`"},"impersonatorSecretRef":{"namespace":"karmada-cluster","name":"`+name+`-impersonator"}}}`))))
	oli.shut("names of Kubernetes' own",
		patch(`{"metadata":{"annotations":{"argosy.io/impersonate-system-names":"system:serviceaccount:kube-system:default"}}}`))
	oli.shut("a status", oli.Status().Patch(t.Context(),
		kit.Object(t, "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: "+name+"}}"),
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"kubernetesVersion":"v0"}}`))))
	for door, text := range map[string]string{
		"a Work": "{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: karmada-es-" + name +
			", name: w}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}",
		"a ClusterOverridePolicy": override("", "ops",
			"{overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}"),
		"a Deployment": deployment(ns, "web", 1, "example.com/web:1"),
		"a ConfigMap": "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + ns +
			", name: theirs}}",
		"an EnclosedManifest": "{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest, metadata: {name: ops}, spec: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}}}",
		"a policy that sends Secrets around": propagation("", "ops-secrets",
			"{resourceSelectors: [{apiVersion: v1, kind: Secret}], placement: "+placedOn(name)+"}"),
		"a policy whose Secrets follow": propagation("", "ops-deps",
			"{propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: "+placedOn(name)+"}"),
		"a customization": "{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: ops}, spec: {target: {apiVersion: apps/v1, kind: Deployment}, customizations: {healthInterpretation: {luaScript: 'function InterpretHealth(o) return true end'}}}}",
	} {
		oli.shut(door, oli.creates(text))
	}
	for _, of := range []string{"m1", name + "-other"} {
		oli.shut("the token of "+of, oli.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: of},
			kit.Object(t, "{apiVersion: v1, kind: Secret}")))
	}
	oli.shut("all tokens", oli.List(t.Context(), listOf("v1", "Secret"), client.InNamespace("karmada-cluster")))
	_, err := oli.throughProxy("m1").CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	oli.shut("the proxy", err)
	oli.shut("the whole fleet at once",
		oli.DeleteAllOf(t.Context(), kit.Object(t, "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster}"),
			client.MatchingLabels{"none": "such"}))

	// To have it leave by the command takes to read what is there.
	if out, err := oli.argosy("unjoin", name, "--yes"); err == nil || !strings.Contains(out, "forbidden") ||
		fleet.Hub.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", name) == nil {
		t.Errorf("unjoin, without the right to read its Works: %v\n%s", err, out)
	}
	given(t, fleet.Hub, page, "Role leave", "RoleBinding leave")
	kit.Eventually(t, "it leaves", func() string {
		out, err := oli.argosy("unjoin", name, "--yes", "--cluster-kubeconfig", m.Kubeconfig)
		if err != nil && !strings.Contains(out, "is not joined") {
			return fmt.Sprint(err, out)
		}
		return ""
	})
	gone(t, name)
}
