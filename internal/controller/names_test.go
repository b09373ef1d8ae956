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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/member/membertest"
	"github.com/argosy-io/argosy/internal/scope"
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
