package propagate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// key names a template.
type key struct {
	schema.GroupKind
	types.NamespacedName
}

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Group, b.Group))
}

func (k key) String() string { return k.GroupKind.String() + " " + k.NamespacedName.String() }

func keyOf(obj *unstructured.Unstructured) key {
	return key{match.TemplateOf(obj).GroupKind(),
		types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// keyBehind returns the template that a binding is for.
func keyBehind(b workv1alpha2.Binding) key {
	ref := b.BindingSpec().Resource
	return key{match.GroupKind(ref.APIVersion, ref.Kind),
		types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}

// templateChanged adds templates if their content or claim changed, but not if only their status changed.
func templateChanged(add func(key)) template.Handler {
	return func(was, is *unstructured.Unstructured) {
		switch {
		case is == nil:
			add(keyOf(was))
		case was == nil || !propagate.SameContent(was, is):
			add(keyOf(is))
		}
	}
}

// kindsChanged adds the claimed templates of kinds that are interpreted differently than before.
func (r *reconciler) kindsChanged(add func(key)) func(interpreter.Concerns) {
	return func(concerns interpreter.Concerns) {
		for _, gk := range r.Templates.Kinds() {
			if !concerns(gk) {
				continue
			}
			var keys []key
			for _, obj := range r.Templates.List(gk, "", nil) {
				if _, claimed := propagate.Claimed(obj); claimed {
					keys = append(keys, keyOf(obj))
				}
			}
			slices.SortFunc(keys, compareKeys)
			for _, k := range keys {
				add(k)
			}
		}
	}
}

// policyChanged adds the templates that a policy selects, and those that it has claimed.
func (r *reconciler) policyChanged() handler.TypedFuncs[policyv1alpha1.Propagation, key] {
	all := func(ctx context.Context, p policyv1alpha1.Propagation, q workqueue.TypedRateLimitingInterface[key]) {
		for _, k := range slices.SortedFunc(maps.Keys(r.concerns(ctx, p)), compareKeys) { // as argosy simulate assumes
			q.Add(k)
		}
	}
	return handler.TypedFuncs[policyv1alpha1.Propagation, key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[policyv1alpha1.Propagation],
			q workqueue.TypedRateLimitingInterface[key]) {
			all(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[policyv1alpha1.Propagation],
			q workqueue.TypedRateLimitingInterface[key]) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil ||
				propagate.ID(e.ObjectOld) != propagate.ID(e.ObjectNew) {
				all(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[policyv1alpha1.Propagation],
			q workqueue.TypedRateLimitingInterface[key]) {
			all(ctx, e.Object, q)
		},
	}
}

// concerns returns the templates that a policy selects or has claimed, and those of bindings that it has claimed. It
// starts to watch the kinds of these templates and of their dependencies. Templates that are not in the cache yet are
// added when they arrive.
func (r *reconciler) concerns(ctx context.Context, p policyv1alpha1.Propagation) map[key]bool {
	keys := map[key]bool{}
	if p.PropagationSpec().PropagateDeps {
		r.Templates.Want(companion.Kinds()...)
	}
	for _, sel := range p.PropagationSpec().ResourceSelectors {
		gk := match.GroupKind(sel.APIVersion, sel.Kind)
		r.Templates.Want(gk)
		if namespace := cmp.Or(sel.Namespace, p.GetNamespace()); sel.Name != "" && namespace != "" {
			keys[key{gk, types.NamespacedName{Namespace: namespace, Name: sel.Name}}] = true
			if sel.Namespace != "" {
				continue
			}
		}
		for _, obj := range r.Templates.List(gk, sel.Namespace, nil) {
			if match.Selectors(p.GetNamespace(), []policyv1alpha1.ResourceSelector{sel},
				match.TemplateOf(obj)) != match.None {
				keys[keyOf(obj)] = true
			}
		}
	}
	id := propagate.ID(p)
	if id == "" {
		return keys
	}
	for _, obj := range r.Templates.ClaimedBy(id) {
		keys[keyOf(obj)] = true
	}
	bindings, err := r.claimedBindings(ctx, id)
	if err != nil {
		// The cache is in memory and its index exists; the templates' own events still come.
		log.FromContext(ctx).Error(err, "list the bindings of a policy", "policy", p.GetName())
	}
	for _, b := range bindings {
		keys[keyBehind(b)] = true
	}
	return keys
}

// bindingChanged adds the template of a changed binding, and starts to watch its kind. The status of the
// binding decides nothing here.
func (r *reconciler) bindingChanged() handler.TypedFuncs[workv1alpha2.Binding, key] {
	add := func(b workv1alpha2.Binding, q workqueue.TypedRateLimitingInterface[key]) {
		k := keyBehind(b)
		r.Templates.Want(k.GroupKind)
		q.Add(k)
	}
	return handler.TypedFuncs[workv1alpha2.Binding, key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[workv1alpha2.Binding],
			q workqueue.TypedRateLimitingInterface[key]) {
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[workv1alpha2.Binding],
			q workqueue.TypedRateLimitingInterface[key]) {
			was, is := e.ObjectOld, e.ObjectNew
			if was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetLabels(), is.GetLabels()) ||
				!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || !slices.Equal(was.GetFinalizers(), is.GetFinalizers()) {
				add(is, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[workv1alpha2.Binding],
			q workqueue.TypedRateLimitingInterface[key]) {
			add(e.Object, q)
		},
	}
}

// overrideAppeared adds the templates of the policies that wait for an override policy.
func (r *reconciler) overrideAppeared() handler.TypedFuncs[policyv1alpha1.Override, key] {
	return handler.TypedFuncs[policyv1alpha1.Override, key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[policyv1alpha1.Override],
			q workqueue.TypedRateLimitingInterface[key]) {
			waiting, err := scope.Propagations.List(ctx, r.client,
				client.MatchingFields{byOverride: overrideIndex(e.Object.GetNamespace(), e.Object.GetName())},
				client.UnsafeDisableDeepCopy)
			if err != nil {
				log.FromContext(ctx).Error(err, "list the policies that wait for an override", "override", e.Object.GetName())
			}
			for _, p := range waiting {
				for k := range r.concerns(ctx, p) {
					q.Add(k)
				}
			}
		},
	}
}

// Indexes avoid scans of all policies or bindings.
const (
	// bySelection finds the policies that may select a template: see selections.
	bySelection = "propagate.selection"
	// byOverride finds the policies that depend on an override policy.
	byOverride = "propagate.override"
	// byClaim finds the bindings that a policy has claimed, by the permanent id of the policy.
	byClaim = "propagate.claim"
)

type index struct {
	object client.Object
	field  string
	values client.IndexerFunc
}

func indexes() []index {
	var all []index
	for _, kind := range scope.Propagations.Kinds() {
		all = append(all,
			index{kind, bySelection, func(obj client.Object) []string {
				p := obj.(policyv1alpha1.Propagation)
				var values []string
				for _, sel := range p.PropagationSpec().ResourceSelectors {
					gk := match.GroupKind(sel.APIVersion, sel.Kind)
					values = append(values, selection(p.GetNamespace(), gk, sel.Name))
					if sel.Namespace == "" { // it may be a cluster-scoped kind
						values = append(values, selection("", gk, sel.Name))
					}
				}
				slices.Sort(values)
				return slices.Compact(values)
			}},
			index{kind, byOverride, func(obj client.Object) []string {
				var values []string
				for _, name := range obj.(policyv1alpha1.Propagation).PropagationSpec().DependentOverrides {
					values = append(values, overrideIndex(obj.GetNamespace(), name))
				}
				return values
			}})
	}
	for _, kind := range scope.Bindings.Kinds() {
		all = append(all, index{kind, byClaim, func(obj client.Object) []string {
			if claim, claimed := propagate.Claimed(obj); claimed {
				return []string{claim.ID}
			}
			return nil
		}})
	}
	return all
}

// selection returns the value by which a policy of the namespace, empty for a cluster policy, is found for the
// templates of a kind: all of them, or the one of that name.
func selection(policyNamespace string, gk schema.GroupKind, name string) string {
	return policyNamespace + "/" + gk.String() + "/" + name
}

// selections returns the values under which every policy is found that may select t.
func selections(t match.Template) []string {
	values := []string{selection("", t.GroupKind(), ""), selection("", t.GroupKind(), t.Name)}
	if t.Namespace != "" {
		values = append(values, selection(t.Namespace, t.GroupKind(), ""), selection(t.Namespace, t.GroupKind(), t.Name))
	}
	return values
}

func overrideIndex(namespace, name string) string { return namespace + "/" + name }
