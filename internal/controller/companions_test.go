package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// parsed returns an object in namespace shop.
func parsed(t *testing.T, k membertest.Kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{spec: {"+spec+"}}"), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

// pods returns the spec of a workload whose pods have the label.
func pods(label string) string {
	return "template: {metadata: {labels: {app: " + label + "}}, spec: {containers: []}}"
}

// takes returns a policy for the Deployments with a label, to the clusters, that takes along what they need.
func takes(label string, deps bool, clusters ...string) policyv1alpha1.Propagation {
	p := policy("shop", "apps/v1", "Deployment")
	p.SetName(label)
	p.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "id-" + label
	spec := p.PropagationSpec()
	spec.PropagateDeps = deps
	spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"policy": label}}
	spec.Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
	return p
}

var companionKinds = []membertest.Kind{controllertest.WorkloadSpread, controllertest.PodUnavailableBudget,
	controllertest.PodDisruptionBudget, controllertest.PersistentPodState}

// following is which bindings of companions are there, whom they follow, and where.
func following(t *testing.T, h *controllertest.Hub) map[string]string {
	t.Helper()
	var all workv1alpha2.ResourceBindingList
	if err := h.List(t.Context(), &all, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, b := range all.Items {
		if b.Spec.Placement != nil {
			continue
		}
		var whom []string
		for _, r := range b.Spec.RequiredBy {
			clusters := ""
			for _, c := range r.Clusters {
				clusters += " " + c.Name
			}
			whom = append(whom, r.Name+clusters)
		}
		got[b.Name] = strings.Join(whom, ", ")
	}
	return got
}

func TestCompanionsMatchNaiveImplementation(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, append(companionKinds, controllertest.Deployment)...)
		where := map[string][]string{"one": {"m1"}, "two": {"m1", "m2"}, "alone": {"m3"}}
		for label, clusters := range where {
			h.Make(takes(label, label != "alone", clusters...))
		}
		// The twin has what was written, and asks each for each.
		type workload struct{ policy, label string }
		type companion struct {
			kind       membertest.Kind
			name, spec string
			points     func(name string, w workload) bool
		}
		workloads, companions := map[string]workload{}, map[string]companion{}
		want := func() map[string]string {
			all := map[string]string{}
			for _, c := range companions {
				var whom []string
				for _, name := range slices.Sorted(maps.Keys(workloads)) {
					if w := workloads[name]; w.policy != "alone" && c.points(name, w) {
						whom = append(whom, names.Binding("Deployment", name)+" "+strings.Join(where[w.policy], " "))
					}
				}
				if len(whom) > 0 {
					all[names.Binding(c.kind.Kind, c.name)] = strings.Join(whom, ", ")
				}
			}
			return all
		}

		r := rand.New(rand.NewPCG(1, 0)) // a fixed seed: the suite must give the same result each time
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		one := func(kind membertest.Kind, name string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kind.GroupVersionKind)
			u.SetNamespace("shop")
			u.SetName(name)
			return u
		}
		write := func(kind membertest.Kind, known bool, u *unstructured.Unstructured) {
			if !known {
				h.Make(u)
				return
			}
			controllertest.Change(h, one(kind, u.GetName()), func(now *unstructured.Unstructured) {
				now.Object["spec"] = u.Object["spec"]
				labels := now.GetLabels()
				if labels == nil {
					labels = map[string]string{}
				}
				maps.Copy(labels, u.GetLabels())
				now.SetLabels(labels)
			})
		}
		gone := func(kind membertest.Kind, name string) {
			h.Gone(one(kind, name))
			h.Eventually(name+" is gone", func() string {
				if h.HasObject(one(kind, name)) {
					return "it is there"
				}
				return ""
			})
		}
		for round := range 12 {
			var did []string
			for range 1 + r.IntN(4) {
				if r.IntN(2) == 0 {
					name := pick("a", "b", "c")
					_, known := workloads[name]
					if known && r.IntN(3) == 0 {
						delete(workloads, name)
						gone(controllertest.Deployment, name)
						did = append(did, "delete "+name)
						continue
					}
					w := workload{pick("one", "two", "alone"), pick("front", "back")}
					workloads[name] = w
					u := parsed(t, controllertest.Deployment, name, "replicas: 0, "+pods(w.label))
					u.SetLabels(map[string]string{"policy": w.policy})
					write(controllertest.Deployment, known, u)
					did = append(did, fmt.Sprint("write ", name, w))
					continue
				}
				c := companion{kind: companionKinds[r.IntN(3)], name: pick("p", "q")}
				key := c.kind.Kind + " " + c.name
				_, known := companions[key]
				if known && r.IntN(3) == 0 {
					delete(companions, key)
					gone(c.kind, c.name)
					did = append(did, "delete "+key)
					continue
				}
				target, label := pick("a", "b", "c"), pick("front", "back")
				switch {
				case c.kind.Kind == "WorkloadSpread" || c.kind.Kind == "PodUnavailableBudget" && r.IntN(2) == 0:
					c.spec = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: " + target + "}"
					c.points = func(name string, _ workload) bool { return name == target }
				case r.IntN(3) == 0:
					c.spec = "selector: {matchExpressions: [{key: app, operator: NotIn, values: [" + label + "]}]}"
					c.points = func(_ string, w workload) bool { return w.label != label }
				default:
					c.spec = "selector: {matchLabels: {app: " + label + "}}"
					c.points = func(_ string, w workload) bool { return w.label == label }
				}
				companions[key] = c
				write(c.kind, known, parsed(t, c.kind, c.name, c.spec))
				did = append(did, "write "+key+" "+c.spec)
			}
			h.Eventually(fmt.Sprintf("round %d: %s", round, strings.Join(did, "; ")), func() string {
				if got, want := following(t, h), want(); !maps.Equal(got, want) {
					return fmt.Sprintf("following: %v, want %v; reported: %q", got, want, h.Events())
				}
				for _, c := range companions {
					for name, m := range members {
						whom := want()[names.Binding(c.kind.Kind, c.name)]
						if is := m.Object(c.kind, "shop", c.name) != nil; is != strings.Contains(whom, name) {
							return fmt.Sprintf("%s holds %s %s: %t; it follows %q", name, c.kind.Kind, c.name, is, whom)
						}
					}
				}
				return ""
			})
		}
	})
}

func TestCompanionCostsAsManyWritesAsADependency(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		const target = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
		costs := map[string]map[string]int{}
		for what, make := range map[string]func(h *controllertest.Hub){
			"dependency": func(h *controllertest.Hub) {
				h.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "follows"},
					Data: map[string]string{"a": "b"}})
			},
			"companion": func(h *controllertest.Hub) {
				h.Make(parsed(t, controllertest.WorkloadSpread, "follows", target))
			},
			"nothing": func(*controllertest.Hub) {},
			"without propagateDeps": func(h *controllertest.Hub) {
				h.Make(parsed(t, controllertest.WorkloadSpread, "follows", target))
			},
		} {
			h, members := fleet(t, append(companionKinds, controllertest.Deployment)...)
			p := takes("one", what != "without propagateDeps", "m1")
			h.Make(p)
			make(h)
			h.Quiet()
			spec := pods("front")
			if what == "dependency" {
				spec = "template: {metadata: {labels: {app: front}}, spec: {containers: [], volumes: [{name: a, configMap: {name: follows}}]}}"
			}
			u := parsed(t, controllertest.Deployment, "web", "replicas: 0, "+spec)
			u.SetLabels(map[string]string{"policy": "one"})
			h.Make(claimed(u, p)) // else it may be sent before its claim is seen, and again
			h.Eventually("all is in the member", func() string {
				spread, config := members["m1"].Object(controllertest.WorkloadSpread, "shop", "follows"),
					members["m1"].Object(membertest.ConfigMap, "shop", "follows")
				if members["m1"].Object(controllertest.Deployment, "shop", "web") == nil || what == "dependency" && config == nil ||
					what == "companion" && spread == nil {
					return what + " is missing"
				}
				return ""
			})
			costs[what] = map[string]int{}
			for write, n := range count(h.Quiet()) {
				if !strings.HasSuffix(write, "/status") { // which counts rounds of time as well
					costs[what][write] = n
				}
			}
			watched := len(h.Server.Requests("GET /apis/apps.kruise.io/v1alpha1/workloadspreads")) > 0
			if watched != (what != "without propagateDeps") {
				t.Errorf("%s: WorkloadSpreads are watched: %t", what, watched)
			}
		}
		if !maps.Equal(costs["companion"], costs["dependency"]) {
			t.Errorf("a companion costs %v, a dependency %v", costs["companion"], costs["dependency"])
		}
		if !maps.Equal(costs["nothing"], costs["without propagateDeps"]) {
			t.Errorf("without companions it costs %v, without propagateDeps %v", costs["nothing"],
				costs["without propagateDeps"])
		}
	})
}

func TestCompanionMovesToAnotherWorkload(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		h, _ := fleet(t, append(companionKinds, controllertest.Deployment)...)
		h.Make(takes("one", true, "m1"))
		for _, name := range []string{"a", "b"} {
			u := parsed(t, controllertest.Deployment, name, "replicas: 0, "+pods(name))
			u.SetLabels(map[string]string{"policy": "one"})
			h.Make(u)
		}
		spread := func(target string) *unstructured.Unstructured {
			return parsed(t, controllertest.WorkloadSpread, "s", "targetRef: {apiVersion: apps/v1, kind: Deployment, name: "+
				target+"}")
		}
		follows := func(what, whom string) {
			t.Helper()
			h.Eventually(what, func() string {
				if got := following(t, h)["s-workloadspread"]; got != whom {
					return fmt.Sprintf("it follows %q, want %q", got, whom)
				}
				return ""
			})
		}
		h.Make(spread("a"))
		follows("it follows the first", "a-deployment m1")
		// Let go by the one before the other takes it, its binding goes, and another comes when that is gone.
		controllertest.Change(h, spread("a"),
			func(u *unstructured.Unstructured) { u.Object["spec"] = spread("b").Object["spec"] })
		follows("and the other", "b-deployment m1")
		controllertest.Change(h, spread("a"),
			func(u *unstructured.Unstructured) { u.Object["spec"] = spread("none").Object["spec"] })
		follows("and nobody", "")
		controllertest.Change(h, spread("a"),
			func(u *unstructured.Unstructured) { u.Object["spec"] = spread("b").Object["spec"] })
		follows("and the other again", "b-deployment m1")
	})
}
