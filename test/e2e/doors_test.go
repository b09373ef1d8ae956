package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	core "github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit"
)

// developer is a user of a namespace who may write ConfigMaps and the policies of that namespace, and nothing else.
func developer(t *testing.T, ns, name string) client.Client {
	t.Helper()
	fleet.Hub.Apply(t, strings.NewReplacer("NS", ns, "NAME", name).Replace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME, namespace: NS}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
- {apiGroups: [policy.karmada.io], resources: [propagationpolicies, overridepolicies], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}
subjects: [{kind: User, name: NAME, apiGroup: rbac.authorization.k8s.io}]`))
	c, _ := listening(t, name)
	kit.Eventually(t, "the hub knows what "+name+" may do", func() string {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "none"},
			kit.Object(t, "{apiVersion: v1, kind: ConfigMap}")); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	return c
}

// plant writes an object past admission, as one that was stored by a hub that did not refuse it.
func plant(t *testing.T, resource, namespace, name string, change func(map[string]any)) {
	t.Helper()
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" +
		filepath.Join(fleet.Lab.Hub.Dir, "data", "etcd", "etcd.sock")}, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	key := "/registry/" + resource + "/" + namespace + "/" + name
	// Read through the hub: what is in the store may be encrypted, and what is not is read as it is.
	stored := fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "OverridePolicy", namespace, name)
	if stored == nil {
		t.Fatalf("there is no %s", key)
	}
	stored.SetResourceVersion("")
	object := stored.Object
	change(object)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), key, string(raw)); err != nil {
		t.Fatal(err)
	}
}

func TestOverridePolicyCannotGrantAdmin(t *testing.T) {
	t.Parallel()
	ns, bank := fleet.Namespace(t), fleet.Namespace(t)
	mallory := developer(t, ns, "mallory-"+ns)
	write := func(text string) error { return mallory.Create(t.Context(), kit.Object(t, text), strict) }
	if err := write(propagation(ns, "p",
		"{conflictResolution: Overwrite, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}], placement: "+
			placedOn("m1")+"}")); err != nil {
		t.Fatal(err)
	}
	if err := write("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + ns +
		", name: c}, data: {a: b}}"); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "it is applied", func() string { return applied(t, ns, "c-configmap", "m1") })
	// What another team runs in the member.
	kit.Eventually(t, "the member has the other namespace", func() string {
		if fleet.Members["m1"].Find(t, "v1", "Namespace", "", bank) == nil {
			return "it has not"
		}
		return ""
	})
	fleet.Members["m1"].Apply(t, deployment(bank, "vault", 0, "vault:1"))

	toRole := `[{path: /apiVersion, operator: replace, value: rbac.authorization.k8s.io/v1}, {path: /kind, operator: replace, value: ClusterRoleBinding},
		{path: /metadata/name, operator: replace, value: owned-` + ns + `}, {path: /metadata/namespace, operator: remove}, {path: /data, operator: remove},
		{path: /roleRef, operator: add, value: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}},
		{path: /subjects, operator: add, value: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory}]}]`
	toVault := `[{path: /apiVersion, operator: replace, value: apps/v1}, {path: /kind, operator: replace, value: Deployment}, {path: /metadata/name, operator: replace, value: vault},
		{path: /metadata/namespace, operator: replace, value: ` + bank + `}, {path: /data, operator: remove}, {path: /spec, operator: add, value: {replicas: 0,
		selector: {matchLabels: {app: vault}}, template: {metadata: {labels: {app: vault}}, spec: {containers: [{name: c, image: "mallory:1"}]}}}}]`
	const selects = "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}], overrideRules: [{overriders: {"
	for overriders, refusal := range map[string]string{
		"plaintext: " + toRole:  `"/kind" reaches kind`,
		"plaintext: " + toVault: `"/metadata/namespace" reaches metadata.namespace`,
		"plaintext: [{path: /metadata, operator: replace, value: {name: c, namespace: " + bank +
			"}}]": `"/metadata" reaches metadata`,
		`plaintext: [{path: "", operator: replace, value: {}}]`:                                                 `"" reaches the whole document`,
		"imageOverrider: [{predicate: {path: /kind}, component: Repository, operator: replace, value: Secret}]": `"/kind" reaches kind`,
		"fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: /a, operator: replace, value: b}]}]":     `"/metadata/name" reaches metadata.name`,
		`annotationsOverrider: [{operator: add, value: {work.karmada.io/name: vault}}]`: "work.karmada.io/name identifies " +
			"the hub's own objects",
		`plaintext: [{path: /metadata/labels/karmada.io~1managed, operator: add, value: "false"}]`: "karmada.io/managed identifies the hub's own objects",
	} {
		if err := write(override(ns, "o", "{"+selects+overriders+"}}]}")); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), refusal) || !strings.Contains(err.Error(), "spec.overrideRules[0].overriders.") {
			t.Errorf("%s: got %v, want a refusal with %s", overriders, err, refusal)
		}
	}

	// The same, stored by a hub that did not refuse it.
	if err := write(override(ns, "o", "{"+selects+
		"plaintext: [{path: /data/a, operator: replace, value: c}]}}]}")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the override", "c", func() string {
		return fmt.Sprint(inMember(t, "m1", "v1", "ConfigMap", ns, "c", "data", "a"))
	})
	vault := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", bank, "vault")
	for _, c := range []struct{ patch, would string }{
		{toRole, `plaintext[0]: replace "/apiVersion": apiVersion of ConfigMap ` + ns +
			`/c would become "rbac.authorization.k8s.io/v1"`},
		{toVault, `plaintext[0]: replace "/apiVersion": apiVersion of ConfigMap ` + ns + `/c would become "apps/v1"`},
	} {
		var patch any
		if err := json.Unmarshal([]byte(asJSON(t, kit.Object(t, "patch: "+c.patch).Object["patch"])), &patch); err != nil {
			t.Fatal(err)
		}
		plant(t, "policy.karmada.io/overridepolicies", ns, "o", func(o map[string]any) {
			spec := o["spec"].(map[string]any)
			spec["overrideRules"] = []any{map[string]any{"overriders": map[string]any{"plaintext": patch}}}
			metadata := o["metadata"].(map[string]any)
			metadata["generation"] = metadata["generation"].(int64) + 1
		})
		kit.Eventually(t, "an event reports what is refused", func() string {
			messages := fleet.Hub.Messages(t, "ConfigMap", ns, "c", workv1alpha2.EventApplyOverridePolicyFailed)
			if !slices.ContainsFunc(messages, func(m string) bool {
				return strings.Contains(m, c.would) && strings.Contains(m, "OverridePolicy "+ns+"/o") &&
					strings.Contains(m, `cluster "m1"`)
			}) {
				return fmt.Sprintf("they are reported: %q", messages)
			}
			return ""
		})
	}
	if u := fleet.Members["m1"].Find(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "owned-"+ns); u != nil {
		t.Errorf("the member has %v", u.Object)
	}
	if got := inMember(t, "m1", "v1", "ConfigMap", ns, "c", "data", "a"); got != "c" {
		t.Errorf("half of an override arrived: %v", got)
	}
	if err := mallory.Delete(t.Context(), kit.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+ns+
		", name: c}}")); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the ConfigMap is gone from the member", func() string {
		if fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c") != nil {
			return "it is there"
		}
		return ""
	})
	if now := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", bank, "vault"); now == nil ||
		now.GetUID() != vault.GetUID() || now.GetGeneration() != vault.GetGeneration() ||
		now.GetLabels()["karmada.io/managed"] != "" {
		t.Errorf("the other team's Deployment is %v", now)
	}
}

func TestForbiddenOverwriteKeepsTheMembersObject(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	user := developer(t, ns, "dora-"+ns)
	asks := func(name string) *unstructured.Unstructured {
		return kit.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+ns+", name: "+name+
			", annotations: {work.karmada.io/conflict-resolution: overwrite}}, data: {whose: template}}")
	}
	fleet.Hub.Apply(t, propagation(ns, "p", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: "+
		placedOn("m2")+"}"))
	if err := user.Create(t.Context(), asks("before")); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "it is applied", func() string { return applied(t, ns, "before-configmap", "m2") })
	fleet.Hub.Change(t, "v1", "Namespace", "", ns, func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		labels["argosy.io/forbid-overwrite"] = "true"
		u.SetLabels(labels)
	})

	for _, u := range []*unstructured.Unstructured{asks("after"),
		kit.Object(t, propagation(ns, "q",
			"{conflictResolution: Overwrite, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: x}], placement: "+
				placedOn("m1")+"}")),
		kit.Object(t, override(ns, "o", "{overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {work.karmada.io/conflict-resolution: overwrite}}]}}]}"))} {
		if err := user.Create(t.Context(), u); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "namespace "+ns+" forbids it (label argosy.io/forbid-overwrite)") {
			t.Errorf("%s: got %v, want a refusal", u.GetKind(), err)
		}
	}
	err := user.Patch(t.Context(), kit.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}"),
		client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"argosy.io/forbid-overwrite":null}}}`)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("who is bound by the label may take it off: %v", err)
	}

	// What asked before comes to a member that has an object of that name.
	fleet.Members["m1"].Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+ns+
		", name: before}, data: {whose: member}}")
	fleet.Hub.RemoveAtEnd(t, asks("before")) // before the member's, which would be made again
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "p", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"m1", "m2"}, "spec", "placement", "clusterAffinity",
			"clusterNames")
	})
	kit.Eventually(t, "users get an event", func() string {
		w, b := work(t, "m1", "ConfigMap", ns, "before"), fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns,
			"before-configmap")
		if w == nil || b == nil {
			return "there is no Work"
		}
		for _, c := range w.Status.Conditions {
			if c.Type == "Applied" && c.Status == "False" && strings.Contains(c.Message, "already exists in the cluster m1") &&
				strings.Contains(asJSON(t, kit.Field(b, "status", "conditions")), core.OverwriteForbidden) {
				return ""
			}
		}
		return fmt.Sprintf("the Work says %+v, the binding %s", w.Status.Conditions,
			asJSON(t, kit.Field(b, "status", "conditions")))
	})
	if got := inMember(t, "m1", "v1", "ConfigMap", ns, "before", "data", "whose"); got != "member" {
		t.Errorf("the member's object was overwritten: it is of the %v", got)
	}
}

// The hub may do anything in members; its users have it do what they could.
func TestHubActsOnlyWithinTheRightsOfADeveloper(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	user := developer(t, ns, "eve-"+ns)
	refused := func(text, why string) {
		t.Helper()
		if err := user.Create(t.Context(), kit.Object(t, text), strict); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want a refusal with %s", err, why)
		}
	}
	// A Secret and a Role that an administrator keeps here.
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+ns+
		", name: tls}, stringData: {key: private}}")
	fleet.Hub.Apply(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: "+ns+
		", name: reader}, rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]}")
	fleet.Hub.Apply(t, propagation(ns, "roles",
		"{resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: reader}], placement: "+placedOn("m1")+
			"}"))
	refused(propagation(ns, "secrets", "{resourceSelectors: [{apiVersion: v1, kind: Secret}], "+
		"placement: "+placedOn("m1")+"}"),
		"permission to read secrets in namespace")
	refused(propagation(ns, "deps", "{propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: "+placedOn("m1")+"}"), "with propagateDeps, the Secrets that a Deployment refers to are propagated with it")
	for _, selectors := range []string{"",
		"resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: reader}], "} {
		refused(override(ns, "rules", "{"+selectors+
			`overrideRules: [{overriders: {plaintext: [{path: /rules, operator: replace, value: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}]}}]}`),
			`an overrider of "/rules" changes permissions in members, for which you need permission to escalate roles.rbac.authorization.k8s.io`)
	}
	kit.Eventually(t, "the Role is applied", func() string { return applied(t, ns, "reader-role", "m1") })
	if got := asJSON(t, inMember(t, "m1", "rbac.authorization.k8s.io/v1", "Role", ns, "reader",
		"rules")); !strings.Contains(got, `"get"`) || strings.Contains(got, `"*"`) {
		t.Errorf("in the member its rules are %s", got)
	}

	// A claim that the user writes, of a policy that selects the Role and no ConfigMap, sends nothing.
	fleet.Hub.Apply(t, propagation(ns, "another",
		"{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: another}], placement: "+placedOn("m1")+"}"))
	policy := fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "roles")
	id := policy.GetLabels()["propagationpolicy.karmada.io/permanent-id"]
	claimed := "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + ns +
		", name: c, labels: {propagationpolicy.karmada.io/permanent-id: " + id + "}, annotations: {" +
		"propagationpolicy.karmada.io/namespace: " + ns + ", propagationpolicy.karmada.io/name: roles}}, data: {a: b}}"
	if err := user.Create(t.Context(), kit.Object(t, claimed), strict); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the claim is taken away", func() string {
		if u := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c"); u == nil ||
			u.GetLabels()["propagationpolicy.karmada.io/permanent-id"] != "" {
			return "it is there"
		}
		return ""
	})
	if w := work(t, "m1", "ConfigMap", ns, "c"); w != nil {
		t.Errorf("it is sent: %v", w)
	}
}
