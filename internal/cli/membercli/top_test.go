package membercli

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// using returns the metrics of a pod in namespace shop with two containers of the same usage.
func using(name, cpu, memory string) *metricsv1beta1.PodMetrics {
	used := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	return &metricsv1beta1.PodMetrics{
		TypeMeta:   metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}},
		Containers: []metricsv1beta1.ContainerMetrics{{Name: "app", Usage: used}, {Name: "proxy", Usage: used}}}
}

func TestTopShowsTheUsageInAllClusters(t *testing.T) {
	t.Parallel()
	podKind := membertest.Kind{GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("PodMetrics"), Plural: "pods",
		Namespaced: true}
	nodeKind := membertest.Kind{GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("NodeMetrics"),
		Plural: "nodes"}
	eu, us, bare := membertest.New(t, podKind, nodeKind), membertest.New(t, podKind, nodeKind), membertest.New(t)
	eu.Put(using("web-2", "10m", "20Mi"))
	eu.Put(using("web-1", "50m", "10Mi"))
	us.Put(using("web-3", "30m", "64Mi"))
	eu.Put(&metricsv1beta1.NodeMetrics{TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1",
		Kind: "NodeMetrics"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Usage: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}})
	eu.Put(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}}})
	all := map[string]*membertest.Server{"eu": eu, "us": us}
	for name, c := range map[string]struct {
		members map[string]*membertest.Server
		args    []string
		want    []string // the lines, with one space between columns
		err     string
	}{
		"by cluster and name": {args: []string{"pods"}, want: []string{"NAME CLUSTER CPU(CORES) MEMORY(BYTES)",
			"web-1 eu 100m 20Mi", "web-2 eu 20m 40Mi", "web-3 us 60m 128Mi"}},
		"by memory": {args: []string{"pods", "--sort-by", "memory", "--no-headers"},
			want: []string{"web-3 us 60m 128Mi", "web-2 eu 20m 40Mi", "web-1 eu 100m 20Mi"}},
		"by labels, with the sum": {args: []string{"po", "-l", "app in (web-1,web-3)", "--sum", "--no-headers"},
			want: []string{"web-1 eu 100m 20Mi", "web-3 us 60m 128Mi", "TOTAL 160m 148Mi"}},
		"containers of a pod": {args: []string{"pod", "web-3", "-C", "us", "--containers"},
			want: []string{"POD CLUSTER NAME CPU(CORES) MEMORY(BYTES)", "web-3 us app 30m 64Mi", "web-3 us proxy 30m 64Mi"}},
		"a pod, wherever it is": {args: []string{"pod", "web-2", "--no-headers"}, want: []string{"web-2 eu 20m 40Mi"}},
		"of all namespaces": {args: []string{"pods", "-A", "-C", "us", "--no-headers"},
			want: []string{"shop web-3 us 60m 128Mi"}},
		"nodes": {args: []string{"nodes", "-C", "eu"}, want: []string{
			"NAME CLUSTER CPU(CORES) CPU% MEMORY(BYTES) MEMORY%", "n1 eu 500m 25% 1024Mi 25%"}},
		"nodes by capacity": {args: []string{"node", "n1", "-C", "eu", "--show-capacity", "--no-headers"},
			want: []string{"n1 eu 500m 12% 1024Mi 12%"}},
		"a pod that is nowhere": {args: []string{"pod", "web-9"}, err: `cluster "eu": `},
		"without metrics-server": {members: map[string]*membertest.Server{"eu": eu, "bare": bare},
			args: []string{"pods", "--no-headers"}, want: []string{"web-1 eu 100m 20Mi", "web-2 eu 20m 40Mi"},
			err: `cluster "bare": metrics.k8s.io: the API is not served: install metrics-server there`},
		"a pod without metrics-server": {members: map[string]*membertest.Server{"bare": bare},
			args: []string{"pod", "web-1"}, err: "install metrics-server there"},
		"a cluster that does not respond": {members: map[string]*membertest.Server{"us": us, "down": nil},
			args: []string{"pods", "--no-headers"}, want: []string{"web-3 us 60m 128Mi"}, err: `cluster "down"`},
		"none": {args: []string{"pods", "-l", "app=other"}, want: []string{"no metrics of pods in namespace shop found"}},
		"an unknown order": {args: []string{"pods", "--sort-by", "name"},
			err: `--sort-by must be cpu or memory, not "name"`},
		"flags of karmadactl": {args: []string{"pod", "--use-protocol-buffers=false", "--field-selector",
			"metadata.name=web-3", "--clusters", "us", "--no-headers"}, want: []string{"web-3 us 60m 128Mi"}},
		"a name and labels": {args: []string{"pod", "web-1", "-l", "a=b"}, err: "cannot be used together"},
		"a name in all namespaces": {args: []string{"pod", "web-1", "-A"},
			err: "cannot be used together"},
		"another format": {args: []string{"pods", "-o", "wide"}, err: "--output must be json or yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := c.members
			if members == nil {
				members = all
			}
			out, errOut, err := clitest.See(t, members).Run(NewTop, "", c.args...)
			if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			var got []string
			for line := range strings.Lines(out + errOut) {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}

func TestTopWritesRowsForPrograms(t *testing.T) {
	t.Parallel()
	eu := membertest.New(t, membertest.Kind{GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("PodMetrics"),
		Plural: "pods", Namespaced: true})
	run := func() string {
		out, _, err := clitest.See(t, map[string]*membertest.Server{"eu": eu}).Run(NewTop, "", "pods", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out), "")
	}
	if got := run(); got != "[]" {
		t.Errorf("without pods it wrote %s", got)
	}
	eu.Put(using("web-1", "50m", "10Mi"))
	const want = `[{"cluster":"eu","namespace":"shop","name":"web-1","usage":{"cpu":"100m","memory":"20Mi"}}]`
	if got := run(); got != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
}
