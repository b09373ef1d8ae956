package kruise

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func sidecars(t *testing.T, image string) *SidecarSet {
	t.Helper()
	set := &SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", Generation: 3}}
	text := fmt.Sprintf(`
selector: {matchLabels: {app: web}}
containers:
- {name: log, image: %q, podInjectPolicy: AfterAppContainer}
- {name: proxy, image: "proxy:1"}
initContainers: [{name: setup, image: "setup:1"}]
volumes: [{name: logs, emptyDir: {}}]
`, image)
	if err := yaml.Unmarshal([]byte(text), &set.Spec); err != nil {
		t.Fatal(err)
	}
	return set
}

// injectedPod returns a ready pod with the set in it.
func injectedPod(t *testing.T, set *SidecarSet, name string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	if err := inject(p, []*SidecarSet{set}); err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func TestSidecarsAreInjectedInOrder(t *testing.T) {
	p := injectedPod(t, sidecars(t, "log:1"), "p")
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	if want := []string{"proxy", "main", "log"}; !slices.Equal(names, want) {
		t.Fatalf("containers %v, want %v", names, want)
	}
	if env := p.Spec.Containers[0].Env; !slices.Contains(env, corev1.EnvVar{Name: "IS_INJECTED", Value: "true"}) {
		t.Errorf("environment of the proxy: %v", env)
	}
	if len(p.Spec.InitContainers) != 1 || len(p.Spec.Volumes) != 1 || !slices.Equal(injectors(p), []string{"mesh"}) {
		t.Errorf("pod %+v", p)
	}
}

func TestSelectedPods(t *testing.T) {
	set := sidecars(t, "log:1")
	web := map[string]string{"app": "web"}
	for namespace, want := range map[string]bool{"default": true, "kube-system": false, "kube-public": false} {
		if got := set.Spec.selects(web, namespace, nil); got != want {
			t.Errorf("in %s: %v", namespace, got)
		}
	}
	if set.Spec.selects(map[string]string{"app": "shop"}, "default", nil) {
		t.Error("another app is selected")
	}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "on"}}
	if set.Spec.selects(web, "default", nil) || !set.Spec.selects(web, "default", map[string]string{"mesh": "on"}) {
		t.Error("the namespace's labels do not count")
	}
	set.Spec.NamespaceSelector, set.Spec.Namespace = nil, "other"
	if set.Spec.selects(web, "default", nil) {
		t.Error("the namespace of v1alpha1 does not count")
	}
}

func TestStatusCountsThePodsWithTheNewestSidecars(t *testing.T) {
	pods := []*corev1.Pod{injectedPod(t, sidecars(t, "log:1"), "old"), injectedPod(t, sidecars(t, "log:2"), "new"),
		injectedPod(t, sidecars(t, "log:2"), "starting"), injectedPod(t, sidecars(t, "log:2"), "failed")}
	pods[2].Status.Conditions = nil
	pods[3].Status.Phase = corev1.PodFailed
	set := sidecars(t, "log:2")
	want := SidecarSetStatus{ObservedGeneration: 3, MatchedPods: 3, UpdatedPods: 2,
		ReadyPods: 2, UpdatedReadyPods: 1, LatestRevision: sidecarRevision(set)}
	if status := sidecarSetStatus(set, pods); status != want {
		t.Errorf("status %+v, want %+v", status, want)
	}
	args := sidecars(t, "log:2")
	args.Spec.Containers[1].Args = []string{"--new"}
	if status := sidecarSetStatus(args, pods); status.UpdatedPods != 0 {
		t.Errorf("with other arguments, %d pods are updated", status.UpdatedPods)
	}
}
