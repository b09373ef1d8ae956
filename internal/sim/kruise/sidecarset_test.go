package kruise

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	inject(p, []*SidecarSet{set})
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	run(p)
	return p
}

// run has the kubelet start what the pod asks for.
func run(p *corev1.Pod) {
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image})
	}
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
	full, withoutImage := sidecars(t, "log:1").Spec.hashes()
	if state := injectedState(p)["mesh"]; state != (injectedBy{full, withoutImage}) {
		t.Errorf("annotation %+v", state)
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

func TestSidecarsAreUpdatedAsFarAsTheStrategyLets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*SidecarSet)
		want   []int // of six pods, how many are updated at each pass
	}{
		{"one by one", func(*SidecarSet) {}, []int{1, 2, 3, 4, 5, 6, 6}},
		{"half at once, rounded up", func(s *SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = percent("40%") },
			[]int{3, 6, 6}},
		{"a partition stays", func(s *SidecarSet) {
			s.Spec.UpdateStrategy.MaxUnavailable, s.Spec.UpdateStrategy.Partition = percent("100%"), percent("34%")
		}, []int{3, 3}},
		{"not all stay, below 100%", func(s *SidecarSet) {
			s.Spec.UpdateStrategy.Partition = percent("99%")
		}, []int{1, 1}},
		{"paused", func(s *SidecarSet) { s.Spec.UpdateStrategy.Paused = true }, []int{0, 0}},
		{"more than an image changed", func(s *SidecarSet) {
			s.Spec.Containers[1].Args = []string{"--new"}
		}, []int{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pods []*corev1.Pod
			for i := range 6 {
				pods = append(pods, injectedPod(t, sidecars(t, "log:1"), fmt.Sprint(i)))
			}
			set := sidecars(t, "log:2")
			tt.change(set)
			updated := 0
			for pass, want := range tt.want {
				update, status, err := decideSidecarSet(set, pods)
				if err != nil {
					t.Fatal(err)
				}
				if status.MatchedPods != 6 || int(status.UpdatedPods) != updated || int(status.UpdatedReadyPods) != updated ||
					status.ReadyPods != 6 ||
					status.ObservedGeneration != 3 || status.LatestRevision != sidecarRevision(set) {
					t.Fatalf("pass %d: status %+v with %d updated", pass, status, updated)
				}
				for _, p := range update {
					next := withSidecarImages(p, set)
					if next.Spec.Containers[2].Image != "log:2" || next.Spec.Containers[1].Image != "app:1" {
						t.Fatalf("containers %+v", next.Spec.Containers)
					}
					run(next)
					pods[slices.Index(pods, p)] = next
				}
				if updated += len(update); updated != want {
					t.Fatalf("pass %d: %d updated, want %d", pass, updated, want)
				}
			}
		})
	}
}

func TestUpdateWaitsForItsChangedSidecars(t *testing.T) {
	pods := []*corev1.Pod{injectedPod(t, sidecars(t, "log:1"), "a"), injectedPod(t, sidecars(t, "log:1"), "b")}
	set := sidecars(t, "log:2")
	pods[0] = withSidecarImages(pods[0], set) // asked for, and not running yet
	update, status, err := decideSidecarSet(set, pods)
	if err != nil || len(update) != 0 || status.UpdatedPods != 1 || status.UpdatedReadyPods != 0 {
		t.Errorf("%d more, status %+v, %v", len(update), status, err)
	}
}

func percent(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
