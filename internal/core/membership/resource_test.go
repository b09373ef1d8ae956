package membership

import (
	"fmt"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func list(cpu, memory, pods string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, q := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourcePods: pods} {
		if q != "" {
			l[name] = resource.MustParse(q)
		}
	}
	return l
}

func node(name string, allocatable corev1.ResourceList) Node {
	return Node{Name: name, Ready: true, Schedulable: true, Allocatable: allocatable}
}

// models are grades of 0–2, 2–4 and 4 or more CPUs with 0–8, 8–16 and 16 or more Gi.
func models() []clusterv1alpha1.ResourceModel {
	grade := func(g uint, cpu, cpuMax, memory, memoryMax string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: g, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: resource.MustParse(cpu), Max: resource.MustParse(cpuMax)},
			{Name: corev1.ResourceMemory, Min: resource.MustParse(memory), Max: resource.MustParse(memoryMax)},
		}}
	}
	// Out of order: the order in the spec must not matter.
	return []clusterv1alpha1.ResourceModel{grade(2, "4", "1000", "16Gi", "1000Gi"), grade(0, "0", "2", "0", "8Gi"), grade(1, "2", "4", "8Gi", "16Gi")}
}

func counts(s *clusterv1alpha1.ResourceSummary) map[uint]int {
	m := map[uint]int{}
	for _, a := range s.AllocatableModelings {
		m[a.Grade] = a.Count
	}
	return m
}

func TestResourcesCountOnlyNodesThatTakePods(t *testing.T) {
	cordoned := node("cordoned", list("8", "32Gi", "110"))
	cordoned.Schedulable = false
	broken := node("broken", list("8", "32Gi", "110"))
	broken.Ready = false
	load := Load{}
	for _, p := range []Pod{
		{Node: "good", Requests: list("500m", "1Gi", "1")},
		{Node: "good", Requests: list("1500m", "1Gi", "1")},
		{Node: "broken", Requests: list("4", "1Gi", "1")},
		{Node: "", Requests: list("250m", "", "1")},
	} {
		load.Add(p)
	}
	nodes := []Node{node("good", list("4", "16Gi", "110")), cordoned, broken}
	got := Resources(nodes, load, nil)
	want := &clusterv1alpha1.ResourceSummary{
		Allocatable: list("4", "16Gi", "110"),
		Allocated:   list("2", "2Gi", "2"),
		Allocating:  list("250m", "", "1"),
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s := Nodes(nodes); s.TotalNum != 3 || s.ReadyNum != 2 {
		t.Errorf("counted %d nodes, %d ready; want 3 and 2: a cordoned node is ready", s.TotalNum, s.ReadyNum)
	}
}

func TestModelingsCountEveryNodeByItsScarcestResource(t *testing.T) {
	load := Load{}
	for i := range 110 {
		load.Add(Pod{Node: "full", Requests: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"), "x": *resource.NewQuantity(int64(i), resource.DecimalSI)}})
	}
	load.Add(Pod{Node: "busy", Requests: list("7", "1Gi", "1")})
	nodes := []Node{
		node("full", list("8", "32Gi", "110")),   // no slot for a pod: counted nowhere, and does not hide the rest
		node("big", list("8", "32Gi", "110")),    // grade 2
		node("lean", list("8", "8Gi", "110")),    // grade 1, by memory
		node("busy", list("8", "32Gi", "110")),   // grade 0, by what is left of its CPUs
		node("huge", list("4k", "4Ti", "110")),   // above all maxima: the last grade
		node("exact", list("2", "8Gi", "110")),   // a minimum belongs to its grade
		node("below", list("1999m", "8Gi", "3")), // a maximum does not
	}
	got := counts(Resources(nodes, load, models()))
	if want := map[uint]int{0: 2, 1: 2, 2: 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("nodes per grade are %v, want %v", got, want)
	}
}

func TestLoadIsTheSumOfItsPodsInWhateverOrderTheyCameAndWent(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		var kept, gone []Pod
		for range r.Intn(20) {
			p := Pod{Node: fmt.Sprint("n", r.Intn(3)), Requests: corev1.ResourceList{
				corev1.ResourceCPU:  *resource.NewMilliQuantity(int64(r.Intn(3)*100), resource.DecimalSI),
				corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI),
			}}
			if r.Intn(2) == 0 {
				kept = append(kept, p)
			} else {
				gone = append(gone, p)
			}
		}
		want, got := Load{}, Load{}
		for _, p := range kept {
			want.Add(p)
		}
		for _, p := range append(append([]Pod{}, gone...), kept...) {
			got.Add(p)
		}
		for _, i := range r.Perm(len(gone)) {
			got.Remove(gone[i])
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("with %d pods gone the load is %v, without them %v", len(gone), got, want)
		}
	}
}

func TestPodOfCountsLivePodsWithInitContainersAndOverhead(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName:       "n",
		InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("2", "", "")}}},
		Containers:     []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("1", "1Gi", "")}}},
		Overhead:       list("100m", "", ""),
	}}
	got, live := PodOf(pod)
	if want := (Pod{Node: "n", Requests: list("2100m", "1Gi", "1")}); !live || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v (live %t), want %v", got, live, want)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if _, live := PodOf(pod); live {
		t.Error("a pod that has ended still counts")
	}
}
