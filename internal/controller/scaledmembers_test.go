package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

const retain = policyv1alpha1.RetainReplicasLabel

// autoscaled is a hub whose policy propagates a workload and its autoscaler to m1 and m2, which have controllers for
// both.
type autoscaled struct {
	*controllertest.Hub
	t                *testing.T
	members          map[string]*membertest.Server
	workload, scaler membertest.Kind
	policy           policyv1alpha1.Propagation
	// wanted are the replicas that the load in a member needs; without an entry, the present ones.
	wanted map[string]int64
}

// newAutoscaled has a policy that divides replicas 1:1, or duplicates them.
func newAutoscaled(t *testing.T, o Options, divided bool, workload, scaler membertest.Kind) *autoscaled {
	h, members := fleetWith(t, o, workload, scaler)
	w := &autoscaled{Hub: h, t: t, members: members, workload: workload, scaler: scaler, wanted: map[string]int64{}}
	p := policy("shop", workload.GroupVersion().String(), workload.Kind)
	spec := p.PropagationSpec()
	spec.ResourceSelectors = append(spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
		APIVersion: scaler.GroupVersion().String(), Kind: scaler.Kind})
	spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}
	if divided {
		weight := func(cluster string) policyv1alpha1.StaticClusterWeight {
			return policyv1alpha1.StaticClusterWeight{Weight: 1,
				TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
		}
		spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
				weight("m1"), weight("m2")}}}
	}
	h.Make(p)
	w.policy = p
	return w
}

// create makes the workload and its autoscaler, with bounds such as "minReplicas: 2, maxReplicas: 9".
func (w *autoscaled) create(replicas int64, bounds string, annotations ...string) {
	w.t.Helper()
	w.Make(claimed(parsed(w.t, w.workload, "web", fmt.Sprintf("replicas: %d, selector: {matchLabels: {app: web}}, %s",
		replicas, pods("web"))), w.policy))
	scaler := parsed(w.t, w.scaler, "web", fmt.Sprintf("scaleTargetRef: {apiVersion: %s, kind: %s, name: web}, %s",
		w.workload.GroupVersion(), w.workload.Kind, bounds))
	for _, key := range annotations {
		scaler.SetAnnotations(map[string]string{key: "Fleet"})
	}
	w.Make(claimed(scaler, w.policy))
}

// tend does in each member what its controllers do: the autoscaler keeps the workload within its bounds, and all pods
// run.
func (w *autoscaled) tend() {
	for name, m := range w.members {
		obj := m.Object(w.workload, "shop", "web")
		if obj == nil {
			continue
		}
		n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		before := n
		if scaler := m.Object(w.scaler, "shop", "web"); scaler != nil {
			s := kind.Facts(scaler).Scaler
			lowest, set, _ := unstructured.NestedInt64(scaler.Object, s.Min...)
			if !set {
				lowest = s.DefaultMin
			}
			highest, set, _ := unstructured.NestedInt64(scaler.Object, s.Max...)
			if !set {
				highest = s.DefaultMax
			}
			if wanted, ok := w.wanted[name]; ok {
				n = wanted
			}
			n = min(max(n, lowest), highest)
		}
		seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		has, _, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")
		if n == before && seen == obj.GetGeneration() && has == n {
			continue
		}
		obj = obj.DeepCopy()
		_ = unstructured.SetNestedField(obj.Object, n, "spec", "replicas")
		obj = m.Put(obj)
		obj.Object["status"] = map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": n, "readyReplicas": n,
			"availableReplicas": n, "updatedReplicas": n, "updatedReadyReplicas": n, "updatedAvailableReplicas": n}
		m.Put(obj)
	}
}

func (w *autoscaled) template() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.workload.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	if !w.HasObject(u) {
		w.t.Fatal("there is no template")
	}
	return u
}

func (w *autoscaled) binding() *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: names.Binding(w.workload.Kind, "web")}}
	w.HasObject(b)
	return b
}

// state returns the replicas of the template, and of the workload in m1 and m2: "6: 3 3".
func (w *autoscaled) state() string {
	u := w.template()
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	text := fmt.Sprint(n, ":")
	for _, name := range []string{"m1", "m2"} {
		if obj := w.members[name].Object(w.workload, "shop", "web"); obj != nil {
			n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			text += fmt.Sprint(" ", n)
		} else {
			text += " -"
		}
	}
	return text
}

// becomes waits for a state, which then stays.
func (w *autoscaled) becomes(what, want string) {
	w.t.Helper()
	w.Eventually(what+": "+want, func() string {
		w.tend()
		if got := w.state(); got != want {
			return fmt.Sprintf("it is %s, annotations %v", got, w.binding().GetAnnotations())
		}
		return ""
	})
	for range 3 { // controllers on both sides have nothing more to do
		w.Quiet()
		w.tend()
	}
	w.Advance(time.Minute)
	if wrote := w.Quiet(); w.state() != want {
		w.t.Errorf("%s: it became %s after %v", what, w.state(), wrote)
	}
}

func (w *autoscaled) scaleTemplate(n int64) {
	controllertest.Change(w.Hub, w.template(), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
	})
}

func (w *autoscaled) setBounds(change func(spec map[string]any)) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.scaler.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	controllertest.Change(w.Hub, u, func(u *unstructured.Unstructured) { change(u.Object["spec"].(map[string]any)) })
}

// What Karmada's replicas syncer does, and the same of other kinds.
func TestTemplateFollowsTheAutoscalersOfItsMembers(t *testing.T) {
	t.Parallel()
	for _, workload := range []membertest.Kind{controllertest.Deployment, controllertest.CloneSet,
		controllertest.StatefulSet, controllertest.AppsStatefulSet} {
		t.Run(workload.GroupVersion().String()+" "+workload.Kind, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newAutoscaled(t, Options{}, true, workload, controllertest.HorizontalPodAutoscaler)
				w.create(4, "minReplicas: 2, maxReplicas: 9")
				w.becomes("first", "4: 2 2")
				w.setBounds(func(spec map[string]any) { spec["minReplicas"] = int64(3) })
				w.becomes("each autoscaler has a minimum of 3", "6: 3 3")
				w.scaleTemplate(10)
				w.becomes("a user adds replicas", "6: 3 3")
				w.scaleTemplate(2)
				w.becomes("a user removes replicas", "6: 3 3")
				w.wanted["m1"], w.wanted["m2"] = 7, 3
				w.becomes("the load is in m1", "10: 7 3")
				w.wanted["m1"], w.wanted["m2"] = 3, 7
				w.becomes("the load moves to m2", "10: 3 7")
				w.wanted["m2"] = 5
				w.becomes("the load in m2 falls", "8: 3 5")
				// The replicas were 4, 6, 10, 6, 2, 6, 10 and 8, and nothing between.
				if n := w.template().GetGeneration(); n != 8 {
					t.Errorf("the template has generation %d: its replicas were written more often than they changed", n)
				}
			})
		})
	}
}

func TestReplicasBelowTheMinimumOfAutoscalers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replicas int64
		bounds   string
		then     int64 // what a user sets; 0 for nothing
		first    string
		last     string
	}{
		"one replica, and a minimum of two": {1, "minReplicas: 2, maxReplicas: 9", 0, "4: 2 2", "4: 2 2"},
		"a user adds a cluster":             {1, "minReplicas: 1, maxReplicas: 9", 2, "1: 1 -", "2: 1 1"},
		"a user removes a cluster":          {2, "minReplicas: 1, maxReplicas: 9", 1, "2: 1 1", "1: 1 -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newAutoscaled(t, Options{}, true, controllertest.Deployment, controllertest.HorizontalPodAutoscaler)
				w.create(c.replicas, c.bounds)
				w.Eventually("first", func() string {
					w.tend()
					if got := w.state(); got != c.first && strings.Replace(got, "- 1", "1 -", 1) != c.first {
						return got
					}
					return ""
				})
				w.Quiet()
				if c.then > 0 {
					w.scaleTemplate(c.then)
				}
				w.Eventually("last", func() string {
					w.tend()
					if got := w.state(); got != c.last && strings.Replace(got, "- 1", "1 -", 1) != c.last {
						return got
					}
					return ""
				})
			})
		})
	}
}

func TestDuplicatedReplicasAreNotSummed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, false, controllertest.Deployment, controllertest.HorizontalPodAutoscaler)
		w.create(2, "minReplicas: 2, maxReplicas: 9")
		w.becomes("first", "2: 2 2")
		w.setBounds(func(spec map[string]any) { spec["minReplicas"] = int64(3) })
		w.becomes("each autoscaler has a minimum of 3", "2: 3 3")
		w.scaleTemplate(4)
		w.becomes("a user adds replicas", "4: 3 3")
		w.scaleTemplate(1)
		w.becomes("a user removes replicas", "1: 3 3")
	})
}

func TestDividedBoundsAreThoseOfTheFleet(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, true, controllertest.CloneSet, controllertest.HorizontalPodAutoscaler)
		w.create(4, "minReplicas: 2, maxReplicas: 12", "argosy.io/rollout-scope")
		w.wanted["m1"], w.wanted["m2"] = 99, 99
		w.becomes("each has half of the maximum", "12: 6 6")
		w.wanted["m1"], w.wanted["m2"] = 0, 0
		w.becomes("each has half of the minimum", "2: 1 1")
	})
}

func TestScaledObjectsOfKEDAAreFollowed(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, true, controllertest.Deployment, controllertest.ScaledObject)
		w.create(4, "maxReplicaCount: 9")
		w.becomes("first", "4: 2 2")
		w.wanted["m1"] = 5
		w.becomes("the load is in m1", "7: 5 2")
		w.wanted["m1"], w.wanted["m2"] = 5, 0
		w.becomes("m2 is scaled to zero, and counts as one", "6: 5 0")
		w.wanted["m2"] = 3
		w.becomes("m2 has load again", "8: 5 3")
	})
}

// labelled waits until the template has the label, "true", "false" or "-" for none, by these autoscalers.
func (w *autoscaled) labelled(what, want, by string) {
	w.t.Helper()
	w.Eventually(what, func() string {
		w.tend()
		u := w.template()
		label, has := u.GetLabels()[retain]
		if !has {
			label = "-"
		}
		if got := u.GetAnnotations()["argosy.io/scaled-by"]; label != want || got != by {
			return fmt.Sprintf("it is %s by %q", label, got)
		}
		return ""
	})
}

func TestLabelGoesWithTheAutoscaler(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, true, controllertest.Deployment, controllertest.HorizontalPodAutoscaler)
		w.create(4, "minReplicas: 2, maxReplicas: 9")
		w.labelled("an autoscaler", "true", "HorizontalPodAutoscaler web")
		w.wanted["m1"] = 6
		w.becomes("the load is in m1", "8: 6 2")
		w.Eventually("the member's object has the label, and not the annotation", func() string {
			obj := w.members["m1"].Object(controllertest.Deployment, "shop", "web")
			if obj.GetLabels()[retain] != "true" || obj.GetAnnotations()["argosy.io/scaled-by"] != "" {
				return fmt.Sprint(obj.GetLabels(), obj.GetAnnotations())
			}
			return ""
		})
		w.setBounds(func(spec map[string]any) { spec["scaleTargetRef"].(map[string]any)["name"] = "other" })
		w.labelled("it scales another workload", "-", "")
		w.Eventually("the scheduler divides the replicas again", func() string {
			got := w.binding().GetAnnotations()
			if got["argosy.io/scaled-by"] != "" || got["argosy.io/scaled-by-members"] != "" {
				return fmt.Sprint(got)
			}
			return ""
		})
		w.setBounds(func(spec map[string]any) { spec["scaleTargetRef"].(map[string]any)["name"] = "web" })
		w.labelled("it scales this one again", "true", "HorizontalPodAutoscaler web")
		hpa := parsed(t, w.scaler, "web", "")
		w.Gone(hpa)
		w.labelled("it is gone", "-", "")
		controllertest.Change(w.Hub, w.template(), func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{retain: "true", policyv1alpha1.PropagationPolicyPermanentIDLabel: "some-id"})
		})
		w.Make(claimed(parsed(t, w.scaler, "web",
			"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 9"), w.policy))
		w.becomes("a user's label", w.state())
		w.Gone(parsed(t, w.scaler, "web", ""))
		w.becomes("the autoscaler is gone, and the user's label stays", w.state())
		w.labelled("the user's", "true", "")
	})
}

// Members get no autoscaler with an invalid annotation, and keep one that they have. Admission refuses a new one; this
// one was stored before.
func TestAutoscalerWithAnInvalidAnnotationFreezesNothing(t *testing.T) {
	t.Parallel()
	for kind, bounds := range map[membertest.Kind]string{
		controllertest.HorizontalPodAutoscaler: "minReplicas: 2, maxReplicas: 9",
		controllertest.ScaledObject:            "minReplicaCount: 2, maxReplicaCount: 9",
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newAutoscaled(t, Options{}, true, controllertest.Deployment, kind)
				w.create(4, bounds)
				by := kind.Kind + " web"
				scaler := func(scope string) {
					u := &unstructured.Unstructured{}
					u.SetGroupVersionKind(kind.GroupVersionKind)
					u.SetNamespace("shop")
					u.SetName("web")
					controllertest.Change(w.Hub, u, func(u *unstructured.Unstructured) {
						annotations := u.GetAnnotations()
						annotations["argosy.io/rollout-scope"] = scope
						u.SetAnnotations(annotations)
					})
				}
				w.labelled("it is valid", "true", by)
				scaler("Galaxy")
				w.Quiet()
				w.labelled("it became invalid, and members keep it", "true", by)
				w.Gone(parsed(t, kind, "web", ""))
				w.labelled("it is gone", "-", "")
				u := parsed(t, kind, "web", "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, "+bounds)
				u.SetAnnotations(map[string]string{"argosy.io/rollout-scope": "Galaxy"})
				w.Make(claimed(u, w.policy))
				w.Quiet()
				w.labelled("it is invalid from the start", "-", "")
				w.scaleTemplate(6)
				w.becomes("a user adds replicas", "6: 3 3")
				scaler("Fleet")
				w.labelled("it was corrected", "true", by)
			})
		})
	}
}

// A FederatedHPA and an autoscaler in the members would undo each other's replicas.
func TestFederatedHPATakesPrecedenceOverAutoscalersOfMembers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, true, controllertest.Deployment, controllertest.HorizontalPodAutoscaler)
		w.create(4, "minReplicas: 2, maxReplicas: 9")
		w.labelled("an autoscaler", "true", "HorizontalPodAutoscaler web")
		f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "load"}}
		f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
			Name: "web"}
		f.Spec.MaxReplicas = 9
		w.Make(f)
		w.labelled("a FederatedHPA scales it, too", "-", "")
		w.Gone(f)
		w.labelled("the FederatedHPA is gone", "true", "HorizontalPodAutoscaler web")
	})
}

func TestMembersAreNotFollowedIfAnAdministratorWantsSo(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{Autoscaling: Autoscaling{IgnoreMembers: true}}, true, controllertest.Deployment,
			controllertest.HorizontalPodAutoscaler)
		w.create(4, "minReplicas: 3, maxReplicas: 9")
		w.Eventually("it is in m1", func() string {
			if w.members["m1"].Object(controllertest.Deployment, "shop", "web") == nil {
				return "it is not"
			}
			return ""
		})
		w.Quiet()
		if got := w.template().GetLabels()[retain]; got != "" {
			t.Errorf("the label is %q", got)
		}
	})
}

// An autoscaler costs two writes of its workload: the label, and who scales it in the binding. The replicas that it
// sets cost one of each.
func TestWritesForAnAutoscalerAreFew(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newAutoscaled(t, Options{}, true, controllertest.Deployment, controllertest.HorizontalPodAutoscaler)
		w.Make(claimed(parsed(t, w.workload, "web", "replicas: 4, selector: {matchLabels: {app: web}}, "+pods("web")),
			w.policy))
		w.becomes("first", "4: 2 2")
		spent := func(do func()) map[string]int {
			w.Quiet()
			do()
			got := map[string]int{}
			for verb, n := range count(w.Quiet()) {
				if strings.HasSuffix(verb, " deployments") || strings.HasSuffix(verb, " resourcebindings") {
					got[verb] = n
				}
			}
			return got
		}
		got := spent(func() {
			w.Make(claimed(parsed(t, w.scaler, "web",
				"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 9"),
				w.policy))
			w.labelled("an autoscaler", "true", "HorizontalPodAutoscaler web")
		})
		// The binding of the autoscaler is created, and that of the workload has another version of the template.
		if got["update deployments"] != 1 || got["update resourcebindings"] > 2 {
			t.Errorf("the autoscaler costs %v", got)
		}
		if got := spent(w.tend); len(got) > 0 {
			t.Errorf("nothing changes, and it costs %v", got)
		}
	})
}
