package membership

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

func list(cpu, memory, pods string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, q := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory,
		corev1.ResourcePods: pods} {
		if q != "" {
			l[name] = resource.MustParse(q)
		}
	}
	return l
}

func node(name string, allocatable corev1.ResourceList) capacity.Node {
	return capacity.Node{Name: name, Ready: true, Allocatable: capacity.AmountsOf(allocatable)}
}

// stateOf returns the state of a cluster with these nodes and, per node, a pod with these requests.
func stateOf(nodes []capacity.Node, pods map[string]corev1.ResourceList) *capacity.ClusterState {
	m := capacity.NewClusterState()
	m.ReplaceNodes(nodes)
	for name, requests := range pods {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: requests}}}}}
		pod.Namespace, pod.Name = "default", "on-"+name
		kept, _ := capacity.PodOf(pod)
		m.SetPod(kept)
	}
	return m
}

// models has grades of 0–2, 2–4 and 4 or more CPUs with 0–8, 8–16 and 16 or more Gi.
func models() []clusterv1alpha1.ResourceModel {
	grade := func(g uint, cpu, cpuMax, memory, memoryMax string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: g, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: resource.MustParse(cpu), Max: resource.MustParse(cpuMax)},
			{Name: corev1.ResourceMemory, Min: resource.MustParse(memory), Max: resource.MustParse(memoryMax)},
		}}
	}
	// Out of order: the order in the spec must not matter.
	return []clusterv1alpha1.ResourceModel{grade(2, "4", "1000", "16Gi", "1000Gi"), grade(0, "0", "2", "0", "8Gi"),
		grade(1, "2", "4", "8Gi", "16Gi")}
}

func counts(s *clusterv1alpha1.ResourceSummary) map[uint]int {
	m := map[uint]int{}
	for _, a := range s.AllocatableModelings {
		m[a.Grade] = a.Count
	}
	return m
}

func TestResourcesCountOnlySchedulableNodes(t *testing.T) {
	cordoned := node("cordoned", list("8", "32Gi", "110"))
	cordoned.Unschedulable = true
	broken := node("broken", list("8", "32Gi", "110"))
	broken.Ready = false
	nodes := []capacity.Node{node("good", list("4", "16Gi", "110")), cordoned, broken}
	count, got := Resources(stateOf(nodes, map[string]corev1.ResourceList{"good": list("2", "2Gi", ""),
		"broken": list("4", "1Gi", ""), "": list("250m", "", "")}), nil)
	want := &clusterv1alpha1.ResourceSummary{
		Allocatable: list("4", "16Gi", "110"),
		Allocated:   list("2", "2Gi", "1"),
		Allocating:  list("250m", "", "1"),
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if count.TotalNum != 3 || count.ReadyNum != 2 {
		t.Errorf("counted %d nodes, %d ready; want 3 and 2: a cordoned node is ready", count.TotalNum, count.ReadyNum)
	}
}

func TestModelingsCountNodesByScarcestResource(t *testing.T) {
	pods := map[string]corev1.ResourceList{"full": list("1", "", ""), "busy": list("7", "1Gi", "")}
	nodes := []capacity.Node{
		node("full", list("8", "32Gi", "1")),     // no slot for a pod: counted nowhere, and does not hide the rest
		node("big", list("8", "32Gi", "110")),    // grade 2
		node("lean", list("8", "8Gi", "110")),    // grade 1, by memory
		node("busy", list("8", "32Gi", "110")),   // grade 0, by what is left of its CPUs
		node("huge", list("4k", "4Ti", "110")),   // above all maxima: the last grade
		node("exact", list("2", "8Gi", "110")),   // a minimum belongs to its grade
		node("below", list("1999m", "8Gi", "3")), // a maximum does not
	}
	_, summary := Resources(stateOf(nodes, pods), models())
	got := counts(summary)
	if want := map[uint]int{0: 2, 1: 2, 2: 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("nodes per grade are %v, want %v", got, want)
	}
}

func TestTooManyResourceNamesAreReported(t *testing.T) {
	named := func(n, length int, letter string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := range n {
			list[corev1.ResourceName(fmt.Sprintf("%04d%s", i, strings.Repeat(letter, length)))] = resource.MustParse("1")
		}
		return list
	}
	for name, c := range map[string]struct {
		list corev1.ResourceList
		want string
	}{
		"an honest one":             {named(500, 60, "x"), ""},
		"many":                      {named(1001, 1, "x"), "have 1001 resource names, but the limit is 1000"},
		"a long one":                {named(1, 1<<20, "x"), "bytes, but the limit is 65536"},
		"six times as many in JSON": {named(1000, 20, "<"), "bytes, but the limit is 65536"},
	} {
		for _, s := range []clusterv1alpha1.ResourceSummary{{Allocatable: c.list}, {Allocated: c.list},
			{Allocating: c.list}} {
			if why := Crowded(&s); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("%s: got %q, want %q", name, why, c.want)
			}
		}
	}
}

func TestWrittenIsAnUpperBound(t *testing.T) {
	for _, text := range []string{"", "plain-text.io/v1", "\x00\x1f\n\"\\<>&", "é日本\u2028", "\xff\xfe"} {
		raw, err := json.Marshal(text)
		if err != nil || len(raw)-2 > Written(text) {
			t.Errorf("%q has %d bytes as JSON, said are %d", text, len(raw)-2, Written(text))
		}
	}
}
