package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

// Fleet is the input of a simulation: a recorded or an invented hub. It is immutable.
type Fleet struct {
	clusters map[string]*clusterv1alpha1.Cluster
	// members are the members in the files; of others, only the summary is known. made are clusters that only files of
	// members define; they serve every kind.
	members         map[string]*DocumentCluster
	made            map[string]bool
	templates       map[ref]*unstructured.Unstructured
	policies        map[types.NamespacedName]policyv1alpha1.Propagation
	overrides       map[types.NamespacedName]policyv1alpha1.Override
	federatedQuotas map[types.NamespacedName]policyv1alpha1.FederatedResourceQuota
	// bindings are the placements of templates; a template without one has not been placed yet.
	bindings       map[types.NamespacedName]workv1alpha2.Binding
	customizations map[string]*configv1alpha1.ResourceInterpreterCustomization
	webhooks       map[string]*configv1alpha1.ResourceInterpreterWebhookConfiguration
	priorities     map[string]int32
	rebalancers    map[string]*appsv1alpha1.WorkloadRebalancer
	// clusterScoped are the kinds that are known to be cluster-scoped.
	clusterScoped map[schema.GroupKind]bool
	// added are the objects that were added last, in their order. invented are the templates among them that no hub has.
	added    []ref
	invented map[ref]bool
	warnings []note
	// scheduler has the settings of the hub's scheduler.
	scheduler schedule.Settings
	// failover are the hub's failover options.
	failover failover.Options
}

// ref names a template; an empty namespace is a cluster-scoped one.
type ref struct {
	schema.GroupKind
	Namespace, Name string
}

func refOf(u *unstructured.Unstructured) ref {
	return ref{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

func templateOf(b workv1alpha2.Binding) ref {
	of := b.BindingSpec().Resource
	return ref{match.GroupKind(of.APIVersion, of.Kind), of.Namespace, of.Name}
}

// String names the template for people: "CloneSet shop/web".
func (r ref) String() string { return text.Object(r.Kind, r.Namespace, r.Name) }

func compareRefs(a, b ref) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Group, b.Group))
}

// Object is an object and where it was read, such as "fleet.yaml: document 3", for messages.
type Object struct {
	*unstructured.Unstructured
	Source string
}

// Load returns a fleet with these objects, in any order. namespace is the default of namespaced objects. The error
// joins one error per invalid object.
func Load(objects []Object, namespace string) (*Fleet, error) {
	f := &Fleet{
		failover:        failover.Defaults,
		clusters:        map[string]*clusterv1alpha1.Cluster{},
		members:         map[string]*DocumentCluster{},
		made:            map[string]bool{},
		rebalancers:     map[string]*appsv1alpha1.WorkloadRebalancer{},
		templates:       map[ref]*unstructured.Unstructured{},
		policies:        map[types.NamespacedName]policyv1alpha1.Propagation{},
		overrides:       map[types.NamespacedName]policyv1alpha1.Override{},
		federatedQuotas: map[types.NamespacedName]policyv1alpha1.FederatedResourceQuota{},
		bindings:        map[types.NamespacedName]workv1alpha2.Binding{},
		customizations:  map[string]*configv1alpha1.ResourceInterpreterCustomization{},
		webhooks:        map[string]*configv1alpha1.ResourceInterpreterWebhookConfiguration{},
		priorities:      map[string]int32{},
		clusterScoped:   map[schema.GroupKind]bool{},
		invented:        map[ref]bool{},
	}
	return f, f.add(objects, namespace, true)
}

// Apply returns a fleet with more objects, applied as to the hub: converted from other spellings, defaulted and
// validated. touched are the templates among them. The error is like that of Load.
func (f *Fleet) Apply(objects []Object, namespace string) (next *Fleet, touched map[ref]bool, err error) {
	next = f.clone()
	next.warnings, next.added, next.invented = nil, nil, map[ref]bool{}
	if err := next.add(objects, namespace, false); err != nil {
		return nil, nil, err
	}
	touched = map[ref]bool{}
	for r, u := range next.templates {
		if f.templates[r] != u {
			touched[r] = true
		}
	}
	return next, touched, nil
}

func (f *Fleet) Scheduler() schedule.Settings { return f.scheduler }

// ScheduledBy returns the fleet with a scheduler with these settings.
func (f *Fleet) ScheduledBy(s schedule.Settings) *Fleet {
	next := f.clone()
	next.scheduler = s
	return next
}

// WithoutNamespace returns the fleet that knows that these kinds have no namespace.
func (f *Fleet) WithoutNamespace(kinds ...schema.GroupKind) *Fleet {
	next := f.clone()
	for _, gk := range kinds {
		next.clusterScoped[gk] = true
	}
	return next
}

// Warnings returns what was rewritten, or is probably a mistake, in the objects that were added last.
func (f *Fleet) Warnings() []string {
	var texts []string
	for _, n := range f.warnings {
		texts = append(texts, n.text)
	}
	return texts
}

// note is a warning about an object.
type note struct {
	about ref
	text  string
}

func (f *Fleet) warn(about ref, format string, args ...any) {
	f.warnings = append(f.warnings, note{about, fmt.Sprintf(format, args...)})
}

// Kinds returns the kinds of templates that a simulation with these objects needs: those that policies select,
// namespaces if SidecarSets select them by label, and MultiClusterServices with their Services. They are sorted.
func Kinds(objects []Object) []schema.GroupKind {
	var kinds []schema.GroupKind
	add := func(apiVersion, kind string) {
		gk := match.GroupKind(apiVersion, kind)
		if kind != "" && propagate.Propagable(gk) && !slices.Contains(kinds, gk) {
			kinds = append(kinds, gk)
		}
	}
	for _, o := range objects {
		switch gvk := o.GroupVersionKind(); gvk.GroupKind() {
		case policyv1alpha1.GroupVersion.WithKind("PropagationPolicy").GroupKind(),
			policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy").GroupKind():
			u := o.DeepCopy()
			if _, _, err := dialect.Normalise(u); err != nil {
				continue // Load returns the error
			}
			for _, s := range fields.Objects(u.Object, "spec", "resourceSelectors") {
				add(fields.Text(s, "apiVersion"), fields.Text(s, "kind"))
			}
		case workv1alpha2.GroupVersion.WithKind("ResourceBinding").GroupKind(),
			workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding").GroupKind():
			of := fields.Object(o.Object, "spec", "resource")
			add(fields.Text(of, "apiVersion"), fields.Text(of, "kind"))
		default:
			if gvk.Group != workv1alpha1.GroupVersion.Group && gvk.Group != Document.Group {
				add(o.GetAPIVersion(), o.GetKind())
			}
		}
	}
	if slices.Contains(kinds, dependency.SidecarSetKind) {
		add("v1", "Namespace")
	}
	if slices.Contains(kinds, serviceKind) || slices.Contains(kinds, multiClusterService) {
		add("v1", serviceKind.Kind)
		add(networkingv1alpha1.GroupVersion.String(), multiClusterService.Kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

func (f *Fleet) clone() *Fleet {
	next := *f
	next.clusters, next.templates, next.policies = maps.Clone(f.clusters), maps.Clone(f.templates), maps.Clone(f.policies)
	next.overrides, next.bindings = maps.Clone(f.overrides), maps.Clone(f.bindings)
	next.customizations, next.webhooks = maps.Clone(f.customizations), maps.Clone(f.webhooks)
	next.priorities, next.clusterScoped = maps.Clone(f.priorities), maps.Clone(f.clusterScoped)
	next.invented, next.members = maps.Clone(f.invented), maps.Clone(f.members)
	next.federatedQuotas = maps.Clone(f.federatedQuotas)
	next.made, next.rebalancers = maps.Clone(f.made), maps.Clone(f.rebalancers)
	return &next
}

// add adds objects: first those that define the scope of kinds, then the others. recorded means that they come from a
// hub, or represent one.
func (f *Fleet) add(objects []Object, namespace string, recorded bool) error {
	for _, o := range objects {
		f.learnScope(o.Unstructured, recorded)
	}
	var errs []error
	seen, sources := map[ref]string{}, map[string]string{}
	for _, o := range objects {
		if o.GroupVersionKind().Group == Document.Group {
			if err := f.addMembers(o, sources); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.Source, err))
			}
			continue
		}
		u := o.DeepCopy()
		if u.GetName() == "" {
			errs = append(errs, fmt.Errorf("%s: %s: set metadata.name", o.Source, u.GetKind()))
			continue
		}
		if f.isClusterScoped(u.GroupVersionKind().GroupKind()) {
			u.SetNamespace("")
		} else if u.GetNamespace() == "" {
			u.SetNamespace(namespace)
		}
		r := refOf(u)
		if at, twice := seen[r]; twice {
			errs = append(errs, fmt.Errorf("%s: %s is in %s already: keep one of the two", o.Source, r, at))
			continue
		}
		seen[r], f.added = o.Source, append(f.added, r)
		if err := f.addOne(u, recorded, func(text string) {
			f.warn(r, "%s: %s: %s", o.Source, r, text)
		}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", o.Source, r, err))
		}
	}
	slices.SortFunc(f.warnings, func(a, b note) int { return strings.Compare(a.text, b.text) })
	return errors.Join(append(errs, f.makeClusters(sources))...)
}

func (f *Fleet) addOne(u *unstructured.Unstructured, recorded bool, warn func(string)) error {
	gvk := u.GroupVersionKind()
	if _, annotated := u.GetAnnotations()[wellknown.SubmittedFieldsAnnotation]; !recorded || !annotated {
		_, texts, err := dialect.Normalise(u)
		if err != nil {
			return err
		}
		if !recorded {
			texts = append(texts, dialect.Advise(u)...)
		}
		for _, text := range texts {
			warn(text)
		}
	}
	if err := fillDefaults(u); err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	switch gvk.Group {
	case policyv1alpha1.GroupVersion.Group:
		switch gvk.Kind {
		case "PropagationPolicy":
			return f.addPolicy(key, u, &policyv1alpha1.PropagationPolicy{}, recorded)
		case "ClusterPropagationPolicy":
			return f.addPolicy(key, u, &policyv1alpha1.ClusterPropagationPolicy{}, recorded)
		case "OverridePolicy":
			return f.addOverride(key, u, &policyv1alpha1.OverridePolicy{}, recorded)
		case "ClusterOverridePolicy":
			return f.addOverride(key, u, &policyv1alpha1.ClusterOverridePolicy{}, recorded)
		case "FederatedResourceQuota":
			q := policyv1alpha1.FederatedResourceQuota{}
			if err := decode(u, &q, recorded); err != nil {
				return err
			}
			f.federatedQuotas[key] = q
			return validate.FederatedResourceQuota(&q).ToAggregate()
		}
	case clusterv1alpha1.GroupVersion.Group:
		c := &clusterv1alpha1.Cluster{}
		if err := decode(u, c, recorded); err != nil {
			return err
		}
		if wrong := validate.ClusterName(c.Name, field.NewPath("metadata", "name")); len(wrong) > 0 {
			return wrong.ToAggregate()
		}
		if was := f.clusters[c.Name]; !recorded && was != nil && u.Object["status"] == nil {
			c.Status = was.Status
		}
		if u.Object["status"] != nil {
			f.made[c.Name] = false
		}
		f.clusters[c.Name] = c
		return nil
	case configv1alpha1.GroupVersion.Group:
		switch gvk.Kind {
		case "ResourceInterpreterCustomization":
			return put(f.customizations, u, recorded, func(c *configv1alpha1.ResourceInterpreterCustomization) error {
				if recorded {
					return nil
				}
				return errors.Join(validate.Customization(c, nil).ToAggregate())
			})
		case "ResourceInterpreterWebhookConfiguration":
			return put(f.webhooks, u, recorded,
				func(*configv1alpha1.ResourceInterpreterWebhookConfiguration) error { return nil })
		}
	case appsv1alpha1.GroupVersion.Group:
		if gvk.Kind == "WorkloadRebalancer" {
			return put(f.rebalancers, u, recorded, func(r *appsv1alpha1.WorkloadRebalancer) error {
				if !recorded {
					r.CreationTimestamp, r.Status = metav1.Time{}, appsv1alpha1.WorkloadRebalancerStatus{} // as when it is created
				}
				return nil
			})
		}
	case schedulingv1.GroupName:
		if gvk.Kind == "PriorityClass" {
			value, _, err := unstructured.NestedInt64(u.Object, "value")
			if err != nil {
				return err
			}
			f.priorities[u.GetName()] = int32(value)
			return nil
		}
	case workv1alpha2.GroupVersion.Group:
		if !recorded {
			return fmt.Errorf("the hub makes these itself: leave it out, or put it into the file of --fleet to set where a template is now")
		}
		switch gvk.Kind {
		case "ResourceBinding":
			return f.addBinding(key, u, &workv1alpha2.ResourceBinding{})
		case "ClusterResourceBinding":
			return f.addBinding(key, u, &workv1alpha2.ClusterResourceBinding{})
		}
		return nil // a Work follows from its binding
	}
	if t := match.TemplateOf(u); propagate.Excluded(t) {
		if !recorded && gvk.Group != apiextensionsv1.GroupName {
			warn("is never sent to members; it has no effect here")
		}
		return nil
	}
	was := f.templates[refOf(u)]
	if !recorded && was != nil {
		// The hub serves the versions of a kind alike, and stores one.
		switch same, err := tiers.Convert(u, was.GroupVersionKind().Version); {
		case err != nil:
			return err
		case same != nil:
			u = same
		}
		over(was, u)
	}
	if u.GetUID() == "" || !recorded && was == nil {
		f.invented[refOf(u)] = true
	}
	if u.GetUID() == "" {
		u.SetUID(types.UID(simulatedUID + refOf(u).String()))
	}
	f.templates[refOf(u)] = u
	return nil
}

// simulatedUID begins the UIDs of templates that do not exist yet. A UID breaks ties, and a hub draws it when the
// object is created.
const simulatedUID = "simulated "

// over copies what stays of an object when a manifest is applied: its identity, its claim, and labels and annotations
// of others.
func over(was, u *unstructured.Unstructured) {
	u.SetUID(was.GetUID())
	u.SetResourceVersion(was.GetResourceVersion())
	u.SetLabels(joined(was.GetLabels(), u.GetLabels()))
	u.SetAnnotations(joined(was.GetAnnotations(), u.GetAnnotations()))
}

func joined(below, above map[string]string) map[string]string {
	if len(below)+len(above) == 0 {
		return nil
	}
	all := map[string]string{}
	maps.Copy(all, below)
	maps.Copy(all, above)
	return all
}

func (f *Fleet) addPolicy(key types.NamespacedName, u *unstructured.Unstructured, p policyv1alpha1.Propagation,
	recorded bool) error {
	if err := decode(u, p, recorded); err != nil {
		return err
	}
	validate.DefaultPropagation(p, func(s policyv1alpha1.ResourceSelector) bool {
		return f.isClusterScoped(match.GroupKind(s.APIVersion, s.Kind))
	})
	old := f.policies[key]
	switch {
	case old != nil:
		validate.Identify(p, propagate.ID(old))
	case propagate.ID(p) == "" || !recorded:
		validate.Identify(p, "simulated "+key.String())
	}
	if errs := validate.Propagation(p, old); len(errs) > 0 {
		return errs.ToAggregate()
	}
	f.policies[key] = p
	return nil
}

func (f *Fleet) addOverride(key types.NamespacedName, u *unstructured.Unstructured, o policyv1alpha1.Override,
	recorded bool) error {
	if err := decode(u, o, recorded); err != nil {
		return err
	}
	validate.DefaultSelectors(o.OverrideSpec().ResourceSelectors, key.Namespace,
		func(s policyv1alpha1.ResourceSelector) bool {
			return f.isClusterScoped(match.GroupKind(s.APIVersion, s.Kind))
		})
	if errs := validate.Override(o); !recorded && len(errs) > 0 {
		return errs.ToAggregate()
	}
	f.overrides[key] = o
	return nil
}

func (f *Fleet) addBinding(key types.NamespacedName, u *unstructured.Unstructured, b workv1alpha2.Binding) error {
	if err := decode(u, b, true); err != nil {
		return err
	}
	f.bindings[key] = b
	return nil
}

// decode reads an object's type. What a user is about to apply has no field that the type does not know; what a hub
// has may come from a newer one.
func decode(u *unstructured.Unstructured, into any, recorded bool) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, !recorded)
}

// put decodes an object, and puts it into a map by its name.
func put[T any](into map[string]*T, u *unstructured.Unstructured, recorded bool, check func(*T) error) error {
	obj := new(T)
	if err := decode(u, obj, recorded); err != nil {
		return err
	}
	into[u.GetName()] = obj
	return check(obj)
}
