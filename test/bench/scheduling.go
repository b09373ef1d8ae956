package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/lab"
)

// cell is a hub with that many clusters and bindings.
type cell struct{ clusters, bindings int }

// cells show how the times grow.
var cells = []cell{{10, 1000}, {10, 10_000}, {100, 1000}, {100, 10_000}, {1000, 1000}, {1000, 10_000}}

// scheduling measures the scheduler of a hub, from the API to the API.
func scheduling(ctx context.Context, o Options) ([]Row, error) {
	usual := cell{10, o.Bindings}
	o.Say("scheduling %d bindings end to end, and again when they must move", usual.bindings)
	first, err := react(ctx, o, usual)
	if err != nil {
		return nil, err
	}
	must := 60.0
	if usual.bindings > 10_000 {
		must = 0
	}
	rows := []Row{
		{Work: fmt.Sprintf("%d bindings × %d clusters, created → placed and confirmed, no members", usual.bindings,
			usual.clusters), Unit: "1/s",
			Value: float64(usual.bindings) / first.placed.Seconds(), Must: 300, AtLeast: true, Karmada: "15–22/s"},
		{Work: "… hub CPU per binding", Unit: "ms", Value: milliseconds(first.placedCPU)},
		{Work: "… hub writes per binding, its creation and event included", Unit: "writes", Value: first.placedWrites},
		{Work: fmt.Sprintf("%d bindings rescheduled when a cluster of all drops out of their affinity", usual.bindings),
			Unit: "s", Value: first.moved.Seconds(), Must: must},
		{Work: "… hub CPU per binding", Unit: "ms", Value: milliseconds(first.movedCPU)},
		{Work: "… hub writes per binding, its event included", Unit: "writes", Value: first.movedWrites},
	}
	if !o.Full {
		return rows, nil
	}
	for _, of := range cells {
		r := first
		if of != usual {
			o.Say("growth: %d clusters × %d bindings", of.clusters, of.bindings)
			if r, err = react(ctx, o, of); err != nil {
				return nil, err
			}
		}
		rows = append(rows,
			Row{Work: fmt.Sprintf("… %d clusters × %d bindings, placed and confirmed", of.clusters, of.bindings), Unit: "s",
				Value: r.placed.Seconds()},
			Row{Work: fmt.Sprintf("… %d clusters × %d bindings, rescheduled when a cluster drops out", of.clusters, of.bindings),
				Unit: "s", Value: r.moved.Seconds()})
	}
	return rows, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// reaction has the times of a hub's scheduler, in its own process with etcd and the API server.
type reaction struct {
	// placed is the time from the creation of the first binding until all have their clusters and are confirmed. moved is
	// the same after the cluster of all bindings no longer matches their affinity.
	placed, moved time.Duration
	// cpu is the hub's CPU time for each binding, writes the revisions of its store.
	placedCPU, movedCPU       time.Duration
	placedWrites, movedWrites float64
}

// meant is the label of the clusters in the affinity of the bindings.
const meant = "bench"

// used is the number of clusters of each binding.
const used = 2

// react runs one cell in a hub of its own. It measures scheduling only: the clusters are in Pull mode without agents,
// and the bindings are created directly, without templates, so that there are no Works.
func react(ctx context.Context, o Options, of cell) (reaction, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	h, err := startHub(ctx, o, fmt.Sprintf("react-%d-%d", of.clusters, of.bindings))
	if err != nil {
		return reaction{}, err
	}
	r, err := measureReaction(ctx, o, h, of)
	if ended := h.Stop(); err == nil {
		err = ended
	}
	return r, err
}

func measureReaction(ctx context.Context, o Options, h *lab.Hub, of cell) (reaction, error) {
	var r reaction
	config, err := h.Config()
	if err != nil {
		return r, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, coordinationv1.AddToScheme,
		workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return r, err
		}
	}
	// Only the hub may create bindings.
	config.Impersonate = rest.ImpersonationConfig{UserName: user.APIServerUser,
		Groups: []string{user.SystemPrivilegedGroup}}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return r, err
	}
	if err := runParallel(of.clusters, o.Workers, func(i int) error { return register(ctx, c, silent(i)) }); err != nil {
		return r, fmt.Errorf("make clusters: %w", err)
	}
	if err := known(ctx, c, of.clusters); err != nil {
		return r, err
	}

	measure := func(want []string, act func() error) (took, cpu time.Duration, writes float64, err error) {
		before, err := bookkeeping(ctx, c, h)
		if err != nil {
			return 0, 0, 0, err
		}
		arrived, err := placements(ctx, c, of.bindings, want)
		if err != nil {
			return 0, 0, 0, err
		}
		began := time.Now()
		if err := act(); err != nil {
			return 0, 0, 0, err
		}
		if err := arrived(); err != nil {
			return 0, 0, 0, err
		}
		took = time.Since(began)
		after, err := bookkeeping(ctx, c, h)
		return took, (after.cpu - before.cpu) / time.Duration(of.bindings),
			float64(after.revision-before.revision) / float64(of.bindings), err
	}
	r.placed, r.placedCPU, r.placedWrites, err = measure(chosen(0), func() error {
		return runParallel(of.bindings, o.Workers, func(i int) error { return c.Create(ctx, unplaced(i)) })
	})
	if err != nil {
		return r, fmt.Errorf("place %d bindings: %w", of.bindings, err)
	}
	r.moved, r.movedCPU, r.movedWrites, err = measure(chosen(1), func() error { return unlabel(ctx, c, clusterName(0)) })
	if err != nil {
		return r, fmt.Errorf("move %d bindings: %w", of.bindings, err)
	}
	return r, nil
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%04d", i) }

// silent returns a cluster in Pull mode that is ready by its status, without an agent.
func silent(i int) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(i),
		Labels: map[string]string{meant: "true"}}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	for _, condition := range []string{clusterv1alpha1.ClusterConditionReady,
		clusterv1alpha1.ClusterConditionCompleteAPIEnablements} {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue,
			Reason: "Bench"})
	}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1",
		Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}}}
	return cluster
}

// register creates a cluster, sets its status, and creates the Lease of its agent for longer than a measurement.
func register(ctx context.Context, c client.Client, cluster *clusterv1alpha1.Cluster) error {
	status := cluster.Status
	if err := c.Create(ctx, cluster); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.Clusters, Name: cluster.Name},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(3600))}}
	if err := c.Create(ctx, lease); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		cluster.Status = status
		return c.Status().Update(ctx, cluster)
	})
}

// known waits until the hub knows the clusters: none has the taint of a cluster that was never ready.
func known(ctx context.Context, c client.Client, n int) error {
	for {
		var list clusterv1alpha1.ClusterList
		if err := c.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) == n && !slices.ContainsFunc(list.Items, func(c clusterv1alpha1.Cluster) bool {
			return len(c.Finalizers) == 0 || len(c.Spec.Taints) > 0
		}) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the hub did not take in %d clusters: %w", n, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unplaced returns a binding as a policy creates it, of a template that does not exist.
func unplaced(i int) *workv1alpha2.ResourceBinding {
	name := fmt.Sprintf("bench-%05d", i)
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "bench"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name,
				UID: types.UID(name)},
			Placement: &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
					meant: "true"}}}, SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: used, MaxGroups: used}}},
		},
	}
}

// chosen returns the clusters of bindings if the affinity excludes those before the first: among equals, the first by
// name.
func chosen(first int) (names []string) {
	for i := range used {
		names = append(names, clusterName(first+i))
	}
	return names
}

func unlabel(ctx context.Context, c client.Client, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var cluster clusterv1alpha1.Cluster
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return err
		}
		delete(cluster.Labels, meant)
		return c.Update(ctx, &cluster)
	})
}

// placements starts a watch. The returned function waits until n bindings are in exactly these clusters, and
// confirmed.
func placements(ctx context.Context, c client.WithWatch, n int, clusters []string) (func() error, error) {
	there := map[string]bool{}
	look := func(b *workv1alpha2.ResourceBinding) {
		if b.Status.SchedulerObservedGeneration == b.Generation &&
			meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) &&
			slices.EqualFunc(b.Spec.Clusters, clusters, func(t workv1alpha2.TargetCluster, name string) bool {
				return t.Name == name
			}) {
			there[b.Name] = true
		}
	}
	var list workv1alpha2.ResourceBindingList
	if err := c.List(ctx, &list, client.InNamespace("default")); err != nil {
		return nil, err
	}
	watcher, err := c.Watch(ctx, &workv1alpha2.ResourceBindingList{}, client.InNamespace("default"),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return nil, err
	}
	return func() error {
		for {
			for event := range watcher.ResultChan() {
				if b, ok := event.Object.(*workv1alpha2.ResourceBinding); ok {
					look(b)
				}
				if len(there) == n {
					watcher.Stop()
					return nil
				}
			}
			// A server ends a watch that cannot keep up.
			if ctx.Err() != nil {
				return fmt.Errorf("%d of %d were in time", len(there), n)
			}
			if err := c.List(ctx, &list, client.InNamespace("default")); err != nil {
				return err
			}
			for i := range list.Items {
				look(&list.Items[i])
			}
			if len(there) == n {
				return nil
			}
			if watcher, err = c.Watch(ctx, &workv1alpha2.ResourceBindingList{}, client.InNamespace("default"),
				&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}); err != nil {
				return err
			}
		}
	}, nil
}

// bookkeeping is what the hub has written and used so far.
func bookkeeping(ctx context.Context, c client.Client, h *lab.Hub) (books, error) {
	var list workv1alpha2.ClusterResourceBindingList
	if err := c.List(ctx, &list); err != nil {
		return books{}, err
	}
	return booksOf(list.ResourceVersion, h)
}
