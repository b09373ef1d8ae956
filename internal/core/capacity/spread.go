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

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// SpreadAnnotation on a binding says how the pods of its workload keep away from each other in a member, as JSON of
// Spread; it is there only where they do. The scheduler does not see the template, and the requirements of a replica
// have no field for it.
const SpreadAnnotation = "argosy.io/pod-spread"

// Spread is what a pod template asks about pods with its own labels, and of the ports of nodes.
type Spread struct {
	// Apart are labels of nodes, sorted: no two of the pods may be on nodes with the same value, by required
	// podAntiAffinity.
	Apart []string `json:"apart,omitempty"`
	// Even are the topologySpreadConstraints with DoNotSchedule.
	Even []Even `json:"even,omitempty"`
	// Ports are ports of the node that each pod takes, such as TCP/80, sorted.
	Ports []string `json:"ports,omitempty"`
}

// Even keeps the numbers of pods on nodes with the same value of a label alike.
type Even struct {
	// Key is the label. MaxSkew is by how many pods a value may have more than the one with the fewest; while there are
	// fewer values than MinDomains, that counts as one without pods.
	Key        string `json:"key"`
	MaxSkew    int32  `json:"maxSkew"`
	MinDomains int32  `json:"minDomains,omitempty"`
	// AnyNode has nodes count that the pod does not select, by nodeAffinityPolicy Ignore; Tolerated leaves out those whose
	// taints it does not tolerate, by nodeTaintsPolicy Honor.
	AnyNode   bool `json:"anyNode,omitempty"`
	Tolerated bool `json:"tolerated,omitempty"`
}

// SpreadOf is what pods with these labels and this spec ask for in their namespace. Anti-affinity to pods of others,
// and what has a selector that does not select the pods themselves, is not part of it.
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

// hostPorts adds the ports of its node that a container takes.
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

// Empty says whether nothing is asked for.
func (s Spread) Empty() bool { return len(s.Apart)+len(s.Even)+len(s.Ports) == 0 }

// Text is the value of SpreadAnnotation; empty for none.
func (s Spread) Text() string {
	if s.Empty() {
		return ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot
	}
	return string(text)
}

// SpreadNoted is what a binding says in its annotation. What cannot be read, which somebody else wrote, is nothing.
func SpreadNoted(b workv1alpha2.Binding) (s Spread) {
	if text := b.GetAnnotations()[SpreadAnnotation]; text != "" && json.Unmarshal([]byte(text), &s) != nil {
		return Spread{}
	}
	return s
}

// String is what limits a member's room, in words: "one per node by podAntiAffinity".
func (s Spread) String() string {
	var texts []string
	for _, key := range s.Apart {
		texts = append(texts, fmt.Sprintf("one per %s by podAntiAffinity", place(key)))
	}
	for _, e := range s.Even {
		texts = append(texts, fmt.Sprintf("a skew of at most %d per %s by topologySpreadConstraints", e.MaxSkew,
			place(e.Key)))
	}
	if len(s.Ports) > 0 {
		texts = append(texts, "one per node by host port "+strings.Join(s.Ports, ", "))
	}
	return strings.Join(texts, "; ")
}

// place is what a label of nodes tells apart, in words.
func place(key string) string {
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

// portPrefix marks a port of nodes among the resources: each has one of it. No resource can be named so.
const portPrefix = "port:"

// withPorts are the requests with ports of the node beside them, sorted.
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
