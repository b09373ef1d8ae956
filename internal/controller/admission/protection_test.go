package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func standing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func definition(group, kind, plural string) *unstructured.Unstructured {
	u := standing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group)
	u.Object["spec"] = map[string]any{"group": group, "names": map[string]any{"kind": kind, "plural": plural}}
	return u
}

func TestHubObjectsNeedConfirmedDeletion(t *testing.T) {
	bound := standing("work.karmada.io/v1alpha2", "ResourceBinding", "shop", "web-cloneset")
	bound.Object["spec"] = map[string]any{"resource": map[string]any{"apiVersion": "apps.kruise.io/v1alpha1",
		"kind": "CloneSet", "namespace": "shop", "name": "web"}}
	going := standing("cluster.karmada.io/v1alpha1", "Cluster", "", "leaving")
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	eu := standing("cluster.karmada.io/v1alpha1", "Cluster", "", "eu")
	eu.SetAnnotations(map[string]string{"argosy.io/derived-from": "ManagedCluster"})
	h := newHub(t, bound, standing("cluster.karmada.io/v1alpha1", "Cluster", "", "m1"), going, eu)

	for _, tc := range []struct {
		story   string
		obj     *unstructured.Unstructured
		message string // empty: it may be deleted
	}{
		{"the definition of Works", definition("work.karmada.io", "Work", "works"), "definition of the hub itself"},
		{"the definition of Clusters", definition("cluster.karmada.io", "Cluster", "clusters"),
			"definition of the hub itself"},
		{"the definition of templates in use", definition("apps.kruise.io", "CloneSet", "clonesets"),
			"such as CloneSet shop/web"},
		{"a definition of the same kind in another group", definition("apps.example.io", "CloneSet", "clonesets"), ""},
		{"a definition that nobody uses", definition("argoproj.io", "Rollout", "rollouts"), ""},
		{"the execution space of a member", standing("v1", "Namespace", "", "karmada-es-m1"), "argosy unjoin m1"},
		{"that of a cluster that leaves", standing("v1", "Namespace", "", "karmada-es-leaving"), ""},
		{"that of a cluster that is gone", standing("v1", "Namespace", "", "karmada-es-gone"), ""},
		{"the members' credentials", standing("v1", "Namespace", "", "karmada-cluster"), "credentials"},
		{"the hub's own namespace", standing("v1", "Namespace", "", "karmada-system"), "hub's own objects"},
		{"a user's namespace", standing("v1", "Namespace", "", "shop"), ""},
		{"that of a cluster with a klusterlet", standing("v1", "Namespace", "", "eu"), "kubectl delete managedcluster eu"},
	} {
		t.Run(tc.story, func(t *testing.T) {
			err := h.delete("admin", tc.obj)
			if tc.message == "" {
				if err != nil {
					t.Errorf("refused with %v", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("got %v, want it to be forbidden with %q", err, tc.message)
			}
			if err := h.delete(user.APIServerUser, tc.obj); err != nil {
				t.Errorf("the hub's own loops are refused: %v", err)
			}
			tc.obj.SetAnnotations(map[string]string{wellknown.ConfirmDeletionAnnotation: "true"})
			if err := h.delete("admin", tc.obj); !apierrors.IsForbidden(err) {
				t.Errorf("confirmed with what is not its name: %v", err)
			}
			tc.obj.SetAnnotations(map[string]string{wellknown.ConfirmDeletionAnnotation: tc.obj.GetName()})
			if err := h.delete("admin", tc.obj); err != nil {
				t.Errorf("confirmed, it is refused with %v", err)
			}
		})
	}
}

func TestUserDeletionOfWorkIsNotOrderedByHub(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		work := standing("work.karmada.io/v1alpha1", "Work", "karmada-es-m1", "w")
		delete := func(who string, policy metav1.DeletionPropagation) error {
			a := admission.NewAttributesRecord(nil, work, work.GroupVersionKind(), "karmada-es-m1", "w",
				schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha1", Resource: "works"},
				"", admission.Delete, &metav1.DeleteOptions{PropagationPolicy: &policy}, false, &user.DefaultInfo{Name: who})
			for _, p := range h.plugins {
				if v, ok := p.(admission.ValidationInterface); ok && p.Handles(admission.Delete) {
					if err := v.Validate(context.Background(), a, nil); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if err := delete("admin", metav1.DeletePropagationForeground); !apierrors.IsForbidden(err) {
			t.Errorf("a user deletes in the foreground: %v", err)
		}
		if err := delete("admin", metav1.DeletePropagationBackground); err != nil {
			t.Errorf("a user deletes: %v", err)
		}
		if err := delete(user.APIServerUser, metav1.DeletePropagationForeground); err != nil {
			t.Errorf("the hub orders: %v", err)
		}

		text := `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: w, namespace: karmada-es-m1, finalizers: [karmada.io/execution-controller, foregroundDeletion]},
		spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}]}}}`
		if got := h.create(text).GetFinalizers(); slices.Contains(got, execute.OrderedFinalizer) || len(got) != 1 {
			t.Errorf("a user's Work is stored with the finalizers %v", got)
		}
	})
}

// Karmada's agent removes its own finalizer only (karmada: pkg/controllers/execution/execution_controller.go).
func TestOrderedWorkEndsWithTheLastOtherFinalizer(t *testing.T) {
	h := newHub(t)
	ordered := func(finalizers ...string) *unstructured.Unstructured {
		u := object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work,
			metadata: {name: w, namespace: karmada-es-m1}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}]}}}`)
		u.SetFinalizers(finalizers)
		u.SetDeletionTimestamp(new(metav1.Now()))
		return u
	}
	const ours, others = "karmada.io/execution-controller", "example.com/backup"
	for story, tc := range map[string]struct{ was, is, want []string }{
		"the agent finishes": {[]string{ours, execute.OrderedFinalizer}, []string{execute.OrderedFinalizer}, nil},
		"another finalizer is left": {[]string{ours, others, execute.OrderedFinalizer},
			[]string{others, execute.OrderedFinalizer}, []string{others, execute.OrderedFinalizer}},
		"the agent is not done": {[]string{ours, execute.OrderedFinalizer}, []string{ours, execute.OrderedFinalizer},
			[]string{ours, execute.OrderedFinalizer}},
	} {
		got, _, err := h.write("system:karmada:agent:m1", ordered(tc.is...), ordered(tc.was...))
		if err != nil || !slices.Equal(got.GetFinalizers(), tc.want) {
			t.Errorf("%s: the finalizers are %v (%v), want %v", story, got.GetFinalizers(), err, tc.want)
		}
	}
}

func TestAgentUpdatesItsOwnClusterOnly(t *testing.T) {
	h := newHub(t, agentSecret(t, "m1", "m1"))
	h.users = map[string]*user.DefaultInfo{"system:karmada:agent:m1": {Name: "system:karmada:agent:m1",
		Groups: []string{"system:karmada:agents"}}}
	h.reads = map[string]bool{"system:karmada:agent:m1 /secrets karmada-cluster/m1": true}
	cluster := func(name, spec string) *unstructured.Unstructured {
		return object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: `+name+`},
			spec: {syncMode: Pull, id: i, `+spec+`}}`)
	}
	const agent = "system:karmada:agent:m1"
	reached := cluster("m1", `apiEndpoint: "https://127.0.0.1:6443", region: west,
		secretRef: {namespace: karmada-cluster, name: m1}`)
	if _, warnings, err := h.write(agent, reached, cluster("m1", "")); err != nil || len(warnings) > 0 {
		t.Errorf("the agent reports its address, region and secret: %v, %v", err, warnings)
	}
	got, warnings, err := h.write(agent, cluster("m1", "region: west"), cluster("m1", "region: east"))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "keeps its provider, region and zones") {
		t.Fatalf("the agent changes a user's region: %v, %v", err, warnings)
	}
	if region, _, _ := unstructured.NestedString(got.Object, "spec", "region"); region != "east" {
		t.Errorf("the region is %q", region)
	}
	taint := `taints: [{key: a, effect: NoSchedule}]`
	h.refuses(agent, cluster("m1", ""), cluster("m1", taint), "may change only the address")
	h.refuses(agent, cluster("m2", "region: west"), cluster("m2", ""), "may change only the address")
	if _, _, err := h.write("admin", cluster("m1", "region: west"), cluster("m1", "region: east, "+taint)); err != nil {
		t.Errorf("an administrator changes the region: %v", err)
	}
}

func TestKeepWorkloadsNeedsRightToDeleteClusters(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		cluster := func(keep string) *unstructured.Unstructured {
			u := standing("cluster.karmada.io/v1alpha1", "Cluster", "", "m1")
			u.Object["spec"] = map[string]any{"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:6443"}
			if keep != "" {
				u.SetAnnotations(map[string]string{wellknown.KeepWorkloadsAnnotation: keep})
			}
			return u
		}
		for _, tc := range []struct{ was, is string }{{"", "true"}, {"true", ""}, {"true", "false"}} {
			if _, _, err := h.write("joe", cluster(tc.is), cluster(tc.was)); !apierrors.IsForbidden(err) ||
				!strings.Contains(err.Error(), "may not delete clusters") {
				t.Errorf("joe makes %q of %q: %v", tc.is, tc.was, err)
			}
			if _, _, err := h.write("admin", cluster(tc.is), cluster(tc.was)); err != nil {
				t.Errorf("admin makes %q of %q: %v", tc.is, tc.was, err)
			}
		}
		if _, _, err := h.write("joe", cluster("true"), cluster("true")); err != nil {
			t.Errorf("joe leaves it as it is: %v", err)
		}
	})
}
