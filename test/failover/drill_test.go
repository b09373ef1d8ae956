package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	// lookPeriod is the time between two looks at a drill: figures are as exact as that.
	lookPeriod = 500 * time.Millisecond
	// lookTimeout bounds one look at an API server.
	lookTimeout = time.Second
)

// drill are Deployments in a namespace, of which a part runs in the clusters that a fault is about. It looks at them
// all the time.
type drill struct {
	t     *testing.T
	fleet *kit.Fleet
	ns    string
	// members may run the Deployments. lost are those that the fault is about.
	members []kit.Cluster
	lost    []string
	// replicas are the Deployments of the drill.
	replicas map[string]int32

	mu sync.Mutex
	// broken are the members that the hub does not reach, silent those of them that do not respond at all.
	broken, silent map[string]bool
	looks          []look
	// had are the Deployments that each member had at the last look.
	had map[string]map[string]copyOf
	// wrong are violations of invariants. unknown are cases in which a member did not respond, so that there may have
	// been a violation.
	wrong, unknown []string

	broke, mended time.Time
	pods          map[types.UID]string // pods at the start of the fault, and their members
	stop          func()
}

// look is what was seen at one time.
type look struct {
	at time.Time
	// reachable are ready replicas in members that are not broken, elsewhere those in members that the fault is not
	// about, running those in all members that answer.
	reachable, elsewhere, running int32
	// ready is true if all lost clusters have the condition Ready, notReady if none has. Neither is known while the hub
	// is down.
	ready, notReady bool
	// evicting is the number of graceful eviction tasks.
	evicting int
	// old is the number of Deployments in lost members; -1 if one of them did not answer.
	old int
}

// copyOf is a Deployment in one member.
type copyOf struct {
	uid         types.UID
	spec, ready int32
}

// total are the replicas of all Deployments.
func (d *drill) total() (n int32) {
	for _, replicas := range d.replicas {
		n += replicas
	}
	return n
}

// newDrill waits until the workloads are placed and run, and starts to look.
func newDrill(t *testing.T, f *kit.Fleet, ns string, members []kit.Cluster, lost []string,
	replicas map[string]int32) *drill {
	t.Helper()
	d := &drill{t: t, fleet: f, ns: ns, members: members, lost: lost, replicas: replicas,
		broken: map[string]bool{}, silent: map[string]bool{}, had: map[string]map[string]copyOf{}}
	kit.Eventually(t, "all replicas run", func() string { return d.unsettled() })
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(lookPeriod); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				d.look()
			}
		}
	}()
	d.stop = sync.OnceFunc(func() { close(end); <-ended })
	t.Cleanup(d.stop)
	return d
}

func (d *drill) isLost(member string) bool { return slices.Contains(d.lost, member) }

// copies are the Deployments of the drill in a member.
func (d *drill) copies(c kit.Cluster) (map[string]copyOf, error) {
	ctx, cancel := within(lookTimeout)
	defer cancel()
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.InNamespace(d.ns)); err != nil {
		return nil, err
	}
	found := map[string]copyOf{}
	for _, item := range list.Items {
		if _, ours := d.replicas[item.Name]; ours {
			found[item.Name] = copyOf{item.UID, *item.Spec.Replicas, item.Status.ReadyReplicas}
		}
	}
	return found, nil
}

// look notes what is there now.
func (d *drill) look() {
	d.mu.Lock()
	broken, mute := maps.Clone(d.broken), maps.Clone(d.silent)
	d.mu.Unlock()
	seen := look{at: time.Now()}
	for _, m := range d.members {
		if mute[m.Name] {
			seen.old = -1
			continue
		}
		now, err := d.copies(m)
		if err != nil {
			return // too late, or about to be broken
		}
		for name, was := range d.had[m.Name] {
			if is, there := now[name]; !there || is.uid != was.uid {
				d.deleted(m.Name, name)
			}
		}
		d.had[m.Name] = now
		for _, c := range now {
			seen.running += c.ready
			if !broken[m.Name] {
				seen.reachable += c.ready
			}
			if !d.isLost(m.Name) {
				seen.elsewhere += c.ready
			} else if seen.old >= 0 {
				seen.old++
			}
		}
	}
	d.lookAtHub(&seen)
	d.mu.Lock()
	d.looks = append(d.looks, seen)
	d.mu.Unlock()
}

// deleted checks that a Deployment that has left a member has its replicas ready in the others. Silent members have
// none. If another member does not answer, and the replicas of the rest do not suffice, the result is not known.
func (d *drill) deleted(member, name string) {
	d.mu.Lock()
	mute := map[string]bool{}
	if d.mended.IsZero() { // later, a member may respond to the hub before it is marked as mended
		mute = maps.Clone(d.silent)
	}
	d.mu.Unlock()
	var ready int32
	var failed []string
	for _, other := range d.members {
		if other.Name == member || mute[other.Name] {
			continue
		}
		now, err := d.copies(other)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", other.Name, err))
			continue
		}
		ready += now[name].ready
	}
	switch {
	case ready >= d.replicas[name]:
	case len(failed) > 0:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unknown = append(d.unknown, fmt.Sprintf("Deployment %s left member %s; its ready replicas are not known: %s", name,
			member, strings.Join(failed, "; ")))
	default:
		d.violated("Deployment %s left member %s while %d of %d replicas were ready in the others", name, member, ready,
			d.replicas[name])
	}
}

func (d *drill) violated(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = append(d.wrong, fmt.Sprintf(format, args...))
}

// lookAtHub notes what the hub knows. While the hub is down, nothing is known.
func (d *drill) lookAtHub(seen *look) {
	ctx, cancel := within(lookTimeout)
	defer cancel()
	var clusters clusterv1alpha1.ClusterList
	if d.fleet.Hub.List(ctx, &clusters) != nil {
		return
	}
	seen.ready, seen.notReady = true, true
	for _, c := range clusters.Items {
		if d.isLost(c.Name) {
			is := meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
			seen.ready, seen.notReady = seen.ready && is, seen.notReady && !is
		}
	}
	var bindings workv1alpha2.ResourceBindingList
	if d.fleet.Hub.List(ctx, &bindings, client.InNamespace(d.ns)) == nil {
		for _, b := range bindings.Items {
			seen.evicting += len(b.Spec.GracefulEvictionTasks)
		}
	}
	var templates appsv1.DeploymentList
	if d.fleet.Hub.List(ctx, &templates, client.InNamespace(d.ns)) != nil {
		return
	}
	for _, tmpl := range templates.Items {
		if tmpl.Status.ReadyReplicas > *tmpl.Spec.Replicas {
			d.violated("the hub counts %d ready replicas of %d of Deployment %s", tmpl.Status.ReadyReplicas, *tmpl.Spec.Replicas,
				tmpl.Name)
		}
	}
}

// bindings of the drill's Deployments, by name.
func (d *drill) bindings() (map[string]workv1alpha2.ResourceBinding, error) {
	ctx, cancel := within(kit.Timeout)
	defer cancel()
	var list workv1alpha2.ResourceBindingList
	if err := d.fleet.Hub.List(ctx, &list, client.InNamespace(d.ns)); err != nil {
		return nil, err
	}
	all := map[string]workv1alpha2.ResourceBinding{}
	for _, b := range list.Items {
		if _, ours := d.replicas[b.Spec.Resource.Name]; ours && b.Spec.Resource.Kind == "Deployment" {
			all[b.Spec.Resource.Name] = b
		}
	}
	if len(all) != len(d.replicas) {
		return nil, fmt.Errorf("%d of %d bindings exist", len(all), len(d.replicas))
	}
	return all, nil
}

// cluster is a Cluster of the hub.
func (d *drill) cluster(name string) (*clusterv1alpha1.Cluster, error) {
	ctx, cancel := within(kit.Timeout)
	defer cancel()
	c := &clusterv1alpha1.Cluster{}
	return c, d.fleet.Hub.Get(ctx, client.ObjectKey{Name: name}, c)
}

// unsettled returns what keeps the workloads from running as they are placed: each replica once, and nothing else.
func (d *drill) unsettled() string {
	bindings, err := d.bindings()
	if err != nil {
		return err.Error()
	}
	want := map[string]int32{} // by member and Deployment
	for name, b := range bindings {
		var sum int32
		for _, target := range b.Spec.Clusters {
			want[target.Name+" "+name] = target.Replicas
			sum += target.Replicas
		}
		if sum != d.replicas[name] || len(b.Spec.GracefulEvictionTasks) > 0 {
			return fmt.Sprintf("Deployment %s is placed as %v with %d evictions", name, b.Spec.Clusters,
				len(b.Spec.GracefulEvictionTasks))
		}
	}
	for _, m := range d.members {
		now, err := d.copies(m)
		if err != nil {
			return err.Error()
		}
		for name := range d.replicas {
			is, there := now[name]
			if replicas, placed := want[m.Name+" "+name]; there != placed || is.spec != replicas || is.ready != replicas {
				return fmt.Sprintf("Deployment %s in %s is %+v, want %d replicas", name, m.Name, is, replicas)
			}
		}
	}
	pods, err := d.podsNow()
	if err != nil {
		return err.Error()
	}
	if len(pods) != int(d.total()) {
		return fmt.Sprintf("%d pods exist, want %d", len(pods), d.total())
	}
	return ""
}

// podsNow are the pods of the drill's Deployments, and their members. Those that are being deleted count, too.
func (d *drill) podsNow() (map[types.UID]string, error) {
	ctx, cancel := within(kit.Timeout)
	defer cancel()
	pods := map[types.UID]string{}
	for _, m := range d.members {
		var list corev1.PodList
		if err := m.List(ctx, &list, client.InNamespace(d.ns)); err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			if _, ours := d.replicas[p.Labels["app"]]; ours {
				pods[p.UID] = m.Name
			}
		}
	}
	return pods, nil
}

// reach is who reaches a member during a fault.
type reach int

const (
	// late is a member that everybody reaches.
	late reach = iota
	// cutOff is a member that the hub does not reach. It goes on, and the test sees it.
	cutOff
	// silent is a member that is unreachable.
	silent
)

// breaks begins a fault.
func (d *drill) breaks(how reach, fault func()) {
	d.t.Helper()
	var err error
	if d.pods, err = d.podsNow(); err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.looks = nil
	d.broke = time.Now()
	d.mu.Unlock()
	d.breaksAgain(how, fault)
}

// breaksAgain begins another fault of the same row.
func (d *drill) breaksAgain(how reach, fault func()) {
	d.mu.Lock()
	for _, m := range d.lost {
		d.broken[m], d.silent[m] = how != late, how == silent
	}
	d.mended = time.Time{}
	d.mu.Unlock()
	fault()
}

// mends ends a fault.
func (d *drill) mends(mend func()) {
	d.t.Helper()
	d.mu.Lock()
	d.mended = time.Now()
	d.mu.Unlock()
	mend()
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.broken)
	clear(d.silent)
}

// noticed waits until all lost clusters are not Ready and have their NoExecute taint, dated by the clock of the hub.
func (d *drill) noticed() {
	d.t.Helper()
	kit.Eventually(d.t, "the hub notices", func() string {
		for _, name := range d.lost {
			c, err := d.cluster(name)
			if err != nil {
				return err.Error()
			}
			taint := lossTaint(c)
			if taint == nil {
				return name + " has no NoExecute taint"
			}
			// A time of the API has whole seconds.
			if added := taint.TimeAdded.Time; added.Before(d.broke.Add(-time.Second)) || added.After(time.Now()) {
				d.t.Fatalf("the taint of %s is of %v; the fault is of %v", name, added, d.broke)
			}
		}
		return ""
	})
}

// lossTaint is the taint with which workloads leave a cluster that is lost; nil if it has none.
func lossTaint(c *clusterv1alpha1.Cluster) *corev1.Taint {
	for i, taint := range c.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute && strings.HasPrefix(taint.Key, "cluster.karmada.io/") &&
			taint.TimeAdded != nil {
			return &c.Spec.Taints[i]
		}
	}
	return nil
}

// evicted waits until all workloads have left the lost cluster, and checks that they did not leave before their
// toleration ended, by the clock of the hub.
func (d *drill) evicted() {
	d.t.Helper()
	kit.Eventually(d.t, "the workloads leave the lost cluster", func() string {
		bindings, err := d.bindings()
		if err != nil {
			return err.Error()
		}
		c, err := d.cluster(d.lost[0])
		if err != nil {
			return err.Error()
		}
		taint := lossTaint(c)
		for name, b := range bindings {
			for _, target := range b.Spec.Clusters {
				if d.isLost(target.Name) {
					return fmt.Sprintf("Deployment %s is placed as %v", name, b.Spec.Clusters)
				}
			}
			for _, task := range b.Spec.GracefulEvictionTasks {
				if taint != nil && task.CreationTimestamp.Time.Before(taint.TimeAdded.Add(tolerated-time.Second)) {
					d.t.Fatalf("Deployment %s left %s at %v, and the taint is of %v", name, d.lost[0], task.CreationTimestamp,
						taint.TimeAdded)
				}
			}
		}
		return ""
	})
}

// replaced waits until all replicas are ready in other members.
func (d *drill) replaced() {
	d.t.Helper()
	d.evicted()
	kit.Eventually(d.t, "all replicas are ready elsewhere", func() string {
		ready := map[string]int32{}
		for _, m := range d.members {
			if d.isLost(m.Name) {
				continue
			}
			now, err := d.copies(m)
			if err != nil {
				return err.Error()
			}
			for name, c := range now {
				ready[name] += c.ready
			}
		}
		if !maps.Equal(ready, d.replicas) {
			return fmt.Sprintf("ready are %v, want %v", ready, d.replicas)
		}
		return ""
	})
	kit.Eventually(d.t, "the evictions end", func() string {
		bindings, err := d.bindings()
		if err != nil {
			return err.Error()
		}
		for name, b := range bindings {
			if len(b.Spec.GracefulEvictionTasks) > 0 {
				return "that of " + name + " has not ended"
			}
		}
		return ""
	})
}

// back waits until the clusters are Ready and each replica runs once.
func (d *drill) back() {
	d.t.Helper()
	kit.Eventually(d.t, "the clusters are back", d.stillLost)
	kit.Eventually(d.t, "each replica runs once", d.unsettled)
	settled := time.Now()
	kit.Eventually(d.t, "a look sees it", func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := len(d.looks); n == 0 || d.looks[n-1].at.Before(settled) {
			return "the last one is older"
		}
		return ""
	})
}

// stillLost returns which cluster is not Ready, or has a taint.
func (d *drill) stillLost() string {
	for _, name := range d.lost {
		c, err := d.cluster(name)
		if err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(c.Spec.Taints) > 0 {
			return fmt.Sprintf("%s has the taints %v", name, c.Spec.Taints)
		}
	}
	return ""
}

// ends checks a fault that is over, and adds its row to the table. stays is true if nothing was to move, so that all
// pods are the same as before; otherwise those of clusters that were not lost are.
func (d *drill) ends(fault string, stays bool) {
	d.t.Helper()
	pods, err := d.podsNow()
	if err != nil {
		d.t.Fatal(err)
	}
	for uid, member := range d.pods {
		if _, runs := pods[uid]; !runs && (stays || !d.isLost(member)) {
			d.t.Errorf("%s: a pod in %s was replaced", fault, member)
		}
	}
	for uid, member := range pods {
		if d.isLost(member) && d.pods[uid] == "" {
			d.t.Errorf("%s: %s has a new pod", fault, member)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, wrong := range d.wrong {
		d.t.Errorf("%s: %s", fault, wrong)
	}
	for _, unknown := range d.unknown {
		d.t.Logf("%s: %s", fault, unknown)
	}
	d.wrong, d.unknown = nil, nil
	row := d.row(fault)
	row.lost, row.twice = max(0, int(d.total())-len(pods)), max(0, len(pods)-int(d.total()))
	if stays && row.evicted != nil {
		d.t.Errorf("%s: a workload was evicted", fault)
	}
	table.add(row)
	d.t.Log(row)
}

// row are the figures of a fault.
func (d *drill) row(fault string) row {
	r := row{fault: fault, total: d.total(), least: d.total()}
	first := func(since time.Time, is func(look) bool) *time.Duration {
		for _, l := range d.looks {
			if !since.IsZero() && l.at.After(since) && is(l) {
				return new(l.at.Sub(since))
			}
		}
		return nil
	}
	r.noticed = first(d.broke, func(l look) bool { return l.notReady })
	r.evicted = first(d.broke, func(l look) bool { return l.evicting > 0 })
	if r.evicted != nil {
		r.replaced = first(d.broke, func(l look) bool { return l.elsewhere == d.total() })
		r.removed = first(d.mended, func(l look) bool { return l.old == 0 && l.ready })
	}
	if r.noticed != nil {
		r.back = first(d.mended, func(l look) bool { return l.ready })
	}
	for _, l := range d.looks {
		r.least, r.most = min(r.least, l.reachable), max(r.most, l.running)
	}
	return r
}

// row of the table. Times that are nil did not happen.
type row struct {
	fault string
	// noticed, evicted and replaced are times since the fault began, back and removed since it ended.
	noticed, evicted, replaced, back, removed *time.Duration
	// least and most are the fewest ready replicas that the hub could reach, and the most that ran anywhere, of a total.
	least, most, total int32
	// lost are replicas that do not run in the end, twice are pods too many in the end.
	lost, twice int
}

func (r row) String() string {
	text := func(d *time.Duration) string {
		if d == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%d of %d\t%d\t%d\t%d", r.fault, text(r.noticed), text(r.evicted),
		text(r.replaced),
		text(r.back), text(r.removed), r.least, r.total, r.most, r.lost, r.twice)
}

// figures are the rows of all faults.
type figures struct {
	mu   sync.Mutex
	rows []row
}

func (f *figures) add(r row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, r)
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortFunc(f.rows, func(a, b row) int { return strings.Compare(a.fault, b.fault) })
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tnoticed\tevicted\treplaced\tback\told copy removed\tleast ready\tmost ready\tlost\ttwice")
	for _, r := range f.rows {
		fmt.Fprintln(w, r)
	}
	_ = w.Flush()
	return out.String()
}
