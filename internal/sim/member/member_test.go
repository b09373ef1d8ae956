package member_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/internal/sim/member"
)

// TestMain lets the test binary be the binary of its own members.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == sim.ChildVerb {
		if err := member.Main(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// cluster is a member under test. Its methods end the test on failure, with what they saw last.
type cluster struct {
	t *testing.T
	client.Client
}

func connect(t *testing.T, m *sim.Running) cluster {
	t.Helper()
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{t, c}
}

func (c cluster) create(text string) *unstructured.Unstructured {
	c.t.Helper()
	u := parse(c.t, text)
	if err := c.Create(c.t.Context(), u); err != nil {
		c.t.Fatal(err)
	}
	return u
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("default")
	return u
}

func (c cluster) patch(u *unstructured.Unstructured, merge string) {
	c.t.Helper()
	if err := c.Patch(c.t.Context(), u, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		c.t.Fatal(err)
	}
}

// await reads u until ok is true of it.
func (c cluster) await(what string, u *unstructured.Unstructured, ok func(*unstructured.Unstructured) bool) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for time.Since(begin) < 20*time.Second {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(u), u); err == nil && ok(u) {
			return time.Since(begin)
		}
		time.Sleep(10 * time.Millisecond)
	}
	text, _ := yaml.Marshal(u.Object)
	for _, p := range c.pods(u.GetName()) {
		c.t.Logf("pod %s on %s: %s %v", p.Name, p.Spec.NodeName, p.Labels, p.Status)
	}
	c.t.Fatalf("%s: not in time. Last seen:\n%s", what, text)
	return 0
}

// counts compares status fields with what they should be, once the controller has seen the spec.
func counts(want map[string]int64) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen != u.GetGeneration() {
			return false
		}
		for name, n := range want {
			if got, _, _ := unstructured.NestedInt64(u.Object, "status", name); got != n {
				return false
			}
		}
		return true
	}
}

func (c cluster) pods(app string) []corev1.Pod {
	c.t.Helper()
	var list corev1.PodList
	if err := c.List(c.t.Context(), &list, client.InNamespace("default"), client.MatchingLabels{"app": app}); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

func start(t *testing.T, names ...string) *sim.Fleet {
	t.Helper()
	o := sim.Options{Dir: t.TempDir(), Log: testLog{t}}
	for _, name := range names {
		o.Members = append(o.Members, sim.Member{Name: name, Nodes: 2, Region: "north", Zone: "north-1", Provider: "acme"})
	}
	begin := time.Now()
	fleet, err := sim.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		begin := time.Now()
		if err := fleet.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped after %v", time.Since(begin))
	})
	t.Logf("%d members ready after %v", len(names), time.Since(begin))
	return fleet
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

const workload = `
apiVersion: %s
kind: %s
metadata: {name: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec:
      containers:
      - {name: main, image: "nginx:1.25"}
`

func TestAMember(t *testing.T) {
	fleet := start(t, "m1")
	m := fleet.Members()[0]
	c := connect(t, m)
	ready := func(u *unstructured.Unstructured) bool { return counts(map[string]int64{"readyReplicas": 3})(u) }

	t.Run("nodes say where they are", func(t *testing.T) {
		var nodes corev1.NodeList
		if err := c.List(t.Context(), &nodes); err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != 2 {
			t.Fatalf("%d nodes, want 2", len(nodes.Items))
		}
		n := nodes.Items[0]
		if n.Labels[corev1.LabelTopologyRegion] != "north" || n.Labels[corev1.LabelTopologyZone] != "north-1" || n.Spec.ProviderID == "" {
			t.Errorf("labels %v, provider ID %q", n.Labels, n.Spec.ProviderID)
		}
	})
	t.Run("a Deployment becomes ready", func(t *testing.T) {
		c := cluster{t, c.Client}
		t.Log("after", c.await("ready", c.create(fmt.Sprintf(workload, "apps/v1", "Deployment", "deploy", 3)), ready))
	})
	t.Run("a StatefulSet becomes ready", func(t *testing.T) {
		c := cluster{t, c.Client}
		t.Log("after", c.await("ready", c.create(fmt.Sprintf(workload, "apps/v1", "StatefulSet", "native", 3)), ready))
	})
	t.Run("a Job completes", func(t *testing.T) {
		c := cluster{t, c.Client}
		u := c.create(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "busybox:1"}
`)
		t.Log("after", c.await("complete", u, func(u *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(u.Object, "status", "succeeded")
			return n == 2
		}))
	})
	t.Logf("memory %d MiB", m.RSS()>>20)
}

