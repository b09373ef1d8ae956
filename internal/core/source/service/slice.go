// Package service decides how Services are shared between clusters: which endpoints each cluster gets, in which Works,
// and which conditions to set. It does no I/O.
package service

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Labels and annotations of slices from the hub, as in Karmada and the multi-cluster services API.
const (
	// ProvisionClusterAnnotation on a slice, and on its Work, is the cluster of its endpoints.
	ProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"

	managedByImport   = "endpointslice-controller.karmada.io"
	managedByDispatch = "endpointslice-dispatch-controller.karmada.io"
	managedByLabel    = "endpointslice.karmada.io/managed-by"

	serviceNamespaceLabel = "endpointslice.karmada.io/namespace"
	serviceNameLabel      = "endpointslice.karmada.io/name"

	importedServiceLabel = "multicluster.kubernetes.io/service-name"
	sourceClusterLabel   = "multicluster.kubernetes.io/source-cluster"
)

// Slice is the part of a member's EndpointSlice that is shared.
type Slice struct {
	Name        string
	AddressType discoveryv1.AddressType
	// Endpoints are sorted by their addresses.
	Endpoints []discoveryv1.Endpoint
	Ports     []discoveryv1.EndpointPort
}

// SliceOf returns the shared part of s. ok is false for a slice that came from another cluster, which would otherwise
// circulate. Slices from a policy count, and so do copies that the cluster's own controllers make.
//
// It omits nodes, pods and zone hints. They are valid only in their cluster: kube-proxy would match a node with the
// same name.
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

// ready reports whether the slice has a ready endpoint.
func (s Slice) ready() bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return ptr.Deref(e.Conditions.Ready, true)
	})
}

// Known is what is known about a Service's slices in one cluster.
type Known struct {
	// Slices are in any order.
	Slices []Slice
	// Listed is true if Slices is complete: the member has answered since the hub started, and can be read.
	Listed bool
	// Ready is true if the cluster is Ready and the hub can read it. Then it will be Listed soon.
	Ready bool
	// Live is true if the cluster is Ready, also if the hub cannot read it at present.
	Live bool
}

// maxSlices and maxSliceBytes limit what one cluster shares of one Service, because each slice becomes a Work per
// consumer. With 100 endpoints per slice, as Kubernetes does, 10000 endpoints fit.
const maxSlices, maxSliceBytes = 100, 2 << 20

// bounded returns the first slices within the limits.
func bounded(list []Slice) []Slice {
	total := 0
	for i := range list {
		if total += list[i].size(); i == maxSlices || total > maxSliceBytes {
			return list[:i]
		}
	}
	return list
}

// size returns the approximate size as JSON in bytes.
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
