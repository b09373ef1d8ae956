package propagate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// staleRetry is how soon a write over an old read is tried again; the event of the newer state mostly comes first.
	staleRetry = 200 * time.Millisecond
	// takenRetry is how often a template looks whether a name for its binding is free, where others have all of them.
	takenRetry = time.Minute
)

// reconcileTemplate makes one template's claim and binding what they should be.
func (r *reconciler) reconcileTemplate(ctx context.Context, k key) (reconcile.Result, error) {
	err := r.propagate(ctx, k)
	switch {
	case commit.Stale(err) || apierrors.IsNotFound(err) || errors.Is(err, errSidecarsUnread):
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	case errors.Is(err, propagate.ErrTerminating):
		return reconcile.Result{}, nil // the end of the old binding is an event
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
	if errors.Is(propagate.Belongs(template, existing), propagate.ErrOutlived) {
		return commit.Delete(ctx, r.client, existing) // its end is an event
	}

	// 1. Who holds it, and does that stand?
	t := propagate.TemplateOf(template)
	holder, err := r.holder(ctx, template)
	if err != nil {
		return err
	}
	if holder != nil && propagate.Selected(holder, t) == propagate.NoMatch {
		holder = nil
	}
	exposed, err := r.exposed(ctx, k)
	if err != nil {
		return err
	}
	if template.GetDeletionTimestamp() != nil || propagate.Excluded(t) || propagate.ManagedElsewhere(t) || exposed {
		if holder == nil {
			return r.letGo(ctx, template, existing)
		}
		return nil
	}

	// 2. Who shall hold it? A claim stays, unless it is taken.
	policies, err := r.policies(ctx, t)
	if err != nil {
		return err
	}
	next, found := propagate.Match(t, policies)
	if holder != nil {
		next, found = propagate.Preempt(t, holder, policies)
	}
	chosen, waits := holder, false
	if found {
		if waits, err = r.waitsForOverrides(ctx, k, template, next); err != nil {
			return err
		}
		if !waits {
			chosen = next
		}
	}
	if chosen == nil {
		if !waits {
			r.failures.Forget(k)
		}
		return r.letGo(ctx, template, existing)
	}

	// 3. The claim, unless admission wrote it with the template.
	claimed := !propagate.Held(template, propagate.HolderOf(chosen))
	if claimed {
		if template, err = r.claim(ctx, k, template, holder, chosen); err != nil {
			return err
		}
	}

	// 4. The binding. Admission does not look for the overrides that a policy depends on.
	if existing == nil && !claimed {
		if wait, err := r.waitsForOverrides(ctx, k, template, chosen); err != nil || wait {
			return err
		}
	}
	bound, err := r.bind(ctx, k, template, chosen, existing)
	if err != nil {
		return err
	}
	if !waits {
		r.failures.Forget(k)
	}
	switch text := "Apply " + describe(chosen) + " succeed"; {
	case claimed:
		r.events.Succeeded(workv1alpha2.EventApplyPolicySucceed, text, template)
	case bound:
		r.events.Stepped(workv1alpha2.EventApplyPolicySucceed, text, template)
	}
	return nil
}

// claim writes who holds the template from now on; holder held it before, nil if nobody did.
func (r *reconciler) claim(ctx context.Context, k key, template *unstructured.Unstructured, holder, chosen policyv1alpha1.Propagation) (*unstructured.Unstructured, error) {
	want := template.DeepCopy()
	propagate.Claim(want, chosen)
	propagate.Await(want, chosen)
	got, err := r.Templates.Update(ctx, want)
	if err != nil {
		if !commit.Stale(err) {
			reason := workv1alpha2.EventApplyPolicyFailed
			if holder != nil {
				reason = workv1alpha2.EventPreemptPolicyFailed
			}
			r.fails(k, template, reason, fmt.Errorf("%s claims it: %w", describe(chosen), err))
		}
		return nil, err
	}
	log.FromContext(ctx).Info("claimed", "policy", describe(chosen))
	if holder != nil {
		r.events.Succeeded(workv1alpha2.EventPreemptPolicySucceed, describe(chosen)+" preempted "+describe(holder), template)
	}
	return got, nil
}

// bind makes the binding of a template what the policy that holds it says, and says whether it was another before.
func (r *reconciler) bind(ctx context.Context, k key, template *unstructured.Unstructured, p policyv1alpha1.Propagation, existing workv1alpha2.Binding) (wrote bool, err error) {
	if !propagate.Activated(template, p, existing) {
		if existing == nil || propagate.Belongs(template, existing) != nil {
			return false, nil
		}
		return commit.Update(ctx, r.client, existing, propagate.Hold(template, p, existing))
	}
	m, unread := r.meaning(ctx, k, template, p)
	existing, err = interpreter.Report(ctx, r.client, existing, unread, reading...)
	if err != nil {
		return false, cmp.Or(unread, err)
	}
	if unread != nil {
		// A customization that is broken, or a webhook that is down, keeps no change of the template from the members, such as
		// the one that goes back to an image that worked: what was read before holds until there is an answer.
		if interpret.FaultOf(unread, reading...) == nil || !propagate.Read(template, existing) {
			return false, unread
		}
		m.Unread = true
	} else if err := r.count(ctx, template, &m); err != nil {
		return false, err
	}
	if wrote, err = r.write(ctx, k, template, p, m, existing); err != nil {
		return wrote, err
	}
	if wrote && unread == nil {
		r.tellMeaning(template, m)
	}
	return wrote, unread
}

// reading are the operations that a binding's own fields come from.
var reading = []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretReplica, configv1alpha1.InterpreterOperationInterpretComponent}

// write writes the binding of a template that means m, and says whether it was another before. errPodsUnknown says that it was
// written without the fewer replicas that the template asks for.
func (r *reconciler) write(ctx context.Context, k key, template *unstructured.Unstructured, p policyv1alpha1.Propagation, m propagate.Meaning, existing workv1alpha2.Binding) (wrote bool, err error) {
	want, err := propagate.Binding(template, p, m, existing)
	if err != nil {
		if !errors.Is(err, propagate.ErrTerminating) {
			r.fails(k, template, workv1alpha2.EventApplyPolicyFailed, fmt.Errorf("apply %s: %w", describe(p), err))
		}
		return false, err
	}
	held := false
	if existing == nil {
		_, name, err := scope.BindingFor(ctx, r.client, k.GroupKind, k.Namespace, k.Name, client.UnsafeDisableDeepCopy)
		if err != nil {
			return false, err
		}
		if name == "" {
			err := propagate.TakenError(k.GroupKind, k.Name)
			r.fails(k, template, workv1alpha2.EventApplyPolicyFailed, fmt.Errorf("apply %s: %w", describe(p), err))
			return false, err
		}
		want.SetName(name)
		if want, err = r.complete(ctx, template, want); err != nil {
			return false, err
		}
		if err := r.client.Create(ctx, want); err != nil {
			if !commit.Stale(err) {
				r.fails(k, template, workv1alpha2.EventApplyPolicyFailed, fmt.Errorf("apply %s: %w", describe(p), err))
			}
			return false, fmt.Errorf("create %s: %w", commit.Name(want), err)
		}
		wrote = true
		if advice := propagate.RunAdvice(template, p); advice != "" {
			r.events.Event(template, corev1.EventTypeWarning, workv1alpha2.EventApplyPolicySucceed, advice)
		}
	} else {
		if held, err = r.pin(ctx, template, existing, want); err != nil {
			return false, err
		}
		if wrote, err = commit.Update(ctx, r.client, existing, want); err != nil {
			if !commit.Stale(err) {
				r.fails(k, template, workv1alpha2.EventApplyPolicyFailed, fmt.Errorf("apply %s: %w", describe(p), err))
			}
			return false, err
		}
	}
	if propagate.Waiting(template) {
		template = template.DeepCopy()
		propagate.StopWaiting(template)
		if _, err := r.Templates.Update(ctx, template); err != nil {
			return wrote, err
		}
	}
	if held {
		return wrote, errPodsUnknown
	}
	return wrote, nil
}

// complete gives a binding that is about to be created what would each cost a write later: its clusters, and if those are known,
// the dependencies and companions that go with it.
func (r *reconciler) complete(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	if r.Place != nil {
		r.Place(b)
	}
	if !dependency.Distributes(b) {
		return b, nil
	}
	dependencies, err := r.Interpreter.Dependencies(ctx, template)
	if err != nil {
		return b, nil // whoever distributes them says so
	}
	companions, _ := dependency.Companions(template, r.Templates.PointingAt(template))
	return dependency.Record(b, dependency.With(dependencies, companions))
}

// meaning is what the template means under the policy. With an error of the interpreter it is the rest of it.
func (r *reconciler) meaning(ctx context.Context, k key, template *unstructured.Unstructured, p policyv1alpha1.Propagation) (propagate.Meaning, error) {
	m := propagate.Meaning{ID: uuid.NewString()}
	spec := p.PropagationSpec()
	if class := spec.SchedulePriority; class != nil {
		var c schedulingv1.PriorityClass
		if err := r.client.Get(ctx, types.NamespacedName{Name: class.PriorityClassName}, &c); err != nil {
			// Not wrapped: a missing class is no stale read, it wants patience.
			err = fmt.Errorf("schedulePriority of %s: get PriorityClass %q: %v", describe(p), class.PriorityClassName, err)
			r.fails(k, template, workv1alpha2.EventApplyPolicyFailed, err)
			return m, err
		}
		m.SchedulePriority = &c.Value
	}
	replicas, requirements, workload, err := r.Interpreter.Replicas(ctx, template)
	if err != nil {
		r.fails(k, template, workv1alpha2.EventGetReplicasFailed, err)
		return m, err
	}
	if workload {
		m.Replicas, m.Requirements = replicas, requirements
	} else if m.Components, err = r.Interpreter.Components(ctx, template); err != nil {
		// Components are asked where there is no single number to divide; a kind that has both is divided by its number.
		r.fails(k, template, workv1alpha2.EventGetComponentsFailed, err)
		return m, err
	}
	return m, nil
}

// letGo takes every claim away, from the binding first: while the template still names the policy, the policy stays.
// Binding and Works remain, so that the workload runs on until another policy takes it over.
func (r *reconciler) letGo(ctx context.Context, template *unstructured.Unstructured, existing workv1alpha2.Binding) error {
	if propagate.Belongs(template, existing) == nil {
		if err := r.unbind(ctx, existing); err != nil {
			return err
		}
	}
	if propagate.Held(template, propagate.Holder{}) && !propagate.Waiting(template) {
		return nil
	}
	want := template.DeepCopy()
	propagate.Unclaim(want)
	propagate.StopWaiting(want)
	_, err := r.Templates.Update(ctx, want)
	return err
}

// unbind takes the claim away from a binding, nil for none.
func (r *reconciler) unbind(ctx context.Context, existing workv1alpha2.Binding) error {
	if existing == nil || propagate.Held(existing, propagate.Holder{}) {
		return nil
	}
	want := existing.DeepCopyObject().(workv1alpha2.Binding)
	propagate.Unclaim(want)
	_, err := commit.Update(ctx, r.client, existing, want)
	return err
}

// forget deletes the binding of a template that is gone, nil for none. The garbage collector would, later.
func (r *reconciler) forget(ctx context.Context, k key, existing workv1alpha2.Binding) error {
	if existing == nil || existing.GetDeletionTimestamp() != nil || !propagate.Of(existing, k.GroupKind, k.Name) {
		return nil
	}
	template, found, err := r.Templates.Live(ctx, k.GroupKind, k.Namespace, k.Name)
	unserved := meta.IsNoMatchError(err)
	if err != nil && !unserved {
		return err
	}
	if found && template.GetUID() == propagate.Owner(existing) {
		return nil // the store has it soon
	}
	// A deletion that orphans takes the binding's owner away before the template goes, perhaps after our cache was read.
	fresh, err := scope.Bindings.Get(ctx, r.live, client.ObjectKeyFromObject(existing))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if owner := propagate.Owner(fresh); owner != "" && owner == propagate.Owner(existing) && !unserved {
		return commit.Delete(ctx, r.client, fresh)
	}
	// It stays without its template, but no policy waits for it.
	if p, err := r.holder(ctx, fresh); err != nil || p != nil {
		return err
	}
	return r.unbind(ctx, fresh)
}

// holder is the policy whose claim is on obj, a template or a binding; nil if there is no claim, or its policy is gone or going.
// That is never said from the cache: admission may have claimed for a policy that the cache does not know yet.
func (r *reconciler) holder(ctx context.Context, obj client.Object) (policyv1alpha1.Propagation, error) {
	claim, held := propagate.Claimed(obj)
	if !held {
		return nil, nil
	}
	stands := func(p policyv1alpha1.Propagation) bool {
		if p.GetDeletionTimestamp() != nil || propagate.HolderOf(p) != claim {
			return false
		}
		template, is := obj.(*unstructured.Unstructured)
		return !is || propagate.StillSelects(p, claim, propagate.TemplateOf(template))
	}
	for _, from := range []client.Reader{r.client, r.live} {
		p, err := scope.Propagations.Get(ctx, from, claim.NamespacedName)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the policy that claims %s: %w", commit.Name(obj), err)
		}
		if err == nil && stands(p) {
			return p, nil
		}
	}
	return nil, nil
}

// policies are those that may select t. They are shared: read only.
func (r *reconciler) policies(ctx context.Context, t propagate.Template) ([]policyv1alpha1.Propagation, error) {
	var all []policyv1alpha1.Propagation
	for _, value := range selections(t) {
		some, err := scope.Propagations.List(ctx, r.client, client.MatchingFields{bySelection: value}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list policies: %w", err)
		}
		for _, p := range some {
			if propagate.ID(p) != "" {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// waitsForOverrides says whether p may not take effect yet because an override policy that it depends on does not exist.
// Its creation is an event.
func (r *reconciler) waitsForOverrides(ctx context.Context, k key, template *unstructured.Unstructured, p policyv1alpha1.Propagation) (bool, error) {
	var missing []string
	for _, name := range p.PropagationSpec().DependentOverrides {
		_, err := scope.Overrides.Get(ctx, r.client, types.NamespacedName{Namespace: p.GetNamespace(), Name: name})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("get override policy %q: %w", name, err)
		}
		if err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return false, nil
	}
	r.fails(k, template, workv1alpha2.EventApplyPolicyFailed,
		fmt.Errorf("%s waits for the override policies that it depends on: %s", describe(p), strings.Join(missing, ", ")))
	return true, nil
}

// heldBindings are the bindings whose claim has the permanent id of a policy. They are shared: read only.
func (r *reconciler) heldBindings(ctx context.Context, policyID string) ([]workv1alpha2.Binding, error) {
	return scope.Bindings.List(ctx, r.client, client.MatchingFields{byHolder: policyID}, client.UnsafeDisableDeepCopy)
}
