package admission

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// agentSecret returns a Secret in the namespace of the secrets of clusters, which the agent of a cluster created; an
// empty name stands for somebody else.
func agentSecret(t *testing.T, name, by string) *unstructured.Unstructured {
	t.Helper()
	s := object(t, `{apiVersion: v1, kind: Secret, metadata: {namespace: karmada-cluster, name: `+name+`},
		type: Opaque, data: {token: YQ==}}`)
	if by != "" {
		pull.Report(by, s)
	}
	return s
}

// agentRole returns the ClusterRole of the agent of cluster eu with a key; owned by its Cluster or not.
func agentRole(t *testing.T, owned bool) *unstructured.Unstructured {
	t.Helper()
	u := object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,
		metadata: {name: "system:karmada:eu:agent"}}`)
	pull.RecordKeys(u, []string{"k"})
	if owned {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"apiVersion": "cluster.karmada.io/v1alpha1",
			"kind": "Cluster", "name": "eu", "uid": "u"}}, "metadata", "ownerReferences")
	}
	return u
}

const euAgent = "system:karmada:agent:eu"

// agentsHub returns a hub that knows the agent of cluster eu, who may read what it may read.
func agentsHub(t *testing.T, objects ...*unstructured.Unstructured) *hub {
	t.Helper()
	h := newHub(t, objects...)
	h.users = map[string]*user.DefaultInfo{euAgent: {Name: euAgent, Groups: []string{pull.Group}}}
	h.reads = map[string]bool{euAgent + " /secrets karmada-cluster/eu": true}
	return h
}

func euCluster(t *testing.T, mode, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu},
		spec: {syncMode: `+mode+`, id: i, apiEndpoint: "https://127.0.0.1:6443", `+spec+`}}`)
}

func TestAgentCreatesItsClusterOnlyInARegistration(t *testing.T) {
	labelled := euCluster(t, "Pull", "")
	labelled.SetLabels(map[string]string{"tier": "prod"})
	const again, refers = "cannot create its Cluster again", "secretRef: {namespace: karmada-cluster, name: eu}"
	hub := func(objects ...*unstructured.Unstructured) []*unstructured.Unstructured { return objects }
	for story, tc := range map[string]struct {
		hub     []*unstructured.Unstructured
		cluster *unstructured.Unstructured
		want    string
	}{
		"a registration":       {hub(agentRole(t, false)), euCluster(t, "Pull", ""), ""},
		"labels of its choice": {hub(agentRole(t, false)), labelled, "without taints, labels"},
		"taints of its choice": {hub(agentRole(t, false)), euCluster(t, "Pull", "taints: [{key: a, effect: NoSchedule}]"),
			"without taints, labels"},
		"while its Cluster exists, and until its grants go": {hub(agentRole(t, true)), euCluster(t, "Pull", ""), again},
		"after its grants went":                             {nil, euCluster(t, "Pull", ""), again},
		"another's Secret": {hub(agentRole(t, false), agentSecret(t, "eu", "")), euCluster(t, "Pull", refers),
			"not of the agent"},
		"its Secret":       {hub(agentRole(t, false), agentSecret(t, "eu", "eu")), euCluster(t, "Pull", refers), ""},
		"a missing Secret": {hub(agentRole(t, false)), euCluster(t, "Pull", refers), "not found"},
	} {
		t.Run(story, func(t *testing.T) {
			h := agentsHub(t, tc.hub...)
			if tc.want != "" {
				h.refuses(euAgent, tc.cluster, nil, tc.want)
				return
			}
			got, _, err := h.write(euAgent, tc.cluster, nil)
			if err != nil {
				t.Fatal(err)
			}
			if f := got.GetFinalizers(); len(f) != 1 || f[0] != workv1alpha2.ClusterFinalizer {
				t.Errorf("the finalizers are %v: the Cluster could go before the registration ends", f)
			}
		})
	}
}

func TestAgentsUseNoSecretOfAnother(t *testing.T) {
	h := agentsHub(t)
	for story, tc := range map[string]struct {
		by   string
		want string
	}{"its own": {"eu", ""}, "that of a join": {"", "not of the agent"}, "another agent's": {"us", "not of the agent"}} {
		was := agentSecret(t, "eu", tc.by)
		if tc.want != "" {
			h.refuses(euAgent, was, was, tc.want)
		} else if _, _, err := h.write(euAgent, was, was); err != nil {
			t.Errorf("%s: %v", story, err)
		}
	}
	finalized := agentSecret(t, "eu", "eu")
	finalized.SetFinalizers([]string{"a/b"})
	h.refuses(euAgent, finalized, nil, "cannot set finalizers or owners")
	h.refuses(euAgent, finalized, agentSecret(t, "eu", "eu"), "cannot set finalizers or owners")
	got, _, err := h.write(euAgent, agentSecret(t, "eu", ""), nil)
	if err != nil || pull.ReportedBy(got) != "eu" {
		t.Errorf("a new Secret of the agent is marked as %q (%v)", pull.ReportedBy(got), err)
	}
	refers := euCluster(t, "Pull", "secretRef: {namespace: karmada-cluster, name: eu}")
	h = agentsHub(t, agentSecret(t, "eu", ""))
	h.refuses(euAgent, refers, euCluster(t, "Pull", ""), "not of the agent")
	if _, _, err := h.write(euAgent, refers, refers); err != nil {
		t.Errorf("the agent keeps what an administrator set: %v", err)
	}
}

// A join must not write its credentials where an agent reads them.
func TestJoinsWriteNoSecretOfAnAgent(t *testing.T) {
	changed := func(by string) *unstructured.Unstructured {
		s := agentSecret(t, "eu", by)
		_ = unstructured.SetNestedField(s.Object, "Yg==", "data", "token")
		return s
	}
	const refusal = `the agent of cluster "eu" created this Secret`
	agentsHub(t).refuses("admin", changed("eu"), agentSecret(t, "eu", "eu"), refusal)
	agentsHub(t).refuses("admin", changed(""), agentSecret(t, "eu", "eu"), refusal)
	agentsHub(t, euCluster(t, "Push", "")).refuses("admin", changed("eu"), agentSecret(t, "eu", "eu"), refusal)
	if _, _, err := agentsHub(t).write("admin", changed(""), agentSecret(t, "eu", "")); err != nil {
		t.Errorf("an administrator changes the Secret of a join: %v", err)
	}
	was := agentSecret(t, "eu", "eu")
	was.SetFinalizers([]string{"a/b"})
	was.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	is := was.DeepCopy()
	is.SetFinalizers(nil)
	if _, _, err := agentsHub(t).write("admin", is, was); err != nil {
		t.Errorf("the finalizer of a Secret that is being deleted: %v", err)
	}
	_ = unstructured.SetNestedField(is.Object, "Yg==", "data", "token")
	agentsHub(t).refuses("admin", is, was, refusal)
	elsewhere, before := changed("eu"), agentSecret(t, "eu", "eu")
	elsewhere.SetNamespace("shop")
	before.SetNamespace("shop")
	if _, _, err := agentsHub(t).write("admin", elsewhere, before); err != nil {
		t.Errorf("a Secret in another namespace: %v", err)
	}
	h := agentsHub(t, euCluster(t, "Pull", ""))
	if _, _, err := h.write("admin", changed("eu"), agentSecret(t, "eu", "eu")); err != nil {
		t.Errorf("an administrator changes the Secret of a cluster in Pull mode: %v", err)
	}
}

// Works in the execution space would be applied with the rights of the hub in a cluster that joins later.
func TestAgentsWithoutAClusterCreateNoWorks(t *testing.T) {
	work := object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: karmada-es-eu},
		spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}]}}}`)
	for mode, want := range map[string]string{"": "not in the fleet in Pull mode", "Push": "not in the fleet in Pull mode",
		"Pull": ""} {
		var objects []*unstructured.Unstructured
		if mode != "" {
			objects = append(objects, euCluster(t, mode, ""))
		}
		h := agentsHub(t, objects...)
		h.may = map[string]bool{euAgent + " create works karmada-es-eu": true}
		_, _, err := h.write(euAgent, work, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a Work for a cluster in mode %q: %v, want %q", mode, err, want)
		}
	}
}

// A registrar prepares execution spaces for clusters that it does not register, too.
func TestRegistrarsDecideNothingInANamespace(t *testing.T) {
	h := agentsHub(t)
	got, _, err := h.write(pull.Registrar, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: karmada-es-eu,
		labels: {a: b}, annotations: {a: b}, finalizers: [a/b]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GetLabels()) != 2 || got.GetLabels()["a"] != "" || len(got.GetAnnotations())+len(got.GetFinalizers()) > 0 {
		t.Errorf("the namespace is %+v", got.Object["metadata"])
	}
}

// An agent would decide otherwise whether its cluster gets traffic.
func TestAgentsDoNotWriteActionsOfRemedies(t *testing.T) {
	status := func(content string) *unstructured.Unstructured {
		c := euCluster(t, "Pull", "")
		if content != "" {
			c.Object["status"] = object(t, "{apiVersion: v1, kind: Any, status: "+content+"}").Object["status"]
		}
		return c
	}
	h := agentsHub(t)
	const version, ready = `kubernetesVersion: v1.36.0`, `conditions: [{type: Ready, status: "True", reason: ClusterReady,
		message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`
	for name, tc := range map[string]struct{ was, is, want string }{
		"added":   {`{` + version + `}`, `{` + version + `, remedyActions: [TrafficControl]}`, ""},
		"changed": {`{remedyActions: [TrafficControl]}`, `{remedyActions: [Other]}`, "TrafficControl"},
		"removed": {`{remedyActions: [TrafficControl]}`, `{` + version + `, ` + ready + `}`,
			"TrafficControl"},
		"removed with the whole status": {`{remedyActions: [TrafficControl]}`, "", "TrafficControl"},
		"emptied":                       {`{remedyActions: [TrafficControl]}`, `{remedyActions: []}`, "TrafficControl"},
		"the first status":              {"", `{remedyActions: [TrafficControl]}`, ""},
		"kept": {`{remedyActions: [TrafficControl]}`, `{` + version + `, remedyActions: [TrafficControl]}`,
			"TrafficControl"},
	} {
		got, warnings, err := h.writeTo("status", euAgent, status(tc.is), status(tc.was))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		actions, _, _ := unstructured.NestedStringSlice(got.Object, "status", "remedyActions")
		if strings.Join(actions, ",") != tc.want {
			t.Errorf("%s: the actions are %q, want %q", name, actions, tc.want)
		}
		if kept := name == "kept"; kept == (len(warnings) > 0) || !kept && !strings.Contains(warnings[0], "only the hub") {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		if strings.Contains(tc.is, version) {
			if v, _, _ := unstructured.NestedString(got.Object, "status", "kubernetesVersion"); v != "v1.36.0" {
				t.Errorf("%s: the rest of the status is lost: %v", name, got.Object["status"])
			}
		}
	}
	// The hub writes them.
	got, _, err := h.writeTo("status", "admin", status(`{remedyActions: [TrafficControl]}`), status(""))
	if actions, _, _ := unstructured.NestedStringSlice(got.Object, "status", "remedyActions"); err != nil ||
		len(actions) != 1 {
		t.Errorf("the hub writes %q: %v", actions, err)
	}
}
