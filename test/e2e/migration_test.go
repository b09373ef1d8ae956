package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/examples"
	"github.com/argosy-io/argosy/test/kit"
)

// podLog is what a watch saw of the pods of a namespace in a member.
type podLog struct {
	mu     sync.Mutex
	first  map[string]string // what each pod ran at first, by UID
	events []string          // that changed the pods: one added, deleted, restarted or moved
}

// ran is what a pod runs, which a migration must not change.
func ran(p *corev1.Pod) string {
	out := fmt.Sprint(p.Spec.NodeName, p.DeletionTimestamp != nil)
	for _, c := range p.Status.ContainerStatuses {
		out += fmt.Sprint(" ", c.Name, c.ContainerID, c.RestartCount)
	}
	return out
}

// watchPods watches the pods of a namespace until the test ends, without a gap since it read them.
func watchPods(t *testing.T, member, ns string) *podLog {
	t.Helper()
	c, err := kubernetes.NewForConfig(fleet.Members[member].Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := &podLog{first: map[string]string{}}
	for i := range list.Items {
		log.first[string(list.Items[i].UID)] = ran(&list.Items[i])
	}
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := c.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range watch.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				log.note(fmt.Sprintf("the watch ended: %v", e.Object))
				continue
			}
			if first, known := log.first[string(p.UID)]; !known || e.Type == "DELETED" || first != ran(p) {
				log.note(fmt.Sprintf("%s %s: %s, and %s at first", e.Type, p.Name, ran(p), first))
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return log
}

func (l *podLog) note(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// unchanged fails the test if a pod was made, deleted, restarted or moved.
func (l *podLog) unchanged(t *testing.T, step, member string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) > 0 {
		t.Fatalf("%s: pods of %s changed:\n%s", step, member, strings.Join(l.events, "\n"))
	}
}

// revisions are the names of the revisions of workloads in a namespace of a member.
func revisions(t *testing.T, member, ns string) []string {
	t.Helper()
	c, err := kubernetes.NewForConfig(fleet.Members[member].Config)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := c.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.AppsV1().ControllerRevisions(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sets.Items {
		names = append(names, s.Name)
	}
	for _, r := range stored.Items {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// marksOf are the labels, annotations and managers of an object.
func marksOf(u *unstructured.Unstructured) string {
	managers := map[string]bool{}
	for _, e := range u.GetManagedFields() {
		managers[e.Manager] = true
	}
	annotations := u.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	return fmt.Sprint(u.GetLabels(), annotations, slices.Sorted(maps.Keys(managers)))
}

// Two clusters with workloads of their own become a part of the fleet and leave it again. A watch on each sees no pod
// that was made, deleted, restarted or moved (M1), and nothing of the hub is left (M2 to M4, M10).
func TestWorkloadsOfTwoClustersAreMigratedInAndOut(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	members := []string{"m1", "m2"}
	workloads := []struct{ apiVersion, kind, name string }{
		{"apps.kruise.io/v1alpha1", "CloneSet", "web"}, {"apps/v1", "Deployment", "api"},
	}
	content := func(member string, i int) *unstructured.Unstructured {
		w := workloads[i]
		replicas := 2
		if member == "m2" {
			replicas = 3
		}
		return kit.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s, labels: {tier: backend}},
			spec: {replicas: %d, selector: {matchLabels: {app: %[3]s}}, template: {metadata: {labels: {app: %[3]s}},
			spec: {containers: [{name: main, image: "%[6]s.example.com/shop:1", env: [{name: CLUSTER, value: %[6]s}]}]}}}}`,
			w.apiVersion, w.kind, w.name, ns, replicas, member))
	}
	apply := func(member string, u *unstructured.Unstructured) error {
		return fleet.Members[member].Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u),
			client.FieldOwner("kubectl"))
	}
	find := func(member string, i int) *unstructured.Unstructured {
		w := workloads[i]
		return fleet.Members[member].Find(t, w.apiVersion, w.kind, ns, w.name)
	}

	// 1. The clusters run them without the hub.
	before, logs, revised := map[string]*unstructured.Unstructured{}, map[string]*podLog{}, map[string][]string{}
	for _, m := range members {
		kit.Eventually(t, "the namespace is there", func() string {
			if fleet.Members[m].Find(t, "v1", "Namespace", "", ns) == nil {
				return "it is not"
			}
			return ""
		})
		for i := range workloads {
			u := content(m, i)
			if err := apply(m, u); err != nil {
				t.Fatal(err)
			}
			fleet.Members[m].RemoveAtEnd(t, u)
			kit.Eventually(t, "its pods run", func() string {
				now := find(m, i)
				if kit.Field(now, "status", "readyReplicas") != kit.Field(now, "spec", "replicas") ||
					kit.Field(now, "status", "observedGeneration") != now.GetGeneration() {
					return fmt.Sprint(kit.Field(now, "status"))
				}
				return ""
			})
		}
	}
	for _, m := range members {
		for i := range workloads {
			before[m+workloads[i].kind] = find(m, i)
		}
		logs[m], revised[m] = watchPods(t, m, ns), revisions(t, m, ns)
		if len(logs[m].first) == 0 || len(revised[m]) < len(workloads) {
			t.Fatalf("%s has pods %v and revisions %v", m, logs[m].first, revised[m])
		}
	}
	unchanged := func(step string, managed bool) {
		t.Helper()
		for _, m := range members {
			logs[m].unchanged(t, step, m)
			if now := revisions(t, m, ns); !slices.Equal(now, revised[m]) {
				t.Fatalf("%s: revisions of %s are %v, and were %v", step, m, now, revised[m])
			}
			for i, w := range workloads {
				is, was := find(m, i), before[m+w.kind]
				// Annotations alone make a new generation of a Deployment.
				same := w.kind == "Deployment" || is.GetGeneration() == was.GetGeneration()
				if is.GetUID() != was.GetUID() || !same || !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) ||
					(is.GetLabels()["karmada.io/managed"] == "true") != managed {
					t.Fatalf("%s: %s in %s is %v, and was %v", step, w.kind, m, is.Object, was.Object)
				}
				if !managed && marksOf(is) != marksOf(was) {
					t.Fatalf("%s: %s in %s has %s, and had %s", step, w.kind, m, marksOf(is), marksOf(was))
				}
			}
		}
	}

	// 2. The file of the documentation, for these clusters.
	raw, err := examples.Files.ReadFile("migration/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "migration.yaml")
	text := strings.NewReplacer("namespace: shop", "namespace: "+ns, "[eu, us]", "[m1, m2]").Replace(string(raw))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	// 3. A user needs the right to reach the members, and the rights in them.
	alice := "alice-" + ns
	refused := func(why string, args ...string) {
		t.Helper()
		kit.Eventually(t, "alice is refused: "+why, func() string {
			out, err := command(t, append([]string{"--kubeconfig=" + kubeconfigAs(t, alice), "migrate"}, args...)...)
			if err == nil || !strings.Contains(out, why) {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
	refused("forbidden", "in", "-f", file)
	refused("forbidden", "out", "--all", "-n", ns)
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-migrate}
subjects: [{kind: User, name: %[2]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: cluster-admin, apiGroup: rbac.authorization.k8s.io}`, ns, alice))
	refused(fmt.Sprintf(`User %q cannot list resource "deployments"`, alice), "in", "-f", file)
	unchanged("a user without rights", false)
	if u := fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web"); u != nil {
		t.Fatal("a user without rights has created a template")
	}

	// 4. Observe, Shadow, Own.
	run := func(args ...string) string {
		t.Helper()
		out, err := command(t, append([]string{"migrate"}, args...)...)
		if err != nil {
			t.Fatalf("argosy migrate %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	if out := run("plan", "-f", file); strings.Count(out, "only labels and annotations of the hub") != 4 ||
		strings.Count(out, "override for m") != 2 || strings.Count(out, `"kubectl" wrote it at`) != 4 {
		t.Fatal(out)
	}
	unchanged("plan", false)
	run("in", "-f", file, "--shadow")
	unchanged("Shadow", false)
	if out := run("in", "-f", file, "--soak", "1s"); strings.Count(out, "is in Own") != 4 {
		t.Fatal(out)
	}
	unchanged("Own", true)
	if out := run("status", "-n", ns); strings.Count(out, "Own") != 4 {
		t.Fatal(out)
	}
	for _, w := range workloads {
		waitFor(t, "the template has the status of both clusters", int64(5), func() int64 {
			n, _ := kit.Field(fleet.Hub.Find(t, w.apiVersion, w.kind, ns, w.name), "status", "readyReplicas").(int64)
			return n
		})
	}

	// 5. Out, first of one cluster.
	run("out", "cloneset.apps.kruise.io", "web", "-n", ns, "--cluster", "m2")
	for _, m := range members {
		logs[m].unchanged(t, "out of m2", m)
	}
	run("in", "cloneset.apps.kruise.io", "web", "-n", ns, "--cluster", "m1,m2")
	unchanged("in again", true)
	if out := run("out", "-f", file); strings.Count(out, "is released") != 4 {
		t.Fatal(out)
	}
	unchanged("out", false)
	// The hub prefers another version of the kind than the one that the members serve.
	if out := run("plan", "cloneset.apps.kruise.io", "web", "-n", ns, "--cluster", "m1,m2"); strings.Count(out,
		"only labels and annotations of the hub") != 2 {
		t.Fatal(out)
	}
	for i, w := range workloads {
		if fleet.Hub.Find(t, w.apiVersion, w.kind, ns, w.name) != nil {
			t.Errorf("the template of %s is still on the hub", w.kind)
		}
		for _, m := range members {
			u := content(m, i)
			u.SetAnnotations(map[string]string{"applied": "again"})
			if err := apply(m, u); err != nil {
				t.Errorf("the first manager cannot apply %s in %s: %v", w.kind, m, err)
			}
		}
	}
}
