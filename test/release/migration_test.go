package release

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// existing is a workload that clusters run before they join the fleet.
type existing struct{ apiVersion, kind, name string }

// existingWorkloads are those of scenario 20. Helm manages the last one.
var existingWorkloads = []existing{
	{"apps.kruise.io/v1alpha1", "CloneSet", "front"}, {"apps.kruise.io/v1alpha1", "CloneSet", "cart"},
	{"apps.kruise.io/v1beta1", "StatefulSet", "db"}, {"apps.kruise.io/v1beta1", "StatefulSet", "queue"},
	{"apps/v1", "Deployment", "api"}, {"apps/v1", "Deployment", "legacy"},
}

// existingReplicas are those of each workload, by cluster.
var existingReplicas = map[string]int{"m1": 3, "m2": 5, "m3": 2}

// manifest returns the workload as its manager applies it in a cluster, which has a registry of its own.
func (w existing) manifest(s *story, cluster string, version int) *unstructured.Unstructured {
	more, marks := "", ""
	if w.kind == "StatefulSet" {
		more = "serviceName: " + w.name + ", "
	}
	if w.name == "legacy" {
		marks = ", labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: legacy}"
	}
	return kit.Object(s.t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s%s},
		spec: {replicas: %d, %sselector: {matchLabels: {app: %[3]s}}, template: {metadata: {labels: {app: %[3]s}},
		spec: {containers: [{name: main, image: "%[8]s.example.com/shop:%[9]d", resources: {requests: {cpu: 100m}}}]}}}}`,
		w.apiVersion, w.kind, w.name, s.ns, marks, existingReplicas[cluster], more, cluster, version))
}

// applies applies a workload in a cluster as the manager that had it first, without taking fields of others.
func (w existing) applies(s *story, cluster string, version int) error {
	return fleet.Members[cluster].Client.Apply(s.t.Context(),
		client.ApplyConfigurationFromUnstructured(w.manifest(s, cluster, version)), client.FieldOwner("flux"))
}

// find reads the workload in a cluster.
func (w existing) find(s *story, cluster string) *unstructured.Unstructured {
	return fleet.Members[cluster].Find(s.t, w.apiVersion, w.kind, s.ns, w.name)
}

// marksOf are the labels, annotations and field managers of an object.
func marksOf(u *unstructured.Unstructured) string {
	managers := map[string]bool{}
	for _, e := range u.GetManagedFields() {
		managers[e.Manager] = true
	}
	annotations := u.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	return fmt.Sprint(u.GetLabels(), annotations, slices.Sorted(maps.Keys(managers)))
}

// still checks from now on that no pod of the apps is made, deleted, restarted or moved (M1), until end is called.
func (s *story) still(when string, apps ...string) (end func()) {
	s.t.Helper()
	before, ended := map[string]string{}, false
	s.read(func() {
		for c, pods := range s.pods {
			for name, p := range pods {
				before[c+" "+name] = p.runs
			}
		}
	})
	s.check(func(e event) {
		obj, isPod := e.obj.(*corev1.Pod)
		if ended || !isPod || !slices.Contains(apps, obj.Labels["app"]) {
			return
		}
		is := podOf(obj)
		if was := before[e.cluster+" "+obj.Name]; e.deleted || is == nil || is.runs != was {
			s.violated("%s: pod %s in %s ran %q and changes to %+v (M1)", when, obj.Name, e.cluster, was, is)
		}
	})
	return func() { s.read(func() { ended = true }) }
}

// revisionsIn are the names of the revisions of workloads in a cluster.
func (s *story) revisionsIn(cluster string) (names []string) {
	s.t.Helper()
	var sets appsv1.ReplicaSetList
	var stored appsv1.ControllerRevisionList
	for _, list := range []client.ObjectList{&sets, &stored} {
		if err := fleet.Members[cluster].List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, set := range sets.Items {
		names = append(names, set.Name)
	}
	for _, r := range stored.Items {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// migrates runs a verb of `argosy migrate`, whose exit code is 1 because a workload is not migrated.
func (s *story) migrates(args ...string) string {
	s.t.Helper()
	out, err := fleet.Argosy(s.t.Context(), append([]string{"migrate"}, args...)...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		s.t.Fatalf("argosy migrate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Six workloads of three clusters, one of them managed by Helm, become a part of the fleet, get a release, and leave it
// again. The hub is off meanwhile.
func migratedInAndOut(t *testing.T) {
	restarts(t, func() {})
	s := newStory(t, "m1", "m2", "m3")

	// 1. The clusters run them without the hub.
	var apps []string
	for _, w := range existingWorkloads {
		apps = append(apps, w.name)
	}
	for _, c := range s.clusters {
		s.hasNamespace(c)
		for _, w := range existingWorkloads {
			if err := w.applies(s, c, 1); err != nil {
				t.Fatal(err)
			}
			fleet.Members[c].RemoveAtEnd(t, w.manifest(s, c, 1))
		}
	}
	hpa := fleet.Members["m1"].Apply(t, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
		metadata: {name: api, namespace: %s}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api},
		minReplicas: 3, maxReplicas: 8, metrics: [{type: Resource, resource: {name: cpu,
		target: {type: Utilization, averageUtilization: 50}}}]}}`, s.ns))
	fleet.Members["m1"].RemoveAtEnd(t, hpa[0])
	before, revised := map[string]*unstructured.Unstructured{}, map[string][]string{}
	kit.Eventually(t, "60 pods run", func() string {
		for _, c := range s.clusters {
			for _, w := range existingWorkloads {
				u := w.find(s, c)
				if kit.Field(u, "status", "readyReplicas") != kit.Field(u, "spec", "replicas") ||
					kit.Field(u, "status", "observedGeneration") != u.GetGeneration() {
					return fmt.Sprintf("%s in %s has %v", w.name, c, kit.Field(u, "status"))
				}
				before[c+w.name] = u
			}
			revised[c] = s.revisionsIn(c)
		}
		n := 0
		s.read(func() {
			for _, app := range apps {
				n += s.count(app, "")
			}
		})
		if n != 60 {
			return fmt.Sprintf("the streams show %d", n)
		}
		return ""
	})
	unchanged := func(when string, managed bool) {
		t.Helper()
		for _, c := range s.clusters {
			if now := s.revisionsIn(c); !slices.Equal(now, revised[c]) {
				t.Fatalf("%s: the revisions in %s are %v, and were %v (M2)", when, c, now, revised[c])
			}
			for _, w := range existingWorkloads {
				is, was := w.find(s, c), before[c+w.name]
				if !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) { // with the shares 3/5/2 (M5)
					t.Fatalf("%s: %s in %s is %v, and was %v (M3)", when, w.name, c, is.Object["spec"], was.Object["spec"])
				}
				if (!managed || w.name == "legacy") && marksOf(is) != marksOf(was) {
					t.Fatalf("%s: %s in %s has %s, and had %s (M8 to M10)", when, w.name, c, marksOf(is), marksOf(was))
				}
			}
		}
	}

	// 2. Observe, Shadow, Own. The user has to name the manager that wrote all of them lately.
	end := s.still("in", apps...)
	out := s.migrates("plan", "-f", s.whitelist("", existingWorkloads...))
	if strings.Count(out, "Flux manages it (last write at ") != 18 || strings.Count(out, "Helm manages it") != 3 {
		t.Errorf("plan does not name Flux and Helm:\n%s", out)
	}
	file := s.whitelist("Flux", existingWorkloads...)
	if out := s.migrates("plan", "-f", file); strings.Contains(out, "Flux") || !strings.Contains(out, "Helm") {
		t.Errorf("plan does not name Helm alone:\n%s", out)
	}
	unchanged("plan", false)
	if fleet.Hub.Find(t, "apps/v1", "Deployment", s.ns, "api") != nil {
		t.Fatal("plan has created a template (M6)")
	}
	s.migrates("in", "-f", file, "--shadow")
	unchanged("Shadow", false)
	if out := s.migrates("in", "-f", file, "--soak", "1s"); strings.Count(out, "is in Own") != 15 {
		t.Fatalf("want 5 workloads in Own in 3 clusters:\n%s", out)
	}
	unchanged("Own", true)
	if fleet.Hub.Find(t, "apps/v1", "Deployment", s.ns, "legacy") != nil {
		t.Error("the workload of Helm has a template (M8)")
	}
	for _, w := range existingWorkloads[:5] {
		if n := kit.Field(fleet.Hub.Find(t, w.apiVersion, w.kind, s.ns, w.name), "spec", "replicas"); n != int64(10) {
			t.Errorf("the template of %s has %v replicas, want 10", w.name, n)
		}
	}
	s.rounds()
	end()

	// 3. A release updates its own pods.
	end = s.still("the release", apps[1:]...)
	var uids map[string]string
	s.read(func() { uids = s.uids("front") })
	fleet.Hub.Change(t, "apps.kruise.io/v1alpha1", "CloneSet", s.ns, "front", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		annotations["argosy.io/release-strategy"] = "any"
		u.SetAnnotations(annotations)
		if err := unstructured.SetNestedField(u.Object, "InPlaceIfPossible", "spec", "updateStrategy", "type"); err != nil {
			t.Fatal(err)
		}
		c := kit.Field(u, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
		c["image"] = strings.TrimSuffix(c["image"].(string), ":1") + ":2"
	})
	s.creates(s.release("gray", `{stages: [{name: first, clusters: {clusterNames: [m1]}}, {name: rest}]}`,
		", targets: ["+target("apps.kruise.io/v1alpha1", "CloneSet", "front")+"]"))
	s.becomes("gray", succeeded, completed)
	s.waits("each cluster runs version 2 from its own registry", func() bool {
		for c, n := range existingReplicas {
			if s.count("front", c+".example.com/shop:2", c) != n || s.count("front", "", c) != n {
				return false
			}
		}
		return true
	})
	s.read(func() {
		if is := s.uids("front"); !maps.Equal(is, uids) {
			t.Errorf("the pods of the release are %v, and were %v", is, uids)
		}
	})
	s.rounds()
	end()

	// 4. Out.
	end = s.still("out", apps...)
	if out := s.migrates("out", "-f", file); strings.Count(out, "is released") != 15 {
		t.Fatalf("want 5 workloads released in 3 clusters:\n%s", out)
	}
	for _, w := range existingWorkloads {
		if fleet.Hub.Find(t, w.apiVersion, w.kind, s.ns, w.name) != nil {
			t.Errorf("the template of %s is still on the hub", w.name)
		}
	}
	for _, c := range s.clusters {
		before[c+"front"], revised[c] = existingWorkloads[0].find(s, c), s.revisionsIn(c)
		for _, e := range before[c+"front"].GetManagedFields() {
			if e.Manager == "argosy" {
				t.Errorf("fields of front in %s belong to %s (M10)", c, e.Manager)
			}
		}
	}
	unchanged("out", false)

	// 5. While the hub is off, the first manager applies its workloads, without force. The hub changes nothing after it.
	restarts(t, func() {
		for _, c := range s.clusters {
			for i, w := range existingWorkloads {
				version := 1
				if i == 0 {
					version = 2
				}
				if err := w.applies(s, c, version); err != nil {
					t.Errorf("the first manager cannot apply %s in %s: %v (M10)", w.name, c, err)
				}
				before[c+w.name] = w.find(s, c)
			}
		}
		for _, app := range apps {
			if n := s.live(app, ""); n != 10 {
				t.Errorf("%d pods of %s run while the hub is off, want 10", n, app)
			}
		}
	})
	s.rounds()
	unchanged("after the hub was off", false)

	// 6. Two of them come in again. The hub loses their templates and policies, and they leave by their Works alone.
	again := []existing{existingWorkloads[1], existingWorkloads[4]}
	if out := s.migrates("in", "-f", s.whitelist("Flux", again...)); strings.Count(out, "is in Own") != 6 {
		t.Fatalf("want 2 workloads in Own in 3 clusters:\n%s", out)
	}
	s.changedByHand(existingWorkloads[4])
	s.losesTemplates(again)
	s.rounds()
	unchanged("without templates", true)
	if out := s.migrates("status", "-n", s.ns); strings.Count(out, " Own ") != 6 ||
		strings.Count(out, "no policy has its migration") != 6 {
		t.Errorf("status does not list 2 workloads in 3 clusters:\n%s", out)
	}
	if out := s.migrates("out", "--all", "-n", s.ns); strings.Count(out, "is released") != 6 {
		t.Fatalf("want 2 workloads released in 3 clusters:\n%s", out)
	}
	unchanged("out by Works", false)
	for _, w := range again {
		for _, c := range s.clusters {
			if u := fleet.Hub.Find(t, "work.karmada.io/v1alpha1", "Work", "karmada-es-"+c, w.workName(s)); u != nil {
				t.Errorf("the Work of %s in %s is still there", w.name, c)
			}
			if err := w.applies(s, c, 1); err != nil {
				t.Errorf("the first manager cannot apply %s in %s: %v (M10)", w.name, c, err)
			}
		}
	}
	s.rounds()
	end()
}

// An autoscaler in m1 scales a workload in Shadow. Its replicas stay through Own and after it has left (M5).
func autoscaledWhileMigrated(t *testing.T) {
	s := newStory(t, "m1", "m2")
	w := existing{"apps.kruise.io/v1alpha1", "CloneSet", "shop"}
	for _, c := range s.clusters {
		s.hasNamespace(c)
		if err := w.applies(s, c, 1); err != nil {
			t.Fatal(err)
		}
		fleet.Members[c].RemoveAtEnd(t, w.manifest(s, c, 1))
	}
	hpa := fleet.Members["m1"].Apply(t, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
		metadata: {name: shop, namespace: %s}, spec: {minReplicas: 3, maxReplicas: 8,
		scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop},
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`, s.ns))
	fleet.Members["m1"].RemoveAtEnd(t, hpa[0])
	s.waits("the workload runs", func() bool {
		return s.settledOf["shop"]["m1"] && s.settledOf["shop"]["m2"] && s.count("shop", "", "m1") == 3 &&
			s.count("shop", "", "m2") == 5
	})
	var uids map[string]string
	s.read(func() { uids = s.uids("shop") })
	in := []string{"in", "cloneset.apps.kruise.io", "shop", "-n", s.ns, "--cluster", "m1,m2", "--acknowledge", "Flux"}
	s.migrates(append(slices.Clone(in), "--shadow")...)
	kit.Eventually(t, "the autoscaler grows to the maximum", func() string {
		s.uses("m1", "100m")
		n := 0
		s.read(func() { n = s.count("shop", "", "m1") })
		if n != 8 || !s.isSettled("m1") {
			return fmt.Sprintf("there are %d pods", n)
		}
		return ""
	})
	if out := s.migrates(in...); strings.Count(out, "is in Own") != 2 {
		t.Fatalf("want the workload in Own in 2 clusters:\n%s", out)
	}
	s.rounds()
	if out := s.migrates("out", "cloneset.apps.kruise.io", "shop", "-n", s.ns); strings.Count(out, "is released") != 2 {
		t.Fatalf("want the workload released in 2 clusters:\n%s", out)
	}
	s.rounds()
	s.read(func() {
		last := map[string]int64{"m1": 3, "m2": 5}
		for c, all := range s.sequence["shop"] {
			for _, w := range all {
				if w.replicas < last[c] {
					t.Errorf("%s was written %v: replicas were taken back", c, all)
				}
				last[c] = w.replicas
			}
		}
		if last["m1"] != 8 || last["m2"] != 5 {
			t.Errorf("the replicas are %v, want 8 and 5", last)
		}
		is := s.uids("shop")
		for pod, uid := range uids {
			if is[pod] != uid {
				t.Errorf("pod %s was replaced", pod)
			}
		}
		if len(is) != 13 {
			t.Errorf("%d pods run, want 13", len(is))
		}
	})
}

// hasNamespace returns when the namespace of the story is in a cluster.
func (s *story) hasNamespace(cluster string) {
	s.t.Helper()
	kit.Eventually(s.t, "the namespace is in "+cluster, func() string {
		if fleet.Members[cluster].Find(s.t, "v1", "Namespace", "", s.ns) == nil {
			return "it is not there"
		}
		return ""
	})
}

// isSettled reports whether a member has observed its CloneSet shop, and all pods are as it asks.
func (s *story) isSettled(cluster string) (settled bool) {
	s.read(func() { settled = s.settledOf["shop"][cluster] })
	return settled
}

// changedByHand changes a Deployment in m1 and m2 while the hub is off. In m2 the object has the brake, and keeps the
// change until the brake is removed (M11).
func (s *story) changedByHand(w existing) {
	s.t.Helper()
	limit := func(cluster string) any { return kit.Field(w.find(s, cluster), "spec", "revisionHistoryLimit") }
	was := limit("m1")
	change := func(cluster string, edit func(u *unstructured.Unstructured)) {
		s.t.Helper()
		fleet.Members[cluster].Change(s.t, w.apiVersion, w.kind, s.ns, w.name, edit)
	}
	brake := func(u *unstructured.Unstructured, on bool) {
		annotations := u.GetAnnotations()
		if delete(annotations, wellknown.HandsOffAnnotation); on {
			annotations[wellknown.HandsOffAnnotation] = "true"
		}
		u.SetAnnotations(annotations)
	}
	restarts(s.t, func() {
		for _, cluster := range []string{"m1", "m2"} {
			change(cluster, func(u *unstructured.Unstructured) {
				brake(u, cluster == "m2")
				if err := unstructured.SetNestedField(u.Object, int64(7), "spec", "revisionHistoryLimit"); err != nil {
					s.t.Fatal(err)
				}
			})
		}
	})
	reverted := func(cluster string) {
		s.t.Helper()
		kit.Eventually(s.t, "the hub reverts the change in "+cluster, func() string {
			if is := limit(cluster); is != was {
				return fmt.Sprintf("the limit is %v, and was %v", is, was)
			}
			return ""
		})
	}
	reverted("m1")
	s.rounds()
	if is := limit("m2"); is != int64(7) {
		s.t.Errorf("with the brake, the limit in m2 is %v, want 7 (M11)", is)
	}
	change("m2", func(u *unstructured.Unstructured) { brake(u, false) })
	reverted("m2")
}

// whitelist writes the file of `argosy migrate` for workloads, and returns its path. acknowledged may be empty.
func (s *story) whitelist(acknowledged string, workloads ...existing) string {
	s.t.Helper()
	list := "batches: [1, 2, 7]\nitems:\n"
	for _, w := range workloads {
		list += fmt.Sprintf("- {apiVersion: %s, kind: %s, namespace: %s, name: %s, clusters: [m1, m2, m3], acknowledge: [%s]}\n",
			w.apiVersion, w.kind, s.ns, w.name, acknowledged)
	}
	file := filepath.Join(s.t.TempDir(), "migration.yaml")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// workName is the name of the Works of the workload.
func (w existing) workName(s *story) string {
	return names.Work(w.kind, w.name, s.ns)
}

// losesTemplates deletes the templates of workloads without their dependents, and all policies of the namespace. Their
// Works stay.
func (s *story) losesTemplates(workloads []existing) {
	s.t.Helper()
	ctx := s.t.Context()
	for _, w := range workloads {
		u := fleet.Hub.Find(s.t, w.apiVersion, w.kind, s.ns, w.name)
		if err := fleet.Hub.Delete(ctx, u, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			s.t.Fatal(err)
		}
		kit.Eventually(s.t, "the template is gone", func() string {
			if fleet.Hub.Find(s.t, w.apiVersion, w.kind, s.ns, w.name) != nil {
				return w.name + " is still there"
			}
			return ""
		})
	}
	for _, policies := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.OverridePolicy{}} {
		if err := fleet.Hub.DeleteAllOf(ctx, policies, client.InNamespace(s.ns)); err != nil {
			s.t.Fatal(err)
		}
	}
	kit.Eventually(s.t, "the policies are gone, and the Works stay", func() string {
		var list policyv1alpha1.PropagationPolicyList
		if err := fleet.Hub.List(ctx, &list, client.InNamespace(s.ns)); err != nil || len(list.Items) > 0 {
			return fmt.Sprint(len(list.Items), err)
		}
		return ""
	})
	for _, w := range workloads {
		for _, c := range s.clusters {
			if fleet.Hub.Find(s.t, "work.karmada.io/v1alpha1", "Work", "karmada-es-"+c, w.workName(s)) == nil {
				s.t.Fatalf("the Work of %s in %s is gone", w.name, c)
			}
		}
	}
}
