package member

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodUsageIsFromAnnotationsOrRequests(t *testing.T) {
	pod := func(name, node, cpu string, phase corev1.PodPhase) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: phase}}
		if cpu != "" {
			p.Annotations = map[string]string{"kwok.x-k8s.io/usage-cpu": cpu}
		}
		for _, c := range []string{"app", "proxy"} {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("100Mi")}}})
		}
		return p
	}
	pods := []corev1.Pod{pod("told", "n1", "300m", corev1.PodRunning), pod("plain", "n1", "", corev1.PodRunning),
		pod("garbled", "n2", "much", corev1.PodRunning), pod("waits", "", "1", corev1.PodPending)}
	got := podMetrics(pods, metav1.Unix(1_800_000_000, 0))
	if len(got) != 3 {
		t.Fatalf("%d pods have metrics, want those that run", len(got))
	}
	for i, want := range []string{"150m", "20m", "20m"} {
		if cpu := got[i].Containers[0].Usage.Cpu(); cpu.String() != want {
			t.Errorf("a container of %s uses %s of CPU, want %s", got[i].Name, cpu, want)
		}
	}
	if memory := got[0].Containers[1].Usage.Memory(); memory.String() != "20Mi" {
		t.Errorf("it uses %s of memory, want 20Mi", memory)
	}
	nodes := nodeMetrics([]corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "idle"}}}, pods, metav1.Unix(1_800_000_000, 0))
	if cpu := nodes[0].Usage.Cpu(); cpu.String() != "340m" {
		t.Errorf("node n1 uses %s, want 340m", cpu)
	}
	if cpu := nodes[1].Usage.Cpu(); !cpu.IsZero() {
		t.Errorf("a node without pods uses %s", cpu)
	}
}
