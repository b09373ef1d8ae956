package capacity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Spread has the spread rules of a pod template that refer to its own pods, and its host ports.
type Spread struct {
	// Apart are the topology keys of required podAntiAffinity, sorted.
	Apart []string `json:"apart,omitempty"`
	// Even are the topologySpreadConstraints with DoNotSchedule.
	Even []Even `json:"even,omitempty"`
	// Ports are ports of the node that each pod takes, such as TCP/80, sorted.
	Ports []string `json:"ports,omitempty"`
}

// Even is a topology spread constraint.
type Even struct {
	// Key is the topologyKey. MaxSkew and MinDomains of the constraint.
	Key        string `json:"key"`
	MaxSkew    int32  `json:"maxSkew"`
	MinDomains int32  `json:"minDomains,omitempty"`
	// AnyNode is nodeAffinityPolicy Ignore. Tolerated is nodeTaintsPolicy Honor.
	AnyNode   bool `json:"anyNode,omitempty"`
	Tolerated bool `json:"tolerated,omitempty"`
}

// SpreadOf returns the spread rules of a pod with these labels and this spec. It ignores rules whose selector does not
// match the pod itself.
func SpreadOf(namespace string, own map[string]string, spec *corev1.PodSpec) (s Spread) {
	selects := func(selector *metav1.LabelSelector) bool {
		l, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && l.Matches(labels.Set(own))
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			here := len(t.Namespaces) == 0 && t.NamespaceSelector == nil || slices.Contains(t.Namespaces, namespace) ||
				t.NamespaceSelector != nil && len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) == 0
			others := slices.ContainsFunc(t.MismatchLabelKeys, func(key string) bool { _, has := own[key]; return has })
			if here && !others && selects(t.LabelSelector) {
				s.Apart = append(s.Apart, t.TopologyKey)
			}
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || !selects(c.LabelSelector) {
			continue
		}
		e := Even{Key: c.TopologyKey, MaxSkew: max(1, c.MaxSkew), AnyNode: c.NodeAffinityPolicy != nil &&
			*c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
			Tolerated: c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor}
		if c.MinDomains != nil && *c.MinDomains > 1 {
			e.MinDomains = *c.MinDomains
		}
		s.Even = append(s.Even, e)
	}
	for i := range spec.Containers {
		s.Ports = hostPorts(s.Ports, spec, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			s.Ports = hostPorts(s.Ports, spec, c)
		}
	}
	slices.Sort(s.Apart)
	slices.Sort(s.Ports)
	s.Apart, s.Ports = slices.Compact(s.Apart), slices.Compact(s.Ports)
	return s
}

// hostPorts appends the host ports of a container.
func hostPorts(ports []string, spec *corev1.PodSpec, c *corev1.Container) []string {
	for i := range c.Ports {
		p := &c.Ports[i]
		port := p.HostPort
		if spec.HostNetwork {
			port = p.ContainerPort
		}
		if port > 0 {
			ports = append(ports, fmt.Sprintf("%s/%d", cmp.Or(p.Protocol, corev1.ProtocolTCP), port))
		}
	}
	return ports
}

// Empty reports whether there are no rules and ports.
func (s Spread) Empty() bool { return len(s.Apart)+len(s.Even)+len(s.Ports) == 0 }

// Text returns the value of wellknown.PodSpreadAnnotation; empty without rules.
func (s Spread) Text() string {
	if s.Empty() {
		return ""
	}
	return text.JSON(s)
}

// SpreadOfBinding returns the spread rules in a binding's annotation. An invalid value counts as none.
func SpreadOfBinding(b workv1alpha2.Binding) (s Spread) {
	if text := b.GetAnnotations()[wellknown.PodSpreadAnnotation]; text != "" && json.Unmarshal([]byte(text), &s) != nil {
		return Spread{}
	}
	return s
}

// String describes the rules for users: "one per node by podAntiAffinity".
func (s Spread) String() string {
	var texts []string
	for _, key := range s.Apart {
		texts = append(texts, fmt.Sprintf("one per %s by podAntiAffinity", domainName(key)))
	}
	for _, e := range s.Even {
		texts = append(texts, fmt.Sprintf("a skew of at most %d per %s by topologySpreadConstraints", e.MaxSkew,
			domainName(e.Key)))
	}
	if len(s.Ports) > 0 {
		texts = append(texts, "one per node by host port "+strings.Join(s.Ports, ", "))
	}
	return strings.Join(texts, "; ")
}

// domainName returns what users call the domains of a label.
func domainName(key string) string {
	switch key {
	case corev1.LabelHostname:
		return "node"
	case corev1.LabelTopologyZone:
		return "zone"
	case corev1.LabelTopologyRegion:
		return "region"
	}
	return "value of node label " + key
}

// portPrefix marks a host port among the resources. Each node has one of each. No real resource has this prefix.
const portPrefix = "port:"

// resourceName returns what users call a resource or host port.
func resourceName(name corev1.ResourceName) string {
	if port, is := strings.CutPrefix(string(name), portPrefix); is {
		return "host port " + port
	}
	return string(name)
}

// withPorts returns the requests and the host ports, sorted.
func withPorts(requests []request, ports []string) []request {
	if len(ports) == 0 {
		return requests
	}
	for _, p := range ports {
		requests = append(requests, request{corev1.ResourceName(portPrefix + p), 1})
	}
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return requests
}
