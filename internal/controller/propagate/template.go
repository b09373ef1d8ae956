package propagate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
)

// quotaRetry is the delay before a template whose binding a quota refuses is tried again.
const quotaRetry = 30 * time.Second

// takenRetry is the delay before a template checks for a free name again while other bindings have all of its names.
const takenRetry = time.Minute

// reconcileTemplate writes the claim and the binding of one template.
func (r *reconciler) reconcileTemplate(ctx context.Context, k key) (reconcile.Result, error) {
	err := r.propagate(ctx, k)
	var exceeded *quota.ExceededError
	switch {
	case errors.As(err, &exceeded):
		return reconcile.Result{RequeueAfter: quotaRetry}, nil
	case commit.Stale(err) || apierrors.IsNotFound(err) || errors.Is(err, errSidecarsUnread):
		return reconcile.Result{RequeueAfter: commit.SlowRetry}, nil
	case errors.Is(err, propagate.ErrTerminating):
		return reconcile.Result{}, nil // the deletion of the old binding triggers this loop
	case errors.Is(err, propagate.ErrTaken):
		return reconcile.Result{RequeueAfter: takenRetry}, nil
	case errors.Is(err, errPodsUnknown):
		return reconcile.Result{RequeueAfter: podsRetry}, nil
	}
	return reconcile.Result{}, err
}

func (r *reconciler) propagate(ctx context.Context, k key) error {
	template, found, err := r.Templates.Get(ctx, k.GroupKind, k.Namespace, k.Name)
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	existing, _, err := scope.BindingFor(ctx, r.client, k.GroupKind, k.Namespace, k.Name)
	if err != nil {
		return err
	}
	if !found {
		r.failures.Forget(k)
		return r.forget(ctx, k, existing)
	}
	d, err := r.decide(ctx, template, existing)
	if err != nil {
		return err
	}
	waits := len(d.MissingOverrides) > 0 // the creation of an override policy triggers this loop
	if waits {
		r.fails(k, template, d.Pending, workv1alpha2.EventApplyPolicyFailed,
			fmt.Errorf("%s waits for the override policies that it depends on: %s", describe(d.Pending),
				strings.Join(d.MissingOverrides, ", ")))
	}
	if d.Claimed != nil {
		if template, err = r.claim(ctx, k, template, d); err != nil {
			return err
		}
	}
	bound := false
	switch d.Action {
	case propagate.DeleteBinding:
		return commit.Delete(ctx, r.client, existing) // the deletion of the binding triggers this loop
	case propagate.MakeBinding:
		bound, err = r.bind(ctx, k, template, d, existing)
	case propagate.UpdateBinding:
		bound, err = commit.Update(ctx, r.client, existing, d.Binding)
	}
	if err == nil && d.Action != propagate.MakeBinding {
		err = r.unclaim(ctx, d)
	}
	if err != nil {
		return err
	}
	if !waits {
		r.failures.Forget(k)
	}
	if d.Policy == nil {
		return nil
	}
	record := r.events.RecordStep
	if d.Claimed != nil {
		record = r.events.RecordSuccess
	}
	if d.Claimed != nil || bound {
		record(workv1alpha2.EventApplyPolicySucceed, "Apply "+describe(d.Policy)+" succeed", template)
		record(workv1alpha2.EventApplyPolicySucceed, "Claimed "+k.template(), d.Policy)
	}
	return nil
}

// decide reads the state on which the claim of a template depends, and decides it.
func (r *reconciler) decide(
	ctx context.Context, template *unstructured.Unstructured, existing workv1alpha2.Binding,
) (d propagate.Decision, err error) {
	policies, err := r.policies(ctx, template)
	if err != nil {
		return d, err
	}
	o, err := facts.Observed(ctx, r.client, template, existing, policies)
	if err != nil {
		return d, err
	}
	return propagate.Decide(o), nil
}

// claim writes the template with its new claim.
func (r *reconciler) claim(
	ctx context.Context, k key, template *unstructured.Unstructured, d propagate.Decision,
) (*unstructured.Unstructured, error) {
	got, err := r.Templates.Update(ctx, d.Claimed)
	if err != nil {
		if !commit.Stale(err) {
			reason := workv1alpha2.EventApplyPolicyFailed
			if d.Preempted != nil {
				reason = workv1alpha2.EventPreemptPolicyFailed
			}
			r.fails(k, template, d.Policy, reason, fmt.Errorf("%s claims it: %w", describe(d.Policy), err))
		}
		return nil, err
	}
	log.FromContext(ctx).Info("claimed", "policy", describe(d.Policy))
	if d.Preempted != nil {
		text := describe(d.Policy) + " preempted " + describe(d.Preempted)
		r.events.RecordSuccess(workv1alpha2.EventPreemptPolicySucceed, text, template)
	}
	return got, nil
}

// unclaim writes the template where a claim, or the mark of a Lazy policy, ends.
func (r *reconciler) unclaim(ctx context.Context, d propagate.Decision) error {
	if d.Released == nil {
		return nil
	}
	_, err := r.Templates.Update(ctx, d.Released)
	return err
}

// bind writes the binding of a template under the policy of d, and reports whether it wrote.
func (r *reconciler) bind(
	ctx context.Context, k key, template *unstructured.Unstructured, d propagate.Decision, existing workv1alpha2.Binding,
) (wrote bool, err error) {
	m, unread := r.meaning(ctx, k, template, d.Policy)
	existing, err = interpreter.Report(ctx, r.client, existing, unread, reading...)
	if err != nil {
		return false, cmp.Or(unread, err)
	}
	if unread != nil {
		// A broken customization or webhook must not block a change of the template, such as a rollback to a good image. The
		// values that were read before apply until the interpreter answers.
		if interpret.FaultOf(unread, reading...) == nil || !propagate.Read(template, existing) {
			return false, unread
		}
		m.Unread = true
	} else if err := r.count(ctx, template, &m); err != nil {
		return false, err
	}
	if wrote, err = r.write(ctx, k, template, d, m, existing); err != nil {
		return wrote, err
	}
	if wrote && unread == nil {
		r.recordMeaning(template, m)
	}
	return wrote, unread
}

// reading are the operations that a binding's own fields come from.
var reading = []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretReplica,
	configv1alpha1.InterpreterOperationInterpretComponent}

// write writes the binding of a template with the meaning m, and reports whether the binding changed. With
// errPodsUnknown, the binding was written without the scale-down.
func (r *reconciler) write(
	ctx context.Context, k key, template *unstructured.Unstructured, d propagate.Decision, m propagate.Meaning,
	existing workv1alpha2.Binding,
) (wrote bool, err error) {
	p := d.Policy
	fails := func(err error) error {
		if !errors.Is(err, propagate.ErrTerminating) && !commit.Stale(err) {
			r.fails(k, template, p, workv1alpha2.EventApplyPolicyFailed, fmt.Errorf("apply %s: %w", describe(p), err))
		}
		return err
	}
	want, err := propagate.Binding(template, p, m, existing)
	if err != nil {
		return false, fails(err)
	}
	podsUnknown := false
	if existing == nil {
		name, err := scope.NewBindingName(ctx, r.client, k.GroupKind, k.Namespace, k.Name)
		if errors.Is(err, propagate.ErrTaken) {
			return false, fails(err)
		}
		if err != nil {
			return false, err
		}
		want.SetName(name)
		if err := r.create(ctx, template, want); err != nil {
			return false, fails(err)
		}
		wrote = true
		if advice := propagate.RunAdvice(template, p); advice != "" {
			r.events.Event(template, corev1.EventTypeWarning, workv1alpha2.EventApplyPolicyAdvised, advice)
		}
	} else {
		if podsUnknown, err = r.pin(ctx, template, existing, want); err != nil {
			return false, err
		}
		if wrote, err = commit.Update(ctx, r.client, existing, want); err != nil {
			return false, cmp.Or(r.markRefused(ctx, template, existing, err), fails(err))
		}
	}
	if err := r.unclaim(ctx, d); err != nil {
		return wrote, err
	}
	if podsUnknown {
		return wrote, errPodsUnknown
	}
	return wrote, nil
}

// markRefused notes in a binding that a quota refused its template, if err is that.
func (r *reconciler) markRefused(ctx context.Context, template *unstructured.Unstructured,
	existing workv1alpha2.Binding, err error) error {
	if exceeded := (*quota.ExceededError)(nil); !errors.As(err, &exceeded) {
		return nil
	}
	marked := existing.DeepCopyObject().(workv1alpha2.Binding)
	fields.PutAnnotation(marked, wellknown.QuotaRefusedAnnotation, propagate.Digest(template))
	_, err = commit.Update(ctx, r.client, existing, marked)
	return err
}

// create creates a binding with its clusters. If a quota does not permit that, it has none: the scheduler reports why.
func (r *reconciler) create(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) error {
	placed := b.DeepCopyObject().(workv1alpha2.Binding)
	if r.Place != nil && r.Place(placed) {
		var exceeded *quota.ExceededError
		if err := commit.Create(ctx, r.client, r.complete(ctx, template, placed)); !errors.As(err, &exceeded) {
			return err
		}
	}
	return commit.Create(ctx, r.client, r.complete(ctx, template, b))
}

// complete adds to a new binding what would each need another write later: if its clusters are known, its dependencies
// and companions.
func (r *reconciler) complete(ctx context.Context, template *unstructured.Unstructured,
	b workv1alpha2.Binding) workv1alpha2.Binding {
	if !dependency.Distributes(b) {
		return b
	}
	dependencies, err := r.Interpreter.Dependencies(ctx, template)
	if err != nil {
		return b // the controller that distributes them reports it
	}
	companions, _ := companion.Find(template, r.Templates.PointingAt(template))
	return dependency.Record(b, dependency.Merge(dependencies, companions))
}

// meaning returns what the interpreter reads of the template. If one operation fails, it returns the results of the
// others with the error.
func (r *reconciler) meaning(ctx context.Context, k key, template *unstructured.Unstructured,
	p policyv1alpha1.Propagation) (propagate.Meaning, error) {
	m := propagate.Meaning{ID: uuid.NewString()}
	spec := p.PropagationSpec()
	if class := spec.SchedulePriority; class != nil {
		var c schedulingv1.PriorityClass
		if err := r.client.Get(ctx, types.NamespacedName{Name: class.PriorityClassName}, &c); err != nil {
			// Not wrapped: a missing class is no stale read; it needs a longer backoff.
			err = fmt.Errorf("schedulePriority of %s: get PriorityClass %q: %v", describe(p), class.PriorityClassName, err)
			r.fails(k, template, p, workv1alpha2.EventApplyPolicyFailed, err)
			return m, err
		}
		m.SchedulePriority = &c.Value
	}
	err := m.Interpret(ctx, r.Interpreter, template)
	if err != nil {
		reason := workv1alpha2.EventGetReplicasFailed
		if interpret.FaultOf(err, configv1alpha1.InterpreterOperationInterpretComponent) != nil {
			reason = workv1alpha2.EventGetComponentsFailed
		}
		r.fails(k, template, p, reason, err)
	}
	return m, err
}

// forget deletes the binding of a deleted template, nil for none. The garbage collector would do it later.
func (r *reconciler) forget(ctx context.Context, k key, existing workv1alpha2.Binding) error {
	if existing == nil || existing.GetDeletionTimestamp() != nil || !propagate.IsBindingOf(existing, k.GroupKind, k.Name) {
		return nil
	}
	template, found, err := r.Templates.Live(ctx, k.GroupKind, k.Namespace, k.Name)
	unserved := meta.IsNoMatchError(err)
	if err != nil && !unserved {
		return err
	}
	if found && template.GetUID() == propagate.Owner(existing) {
		return nil // the store has the change soon
	}
	// A deletion that orphans removes the owner of the binding before the template is deleted, perhaps after our cache was
	// read.
	fresh, err := scope.Bindings.Get(ctx, r.live, client.ObjectKeyFromObject(existing))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if owner := propagate.Owner(fresh); owner != "" && owner == propagate.Owner(existing) && !unserved {
		return commit.Delete(ctx, r.client, fresh)
	}
	// The binding stays without its template, but no policy that is being deleted waits for it.
	if p, err := r.claimant(ctx, fresh); err != nil || p != nil {
		return err
	}
	want := fresh.DeepCopyObject().(workv1alpha2.Binding)
	propagate.Unclaim(want)
	_, err = commit.Update(ctx, r.client, fresh, want)
	return err
}

// claimant reads the policy that has claimed obj, a template or a binding; nil if there is none or it is being deleted.
// It bypasses the cache: admission may have claimed for a policy that the cache does not have yet.
func (r *reconciler) claimant(ctx context.Context, obj client.Object) (policyv1alpha1.Propagation, error) {
	claim, claimed := propagate.Claimed(obj)
	if !claimed {
		return nil, nil
	}
	p, err := scope.Propagations.Get(ctx, r.live, claim.NamespacedName)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the policy that claims %s: %w", commit.Name(obj), err)
	}
	if err != nil || p.GetDeletionTimestamp() != nil || propagate.ClaimOf(p) != claim {
		return nil, nil
	}
	return p, nil
}

// policies returns the policies that may select the template. They are shared: do not modify them.
func (r *reconciler) policies(ctx context.Context,
	template *unstructured.Unstructured) ([]policyv1alpha1.Propagation, error) {
	var all []policyv1alpha1.Propagation
	t := match.TemplateOf(template)
	for _, value := range selections(t) {
		some, err := scope.Propagations.List(ctx, r.client, client.MatchingFields{bySelection: value},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list policies: %w", err)
		}
		all = append(all, some...)
	}
	claim, _ := propagate.Claimed(template)
	if slices.ContainsFunc(all, func(p policyv1alpha1.Propagation) bool { return propagate.StillSelects(p, claim, t) }) {
		return all, nil
	}
	if p, err := r.claimant(ctx, template); err != nil || p != nil {
		return append(all, p), err
	}
	return all, nil
}

// claimedBindings returns the bindings that a policy, given by its permanent id, has claimed. They are shared: do not
// modify them.
func (r *reconciler) claimedBindings(ctx context.Context, policyID string) ([]workv1alpha2.Binding, error) {
	return scope.Bindings.List(ctx, r.client, client.MatchingFields{byClaim: policyID}, client.UnsafeDisableDeepCopy)
}
