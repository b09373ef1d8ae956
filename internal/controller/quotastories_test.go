package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	corewhy "github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/why"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// duplicate has the policy duplicate the Deployments to m1 and m2.
func (w *quotas) duplicate() {
	w.t.Helper()
	w.changePolicy(func(spec *policyv1alpha1.PropagationSpec) { spec.Placement.ReplicaScheduling = nil })
}

func (w *quotas) changePolicy(change func(*policyv1alpha1.PropagationSpec)) {
	w.t.Helper()
	controllertest.Change(w.Hub, w.policy, func(p policyv1alpha1.Propagation) { change(p.PropagationSpec()) })
}

func (w *quotas) removeQuota(name string) {
	w.t.Helper()
	w.Gone(&policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
}

// calm lets everything happen that happens, also the retries of what a quota refused.
func (w *quotas) calm() {
	w.t.Helper()
	w.Advance(time.Minute)
	w.Quiet()
	w.Advance(3 * time.Second)
	w.Quiet()
}

// running is the CPU of the pods of a Deployment in all members.
func (w *quotas) running(name string) (cpu int64) {
	for _, m := range w.members {
		if d := m.Object(controllertest.Deployment, "shop", name); d != nil {
			n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
			cpu += n * cpuOf(d)
		}
	}
	return cpu
}

// blamed reports whether why explains the state of a Deployment by a quota, and returns its findings.
func (w *quotas) blamed(name string) (bool, string) {
	w.t.Helper()
	says, err := why.Explain(w.t.Context(), w.Hub, w.RESTMapper(),
		why.Query{Kind: "Deployment", Namespace: "shop", Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(says.(corewhy.Answer).Findings)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Contains(string(text), "FederatedResourceQuota"), string(text)
}

// What the hub refuses because of a quota, why explains by the quota, and nothing else.
func TestWhyNamesTheQuotaWhereItRefuses(t *testing.T) {
	t.Parallel()
	type workload struct {
		replicas int
		cpu      string
	}
	small := workload{2, "1"}
	for name, c := range map[string]struct {
		duplicated bool
		from       workload
		to         workload
		// then happens after the change.
		then func(w *quotas)
		// want is the CPU that runs at last. The quota permits 4.
		want    int64
		refused bool
		// used is the CPU that the quota counts; empty for any.
		used string
	}{
		"divided, permitted":          {from: small, to: workload{4, "1"}, want: 4},
		"divided, scaled up":          {from: small, to: workload{5, "1"}, want: 2, refused: true},
		"divided, requirement raised": {from: small, to: workload{2, "3"}, want: 2, refused: true},
		"divided, both":               {from: small, to: workload{5, "3"}, want: 2, refused: true},
		"duplicated, permitted": {duplicated: true, from: workload{1, "1"},
			to: workload{2, "1"}, want: 4},
		"duplicated, scaled up": {duplicated: true, from: workload{1, "1"},
			to: workload{3, "1"}, want: 2, refused: true},
		"duplicated, scaled up from nothing": {duplicated: true, from: workload{0, "1"},
			to: workload{3, "1"}, want: 0, refused: true},
		"duplicated, requirement raised": {duplicated: true, from: workload{1, "1"},
			to: workload{1, "3"}, want: 2, refused: true},
		"duplicated, both": {duplicated: true, from: workload{1, "1"},
			to: workload{3, "3"}, want: 2, refused: true},
		"requirement raised, replicas lowered": {from: small, to: workload{1, "3"}, want: 2, refused: true},
		"requirement lowered, replicas raised": {from: workload{1, "2"}, to: workload{3, "1"}, want: 3},
		"the quota is lowered below the use": {from: workload{4, "1"}, to: workload{4, "1"}, then: func(w *quotas) {
			w.quota("team", "cpu: 1", "")
		}, want: 4},
		"lowered below the use, scaled down": {from: workload{4, "1"}, to: workload{4, "1"}, then: func(w *quotas) {
			w.quota("team", "cpu: 1", "")
			w.redeploy("web", 3, "1")
		}, want: 3},
		"lowered below the use, scaled up": {from: small, to: small, then: func(w *quotas) {
			w.quota("team", "cpu: 1", "")
			w.redeploy("web", 3, "1")
		}, want: 2, refused: true},
		"refused, then raised": {from: small, to: workload{2, "3"}, then: func(w *quotas) {
			w.quota("team", "cpu: 6", "")
		}, want: 6},
		"refused, then no quota": {from: small, to: workload{2, "3"}, then: func(w *quotas) {
			w.removeQuota("team")
		}, want: 6},
		"refused, then reverted": {from: small, to: workload{2, "3"}, then: func(w *quotas) {
			w.redeploy("web", 2, "1")
		}, want: 2},
		"the second of two quotas": {from: small, to: workload{4, "1"}, then: func(w *quotas) {
			w.quota("small", "cpu: 4", "")
			w.redeploy("web", 5, "1")
		}, want: 4, refused: true},
		"two quotas, one is raised": {from: small, to: workload{2, "3"}, then: func(w *quotas) {
			w.quota("small", "cpu: 4", "")
			w.quota("team", "cpu: 9", "")
		}, want: 2, refused: true},
		"dispatch is suspended": {from: small, to: small, then: func(w *quotas) {
			suspendDispatch(w)
			w.redeploy("web", 4, "1")
		}, want: 2},
		"an override raises the requests": {from: small, to: small, then: func(w *quotas) {
			w.Make(coretest.Object(w.t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: larger}, spec: {
				resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], overrideRules: [{overriders: {plaintext: [{operator: replace,
				path: /spec/template/spec/containers/0/resources/requests/cpu, value: "3"}]}}]}}`))
		}, want: 6, used: "2"},
		"dispatch is suspended, scaled down": {from: workload{4, "1"}, to: workload{4, "1"}, then: func(w *quotas) {
			suspendDispatch(w)
			w.redeploy("web", 2, "1")
		}, want: 4, used: "2"},
		"dispatch is suspended, larger": {from: small, to: small, then: func(w *quotas) {
			suspendDispatch(w)
			w.redeploy("web", 2, "3")
		}, want: 2, refused: true},
		"scheduling is suspended, larger": {from: small, to: small, then: func(w *quotas) {
			suspendScheduling(w)
			w.redeploy("web", 2, "3")
		}, want: 2, refused: true},
		"scheduling is suspended, duplicated more": {duplicated: true, from: workload{1, "1"}, to: workload{1, "1"},
			then: func(w *quotas) {
				suspendScheduling(w)
				w.redeploy("web", 2, "1")
			}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newQuotas(t, Options{})
				if c.duplicated {
					w.duplicate()
				}
				w.quota("team", "cpu: 4", "")
				w.deploy("web", c.from.replicas, c.from.cpu)
				w.calm()
				w.redeploy("web", c.to.replicas, c.to.cpu)
				w.calm()
				if c.then != nil {
					c.then(w)
					w.calm()
				}
				if got := w.running("web"); got != c.want {
					t.Errorf("%d CPU run, want %d", got, c.want)
				}
				if got := w.used("team"); c.used != "" && got != c.used {
					t.Errorf("%s are used, want %s", got, c.used)
				}
				if blamed, says := w.blamed("web"); blamed != c.refused {
					t.Errorf("why explains it by a quota: %v, want %v: %s", blamed, c.refused, says)
				}
			})
		})
	}
}

func suspendDispatch(w *quotas) {
	w.changePolicy(func(spec *policyv1alpha1.PropagationSpec) {
		spec.Suspension = &policyv1alpha1.Suspension{Dispatching: new(true)}
	})
	w.calm()
}

func suspendScheduling(w *quotas) {
	controllertest.Change(w.Hub, w.binding("web"), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	})
	w.calm()
}

// rayClusters and tfJobs have several pod templates. The hub knows nothing of trains.
var (
	rayClusters = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "ray.io", Version: "v1",
		Kind: "RayCluster"}, Plural: "rayclusters", Namespaced: true}
	tfJobs = membertest.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"},
		Plural:           "tfjobs", Namespaced: true}
	trains = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Train"},
		Plural: "trains", Namespaced: true}
)

// A kind with several pod templates, and one without a pod template that the hub knows, counts as a whole.
func TestQuotasOfKindsWithoutOnePodTemplate(t *testing.T) {
	t.Parallel()
	const (
		pod      = `template: {spec: {containers: [{name: c, resources: {requests: {cpu: %q}}}]}}`
		ray      = `headGroupSpec: {` + pod + `}, workerGroupSpecs: [{groupName: w, replicas: %d, ` + pod + `}]`
		tf       = `tfReplicaSpecs: {PS: {replicas: 1, ` + pod + `}, Worker: {replicas: %d, ` + pod + `}}`
		train    = `engine: %q, wagons: %d, load: %q`
		replicas = `replicaResource: {luaScript: "function GetReplicas(obj) return obj.spec.wagons, {resourceRequest = {cpu = obj.spec.load}} end"},
			replicaRevision: {luaScript: "function ReviseReplica(obj, n) obj.spec.wagons = n return obj end"}`
		components = `componentResource: {luaScript: "function GetComponents(obj) return {{name = 'engine', replicas = 1, replicaRequirements = {resourceRequest = {cpu = obj.spec.engine}}}, {name = 'wagon', replicas = obj.spec.wagons, replicaRequirements = {resourceRequest = {cpu = obj.spec.load}}}} end"}`
	)
	type change struct {
		first   string
		wagons  int
		rest    string
		refused bool
	}
	more, larger, other := change{"1", 9, "1", true}, change{"1", 2, "4", true}, change{"2", 1, "1", false}
	for name, c := range map[string]struct {
		kind    membertest.Kind
		spec    string
		rules   string
		used    string
		changes map[string]change
	}{
		"RayCluster": {kind: rayClusters, spec: ray, used: "6",
			changes: map[string]change{"more": more, "larger": larger, "a larger head and fewer workers": other}},
		"TFJob": {kind: tfJobs, spec: tf, used: "6",
			changes: map[string]change{"more": more, "larger": larger, "a larger server and fewer workers": other}},
		"a customization with components": {kind: trains, spec: train, rules: components, used: "6",
			changes: map[string]change{"more": more, "larger": larger, "a larger engine and fewer wagons": other}},
		"a customization with replicas": {kind: trains, spec: train, rules: replicas, used: "4",
			changes: map[string]change{"larger": larger, "another engine": {"5", 2, "1", false}}},
		"a kind that the hub does not know": {kind: trains, spec: train, used: "0",
			changes: map[string]change{"more": {"1", 9, "9", false}}},
	} {
		for what, ch := range c.changes {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				controllertest.Run(t, func(t *testing.T) {
					w := &quotas{t: t}
					w.Hub, w.members = fleetWith(t, Options{}, c.kind)
					w.Server.Serve(c.kind)
					if c.rules != "" {
						w.Make(coretest.Object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: trains},
							spec: {target: {apiVersion: example.com/v1, kind: Train}, customizations: {`+c.rules+`}}}`))
						w.Quiet()
					}
					p := policy("shop", c.kind.GroupVersion().String(), c.kind.Kind)
					p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{
						ClusterNames: []string{"m1", "m2"}}
					w.Make(p)
					w.quota("team", "cpu: 7", "")
					object := func(ch change) *unstructured.Unstructured {
						values := []any{ch.first, ch.wagons, ch.rest}
						return parsed(t, c.kind, "web", fmt.Sprintf(c.spec, values...))
					}
					small, changed := object(change{"1", 2, "1", false}), object(ch)
					b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
						Name: names.Binding(c.kind.Kind, "web")}}
					sent := func(want *unstructured.Unstructured) string {
						if !w.HasObject(b) || len(b.Spec.Clusters) != 2 {
							return fmt.Sprintf("it is in %v", b.Spec.Clusters)
						}
						for _, in := range b.Spec.Clusters {
							m := w.members[in.Name].Object(c.kind, "shop", "web")
							if m == nil {
								return in.Name + " lacks it"
							}
							if has, wants := fmt.Sprint(m.Object["spec"]), fmt.Sprint(want.Object["spec"]); has != wants {
								return fmt.Sprintf("%s has %s, want %s", in.Name, has, wants)
							}
						}
						return ""
					}
					w.Server.Put(claimed(small.DeepCopy(), p))
					w.calm()
					if wrong := sent(small); wrong != "" || w.used("team") != c.used {
						t.Fatalf("what fits: %q, used %s, want %s", wrong, w.used("team"), c.used)
					}
					live := w.Server.Object(c.kind, "shop", "web")
					live.Object["spec"] = changed.DeepCopy().Object["spec"]
					w.Server.Put(live)
					w.calm()
					if !ch.refused {
						if wrong := sent(changed); wrong != "" {
							t.Error(wrong)
						}
						return
					}
					if wrong := sent(small); wrong != "" || w.used("team") != c.used {
						t.Errorf("what does not fit: %q, used %s, want %s", wrong, w.used("team"), c.used)
					}
					if !slices.ContainsFunc(w.Events(), func(e string) bool {
						return strings.HasPrefix(e, c.kind.Kind+" ApplyPolicyFailed: ") &&
							strings.Contains(e, "FederatedResourceQuota(shop/team)")
					}) {
						t.Errorf("no event: %q", w.Events())
					}
					controllertest.Change(w.Hub, b, func(b *workv1alpha2.ResourceBinding) {
						b.Spec.Clusters = append(b.Spec.Clusters[:1],
							workv1alpha2.TargetCluster{Name: "m3", Replicas: b.Spec.Clusters[0].Replicas})
					})
					w.Advance(3 * time.Second)
					w.Quiet()
					if m := w.members["m3"].Object(c.kind, "shop", "web"); m != nil {
						t.Errorf("m3 has %v", fields.Value(m.Object, "spec"))
					}
					w.quota("team", "cpu: 99", "")
					w.calm()
					if wrong := sent(changed); wrong != "" {
						t.Errorf("with the quota: %s", wrong)
					}
				})
			})
		}
	}
}

// A run in one cluster counts with its largest step, and until it is deleted.
func TestRunCountsUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &quotas{t: t}
		w.Hub, w.members = fleetWith(t, Options{}, workflows)
		w.Server.Serve(workflows)
		p := policy("shop", "argoproj.io/v1alpha1", "Workflow")
		w.Make(p)
		w.quota("team", "cpu: 3", "")
		run := func(name string) {
			w.Server.Put(claimed(parsed(t, workflows, name, `entrypoint: a, templates: [{name: a, container: {image: x, resources: {requests: {cpu: "2"}}}},
				{name: b, container: {image: x, resources: {requests: {cpu: "1"}}}}]`), p))
			w.calm()
		}
		places := func(name string) (n int) {
			for _, m := range w.members {
				if u := m.Object(workflows, "shop", name); u != nil {
					n++
					u.Object["status"] = map[string]any{"phase": "Succeeded"}
					m.Put(u)
				}
			}
			w.calm()
			return n
		}
		run("first")
		if n := places("first"); n != 1 || w.used("team") != "2" {
			t.Errorf("the first is in %d clusters, used %s", n, w.used("team"))
		}
		run("second")
		if n := places("second"); n != 0 || w.used("team") != "2" {
			t.Errorf("the second is in %d clusters, used %s", n, w.used("team"))
		}
		w.Server.Remove(workflows, "shop", "first")
		w.calm()
		if n := places("second"); n != 1 || w.used("team") != "2" {
			t.Errorf("after the first was deleted, the second is in %d clusters, used %s", n, w.used("team"))
		}
	})
}

// The objects of a namespace that is being deleted go in any order. What comes under its name afterwards has the whole
// quota.
func TestDeletedNamespaceFreesItsQuota(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"the quota goes first": {"quota", "web", "late", "policy"},
		"the quota goes last":  {"web", "policy", "late", "quota"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newQuotas(t, Options{})
				const assigned = `{clusterName: m1, hard: {cpu: "2"}}`
				w.quota("team", "cpu: 2", assigned)
				w.deploy("web", 2, "1")
				w.expect("web", "team", "placed 2, running 2, Success, used 2")
				w.deploy("late", 2, "1")
				w.expect("late", "team", "placed 0, running 0, QuotaExceeded, used 2")
				space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
				controllertest.Change(w.Hub, space, func(ns *corev1.Namespace) { ns.Finalizers = []string{"test/content"} })
				w.Gone(space)
				w.redeploy("late", 2, "2") // which the quota refuses, too
				w.Advance(time.Minute)
				w.Quiet()
				before := len(w.Events())
				for _, what := range order {
					switch what {
					case "quota":
						w.removeQuota("team")
					case "policy":
						w.Gone(w.policy)
					default:
						w.Gone(w.deployment(what, 2, "1"))
					}
					w.Advance(5 * time.Second)
				}
				w.calm()
				if wrote := w.Quiet(); len(wrote) > 0 {
					t.Errorf("it still writes %v", wrote)
				}
				if events := w.Events(); len(events) > before+10 {
					t.Errorf("events: %q", events)
				}
				if w.binding("web") != nil || w.binding("late") != nil {
					t.Error("bindings are left")
				}
				var works workv1alpha1.WorkList
				if err := w.List(t.Context(), &works); err != nil {
					t.Fatal(err)
				}
				for _, work := range works.Items {
					if strings.HasPrefix(work.Name, "web") || strings.HasPrefix(work.Name, "team") {
						t.Errorf("Work %s/%s is left", work.Namespace, work.Name)
					}
				}
				controllertest.Change(w.Hub, space, func(ns *corev1.Namespace) { ns.Finalizers = nil })
				w.calm()
				w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
				w.calm()
				w.policy.SetResourceVersion("")
				w.policy.SetUID("")
				w.policy.SetDeletionTimestamp(nil)
				w.Make(w.policy)
				w.quota("team", "cpu: 2", assigned)
				w.deploy("next", 2, "1")
				w.expect("next", "team", "placed 2, running 2, Success, used 2")
			})
		})
	}
}

// A kind that begins to be read runs already. No quota scales it down.
func TestQuotaOfAKindThatIsReadLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quota   string
		divided bool
		// want are the wagons in the two clusters after the kind is read, and later those that are asked for.
		read, later string
	}{
		"a quota that is too small":          {"cpu: 3", false, "2 2", "2 2"},
		"a quota that permits it":            {"cpu: 9", false, "2 2", "2 2"},
		"a quota that permits all":           {"cpu: 99", false, "2 2", "5 5"},
		"no quota":                           {"", false, "2 2", "5 5"},
		"divided, a quota that is too small": {"cpu: 1", true, "2 2", "2 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := &quotas{t: t}
				w.Hub, w.members = fleetWith(t, Options{}, trains)
				w.Server.Serve(trains)
				p := policy("shop", trains.GroupVersion().String(), trains.Kind)
				p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}
				if c.divided {
					p.PropagationSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
						ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
						ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}
				}
				w.Make(p)
				if c.quota != "" {
					w.quota("team", c.quota, "")
				}
				w.Server.Put(claimed(parsed(t, trains, "web", `wagons: 2, load: "1"`), p))
				w.calm()
				expect := func(when, want string) {
					t.Helper()
					var got []string
					for _, name := range []string{"m1", "m2"} {
						if m := w.members[name].Object(trains, "shop", "web"); m != nil {
							got = append(got, fmt.Sprint(fields.Value(m.Object, "spec", "wagons")))
						}
					}
					if strings.Join(got, " ") != want {
						t.Errorf("%s, the clusters have %v wagons, want %s", when, got, want)
					}
				}
				expect("before the kind is read", "2 2")
				w.Make(coretest.Object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: trains},
					spec: {target: {apiVersion: example.com/v1, kind: Train}, customizations: {
					replicaResource: {luaScript: "function GetReplicas(obj) return obj.spec.wagons, {resourceRequest = {cpu = obj.spec.load}} end"},
					replicaRevision: {luaScript: "function ReviseReplica(obj, n) obj.spec.wagons = n return obj end"}}}}`))
				w.calm()
				expect("after it is read", c.read)
				live := w.Server.Object(trains, "shop", "web")
				live.Object["spec"].(map[string]any)["wagons"] = int64(5)
				w.Server.Put(live)
				w.calm()
				expect("scaled up", c.later)
			})
		})
	}
}
