package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// cases holds small inputs from the field, a folder each; it lies beside the repository. Its README.md has the expected
// results.
const cases = "../../../shared/cases"

// applyCase applies the files of a case to a cluster, in one namespace.
func applyCase(t *testing.T, c kit.Cluster, ns, name string, files ...string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(cases, name, file))
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(t, inNamespace(t, string(text), ns))
	}
}

// inNamespace returns the objects of a YAML stream, each on a line of its own, in the namespace.
func inNamespace(t *testing.T, stream, ns string) string {
	t.Helper()
	var out []string
	for doc := range strings.SplitSeq(stream, "\n---\n") {
		u := kit.Object(t, doc)
		u.SetNamespace(ns)
		line, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(line))
	}
	return strings.Join(out, "\n---\n")
}

// inMember waits for an object in a member.
func inMember(t *testing.T, member, apiVersion, kind, ns, name string) (u *unstructured.Unstructured) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%s %s is in %s", kind, name, member), func() string {
		if u = fleet.Members[member].Find(t, apiVersion, kind, ns, name); u == nil {
			return "it is not there"
		}
		return ""
	})
	return u
}

func TestCasesFromTheFieldGiveTheirExpectedResults(t *testing.T) {
	kit.Long(t)
	if _, err := os.Stat(cases); err != nil {
		t.Skipf("the cases are not beside this repository: %v", err)
	}
	tests := map[string]func(t *testing.T, ns string){
		"collision":        collision,
		"components":       components,
		"empty-stage":      emptyStage,
		"namespace-moves":  namespaceMoves,
		"image-registry":   imageRegistry,
		"job-failed":       jobFailed,
		"long-names":       longNames,
		"names-that-fold":  namesThatFold,
		"node-port":        allocatedNodePort,
		"pods-to-delete":   podsToDelete,
		"quota-of-limits":  quotaOfLimits,
		"ready-false":      readyFalse,
		"service-account":  serviceAccount,
		"two-statefulsets": twoStatefulSets,
	}
	// Members are lost and tainted in test/failover, TestNoFaultLosesAWorkload. The attacks of agents are in test/pull,
	// attacks_test.go, that of an approver in TestFourEyesAreTwoPeople.
	elsewhere := []string{"attacks", "ordered-affinities"}
	folders, err := os.ReadDir(cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && tests[f.Name()] == nil && !slices.Contains(elsewhere, f.Name()) {
			t.Errorf("no test replays the case %s", f.Name())
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fleet.Namespace(t))
		})
	}
}

// asUser returns the hub as a user without groups sees it.
func asUser(t *testing.T, name string) kit.Cluster {
	t.Helper()
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := kit.Connect(name, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// collision has a tenant take the Work names of others before their objects exist. The file names its namespaces.
func collision(t *testing.T, _ string) {
	text, err := os.ReadFile(filepath.Join(cases, "collision", "tenant.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tenant, spaces := asUser(t, "tenant"), []string{"tpjbaakx", "tg2eau9q"}
	for _, ns := range spaces {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant, namespace: %[1]s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: tenant}]}`, ns))
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		kit.Eventually(t, "the hub knows the tenant's role", func() string {
			if err := tenant.Create(t.Context(), kit.Object(t, doc)); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
	inMember(t, "member1", "apps/v1", "Deployment", spaces[0], "vault")
	inMember(t, "member1", "v1", "ConfigMap", spaces[1], "vip")
	fleet.Hub.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: treasury}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: vip}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: treasury},
  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [member1]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: vault, namespace: treasury}, spec: {replicas: 2,
  selector: {matchLabels: {app: vault}}, template: {metadata: {labels: {app: vault}},
  spec: {containers: [{name: c, image: "example.com/vault:1"}]}}}}`)
	vault := inMember(t, "member1", "apps/v1", "Deployment", "treasury", "vault")
	for _, member := range []string{"member1", "member2", "member3"} {
		inMember(t, member, "v1", "Namespace", "", "vip")
	}
	kit.Eventually(t, "the binding of the Deployment is healthy", func() string {
		b, key := &workv1alpha2.ResourceBinding{}, client.ObjectKey{Namespace: "treasury", Name: "vault-deployment"}
		if err := fleet.Hub.Get(t.Context(), key, b); err != nil {
			return err.Error()
		}
		all := b.Status.AggregatedStatus
		if len(all) != 1 || !all[0].Applied || all[0].Health != workv1alpha1.ResourceHealthy {
			return fmt.Sprintf("it says %+v", all)
		}
		return ""
	})
	if out, err := fleet.Argosy(t.Context(), "why", "deployment", "vault", "-n", "treasury"); err != nil ||
		strings.Contains(out, "belongs to") || strings.Contains(out, "tenant") {
		t.Errorf("argosy why: %v\n%s", err, out)
	}

	// The tenant's objects go, and take none of the others along.
	tenant.Remove(t, "apps/v1", "Deployment", spaces[0], "vault")
	tenant.Remove(t, "v1", "ConfigMap", spaces[1], "vip")
	for _, gone := range []struct{ apiVersion, kind, ns, name string }{
		{"apps/v1", "Deployment", spaces[0], "vault"}, {"v1", "ConfigMap", spaces[1], "vip"}} {
		kit.Eventually(t, "the tenant's "+gone.kind+" leaves member1", func() string {
			if fleet.Members["member1"].Find(t, gone.apiVersion, gone.kind, gone.ns, gone.name) != nil {
				return "it is there"
			}
			return ""
		})
	}
	fleet.Hub.Change(t, "apps/v1", "Deployment", "treasury", "vault", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
	})
	kit.Eventually(t, "member1 follows the Deployment that stays", func() string {
		is := fleet.Members["member1"].Find(t, "apps/v1", "Deployment", "treasury", "vault")
		if is == nil || is.GetUID() != vault.GetUID() {
			return "it was deleted"
		}
		if n, _, _ := unstructured.NestedInt64(is.Object, "spec", "replicas"); n != 3 {
			return fmt.Sprintf("it has %d replicas", n)
		}
		return ""
	})
	if fleet.Members["member1"].Find(t, "v1", "Namespace", "", "vip") == nil {
		t.Error("the namespace left with the tenant's ConfigMap")
	}
}

// The part four-eyes of the case attacks: one person starts a release by the token of a service account, and approves.
func TestFourEyesAreTwoPeople(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	const group = "release.argosy.io/v1alpha1"
	fleet.Hub.Apply(t, strings.ReplaceAll(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer, namespace: NS}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: deployer, namespace: NS},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit},
  subjects: [{kind: ServiceAccount, name: deployer, namespace: NS}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: approver, namespace: NS},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: approver-NS}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: approve, namespace: NS}, rules: [
  {apiGroups: [release.argosy.io], resources: [releases], verbs: [get, list, watch, approve]},
  {apiGroups: [release.argosy.io], resources: [releaseapprovals], verbs: [get, list, watch, create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lead, namespace: NS},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approve},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: lead-NS}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: deployer-token, namespace: NS,
  annotations: {kubernetes.io/service-account.name: deployer}}, type: kubernetes.io/service-account-token}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: NS},
  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [member1]}}}}
---
{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, metadata: {name: gated, namespace: NS},
  spec: {stages: [{name: all, before: [{name: sign, approval: {count: 1, notAuthor: true}}]}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, spec: {replicas: 1,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {containers: [{name: c, image: "example.com/web:1"}]}}}}`, "NS", ns))
	inMember(t, "member1", "apps/v1", "Deployment", ns, "web")
	image := func(u *unstructured.Unstructured) string {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)["image"].(string)
	}
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"argosy.io/release-strategy": "gated"})
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "example.com/web:2"
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	})

	// 1. The approver takes a token of the service account, and starts the release with it.
	approver, lead := asUser(t, "approver-"+ns), asUser(t, "lead-"+ns)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "deployer"}}
	request := &authenticationv1.TokenRequest{}
	kit.Eventually(t, "the approver gets a token", func() string {
		if err := approver.SubResource("token").Create(t.Context(), account, request); err != nil {
			return err.Error()
		}
		return ""
	})
	config := rest.AnonymousClientConfig(fleet.Hub.Config)
	config.BearerToken = request.Status.Token
	deployer, err := kit.Connect("deployer", config)
	if err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the release is created", func() string {
		if err := deployer.Create(t.Context(), kit.Object(t, `{apiVersion: `+group+`, kind: Release, metadata: {name: web,
			namespace: `+ns+`}, spec: {strategyRef: {name: gated}, targets: [{name: web, ref: {apiVersion: apps/v1,
			kind: Deployment, name: web}}]}}`)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	var r *unstructured.Unstructured
	kit.Eventually(t, "the release waits", func() string {
		r = fleet.Hub.Find(t, group, "Release", ns, "web")
		if kit.Field(r, "status", "reason") != "WaitingForApproval" {
			return fmt.Sprint(kit.Field(r, "status"))
		}
		return ""
	})
	author := "system:serviceaccount:" + ns + ":deployer"
	if by := kit.Field(r, "spec", "createdBy", "user"); by != author {
		t.Fatalf("the release is created by %v, so this attack is another one", by)
	}
	if out, err := fleet.Argosy(t.Context(), "release", "status", "web", "-n", ns); err != nil ||
		!strings.Contains(out, author+", who created it, cannot approve, nor can users who may act as such a user") {
		t.Errorf("argosy release status: %v\n%s", err, out)
	}

	// 2. As oneself, the approver cannot approve it. A user who may not act as the author can.
	approval := func() *unstructured.Unstructured {
		return kit.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: ReleaseApproval, metadata: {generateName: web-, namespace: %s},
			spec: {release: web, releaseUID: "%s", revision: "%v", stage: all, gate: sign, attempt: 1, verdict: Approve}}`, group, ns,
			r.GetUID(), kit.Field(r, "status", "revision")))
	}
	err = approver.Create(t.Context(), approval())
	if want := author + " created the release: approver-" + ns + " may create serviceaccounts/token"; !apierrors.
		IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Fatalf("the approval of the approver: %v, want %q", err, want)
	}
	// 3. Nor can users with another right by which they act as the author.
	for right, rule := range map[string]string{
		"impersonate serviceaccounts":                `{apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}`,
		"impersonate:serviceaccount serviceaccounts": `{apiGroups: [authentication.k8s.io], resources: [serviceaccounts], verbs: ["impersonate:serviceaccount"]}`,
		"create secrets":                             `{apiGroups: [""], resources: [secrets], verbs: [create]}`,
		"get secrets":                                `{apiGroups: [""], resources: [secrets], verbs: [get]}`,
		"patch secrets":                              `{apiGroups: [""], resources: [secrets], verbs: [patch]}`,
		"escalate roles":                             `{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}`,
		"bind roles":                                 `{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [bind]}`,
		"bind clusterroles":                          `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}`,
		"approve signers \"kubernetes.io/kube-api":   `{apiGroups: [certificates.k8s.io], resources: [signers], verbs: [approve], resourceNames: [kubernetes.io/kube-apiserver-client]}`,
		"approve signers \"kubernetes.io/*\"":        `{apiGroups: [certificates.k8s.io], resources: [signers], verbs: [approve], resourceNames: ["kubernetes.io/*"]}`,
	} {
		name := strings.Trim(regexp.MustCompile("[^a-z]+").ReplaceAllString(right, "-"), "-") + "-" + ns
		fleet.Hub.Apply(t, strings.NewReplacer("NAME", name, "RULE", rule, "NS", ns).Replace(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME}, rules: [RULE]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: NAME}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NAME, namespace: NS},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approve},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: NAME}]}`))
		user := asUser(t, name)
		kit.Eventually(t, "the approval is refused for: "+right, func() string {
			err := user.Create(t.Context(), approval())
			switch {
			case err == nil:
				t.Fatalf("the approval of a user who may %s counts", right)
			case !strings.Contains(err.Error(), name+" may "+right):
				return err.Error() // the rights are not in the hub's caches yet
			}
			return ""
		})
	}
	if is := image(inMember(t, "member1", "apps/v1", "Deployment", ns, "web")); is != "example.com/web:1" {
		t.Errorf("member1 runs %s before an approval", is)
	}
	if err := lead.Create(t.Context(), approval()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "member1 runs the new version", func() string {
		if is := image(inMember(t, "member1", "apps/v1", "Deployment", ns, "web")); is != "example.com/web:2" {
			return "it runs " + is
		}
		return ""
	})
}

func components(t *testing.T, ns string) {
	definition, err := os.ReadFile(filepath.Join(cases, "components", "definition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fleet.Hub.Apply(t, string(definition)) // its policy sends it to the members
	for _, c := range []kit.Cluster{fleet.Hub, fleet.Members["member1"], fleet.Members["member2"]} {
		kit.Eventually(t, c.Name+" serves the kind", func() string {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("flink.apache.org/v1beta1")
			list.SetKind("FlinkDeploymentList")
			if err := c.List(t.Context(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	applyCase(t, fleet.Hub, ns, "components", "all.yaml")
	placed := func(name string, clusters int) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("%s is placed in %d clusters", name, clusters), func() string {
			b := &workv1alpha2.ResourceBinding{}
			key := client.ObjectKey{Namespace: ns, Name: name + "-flinkdeployment"}
			if err := fleet.Hub.Get(t.Context(), key, b); err != nil {
				return err.Error()
			}
			scheduled := meta.FindStatusCondition(b.Status.Conditions, "Scheduled")
			if scheduled == nil || (scheduled.Status == "True") != (clusters > 0) || len(b.Spec.Clusters) != clusters ||
				len(b.Spec.Components) != 2 {
				return fmt.Sprintf("its components are %+v, its clusters %v, with %+v", b.Spec.Components, b.Spec.Clusters,
					scheduled)
			}
			return ""
		})
	}
	placed("wide", 0)
	placed("tall", 0)
	change := func(name string, value int64, path ...string) {
		fleet.Hub.Change(t, "flink.apache.org/v1beta1", "FlinkDeployment", ns, name, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, value, append([]string{"spec"}, path...)...)
		})
	}
	change("wide", 20, "taskManager", "replicas")
	change("tall", 2, "jobManager", "resource", "cpu")
	placed("wide", 1)
	placed("tall", 1)
}

// A member with a quota of limits gets what the quota admits. More replicas than all quotas admit are explained by the
// member's own sentence.
func quotaOfLimits(t *testing.T, ns string) {
	quota := func(member, limit string) {
		text, err := os.ReadFile(filepath.Join(cases, "quota-of-limits", "quota.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		fleet.Members[member].Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}\n---\n"+
			inNamespace(t, strings.Replace(string(text), `limits.cpu: "2"`, "limits.cpu: "+limit, 1), ns))
		kit.Eventually(t, "the quota of "+member+" is enforced", func() string {
			q := fleet.Members[member].Find(t, "v1", "ResourceQuota", ns, "tenant")
			if is := kit.Field(q, "status", "hard", "limits.cpu"); is != strings.Trim(limit, `"`) {
				return fmt.Sprint(is)
			}
			// The admission of the member may not know the quota yet.
			over := kit.Object(t, "{apiVersion: v1, kind: Pod, metadata: {name: over, namespace: "+ns+"}, spec: {containers: "+
				`[{name: c, image: "nginx:1", resources: {requests: {cpu: "1"}, limits: {cpu: "100"}}}]}}`)
			if err := fleet.Members[member].Create(t.Context(), over); err == nil {
				fleet.Members[member].Remove(t, "v1", "Pod", ns, "over")
				return "a pod over the quota is admitted"
			} else if !apierrors.IsForbidden(err) {
				return err.Error()
			}
			return ""
		})
	}
	quota("member1", `"2"`)
	placed := func() map[string]int32 {
		b := &workv1alpha2.ResourceBinding{}
		_ = fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web-deployment"}, b)
		in := map[string]int32{}
		for _, c := range b.Spec.Clusters {
			in[c.Name] = c.Replicas
		}
		return in
	}
	applyCase(t, fleet.Hub, ns, "quota-of-limits", "all.yaml")
	kit.Eventually(t, "all 6 replicas are ready, at most 2 of them in member1", func() string {
		ready := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status", "readyReplicas")
		if in := placed(); ready != int64(6) || in["member1"] > 2 || in["member1"]+in["member2"] != 6 {
			return fmt.Sprintf("%v are ready, placed %v", ready, in)
		}
		return ""
	})

	quota("member2", `"4"`)
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "web", func(u *unstructured.Unstructured) {
		var weights []any
		for _, m := range []any{"member1", "member2"} {
			weights = append(weights, map[string]any{"weight": int64(1),
				"targetCluster": map[string]any{"clusterNames": []any{m}}})
		}
		_ = unstructured.SetNestedMap(u.Object, map[string]any{"staticWeightList": weights}, "spec", "placement",
			"replicaScheduling", "weightPreference")
	})
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(10), "spec", "replicas")
	})
	kit.Eventually(t, "argosy why has the sentence of each member, and names the quota to change", func() string {
		out, err := fleet.Argosy(t.Context(), "why", "deployment", "web", "-n", ns)
		for m, missing := range map[string]string{"member1": "3 of 5", "member2": "1 of 5"} {
			if err != nil || !strings.Contains(out, m+": "+missing+" pods: FailedCreate: pods \"web-") ||
				!strings.Contains(out, "raise ResourceQuota tenant in namespace "+ns+" of cluster "+m) {
				return fmt.Sprintf("%v\n%s", err, out)
			}
		}
		if !strings.Contains(out, "exceeded quota: tenant, requested: limits.cpu=1, used: limits.cpu=2, limited: limits.cpu=2") {
			return out
		}
		return ""
	})

	// A StatefulSet has no such condition: its member is asked for events.
	fleet.Hub.Apply(t, strings.ReplaceAll(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
  metadata: {name: db, namespace: NS}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet}],
  placement: {clusterAffinity: {clusterNames: [member1]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: NS}, spec: {replicas: 1, serviceName: db,
  selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c,
  image: "example.com/db:1", resources: {limits: {cpu: "1", memory: 1Gi}}}]}}}}`, "NS", ns))
	kit.Eventually(t, "argosy why has the sentence about the StatefulSet", func() string {
		out, err := fleet.Argosy(t.Context(), "why", "statefulset.apps", "db", "-n", ns)
		if err != nil || !strings.Contains(out, "member1: 1 of 1 pod: FailedCreate: ") ||
			!strings.Contains(out, "exceeded quota: tenant") || !strings.Contains(out, "raise ResourceQuota tenant") {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
}

// The conditions of a kind that no interpreter knows decide about its health, and reach the template.
func readyFalse(t *testing.T, ns string) {
	const api = "certs.example.com/v1"
	definition, err := os.ReadFile(filepath.Join(cases, "ready-false", "definition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fleet.Hub.Apply(t, string(definition)) // its policy sends it to the members
	for _, c := range []kit.Cluster{fleet.Hub, fleet.Members["member1"], fleet.Members["member2"]} {
		kit.Eventually(t, c.Name+" serves the kind", func() string {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(api)
			list.SetKind("CertificateList")
			if err := c.List(t.Context(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	applyCase(t, fleet.Hub, ns, "ready-false", "all.yaml")
	report := func(member, name, ready string) {
		inMember(t, member, api, "Certificate", ns, name)
		kit.Eventually(t, member+" accepts the status of "+name, func() string {
			u := fleet.Members[member].Find(t, api, "Certificate", ns, name)
			u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{map[string]any{
				"type": "Ready", "status": ready, "reason": "Issued" + ready, "message": "the issuer says " + ready,
				"lastTransitionTime": "2026-11-30T08:00:00Z", "observedGeneration": u.GetGeneration()}}}
			if err := fleet.Members[member].Status().Update(t.Context(), u); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	report("member1", "one", "True")
	report("member1", "two", "True")
	report("member2", "two", "False")
	for name, want := range map[string]string{"one": "True map[member1:Healthy] the issuer says True",
		"two": "False map[member1:Healthy member2:Unknown] member2: the issuer says False"} {
		kit.Eventually(t, "the template "+name+" has the conditions of its members", func() string {
			b := &workv1alpha2.ResourceBinding{}
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name + "-certificate"}, b); err != nil {
				return err.Error()
			}
			health := map[string]workv1alpha1.ResourceHealth{}
			for _, item := range b.Status.AggregatedStatus {
				health[item.ClusterName] = item.Health
			}
			u := fleet.Hub.Find(t, api, "Certificate", ns, name)
			conditions, _ := kit.Field(u, "status", "conditions").([]any)
			if len(conditions) != 1 {
				return fmt.Sprintf("%v, health %v", u.Object["status"], health)
			}
			// kubectl wait takes a condition that is not older than the template.
			c := conditions[0].(map[string]any)
			if is := fmt.Sprintf("%s %v %s", c["status"], health, c["message"]); is != want || c["type"] != "Ready" ||
				c["observedGeneration"] != u.GetGeneration() {
				return fmt.Sprintf("%s, %v", is, u.Object["status"])
			}
			return ""
		})
	}
	version := fleet.Hub.Find(t, api, "Certificate", ns, "two").GetResourceVersion()
	kit.Stays(t, "the template is not written again", 3*time.Second, func() string {
		if u := fleet.Hub.Find(t, api, "Certificate", ns, "two"); u.GetResourceVersion() != version {
			return fmt.Sprint(u.Object)
		}
		return ""
	})
	fleet.Hub.Change(t, api, "Certificate", ns, "one", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "new.example.com", "spec", "host")
	})
	kit.Eventually(t, "the condition of an older template does not count", func() string {
		u := fleet.Hub.Find(t, api, "Certificate", ns, "one")
		if seen, _ := kit.Field(u, "status", "observedGeneration").(int64); seen != u.GetGeneration()-1 {
			return fmt.Sprint(u.Object["status"])
		}
		return ""
	})
}

// A stage that selects no cluster asks no user. Git reverts the second change during its canary, and the old version is
// released without an approval.
func emptyStage(t *testing.T, ns string) {
	const own = "release.argosy.io/v1alpha1"
	applyCase(t, fleet.Hub, ns, "empty-stage", "all.yaml")
	image := func(tag string) {
		fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
			c := kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
			c["image"] = "registry.example.com/web:" + tag
		})
	}
	run := func(first, second, updated string) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("member1 runs :%s, member2 :%s, and the hub counts %s updated", first, second, updated),
			func() string {
				var got []string
				for _, m := range []string{"member1", "member2"} {
					var pods corev1.PodList
					if err := fleet.Members[m].List(t.Context(), &pods, client.InNamespace(ns)); err != nil {
						return err.Error()
					}
					for _, p := range pods.Items {
						got = append(got, m+p.Spec.Containers[0].Image[len("registry.example.com/web"):])
					}
				}
				slices.Sort(got)
				d := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
				got = append(got, fmt.Sprint(kit.Field(d, "status", "updatedReplicas")))
				want := []string{"member1:" + first, "member1:" + first, "member2:" + second, "member2:" + second, updated}
				if !slices.Equal(got, want) {
					return fmt.Sprint(got)
				}
				return ""
			})
	}
	releases := func(want ...string) (newest *unstructured.Unstructured) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("the releases are %v", want), func() string {
			all := &unstructured.UnstructuredList{}
			all.SetAPIVersion(own)
			all.SetKind("ReleaseList")
			if err := fleet.Hub.List(t.Context(), all, client.InNamespace(ns)); err != nil {
				return err.Error()
			}
			slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int {
				return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
			})
			var got []string
			for _, r := range all.Items {
				newest = &r
				got = append(got, fmt.Sprint(kit.Field(&r, "status", "phase"), " ", kit.Field(&r, "status", "reason"), " ",
					kit.Field(&r, "status", "progress")))
			}
			if !slices.Equal(got, want) {
				return fmt.Sprint(got)
			}
			return ""
		})
		return newest
	}
	run("1", "1", "4")
	image("2")
	first := releases("Running Soaking 2/4")
	run("2", "1", "2")
	if empty := kit.Field(first, "status", "stages").([]any)[0].(map[string]any); empty["phase"] != "Skipped" {
		t.Errorf("the stage without clusters is %v", empty)
	}
	if journal := fmt.Sprint(kit.Field(first, "status", "journal")); !strings.Contains(journal, "no cluster") {
		t.Errorf("the journal does not say why the stage was skipped: %s", journal)
	}
	releases("Succeeded Completed 4/4")
	run("2", "2", "4")

	fleet.Hub.Change(t, own, "ReleaseStrategy", ns, "steps", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "Replace", "spec", "autoStart", "supersede")
	})
	image("3")
	releases("Succeeded Completed 4/4", "Running Soaking 2/4")
	run("3", "2", "2")
	image("2")
	releases("Succeeded Completed 4/4", "Superseded Superseded 2/4", "Succeeded Completed 4/4")
	run("2", "2", "4")
	approvals := &unstructured.UnstructuredList{}
	approvals.SetAPIVersion(own)
	approvals.SetKind("ReleaseApprovalList")
	if err := fleet.Hub.List(t.Context(), approvals, client.InNamespace(ns)); err != nil || len(approvals.Items) > 0 {
		t.Errorf("the approvals are %v (%v)", approvals.Items, err)
	}
}

func namespaceMoves(t *testing.T, _ string) {
	text, err := os.ReadFile(filepath.Join(cases, "namespace-moves", "all.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fleet.Hub.Apply(t, string(text))
	inMember(t, "member1", "v1", "ConfigMap", "moves", "settings")
	for kind, ns := range map[string]string{"ClusterPropagationPolicy": "", "PropagationPolicy": "moves"} {
		name := map[string]string{"": "moves", "moves": "settings"}[ns]
		fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", kind, ns, name, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"member2"}, "spec", "placement", "clusterAffinity",
				"clusterNames")
		})
	}
	inMember(t, "member2", "v1", "ConfigMap", "moves", "settings")
	kit.Eventually(t, "the empty namespace leaves member1", func() string {
		if fleet.Members["member1"].Find(t, "v1", "Namespace", "", "moves") != nil {
			return "it is there"
		}
		return ""
	})
}

func namesThatFold(t *testing.T, ns string) {
	const rbac = "rbac.authorization.k8s.io/v1"
	applyCase(t, fleet.Hub, ns, "names-that-fold", "roles.yaml")
	rules := map[string]string{"Team:Reader": "[one]", "team:reader": "[two]", "team.reader": "[three]",
		"team-reader": "[four]"}
	for name, rule := range rules {
		if u := inMember(t, "member1", rbac, "Role", ns, name); !strings.Contains(fmt.Sprint(u.Object["rules"]), rule) {
			t.Errorf("%s has the rules %v, want %s", name, u.Object["rules"], rule)
		}
	}
	fleet.Hub.Remove(t, rbac, "Role", ns, "team:reader")
	kit.Eventually(t, "the deleted Role is gone from member1", func() string {
		if fleet.Members["member1"].Find(t, rbac, "Role", ns, "team:reader") != nil {
			return "it is there"
		}
		return ""
	})
	for name := range rules {
		if name != "team:reader" && fleet.Members["member1"].Find(t, rbac, "Role", ns, name) == nil {
			t.Errorf("%s is gone from member1, too", name)
		}
	}
}

func twoStatefulSets(t *testing.T, ns string) {
	applyCase(t, fleet.Hub, ns, "two-statefulsets", "sets.yaml")
	if u := inMember(t, "member1", "apps/v1", "StatefulSet", ns, "db"); kit.Field(u, "spec", "replicas") != int64(1) {
		t.Errorf("the StatefulSet of apps has %v replicas", kit.Field(u, "spec", "replicas"))
	}
	if u := inMember(t, "member2", "apps.kruise.io/v1beta1", "StatefulSet", ns, "db"); kit.Field(u, "spec",
		"replicas") != int64(2) {
		t.Errorf("the StatefulSet of apps.kruise.io has %v replicas", kit.Field(u, "spec", "replicas"))
	}
	var all workv1alpha2.ResourceBindingList
	if err := fleet.Hub.List(t.Context(), &all, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	var of []string
	for _, b := range all.Items {
		if b.Spec.Resource.Kind == "StatefulSet" {
			of = append(of, b.Spec.Resource.APIVersion)
		}
	}
	slices.Sort(of)
	if want := []string{"apps.kruise.io/v1beta1", "apps/v1"}; !slices.Equal(of, want) {
		t.Errorf("there are bindings of %q, want %q", of, want)
	}
}

func longNames(t *testing.T, ns string) {
	applyCase(t, fleet.Hub, ns, "long-names", "all.yaml")
	long := strings.Repeat("x", 253)
	inMember(t, "member1", "v1", "ConfigMap", ns, long)
	inMember(t, "member1", "v1", "ConfigMap", ns, "d"+strings.Repeat("x", 119))
	inMember(t, "member1", "rbac.authorization.k8s.io/v1", "RoleBinding", ns, "r"+strings.Repeat("x", 99))
	inMember(t, "member1", "apps/v1", "Deployment", ns, "d"+strings.Repeat("x", 119))
	fleet.Hub.Remove(t, "v1", "ConfigMap", ns, long)
	kit.Eventually(t, "the deleted ConfigMap is gone from member1", func() string {
		if fleet.Members["member1"].Find(t, "v1", "ConfigMap", ns, long) != nil {
			return "it is there"
		}
		return ""
	})

	deep := ns + strings.Repeat("n", 63-len(ns))
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+deep+"}}")
	applyCase(t, fleet.Hub, deep, "long-names", "inside.yaml")
	inMember(t, "member1", "v1", "ConfigMap", deep, "inside")
}

func podsToDelete(t *testing.T, ns string) {
	const api = "apps.kruise.io/v1beta1"
	applyCase(t, fleet.Hub, ns, "pods-to-delete", "all.yaml")
	list := func() map[string][]string { // by member, in the order of their creation
		out := map[string][]string{}
		for _, m := range []string{"member1", "member2"} {
			var pods corev1.PodList
			if err := fleet.Members[m].List(t.Context(), &pods, client.InNamespace(ns)); err != nil {
				t.Fatal(err)
			}
			slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int {
				return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
			})
			for _, p := range pods.Items {
				if p.DeletionTimestamp == nil {
					out[m] = append(out[m], p.Name)
				}
			}
		}
		return out
	}
	replicas := int64(6)
	for _, member := range []string{"member1", "member2"} {
		var before map[string][]string
		kit.Eventually(t, fmt.Sprintf("%d pods run", replicas), func() string {
			if before = list(); int64(len(before["member1"])+len(before["member2"])) != replicas {
				return fmt.Sprint(before)
			}
			return ""
		})
		victim := before[member][0]
		replicas--
		fleet.Hub.Change(t, api, "CloneSet", ns, "web", func(u *unstructured.Unstructured) {
			for _, err := range []error{
				unstructured.SetNestedField(u.Object, replicas, "spec", "replicas"),
				unstructured.SetNestedStringSlice(u.Object, []string{victim}, "spec", "scaleStrategy", "podsToDelete"),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		})
		before[member] = before[member][1:]
		same := func() string {
			if now := list(); fmt.Sprint(now) != fmt.Sprint(before) {
				return fmt.Sprintf("the pods are %v, want %v", now, before)
			}
			return ""
		}
		kit.Eventually(t, victim+" alone is deleted", same)
		kit.Stays(t, "no other pod is deleted or created", 5*time.Second, same)
	}
}

func jobFailed(t *testing.T, ns string) {
	applyCase(t, fleet.Hub, ns, "job-failed", "all.yaml")
	kit.Eventually(t, "the Job failed on the hub and is Unhealthy in both clusters", func() string {
		conditions := fmt.Sprint(kit.Field(fleet.Hub.Find(t, "batch/v1", "Job", ns, "doomed"), "status", "conditions"))
		var b workv1alpha2.ResourceBinding
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "doomed-job"}, &b); err != nil {
			return err.Error()
		}
		unhealthy := 0
		for _, item := range b.Status.AggregatedStatus {
			if item.Health == "Unhealthy" {
				unhealthy++
			}
		}
		if unhealthy != 2 || !strings.Contains(conditions, "type:Failed") {
			return fmt.Sprintf("conditions %s, status by cluster %+v", conditions, b.Status.AggregatedStatus)
		}
		return ""
	})
}

func allocatedNodePort(t *testing.T, ns string) {
	port := func(u *unstructured.Unstructured) int64 {
		ports, _ := kit.Field(u, "spec", "ports").([]any)
		n, _ := ports[0].(map[string]any)["nodePort"].(int64)
		return n
	}
	applyCase(t, fleet.Hub, ns, "node-port", "service.yaml")
	allocated := port(fleet.Hub.Find(t, "v1", "Service", ns, "front"))
	text, err := os.ReadFile(filepath.Join(cases, "node-port", "blocker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fleet.Members["member2"].Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}\n---\n"+
		inNamespace(t, strings.ReplaceAll(string(text), "32345", fmt.Sprint(allocated)), ns))
	applyCase(t, fleet.Hub, ns, "node-port", "policy.yaml")
	if got := port(inMember(t, "member1", "v1", "Service", ns, "front")); got != allocated {
		t.Errorf("member1 has node port %d, and %d is free there", got, allocated)
	}
	if got := port(inMember(t, "member2", "v1", "Service", ns, "front")); got == 0 || got == allocated {
		t.Errorf("member2 has node port %d, and %d is taken there", got, allocated)
	}
	applyCase(t, fleet.Hub, ns, "node-port", "fixed.yaml")
	for _, m := range []string{"member1", "member2"} {
		if got := port(inMember(t, m, "v1", "Service", ns, "fixed")); got != 32345 {
			t.Errorf("%s has node port %d, the user wrote 32345", m, got)
		}
	}
}

func serviceAccount(t *testing.T, ns string) {
	applyCase(t, fleet.Hub, ns, "service-account", "all.yaml")
	inMember(t, "member1", "v1", "ServiceAccount", ns, "runner")
	named := func(names ...string) (list []any) {
		for _, name := range names {
			list = append(list, map[string]any{"name": name})
		}
		return list
	}
	fleet.Members["member1"].Change(t, "v1", "ServiceAccount", ns, "runner", func(u *unstructured.Unstructured) {
		u.Object["secrets"] = named("runner-token")
		u.Object["imagePullSecrets"] = named("from-the-hub", "runner-dockercfg")
	})
	fleet.Hub.Change(t, "v1", "ServiceAccount", ns, "runner",
		func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"team": "a"}) })
	var version string
	kit.Eventually(t, "the label arrives and the additions stay", func() string {
		u := fleet.Members["member1"].Find(t, "v1", "ServiceAccount", ns, "runner")
		version = u.GetResourceVersion()
		if u.GetLabels()["team"] != "a" || fmt.Sprint(u.Object["secrets"]) != "[map[name:runner-token]]" ||
			fmt.Sprint(u.Object["imagePullSecrets"]) != "[map[name:from-the-hub] map[name:runner-dockercfg]]" {
			return fmt.Sprint(u.Object)
		}
		return ""
	})
	kit.Stays(t, "it is not written again", 2*time.Second, func() string {
		if u := fleet.Members["member1"].Find(t, "v1", "ServiceAccount", ns, "runner"); u.GetResourceVersion() != version {
			return fmt.Sprint(u.Object)
		}
		return ""
	})
}

func imageRegistry(t *testing.T, ns string) {
	applyCase(t, fleet.Hub, ns, "image-registry", "all.yaml")
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	want := map[string][]string{
		"member1": {"mirror.example.net:8443/busybox:1.36", "mirror.example.net:8443/team/app:v1@" + digest,
			"mirror.example.net:8443/team/worker@" + digest, "mirror.example.net:8443/deep/er/path:v2"},
		"member2": {"busybox:1.36", "registry.example.com:5000/team/app:v1@" + digest, "team/worker@" + digest,
			"localhost/deep/er/path:v2"},
	}
	for member, images := range want {
		u := inMember(t, member, "apps/v1", "Deployment", ns, "pinned")
		var got []string
		for _, list := range []string{"initContainers", "containers"} {
			all, _ := kit.Field(u, "spec", "template", "spec", list).([]any)
			for _, c := range all {
				image, _ := c.(map[string]any)["image"].(string)
				got = append(got, image)
			}
		}
		if !slices.Equal(got, images) {
			t.Errorf("%s has the images %q, want %q", member, got, images)
		}
	}
}
