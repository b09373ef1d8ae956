package pods_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod returns a pod of ReplicaSet web-5d4f. text has its spec and status.
func pod(t *testing.T, name, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	yes := true
	p.Namespace, p.Name, p.CreationTimestamp = "shop", name, metav1.NewTime(now.Add(-time.Hour))
	p.Labels = map[string]string{"pod-template-hash": "5d4f"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f",
		Controller: &yes}}
	return p
}

// status returns the YAML of a pod on a node with these container statuses.
func status(containers string) string {
	return "{spec: {nodeName: n1, containers: [{name: web}]}, status: {phase: Running, containerStatuses: [" + containers +
		"]}}"
}

// summary returns the reported lines at a time.
func summary(at time.Time, all ...*corev1.Pod) string {
	l := pods.NewLedger()
	for _, p := range all {
		if t, ok := pods.TroubleOf(p); ok {
			l.Set(t)
		}
	}
	return strings.Join(pods.Summarize("m1", int64(len(all)), l.Current("", at)).Lines(), "; ")
}

func TestTroubleQuotesTheMember(t *testing.T) {
	for _, tt := range []struct{ name, pod, want string }{
		{"one that runs", status("{name: web, ready: true, state: {running: {}}}"), ""},
		{"an image that cannot be pulled",
			status(`{name: web, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "nope:1"'}}}`),
			`1 of 1 pod: ImagePullBackOff: Back-off pulling image "nope:1" (container web)`},
		{"an image that was just refused",
			status("{name: web, state: {waiting: {reason: ErrImagePull, message: 'nope:1: not found'}}}"),
			"1 of 1 pod: ErrImagePull: nope:1: not found (container web)"},
		{"an image whose name is none", status("{name: web, state: {waiting: {reason: InvalidImageName}}}"),
			"1 of 1 pod: InvalidImageName (container web)"},
		{"no node", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]}}`,
			"1 of 1 pod: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		{"a crash, waiting", status(`{name: web, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 5m0s restarting failed container=web pod=web-5d4f-a_shop(1-2)"}},
			lastState: {terminated: {exitCode: 2, reason: Error, message: "password=secret"}}}`), "1 of 1 pod: CrashLoopBackOff: 7 restarts, last terminated: Error, exit code 2 (container web)"},
		{"a crash, running in between", status(
			`{name: web, restartCount: 1, state: {running: {startedAt: "2026-01-01T11:50:01Z"}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}`),
			"1 of 1 pod: OOMKilled: 1 restart, last terminated: OOMKilled, exit code 137 (container web)"},
		{"a crash that a kubelet has forgotten",
			status(`{name: web, restartCount: 1, state: {running: {startedAt: "2026-01-01T11:50:00Z"}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}`),
			"1 of 1 pod: ContainersNotReady: the container is running, and not ready (container web)"},
		{"one that crashed once and is well",
			status("{name: web, ready: true, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}"), ""},
		{"a container that just ended", status("{name: web, state: {terminated: {exitCode: 1, reason: Error}}}"),
			"1 of 1 pod: Error: Error, exit code 1 (container web)"},
		{"a ConfigMap that is not there",
			status(`{name: web, state: {waiting: {reason: CreateContainerConfigError, message: 'configmap "web" not found'}}}`),
			`1 of 1 pod: CreateContainerConfigError: configmap "web" not found (container web)`},
		{"an init container that fails", `{spec: {nodeName: n1, initContainers: [{name: wait}]}, status: {phase: Pending, initContainerStatuses: [{name: wait, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}},
			lastState: {terminated: {exitCode: 1, reason: Error}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`,
			"1 of 1 pod: CrashLoopBackOff: 2 restarts, last terminated: Error, exit code 1 (container wait)"},
		{"an init container that works", `{spec: {nodeName: n1, initContainers: [{name: wait}]}, status: {phase: Pending, initContainerStatuses: [{name: wait, state: {running: {}}}],
			containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`, "1 of 1 pod: PodInitializing (container web)"},
		{"a sidecar that is not ready", `{spec: {nodeName: n1, initContainers: [{name: mesh, restartPolicy: Always}]}, status: {phase: Pending,
			initContainerStatuses: [{name: mesh, state: {running: {startedAt: "2026-01-01T11:00:00Z"}}}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`,
			"1 of 1 pod: ContainersNotReady: the container is running, and not ready (container mesh)"},
		{"what is trouble comes before what is slow",
			status("{name: a, state: {waiting: {reason: ContainerCreating}}}, {name: b, state: {waiting: {reason: ErrImagePull}}}"), "1 of 1 pod: ErrImagePull (container b)"},
		{"volumes that do not come", status("{name: web, state: {waiting: {reason: ContainerCreating}}}"),
			"1 of 1 pod: ContainerCreating (container web)"},
		{"no scheduler of that name", "{spec: {schedulerName: ours}, status: {phase: Pending}}",
			`1 of 1 pod: Pending: no scheduler has handled it; its schedulerName is "ours"`},
		{"gates, which somebody has put there for it to wait",
			`{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: gated}]}}`, ""},
		{"a helper that has done its work", `{spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [helper]"}],
			containerStatuses: [{name: helper, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: web, ready: true, state: {running: {}}}]}}`, ""},
		{"a gate that is closed beside a helper that has done its work", `{spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ReadinessGatesNotReady, message: closed}],
			containerStatuses: [{name: helper, state: {terminated: {exitCode: 0, reason: Completed}}}]}}`, "1 of 1 pod: ReadinessGatesNotReady: closed"},
		{"a kubelet that does nothing", "{spec: {nodeName: n1}, status: {phase: Pending}}",
			"1 of 1 pod: Pending: the kubelet of node n1 has not started it"},
		{"a readiness gate that is closed", `{spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ReadinessGatesNotReady, message: closed}],
			containerStatuses: [{name: web, ready: true, state: {running: {}}}]}}`, "1 of 1 pod: ReadinessGatesNotReady: closed"},
		{"one that was evicted", "{spec: {nodeName: n1}, status: {phase: Failed, reason: Evicted}}", ""},
		{"one that ended well", "{spec: {nodeName: n1}, status: {phase: Succeeded}}", ""},
		{"words that would paint a terminal",
			status(`{name: web, state: {waiting: {reason: ErrImagePull, message: "no\n\e[31msuch\timage"}}}`),
			"1 of 1 pod: ErrImagePull: no [31msuch image (container web)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pod(t, "web-5d4f-a", tt.pod)
			if got := summary(now, p); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			p.DeletionTimestamp = &metav1.Time{Time: now}
			if got := summary(now, p); got != "" {
				t.Errorf("a terminating pod has the trouble %s", got)
			}
		})
	}
}

func TestSlowPodBecomesTrouble(t *testing.T) {
	p := pod(t, "web-5d4f-a", `{spec: {nodeName: n1}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-01-01T12:00:00Z"}],
		containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`)
	for after, want := range map[time.Duration]string{0: "", pods.SlowAfter - time.Second: "",
		pods.SlowAfter: "1 of 1 pod: ContainerCreating (container web)"} {
		if got := summary(now.Add(after), p); got != want {
			t.Errorf("after %v: got %q, want %q", after, got, want)
		}
	}
}

func TestEqualTroublesAreGrouped(t *testing.T) {
	pulls, refused := status("{name: web, state: {waiting: {reason: ImagePullBackOff, message: back-off}}}"),
		status("{name: web, state: {waiting: {reason: ErrImagePull, message: refused}}}")
	crashes := status("{name: web, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}")
	runs := status(`{name: web, restartCount: 9, state: {running: {startedAt: "2026-01-01T11:59:00Z"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}`)
	well := status("{name: web, ready: true, state: {running: {}}}")
	all := []*corev1.Pod{pod(t, "a", well), pod(t, "b", runs), pod(t, "c", crashes), pod(t, "d", refused),
		pod(t, "e", pulls), pod(t, "f", pulls)}
	want := "3 of 6 pods: ErrImagePull: refused (container web); 2 of 6 pods: CrashLoopBackOff: 9 restarts, last terminated: Error, exit code 1 (container web)"
	if got := summary(now, all...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Texts and the number of pods come from the member and are limited.
func TestTextsFromMemberAreLimited(t *testing.T) {
	long := strings.Repeat("☸", 1<<20)
	p := pod(t, "web", status("{name: "+long+", state: {waiting: {reason: "+long+", message: "+long+
		"}}, lastState: {terminated: {exitCode: 1, reason: "+long+"}}}"))
	p.Name, p.Namespace = long, long
	got, _ := pods.TroubleOf(p)
	for what, s := range map[string]string{"reason": got.Reason, "message": got.Message, "container": got.Container,
		"name": got.Name, "namespace": got.Namespace, "end": got.Last.Reason} {
		if len(s) > 256 || s == "" || !utf8.ValidString(s) {
			t.Errorf("the %s has %d bytes", what, len(s))
		}
	}
	var many []pods.Trouble
	for i := range 4 * pods.ShownGroups {
		many = append(many, pods.Trouble{Name: fmt.Sprintf("web-%02d", i), Reason: fmt.Sprintf("Reason%02d", i)})
	}
	if r := pods.Summarize("m1", 100, many); len(r.Lines()) != pods.ShownGroups+1 ||
		r.Lines()[pods.ShownGroups] != "15 of 100 pods: other reasons" {
		t.Errorf("got %q", r.Lines())
	}
}

func TestNoTroubleHidesAnother(t *testing.T) {
	flood := func(l *pods.Ledger) {
		for i := range 4000 {
			l.Set(pods.Trouble{Namespace: "bank", Name: fmt.Sprint("flood-", i), Reason: "Unschedulable"})
			l.Set(pods.Trouble{Namespace: fmt.Sprint("team-", i), Name: "web", Reason: "ErrImagePull"})
		}
	}
	own := func(l *pods.Ledger) {
		l.Set(pods.Trouble{Namespace: "shop", Name: "web", Reason: "ImagePullBackOff"})
		l.Set(pods.Trouble{Namespace: "shop", Name: "db", Reason: "ContainerCreating", Slow: true, Since: now})
	}
	for name, order := range map[string][]func(*pods.Ledger){"a flood first": {flood, own}, "a flood last": {own, flood}} {
		l := pods.NewLedger()
		for _, set := range order {
			set(l)
		}
		count := func(namespace string, at time.Time, want int) {
			t.Helper()
			if got := len(l.Current(namespace, at)); got != want {
				t.Errorf("%s: %d troubles in namespace %q, want %d", name, got, namespace, want)
			}
		}
		count("shop", now, 1)
		count("shop", now.Add(pods.SlowAfter), 2)
		count("bank", now, 4000)
		count("team-7", now, 1)
		count("", now, 8001)
		count("nowhere", now, 0)
		for i := range 4000 {
			l.Remove("bank", fmt.Sprint("flood-", i))
			l.Remove(fmt.Sprint("team-", i), "web")
		}
		count("", now, 1)
		l.Remove("shop", "web")
		l.Remove("shop", "web")
		l.Remove("nowhere", "web")
		count("", now, 0)
	}
}

func TestPodBelongsToItsTemplate(t *testing.T) {
	asked := &workv1alpha2.ReplicaRequirements{}
	binding := func(apiVersion, kind, name string) workv1alpha2.ResourceBindingSpec {
		return workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind,
			Namespace: "shop", Name: name}}
	}
	replicated := func(kind, name string) workv1alpha2.ResourceBindingSpec {
		b := binding("example.com/v1", kind, name)
		b.ReplicaRequirements, b.Replicas = asked, 1
		return b
	}
	set := binding("example.com/v1", "TrainingJob", "train")
	set.Components = []workv1alpha2.Component{{Name: "worker", Replicas: 2}}
	bindings := []workv1alpha2.ResourceBindingSpec{
		binding("networking.istio.io/v1", "VirtualService", "web"), binding("example.com/v1", "Anything", "web"),
		replicated("App", "web"),
		binding("v1", "ConfigMap", "web"), binding("v1", "Service", "web"),
		binding("rollouts.kruise.io/v1beta1", "Rollout", "web"), binding("apps/v1", "Deployment", "web"),
		binding("argoproj.io/v1alpha1", "Rollout", "canary"), binding("apps/v1", "StatefulSet", "db"),
		binding("batch/v1", "CronJob", "night"), binding("batch/v1", "Job", "night-shift"),
		binding("apps.kruise.io/v1alpha1", "UnitedDeployment", "stores"), binding("v1", "Pod", "one"),
		replicated("Train", "night"), replicated("Train", "night-2"),
		binding("example.com/v1", "Anything", "cache"), binding("batch/v1", "CronJob", "cache"), replicated("App", "queue"),
		set,
		binding("apps/v1", "Deployment", "twice"), binding("argoproj.io/v1alpha1", "Rollout", "twice"),
		binding("argoproj.io/v1alpha1", "CronWorkflow", "weekly"),
	}
	owner := func(of capacity.Workload) string {
		var templates []workv1alpha2.ObjectReference
		for _, b := range bindings {
			if pods.HasPods(&b) {
				templates = append(templates, b.Resource)
			}
		}
		if i := pods.Owner(of, templates); i >= 0 {
			return templates[i].Kind + " " + templates[i].Name
		}
		return ""
	}
	for range 2 {
		for _, tt := range []struct{ kind, name, want string }{
			{"ReplicaSet", "web", "Deployment web"},
			{"ReplicaSet", "web-api", "App web"},
			{"ReplicaSet", "cache", ""},
			{"ReplicaSet", "cache-db", ""},
			{"ReplicaSet", "queue", "App queue"},
			{"StatefulSet", "train-worker", "TrainingJob train"},
			{"ReplicaSet", "canary", "Rollout canary"},
			{"ReplicaSet", "twice", "Deployment twice"},
			{"StatefulSet", "db", "StatefulSet db"},
			{"StatefulSet", "db-2", ""},
			{"Job", "night-28999", "CronJob night"},
			{"Job", "night-shift", "Job night-shift"},
			{"Workflow", "weekly-1", "CronWorkflow weekly"},
			{"CloneSet", "stores-eu-x7k", "UnitedDeployment stores"},
			{"Pod", "one", "Pod one"},
			{"Pod", "web", ""},
			{"DaemonSet", "members-own", ""},
		} {
			if got := owner(capacity.Workload{Namespace: "shop", Kind: tt.kind, Name: tt.name}); got != tt.want {
				t.Errorf("%s %s belongs to %q, want %q", tt.kind, tt.name, got, tt.want)
			}
		}
		slices.Reverse(bindings) // a cache lists them in any order
	}
	if of := owner(capacity.Workload{Namespace: "bank", Kind: "ReplicaSet", Name: "web"}); of != "" {
		t.Errorf("a pod of another namespace belongs to %v", of)
	}
}
