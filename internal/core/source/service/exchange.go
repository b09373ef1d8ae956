package service

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Owner identifies the object that requests an exchange.
type Owner struct{ Kind, Namespace, Name string }

// String returns the form that Works use, "ServiceImport/shop/web".
func (o Owner) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// OwnerOf returns the owner in the annotation of a Work. ok is false without one, and for a Work that belongs to a
// binding.
func OwnerOf(work metav1.Object) (Owner, bool) {
	notes := work.GetAnnotations()
	parts := strings.Split(notes[wellknown.ServiceOfAnnotation], "/")
	if len(parts) != 3 || notes[workv1alpha2.ResourceBindingNameAnnotation] != "" ||
		notes[workv1alpha2.ClusterResourceBindingNameAnnotation] != "" {
		return Owner{}, false
	}
	return Owner{parts[0], parts[1], parts[2]}, true
}

// Exchange is a Service that is shared between clusters.
type Exchange struct {
	Owner Owner
	// Service is the name in the consumers. It may differ in the providers.
	Service string
	// Derived is the Service to create in consumers; nil if the Service itself is placed there.
	Derived *corev1.Service
	// Providers are the clusters with the endpoints, and what is known about them.
	Providers map[string]Known
	// Consumers are the clusters that get the endpoints, sorted.
	Consumers []string
	// Lost are the clusters whose endpoints should be withdrawn.
	Lost map[string]bool
	// Undecided are the clusters whose endpoints should stay unchanged for now.
	Undecided map[string]bool
	// Controlled are the clusters with the action TrafficControl of a Remedy.
	Controlled map[string]bool

	// imports are the ServiceImports of consumers, with the annotations of their Works.
	imports     map[string]*multiclusterv1alpha1.ServiceImport
	importNotes map[string]string
	// labels are set on each Work.
	labels map[string]string
	// prefix is the prefix of slice names, before the name of the provider.
	prefix, managedBy string
	// ownToo is true if a consumer that is also a provider gets its own endpoints, which it has under another Service.
	ownToo bool
}

// Import returns the exchange for a ServiceImport with the given exporting and importing clusters.
func Import(i *multiclusterv1alpha1.ServiceImport, exporters, importers []string) Exchange {
	return Exchange{
		Owner:     Owner{multiclusterv1alpha1.ServiceImportKind.Kind, i.Namespace, i.Name},
		Service:   names.DerivedService(i.Name),
		Derived:   derived(i),
		Providers: unknown(exporters),
		Consumers: slices.Sorted(slices.Values(importers)),
		labels:    map[string]string{serviceNamespaceLabel: i.Namespace, serviceNameLabel: names.Label(i.Name)},
		prefix:    "imported-", managedBy: managedByImport,
		ownToo: true,
	}
}

// derived returns the Service for an import. It has no selector, so that the member's controllers ignore its endpoints.
func derived(i *multiclusterv1alpha1.ServiceImport) *corev1.Service {
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: names.DerivedService(i.Name),
			Labels: map[string]string{importedServiceLabel: names.Label(i.Name)}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, SessionAffinity: i.Spec.SessionAffinity,
			SessionAffinityConfig: i.Spec.SessionAffinityConfig.DeepCopy(),
			InternalTrafficPolicy: i.Spec.InternalTrafficPolicy, TrafficDistribution: i.Spec.TrafficDistribution},
	}
	if len(i.Spec.IPFamilies) > 1 {
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	}
	if i.Spec.Type == multiclusterv1alpha1.Headless {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, p := range i.Spec.Ports {
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: protocol, AppProtocol: p.AppProtocol,
			Port: p.Port})
	}
	return s
}

// CrossCluster returns the exchange for a MultiClusterService in these clusters.
func CrossCluster(s *networkingv1alpha1.MultiClusterService, fleet []string) Exchange {
	c := ClustersOf(s, fleet)
	return Exchange{
		Owner:     Owner{networkingv1alpha1.MultiClusterServiceKind, s.Namespace, s.Name},
		Service:   s.Name,
		Providers: unknown(c.Providers),
		Consumers: c.Consumers,
		labels: map[string]string{
			networkingv1alpha1.MultiClusterServiceNamespaceKey: s.Namespace,
			networkingv1alpha1.MultiClusterServiceNameKey:      names.Label(s.Name),
			serviceNamespaceLabel:                              s.Namespace,
			serviceNameLabel:                                   names.Label(s.Name),
		},
		managedBy: managedByDispatch,
	}
}

// Backend returns the exchange for a Service in the rules of a MultiClusterIngress. It has no consumers: only its
// Candidates are of use.
func Backend(i *networkingv1alpha1.MultiClusterIngress, service string, clusters []string) Exchange {
	return Exchange{Owner: Owner{IngressPrefix + i.Name, i.Namespace, service}, Service: service,
		Providers: unknown(clusters)}
}

// IngressPrefix is the prefix of the owner's kind of a Backend, before the name of the MultiClusterIngress.
const IngressPrefix = "MultiClusterIngress/"

// Backends returns the names of the Services in the rules of a MultiClusterIngress, sorted.
func Backends(i *networkingv1alpha1.MultiClusterIngress) []string {
	var names []string
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			names = append(names, b.Service.Name)
		}
	}
	add(i.Spec.DefaultBackend)
	for _, rule := range i.Spec.Rules {
		if rule.HTTP != nil {
			for p := range rule.HTTP.Paths {
				add(&rule.HTTP.Paths[p].Backend)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Candidates returns the providers for the decision about traffic. services are the Works with the Service, by cluster.
func (x Exchange) Candidates(services map[string]*workv1alpha1.Work) (all []remedy.Candidate) {
	for provider, known := range x.Providers {
		if c, ok := x.candidate(provider, known, services[provider], false); ok {
			all = append(all, c)
		}
	}
	return all
}

// candidate returns a provider for the decision about traffic. ok is false if it does not have the Service, because a
// Service of the same name may belong to someone else. service is the Work with the Service, or nil. offered is true if
// another cluster has endpoints of the provider.
//
// The last known endpoints of a provider that is not Listed are a reason to keep it, and none to cut others.
func (x Exchange) candidate(provider string, known Known, service *workv1alpha1.Work,
	offered bool) (c remedy.Candidate, ok bool) {
	lost, controlled := x.Lost[provider], x.Controlled[provider]
	return remedy.Candidate{Cluster: provider, Controlled: controlled, Live: known.Live && !lost, Lost: lost,
			Known:     known.Listed || controlled && len(known.Slices) > 0,
			Endpoints: slices.ContainsFunc(known.Slices, Slice.ready)},
		x.Derived != nil || hasService(service, offered || hadManifest(service))
}

func unknown(clusters []string) map[string]Known {
	out := make(map[string]Known, len(clusters))
	for _, c := range clusters {
		out[c] = Known{}
	}
	return out
}

// Exposes reports whether the hub handles the MultiClusterService.
func Exposes(s *networkingv1alpha1.MultiClusterService) bool {
	return s.DeletionTimestamp == nil && slices.Contains(s.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
}

// Clusters are the clusters of a MultiClusterService. Each list is sorted.
type Clusters struct {
	Providers, Consumers []string
	// Missing are the named clusters that do not exist.
	Missing []string
}

// Union returns providers and consumers without duplicates, sorted.
func (c Clusters) Union() []string {
	all := slices.Concat(c.Providers, c.Consumers)
	slices.Sort(all)
	return slices.Compact(all)
}

// ClustersOf returns the clusters that a MultiClusterService names. The newer fields take precedence over the older
// ones. Without names it uses all clusters.
func ClustersOf(s *networkingv1alpha1.MultiClusterService, fleet []string) Clusters {
	there, missing := map[string]bool{}, map[string]bool{}
	for _, c := range fleet {
		there[c] = true
	}
	named := func(selectors []networkingv1alpha1.ClusterSelector, earlier []string) []string {
		list := earlier
		if len(selectors) > 0 {
			list = nil
			for _, s := range selectors {
				list = append(list, s.Name)
			}
		}
		if len(list) == 0 {
			return slices.Sorted(slices.Values(fleet))
		}
		list = slices.Compact(slices.Sorted(slices.Values(list)))
		return slices.DeleteFunc(list, func(c string) bool {
			if !there[c] {
				missing[c] = true
			}
			return !there[c]
		})
	}
	c := Clusters{
		Providers: named(s.Spec.ProviderClusters, s.Spec.ServiceProvisionClusters),
		Consumers: named(s.Spec.ConsumerClusters, s.Spec.ServiceConsumptionClusters),
	}
	c.Missing = slices.Sorted(maps.Keys(missing))
	return c
}

// sliceName returns the name of a provider's slice in consumers.
func (x Exchange) sliceName(provider, slice string) string {
	return names.Object(x.prefix + provider + "-" + slice)
}
