// Package search reports in the status of ResourceRegistries what the hub caches for them, and how much memory that
// needs. internal/search has the caches.
package search

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/search"
)

const (
	// settling is the interval of looks at a registry that is not Ready, and settled at one that is.
	settling = 5 * time.Second
	settled  = time.Minute
)

// Caches are the caches of this process: *search.Engine.
type Caches interface {
	Report(r *searchv1alpha1.ResourceRegistry, clusters []clusterv1alpha1.Cluster) search.Report
}

type reconciler struct {
	client client.Client
	caches Caches
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, caches Caches) error {
	return ctrl.NewControllerManagedBy(mgr).Named("search").
		For(&searchv1alpha1.ResourceRegistry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&reconciler{mgr.GetClient(), caches})
}

// Reconcile writes the status of one registry, if it changed.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	read := &searchv1alpha1.ResourceRegistry{}
	if err := r.client.Get(ctx, req.NamespacedName, read); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, clusters); err != nil {
		return reconcile.Result{}, fmt.Errorf("list clusters: %w", err)
	}
	want := read.DeepCopy()
	ready := Condition(read, r.caches.Report(read, clusters.Items))
	meta.SetStatusCondition(&want.Status.Conditions, ready)
	if _, err := commit.Status(ctx, r.client, read, want); commit.Stale(err) {
		return reconcile.Result{RequeueAfter: commit.StaleRetry}, nil
	} else if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ready.Status == metav1.ConditionTrue || ready.Reason == searchv1alpha1.ReasonBackendNotSupported {
		return reconcile.Result{RequeueAfter: settled}, nil
	}
	return reconcile.Result{RequeueAfter: settling}, nil
}

// problems is the number of problems that a condition names.
const problems = 3

// Condition returns the condition Ready of a registry.
func Condition(r *searchv1alpha1.ResourceRegistry, report search.Report) metav1.Condition {
	c := metav1.Condition{Type: searchv1alpha1.Ready, ObservedGeneration: r.Generation}
	if !search.Supported(r) {
		c.Status, c.Reason = metav1.ConditionFalse, searchv1alpha1.ReasonBackendNotSupported
		c.Message = "this hub does not write into OpenSearch, so it caches nothing for this registry: remove " +
			"spec.backendStore to cache the objects in the memory of the hub"
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, searchv1alpha1.ReasonCached
	// Rounded figures change seldom, and each change is a write.
	c.Message = fmt.Sprintf("%d resources in %d clusters: about %d objects, %s", report.Resources, report.Clusters,
		rounded(int64(report.Objects)), resource.NewQuantity(rounded(report.Bytes>>20)<<20, resource.BinarySI))
	if n := len(report.Problems); n > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, searchv1alpha1.ReasonIncomplete
		c.Message = "not cached: " + strings.Join(report.Problems[:min(n, problems)], "; ")
		if n > problems {
			c.Message += fmt.Sprintf("; and %d others", n-problems)
		}
	}
	return c
}

// rounded returns a number with one digit and zeros.
func rounded(n int64) int64 {
	unit := int64(1)
	for n/unit >= 10 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
