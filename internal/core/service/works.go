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

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/names"
)

// sliceAnnotation on a Work is what its slice is called in the cluster that it is from.
const sliceAnnotation = "argosy.io/endpoint-slice"

// Decision is what becomes of an exchange.
type Decision struct {
	// Works are all that it wants, sorted by cluster and name.
	Works []*workv1alpha1.Work
	// Gone are those that stand and are wanted no more.
	Gone []*workv1alpha1.Work
	// From are the providers whose endpoints the consumers get, sorted.
	From []string
	// Withdrawn are the lost providers whose endpoints the consumers do not get, sorted.
	Withdrawn []string
	// Silent are the providers that have not answered since the hub looks, sorted: of them counts what they said before.
	// Soon are those of which the same is true, and that are about to.
	Silent, Soon []string
	// Cut says of which providers not all slices are told, a line for each.
	Cut []string
	// Portless are the ports of the derived Service that no slice has, by name and protocol: nothing is behind them.
	Portless []string
}

// Decide makes the Works of an exchange. standing are those that carry its owner, and services the Works of its Service
// in the clusters that have one, by cluster. The same input gives the same Works, byte for byte, but for new ids.
//
// A consumer is told of endpoints once it has the Service: a Service of that name which is somebody else's must not get
// them. Nor must the endpoints of such a one be taken for those of a provider, where the Service is not derived and
// comes to providers too. Of a provider that has not answered yet, as after a start of the hub, what the standing Works
// say goes on to hold. A provider that is lost is withdrawn as long as another one has ready endpoints. Endpoints of an
// undecided provider stay where they are then: consumers neither lose nor get them.
func Decide(x Exchange, standing []*workv1alpha1.Work, services map[string]*workv1alpha1.Work,
	newID func() string) (Decision, error) {
	var d Decision
	byKey := map[string]*workv1alpha1.Work{}
	told, offered := map[string]bool{}, map[string]bool{}
	type pair struct{ provider, consumer string }
	has := map[pair]bool{} // the endpoints of the provider
	for _, w := range standing {
		byKey[w.Namespace+"/"+w.Name] = w
		provider := w.Annotations[ProvisionClusterAnnotation]
		if cluster, err := names.ClusterOf(w.Namespace); err == nil && provider != "" && w.DeletionTimestamp == nil {
			told[cluster], offered[provider], has[pair{provider, cluster}] = true, true, true
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

	// 1. What the providers have.
	from := map[string][]Slice{}
	var absent []string // withdrawn if another provider replaces them
	for _, provider := range slices.Sorted(maps.Keys(x.Providers)) {
		// If it was withdrawn, no Work of its endpoints shows that it had the Service.
		before := offered[provider] || hadManifest(services[provider])
		if x.Derived == nil && !holds(services[provider], before) {
			continue
		}
		known := x.Providers[provider]
		if !known.Listed {
			if known.Ready {
				d.Soon = append(d.Soon, provider)
			} else {
				d.Silent = append(d.Silent, provider)
			}
			known.Slices = recall(standing, provider)
		}
		// After a start, no Work may be left of a provider that was withdrawn before.
		unknown := !known.Listed && len(known.Slices) == 0
		if x.Lost[provider] && (unknown || len(known.Slices) > 0) || x.Undecided[provider] && unknown {
			absent = append(absent, provider)
		}
		if len(known.Slices) > 0 {
			taken := bounded(sorted(known.Slices))
			if from[provider] = taken; len(taken) < len(known.Slices) {
				d.Cut = append(d.Cut, fmt.Sprintf(
					"cluster %q: only %d of its %d EndpointSlices of the Service are shared with other clusters; the limit is %d slices and %s per cluster: check what creates so many there",
					provider, len(taken), len(known.Slices), mostSlices, resource.NewQuantity(mostSliceBytes, resource.BinarySI)))
			}
		}
	}
	d.Portless = portless(x.Derived, from)
	providers := slices.Sorted(maps.Keys(from))
	replaced := x.replaced(from)
	withdrawn := map[string]bool{}
	for _, provider := range absent {
		if replaced {
			withdrawn[provider] = true
		}
	}
	// 2. What each consumer gets.
	for _, consumer := range x.Consumers {
		if x.Derived != nil {
			if err := add(consumer, x.Derived, nil); err != nil {
				return d, err
			}
		}
		if !holds(services[consumer], told[consumer]) {
			continue
		}
		for _, provider := range providers {
			if provider == consumer && !x.ownToo {
				continue
			}
			switch {
			case !replaced:
			case x.Lost[provider] && !x.Lost[consumer]:
				continue // The hub does not reach a lost consumer, which may reach the lost provider.
			case x.Undecided[provider] && !has[pair{provider, consumer}]:
				withdrawn[provider] = true
				continue
			}
			for _, s := range from[provider] {
				notes := map[string]string{ProvisionClusterAnnotation: provider, sliceAnnotation: s.Name}
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
	// 3. What is left. The last that says what a silent provider has goes when somebody else has been told.
	type source struct{ provider, slice string }
	sourceOf := func(w *workv1alpha1.Work) source {
		return source{w.Annotations[ProvisionClusterAnnotation], w.Annotations[sliceAnnotation]}
	}
	unsaid := map[source]bool{} // by any Work that stays
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

// replaced reports whether a provider that is not lost has ready endpoints, so that lost ones can be withdrawn: else a
// cluster that does not answer the hub may still serve. Before a Ready cluster is Listed, its last known endpoints
// count.
func (x Exchange) replaced(from map[string][]Slice) bool {
	for provider, all := range from {
		if !x.Lost[provider] && x.Providers[provider].Ready && slices.ContainsFunc(all, Slice.ready) {
			return true
		}
	}
	return false
}

// portless are the ports of the derived Service that none of the slices has. While no slice has any, nothing is known.
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

// slice is a provider's slice as consumers get it.
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

// work is the Work of a manifest for one cluster.
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
	w.Annotations[OwnerAnnotation] = x.Owner.String()
	maps.Copy(w.Annotations, notes)
	maps.Copy(w.Labels, x.labels)
	w.Labels[managedByLabel] = x.managedBy
	return w, seal(w, manifest)
}

// newWork is a Work for the manifest, without it yet, under the id of the one that stands.
func newWork(cluster string, manifest *unstructured.Unstructured, standing map[string]*workv1alpha1.Work,
	newID func() string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:   names.ExecutionSpace(cluster),
		Name:        names.Work(manifest.GetKind(), manifest.GetName(), manifest.GetNamespace()),
		Finalizers:  []string{workv1alpha2.ExecutionFinalizer},
		Labels:      map[string]string{},
		Annotations: map[string]string{},
	}}
	id := ""
	if was := standing[w.Namespace+"/"+w.Name]; was != nil {
		id = was.Labels[workv1alpha2.WorkPermanentIDLabel]
	}
	if id == "" {
		id = newID()
	}
	w.Labels[workv1alpha2.WorkPermanentIDLabel] = id
	return w
}

// seal marks the manifest as the Work's, and puts it in.
func seal(w *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	execute.Mark(manifest, w)
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		return fmt.Errorf("write the manifest of work %s/%s: %w", w.Namespace, w.Name, err)
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return nil
}

// recall is what the standing Works say of a provider's slices, by the consumer that comes first of those told of each.
func recall(standing []*workv1alpha1.Work, provider string) []Slice {
	first := map[string]*workv1alpha1.Work{}
	for _, w := range standing {
		name := w.Annotations[sliceAnnotation]
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
			continue // somebody wrote into it; it is made anew when the provider answers
		}
		out = append(out, sliceOf(name, s))
	}
	return sorted(out)
}

// Applied says whether a cluster has what a Work says, and if it was refused, why. Nil is neither.
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

// holds says whether a cluster has the Service that a Work brings, nil for none; before says whether it was taken for
// one that has. Then silence, or a change that it refuses, takes nothing away, but that ours is not there any more
// does.
func holds(w *workv1alpha1.Work, before bool) bool {
	if w == nil {
		return false
	}
	applied, refused := Applied(w)
	return applied || before && (refused == "" || hadManifest(w))
}

// hadManifest reports whether a cluster has had what a Work brings; nil is no Work.
func hadManifest(w *workv1alpha1.Work) bool {
	return w != nil && len(w.Status.ManifestStatuses) > 0
}

// ServiceWorkNames are what the Work of a Service may be called in each execution space: kinds of other groups share
// its first name.
func (x Exchange) ServiceWorkNames() []string {
	return names.Works(schema.GroupKind{Kind: "Service"}, x.Service, x.Owner.Namespace)
}

// Brings says whether w, which has one of the ServiceWorkNames, has the Service, as far as it can be read.
func (x Exchange) Brings(w *workv1alpha1.Work) bool {
	m, err := execute.Manifest(w)
	return err != nil || m.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Service"}
}

// Definition is the Work that brings the definition of a kind to a cluster; standing is the one that is there, nil for
// none. What it defines outlives it, with all objects of the kind.
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
	return w, seal(w, manifest)
}
