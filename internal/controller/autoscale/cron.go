package autoscale

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/match"
)

// cron reconciles CronFederatedHPAs.
type cron struct {
	Options
	client client.Client
	// live reads from the API server, to avoid repeating an action because of a stale cache.
	live   client.Reader
	events commit.Events
	// started is when this process started. Rules missed before that are retried from then on.
	started time.Time
}

// retryFor is the time for which a rule is retried after a temporary failure, such as a webhook that does not answer.
const retryFor = 5 * time.Minute

// finalError wraps errors that a retry cannot fix.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// final reports whether a retry would fail the same way.
func final(err error) bool {
	var e finalError
	return errors.As(err, &e) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Reconcile executes the due rules of one CronFederatedHPA. It requeues after the interval at the latest, because the
// clock may be changed.
func (c *cron) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := c.Clock.Now()
	next, err := c.evaluate(ctx, req.NamespacedName, now)
	switch {
	case commit.Stale(err) || apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: min(commit.SlowRetry, c.Interval)}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(now), time.Millisecond), c.Interval)}, nil
}

func (c *cron) evaluate(ctx context.Context, key types.NamespacedName, now time.Time) (next time.Time, err error) {
	read := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := c.client.Get(ctx, key, read); err != nil {
		return next, client.IgnoreNotFound(err)
	}
	due, status, next := autoscale.Due(read, now)
	if len(due) > 0 && read.DeletionTimestamp == nil {
		// The cache may be older than the last execution.
		if err := c.live.Get(ctx, key, read); err != nil {
			return next, client.IgnoreNotFound(err)
		}
		due, status, next = autoscale.Due(read, now)
	}
	if read.DeletionTimestamp != nil {
		return time.Time{}, nil
	}
	var again []error
	for _, e := range due {
		failure := c.execute(ctx, read, e.Rule)
		since := e.At
		if since.Before(c.started) {
			since = c.started
		}
		if failure != nil && !final(failure) && now.Before(since.Add(retryFor)) {
			autoscale.Postpone(&status, e)
			again = append(again, fmt.Errorf("rule %s of %s of CronFederatedHPA %s: %w", e.Rule.Name,
				e.At.UTC().Format(time.RFC3339), key, failure))
			continue
		}
		if failure != nil {
			c.events.Eventf(read, corev1.EventTypeWarning, eventRuleFailed, "Rule %s of %s: %v", e.Rule.Name,
				e.At.UTC().Format(time.RFC3339), failure)
		}
		ctrl.LoggerFrom(ctx).Info("executed", "rule", e.Rule.Name, "for", e.At, "failure", failure)
		autoscale.Record(&status, e, failure, now)
	}
	want := read.DeepCopy()
	want.Status = status
	if _, err = commit.Status(ctx, c.client, read, want); err != nil {
		return next, err
	}
	return next, errors.Join(again...)
}

// attempts limits how often a conflicting write to a target is repeated.
const attempts = 5

// execute executes a rule. Its error is recorded in the history.
func (c *cron) execute(ctx context.Context, of *autoscalingv1alpha1.CronFederatedHPA,
	rule autoscalingv1alpha1.CronFederatedHPARule) (err error) {
	ref := of.Spec.ScaleTargetRef
	gk := match.GroupKind(ref.APIVersion, ref.Kind)
	once := func() error { return c.scaleWorkload(ctx, gk, of.Namespace, ref.Name, rule) }
	if gk == (schema.GroupKind{Group: autoscalingv1alpha1.GroupVersion.Group,
		Kind: autoscalingv1alpha1.FederatedHPAKind}) {
		once = func() error {
			return c.setBounds(ctx, types.NamespacedName{Namespace: of.Namespace, Name: ref.Name}, rule)
		}
	}
	for range attempts {
		if err = once(); !commit.Stale(err) {
			break
		}
	}
	return err
}

func (c *cron) scaleWorkload(ctx context.Context, gk schema.GroupKind, namespace, name string,
	rule autoscalingv1alpha1.CronFederatedHPARule) error {
	if rule.TargetReplicas == nil {
		return finalError{errors.New("the rule has no targetReplicas")}
	}
	// Live serves only kinds that were discovered before. Want triggers the discovery of this one.
	c.Templates.Want(gk)
	obj, found, err := c.Templates.Live(ctx, gk, namespace, name)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the hub serves no %s", gk)
	}
	if err != nil {
		return err
	}
	if !found {
		return finalError{fmt.Errorf("there is no %s %s in namespace %s on the hub", gk, name, namespace)}
	}
	return c.scale(ctx, gk, obj, *rule.TargetReplicas)
}

func (c *cron) setBounds(ctx context.Context, key types.NamespacedName,
	rule autoscalingv1alpha1.CronFederatedHPARule) error {
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := c.live.Get(ctx, key, f); err != nil {
		if apierrors.IsNotFound(err) {
			return finalError{fmt.Errorf("there is no FederatedHPA %s in namespace %s on the hub", key.Name, key.Namespace)}
		}
		return err
	}
	want := f.DeepCopy()
	if rule.TargetMinReplicas != nil {
		want.Spec.MinReplicas = rule.TargetMinReplicas
	}
	if rule.TargetMaxReplicas != nil {
		want.Spec.MaxReplicas = *rule.TargetMaxReplicas
	}
	_, err := commit.Update(ctx, c.client, f, want)
	return err
}
