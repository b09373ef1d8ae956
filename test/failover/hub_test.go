package failover

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// four is a fleet of four members, whose failover pauses when more than half of them are lost.
type four struct {
	*kit.Fleet
	t    *testing.T
	args []string
}

// fourMembers breaks the hub of a fleet of four members, and then three of the members.
func fourMembers(t *testing.T) {
	f := &four{t: t, args: hubArgs("0.5")}
	// b4 has the most room, so that all that is not divided goes there.
	members := []sim.Member{{Name: "b1"}, {Name: "b2"}, {Name: "b3"}, {Name: "b4", NodeCPU: "64"}}
	var err error
	if f.Fleet, err = kit.StartWith(lab.Options{Dir: filepath.Join(folder, "four"), HubArgs: f.args,
		Members: members}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	ns := f.Namespace(t)
	everywhere := "clusterAffinity: {clusterNames: [b1, b2, b3, b4]}, "
	replicas := map[string]int32{"web": 8}
	objects := policy(ns, "web", everywhere+divided) + deployment(ns, "web", 8, "100m", "")
	for i := range 20 {
		name := fmt.Sprintf("solo-%d", i)
		replicas[name] = 1
		objects += policy(ns, name, everywhere+aggregated) + deployment(ns, name, 1, "1", "")
	}
	f.Hub.Apply(t, objects)
	all := []kit.Cluster{f.Members["b1"], f.Members["b2"], f.Members["b3"], f.Members["b4"]}
	f.hubKilled(newDrill(t, f.Fleet, ns, all, []string{"b4"}, replicas))
	f.threeLost(newDrill(t, f.Fleet, ns, all, []string{"b1", "b2", "b3"}, replicas))
}

// member is one of the members by its number.
func (f *four) member(n int) *sim.Running { return f.Lab.Fleet.Members()[n-1] }

// restartHub kills the hub and starts it again.
func (f *four) restartHub() {
	f.t.Helper()
	f.Lab.Hub.Kill()
	ctx, cancel := within(startTimeout)
	defer cancel()
	if err := f.Lab.Hub.Start(ctx, f.args...); err != nil {
		f.t.Fatal(err)
	}
}

// The hub is killed while workloads tolerate that their cluster is lost, and again while it evicts them. Then their
// replacements do not become ready for a while.
func (f *four) hubKilled(d *drill) {
	t := f.t
	t.Helper()
	if got, err := d.copies(f.Members["b4"]); err != nil || len(got) != 21 {
		t.Fatalf("b4 has %v (%v), want all 21 Deployments", got, err)
	}
	bad := fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: bad, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: solo-0}, {apiVersion: apps/v1, kind: Deployment, name: solo-1}]
  overrideRules: [{targetCluster: {clusterNames: [b1, b2, b3]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: bad}]}}]`, d.ns)
	f.Hub.Apply(t, bad)
	d.breaks(silent, f.member(4).Kill)
	d.noticed()
	added := func() time.Time {
		c, err := d.cluster("b4")
		if err != nil {
			t.Fatal(err)
		}
		return lossTaint(c).TimeAdded.Time
	}
	lost := added()
	f.restartHub()
	if again := added(); !again.Equal(lost) {
		t.Errorf("the taint is of %v, and was of %v before the hub was killed", again, lost)
	}

	// tasks are when workloads left b4.
	tasks := func() map[string]time.Time {
		bindings, err := d.bindings()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]time.Time{}
		for name, b := range bindings {
			for _, task := range b.Spec.GracefulEvictionTasks {
				all[name] = task.CreationTimestamp.Time
			}
		}
		return all
	}
	var left map[string]time.Time
	kit.Eventually(t, "the first workload leaves", func() string {
		if left = tasks(); len(left) == 0 {
			return "none has left"
		}
		return ""
	})
	f.restartHub()
	t.Logf("the hub was killed when %d of %d workloads had left", len(left), len(d.replicas))
	d.evicted()
	// The replacements of two are not healthy, so their old copies are kept.
	kit.Eventually(t, "the evictions of all others end", func() string {
		if now := tasks(); len(now) != 2 {
			return fmt.Sprint("not ended are ", now)
		}
		return ""
	})
	for name, at := range tasks() {
		if was, known := left[name]; known && !was.Equal(at) || !strings.HasPrefix(name, "solo-") {
			t.Errorf("%s left at %v, and before the hub was killed at %v", name, at, left[name])
		}
	}
	f.restartHub()
	// A plan ends evictions before it counts what waits.
	f.counts("argosy_failover_waiting{")
	if now := tasks(); len(now) != 2 {
		t.Errorf("a restart of the hub ended evictions: %v are left", now)
	}
	f.Hub.Remove(t, "policy.karmada.io/v1alpha1", "OverridePolicy", d.ns, "bad")
	d.replaced()
	d.mends(func() {
		ctx, cancel := within(startTimeout)
		defer cancel()
		if err := f.member(4).Restart(ctx); err != nil {
			t.Fatal(err)
		}
	})
	d.back()
	d.stop()
	d.ends("hub killed three times meanwhile", false)
}

// When three of four members are lost at once, nothing moves.
func (f *four) threeLost(d *drill) {
	t := f.t
	t.Helper()
	signal := func(s syscall.Signal) {
		for n := range 3 {
			if err := syscall.Kill(f.member(n+1).PID(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.breaks(silent, func() { signal(syscall.SIGSTOP) })
	d.noticed()
	paused := func(name string) bool {
		c, err := d.cluster(name)
		if err != nil {
			t.Fatal(err)
		}
		return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
	}
	for _, name := range d.lost {
		kit.Eventually(t, "failover is paused for "+name, func() string {
			if !paused(name) {
				return "it has no such condition"
			}
			return ""
		})
		f.waitForEvent(name, "FailoverPaused")
	}
	f.counts("argosy_failover_paused_clusters 3\n")
	kit.Eventually(t, "the tolerations have ended for long", func() string {
		for _, name := range d.lost {
			c, err := d.cluster(name)
			if err != nil {
				return err.Error()
			}
			taint := lossTaint(c)
			if taint == nil || time.Since(taint.TimeAdded.Time) < tolerated+10*time.Second {
				return fmt.Sprintf("%s has the taint %v", name, taint)
			}
		}
		return ""
	})
	if out, err := f.Argosy(t.Context(), "get", "failovers", "-n", d.ns); !strings.Contains(out, "FailoverPaused") {
		t.Errorf("get failovers (%v) lists:\n%s", err, out)
	}
	d.mends(func() { signal(syscall.SIGCONT) })
	d.back()
	for _, name := range d.lost {
		kit.Eventually(t, "failover is resumed for "+name, func() string {
			if paused(name) {
				return "it is paused"
			}
			return ""
		})
		f.waitForEvent(name, "FailoverResumed")
	}
	f.counts("argosy_failover_paused_clusters 0\n")
	d.back()
	d.ends("three of four members lost at once", true)
}

// waitForEvent waits for an event of a cluster.
func (f *four) waitForEvent(cluster, reason string) {
	f.t.Helper()
	kit.Eventually(f.t, "there is an event "+reason+" of "+cluster, func() string {
		if len(f.Hub.Messages(f.t, "Cluster", "", cluster, reason)) == 0 {
			return "there is none"
		}
		return ""
	})
}

// counts waits until the metrics of the hub contain a text.
func (f *four) counts(want string) {
	f.t.Helper()
	config, err := f.Lab.Hub.Config()
	if err != nil {
		f.t.Fatal(err)
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	kit.Eventually(f.t, "the metrics have "+want, func() string {
		raw, err := hub.RESTClient().Get().AbsPath("/metrics").DoRaw(f.t.Context())
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(raw), want) {
			return "they do not"
		}
		return ""
	})
}
