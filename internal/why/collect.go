// Package why collects what core/explain/why explains: it finds the template that a user names as kubectl would, and
// reads all that has to do with it, through the hub's API.
package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// Query names a template and, optionally, one cluster for details.
type Query struct {
	// Kind as kubectl takes it: a kind, plural, singular or short name, with or without ".group" or ".version.group".
	Kind string
	// Namespace is ignored for cluster-scoped kinds.
	Namespace, Name string
	// Cluster narrows the answer; empty for the fleet.
	Cluster string
	// Scheduler is the configuration of the hub's scheduler.
	Scheduler Scheduler
	// Room returns the room for the binding, Pods what keeps its pods from running; may be nil.
	Room Room
	Pods Pods
	// Troubled returns the workloads of all namespaces with pods that do not run, as far as the user may know them; may
	// be nil.
	Troubled func(ctx context.Context) []pods.Workload
	// Orphans returns the objects of the hub in a cluster that have no Work, such as "Deployment shop/web"; may be nil.
	Orphans func(ctx context.Context, cluster string) []string
}

// Error is an error of the query.
type Error struct {
	Reason  metav1.StatusReason // NotFound, BadRequest or Conflict
	Message string
}

func (e *Error) Error() string { return e.Message }

func fail(reason metav1.StatusReason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Explained is an answer: a why.Answer of a template, a why.PolicyAnswer, a why.MemberAnswer of a cluster, or a
// why.ManifestWorkAnswer. It encodes as JSON.
type Explained interface {
	// Write prints the answer for users.
	Write(out io.Writer) error
}

// Explain answers a query. r must know the hub's own types, and mapper its kinds. Errors of the query are of type
// *Error; other errors come from the reader.
func Explain(ctx context.Context, r client.Reader, mapper meta.RESTMapper, q Query) (Explained, error) {
	if q.Kind == "" || q.Name == "" {
		return nil, fail(metav1.StatusReasonBadRequest, "name a kind and an object, such as deployment web")
	}
	template, err := find(ctx, r, mapper, q)
	if err != nil {
		return nil, err
	}
	if says, err := steers(ctx, r, mapper, template.GroupVersionKind(), client.ObjectKeyFromObject(template),
		q); says != nil || err != nil {
		return says, err
	}
	f, err := collect(ctx, r, template, q)
	if err != nil {
		return nil, err
	}
	if q.Room != nil && f.Binding != nil {
		f.Room, f.Limits = q.Room(ctx, f.Binding)
	}
	if q.Pods != nil && f.Binding != nil {
		f.Pods = q.Pods(ctx, f.Binding)
	}
	answer := why.Explain(f)
	if q.Cluster == "" {
		return answer, nil
	}
	if narrow, ok := answer.ForCluster(q.Cluster); ok {
		return narrow, nil
	}
	if slices.ContainsFunc(f.Clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == q.Cluster }) {
		// Nothing is placed, so the answer has no rows but the reason.
		return answer, nil
	}
	fleet := "the fleet has no clusters"
	if len(f.Missing) > 0 {
		fleet = roles.Sentence(f.Missing)
	}
	if len(f.Clusters) > 0 {
		var all []string
		for _, c := range f.Clusters {
			all = append(all, c.Name)
		}
		slices.Sort(all)
		fleet = "the fleet has " + strings.Join(all, ", ")
	}
	return nil, fail(metav1.StatusReasonNotFound, "there is no cluster %q: %s", q.Cluster, fleet)
}

// find reads the template. If several kinds have the name, it selects the kind that has such an object.
func find(ctx context.Context, r client.Reader, mapper meta.RESTMapper, q Query) (*unstructured.Unstructured, error) {
	kinds, err := kindsOf(mapper, q.Kind)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	var those, looked []string
	for _, m := range kinds {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(m.GroupVersionKind)
		key := types.NamespacedName{Name: q.Name}
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			key.Namespace = q.Namespace
		}
		err := r.Get(ctx, key, u)
		if apierrors.IsNotFound(err) {
			looked = append(looked, m.Resource.GroupResource().String())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get %s %s: %w", m.Resource.GroupResource(), q.Name, NameRight(err, "get", key.Namespace))
		}
		found, those = append(found, u), append(those, m.Resource.GroupResource().String())
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, absent(ctx, r, kinds, looked, q)
	}
	return nil, fail(metav1.StatusReasonConflict, "%q may be %s, and each has an object %q: name one of them", q.Kind,
		strings.Join(those, " or "), q.Name)
}

// kindsOf returns the kinds with a name, one version of each, sorted by group.
func kindsOf(mapper meta.RESTMapper, name string) ([]*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(name))
	ask := []schema.GroupVersionResource{short.WithVersion("")}
	if full != nil {
		ask = append([]schema.GroupVersionResource{*full}, ask...)
	}
	var kinds []schema.GroupVersionKind
	for _, gvr := range ask {
		some, err := mapper.KindsFor(gvr)
		if err == nil && len(some) > 0 {
			kinds = some
			break
		}
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("ask the hub for its kinds: %w", err)
		}
	}
	var out []*meta.RESTMapping
	for _, k := range kinds {
		if slices.ContainsFunc(out, func(m *meta.RESTMapping) bool {
			return m.GroupVersionKind.GroupKind() == k.GroupKind()
		}) {
			continue
		}
		m, err := mapper.RESTMapping(k.GroupKind(), k.Version)
		if err != nil {
			return nil, fmt.Errorf("ask the hub for the kind %s: %w", k, err)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, fail(metav1.StatusReasonNotFound,
			"the hub serves no kind %q: `kubectl api-resources` lists its kinds; install the CustomResourceDefinition of other kinds on the hub first", name)
	}
	slices.SortFunc(out, func(a, b *meta.RESTMapping) int {
		return strings.Compare(a.Resource.GroupResource().String(), b.Resource.GroupResource().String())
	})
	return out, nil
}

// absent returns the error for a missing object, with namespaces that have one of that name. It ignores namespaces that
// the user may not read.
func absent(ctx context.Context, r client.Reader, kinds []*meta.RESTMapping, looked []string, q Query) error {
	where, elsewhere := "", map[string]bool{}
	for _, m := range kinds {
		if m.Scope.Name() != meta.RESTScopeNameNamespace {
			continue
		}
		where = fmt.Sprintf(" in namespace %q", q.Namespace)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(m.GroupVersionKind)
		if r.List(ctx, list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name",
			q.Name)}) != nil {
			continue
		}
		for i := range list.Items {
			// Execution spaces and the like have none, but a reader in memory does not select.
			if list.Items[i].Name == q.Name {
				elsewhere[list.Items[i].Namespace] = true
			}
		}
	}
	hint := ""
	if len(elsewhere) > 0 {
		hint = "; there is one in namespace " + text.Names(slices.Sorted(maps.Keys(elsewhere)), 5) + ": name it with -n"
	}
	return fail(metav1.StatusReasonNotFound, "the hub has no %s %q%s%s", strings.Join(looked, " and no "), q.Name, where,
		hint)
}

// collect reads the objects related to a template.
func collect(ctx context.Context, r client.Reader, template *unstructured.Unstructured, q Query) (why.Facts, error) {
	f := why.Facts{Scheduler: q.Scheduler.Settings}
	namespace, kind, name := template.GetNamespace(), template.GetKind(), template.GetName()
	may := &permitted{Reader: r}

	// 1. The policies that may select it. A cluster-scoped template may be selected from any namespace.
	policies, err := scope.Propagations.Over(ctx, may, namespace)
	if err != nil {
		return f, fmt.Errorf("list propagation policies: %w", err)
	}
	if f.Overrides, err = scope.Overrides.Over(ctx, may, namespace); err != nil {
		return f, fmt.Errorf("list override policies: %w", err)
	}

	// 2. Its binding.
	binding := names.Binding(kind, name)
	existing, _, err := scope.BindingFor(ctx, r, template.GroupVersionKind().GroupKind(), namespace, name)
	if err != nil && !may.lacks(err, "get", namespace) {
		return f, err
	}
	if existing != nil {
		binding = existing.GetName()
	}
	if f.Observed, err = facts.Observed(ctx, may, template, existing, policies); err != nil {
		return f, err
	}

	// 3. The clusters and the Works.
	if f.Clusters, err = facts.ClusterList(ctx, may); err != nil {
		return f, err
	}
	works, err := scope.WorksFor(ctx, r, dispatch.WorkName(f.Binding, template), identity.FromManifest(template))
	switch {
	case apierrors.IsForbidden(err):
		f.Works, f.Unseen = why.WorksInStatus(f.Binding), true
	case err != nil:
		return f, fmt.Errorf("list works: %w", err)
	default:
		f.Works = works
	}

	if propagate.Belongs(template, f.Binding) == nil {
		if f.Peers, f.Failovers, err = related(ctx, r, f.Binding, f.Clusters, q); err != nil {
			return f, err
		}
	}

	// 4. The Service of its pods.
	if f.Service, err = service(ctx, r, template); err != nil {
		return f, err
	}

	// 5. Its autoscalers, its releases and its quotas.
	if namespace != "" {
		var scalers autoscalingv1alpha1.FederatedHPAList
		if err := may.List(ctx, &scalers, client.InNamespace(namespace)); err != nil {
			return f, fmt.Errorf("list FederatedHPAs: %w", err)
		}
		var releases releasev1alpha1.ReleaseList
		if err := may.List(ctx, &releases, client.InNamespace(namespace)); err != nil {
			return f, fmt.Errorf("list releases: %w", err)
		}
		var quotas policyv1alpha1.FederatedResourceQuotaList
		if !q.Scheduler.QuotasOff {
			if err := may.List(ctx, &quotas, client.InNamespace(namespace)); err != nil {
				return f, fmt.Errorf("list FederatedResourceQuotas: %w", err)
			}
		}
		f.Scalers, f.Releases, f.Quotas = scalers.Items, releases.Items, quotas.Items
		if f.Autoscalers, err = autoscalers(ctx, may, namespace); err != nil {
			return f, err
		}
	}

	// 6. Events.
	f.Warnings, err = warnings(ctx, may, namespace, kind, name, binding)
	if err != nil {
		return f, fmt.Errorf("list events: %w", err)
	}
	f.Missing = may.missing
	return f, nil
}

// autoscalers returns the objects of a namespace that scale workloads in members.
func autoscalers(ctx context.Context, r client.Reader, namespace string) (all []*unstructured.Unstructured, err error) {
	for _, gvk := range kind.Scalers() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// service returns the Service of a StatefulSet; nil if it names none, or if the user may not read Services.
func service(ctx context.Context, r client.Reader, template *unstructured.Unstructured) (*why.Service, error) {
	s := &why.Service{Name: validate.ServiceOf(template)}
	if s.Name == "" {
		return nil, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("Service")
	switch err := r.Get(ctx, types.NamespacedName{Namespace: template.GetNamespace(), Name: s.Name}, obj); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("get Service %s: %w", s.Name, err)
	default:
		s.There = err == nil
	}
	var err error
	s.Binding, _, err = scope.BindingFor(ctx, r, schema.GroupKind{Kind: "Service"}, template.GetNamespace(), s.Name)
	return s, err
}

// warnings returns the events of type Warning about a template or its binding.
func warnings(ctx context.Context, r client.Reader, namespace, kind, name, binding string) ([]why.Warning, error) {
	in := cmp.Or(namespace, metav1.NamespaceDefault)
	var out []why.Warning
	var errs []error
	for _, about := range []struct {
		name string
		is   func(kind string) bool
	}{
		{name, func(k string) bool { return k == kind }},
		{binding, func(k string) bool { return k == "ResourceBinding" || k == "ClusterResourceBinding" }},
	} {
		var events corev1.EventList
		err := r.List(ctx, &events, client.InNamespace(in),
			client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(fields.Set{
				"involvedObject.name": about.name, "type": corev1.EventTypeWarning})})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range events.Items {
			if !about.is(e.InvolvedObject.Kind) {
				continue
			}
			last := e.LastTimestamp
			if last.IsZero() {
				last = metav1.NewTime(e.EventTime.Time)
			}
			out = append(out, why.Warning{Object: e.InvolvedObject.Kind + " " +
				text.Path(e.InvolvedObject.Namespace, e.InvolvedObject.Name),
				Reason: e.Reason, Message: e.Message, Last: last})
		}
	}
	return out, errors.Join(errs...)
}
