package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	core "github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestTroubledReportsAppliedTemplates(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		placed := func(name string, applied ...string) *workv1alpha2.ResourceBinding {
			b := wants(name, 2, "1")
			for _, c := range []string{"m1", "m2"} {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 2})
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus,
					workv1alpha2.AggregatedStatusItem{ClusterName: c, Applied: strings.Contains(fmt.Sprint(applied), c)})
			}
			return b
		}
		outdated := placed("outdated", "m1")
		outdated.Status.AggregatedStatus[1].Status = &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}
		w := measure(t, map[string][]string{"m1": {"8"}, "m2": {"8"}}, placed("web", "m1", "m2"), placed("refused", "m1"),
			outdated)
		ailing := func(cluster, deployment, name string, ails func(*corev1.PodStatus)) {
			t.Helper()
			w.pod(cluster, deployment, name, "n0", "1")
			p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			yes := true
			p.Labels = map[string]string{"pod-template-hash": "x"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-x",
				Controller: &yes}}
			p.Spec.NodeName, p.Spec.Containers = "n0", []corev1.Container{{Name: "c"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
			ails(&p.Status)
			w.servers[cluster].Put(p)
		}
		waiting := func(reason string) func(*corev1.PodStatus) {
			return func(s *corev1.PodStatus) {
				s.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
			}
		}
		well := func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].Ready, s.ContainerStatuses[0].State.Running = true, &corev1.ContainerStateRunning{}
		}
		expect := func(what, namespace, want string) {
			t.Helper()
			got := ""
			if !membertest.Becomes(func() bool {
				all, err := w.fleet.Troubled(t.Context(), namespace)
				if err != nil {
					t.Fatal(err)
				}
				var lines []string
				for _, of := range all {
					lines = append(lines, of.Kind+" "+of.Name+" in "+of.Cluster+" "+strings.Join(of.Lines(), ", "))
				}
				got = strings.Join(lines, "; ")
				return got == want
			}) {
				t.Fatalf("%s: got %q, want %q", what, got, want)
			}
		}
		ailing("m1", "web", "web-1", waiting("ImagePullBackOff"))
		ailing("m1", "web", "web-2", well)
		ailing("m2", "web", "web-1", waiting("ErrImagePull"))
		ailing("m2", "refused", "refused-1", waiting("ImagePullBackOff"))
		ailing("m1", "theirs", "theirs-1", waiting("ImagePullBackOff"))
		both := "Deployment web in m1 1 of 2 pods: ImagePullBackOff (container c); Deployment web in m2 1 of 1 pod: ErrImagePull (container c)"
		expect("all applied templates", "", both)
		expect("the namespace", "default", both)
		expect("another namespace", "bank", "")
		ailing("m2", "outdated", "outdated-1", waiting("ImagePullBackOff"))
		expect("a template with a rejected update", "",
			"Deployment outdated in m2 1 of 1 pod: ImagePullBackOff (container c); "+
				both)
		ailing("m2", "outdated", "outdated-1", well)
		ailing("m2", "web", "web-1", well)
		expect("after the start", "", "Deployment web in m1 1 of 2 pods: ImagePullBackOff (container c)")
	})
}

func TestFloodOfOneNamespaceHidesNoTroubleInAnother(t *testing.T) {
	t.Parallel()
	for name, floodFirst := range map[string]bool{"a flood first": true, "a flood last": false} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				const many = 1200
				placed := func(namespace, name string) *workv1alpha2.ResourceBinding {
					b := wants(name, many, "1")
					b.Namespace, b.Spec.Resource.Namespace = namespace, namespace
					b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: many}}
					b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true}}
					return b
				}
				w := measure(t, map[string][]string{"m1": {"8"}}, placed("bank", "flood"), placed("shop", "web"))
				put := func(namespace, set, name string, waits bool) {
					p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
						ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
							Labels: map[string]string{"pod-template-hash": "x"},
							OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set + "-x",
								Controller: new(true)}}},
						Spec:   corev1.PodSpec{NodeName: "n0", Containers: []corev1.Container{{Name: "c"}}},
						Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: !waits}}}}
					if waits {
						p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
					} else {
						p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
					}
					w.servers["m1"].Put(p)
				}
				flood := func(waits bool) {
					for i := range many {
						put("bank", "flood", fmt.Sprint("flood-", i), waits)
						put("mine", fmt.Sprint("other-", i), fmt.Sprint("other-", i), waits) // of the member alone
					}
				}
				expect := func(what, namespace string, want ...string) {
					t.Helper()
					var got []string
					if !membertest.Becomes(func() bool {
						all, err := w.fleet.Troubled(t.Context(), namespace)
						if err != nil {
							t.Fatal(err)
						}
						got = nil
						for _, of := range all {
							got = append(got, of.Name+": "+strings.Join(of.Lines(), ", "))
						}
						return slices.Equal(got, want)
					}) {
						t.Fatalf("%s: got %q, want %q", what, got, want)
					}
				}
				if floodFirst {
					flood(true)
				}
				put("shop", "web", "web-1", true)
				if !floodFirst {
					flood(true)
				}
				flooded := "flood: 1200 of 1200 pods: ErrImagePull (container c)"
				web := "web: 1 of 1 pod: ErrImagePull (container c)"
				expect("all namespaces", "", flooded, web)
				expect("the namespace", "shop", web)
				flood(false)
				expect("after the flood", "", web)
				put("shop", "web", "web-1", false)
				expect("after it has recovered", "")
			})
		})
	}
}

func TestCandidatesHaveTheOwner(t *testing.T) {
	parts, r := []string{"web", "db", "web-db", "a-", "x"}, rand.New(rand.NewPCG(1, 2))
	name := func() string {
		return strings.Join([]string{parts[r.IntN(len(parts))], parts[r.IntN(len(parts))]}[:1+r.IntN(2)], "-")
	}
	owned := 0
	for range 2000 {
		var all []workv1alpha2.ObjectReference
		for range 8 {
			kind := [][2]string{{"apps/v1", "Deployment"}, {"batch/v1", "CronJob"}, {"batch/v1", "Job"},
				{"example.com/v1", "App"}}[r.IntN(4)]
			all = append(all, workv1alpha2.ObjectReference{APIVersion: kind[0], Kind: kind[1],
				Namespace: []string{"shop", "bank"}[r.IntN(2)], Name: name()})
		}
		of := core.Workload{Namespace: "shop", Kind: []string{"ReplicaSet", "Job", "App"}[r.IntN(3)], Name: name()}
		owner := func(known []workv1alpha2.ObjectReference) (ref workv1alpha2.ObjectReference) {
			if i := pods.Owner(of, known); i >= 0 {
				ref = known[i]
			}
			return ref
		}
		want, got := owner(all), owner(capacity.Candidates(all, of))
		if got != want {
			t.Fatalf("%v of %v: got %v, want %v", of, all, got, want)
		}
		if want.Name != "" {
			owned++
		}
	}
	if owned < 200 {
		t.Errorf("only %d workloads have an owner", owned)
	}
}
