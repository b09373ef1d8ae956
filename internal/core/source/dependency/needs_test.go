package dependency

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// sent returns a claimed SidecarSet for pods with a: b.
func sent(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := parsed(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: "+name+
		"}, spec: {selector: {matchLabels: {a: b}}, "+spec+"}}")
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
		Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
	propagate.Claim(u, p)
	return u
}

func TestSidecarsAddToRequirements(t *testing.T) {
	const main = "containers: [{name: main, resources: {requests: {cpu: 500m, memory: 1Gi}}}]"
	const two = "containers: [{name: main, resources: {requests: {cpu: 400m, memory: 1536Mi}}}, {name: more, resources: {requests: {cpu: 100m, memory: 512Mi}}}]"
	half := func(policy string) string {
		return "containers: [{name: logs, resourcesPolicy: {" + policy +
			": {requests: {cpu: 'max(cpu*50%, 50m) + 0', memory: memory/2}}}}]"
	}
	for _, c := range []struct {
		name string
		// pod is the spec of the workload's pods and labels are theirs, a: b; kind is the workload's, a Deployment.
		pod, labels, kind string
		sets              map[string]string
		namespace         map[string]string
		want              string // cpu, memory, who counts
	}{
		{name: "nothing without any", pod: main, want: "500m 1Gi"},
		{name: "what its containers request", pod: main,
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}, {name: trace, resources: {requests: {memory: 1Gi}}}]"}, want: "600m 2Gi logs"},
		{name: "limits where nothing is requested", pod: main,
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {limits: {cpu: 100m}, requests: {memory: 1Gi}}}]"}, want: "600m 2Gi logs"},
		{name: "several, in the order of their names", pod: main,
			sets: map[string]string{"proxy": "containers: [{name: proxy, resources: {requests: {cpu: 200m}}}]",
				"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "800m 1Gi logs,proxy"},
		{name: "not what requests nothing", pod: main, sets: map[string]string{"logs": "containers: [{name: logs}]"},
			want: "500m 1Gi"},
		{name: "a container that ends before the others, as far as it needs more than these", pod: main,
			sets: map[string]string{"init": "initContainers: [{name: init, resources: {requests: {cpu: 700m, memory: 512Mi}}}]"},
			want: "700m 1Gi init"},
		{name: "a container that starts before the others and stays", pod: main,
			sets: map[string]string{"mesh": "initContainers: [{name: mesh, restartPolicy: Always, resources: {requests: {cpu: 700m, memory: 512Mi}}}]"}, want: "1200m 1536Mi mesh"},
		{name: "beside init containers that need more than all of them, nothing", pod: main +
			", initContainers: [{name: i, resources: {requests: {cpu: 3}}}]",
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "3 1Gi"},
		{name: "a container once, as the pod has it", pod: main,
			sets: map[string]string{"logs": "containers: [{name: main, resources: {requests: {cpu: 3}}}, {name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "600m 1Gi logs"},
		{name: "a container once, as the first by name has it", pod: main,
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]",
				"logs-canary": "containers: [{name: logs, resources: {requests: {cpu: 200m}}}]"},
			want: "600m 1Gi logs,logs-canary"},
		{name: "quantities of a resourcesPolicy", pod: main,
			sets: map[string]string{"logs": "containers: [{name: logs, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: 4}, requests: {cpu: 300m}}}}]"}, want: "800m 1Gi logs"},
		{name: "a part of what all containers request, in the words of v1alpha1", pod: two,
			sets: map[string]string{"logs": half("targetContainerMode: sum, targetContainersNameRegex: '^m.*$', resourceExpr")},
			want: "750m 3Gi logs"},
		{name: "of what the largest requests, in those of v1beta1", pod: two,
			sets: map[string]string{"logs": half("targetContainersMode: max, resourcesExpr")}, want: "700m 2816Mi logs"},
		{name: "of one by name", pod: two,
			sets: map[string]string{"logs": half("targetContainersMode: sum, targetContainersNameRegex: ^more$, resourcesExpr")},
			want: "550m 2304Mi logs"},
		{name: "of what is limited where nothing is requested",
			pod:  "containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Gi}}}]",
			sets: map[string]string{"logs": half("targetContainersMode: sum, resourcesExpr")}, want: "1500m 1536Mi logs"},
		{name: "limits without requests",
			pod:  "containers: [{name: main, resources: {limits: {cpu: 1}, requests: {cpu: 500m, memory: 1Gi}}}]",
			sets: map[string]string{"logs": "containers: [{name: logs, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: 0.2*cpu, memory: memory}}}}]"}, want: "700m 1Gi logs"},
		{name: "of containers that start before the others and stay, and not of those that end", pod: main +
			", initContainers: [{name: i, resources: {requests: {cpu: 100m}}}, {name: stays, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]", sets: map[string]string{"logs": half("targetContainersMode: sum, resourcesExpr")}, want: "900m 1536Mi logs"},
		{name: "not of other sidecars", pod: main,
			sets: map[string]string{"a": "containers: [{name: a, resources: {requests: {cpu: 1}}}]",
				"logs": half("targetContainersMode: sum, resourcesExpr")}, want: "1750m 1536Mi a,logs"},
		{name: "by a container that starts before the others and stays", pod: main,
			sets: map[string]string{"mesh": "initContainers: [{name: mesh, restartPolicy: Always, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {requests: {cpu: cpu*20%}}}}]"}, want: "600m 1Gi mesh"},
		{name: "what it requests itself, where an expression cannot be read, and where no container is meant", pod: main,
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 50m}}, resourcesPolicy: {resourcesExpr: {requests: {cpu: 'avg(cpu)', memory: 1Gi}}}}, {name: trace, resources: {requests: {cpu: 10m}}, resourcesPolicy: {targetContainersNameRegex: none, resourcesExpr: {requests: {cpu: cpu}}}}]"}, want: "560m 2Gi logs"},
		{name: "not into other pods", pod: main, labels: "a: c",
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "500m 1Gi"},
		{name: "not where new pods are left as they are", pod: main,
			sets: map[string]string{"logs": "injectionStrategy: {paused: true}, containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "500m 1Gi"},
		{name: "in the namespace that it names", pod: main,
			sets: map[string]string{"logs": "namespace: shop, containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"},
			want: "600m 1Gi logs"},
		{name: "not in another one", pod: main,
			sets: map[string]string{"logs": "namespace: bank, containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"},
			want: "500m 1Gi"},
		{name: "in namespaces by label", pod: main,
			sets: map[string]string{"logs": "namespaceSelector: {matchLabels: {team: x}}, containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, namespace: map[string]string{"team": "x"}, want: "600m 1Gi logs"},
		{name: "not in others", pod: main,
			sets: map[string]string{"logs": "namespaceSelector: {matchLabels: {team: x}}, containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "500m 1Gi"},
		{name: "not in what has no pod template", pod: main, kind: "ConfigMap",
			sets: map[string]string{"logs": "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"}, want: "500m 1Gi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := parsed(t, "{apiVersion: apps/v1, kind: "+cmp.Or(c.kind, "Deployment")+
				", metadata: {name: w, namespace: shop}, spec: {template: {metadata: {labels: {"+cmp.Or(c.labels, "a: b")+
				"}}, spec: {"+c.pod+"}}}}")
			req, err := interpret.Requirements(w)
			if err != nil {
				t.Fatal(err)
			}
			var sets []Sidecars
			for name, spec := range c.sets {
				s, ok, err := SidecarsOf(sent(t, name, spec))
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					sets = append(sets, s)
				}
			}
			before := req.DeepCopy()
			m := propagate.Meaning{Replicas: 2, Requirements: req}
			if err := Count(&m, w, Injecting(sets, w, c.namespace)); err != nil {
				t.Fatal(err)
			}
			cpu, memory := m.Requirements.ResourceRequest[corev1.ResourceCPU],
				m.Requirements.ResourceRequest[corev1.ResourceMemory]
			want := strings.Fields(c.want)
			if cpu.Cmp(resource.MustParse(want[0])) != 0 || memory.Cmp(resource.MustParse(want[1])) != 0 ||
				strings.Join(m.Sidecars, ",") != strings.Join(want[2:], ",") {
				t.Errorf("a replica needs %s and %s with %v; want %s", &cpu, &memory, m.Sidecars, c.want)
			}
			if cpu := req.ResourceRequest[corev1.ResourceCPU]; cpu.Cmp(before.ResourceRequest[corev1.ResourceCPU]) != 0 {
				t.Error("what the interpreter said was changed in place")
			}
		})
	}
}

// Sidecars add to requirements that a customization returns.
func TestSidecarsAddToCustomizedRequirements(t *testing.T) {
	w := parsed(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: shop}, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m}]}}}}")
	s, _, err := SidecarsOf(sent(t, "logs", "containers: [{name: logs, resources: {requests: {cpu: 100m}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for want, req := range map[string]*workv1alpha2.ReplicaRequirements{
		"100m":  nil,
		"2100m": {ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	} {
		m := propagate.Meaning{Replicas: 1, Requirements: req}
		if err := Count(&m, w, []Sidecars{s}); err != nil {
			t.Fatal(err)
		}
		if cpu := m.Requirements.ResourceRequest[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s, want %s", &cpu, want)
		}
	}
}

func TestSidecarsOf(t *testing.T) {
	const spec = "containers: [{name: logs, image: '1', resources: {requests: {cpu: 100m}}}]"
	free := sent(t, "logs", spec)
	free.SetLabels(nil)
	free.SetAnnotations(nil)
	going := sent(t, "logs", spec)
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	other := sent(t, "logs", spec)
	other.SetKind("CloneSet")
	for name, obj := range map[string]*unstructured.Unstructured{"one that no policy sends": free, "one that goes": going,
		"another kind": other} {
		if _, ok, err := SidecarsOf(obj); ok || err != nil {
			t.Errorf("%s counts: %v, %v", name, ok, err)
		}
	}
	if _, ok, err := SidecarsOf(sent(t, "logs", "containers: [{name: c, resources: {requests: {cpu: much}}}]")); ok ||
		err == nil || !strings.Contains(err.Error(), "container c of SidecarSet logs") {
		t.Errorf("one with nonsense counts: %v, %v", ok, err)
	}

	was, _, _ := SidecarsOf(sent(t, "logs", spec))
	for change, alike := range map[string]bool{
		"containers: [{name: logs, image: '2', resources: {requests: {cpu: 100m}}}]": true,
		"containers: [{name: logs, image: '1', resources: {requests: {cpu: 0.1}}}]":  true,
		"updateStrategy: {partition: 1}, " +
			spec: true,
		"containers: [{name: logs, image: '1', resources: {requests: {cpu: 200m}}}]": false,
		"initContainers: [{name: i, resources: {requests: {cpu: 200m}}}], " +
			spec: false,
		"namespaceSelector: {matchLabels: {team: x}}, " +
			spec: false,
		"containers: [{name: logs, image: '1', resources: {requests: {cpu: 100m}}, resourcesPolicy: {resourcesExpr: {requests: {cpu: cpu}}}}]": false,
	} {
		if is, ok, err := SidecarsOf(sent(t, "logs", change)); !ok || err != nil || was.Alike(is) != alike {
			t.Errorf("%s: alike is %v, want %v (%v, %v)", change, was.Alike(is), alike, ok, err)
		}
	}
}

// Sidecars never reduce the requirements, and their order does not matter.
func TestSidecarsNeverReduceRequirements(t *testing.T) {
	var sets []Sidecars
	for i := range 4 {
		s, ok, err := SidecarsOf(sent(t, fmt.Sprintf("s%d", i),
			fmt.Sprintf("containers: [{name: c%d, resources: {requests: {cpu: %dm}}}], initContainers: [{name: i%d, resources: {requests: {cpu: %dm}}}]", i%3, 10<<i, i, 900>>i)))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		sets = append(sets, s)
	}
	w := parsed(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: shop}, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, resources: {requests: {cpu: 300m}}}]}}}}")
	needs := func(sets []Sidecars) int64 {
		req, _ := interpret.Requirements(w)
		m := propagate.Meaning{Replicas: 1, Requirements: req}
		if err := Count(&m, w, Injecting(sets, w, nil)); err != nil {
			t.Fatal(err)
		}
		return m.Requirements.ResourceRequest.Cpu().MilliValue()
	}
	for n := range sets {
		some := slices.Clone(sets[:n+1])
		forth := needs(some)
		slices.Reverse(some)
		if back := needs(some); back != forth || forth < needs(sets[:n]) {
			t.Errorf("%d of them: %dm forth, %dm back, %dm with one less", n+1, forth, back, needs(sets[:n]))
		}
	}
}
