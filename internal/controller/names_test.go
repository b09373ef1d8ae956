package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	object "github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// applied waits until the template has a binding of its own that is applied everywhere, and returns its name.
func applied(h *controllertest.Hub, t *testing.T, template client.Object, kind membertest.Kind) string {
	t.Helper()
	name := ""
	h.Eventually(fmt.Sprintf("%s %s is applied", kind.GroupKind(), template.GetName()), func() string {
		b, free, err := scope.BindingFor(t.Context(), h, kind.GroupKind(), template.GetNamespace(), template.GetName())
		if err != nil || b == nil {
			return fmt.Sprintf("it has no binding: %v, %s is free", err, free)
		}
		name = b.GetName()
		if all := b.BindingStatus().AggregatedStatus; len(all) == 0 || !all[0].Applied {
			return fmt.Sprintf("binding %s says %+v", name, all)
		}
		return ""
	})
	return name
}

func TestRolesWithFoldingNamesPropagate(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t)
		p := policy("", "rbac.authorization.k8s.io/v1", "ClusterRole")
		h.Make(p)
		role := func(name string) *rbacv1.ClusterRole {
			return claimed(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1",
				Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name},
				Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
					ResourceNames: []string{name}}}}, p)
		}
		bindings := map[string]string{}
		for _, name := range []string{"Team:Reader", "team:reader", "team.reader", "team-reader"} {
			h.Make(role(name))
			binding := applied(h, t, role(name), controllertest.ClusterRole)
			if other, twice := bindings[binding]; twice {
				t.Errorf("%s and %s have the binding %s", name, other, binding)
			}
			bindings[binding] = name
		}
		if bindings["team.reader-clusterrole"] != "Team:Reader" {
			t.Errorf("the bindings are %v, want Karmada's name for the first", bindings)
		}
		exists := func(name string) bool {
			for _, m := range members {
				obj := m.Object(controllertest.ClusterRole, "", name)
				if obj == nil {
					return false
				}
				if rules, _, _ := unstructured.NestedSlice(obj.Object, "rules"); !strings.Contains(fmt.Sprint(rules), "["+name+
					"]") {
					t.Errorf("%s has the rules %v", name, rules)
				}
			}
			return true
		}
		h.Gone(role("team:reader"))
		h.Eventually("the one that was deleted goes", func() string {
			for name, m := range members {
				if m.Object(controllertest.ClusterRole, "", "team:reader") != nil {
					return name + " has it"
				}
			}
			return ""
		})
		// The binding of the first goes with it; the others keep theirs.
		h.Gone(role("Team:Reader"))
		h.Eventually("the first goes", func() string {
			if members["m1"].Object(controllertest.ClusterRole, "", "Team:Reader") != nil {
				return "it is there"
			}
			return ""
		})
		h.Quiet()
		for _, name := range []string{"team.reader", "team-reader"} {
			if !exists(name) {
				t.Errorf("%s is gone", name)
			}
			if binding := applied(h, t, role(name), controllertest.ClusterRole); bindings[binding] != name {
				t.Errorf("%s has the binding %s now, and had another", name, binding)
			}
		}
	})
}

func TestStatefulSetsOfTwoGroupsPropagate(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, controllertest.StatefulSet, controllertest.AppsStatefulSet)
		sets := []membertest.Kind{controllertest.AppsStatefulSet, controllertest.StatefulSet}
		bindings := map[string]bool{}
		for i, kind := range sets {
			p := policy("shop", kind.GroupVersion().String(), kind.Kind)
			p.SetName(fmt.Sprintf("policy-%d", i))
			p.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": p.GetName()})
			h.Make(p)
			set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(i + 1),
				"serviceName": "db",
				"selector":    map[string]any{"matchLabels": map[string]any{"app": "db"}},
				"template":    map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "db"}}}}}}
			set.SetGroupVersionKind(kind.GroupVersionKind)
			set.SetNamespace("shop")
			set.SetName("db")
			propagate.Claim(set, p)
			h.Make(set)
			bindings[applied(h, t, set, kind)] = true
			for name, m := range members {
				obj := m.Object(kind, "shop", "db")
				if obj == nil {
					t.Fatalf("%s lacks the %s", name, kind.GroupKind())
				}
				if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != int64(i+1) {
					t.Errorf("%s has %d replicas of %s", name, n, kind.GroupKind())
				}
				// Its Work is the one that its marks name.
				work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(name),
					Name: obj.GetAnnotations()[workv1alpha2.WorkNameAnnotation]}}
				if !h.HasObject(work) {
					t.Errorf("%s has no Work %s", name, work.Name)
				}
			}
		}
		if len(bindings) != 2 || !bindings["db-statefulset"] {
			t.Errorf("the bindings are %v, want two, and Karmada's name for the first", bindings)
		}
	})
}

// tenant creates a Deployment of a namespace that a policy there sends everywhere.
func tenant(h *controllertest.Hub, t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if !h.HasObject(space) {
		h.Make(space)
	}
	p := policy(namespace, "apps/v1", "Deployment")
	p.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": namespace})
	h.Make(p)
	d := parsed(t, controllertest.Deployment, name, "replicas: 1, "+pods(name))
	d.SetNamespace(namespace)
	propagate.Claim(d, p)
	h.Make(d)
	return d
}

// Everybody can compute a namespace whose object has the Work name of somebody else's object.
func TestNamesOfOneTenantBlockNoOther(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, controllertest.Deployment)
		work := func(namespace, kind string, gk schema.GroupKind, name string) string {
			t.Helper()
			karmadas, found := names.Work(kind, name, namespace), ""
			for _, n := range names.Either(karmadas, gk, name, namespace) {
				for cluster := range members {
					w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster), Name: n}}
					if h.HasObject(w) && execute.IsOf(w, object.Object{Group: gk.Group, Kind: kind, Namespace: namespace,
						Name: name}) {
						if found != "" && found != n {
							t.Errorf("%s %s/%s has the Works %s and %s", kind, namespace, name, found, n)
						}
						found = n
					}
				}
			}
			return found
		}
		deployment, vip := controllertest.Deployment.GroupKind(), names.Work("Namespace", "vip", "")
		karmadas := names.Work("Deployment", "vault", "treasury")

		// 1. The objects of the attacker come first, and keep Karmada's names.
		attacker := tenant(h, t, "tpjbaakx", "vault")
		applied(h, t, attacker, controllertest.Deployment)
		configs := policy("tg2eau9q", "v1", "ConfigMap")
		configs.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": "configs"})
		squat := claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tg2eau9q", Name: "vip"},
			Data: map[string]string{"a": "b"}}, configs)
		for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tg2eau9q"}}, configs,
			squat} {
			h.Make(obj)
		}
		applied(h, t, squat, membertest.ConfigMap)
		if first := work("tpjbaakx", "Deployment", deployment, "vault"); first != karmadas ||
			work("tg2eau9q", "ConfigMap", schema.GroupKind{Kind: "ConfigMap"}, "vip") != vip {
			t.Fatalf("the attacker has the Work %q, want %s", first, karmadas)
		}

		// 2. Those of the victim get longer names, and run.
		victim := tenant(h, t, "treasury", "vault")
		applied(h, t, victim, controllertest.Deployment)
		h.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vip"}})
		h.Eventually("the namespace is in all members", func() string {
			for name, m := range members {
				if m.Object(membertest.Namespace, "", "vip") == nil {
					return name + " lacks it"
				}
			}
			return ""
		})
		longer := work("treasury", "Deployment", deployment, "vault")
		if longer != names.Longer(karmadas, deployment, "vault", "treasury") ||
			work("", "Namespace", schema.GroupKind{Kind: "Namespace"}, "vip") == "" {
			t.Errorf("the victim has the Work %q", longer)
		}
		uids := map[string]types.UID{}
		for name, m := range members {
			uids[name] = m.Object(controllertest.Deployment, "treasury", "vault").GetUID()
		}
		h.Quiet()

		// 3. Changes reach each its own object.
		for i, d := range []*unstructured.Unstructured{victim, attacker} {
			controllertest.Change(h, d, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(i+2), "spec", "replicas")
			})
		}
		replicas := func() string {
			for name, m := range members {
				for i, ns := range []string{"treasury", "tpjbaakx"} {
					obj := m.Object(controllertest.Deployment, ns, "vault")
					if obj == nil || i == 0 && obj.GetUID() != uids[name] {
						return fmt.Sprintf("%s lacks that of %s, or has another", name, ns)
					}
					if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != int64(i+2) {
						return fmt.Sprintf("that of %s in %s has %d replicas", ns, name, n)
					}
				}
			}
			return ""
		}
		h.Eventually("each has its own replicas", replicas)

		// 4. The Works are lost, and created again: each object is found by its own Work, in whatever order.
		for cluster := range members {
			h.Server.Remove(controllertest.Works, names.ExecutionSpace(cluster), longer)
			h.Server.Remove(controllertest.Works, names.ExecutionSpace(cluster), karmadas)
		}
		applied(h, t, victim, controllertest.Deployment)
		applied(h, t, attacker, controllertest.Deployment)
		h.Quiet()
		if why := replicas(); why != "" {
			t.Errorf("after the Works were lost: %s", why)
		}

		// 5. When the attacker deletes what it has, the victim keeps its own.
		h.Gone(attacker)
		h.Gone(squat)
		h.Eventually("the objects of the attacker go", func() string {
			for name, m := range members {
				if m.Object(controllertest.Deployment, "tpjbaakx", "vault") != nil ||
					m.Object(membertest.ConfigMap, "tg2eau9q", "vip") != nil {
					return name + " has them"
				}
			}
			return ""
		})
		h.Quiet()
		for name, m := range members {
			if obj := m.Object(controllertest.Deployment, "treasury", "vault"); obj == nil || obj.GetUID() != uids[name] ||
				m.Object(membertest.Namespace, "", "vip") == nil {
				t.Errorf("%s lost an object of the victim", name)
			}
		}
		controllertest.Change(h, victim, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
		})
		h.Eventually("a change reaches the members", func() string {
			for name, m := range members {
				if n, _, _ := unstructured.NestedInt64(m.Object(controllertest.Deployment, "treasury", "vault").Object, "spec",
					"replicas"); n != 7 {
					return fmt.Sprintf("%s has %d replicas", name, n)
				}
			}
			return ""
		})

		// 6. A namespace that is deleted takes its own Works along, and no others.
		h.Gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vip"}})
		h.Eventually("the namespace goes", func() string {
			if work("", "Namespace", schema.GroupKind{Kind: "Namespace"}, "vip") != "" {
				return "its Work is there"
			}
			return ""
		})
	})
}

// A hub that is restored from a backup without the bindings creates them again.
func TestRecreatedBindingsAdoptTheirObjects(t *testing.T) {
	apps, kruise := controllertest.AppsStatefulSet, controllertest.StatefulSet
	for name, order := range map[string][]membertest.Kind{
		"Kubernetes' own first": {apps, kruise},
		"OpenKruise's first":    {kruise, apps},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) { recreateBindings(t, order) })
		})
	}
}

// recreateBindings removes the bindings of two StatefulSets with one name, and has them created again in an order.
func recreateBindings(t *testing.T, order []membertest.Kind) {
	h, members := fleet(t, controllertest.StatefulSet, controllertest.AppsStatefulSet)
	set := func(kind membertest.Kind) *unstructured.Unstructured {
		return parsed(t, kind, "db", "replicas: 1, serviceName: db, "+pods("db"))
	}
	bindings, uids := map[string]string{}, map[string]string{}
	kinds := []membertest.Kind{controllertest.AppsStatefulSet, controllertest.StatefulSet}
	for i, kind := range kinds {
		p := policy("shop", kind.GroupVersion().String(), kind.Kind)
		p.SetName(fmt.Sprintf("policy-%d", i))
		p.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": p.GetName()})
		h.Make(p)
		h.Make(claimed(set(kind), p))
		bindings[kind.Group] = applied(h, t, set(kind), kind)
		for name, m := range members {
			uids[name+kind.Group] = string(m.Object(kind, "shop", "db").GetUID())
		}
	}
	h.Quiet()

	createBindingsInOrder(h, order[0].Group)
	for _, kind := range kinds {
		h.Server.Remove(controllertest.Bindings, "shop", bindings[kind.Group])
	}
	for _, kind := range order {
		applied(h, t, set(kind), kind)
	}
	h.Quiet()
	for _, kind := range kinds {
		if is := applied(h, t, set(kind), kind); is != bindings[kind.Group] {
			t.Errorf("the %s has the binding %s, and had %s", kind.GroupKind(), is, bindings[kind.Group])
		}
		controllertest.Change(h, set(kind), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas")
		})
		for name, m := range members {
			h.Eventually(fmt.Sprintf("%s follows the %s", name, kind.GroupKind()), func() string {
				obj := m.Object(kind, "shop", "db")
				if obj == nil || string(obj.GetUID()) != uids[name+kind.Group] {
					return "it was deleted"
				}
				if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != 2 {
					return fmt.Sprintf("it has %d replicas", n)
				}
				return ""
			})
		}
	}
}

// createBindingsInOrder refuses to create bindings until one for a template of the group was created.
func createBindingsInOrder(h *controllertest.Hub, group string) {
	var created atomic.Bool
	h.Server.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if created.Load() || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/resourcebindings") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		b := &workv1alpha2.ResourceBinding{}
		if err == nil {
			err = json.Unmarshal(body, b)
		}
		if ref := b.Spec.Resource; err == nil && match.GroupKind(ref.APIVersion, ref.Kind).Group == group {
			created.Store(true)
			return false
		}
		apistatus.Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("not its turn: %v", err))
		return true
	})
}
