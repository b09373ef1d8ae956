// Package service decides how clusters reach Services of each other: which endpoints each is told of, in which Works,
// and what is said of that. Following the members' endpoints, and writing, are left to controllers.
package service

import (
	"cmp"
	"reflect"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Labels and annotations of the slices that the hub brings, as Karmada and the multi-cluster services API have them.
const (
	// ProvisionClusterAnnotation on a slice, and on its Work, is the cluster that its endpoints are in.
	ProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"

	managedByImport   = "endpointslice-controller.karmada.io"
	managedByDispatch = "endpointslice-dispatch-controller.karmada.io"
	managedByLabel    = "endpointslice.karmada.io/managed-by"

	serviceNamespaceLabel = "endpointslice.karmada.io/namespace"
	serviceNameLabel      = "endpointslice.karmada.io/name"

	importedServiceLabel = "multicluster.kubernetes.io/service-name"
	sourceClusterLabel   = "multicluster.kubernetes.io/source-cluster"
)

// Slice is what counts of an EndpointSlice of a member.
type Slice struct {
	Name        string
	AddressType discoveryv1.AddressType
	// Endpoints are sorted by their addresses.
	Endpoints []discoveryv1.Endpoint
	Ports     []discoveryv1.EndpointPort
}

// Equal says whether the two say the same.
func (s Slice) Equal(other Slice) bool { return reflect.DeepEqual(s, other) }

// SliceOf is what counts of s; not ok for one that tells of another cluster's: what a cluster was told would go round.
// What a policy sent there counts, as does what the cluster's own controllers make of such a thing and copy its marks
// to.
//
// What names a node, a pod or the zones that a cluster would rather use means something in that cluster alone:
// kube-proxy would take an endpoint for its own node's, if that has the same name.
func SliceOf(s *discoveryv1.EndpointSlice) (Slice, bool) {
	if s.Annotations[ProvisionClusterAnnotation] != "" {
		return Slice{}, false
	}
	return sliceOf(s.Name, s), true
}

func sliceOf(name string, s *discoveryv1.EndpointSlice) Slice {
	out := Slice{Name: name, AddressType: s.AddressType, Ports: slices.Clone(s.Ports),
		Endpoints: make([]discoveryv1.Endpoint, 0, len(s.Endpoints))}
	for _, e := range s.Endpoints {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions,
			Hostname: e.Hostname, Zone: e.Zone})
	}
	slices.SortStableFunc(out.Endpoints, func(a, b discoveryv1.Endpoint) int {
		return slices.Compare(a.Addresses, b.Addresses)
	})
	if len(out.Ports) == 0 {
		out.Ports = nil
	}
	return out
}

// ready reports whether the slice has an endpoint that takes traffic.
func (s Slice) ready() bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return ptr.Deref(e.Conditions.Ready, true)
	})
}

// Known is what is known of a cluster's slices of a Service.
type Known struct {
	// Slices in any order.
	Slices []Slice
	// Listed says that these are all: the member has answered since the hub looks.
	Listed bool
	// Ready is whether the cluster is Ready: it serves, and if it is not Listed it will be.
	Ready bool
}

// mostSlices and mostSliceBytes bound what one cluster has others told of one Service: each slice is a Work for each
// consumer, and a broken cluster would fill the hub's store. Kubernetes puts 100 endpoints into a slice, so that 10000
// fit.
const mostSlices, mostSliceBytes = 100, 2 << 20

// bounded are the first slices, up to the bounds.
func bounded(list []Slice) []Slice {
	total := 0
	for i := range list {
		if total += list[i].size(); i == mostSlices || total > mostSliceBytes {
			return list[:i]
		}
	}
	return list
}

// size is about how many bytes the slice has as JSON.
func (s Slice) size() int {
	const field = 64
	n := field + len(s.Name)
	text := func(p *string) {
		if p != nil {
			n += field + len(*p)
		}
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		n += field
		for _, a := range e.Addresses {
			n += len(a) + len(`"",`)
		}
		text(e.Hostname)
		text(e.Zone)
	}
	for i := range s.Ports {
		n += field
		text(s.Ports[i].Name)
		text(s.Ports[i].AppProtocol)
	}
	return n
}

func sorted(list []Slice) []Slice {
	return slices.SortedFunc(slices.Values(list), func(a, b Slice) int { return cmp.Compare(a.Name, b.Name) })
}
