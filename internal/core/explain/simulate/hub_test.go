package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// nodes is a document about clusters with one node each, which has the CPUs.
func nodes(cpus map[string]int) string {
	text := "apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nclusters:\n"
	for _, name := range sortedKeys(cpus) {
		text += fmt.Sprintf("- {name: %s, nodes: [{name: node, allocatable: {cpu: %d, memory: 999Gi}}]}\n", name, cpus[name])
	}
	return text + "---\n"
}

func rebalancer(names ...string) string {
	text := "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: again}\nspec:\n  workloads:\n"
	for _, name := range names {
		text += "  - {apiVersion: apps/v1, kind: Deployment, namespace: default, name: " + name + "}\n"
	}
	return text + "---\n"
}

// placedAs returns where the workloads are, in the order of their names.
func placedAs(r Report) string { return strings.ReplaceAll(placements(r), "\n", ", ") }

// Pods that a change removes leave later than the hub decides on the rest of the change.
func TestAChangeDoesNotUseTheRoomThatItFrees(t *testing.T) {
	ten := nodes(map[string]int{"m1": 10, "m2": 10})
	for name, c := range map[string]struct {
		fleet  string
		change Change
		want   string
	}{
		"a scale-down before a scale-up": {
			ten + policy("shop", "", byRoom) +
				policy("one", "[{apiVersion: apps/v1, kind: Deployment, name: a}]", "{clusterAffinity: {clusterNames: [m1]}}") +
				deployment("a", 8) + deployment("b", 4),
			Change{Scale: []Scale{{"default", "deployment", "a", 1}, {"default", "deployment", "b", 8}}},
			"a m1:1, b m1:2 m2:6",
		},
		"a workload whose pods get smaller": {
			ten + policy("shop", "", packed) + strings.Replace(deployment("a", 4), `cpu: "1"`, `cpu: "2"`, 1),
			Change{Objects: objects(t, deployment("a", 8))},
			"a m1:5 m2:3",
		},
		"two that a rebalancer reschedules": {
			nodes(map[string]int{"m1": 20}) + policy("shop", "", byRoom) + deployment("a", 12) + deployment("b", 6),
			Change{Objects: objects(t, nodes(map[string]int{"m2": 20})+rebalancer("b", "a"))},
			"a m1:5 m2:7, b m1:2 m2:4",
		},
		"one that waits takes it in the end": {
			nodes(map[string]int{"m1": 4, "m2": 1}) + policy("shop", "", packed) + deployment("a", 4) + deployment("b", 3),
			Change{Scale: []Scale{{"default", "deployment", "a", 1}}},
			"a m1:1, b m1:3",
		},
	} {
		if got := placedAs(run(t, load(t, c.fleet), c.change)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestObjectsArePlacedInTheirOrder(t *testing.T) {
	shop := policy("shop", "", packed)
	pull := strings.Replace(cluster("m1", 10, ""), "syncMode: Push", "syncMode: Pull", 1)
	for name, c := range map[string]struct{ fleet, files, want string }{
		"a template before another": {nodes(map[string]int{"m1": 4}) + shop, deployment("z", 3) + deployment("a", 3),
			"a -, z m1:3"},
		"templates before their policy": {nodes(map[string]int{"m1": 4}),
			deployment("z", 3) + deployment("a", 3) + shop, "a m1:3, z -"},
		"in Pull mode, where nothing is reserved": {pull + shop, deployment("z", 6) + deployment("a", 6), "a m1:6, z m1:6"},
	} {
		if got := placedAs(run(t, load(t, c.fleet), Change{Objects: objects(t, c.files)})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatTheHubMayDecideOtherwiseIsReported(t *testing.T) {
	shop := nodes(map[string]int{"m1": 4, "m2": 4})
	for name, c := range map[string]struct {
		fleet  string
		change Change
		want   string
	}{
		"equal clusters": {shop + policy("shop", "", equally), Change{Objects: objects(t, deployment("a", 3))},
			"its UID decides"},
		"unequal numbers": {shop + policy("shop", "", equally), Change{Objects: objects(t, deployment("a", 2))}, ""},
		"room that is freed": {shop + policy("shop", "", packed) + deployment("a", 7) + deployment("b", 3),
			Change{Scale: []Scale{{"default", "deployment", "a", 1}}}, "as soon as enough is free"},
	} {
		r := run(t, load(t, c.fleet), c.change)
		w := r.Workloads[len(r.Workloads)-1]
		if !strings.Contains(w.Undetermined, c.want) || (w.Undetermined == "") != (c.want == "") {
			t.Errorf("%s: it says %q, want %q; %s", name, w.Undetermined, c.want, placedAs(r))
		}
		var text bytes.Buffer
		if err := r.Print(&text, false); err != nil || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, &text)
		}
	}
}

// What API servers set by default is no change, nor is the claim of a policy.
func TestAChangedTemplateIsReportedWhereItRollsOut(t *testing.T) {
	web := deployment("web", 9)
	defaulted := strings.NewReplacer("spec: {containers", "spec: {restartPolicy: Always, containers",
		"image:", "imagePullPolicy: Always, image:", "  replicas:", "  revisionHistoryLimit: 10\n  replicas:").Replace(web)
	shop := three + policy("shop", "", byRoom)
	settings := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {a: " + value + "}\n---\n"
	}
	maps := policy("maps", "[{apiVersion: v1, kind: ConfigMap}]", "{clusterAffinity: {clusterNames: [m1]}}")
	suspended := strings.Replace(shop, "spec: {resource",
		"spec: {suspension: {dispatchingOnClusters: {clusterNames: [m2]}}, resource", 1)
	labelled := strings.Replace(web, "labels: {app: web}}\nspec", "labels: {app: web, tier: x}}\nspec", 1)
	other := strings.Replace(shop[strings.Index(shop, "apiVersion: policy"):], "name: shop", "name: a", 1)
	image := strings.Replace(web, "web:1", "web:2", 1)
	for name, c := range map[string]struct {
		fleet, files string
		want         []string
	}{
		"the same":                 {shop + defaulted, web, nil},
		"another image":            {shop + defaulted, image, []string{"m1", "m2", "m3"}},
		"one suspended":            {suspended + defaulted, image, []string{"m1", "m3"}},
		"more replicas":            {shop + defaulted, strings.Replace(web, "replicas: 9", "replicas: 12", 1), nil},
		"another label":            {shop + defaulted, labelled, []string{"m1", "m2", "m3"}},
		"another policy":           {shop + defaulted, other, nil},
		"a ConfigMap":              {shop + maps + settings("b"), settings("c"), []string{"m1"}},
		"a ConfigMap that is same": {shop + maps + settings("b"), settings("b"), nil},
		"a new workload":           {shop, web, nil},
	} {
		f, err := Load(recordOf(t, settledFleet(t, c.fleet)), "default")
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, f, Change{Objects: objects(t, c.files)})
		w := r.Workloads[0]
		if got := w.rollsOut(); !slices.Equal(got, c.want) {
			t.Errorf("%s: it rolls out in %v, want %v: %+v", name, got, c.want, w.Overridden)
		}
		if moves := slices.Contains([]string{"more replicas", "a new workload"}, name); w.Changed() != (moves ||
			len(c.want) > 0) {
			t.Errorf("%s: %d workloads change", name, r.Summary.Changed)
		}
	}
}

// settledFleet returns a fleet after everything in it was placed.
func settledFleet(t *testing.T, text string) *Fleet {
	t.Helper()
	f := load(t, text)
	s := newState(f.clone(), roomsOf(t, f), f.invented, f.latest())
	s.past = true
	s.settle(t.Context())
	return s.Fleet
}

func TestOnlyWhatStaysInTheHubIsWarnedOf(t *testing.T) {
	object := func(apiVersion, kind, more string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x%s}\n---\n", apiVersion, kind, more)
	}
	taking := strings.Replace(policy("shop", "", byRoom), "spec: {", "spec: {propagateDeps: true, ", 1)
	reads := strings.Replace(deployment("web", 3), "name: c,", "name: c, envFrom: [{configMapRef: {name: x}}],", 1)
	for name, c := range map[string]struct {
		fleet, files string
		want         bool
	}{
		"a Namespace": {three, object("v1", "Namespace", ""), false},
		"a Namespace that is not sent": {three, object("v1", "Namespace",
			", labels: {namespace.karmada.io/skip-auto-propagation: \"true\"}"), true},
		"a Namespace of Kubernetes": {three,
			strings.Replace(object("v1", "Namespace", ""), "name: x", "name: default", 1), true},
		"a ConfigMap":                       {three, object("v1", "ConfigMap", ""), true},
		"a ConfigMap that a workload needs": {three + taking + reads, object("v1", "ConfigMap", ""), false},
		"one with its workload":             {three + taking, object("v1", "ConfigMap", "") + reads, false},
		"one whose workload takes nothing along": {three + policy("shop", "", byRoom) + reads,
			object("v1", "ConfigMap", ""), true},
		"a release strategy":    {three, object("release.argosy.io/v1alpha1", "ReleaseStrategy", ""), false},
		"a MultiClusterService": {three, object("networking.karmada.io/v1alpha1", "MultiClusterService", ""), false},
	} {
		r := run(t, load(t, c.fleet), Change{Objects: objects(t, c.files)})
		warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "no policy selects it") })
		if warned != c.want {
			t.Errorf("%s: it warns: %t, want %t: %q", name, warned, c.want, r.Warnings)
		}
	}
}
