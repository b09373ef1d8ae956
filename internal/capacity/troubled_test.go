package capacity_test

import (
	"fmt"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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
