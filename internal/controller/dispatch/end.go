package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/scope"
)

// eventWorksKept: the binding was deleted, but not by the hub. Nothing is deleted in the clusters.
//
//reference:event Warning on binding
const eventWorksKept = "WorksKept"

const (
	// eventEndWaits: the binding is being deleted, and waits until the hub serves the kind of its template again.
	//
	//reference:event Warning on binding
	eventEndWaits = "TemplateKindNotServed"
	// unservedRetry is the delay before the next check whether the kind is served again.
	unservedRetry = 2 * time.Second
)

// ordered reports whether the deletion of a binding deletes its Works; known is false while the template cannot be
// read.
func (r *reconciler) ordered(ctx context.Context, b workv1alpha2.Binding) (ordered, known bool, err error) {
	went, err := r.templateWent(ctx, b)
	if err != nil {
		return false, false, err
	}
	e := dispatch.End{DefinitionGoes: went || r.Definitions.Going(definitionOf(b))}
	ref := b.BindingSpec().Resource
	e.Template, _, err = r.Templates.Get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if e.Unserved = meta.IsNoMatchError(err); err != nil && !e.Unserved {
		return false, false, err
	}
	if ordered, _ := dispatch.Ordered(b, e); ordered {
		return true, true, nil
	}
	// Read it from the server: this is rare, and a stale cache would keep Works of a deleted template.
	if e.Template != nil {
		live, found, err := r.Templates.Live(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
		if e.Unserved = meta.IsNoMatchError(err); err != nil && !e.Unserved {
			return false, false, err
		}
		if e.Template = live; !found {
			e.Template = nil
		}
	}
	if b.GetNamespace() != "" {
		ns := &corev1.Namespace{}
		if err := r.live.Get(ctx, client.ObjectKey{Name: b.GetNamespace()}, ns); client.IgnoreNotFound(err) != nil {
			return false, false, fmt.Errorf("get namespace %s: %w", b.GetNamespace(), err)
		} else if err == nil {
			e.NamespaceGoes = ns.DeletionTimestamp != nil
		}
	}
	ordered, known = dispatch.Ordered(b, e)
	return ordered, known, nil
}

// isReplaced reports whether the template of b, a namespace that was deleted, was created again and is propagated by a
// policy. Its new binding waits until b is gone, and takes over the Works, whose deletion may wait for objects of the
// new namespace.
func (r *reconciler) isReplaced(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work) bool {
	if slices.ContainsFunc(works, func(w workv1alpha1.Work) bool { return !execute.Recallable(&w) }) {
		return false
	}
	ref := b.BindingSpec().Resource
	t, _, err := r.Templates.Get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if err != nil || t == nil || t.GetUID() == ref.UID || t.GetDeletionTimestamp() != nil {
		return false
	}
	_, claimed := propagate.Claimed(t)
	return claimed
}

// wait keeps a binding that is being deleted, and its Works, until the template can be read. It does not wait if no
// Work is left or the hub has deleted them all.
func (r *reconciler) wait(ctx context.Context, b workv1alpha2.Binding,
	works []workv1alpha1.Work) (time.Duration, error) {
	if !slices.ContainsFunc(works, func(w workv1alpha1.Work) bool {
		return w.DeletionTimestamp == nil || !execute.Ordered(&w)
	}) {
		return 0, r.finish(ctx, b, works)
	}
	ref := b.BindingSpec().Resource
	r.warn(b, nil, "", eventEndWaits, fmt.Errorf(
		"the binding is being deleted, but the hub does not currently serve %s of %s, so it is unknown whether its template still exists: "+
			"nothing is deleted in the clusters until it is served again. To delete the objects anyway, delete the Works of this binding, at most "+
			"--work-deletions-per-minute (10 by default) within a minute: if there are more, the objects are kept", ref.Kind,
		ref.APIVersion))
	return unservedRetry, nil
}

// templateWent reports whether the template of a binding that is being deleted was deleted with its CRD, if the CRD is
// one of the hub's own.
func (r *reconciler) templateWent(ctx context.Context, b workv1alpha2.Binding) (bool, error) {
	ref := b.BindingSpec().Resource
	switch name := definition.NameOf(match.GroupKind(ref.APIVersion, ref.Kind)); name {
	case definition.EnclosedManifests, definition.ServiceExports, definition.ServiceImports:
		return r.Definitions.WentNow(ctx, name, b)
	}
	return false, nil
}

func definitionOf(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return definition.ClusterResourceBindings
	}
	return definition.ResourceBindings
}

// leave removes the finalizer of a binding that was deleted without a deletion request, and keeps its Works.
func (r *reconciler) leave(ctx context.Context, b workv1alpha2.Binding) error {
	went, err := r.templateWent(ctx, b)
	if err != nil {
		return err
	}
	if !went { // else the template was deleted, and a user must create it again
		r.abandoned.add(client.ObjectKeyFromObject(b), b.BindingSpec().Resource, r.Clock.Now())
	}
	if err := r.letGo(ctx, b); err != nil {
		return err
	}
	r.events.Event(b, corev1.EventTypeWarning, eventWorksKept,
		"the binding was deleted, but not by the hub: nothing is deleted in the clusters, and the binding is recreated while its template exists")
	return nil
}

// abandoned are bindings that were deleted without a deletion request and whose Works no other binding has adopted
// yet.
type abandoned struct {
	mu sync.Mutex
	of map[types.NamespacedName]ancestor
}

type ancestor struct {
	template workv1alpha2.ObjectReference
	since    time.Time
}

// adoptionTimeout is the time that another binding has to adopt the Works; heirRetry is the delay between checks.
const (
	adoptionTimeout = time.Minute
	heirRetry       = 2 * time.Second
)

func (h *abandoned) add(binding types.NamespacedName, template workv1alpha2.ObjectReference, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[types.NamespacedName]ancestor{}
	}
	h.of[binding] = ancestor{template, now}
}

func (h *abandoned) get(binding types.NamespacedName) (ancestor, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.of[binding]
	return a, ok
}

func (h *abandoned) forget(binding types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, binding)
}

// inherit handles the Works of an abandoned binding until another binding adopts them: if the template is deleted
// before that, it deletes them. It returns when to check again; 0 for never.
func (r *reconciler) inherit(ctx context.Context, binding types.NamespacedName) (time.Duration, error) {
	a, ok := r.abandoned.get(binding)
	if !ok {
		return 0, nil
	}
	_, err := scope.Bindings.Get(ctx, r.live, binding)
	if err == nil || r.Clock.Since(a.since) > adoptionTimeout {
		r.abandoned.forget(binding)
		return 0, nil
	}
	if !commit.Absent(err) {
		return heirRetry, client.IgnoreNotFound(err) // or its definition is not served
	}
	_, found, err := r.Templates.Live(ctx, match.GroupKind(a.template.APIVersion, a.template.Kind),
		a.template.Namespace, a.template.Name)
	if err != nil || found || len(r.Definitions.Broken()) > 0 {
		return heirRetry, err
	}
	works, err := scope.WorksOf(ctx, r.client, binding)
	if err != nil {
		return 0, err
	}
	for i := range works {
		if err := commit.Delete(ctx, r.client, &works[i]); err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	r.abandoned.forget(binding)
	return 0, nil
}
