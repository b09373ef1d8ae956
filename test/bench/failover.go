package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

const (
	// lostMember has all workloads at first, nextMember takes over.
	lostMember, nextMember = "member1", "member2"
	// tolerated is how long workloads tolerate the loss: long enough for the hub to have written all that the loss itself
	// costs.
	tolerated = 45 * time.Second
)

// failover measures how workloads leave a member that is lost. It takes five to ten minutes.
func failover(ctx context.Context, o Options) ([]Row, error) {
	if o.Failovers == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	o.Say("failover of %d Deployments: starting a hub and 2 members", o.Failovers)
	lo := lab.Options{Binary: o.Binary, Dir: o.Dir + "/failover", HubArgs: o.HubArgs}
	for _, name := range []string{lostMember, nextMember} {
		lo.Members = append(lo.Members, sim.Member{Name: name, Nodes: 1 + o.Failovers/200})
	}
	l, err := lab.Start(ctx, lo)
	if err != nil {
		return nil, err
	}
	defer l.Stop() // the figures are taken
	f, err := newFleet(l)
	if err != nil {
		return nil, err
	}
	config, err := l.Hub.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	rows, err := f.measureFailover(ctx, o, c)
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	return rows, nil
}

func (f *fleet) measureFailover(ctx context.Context, o Options, c client.WithWatch) ([]Row, error) {
	// 1. All workloads run in one member.
	o.Say("failover of %d Deployments: creating them", o.Failovers)
	w := deployments(o.Failovers)
	w.placement = map[string]any{
		"clusterAffinities": []any{
			map[string]any{"affinityName": "first", "clusterNames": []any{lostMember}},
			map[string]any{"affinityName": "next", "clusterNames": []any{nextMember}}},
		"clusterTolerations": []any{
			toleration(clusterv1alpha1.TaintNotReady), toleration(clusterv1alpha1.TaintUnreachable)},
		"replicaScheduling": map[string]any{"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
	w.failover = map[string]any{"cluster": map[string]any{"purgeMode": string(policyv1alpha1.PurgeModeGracefully)}}
	if err := f.policy(ctx, w); err != nil {
		return nil, err
	}
	if err := runParallel(w.n, o.Workers, func(i int) error {
		_, err := f.hub.Resource(w.gvr).Namespace("default").Create(ctx, w.make(fmt.Sprintf("%s-%d", w.name, i), 1),
			metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	if err := allHealthy(ctx, c, w.n); err != nil {
		return nil, err
	}
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}

	// 2. The member is lost, and the hub has written all that follows from that.
	o.Say("failover of %d Deployments: the member is lost", o.Failovers)
	for _, m := range f.lab.Fleet.Members() {
		if m.Name == lostMember {
			m.Kill()
		}
	}
	since, err := lostSince(ctx, c)
	if err != nil {
		return nil, err
	}
	due := since.Add(tolerated)
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	if !time.Now().Before(due) {
		return nil, fmt.Errorf("the hub still wrote what the loss costs when the toleration of %s ended", tolerated)
	}

	// 3. The workloads are replaced.
	return f.measureReplacements(ctx, o, c, w.n, due)
}

// toleration tolerates a NoExecute taint for a while.
func toleration(key string) map[string]any {
	return map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute",
		"tolerationSeconds": int64(tolerated / time.Second)}
}

// allHealthy waits until n bindings are placed in the first member and healthy there.
func allHealthy(ctx context.Context, c client.Client, n int) error {
	return poll(ctx, "the workloads do not become healthy", func() (bool, error) {
		var list workv1alpha2.ResourceBindingList
		if err := c.List(ctx, &list, client.InNamespace("default")); err != nil {
			return false, err
		}
		healthy := 0
		for i := range list.Items {
			b := &list.Items[i]
			if isPlaced(b, lostMember) && slices.ContainsFunc(b.Status.AggregatedStatus,
				func(item workv1alpha2.AggregatedStatusItem) bool {
					return item.Health == workv1alpha1.ResourceHealthy
				}) {
				healthy++
			}
		}
		return healthy == n, nil
	})
}

// lostSince waits until the member has the taint that workloads leave it for, and returns the time of the taint.
func lostSince(ctx context.Context, c client.Client) (since time.Time, err error) {
	err = poll(ctx, "the member is not tainted", func() (bool, error) {
		var cluster clusterv1alpha1.Cluster
		if err := c.Get(ctx, client.ObjectKey{Name: lostMember}, &cluster); err != nil {
			return false, err
		}
		i := slices.IndexFunc(cluster.Spec.Taints, membership.IsLossTaint)
		if i >= 0 {
			since = cluster.Spec.Taints[i].TimeAdded.Time
		}
		return i >= 0, nil
	})
	return since, err
}

// poll calls done each half second until it returns true; what says what is wrong if it does not.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// isPlaced reports whether a binding is placed in a cluster alone, and the scheduler has confirmed it.
func isPlaced(b *workv1alpha2.ResourceBinding, cluster string) bool {
	return len(b.Spec.Clusters) == 1 && b.Spec.Clusters[0].Name == cluster &&
		b.Status.SchedulerObservedGeneration == b.Generation &&
		meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled)
}

// measureReplacements follows n bindings until the replacement of each is healthy and its eviction has ended.
func (f *fleet) measureReplacements(ctx context.Context, o Options, c client.WithWatch, n int,
	due time.Time) ([]Row, error) {
	before, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	watcher, err := c.Watch(ctx, &workv1alpha2.ResourceBindingList{}, client.InNamespace("default"),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatInt(before.revision, 10)}})
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	placed, ended := map[string]bool{}, map[string]bool{}
	var allPlaced, allEnded time.Duration
	writes := 0 // of bindings that are not placed yet, and their events
	for event := range watcher.ResultChan() {
		b, ok := event.Object.(*workv1alpha2.ResourceBinding)
		if !ok {
			continue
		}
		if !placed[b.Name] {
			writes++
		}
		if isPlaced(b, nextMember) && !placed[b.Name] {
			if placed[b.Name] = true; len(placed) == n {
				allPlaced = time.Since(due)
				events, err := f.eventsSince(ctx, before.revision)
				if err != nil {
					return nil, err
				}
				writes += events
				o.Say("failover of %d Deployments: placed %.1f s after the toleration, with %.1f writes per binding; waiting until they are healthy",
					n, allPlaced.Seconds(), float64(writes)/float64(n))
			}
		}
		if placed[b.Name] && len(b.Spec.GracefulEvictionTasks) == 0 {
			if ended[b.Name] = true; len(ended) == n {
				allEnded = time.Since(due)
				break
			}
		}
	}
	if len(ended) < n {
		return nil, fmt.Errorf("%d of %d workloads are placed, and %d evictions have ended; the watch or the time is over: %w", len(placed), n, len(ended), ctx.Err())
	}
	after, err := f.account(ctx)
	if err != nil {
		return nil, err
	}
	perBinding := func(writes int64) float64 { return float64(writes) / float64(n) }
	return []Row{
		{Work: fmt.Sprintf("%d Deployments of a lost member, toleration ended → replacements placed", n), Unit: "s",
			Value: allPlaced.Seconds(), Must: 30},
		{Work: "… hub writes per binding until then: binding, status and events", Unit: "writes",
			Value: perBinding(int64(writes)), Must: 3},
		{Work: "… → replacements healthy, evictions ended", Unit: "s", Value: allEnded.Seconds()},
		{Work: "… hub writes per Deployment until then, Works included", Unit: "writes",
			Value: perBinding(after.revision - before.revision)},
	}, nil
}

// eventsSince counts the events that were written since a revision.
func (f *fleet) eventsSince(ctx context.Context, revision int64) (n int, err error) {
	list, err := f.hub.Resource(corev1.SchemeGroupVersion.WithResource("events")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		at, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
		return err == nil && at <= revision
	})), nil
}
