// Package mcs decides what the ServiceExports of a Service in several clusters mean together, by the rules of KEP-1645
// of SIG Multicluster: the one ServiceImport, and the conditions of each ServiceExport. It does no I/O.
package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Export is the ServiceExport of one cluster, with the Service of the same name there.
type Export struct {
	Cluster string    `json:"cluster"`
	Created time.Time `json:"created"`
	// Generation, Version and Conditions are those of the ServiceExport.
	Generation int64              `json:"-"`
	Version    string             `json:"-"`
	Conditions []metav1.Condition `json:"-"`
	// Labels and Annotations are those for the ServiceImport.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Service is nil if there is none.
	Service *Service `json:"service,omitempty"`
}

// Service is what clusters must agree on.
type Service struct {
	Type                  corev1.ServiceType                     `json:"type,omitempty"`
	ClusterIPs            []string                               `json:"clusterIPs,omitempty"`
	Families              []corev1.IPFamily                      `json:"families,omitempty"`
	Ports                 []multiclusterv1alpha1.ServicePort     `json:"ports,omitempty"`
	Affinity              corev1.ServiceAffinity                 `json:"affinity,omitempty"`
	AffinityConfig        *corev1.SessionAffinityConfig          `json:"affinityConfig,omitempty"`
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy   `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   *string                                `json:"trafficDistribution,omitempty"`
	ImportType            multiclusterv1alpha1.ServiceImportType `json:"importType,omitempty"`
	// Managed is true if a hub wrote the Service.
	Managed bool `json:"-"`
}

// ExportOf returns the part of a ServiceExport that counts. Labels and annotations to which a hub gives a meaning are
// left out: who exports a Service in one cluster must not steer the hub in the others.
func ExportOf(cluster string, e *multiclusterv1alpha1.ServiceExport) Export {
	return Export{Cluster: cluster, Created: e.CreationTimestamp.UTC(), Generation: e.Generation,
		Version: e.ResourceVersion, Conditions: e.Status.Conditions, Labels: harmless(e.Spec.ExportedLabels),
		Annotations: harmless(e.Spec.ExportedAnnotations)}
}

// harmless returns the labels or annotations without those of hubs.
func harmless(keys map[string]string) map[string]string {
	keys = maps.Clone(keys)
	maps.DeleteFunc(keys, func(key, _ string) bool {
		domain, _, prefixed := strings.Cut(key, "/")
		return prefixed && slices.ContainsFunc([]string{"karmada.io", "argosy.io", "open-cluster-management.io"},
			func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) })
	})
	return keys
}

// ServiceOf returns the part of a Service that counts.
func ServiceOf(s *corev1.Service) Service {
	out := Service{Type: s.Spec.Type, ClusterIPs: s.Spec.ClusterIPs, Families: s.Spec.IPFamilies,
		Affinity: s.Spec.SessionAffinity, AffinityConfig: s.Spec.SessionAffinityConfig,
		InternalTrafficPolicy: s.Spec.InternalTrafficPolicy, TrafficDistribution: s.Spec.TrafficDistribution,
		ImportType: multiclusterv1alpha1.ClusterSetIP, Managed: s.Labels[workv1alpha2.ManagedLabel] == "true"}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out.ImportType, out.ClusterIPs = multiclusterv1alpha1.Headless, nil
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, multiclusterv1alpha1.ServicePort{Name: p.Name, Protocol: p.Protocol,
			AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return out
}

// Reasons of Valid, as in the API of SIG Multicluster.
//
//reference:reason Valid of ServiceExport
const (
	// reasonValid: the Service can be exported.
	reasonValid = "Valid"
	// reasonNoService: there is no Service with the name of the ServiceExport.
	reasonNoService = "NoService"
	// reasonInvalidType: the Service has the type ExternalName, and no endpoints.
	reasonInvalidType = "InvalidServiceType"
)

// Reasons of Ready.
//
//reference:reason Ready of ServiceExport
const (
	// reasonExported: the hub exports the Service to each cluster with the namespace.
	reasonExported = "Exported"
	// reasonFailed: the Service cannot be exported, or a cluster refuses an object. The message has the error.
	reasonFailed = "Failed"
)

// Reasons of Conflict. Several are combined with commas.
//
//reference:reason Conflict of ServiceExport
const (
	// reasonNoConflicts: all clusters export the same Service.
	reasonNoConflicts = "NoConflicts"
	// reasonPorts: the ports differ. Those of the oldest ServiceExport are used, and others are added.
	reasonPorts = "PortConflict"
	// reasonType: some Services are headless. The oldest ServiceExport decides, as for all that follow.
	reasonType = "TypeConflict"
	// reasonAffinity: sessionAffinity differs.
	reasonAffinity = "SessionAffinityConflict"
	// reasonAffinityConfig: sessionAffinityConfig differs.
	reasonAffinityConfig = "SessionAffinityConfigConflict"
	// reasonInternalTraffic: internalTrafficPolicy differs.
	reasonInternalTraffic = "InternalTrafficPolicyConflict"
	// reasonDistribution: trafficDistribution differs.
	reasonDistribution = "TrafficDistributionConflict"
	// reasonFamilies: ipFamilies differ, so that clients of one family do not reach all clusters.
	reasonFamilies = "IPFamilyConflict"
	// reasonLabels: the exported labels differ.
	reasonLabels = "LabelsConflict"
	// reasonAnnotations: the exported annotations differ.
	reasonAnnotations = "AnnotationsConflict"
)

// Merged is what the exports of one Service mean together.
type Merged struct {
	// Spec, Labels and Annotations are those of the ServiceImport, without addresses. Spec is nil if no export is valid.
	Spec        *multiclusterv1alpha1.ServiceImportSpec
	Labels      map[string]string
	Annotations map[string]string
	// Exporters are the clusters whose exports are valid, sorted.
	Exporters []string
	// invalid are the conditions Valid of the other exports, by cluster. conflict is the condition of all valid exports.
	invalid  map[string]metav1.Condition
	conflict metav1.Condition
}

// Merge returns the meaning of the exports of one Service, at most one of each cluster, in any order.
//
// The oldest valid export decides; of exports of one age, that of the first cluster by name. Its ports come first, and
// each further export adds the ports whose name, and whose protocol and number, no earlier port has.
func Merge(exports []Export) Merged {
	m := Merged{invalid: map[string]metav1.Condition{}}
	exports = slices.SortedFunc(slices.Values(exports), func(a, b Export) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Cluster, b.Cluster))
	})
	var valid []Export
	for _, e := range exports {
		if c := validity(e); c.Status == metav1.ConditionTrue {
			valid = append(valid, e)
			m.Exporters = append(m.Exporters, e.Cluster)
		} else {
			m.invalid[e.Cluster] = c
		}
	}
	slices.Sort(m.Exporters)
	if len(valid) == 0 {
		return m
	}
	oldest := valid[0]
	s := oldest.Service
	m.Labels, m.Annotations = oldest.Labels, oldest.Annotations
	m.Spec = &multiclusterv1alpha1.ServiceImportSpec{Type: s.ImportType, IPFamilies: s.Families,
		SessionAffinity: s.Affinity, SessionAffinityConfig: s.AffinityConfig,
		InternalTrafficPolicy: s.InternalTrafficPolicy, TrafficDistribution: s.TrafficDistribution}
	for _, e := range valid {
		m.Spec.Ports = union(m.Spec.Ports, e.Service.Ports)
	}
	m.conflict = conflict(valid)
	return m
}

// validity is the condition Valid of an export.
func validity(e Export) metav1.Condition {
	c := metav1.Condition{Type: multiclusterv1alpha1.ConditionValid, Status: metav1.ConditionFalse}
	switch {
	case e.Service == nil:
		c.Reason, c.Message = reasonNoService, "There is no Service with the name of the ServiceExport. Create it."
	case e.Service.Type == corev1.ServiceTypeExternalName:
		c.Reason = reasonInvalidType
		c.Message = "A Service of the type ExternalName cannot be exported. Export a Service with endpoints."
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonValid, "The Service can be exported."
	}
	return c
}

// union adds the ports of a newer export.
func union(ports, newer []multiclusterv1alpha1.ServicePort) []multiclusterv1alpha1.ServicePort {
	for _, p := range newer {
		if !slices.ContainsFunc(ports, func(q multiclusterv1alpha1.ServicePort) bool {
			return q.Name == p.Name || q.Protocol == p.Protocol && q.Port == p.Port
		}) {
			ports = append(ports, p)
		}
	}
	return ports
}

// differences are the properties in which exports may differ from the oldest one, in the order of their reasons in the
// API. value returns nil for one that does not count.
var differences = []struct {
	reason, what string
	value        func(Export) any
}{
	{reasonPorts, "ports", func(e Export) any {
		return slices.SortedFunc(slices.Values(e.Service.Ports), func(a, b multiclusterv1alpha1.ServicePort) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Protocol), string(b.Protocol)))
		})
	}},
	{reasonType, "type", func(e Export) any { return e.Service.ImportType }},
	{reasonAffinity, "sessionAffinity", func(e Export) any { return e.Service.Affinity }},
	{reasonAffinityConfig, "sessionAffinityConfig", func(e Export) any { return e.Service.AffinityConfig }},
	{reasonInternalTraffic, "internalTrafficPolicy",
		func(e Export) any { return e.Service.InternalTrafficPolicy }},
	{reasonDistribution, "trafficDistribution", func(e Export) any { return e.Service.TrafficDistribution }},
	{reasonFamilies, "ipFamilies", func(e Export) any { return slices.Sorted(slices.Values(e.Service.Families)) }},
	{reasonLabels, "exportedLabels", func(e Export) any { return some(e.Labels) }},
	{reasonAnnotations, "exportedAnnotations", func(e Export) any { return some(e.Annotations) }},
}

// some returns nil for an empty map.
func some(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// conflict is the condition Conflict of valid exports, sorted by age. Several reasons are combined with commas.
func conflict(valid []Export) metav1.Condition {
	var reasons, texts []string
	oldest := valid[0]
	for _, d := range differences {
		if d.reason == reasonAffinityConfig && slices.Contains(reasons, reasonAffinity) {
			continue // it follows from the other difference
		}
		var others []string
		for _, e := range valid[1:] {
			if !reflect.DeepEqual(d.value(e), d.value(oldest)) {
				others = append(others, e.Cluster)
			}
		}
		if len(others) == 0 {
			continue
		}
		slices.Sort(others)
		reasons = append(reasons, d.reason)
		texts = append(texts, fmt.Sprintf("%s: %d of %d clusters differ from %s, whose ServiceExport is the oldest (%s)",
			d.what, len(others), len(valid), oldest.Cluster, few(others)))
	}
	if len(reasons) == 0 {
		return metav1.Condition{Type: multiclusterv1alpha1.ConditionConflict, Status: metav1.ConditionFalse,
			Reason: reasonNoConflicts, Message: "All clusters export the same Service."}
	}
	return metav1.Condition{Type: multiclusterv1alpha1.ConditionConflict, Status: metav1.ConditionTrue,
		Reason: strings.Join(reasons, ","), Message: strings.Join(texts, "; ")}
}

// few joins the first names.
func few(names []string) string {
	const shown = 5
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// Conditions returns the conditions of the ServiceExport of a cluster. refused says why clusters do not get the
// ServiceImport; it is empty if they do.
func (m Merged) Conditions(cluster, refused string) []metav1.Condition {
	ready := metav1.Condition{Type: multiclusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: reasonExported, Message: "The hub exports the Service to each cluster that has the namespace."}
	if invalid, is := m.invalid[cluster]; is {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reasonFailed, invalid.Message
		return []metav1.Condition{invalid, ready, {Type: multiclusterv1alpha1.ConditionConflict,
			Status: metav1.ConditionFalse, Reason: reasonNoConflicts, Message: "The Service is not exported."}}
	}
	if refused != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reasonFailed, refused
	}
	return []metav1.Condition{validity(Export{Service: &Service{}}), ready, m.conflict}
}

// Changed returns the conditions of an export with those that differ replaced, and whether any does. Conditions of
// other types stay.
func Changed(e Export, want []metav1.Condition, now metav1.Time) (all []metav1.Condition, changed bool) {
	all = slices.Clone(e.Conditions)
	for _, c := range want {
		c.ObservedGeneration, c.LastTransitionTime = e.Generation, now
		i := slices.IndexFunc(all, func(h metav1.Condition) bool { return h.Type == c.Type })
		if i < 0 {
			all, changed = append(all, c), true
			continue
		}
		if all[i].Status == c.Status {
			c.LastTransitionTime = all[i].LastTransitionTime
		}
		if all[i] != c {
			all[i], changed = c, true
		}
	}
	return all, changed
}
