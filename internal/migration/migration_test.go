package migration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/migration"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var autoscaler = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2",
	Kind: "HorizontalPodAutoscaler"}, Plural: "horizontalpodautoscalers", Namespaced: true}

// world is a hub with all controllers, and members that run workloads of their own.
type world struct {
	*controllertest.Hub
	*migration.Migration
	t       *testing.T
	members map[string]*membertest.Server
	// shown is what the migration reported.
	shown []string
	// onProgress is called with each report.
	onProgress func(line string)
	stop       func()
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t, members: map[string]*membertest.Server{}}
	ids := 0
	w.Config.Transport = w.Server.Within(func(ctx context.Context, obj *unstructured.Unstructured) error {
		if key := policyIDs[obj.GetKind()]; key != "" && obj.GetLabels()[key] == "" { // as admission does
			ids++
			labels := obj.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = fmt.Sprintf("id-%d", ids)
			obj.SetLabels(labels)
		}
		return commit.AddStatus(ctx, obj)
	})
	for _, name := range []string{"m1", "m2"} {
		kinds := []membertest.Kind{controllertest.CloneSet, controllertest.Deployment, controllertest.ClusterRole, autoscaler}
		w.members[name] = w.Join(name, kinds...)
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(membertest.Namespace.GroupVersionKind)
		ns.SetName("shop")
		w.members[name].Put(ns)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	w.Advance(5 * time.Second)
	w.newRun()
	return w
}

var policyIDs = map[string]string{
	"PropagationPolicy":        policyv1alpha1.PropagationPolicyPermanentIDLabel,
	"ClusterPropagationPolicy": policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
}

// start runs a hub process.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{Config: w.Config, DialMember: membertest.Dial})
	}()
	w.Advance(time.Second)
	w.stop = func() {
		w.stop = func() {}
		w.Disconnected(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
		})
	}
}

// newRun is a new run of the command, which remembers nothing of an earlier one.
func (w *world) newRun() {
	w.t.Helper()
	api := func(config *rest.Config) migration.API {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			w.t.Fatal(err)
		}
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			w.t.Fatal(err)
		}
		return migration.API{Dynamic: c, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}
	}
	w.shown = nil
	w.Migration = &migration.Migration{Hub: api(w.Config), Client: w.Hub.Client}
	w.Dial = func(_ context.Context, cluster string) (migration.API, error) {
		return api(&rest.Config{Host: w.members[cluster].URL, BearerToken: membertest.Token, QPS: -1, Dial: membertest.Dial,
			ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}), nil
	}
	w.Progress = func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		w.shown = append(w.shown, line)
		if w.onProgress != nil {
			w.onProgress(line)
		}
	}
	var err error
	if w.Meaning, err = migration.Interpreter(w.t.Context(), w.Hub); err != nil {
		w.t.Fatal(err)
	}
}

// runsInBoth puts an object into m1 and m2, as runs does.
func (w *world) runsInBoth(k membertest.Kind, name, content string) {
	w.t.Helper()
	for _, m := range []string{"m1", "m2"} {
		w.runs(m, k, name, content)
	}
}

// runs puts an object into a member as its users created it, and a pod for each replica.
func (w *world) runs(member string, k membertest.Kind, name, content string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	apiVersion, kind := k.ToAPIVersionAndKind()
	raw, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{apiVersion: %s, kind: %s, ", apiVersion, kind) + content[1:]))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		w.t.Fatalf("%v in %s", err, content)
	}
	u.SetNamespace("shop")
	u.SetName(name)
	w.members[member].Put(u)
	for i := range fields.Number(u.Object, "spec", "replicas") {
		w.pod(member, name, fmt.Sprintf("%s-%d", name, i), 0)
	}
}

// pod puts a pod into a member, or changes it.
func (w *world) pod(member, app, name string, restarts int64) {
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": "n1"},
		"status": map[string]any{"containerStatuses": []any{map[string]any{"name": "main", "restartCount": restarts}}}}}
	pod.SetGroupVersionKind(membertest.Pod.GroupVersionKind)
	pod.SetNamespace("shop")
	pod.SetName(name)
	pod.SetLabels(map[string]string{"app": app})
	w.members[member].Put(pod)
}

// web returns the content of a CloneSet or Deployment.
func web(name string, replicas int, image string) string {
	return fmt.Sprintf(`{metadata: {labels: {team: a}, annotations: {note: hi}}, spec: {replicas: %d, selector: {matchLabels: {app: %s}},
		template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: main, image: %[3]q}]}}},
		status: {readyReplicas: %[1]d}}`, replicas, name, image)
}

func item(k membertest.Kind, name string, clusters ...string) migration.Workload {
	if len(clusters) == 0 {
		clusters = []string{"m1", "m2"}
	}
	return migration.Workload{GVK: k.GroupVersionKind, Namespace: "shop", Name: name, Clusters: clusters, Batch: 1,
		Acknowledged: []string{"somebody"}} // the manager of Server.Put
}

// bringIn migrates workloads, which must succeed.
func (w *world) bringIn(shadow bool, list ...migration.Workload) {
	w.t.Helper()
	if _, err := w.BringIn(w.t.Context(), list, shadow, 0); err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.shown, ""))
	}
}

func (w *world) takeOut(shadow bool, list ...migration.Workload) {
	w.t.Helper()
	if _, err := w.TakeOut(w.t.Context(), list, shadow); err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.shown, ""))
	}
}

// states returns the state of each workload in each cluster, such as "CloneSet shop/web: m1=Own m2=Shadow".
func (w *world) states() string {
	w.t.Helper()
	all, err := w.Statuses(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, s := range all {
		line := s.Object + ":"
		for _, name := range s.Names() {
			line += " " + name + "=" + string(s.Clusters[name].State)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func (w *world) check(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Fatalf("%s: %q, want %q\n%s", what, got, want, strings.Join(w.shown, ""))
	}
}

// replicas are those of an object in a member.
func (w *world) replicas(member string, k membertest.Kind, name string) int64 {
	return fields.Number(w.members[member].Object(k, "shop", name).Object, "spec", "replicas")
}

// marks returns the labels, annotations and managers of an object.
func marks(u *unstructured.Unstructured) string {
	var managers []string
	for _, e := range u.GetManagedFields() {
		managers = append(managers, e.Manager)
	}
	slices.Sort(managers)
	return fmt.Sprint(u.GetLabels(), u.GetAnnotations(), slices.Compact(managers))
}

// M3, M4, M6, M7, M9 and M10: plan writes nothing, Shadow writes nothing in members, Own changes labels and annotations
// alone, and out leaves nothing.
func TestMigrationInAndOutLeavesObjectsAsTheyWere(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		kinds := []membertest.Kind{controllertest.CloneSet, controllertest.Deployment, membertest.ConfigMap}
		var list []migration.Workload
		before := map[string]*unstructured.Unstructured{}
		for _, k := range kinds {
			list = append(list, item(k, "web"))
			for i, m := range []string{"m1", "m2"} {
				if k.Kind == "ConfigMap" {
					w.runs(m, k, "web", fmt.Sprintf("{data: {level: %q}}", m))
				} else {
					w.runs(m, k, "web", web("web", 3+2*i, m+".example.com/web:1"))
				}
				before[m+k.Kind] = w.members[m].Object(k, "shop", "web")
			}
		}
		unwritten := func(step string) {
			t.Helper()
			for name, m := range w.members {
				for _, write := range m.Writes() {
					if strings.HasSuffix(write, "shop/web") {
						t.Errorf("%s: the hub wrote in %s: %s", step, name, write)
					}
				}
			}
		}

		// 1. Observe.
		w.Quiet()
		for _, one := range list {
			planned, err := w.Plan(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range planned.Clusters {
				if len(planned.Conflicts)+len(c.Differences)+len(c.Disturbs) > 0 || !c.Asked || c.State != migration.Found {
					t.Errorf("the plan of %s is %v, %+v", one, planned.Conflicts, c)
				}
			}
		}
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("the plan wrote to the hub: %v", writes)
		}
		unwritten("plan")

		// 2. Shadow.
		w.bringIn(true, list...)
		w.check("Shadow", w.states(), "CloneSet shop/web: m1=Shadow m2=Shadow; ConfigMap shop/web: m1=Shadow m2=Shadow; "+
			"Deployment shop/web: m1=Shadow m2=Shadow")
		w.Advance(10 * time.Minute)
		unwritten("Shadow")
		if got := w.Find(controllertest.CloneSet, "web"); fields.Number(got.Object, "spec", "replicas") != 8 {
			t.Errorf("the template has %v", got.Object["spec"])
		}

		// 3. Own.
		w.newRun()
		w.bringIn(false, list...)
		w.check("Own", w.states(), "CloneSet shop/web: m1=Own m2=Own; ConfigMap shop/web: m1=Own m2=Own; "+
			"Deployment shop/web: m1=Own m2=Own")
		for _, k := range kinds {
			for name, m := range w.members {
				is, was := m.Object(k, "shop", "web"), before[name+k.Kind]
				if is.GetLabels()["karmada.io/managed"] != "true" || !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) ||
					!reflect.DeepEqual(is.Object["data"], was.Object["data"]) || is.GetGeneration() != was.GetGeneration() {
					t.Errorf("%s in %s is %v, and was %v", k.Kind, name, is.Object, was.Object)
				}
			}
		}

		// 4. Out.
		w.newRun()
		w.takeOut(false, list...)
		w.check("after out", w.states(), "")
		for _, k := range kinds {
			if w.Find(k, "web") != nil {
				t.Errorf("the template of %s is still there", k.Kind)
			}
			for name, m := range w.members {
				is, was := m.Object(k, "shop", "web"), before[name+k.Kind]
				if is == nil || is.GetUID() != was.GetUID() || marks(is) != marks(was) ||
					!reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) {
					t.Errorf("%s in %s is %v, and was %v", k.Kind, name, is, was)
					continue
				}
				again := was.DeepCopy()
				again.SetManagedFields(nil)
				again.SetResourceVersion("")
				again.SetUID("")
				unstructured.RemoveNestedField(again.Object, "status")
				_ = unstructured.SetNestedField(again.Object, "changed", "metadata", "annotations", "note")
				if err := m.Conflicts(k, again, "somebody-else"); err != nil && strings.Contains(err.Error(), "argosy") {
					t.Errorf("a server-side apply of %s in %s conflicts: %v", k.Kind, name, err)
				}
			}
		}
		policies, err := w.Statuses(t.Context(), "")
		if err != nil || len(policies) > 0 {
			t.Errorf("%v, %v", policies, err)
		}
	})
}

// Find reads a template of the hub; nil if there is none.
func (w *world) Find(k membertest.Kind, name string) *unstructured.Unstructured {
	return w.Server.Object(k, "shop", name)
}

// M5: an autoscaler scales from 3 to 8 in Shadow, and the workload keeps 8 in Own.
func TestReplicasOfAutoscalerStay(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 3, "x:1"))
		hpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{
			"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}}}}
		hpa.SetGroupVersionKind(autoscaler.GroupVersionKind)
		hpa.SetNamespace("shop")
		hpa.SetName("web")
		w.members["m2"].Put(hpa)
		w.bringIn(true, item(controllertest.CloneSet, "web"))
		scaled := w.members["m2"].Object(controllertest.CloneSet, "shop", "web")
		_ = unstructured.SetNestedField(scaled.Object, int64(8), "spec", "replicas")
		w.members["m2"].Put(scaled)
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.Advance(time.Minute)
		if got := w.replicas("m2", controllertest.CloneSet, "web"); got != 8 {
			t.Errorf("m2 has %d replicas, want the 8 of the autoscaler", got)
		}
		if got := w.replicas("m1", controllertest.CloneSet, "web"); got != 3 {
			t.Errorf("m1 has %d replicas, want 3", got)
		}
	})
}

// M8: nothing is written to a workload that cannot be migrated, on the hub or in a member. Others are migrated.
func TestConflictsAreSkippedWithoutWrites(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		both := func(name, first, second string) {
			w.runs("m1", controllertest.CloneSet, name, first)
			w.runs("m2", controllertest.CloneSet, name, second)
		}
		helm := strings.Replace(web("helm", 2, "x:1"), "note: hi", "meta.helm.sh/release-name: helm", 1)
		both("helm", helm, helm)
		both("good", web("good", 1, "x:1"), web("good", 1, "x:1"))
		both("selector", web("selector", 1, "x:1"), web("other", 1, "x:1"))
		both("none", web("none", 1, "x:1"), web("none", 0, "x:1"))
		both("template", web("template", 1, "x:1"), web("template", 1, "x:1"))
		both("claimed", web("claimed", 1, "x:1"), web("claimed", 1, "x:1"))
		w.runs("m1", controllertest.CloneSet, "missing", web("missing", 1, "x:1"))
		template := w.members["m1"].Object(controllertest.CloneSet, "shop", "template")
		template.SetManagedFields(nil)
		w.Server.Put(template)
		other := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"},
			Spec: policyv1alpha1.PropagationSpec{Priority: new(int32(9)), ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "claimed"}}}}
		w.Make(other)
		want := map[string]string{
			"helm": "Helm manages it", "selector": "spec.selector differs", "none": `no replicas in cluster "m2"`,
			"template": "has a template of that name", "claimed": "policy shop/other would claim",
			"missing": `cluster "m2": it does not exist there`, "good": "",
		}
		var list []migration.Workload
		for _, name := range []string{"helm", "selector", "none", "template", "claimed", "missing", "good"} {
			list = append(list, item(controllertest.CloneSet, name))
		}
		items, err := w.BringIn(t.Context(), list, false, 0)
		if err == nil || !strings.Contains(err.Error(), "6 workloads were skipped") || len(items) != len(list) {
			t.Fatalf("%v: %s", err, w.shown)
		}
		for i, it := range items {
			name := list[i].Name
			if got := fmt.Sprint(it.Conflicts); want[name] == "" && got != "[]" || !strings.Contains(got, want[name]) {
				t.Errorf("%s: %s, want %q", name, got, want[name])
			}
			for member, m := range w.members {
				for _, write := range m.Writes() {
					if want[name] != "" && strings.HasSuffix(write, "clonesets shop/"+name) {
						t.Errorf("the hub wrote in %s: %s", member, write)
					}
				}
			}
		}
		w.check("states", w.states(), "CloneSet shop/good: m1=Own m2=Own")

		acknowledged := item(controllertest.CloneSet, "helm")
		acknowledged.Acknowledged = append(acknowledged.Acknowledged, "Helm")
		w.newRun()
		w.bringIn(false, acknowledged)
		got := w.members["m1"].Object(controllertest.CloneSet, "shop", "helm").GetAnnotations()
		if got["meta.helm.sh/release-name"] != "helm" {
			t.Errorf("the annotation of Helm is gone: %v", got)
		}
	})
}

// M8: an operator that wrote the object lately is named with its last write, and keeps the workload out until the user
// names it. kubectl is shown, and keeps nothing out.
func TestRecentWriterKeepsWorkloadOut(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		write := func(member, manager string) {
			t.Helper()
			api, err := w.Dial(t.Context(), member)
			if err != nil {
				t.Fatal(err)
			}
			in, err := api.Resource(controllertest.CloneSet.GroupVersionKind, "shop")
			if err == nil {
				_, err = in.Patch(t.Context(), "web", types.MergePatchType, fmt.Appendf(nil,
					`{"metadata": {"annotations": {"written-by-%s": "%[1]s"}}}`, manager), metav1.PatchOptions{FieldManager: manager})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write("m1", "kubectl-edit")
		write("m2", "web-operator")
		one := item(controllertest.CloneSet, "web")
		at := time.Now().UTC().Format(time.RFC3339)
		planned, err := w.Plan(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Join(planned.Details(), "\n")
		for _, want := range []string{
			fmt.Sprintf("cluster %q: %q wrote it at %s and would overwrite", "m2", "web-operator", at),
			fmt.Sprintf("cluster %q: %q wrote it at %s: after the migration", "m1", "kubectl-edit", at),
		} {
			if !strings.Contains(lines, want) {
				t.Errorf("the plan lacks %q:\n%s", want, lines)
			}
		}
		if n := len(planned.Conflicts); n != 1 || planned.Conflicts[0].Manager != "web-operator" {
			t.Errorf("the conflicts are %v", planned.Conflicts)
		}
		for _, shadow := range []bool{true, false} {
			w.newRun()
			if _, err := w.BringIn(t.Context(), []migration.Workload{one}, shadow, 0); err == nil {
				t.Error("it is migrated although an operator writes it")
			}
		}
		if w.Find(controllertest.CloneSet, "web") != nil {
			t.Error("the hub has a template")
		}
		one.Acknowledged = append(one.Acknowledged, "web-operator")
		w.newRun()
		w.bringIn(false, one)
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
		// The hub itself wrote the object, which is no conflict.
		w.newRun()
		w.takeOut(true, one)
		w.newRun()
		w.bringIn(false, one)
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
	})
}

// M12: the third of five would restart pods. The first two stay migrated, the others are not written.
func TestMigrationStopsBeforeTheFirstDisturbance(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		var list []migration.Workload
		for i := range 5 {
			name := fmt.Sprintf("w%d", i+1)
			w.runsInBoth(controllertest.CloneSet, name, web(name, 1, "x:1"))
			list = append(list, item(controllertest.CloneSet, name))
		}
		w.Make(&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "registry"},
			Spec: policyv1alpha1.OverrideSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
					Name: "w3"}},
				OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
					ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Registry,
						Operator: policyv1alpha1.OverriderOpAdd, Value: "registry.example"}}}}}}})
		_, err := w.BringIn(t.Context(), list, false, 0)
		if err == nil || !strings.Contains(err.Error(), "CloneSet shop/w3") ||
			!strings.Contains(err.Error(), "pods would be recreated") {
			t.Fatalf("%v: %s", err, w.shown)
		}
		w.check("states", w.states(), "CloneSet shop/w1: m1=Own m2=Own; CloneSet shop/w2: m1=Own m2=Own")
		for _, name := range []string{"w3", "w4", "w5"} {
			if w.Find(controllertest.CloneSet, name) != nil {
				t.Errorf("the hub has a template of %s", name)
			}
		}
	})
}

// A pod that restarts while the batch is watched puts its cluster back into Shadow, where the hub writes nothing.
func TestChangedPodPutsClusterBackToShadow(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.Soak = 10 * time.Minute
		w.onProgress = func(line string) {
			if strings.Contains(line, "watching") {
				w.pod("m2", "web", "web-1", 1)
			}
		}
		_, err := w.BringIn(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web")}, false, 0)
		if err == nil || !strings.Contains(err.Error(), "1 pods restarted") {
			t.Fatalf("%v: %s", err, w.shown)
		}
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Shadow")
		writes := len(w.members["m2"].Writes())
		template := w.Find(controllertest.CloneSet, "web")
		_ = unstructured.SetNestedField(template.Object, int64(6), "spec", "replicas")
		w.Server.Put(template)
		w.Advance(time.Minute)
		for _, write := range w.members["m2"].Writes()[writes:] {
			if strings.Contains(write, "clonesets") {
				t.Errorf("the hub wrote in Shadow: %s", write)
			}
		}
		if got := w.replicas("m1", controllertest.CloneSet, "web"); got != 3 {
			t.Errorf("m1 has %d replicas, want its half of 6", got)
		}
	})
}

// A difference that comes between Shadow and Own keeps the cluster in Shadow. The next run follows the change.
func TestDifferenceKeepsClusterInShadow(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.onProgress = func(line string) {
			if strings.Contains(line, "cluster m1 is in Own") {
				w.runs("m2", controllertest.CloneSet, "web", web("web", 2, "x:2"))
			}
		}
		_, err := w.BringIn(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web")}, false, 0)
		if err == nil || !strings.Contains(err.Error(), "containers.0.image: x:2 → x:1") {
			t.Fatalf("%v: %s", err, w.shown)
		}
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Shadow")
		w.onProgress = nil
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
		for m, want := range map[string]string{"m1": "x:1", "m2": "x:2"} {
			u := w.members[m].Object(controllertest.CloneSet, "shop", "web")
			if got := fields.Objects(u.Object, "spec", "template", "spec", "containers")[0]["image"]; got != want {
				t.Errorf("%s runs %v, want %s", m, got, want)
			}
		}
	})
}

// The command and the hub are stopped while a batch is watched. The next run compares with what ran before.
func TestMigrationContinuesAfterInterruption(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("a pod restarted %v", restarted), func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w.Soak = 10 * time.Minute
				w.onProgress = func(line string) {
					if strings.Contains(line, "watching") {
						cancel()
					}
				}
				list := []migration.Workload{item(controllertest.CloneSet, "web")}
				if _, err := w.BringIn(ctx, list, false, 0); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				w.check("states", w.states(), "CloneSet shop/web: m1=Verifying m2=Verifying")
				w.stop()
				w.start()
				if restarted {
					w.pod("m1", "web", "web-0", 1)
				}
				w.onProgress = nil
				w.newRun()
				_, err := w.BringIn(t.Context(), list, false, 0)
				if restarted {
					if err == nil || !strings.Contains(err.Error(), "1 pods restarted") {
						t.Fatal(err)
					}
					w.check("states", w.states(), "CloneSet shop/web: m1=Shadow m2=Verifying")
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
			})
		})
	}
}

// A cluster that leaves takes its replicas with it: the other one keeps its own at every write, and the same when it
// comes back.
func TestClusterLeavesAndReturnsWithItsReplicas(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runs("m1", controllertest.CloneSet, "web", web("web", 3, "x:1"))
		w.runs("m2", controllertest.CloneSet, "web", web("web", 5, "x:2"))
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		generation := func(m string) int64 {
			return w.members[m].Object(controllertest.CloneSet, "shop", "web").GetGeneration()
		}
		before := generation("m1") + generation("m2")

		w.newRun()
		w.takeOut(false, item(controllertest.CloneSet, "web", "m2"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Own")
		if migrate.Marked(w.members["m2"].Object(controllertest.CloneSet, "shop", "web")) {
			t.Error("m2 still has marks of the hub")
		}
		if n := fields.Number(w.Find(controllertest.CloneSet, "web").Object, "spec", "replicas"); n != 3 {
			t.Errorf("the template has %d replicas, want 3", n)
		}
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
		w.Advance(time.Minute)
		if now := generation("m1") + generation("m2"); now != before {
			t.Errorf("a spec changed %d times", now-before)
		}
		var works workv1alpha1.WorkList
		if err := w.Hub.List(t.Context(), &works); err != nil {
			t.Fatal(err)
		}
		for _, work := range works.Items {
			if work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching {
				t.Errorf("Work %s/%s is still suspended", work.Namespace, work.Name)
			}
		}
	})
}

// One step back: the hub stops writing, and continues from there.
func TestOutToShadowStopsWriting(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.newRun()
		w.takeOut(true, item(controllertest.CloneSet, "web", "m1"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Shadow m2=Own")
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
	})
}

// Two commands at once: the second one notices, and changes nothing.
func TestSecondCommandIsNoticed(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		list := []migration.Workload{item(controllertest.CloneSet, "web")}
		first := w.Migration
		w.onProgress = func(line string) {
			if !strings.Contains(line, "cluster m1 is in Own") {
				return
			}
			w.onProgress = nil
			w.newRun()
			w.takeOut(true, item(controllertest.CloneSet, "web", "m1"))
		}
		_, err := first.BringIn(t.Context(), list, false, 0)
		if err == nil || !strings.Contains(err.Error(), "another command") {
			t.Fatal(err)
		}
		w.check("states", w.states(), "CloneSet shop/web: m1=Shadow m2=Shadow")
	})
}

// M11: while the hub is down, the object gets the brake in its member and is changed by hand. The change stays when the
// hub is back.
func TestChangeByHandStaysWhileHubIsDown(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.stop()
		for m, brake := range map[string]string{"m1": "true", "m2": ""} {
			u := w.members[m].Object(controllertest.CloneSet, "shop", "web")
			annotations := u.GetAnnotations()
			annotations[wellknown.HandsOffAnnotation] = brake
			u.SetAnnotations(annotations)
			_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
			w.members[m].Put(u)
		}
		w.start()
		w.Advance(time.Minute)
		if got := w.replicas("m1", controllertest.CloneSet, "web"); got != 7 {
			t.Errorf("m1 has %d replicas, want the 7 set by hand", got)
		}
		if got := w.replicas("m2", controllertest.CloneSet, "web"); got != 2 {
			t.Errorf("m2, which has no brake, has %d replicas, want 2", got)
		}
	})
}

// A policy that no longer preserves objects does so again before a cluster leaves: nothing is deleted.
func TestNothingIsDeletedIfPolicyNoLongerPreserves(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		var policies policyv1alpha1.PropagationPolicyList
		if err := w.Hub.List(t.Context(), &policies); err != nil || len(policies.Items) != 1 {
			t.Fatal(policies.Items, err)
		}
		controllertest.Change(w.Hub, &policies.Items[0], func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.PreserveResourcesOnDeletion = nil
		})
		w.Advance(time.Minute)
		for _, leaves := range []string{"m1", "m2"} {
			uid := w.members[leaves].Object(controllertest.CloneSet, "shop", "web").GetUID()
			w.newRun()
			w.takeOut(false, item(controllertest.CloneSet, "web", leaves))
			if is := w.members[leaves].Object(controllertest.CloneSet, "shop", "web"); is == nil || is.GetUID() != uid {
				t.Errorf("the CloneSet of %s was deleted", leaves)
			}
		}
	})
}

// A request of each step fails once. The hub writes nothing else meanwhile, and the next run continues.
func TestLeavingContinuesAfterFailedRequest(t *testing.T) {
	for _, tc := range []struct{ name, method, path, leaves, want string }{
		{"the replicas of the template", http.MethodPatch, "/clonesets/web", "m2", "CloneSet shop/web: m1=Own"},
		{"the template", http.MethodDelete, "/clonesets/web", "m1,m2", ""},
		{"the policy", http.MethodDelete, "/propagationpolicies/", "m1,m2", ""},
		{"the override policy", http.MethodDelete, "/overridepolicies/", "m2", "CloneSet shop/web: m1=Own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				w.runs("m1", controllertest.CloneSet, "web", web("web", 3, "x:1"))
				w.runs("m2", controllertest.CloneSet, "web", web("web", 5, "x:2"))
				w.bringIn(false, item(controllertest.CloneSet, "web"))
				generation := func() (sum int64) {
					for _, m := range w.members {
						sum += m.Object(controllertest.CloneSet, "shop", "web").GetGeneration()
					}
					return sum
				}
				before, failed := generation(), false
				w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
					_, name, found := strings.Cut(r.URL.Path, tc.path)
					if failed || r.Method != tc.method || !found || strings.Contains(name, "/") {
						return false
					}
					failed = true
					http.Error(rw, "the store is full", http.StatusInsufficientStorage)
					return true
				})
				w.newRun()
				leaves := []migration.Workload{item(controllertest.CloneSet, "web", strings.Split(tc.leaves, ",")...)}
				if _, err := w.TakeOut(t.Context(), leaves, false); err == nil || !failed {
					t.Fatal("no request failed")
				}
				w.Advance(time.Minute)
				w.newRun()
				w.takeOut(false, leaves...)
				w.check("states", w.states(), tc.want)
				if now := generation(); now != before {
					t.Errorf("a spec changed %d times", now-before)
				}
			})
		})
	}
}

// The hub has no such namespace, and its members do: it is created on the hub, and stays as it is in members. An object
// without a namespace is migrated by policies of the cluster.
func TestNamespaceAndClusterScopedObjects(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for name, m := range w.members {
			for text, k := range map[string]membertest.Kind{
				"{metadata: {name: old}}": membertest.Namespace,
				"{metadata: {name: c, namespace: old}, data: {key: " + name + "}}": membertest.ConfigMap,
				"{metadata: {name: reader}, rules: []}":                            controllertest.ClusterRole,
			} {
				u := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
					t.Fatal(err)
				}
				u.SetGroupVersionKind(k.GroupVersionKind)
				m.Put(u)
			}
		}
		config := item(membertest.ConfigMap, "c")
		config.Namespace = "old"
		role := item(controllertest.ClusterRole, "reader")
		role.Namespace = ""
		w.bringIn(false, config, role)
		w.check("states", w.states(), "ClusterRole reader: m1=Own m2=Own; ConfigMap old/c: m1=Own m2=Own")
		w.newRun()
		w.takeOut(false, config, role)
		w.check("states", w.states(), "")
		for name, m := range w.members {
			for _, u := range []*unstructured.Unstructured{m.Object(membertest.Namespace, "", "old"),
				m.Object(membertest.ConfigMap, "old", "c"), m.Object(controllertest.ClusterRole, "", "reader")} {
				if u == nil || migrate.Marked(u) {
					t.Errorf("%s has %v", name, u)
				}
			}
		}
	})
}

// putOnBoth runs the CloneSet web in both members, and returns the sum of the generations of both.
func (w *world) putOnBoth() (generations func() int64) {
	w.t.Helper()
	w.runs("m1", controllertest.CloneSet, "web", web("web", 3, "x:1"))
	w.runs("m2", controllertest.CloneSet, "web", web("web", 5, "x:2"))
	return func() (sum int64) {
		for name, m := range w.members {
			u := m.Object(controllertest.CloneSet, "shop", "web")
			if u == nil {
				w.t.Fatalf("%s has no CloneSet", name)
			}
			sum += u.GetGeneration()
		}
		return sum
	}
}

// M7: the differences that a plan lists are those that appear in the member if the user forces the migration.
func TestPlanListsChanges(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.runsInBoth(controllertest.CloneSet, "web", web("web", 2, "x:1"))
		w.Make(&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "registry"},
			Spec: policyv1alpha1.OverrideSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
					Name: "web"}},
				OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
					ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Registry,
						Operator: policyv1alpha1.OverriderOpAdd, Value: "registry.example"}}}}}}})
		planned, err := w.Plan(t.Context(), item(controllertest.CloneSet, "web"))
		if err != nil {
			t.Fatal(err)
		}
		before := map[string]*unstructured.Unstructured{}
		for name, m := range w.members {
			before[name] = m.Object(controllertest.CloneSet, "shop", "web")
		}
		w.newRun()
		w.Force = true
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		for _, c := range planned.Clusters {
			after := w.members[c.Name].Object(controllertest.CloneSet, "shop", "web")
			got := adopt.Compare(before[c.Name], after, true).Differences
			if len(got) == 0 || !reflect.DeepEqual(got, c.Differences) {
				t.Errorf("%s: %v changed, and %v was planned", c.Name, got, c.Differences)
			}
		}
	})
}

// The annotation hands-off in a member keeps the hub out of Own, and keeps the object while it leaves. The command
// names the annotation, and continues when it is removed.
func TestHandsOffInMemberStopsMigration(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		generations := w.putOnBoth()
		before := generations()
		brake := func(on bool) {
			u := w.members["m2"].Object(controllertest.CloneSet, "shop", "web")
			annotations := u.GetAnnotations()
			delete(annotations, wellknown.HandsOffAnnotation)
			if on {
				annotations[wellknown.HandsOffAnnotation] = "true"
			}
			u.SetAnnotations(annotations)
			w.members["m2"].Put(u)
			w.Advance(time.Second)
			w.newRun()
		}
		list := []migration.Workload{item(controllertest.CloneSet, "web")}
		const reason = "the annotation argosy.io/hands-off is set on the object in the member"

		brake(true)
		w.bringIn(true, list...)
		planned, err := w.Plan(t.Context(), list[0])
		if err != nil ||
			!strings.Contains(strings.Join(planned.Details(), "\n"), `cluster "m2": the object has the annotation`) {
			t.Fatal(err, planned.Details())
		}
		w.newRun()
		_, err = w.BringIn(t.Context(), list, false, 0)
		if err == nil || !strings.Contains(err.Error(), `cluster "m2": it stays in Shadow: `+reason) {
			t.Fatal(err)
		}
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Shadow")
		brake(false)
		w.bringIn(false, list...)
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")

		brake(true)
		left, err := w.TakeOut(t.Context(), list, false)
		if err == nil || !strings.Contains(err.Error(), `cluster "m2": `+reason) {
			t.Fatal(err)
		}
		if len(left) != 1 || left[0].State != "" || !strings.Contains(left[0].Stopped, reason) {
			t.Errorf("while m2 is not left, the result is %+v", left)
		}
		w.Advance(10 * time.Minute)
		if u := w.members["m2"].Object(controllertest.CloneSet, "shop", "web"); u == nil || !migrate.Marked(u) {
			t.Fatalf("the hub wrote the object of m2: %v", u)
		}
		brake(false)
		left, err = w.TakeOut(t.Context(), list, false)
		if err != nil || len(left) != 1 || left[0].State != migration.LeftHub ||
			!slices.Equal(left[0].Clusters, []string{"m1", "m2"}) {
			t.Errorf("in the end, the result is %+v, %v", left, err)
		}
		w.check("states", w.states(), "")
		if migrate.Marked(w.members["m2"].Object(controllertest.CloneSet, "shop", "web")) {
			t.Error("m2 still has marks of the hub")
		}
		if now := generations(); now != before {
			t.Errorf("a spec changed %d times", now-before)
		}
	})
}

// A list that no longer has a workload or a cluster does not end their migration. Only `argosy migrate out` does.
func TestShorterListChangesNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.runsInBoth(controllertest.Deployment, "api", web("api", 2, "x:1"))
		w.bringIn(false, item(controllertest.CloneSet, "web"), item(controllertest.Deployment, "api"))
		w.Advance(time.Minute)
		w.Quiet()
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web", "m1"))
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("the hub was written: %v", writes)
		}
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own; Deployment shop/api: m1=Own m2=Own")
	})
}

// A template that a user deletes by mistake deletes no workload. Out and in again brings it back.
func TestDeletedTemplateDeletesNoWorkload(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		generations := w.putOnBoth()
		before := generations()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		if err := w.Hub.Delete(t.Context(), w.Find(controllertest.CloneSet, "web")); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Minute)
		generations() // fails if an object is gone
		w.newRun()
		planned, err := w.Plan(t.Context(), item(controllertest.CloneSet, "web"))
		if err != nil || !strings.Contains(fmt.Sprint(planned.Conflicts), "its template was deleted on the hub") {
			t.Fatal(err, planned.Conflicts)
		}
		w.takeOut(false, item(controllertest.CloneSet, "web"))
		w.newRun()
		w.bringIn(false, item(controllertest.CloneSet, "web"))
		w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
		if now := generations(); now != before {
			t.Errorf("a spec changed %d times", now-before)
		}
	})
}

// A request of each step on the way in fails once. The next run continues.
func TestJoiningContinuesAfterFailedRequest(t *testing.T) {
	for _, tc := range []struct{ name, method, path string }{
		{"the policy", http.MethodPost, "/propagationpolicies"},
		{"the override policy", http.MethodPost, "/overridepolicies"},
		{"the template", http.MethodPost, "/clonesets"},
		{"the first cluster", http.MethodPut, "/propagationpolicies/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				generations := w.putOnBoth()
				before, failed := generations(), false
				w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
					_, name, found := strings.Cut(r.URL.Path, tc.path)
					if failed || r.Method != tc.method || !found || strings.Contains(name, "/") || r.URL.Query().Has("dryRun") {
						return false
					}
					failed = true
					http.Error(rw, "the store is full", http.StatusInsufficientStorage)
					return true
				})
				list := []migration.Workload{item(controllertest.CloneSet, "web")}
				if _, err := w.BringIn(t.Context(), list, false, 0); err == nil || !failed {
					t.Fatal("no request failed")
				}
				w.Advance(time.Minute)
				w.newRun()
				w.bringIn(false, list...)
				w.check("states", w.states(), "CloneSet shop/web: m1=Own m2=Own")
				if now := generations(); now != before {
					t.Errorf("a spec changed %d times", now-before)
				}
			})
		})
	}
}

// A member that does not respond is named, and nothing is written.
func TestUnreachableMemberIsNamed(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.putOnBoth()
		w.members["m2"].Down(true)
		_, err := w.BringIn(t.Context(), []migration.Workload{item(controllertest.CloneSet, "web")}, false, 0)
		if err == nil || !strings.Contains(err.Error(), "CloneSet shop/web: ") ||
			!strings.Contains(err.Error(), `cluster "m2"`) {
			t.Fatal(err)
		}
		if w.Find(controllertest.CloneSet, "web") != nil {
			t.Error("the hub has a template")
		}
		w.check("states", w.states(), "")
	})
}
