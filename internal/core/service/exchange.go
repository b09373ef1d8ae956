package service

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/names"
)

// OwnerAnnotation on a Work says what asks for it: see Owner.
const OwnerAnnotation = "argosy.io/service-of"

// Owner is what asks for an exchange.
type Owner struct{ Kind, Namespace, Name string }

// String is how Works name it, "ServiceImport/shop/web".
func (o Owner) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// OwnerOf is what asks for a Work that carries the annotation; not ok for any other, nor for one that a binding has as
// its own: it is a template's, whatever it was before.
func OwnerOf(work metav1.Object) (Owner, bool) {
	notes := work.GetAnnotations()
	parts := strings.Split(notes[OwnerAnnotation], "/")
	if len(parts) != 3 || notes[workv1alpha2.ResourceBindingNameAnnotation] != "" ||
		notes[workv1alpha2.ClusterResourceBindingNameAnnotation] != "" {
		return Owner{}, false
	}
	return Owner{parts[0], parts[1], parts[2]}, true
}

// Exchange is a Service that clusters reach in each other.
type Exchange struct {
	Owner Owner
	// Service is its name in the consumers, whatever it is called in the providers.
	Service string
	// Derived is the Service that consumers get for it; nil if it comes to them on its own.
	Derived *corev1.Service
	// Providers are the clusters whose endpoints count, and what is known of these.
	Providers map[string]Known
	// Consumers are the clusters that are to know the endpoints, sorted.
	Consumers []string
	// Lost are the clusters that traffic should leave.
	Lost map[string]bool
	// Undecided are the clusters whose traffic should stay as it is for now.
	Undecided map[string]bool

	// labels are on each Work.
	labels map[string]string
	// prefix begins the names of the slices, before that of the cluster that they are from.
	prefix, managedBy string
	// ownToo: a consumer that provides is told of its own endpoints as well, which it has under another Service.
	ownToo bool
}

// Import is the exchange that a ServiceImport asks for, placed in some clusters, of a Service exported in others.
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

// derived is the Service that stands for an imported one: without a selector, so that the member's own controllers
// leave its endpoints alone.
func derived(i *multiclusterv1alpha1.ServiceImport) *corev1.Service {
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: names.DerivedService(i.Name),
			Labels: map[string]string{importedServiceLabel: names.Label(i.Name)}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, SessionAffinity: i.Spec.SessionAffinity,
			SessionAffinityConfig: i.Spec.SessionAffinityConfig.DeepCopy()},
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

// CrossCluster is the exchange that a MultiClusterService asks for, in a fleet of these clusters.
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

func unknown(clusters []string) map[string]Known {
	out := make(map[string]Known, len(clusters))
	for _, c := range clusters {
		out[c] = Known{}
	}
	return out
}

// Exposes says whether the hub itself is to carry a MultiClusterService out.
func Exposes(s *networkingv1alpha1.MultiClusterService) bool {
	return s.DeletionTimestamp == nil && slices.Contains(s.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
}

// Clusters are those of a MultiClusterService, each list sorted.
type Clusters struct {
	Providers, Consumers []string
	// Missing are named, and not in the fleet.
	Missing []string
}

// All are the providers and consumers, each once, sorted.
func (c Clusters) All() []string {
	all := slices.Concat(c.Providers, c.Consumers)
	slices.Sort(all)
	return slices.Compact(all)
}

// ClustersOf are the clusters of a MultiClusterService: those that it names, by the later fields if they name any, else
// by the earlier ones; and the whole fleet where it names none.
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

// sliceName is how a provider's slice is called in consumers.
func (x Exchange) sliceName(provider, slice string) string {
	return names.Object(x.prefix + provider + "-" + slice)
}
