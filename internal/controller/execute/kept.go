package execute

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
)

// keptObjects reports, in the condition WorksKept of clusters, that objects were kept although their Works were
// deleted without a deletion request.
type keptObjects struct {
	client  client.Client
	members *member.Members
	events  commit.Events
	clock   clock.PassiveClock

	mu       sync.Mutex
	clusters map[string]*keptInCluster
}

type keptInCluster struct {
	works  int
	reason string
	last   time.Time
	// before is the message of the condition when this process started. No other process removes the condition.
	before string
	// reported is the number of works in the condition.
	reported int
}

const (
	// keptInterval is the time between two reports.
	keptInterval = time.Second
	// eventWorksKept: Works of the cluster were deleted, but not by the hub. Nothing is deleted in the cluster.
	//
	//reference:event Warning on Cluster
	eventWorksKept = "WorksKept"
)

func (k *keptObjects) add(cluster, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.cluster(cluster)
	c.works, c.reason, c.last = c.works+1, reason, k.clock.Now()
}

// cluster must be called with mu locked.
func (k *keptObjects) cluster(name string) *keptInCluster {
	if k.clusters[name] == nil {
		k.clusters[name] = &keptInCluster{}
	}
	return k.clusters[name]
}

// load reads the conditions that an earlier process set.
func (k *keptObjects) load(ctx context.Context) error {
	var clusters clusterv1alpha1.ClusterList
	if err := k.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range clusters.Items {
		if !k.members.Serves(&clusters.Items[i]) {
			continue
		}
		if is := meta.FindStatusCondition(clusters.Items[i].Status.Conditions,
			clusterv1alpha1.ClusterConditionWorksKept); is != nil && is.Status == metav1.ConditionTrue {
			c := k.cluster(clusters.Items[i].Name)
			c.before, c.last = is.Message, k.clock.Now()
		}
	}
	return nil
}

// run reports until ctx ends.
func (k *keptObjects) run(ctx context.Context) {
	tick := time.NewTicker(keptInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.report(ctx)
	}
}

// report writes the conditions that changed.
func (k *keptObjects) report(ctx context.Context) {
	k.mu.Lock()
	now, changed := k.clock.Now(), map[string]keptInCluster{}
	for cluster, c := range k.clusters {
		if over := now.Sub(c.last) >= execute.WaveWindow; over || c.reported < c.works {
			changed[cluster] = *c
		}
	}
	k.mu.Unlock()
	for cluster, c := range changed {
		if err := k.reportCluster(ctx, cluster, c, now); err != nil {
			if !commit.Stale(err) {
				log.Error(err, "report what was kept", "cluster", cluster)
			}
			continue // The next tick tries again.
		}
		k.mu.Lock()
		if is := k.clusters[cluster]; is != nil && is.works == c.works {
			if is.reported = c.works; now.Sub(is.last) >= execute.WaveWindow {
				delete(k.clusters, cluster)
			}
		}
		k.mu.Unlock()
	}
}

func (k *keptObjects) reportCluster(ctx context.Context, cluster string, c keptInCluster, now time.Time) error {
	read := &clusterv1alpha1.Cluster{}
	if err := k.client.Get(ctx, client.ObjectKey{Name: cluster}, read); err != nil {
		return client.IgnoreNotFound(err)
	}
	want := read.DeepCopy()
	condition := metav1.Condition{Type: clusterv1alpha1.ClusterConditionWorksKept, Status: metav1.ConditionTrue,
		Reason:             clusterv1alpha1.ReasonWorksDeletedByOthers,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		Message: fmt.Sprintf("%d Works were deleted by somebody other than the hub (%s). Nothing is deleted in the "+
			"cluster; the Works that are still needed are recreated", c.works, c.reason)}
	if now.Sub(c.last) >= execute.WaveWindow {
		since := metav1.NewTime(c.last).UTC().Format(time.RFC3339)
		condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonNoWorksDeletedByOthers
		condition.Message = fmt.Sprintf("Until %s, %d Works were deleted by somebody other than the hub (%s). Nothing was "+
			"deleted in the cluster", since, c.works, c.reason)
		if c.works == 0 {
			condition.Message = fmt.Sprintf("no more since %s, when the hub started; before that: %s", since, c.before)
		}
	} else if c.reported == 0 {
		k.events.Event(read, corev1.EventTypeWarning, eventWorksKept, condition.Message)
	}
	meta.SetStatusCondition(&want.Status.Conditions, condition)
	_, err := commit.Status(ctx, k.client, read, want)
	return client.IgnoreNotFound(err)
}
