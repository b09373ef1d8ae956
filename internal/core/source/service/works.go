package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Decision is the result of Decide.
type Decision struct {
	// Works are all wanted Works, sorted by cluster and name.
	Works []*workv1alpha1.Work
	// Gone are the existing Works to delete.
	Gone []*workv1alpha1.Work
	// From are the providers whose endpoints consumers get, sorted.
	From []string
	// Withdrawn are the lost providers whose endpoints are withdrawn, sorted.
	Withdrawn []string
	// Silent are the providers that have not answered since the hub started, sorted. Their last known endpoints are used.
	// Soon are the Silent providers that are Ready and will answer soon.
	Silent, Soon []string
	// Cut has one line per provider that exceeds the limits.
	Cut []string
	// Traffic says which providers with the action TrafficControl of a Remedy give endpoints to consumers.
	Traffic remedy.Traffic
	// Portless are the ports of the derived Service that no slice has, by name and protocol.
	Portless []string
}

// Decide returns the Works of an exchange. standing are the existing Works of its owner, services the Works with its
// Service, by cluster. Equal input gives equal Works except for new ids.
//
// A consumer gets endpoints only once it has the Service, because a Service of the same name may belong to someone
// else. For the same reason a provider counts only if it has our Service, unless the Service is derived. A provider
// that has not answered keeps the endpoints in the existing Works. A lost provider is withdrawn if another one has
// ready endpoints. Endpoints of an undecided provider do not change. A provider with the action TrafficControl gives no
// endpoints to consumers if another one can; see remedy.Decide.
func Decide(x Exchange, standing []*workv1alpha1.Work, services map[string]*workv1alpha1.Work,
	newID func() string) (Decision, error) {
	var d Decision
	byKey := map[string]*workv1alpha1.Work{}
	hasEndpoints, offered := map[string]bool{}, map[string]bool{}
	type pair struct{ provider, consumer string }
	has := map[pair]bool{} // a consumer has endpoints of the provider
	for _, w := range standing {
		byKey[w.Namespace+"/"+w.Name] = w
		provider := w.Annotations[ProvisionClusterAnnotation]
		if cluster, err := names.ClusterOf(w.Namespace); err == nil && provider != "" && w.DeletionTimestamp == nil {
			hasEndpoints[cluster], offered[provider], has[pair{provider, cluster}] = true, true, true
		}
	}
	add := func(cluster string, manifest runtime.Object, notes map[string]string) error {
		w, err := x.work(cluster, manifest, notes, byKey, newID)
		if err == nil {
			d.Works = append(d.Works, w)
			delete(byKey, w.Namespace+"/"+w.Name)
		}
		return err
	}

	// 1. Collect the slices of the providers.
	from := map[string][]Slice{}
	var absent []string // lost providers, withdrawn if another one has ready endpoints
	var candidates []remedy.Candidate
	for _, provider := range slices.Sorted(maps.Keys(x.Providers)) {
		known := x.Providers[provider]
		if !known.Listed {
			known.Slices = recall(standing, provider)
		}
		// A withdrawn provider is not offered: the report of its Work shows that it had the Service.
		candidate, ok := x.candidate(provider, known, services[provider], offered[provider])
		switch {
		case !ok:
			continue
		case known.Listed:
		case known.Ready:
			d.Soon = append(d.Soon, provider)
		default:
			d.Silent = append(d.Silent, provider)
		}
		candidates = append(candidates, candidate)
		// After a restart, no Work may be left of a withdrawn provider.
		unknown := !known.Listed && len(known.Slices) == 0
		if x.Lost[provider] && (unknown || len(known.Slices) > 0) || x.Undecided[provider] && unknown {
			absent = append(absent, provider)
		}
		if len(known.Slices) > 0 {
			taken := bounded(sorted(known.Slices))
			if from[provider] = taken; len(taken) < len(known.Slices) {
				d.Cut = append(d.Cut, fmt.Sprintf(
					"cluster %q: only %d of its %d EndpointSlices of the Service are shared with other clusters; the limit is %d slices and %s per cluster: check what creates so many there",
					provider, len(taken), len(known.Slices), maxSlices, resource.NewQuantity(maxSliceBytes, resource.BinarySI)))
			}
		}
	}
	d.Portless = portless(x.Derived, from)
	d.Traffic = remedy.Decide(candidates)
	for _, provider := range d.Traffic.Blocked {
		delete(from, provider)
	}
	providers := slices.Sorted(maps.Keys(from))
	replaced := x.replaced(from)
	withdrawn := map[string]bool{}
	for _, provider := range absent {
		if replaced {
			withdrawn[provider] = true
		}
	}
	// 2. Decide what each consumer gets.
	for _, consumer := range x.Consumers {
		if x.Derived != nil {
			if err := add(consumer, x.Derived, nil); err != nil {
				return d, err
			}
		}
		if i := x.imports[consumer]; i != nil {
			if err := add(consumer, i, x.importNotes); err != nil {
				return d, err
			}
		}
		if !hasService(services[consumer], hasEndpoints[consumer]) {
			continue
		}
		for _, provider := range providers {
			if provider == consumer && !x.ownToo {
				continue
			}
			switch {
			case slices.Contains(d.Traffic.Held, provider) && !has[pair{provider, consumer}]:
				continue
			case !replaced:
			case x.Lost[provider] && !x.Lost[consumer]:
				continue // The hub cannot reach a lost consumer, which may still reach the lost provider.
			case x.Undecided[provider] && !has[pair{provider, consumer}]:
				withdrawn[provider] = true
				continue
			}
			for _, s := range from[provider] {
				notes := map[string]string{ProvisionClusterAnnotation: provider, wellknown.EndpointSliceAnnotation: s.Name}
				if err := add(consumer, x.slice(provider, s), notes); err != nil {
					return d, err
				}
			}
		}
	}
	for _, provider := range providers {
		if !withdrawn[provider] {
			d.From = append(d.From, provider)
		}
	}
	d.Withdrawn = slices.Sorted(maps.Keys(withdrawn))
	// 3. Delete the rest. Keep the last Work with the slice of a silent provider until another Work has it.
	type source struct{ provider, slice string }
	sourceOf := func(w *workv1alpha1.Work) source {
		return source{w.Annotations[ProvisionClusterAnnotation], w.Annotations[wellknown.EndpointSliceAnnotation]}
	}
	unsaid := map[source]bool{} // slices that no remaining Work has
	for provider, all := range from {
		if !x.Providers[provider].Listed && !withdrawn[provider] &&
			slices.ContainsFunc(x.Consumers, func(c string) bool { return x.ownToo || c != provider }) {
			for _, s := range all {
				unsaid[source{provider, s.Name}] = true
			}
		}
	}
	for _, w := range standing {
		if byKey[w.Namespace+"/"+w.Name] == nil && w.DeletionTimestamp == nil {
			delete(unsaid, sourceOf(w))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if w := byKey[key]; w.DeletionTimestamp == nil && unsaid[sourceOf(w)] {
			delete(unsaid, sourceOf(w))
			continue
		}
		d.Gone = append(d.Gone, byKey[key])
	}
	return d, nil
}

// replaced reports whether a provider that is not lost has ready endpoints. Only then may lost ones be withdrawn,
// because a cluster that the hub cannot reach may still serve. The last known endpoints of a Ready cluster count until
// it is Listed.
func (x Exchange) replaced(from map[string][]Slice) bool {
	for provider, all := range from {
		if !x.Lost[provider] && x.Providers[provider].Ready && slices.ContainsFunc(all, Slice.ready) {
			return true
		}
	}
	return false
}

// portless returns the ports of the derived Service that no slice has. It returns none while no slice has any ports.
func portless(derived *corev1.Service, from map[string][]Slice) (ports []string) {
	if derived == nil {
		return nil
	}
	type port struct {
		name     string
		protocol corev1.Protocol
	}
	has := map[port]bool{}
	for _, all := range from {
		for _, s := range all {
			for _, p := range s.Ports {
				has[port{ptr.Deref(p.Name, ""), ptr.Deref(p.Protocol, corev1.ProtocolTCP)}] = true
			}
		}
	}
	for _, p := range derived.Spec.Ports {
		if len(has) > 0 && !has[port{p.Name, p.Protocol}] {
			ports = append(ports, fmt.Sprintf("%q (%s)", p.Name, p.Protocol))
		}
	}
	return ports
}

// slice returns the EndpointSlice for consumers.
func (x Exchange) slice(provider string, s Slice) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: x.Owner.Namespace,
			Name:      x.sliceName(provider, s.Name),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: x.Service,
				discoveryv1.LabelManagedBy:   x.managedBy,
				importedServiceLabel:         names.Label(x.Owner.Name),
				sourceClusterLabel:           provider,
			},
			Annotations: map[string]string{ProvisionClusterAnnotation: provider},
		},
		AddressType: s.AddressType,
		Endpoints:   s.Endpoints,
		Ports:       s.Ports,
	}
}

// work returns the Work with an object for one cluster.
func (x Exchange) work(cluster string, obj runtime.Object, notes map[string]string,
	standing map[string]*workv1alpha1.Work, newID func() string) (*workv1alpha1.Work, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("write the manifest for cluster %q: %w", cluster, err)
	}
	manifest := &unstructured.Unstructured{Object: content}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	w := newWork(cluster, manifest, standing, newID)
	w.Annotations[wellknown.ServiceOfAnnotation] = x.Owner.String()
	maps.Copy(w.Annotations, notes)
	maps.Copy(w.Labels, x.labels)
	w.Labels[managedByLabel] = x.managedBy
	return w, execute.Seal(w, manifest)
}

// newWork returns a Work without the manifest. It reuses the id of the existing Work.
func newWork(cluster string, manifest *unstructured.Unstructured, standing map[string]*workv1alpha1.Work,
	newID func() string) *workv1alpha1.Work {
	space, either := names.ExecutionSpace(cluster), names.Either(names.Work(manifest.GetKind(), manifest.GetName(),
		manifest.GetNamespace()), manifest.GroupVersionKind().GroupKind(), manifest.GetName(), manifest.GetNamespace())
	if standing[space+"/"+either[1]] != nil {
		either = either[1:]
	}
	return execute.NewWork(cluster, either[0], execute.PermanentID(standing[space+"/"+either[0]], newID))
}

// recall restores a provider's slices from the existing Works, each from the first consumer that has it.
func recall(standing []*workv1alpha1.Work, provider string) []Slice {
	first := map[string]*workv1alpha1.Work{}
	for _, w := range standing {
		name := w.Annotations[wellknown.EndpointSliceAnnotation]
		if w.Annotations[ProvisionClusterAnnotation] != provider || name == "" || w.DeletionTimestamp != nil {
			continue
		}
		if known := first[name]; known == nil || w.Namespace < known.Namespace {
			first[name] = w
		}
	}
	var out []Slice
	for name, w := range first {
		s := &discoveryv1.EndpointSlice{}
		if len(w.Spec.Workload.Manifests) != 1 || json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, s) != nil {
			continue // invalid content; it is rewritten when the provider answers
		}
		out = append(out, sliceOf(name, s))
	}
	return sorted(out)
}

// Applied reports whether a cluster has applied the Work, and the reason if it refused. Both are empty for nil.
func Applied(w *workv1alpha1.Work) (applied bool, refused string) {
	if w == nil {
		return false, ""
	}
	switch c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); {
	case c == nil:
		return false, ""
	case c.Status == metav1.ConditionTrue:
		return true, ""
	case c.Status == metav1.ConditionFalse:
		return false, c.Message
	}
	return false, ""
}

// hasService reports whether a cluster has the Service of a Work, which may be nil. before is the previous answer: it
// stays if the cluster is silent or refuses a change, but not if the Service is gone.
func hasService(w *workv1alpha1.Work, before bool) bool {
	if w == nil {
		return false
	}
	applied, refused := Applied(w)
	return applied || before && (refused == "" || hadManifest(w))
}

// hadManifest reports whether a cluster has ever applied the Work; false for nil.
func hadManifest(w *workv1alpha1.Work) bool {
	return w != nil && len(w.Status.ManifestStatuses) > 0
}

// ServiceWorkNames returns the possible names of the Service's Work in each execution namespace. Works of other objects
// may have them; see Brings.
func (x Exchange) ServiceWorkNames() []string {
	return names.Works(schema.GroupKind{Kind: "Service"}, x.Service, x.Owner.Namespace)
}

// Brings reports whether w, which has one of the ServiceWorkNames, contains the Service.
func (x Exchange) Brings(w *workv1alpha1.Work) bool {
	return execute.IsOf(w, identity.Object{Kind: "Service", Namespace: x.Owner.Namespace, Name: x.Service})
}

// Definition returns the Work that brings a CRD to a cluster. standing is the existing Work or nil. The CRD stays in
// the cluster when the Work is deleted, with all its objects.
func Definition(cluster string, crd *unstructured.Unstructured, standing *workv1alpha1.Work,
	newID func() string) (*workv1alpha1.Work, error) {
	manifest := crd.DeepCopy()
	delete(manifest.Object, "status")
	unstructured.RemoveNestedField(manifest.Object, "metadata", "creationTimestamp")
	by := map[string]*workv1alpha1.Work{}
	if standing != nil {
		by[standing.Namespace+"/"+standing.Name] = standing
	}
	w := newWork(cluster, manifest, by, newID)
	w.Spec.PreserveResourcesOnDeletion = new(true)
	return w, execute.Seal(w, manifest)
}
