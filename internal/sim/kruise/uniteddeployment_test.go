package kruise

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func united(t *testing.T, text string) *UnitedDeployment {
	t.Helper()
	ud := &UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}
	ud.APIVersion, ud.Kind = "apps.kruise.io/v1alpha1", "UnitedDeployment"
	if err := yaml.Unmarshal([]byte(text), &ud.Spec); err != nil {
		t.Fatal(err)
	}
	return ud
}

func TestSubsetsShareTheReplicas(t *testing.T) {
	for _, tt := range []struct {
		name, spec string
		want       []int32
	}{
		{"evenly, the first ones more", "{replicas: 5, topology: {subsets: [{name: a}, {name: b}, {name: c}]}}",
			[]int32{2, 2, 1}},
		{"what is set, and the rest",
			"{replicas: 10, topology: {subsets: [{name: a, replicas: 3}, {name: b}, {name: c, replicas: 20%}]}}",
			[]int32{3, 5, 2}},
		{"halves round up", "{replicas: 3, topology: {subsets: [{name: a, replicas: 50%}, {name: b}]}}", []int32{2, 1}},
		{"no replicas but those of subsets", "{topology: {subsets: [{name: a, replicas: 1}, {name: b, replicas: 2}]}}",
			[]int32{1, 2}},
		{"no subset", "{replicas: 9}", []int32{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ud := united(t, tt.spec)
			if got, err := ud.Spec.allocate(); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

const unitedText = `
replicas: 4
selector: {matchLabels: {app: web}}
template:
  cloneSetTemplate:
    metadata: {labels: {app: web}}
    spec:
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: main, image: "nginx:1"}]}
topology:
  subsets:
  - name: a
    replicas: 1
    nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
    tolerations: [{key: spot}]
  - name: b
`

func TestASubsetIsAWorkloadOfItsOwn(t *testing.T) {
	ud := united(t, unitedText)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		all, err := children(ud, "r1", Versions{CloneSetKind.GroupKind(): version})
		if err != nil || len(all) != 2 {
			t.Fatalf("%d children, %v", len(all), err)
		}
		a, b := all[0], all[1]
		if a.GetAPIVersion() != "apps.kruise.io/"+version || a.GetName() != "web-a" ||
			a.GetLabels()[subsetLabel] != "a" {
			t.Errorf("child %v", a.Object)
		}
		for u, want := range map[*unstructured.Unstructured]int64{a: 1, b: 3} {
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); got != want {
				t.Errorf("%s: %d replicas, want %d", u.GetName(), got, want)
			}
		}
		template, _, _ := unstructured.NestedMap(a.Object, "spec", "template")
		var pod corev1.PodTemplateSpec
		data, _ := yaml.Marshal(template)
		if err := yaml.Unmarshal(data, &pod); err != nil {
			t.Fatal(err)
		}
		required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != "nginx:1" ||
			len(pod.Spec.Tolerations) != 1 ||
			required.NodeSelectorTerms[0].MatchExpressions[0].Key != "zone" {
			t.Errorf("template %+v", pod)
		}
	}
	if _, err := children(ud, "r1", Versions{}); err == nil {
		t.Error("a kind that is not served has a child")
	}
}
