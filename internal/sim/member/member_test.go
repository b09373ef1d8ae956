package member_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/internal/sim/member"
	"github.com/argosy-io/argosy/test/kit"
)

// TestMain lets the test binary be the binary of its own members.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == parentVerb {
		fmt.Fprintln(os.Stderr, parentMain(os.Args[2]))
		os.Exit(1)
	}
	if len(os.Args) == 4 && os.Args[1] == sim.ChildVerb {
		if err := member.Main(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if shared != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		_ = os.RemoveAll(sharedDir) // a temporary folder: an error does no harm
	}
	os.Exit(code)
}

var (
	startShared sync.Once
	shared      *sim.Fleet
	sharedDir   string
)

// sharedFleet returns the members east and west, started by the first test that uses them. Each test uses names of its
// own.
func sharedFleet(t *testing.T) *sim.Fleet {
	t.Helper()
	startShared.Do(func() {
		var err error
		if sharedDir, err = os.MkdirTemp("", "argosy-members-"); err != nil {
			t.Fatal(err)
		}
		o := sim.Options{Dir: sharedDir, Log: os.Stderr}
		for _, name := range []string{"east", "west"} {
			o.Members = append(o.Members, sim.Member{Name: name, Nodes: 2, Region: "north", Zone: "north-1", Provider: "acme"})
		}
		if shared, err = sim.Start(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	})
	if shared == nil {
		t.Fatal("the members did not start, see the first test that uses them")
	}
	return shared
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
	return cluster{t: t, Client: c}
}

func (c cluster) create(text string) *unstructured.Unstructured {
	c.t.Helper()
	u := parse(c.t, text)
	c.createObject(u)
	return u
}

func (c cluster) createObject(u *unstructured.Unstructured) {
	c.t.Helper()
	if err := c.Create(c.t.Context(), u); err != nil {
		c.t.Fatal(err)
	}
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
func (c cluster) await(what string, u *unstructured.Unstructured, ok func(*unstructured.Unstructured) bool) {
	c.t.Helper()
	kit.Eventually(c.t, what, func() string {
		err := c.Get(c.t.Context(), client.ObjectKeyFromObject(u), u)
		if err == nil && ok(u) {
			return ""
		}
		text, _ := yaml.Marshal(u.Object)
		return fmt.Sprintf("%v\n%s", err, text)
	})
}

func (c cluster) awaitPod(app, what string, ok func(*corev1.Pod) bool) {
	c.t.Helper()
	c.eventually("a pod of "+app+" "+what, func() bool {
		return slices.ContainsFunc(c.pods(app), func(p corev1.Pod) bool { return ok(&p) })
	})
}

func (c cluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	kit.Eventually(c.t, what, func() string {
		if !ok() {
			return "not yet"
		}
		return ""
	})
}

func uids(pods []corev1.Pod) map[string]string {
	byName := map[string]string{}
	for _, p := range pods {
		byName[p.Name] = string(p.UID)
	}
	return byName
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
	var members []sim.Member
	for _, name := range names {
		members = append(members, sim.Member{Name: name, Nodes: 2, Region: "north", Zone: "north-1", Provider: "acme"})
	}
	return startMembers(t, members...)
}

func startMembers(t *testing.T, members ...sim.Member) *sim.Fleet {
	t.Helper()
	fleet, err := sim.Start(t.Context(), sim.Options{Dir: t.TempDir(), Log: testLog{t}, Members: members})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Stop(); err != nil {
			t.Error(err)
		}
	})
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
	m := sharedFleet(t).Members()[0]
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
		if n.Labels[corev1.LabelTopologyRegion] != "north" || n.Labels[corev1.LabelTopologyZone] != "north-1" ||
			n.Spec.ProviderID == "" {
			t.Errorf("labels %v, provider ID %q", n.Labels, n.Spec.ProviderID)
		}
	})
	t.Run("a Deployment becomes ready", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
		c.await("ready", c.create(fmt.Sprintf(workload, "apps/v1", "Deployment", "deploy", 3)), ready)
	})
	t.Run("a StatefulSet becomes ready", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
		c.await("ready", c.create(fmt.Sprintf(workload, "apps/v1", "StatefulSet", "native", 3)), ready)
	})
	t.Run("a Job completes", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
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
		c.await("complete", u, func(u *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(u.Object, "status", "succeeded")
			return n == 2
		})
	})
	t.Run("a claim is bound and its pod placed", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
		u := parse(t, fmt.Sprintf(workload, "apps/v1", "StatefulSet", "claims", 1))
		if err := unstructured.SetNestedSlice(u.Object, []any{claimTemplate}, "spec", "volumeClaimTemplates"); err != nil {
			t.Fatal(err)
		}
		c.createObject(u)
		c.await("ready", u, counts(map[string]int64{"readyReplicas": 1}))
	})
	t.Run("a bad image never becomes ready, and a good one mends it", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
		u := parse(t, fmt.Sprintf(workload, "apps/v1", "Deployment", "broken", 1))
		setImage(t, u, "nginx:bad")
		c.createObject(u)
		c.awaitPod("broken", "waits for its image", func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
				p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
		})
		if n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); n != 0 {
			t.Errorf("%d pods are ready", n)
		}
		c.patch(u, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.25"}]}}}}`)
		c.await("ready", u, counts(map[string]int64{"readyReplicas": 1, "updatedReplicas": 1}))
	})
	t.Logf("memory %d MiB", m.RSS()>>20)
}

func TestABareMemberLeavesTheKindsOfOpenKruiseAndArgoToOthers(t *testing.T) {
	kit.Long(t)
	c := connect(t, startMembers(t, sim.Member{Name: "bare", Nodes: 1, Bare: true}).Members()[0])
	deployment := c.create(fmt.Sprintf(workload, "apps/v1", "Deployment", "deploy", 1))
	c.await("ready", deployment, counts(map[string]int64{"readyReplicas": 1}))
	for apiVersion, kind := range map[string]string{"apps.kruise.io/v1alpha1": "CloneSet",
		"argoproj.io/v1alpha1": "Workflow"} {
		u := parse(t, fmt.Sprintf(workload, apiVersion, kind, "none", 1))
		if err := c.Create(t.Context(), u); !meta.IsNoMatchError(err) {
			t.Errorf("create a %s: %v, want that the kind is not served", kind, err)
		}
	}
}

var claimTemplate = map[string]any{
	"metadata": map[string]any{"name": "data"},
	"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	},
}

func setImage(t *testing.T, u *unstructured.Unstructured, image string) {
	t.Helper()
	containers := []any{map[string]any{"name": "main", "image": image}}
	if err := unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

func TestOpenKruise(t *testing.T) {
	m := sharedFleet(t).Members()[1]
	inner := connect(t, m).Client

	t.Run("a CloneSet", func(t *testing.T) {
		c := cluster{t: t, Client: inner}
		u := parse(t, fmt.Sprintf(workload, "apps.kruise.io/v1alpha1", "CloneSet", "web", 3))
		u.Object["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": "InPlaceIfPossible",
			"maxUnavailable": "100%"}
		c.createObject(u)
		c.await("ready", u, counts(map[string]int64{
			"replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
			"updatedReplicas": 3, "updatedReadyReplicas": 3, "updatedAvailableReplicas": 3, "expectedUpdatedReplicas": 3,
		}))
		status, _ := u.Object["status"].(map[string]any)
		if status["labelSelector"] != "app=web" || status["currentRevision"] != status["updateRevision"] ||
			status["updateRevision"] == "" {
			t.Errorf("status %v", status)
		}
		first := status["updateRevision"]
		if policy, _, _ := unstructured.NestedString(u.Object, "spec", "template", "spec",
			"restartPolicy"); policy != "Always" {
			t.Errorf("the template was not defaulted: restart policy %q", policy)
		}
		if surge, found, _ := unstructured.NestedInt64(u.Object, "spec", "updateStrategy", "maxSurge"); !found || surge != 0 {
			t.Errorf("maxSurge was not defaulted")
		}
		before := uids(c.pods("web"))
		for _, p := range c.pods("web") {
			if p.Labels["apps.kruise.io/cloneset-instance-id"] == "" || p.Name != "web-"+
				p.Labels["apps.kruise.io/cloneset-instance-id"] {
				t.Errorf("pod %s has labels %v", p.Name, p.Labels)
			}
		}

		t.Log("half of it")
		c.patch(u, `{"spec":{"updateStrategy":{"partition":"50%"},"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.26"}]}}}}`)
		c.await("one of three updated", u, counts(map[string]int64{
			"replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
			"updatedReplicas": 1, "updatedReadyReplicas": 1, "updatedAvailableReplicas": 1, "expectedUpdatedReplicas": 1,
		}))
		status, _ = u.Object["status"].(map[string]any)
		if status["currentRevision"] != first || status["updateRevision"] == first {
			t.Errorf("revisions current %v, update %v, first was %v", status["currentRevision"], status["updateRevision"], first)
		}

		t.Log("a partition holds new pods at the old revision, too")
		c.patch(u, `{"spec":{"replicas":5}}`) // 50% of 5 keep 3 old
		c.await("five", u, counts(map[string]int64{"replicas": 5, "readyReplicas": 5, "updatedReplicas": 2,
			"expectedUpdatedReplicas": 2}))
		c.patch(u, `{"spec":{"replicas":3}}`)
		c.await("three again", u, counts(map[string]int64{"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1}))

		t.Log("all of it")
		between := uids(c.pods("web"))
		c.patch(u, `{"spec":{"updateStrategy":{"partition":0}}}`)
		c.await("all updated", u, counts(map[string]int64{"replicas": 3, "readyReplicas": 3, "updatedReadyReplicas": 3,
			"expectedUpdatedReplicas": 3}))
		if after := uids(c.pods("web")); !maps.Equal(between, after) {
			t.Errorf("pods %v, before %v: an image must change in place", after, between)
		}
		kept := 0
		for _, p := range c.pods("web") {
			if p.Spec.Containers[0].Image != "nginx:1.26" || p.Status.ContainerStatuses[0].Image != "nginx:1.26" {
				t.Errorf("pod %s has image %s, runs %s", p.Name, p.Spec.Containers[0].Image, p.Status.ContainerStatuses[0].Image)
			}
			if before[p.Name] == string(p.UID) {
				kept++
				if n := p.Status.ContainerStatuses[0].RestartCount; n != 1 {
					t.Errorf("pod %s restarted %d times, want 1", p.Name, n)
				}
			}
		}
		if kept == 0 {
			t.Errorf("no pod is left of the first ones, %v", before)
		}

		t.Log("back to the first revision")
		c.patch(u, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.25"}]}}}}`)
		c.await("all back", u, counts(map[string]int64{"updatedReadyReplicas": 3}))
		if got, _, _ := unstructured.NestedString(u.Object, "status", "updateRevision"); got != first {
			t.Errorf("revision %s, want %s again", got, first)
		}

		t.Log("a pod named for deletion")
		victim := c.pods("web")[0].Name
		c.patch(u, fmt.Sprintf(`{"spec":{"replicas":2,"scaleStrategy":{"podsToDelete":[%q]}}}`, victim))
		c.await("two left, and the name gone", u, func(u *unstructured.Unstructured) bool {
			names, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "scaleStrategy", "podsToDelete")
			return len(names) == 0 && counts(map[string]int64{"replicas": 2, "readyReplicas": 2})(u)
		})
		if _, there := uids(c.pods("web"))[victim]; there {
			t.Errorf("pod %s is still there", victim)
		}

		t.Log("a bad image")
		c.patch(u, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:bad"}]}}}}`)
		c.awaitPod("web", "waits for its image", func(p *corev1.Pod) bool {
			return p.Status.ContainerStatuses[0].State.Waiting != nil
		})
		c.await("not ready", u, counts(map[string]int64{"replicas": 2, "updatedReplicas": 2, "readyReplicas": 0}))
		c.patch(u, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.27"}]}}}}`)
		c.await("mended", u, counts(map[string]int64{"updatedReadyReplicas": 2, "readyReplicas": 2}))

		if err := c.Delete(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		c.eventually("its pods are gone", func() bool { return len(c.pods("web")) == 0 })
	})

	t.Run("a StatefulSet", func(t *testing.T) {
		c := cluster{t: t, Client: inner}
		u := parse(t, fmt.Sprintf(workload, "apps.kruise.io/v1beta1", "StatefulSet", "db", 3))
		spec := u.Object["spec"].(map[string]any)
		spec["podManagementPolicy"] = "Parallel"
		spec["reserveOrdinals"] = []any{int64(1), "3-4"}
		spec["volumeClaimTemplates"] = []any{claimTemplate}
		spec["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"podUpdatePolicy": "InPlaceIfPossible",
			"maxUnavailable": int64(2)}}
		if err := unstructured.SetNestedSlice(spec, []any{map[string]any{"conditionType": "InPlaceUpdateReady"}}, "template",
			"spec", "readinessGates"); err != nil {
			t.Fatal(err)
		}
		c.createObject(u)
		c.await("ready", u, counts(map[string]int64{
			"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
			"updatedReplicas": 3, "updatedReadyReplicas": 3, "updatedAvailableReplicas": 3,
		}))
		before := uids(c.pods("db"))
		if names := slices.Sorted(maps.Keys(before)); !slices.Equal(names, []string{"db-0", "db-2", "db-5"}) {
			t.Errorf("pods %v", names)
		}

		c.patch(u, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.26"}]}}}}`)
		c.await("two of three updated", u,
			counts(map[string]int64{"readyReplicas": 3, "updatedReplicas": 2, "updatedAvailableReplicas": 2}))
		if after := uids(c.pods("db")); !maps.Equal(before, after) {
			t.Errorf("pods %v, before %v", after, before)
		}
		for _, p := range c.pods("db") {
			want := "nginx:1.26"
			if p.Name == "db-0" {
				want = "nginx:1.25"
			}
			if got := p.Spec.Containers[0].Image; got != want {
				t.Errorf("pod %s has %s, want %s", p.Name, got, want)
			}
		}
		c.patch(u, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		c.await("all updated", u, counts(map[string]int64{"readyReplicas": 3, "updatedReadyReplicas": 3,
			"currentReplicas": 3}))
		c.patch(u, `{"spec":{"reserveOrdinals":["0-1"],"replicas":1}}`)
		c.await("one left", u, counts(map[string]int64{"replicas": 1, "readyReplicas": 1}))
		if names := slices.Sorted(maps.Keys(uids(c.pods("db")))); !slices.Equal(names, []string{"db-2"}) {
			t.Errorf("pods %v, want db-2 alone", names)
		}

		old := &unstructured.Unstructured{}
		old.SetAPIVersion("apps.kruise.io/v1alpha1")
		old.SetKind("StatefulSet")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), old); err != nil {
			t.Errorf("v1alpha1 is not served: %v", err)
		}
	})
	t.Logf("memory %d MiB", m.RSS()>>20)
}

func TestAMemberSurvivesBeingKilled(t *testing.T) {
	kit.Long(t)
	m := start(t, "phoenix").Members()[0]
	c := connect(t, m)
	u := c.create(fmt.Sprintf(workload, "apps.kruise.io/v1alpha1", "CloneSet", "web", 2))
	c.await("ready", u, counts(map[string]int64{"readyReplicas": 2}))
	before, server, pid := uids(c.pods("web")), m.Server, m.PID()

	m.Kill()
	if m.RSS() != 0 {
		t.Error("it still has memory")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err == nil {
		t.Fatal("it still answers")
	}
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.Server != server || m.PID() == pid {
		t.Errorf("server %s, was %s; pid %d, was %d", m.Server, server, m.PID(), pid)
	}
	c.await("still there", u, counts(map[string]int64{"readyReplicas": 2}))
	if after := uids(c.pods("web")); !maps.Equal(before, after) {
		t.Errorf("pods %v, before %v", after, before)
	}
	c.patch(u, `{"spec":{"replicas":3}}`)
	c.await("and works", u, counts(map[string]int64{"readyReplicas": 3}))
}

func TestTwoMembersStartTogether(t *testing.T) {
	fleet := sharedFleet(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := fleet.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(config.Contexts)); !slices.Equal(names, []string{"east", "west"}) ||
		config.CurrentContext != "east" {
		t.Errorf("contexts %v, current %s", names, config.CurrentContext)
	}
	for _, f := range []string{file, fleet.Members()[0].Kubeconfig} {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", f, info.Mode(), err)
		}
	}
	if a, b := fleet.Members()[0], fleet.Members()[1]; a.Server == b.Server {
		t.Errorf("both serve %s", a.Server)
	}
	for _, m := range fleet.Members() {
		t.Logf("memory of %s: %d MiB", m.Name, m.RSS()>>20)
	}
}

func TestFailedStartOfAMemberIsExplained(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := os.MkdirAll(filepath.Join(dir, "late"), 0o700); err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprintf(`{"Port": %d}`, taken.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(dir, "late", "member.json"), []byte(told), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = sim.Start(t.Context(), sim.Options{Dir: dir, Members: []sim.Member{{Name: "late"}, {Name: "fine"}}})
	if err == nil || !strings.Contains(err.Error(), `member "late"`) ||
		!strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

// The parent is a process of its own here, which is killed.
func TestMembersDieWithTheirParent(t *testing.T) {
	kit.Long(t)
	parent := exec.Command(os.Args[0], parentVerb, t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the member does not run: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	cluster{t: t}.eventually("the member is gone", func() bool { return !running(pid) })
}

// running reports whether the process runs. A zombie does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

const parentVerb = "parent"

func parentMain(dir string) error {
	fleet, err := sim.Start(context.Background(), sim.Options{Dir: dir, Members: []sim.Member{{Name: "orphan", Nodes: 1}}})
	if err != nil {
		return err
	}
	fmt.Println(fleet.Members()[0].PID())
	select {}
}
