// Package autoscale implements FederatedHPAs and CronFederatedHPAs. It scales templates by the load of their pods in
// all clusters or, in mode Distributed, creates a HorizontalPodAutoscaler in each cluster. Templates whose autoscalers
// policies propagate follow the replicas that these set. core/adjust/autoscale
// decides the number of replicas and which rules are due; the scheduler decides where replicas go.
package autoscale

import (
	"context"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // the image may have no time zone database

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
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/template"
)

// DefaultInterval is the default interval between evaluations of the load.
const DefaultInterval = 15 * time.Second

// Options of the controllers.
type Options struct {
	Members *member.Members
	// Fleet knows the room of the clusters. Without it, their room is unknown.
	Fleet       *capacity.Fleet
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Interval is the time between evaluations of load and schedules. The default is DefaultInterval.
	Interval time.Duration
	Settings autoscale.Settings
	// IgnoreMembers leaves templates as they are if autoscalers that policies propagate scale their workloads.
	IgnoreMembers bool
	// Concurrency is the number of FederatedHPAs that are reconciled at once.
	Concurrency int
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the first delay of the backoff after an error.
	firstRetry = time.Second
	// byTarget indexes FederatedHPAs by workload, byOwner indexes Works by the FederatedHPA whose autoscaler they contain,
	// byScaler indexes bindings by the FederatedHPA whose autoscalers scaled them.
	byTarget, byOwner, byScaler = "autoscale.target", "autoscale.owner", "autoscale.scaler"
)

type reconciler struct {
	Options
	client   client.Client
	live     client.Reader // reads past the cache
	events   commit.Events
	reported commit.Dedup[types.NamespacedName]

	histories sync.Map // types.NamespacedName → remembered
}

// remembered is the in-memory state of a FederatedHPA. It is dropped when the UID changes.
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
		events: commit.Recorder(mgr, "federatedHPA-controller")}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &autoscalingv1alpha1.FederatedHPA{}, byTarget,
		func(obj client.Object) []string {
			return []string{targetOf(obj.(*autoscalingv1alpha1.FederatedHPA)).String()}
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
			if by := obj.GetAnnotations()[wellknown.ScaledByAnnotation]; by != "" {
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
	if !o.IgnoreMembers {
		if err := r.setupMembers(mgr); err != nil {
			return err
		}
	}
	c := &cron{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: commit.Recorder(mgr, "cronFederatedHPA-controller"), started: o.Clock.Now()}
	options.RateLimiter = commit.Backoff[reconcile.Request](firstRetry)
	return ctrl.NewControllerManagedBy(mgr).Named("autoscale-cron").WithOptions(options).
		For(&autoscalingv1alpha1.CronFederatedHPA{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(c)
}

// autoscalers selects Works with the autoscaler of a member, when they are created, deleted or their status changes.
var autoscalers = predicate.And[client.Object](predicate.NewPredicateFuncs(func(obj client.Object) bool {
	_, ok := ownerOf(obj)
	return ok
}), predicate.ResourceVersionChangedPredicate{})

// targetOf returns the workload that a FederatedHPA scales, regardless of the API version.
func targetOf(f *autoscalingv1alpha1.FederatedHPA) execute.Target {
	ref := f.Spec.ScaleTargetRef
	return execute.Target{GroupKind: match.GroupKind(ref.APIVersion, ref.Kind), Namespace: f.Namespace, Name: ref.Name}
}

// scale sets the replicas of a workload, unless it has them already.
func (o Options) scale(ctx context.Context, gk schema.GroupKind, template *unstructured.Unstructured,
	replicas int32) error {
	from, _, scales, err := o.Interpreter.Replicas(ctx, template)
	if err != nil {
		return err
	}
	if !scales {
		return finalError{fmt.Errorf("a %s has no replicas to scale", gk)}
	}
	if from == replicas {
		return nil
	}
	revised, err := o.Interpreter.Revise(ctx, template, replicas)
	if err != nil {
		return err
	}
	if revised == template {
		return finalError{fmt.Errorf("no interpreter can set the replicas of a %s", gk)}
	}
	// Some kinds use fewer replicas than requested: a Job at most its completions.
	switch to, _, _, err := o.Interpreter.Replicas(ctx, revised); {
	case err != nil:
		return err
	case to == from:
		return finalError{fmt.Errorf("the replicas cannot be set to %d: they are still %d", replicas, from)}
	}
	_, err = o.Templates.Update(ctx, revised)
	return err
}
