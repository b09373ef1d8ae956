// Package autoscale scales templates by the load of their pods in all clusters, as FederatedHPAs ask, has the
// autoscalers of members do so where the mode is Distributed, and carries out the rules of CronFederatedHPAs. How many
// replicas there shall be, and which rules are due, is decided by core/autoscale; where the replicas go is the
// scheduler's to say.
package autoscale

import (
	"context"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // a machine or an image may know no time zones

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/autoscale"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/template"
)

// DefaultInterval is how often the load is looked at.
const DefaultInterval = 15 * time.Second

// Options of the controllers.
type Options struct {
	Members     *member.Members
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Interval is how often the load, and the time, are looked at; default DefaultInterval.
	Interval time.Duration
	Settings autoscale.Settings
	// Concurrency is how many FederatedHPAs are worked on at once.
	Concurrency int
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry = time.Second
	// byTarget finds the FederatedHPAs of a workload, byOwner the Works that have the autoscalers of a FederatedHPA, and
	// byScaler the bindings of what these have scaled.
	byTarget, byOwner, byScaler = "autoscale.target", "autoscale.owner", "autoscale.scaler"
)

type reconciler struct {
	Options
	client client.Client
	// live reads past the cache, where what was done must not be done again.
	live   client.Reader
	events commit.Events
	told   commit.Dedup[types.NamespacedName]

	mu        sync.Mutex
	histories map[types.NamespacedName]remembered
}

// remembered is what is kept of a FederatedHPA in memory; another one of its name has nothing of it.
type remembered struct {
	uid     types.UID
	history autoscale.History
}

// Setup registers both controllers with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events:    commit.Recorder(mgr, "federatedHPA-controller"),
		histories: map[types.NamespacedName]remembered{}}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &autoscalingv1alpha1.FederatedHPA{}, byTarget,
		func(obj client.Object) []string {
			return []string{targetKey(obj.(*autoscalingv1alpha1.FederatedHPA))}
		}); err != nil {
		return fmt.Errorf("index FederatedHPAs by their workloads: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byOwner, func(obj client.Object) []string {
		if owner, ok := ownerOf(obj); ok {
			return []string{owner.String()}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index Works by the FederatedHPAs whose autoscalers they have: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha2.ResourceBinding{}, byScaler,
		func(obj client.Object) []string {
			if by := obj.GetAnnotations()[schedule.ScaledByAnnotation]; by != "" {
				return []string{by}
			}
			return nil
		}); err != nil {
		return fmt.Errorf("index bindings by the FederatedHPAs whose autoscalers scaled them: %w", err)
	}
	options := controller.Options{MaxConcurrentReconciles: max(1, o.Concurrency),
		RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}
	asked := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{}))
	err := ctrl.NewControllerManagedBy(mgr).Named("autoscale").WithOptions(options).
		For(&autoscalingv1alpha1.FederatedHPA{}, asked).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
			obj client.Object) []reconcile.Request {
			owner, _ := ownerOf(obj)
			return []reconcile.Request{{NamespacedName: owner}}
		}), builder.WithPredicates(autoscalers)).
		Complete(reconcile.Func(r.federated))
	if err != nil {
		return err
	}
	c := &cron{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: commit.Recorder(mgr, "cronFederatedHPA-controller"), started: o.Clock.Now()}
	options.RateLimiter = commit.Backoff[reconcile.Request](firstRetry)
	return ctrl.NewControllerManagedBy(mgr).Named("autoscale-cron").WithOptions(options).
		For(&autoscalingv1alpha1.CronFederatedHPA{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(c)
}

// autoscalers passes Works that have the autoscaler of a member, when they come, go or tell something.
var autoscalers = predicate.And[client.Object](predicate.NewPredicateFuncs(func(obj client.Object) bool {
	_, ok := ownerOf(obj)
	return ok
}), predicate.ResourceVersionChangedPredicate{})

// targetKey is one for all names of a workload, whatever the version.
func targetKey(f *autoscalingv1alpha1.FederatedHPA) string {
	ref := f.Spec.ScaleTargetRef
	return fmt.Sprintf("%s/%s/%s", schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), f.Namespace,
		ref.Name)
}

// scale gives a workload that many replicas, in one write or none, and says how many it had.
func (o Options) scale(ctx context.Context, gk schema.GroupKind, template *unstructured.Unstructured,
	replicas int32) (from int32, err error) {
	from, _, scales, err := o.Interpreter.Replicas(ctx, template)
	if err != nil {
		return 0, err
	}
	if !scales {
		return 0, finalError{fmt.Errorf("a %s has no replicas to scale", gk)}
	}
	if from == replicas {
		return from, nil
	}
	revised, err := o.Interpreter.Revise(ctx, template, replicas)
	if err != nil {
		return from, err
	}
	if revised == template {
		return from, finalError{fmt.Errorf("no interpreter can set the replicas of a %s", gk)}
	}
	// Some kinds have fewer than they are given: a Job, as many as it shall complete.
	switch to, _, _, err := o.Interpreter.Replicas(ctx, revised); {
	case err != nil:
		return from, err
	case to == from:
		return from, finalError{fmt.Errorf("the replicas cannot be set to %d: they are still %d", replicas, from)}
	}
	_, err = o.Templates.Update(ctx, revised)
	return from, err
}
