package mcs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
)

var start = time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)

// export is the ServiceExport of a cluster that is minutes old, of a Service whose ports are NAME:PROTOCOL:NUMBER.
func export(cluster string, minute int, change func(*corev1.Service), ports ...string) Export {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.1",
		ClusterIPs: []string{"10.0.0.1"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		SessionAffinity: corev1.ServiceAffinityNone}}
	for _, p := range ports {
		parts := strings.Split(p, ":")
		port := corev1.ServicePort{Name: parts[0], Protocol: corev1.Protocol(parts[1])}
		_, _ = fmt.Sscan(parts[2], &port.Port)
		if len(parts) > 3 {
			port.AppProtocol = &parts[3]
		}
		s.Spec.Ports = append(s.Spec.Ports, port)
	}
	if change != nil {
		change(s)
	}
	service := ServiceOf(s)
	return Export{Cluster: cluster, Created: start.Add(time.Duration(minute) * time.Minute), Service: &service}
}

func headless(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }

func affine(seconds int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

func dual(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
}

func external(s *corev1.Service) {
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
}

func labeled(e Export, labels, annotations map[string]string) Export {
	e.Labels, e.Annotations = labels, annotations
	return e
}

// The rules of KEP-1645, section "Constraints and Conflict Resolution", and of the conditions in the API.
func TestMergeFollowsTheConflictRules(t *testing.T) {
	local, cluster := corev1.ServiceInternalTrafficPolicyLocal, corev1.ServiceInternalTrafficPolicyCluster
	policy := func(p corev1.ServiceInternalTrafficPolicy) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = &p }
	}
	for story, tc := range map[string]struct {
		exports []Export
		// want is the type, the ports, and the reasons of Conflict.
		want string
		also func(Merged) string
	}{
		"one export": {[]Export{export("a", 0, nil, "http:TCP:80")}, "ClusterSetIP http:TCP:80 NoConflicts", nil},
		"equal ones, with ports in another order": {[]Export{export("a", 0, nil, "x:TCP:1", "y:TCP:2"),
			export("b", 1, nil, "y:TCP:2", "x:TCP:1")}, "ClusterSetIP x:TCP:1 y:TCP:2 NoConflicts", nil},
		"a union of ports": {[]Export{export("a", 0, nil, "tcp:TCP:42", "udp:UDP:42"),
			export("b", 1, nil, "tcp:TCP:42", "stcp:SCTP:142")},
			"ClusterSetIP tcp:TCP:42 udp:UDP:42 stcp:SCTP:142 PortConflict", nil},
		"one name, two numbers: the oldest": {[]Export{export("a", 1, nil, "x:TCP:2"), export("b", 0, nil, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 PortConflict", nil},
		"no name counts as a name": {[]Export{export("a", 0, nil, ":TCP:1"), export("b", 1, nil, ":TCP:2")},
			"ClusterSetIP :TCP:1 PortConflict", nil},
		"two names, one number: the oldest": {[]Export{export("a", 0, nil, "x:TCP:1"), export("b", 1, nil, "y:TCP:1")},
			"ClusterSetIP x:TCP:1 PortConflict", nil},
		"one number, two protocols": {[]Export{export("a", 0, nil, "x:TCP:1"), export("b", 1, nil, "y:UDP:1")},
			"ClusterSetIP x:TCP:1 y:UDP:1 PortConflict", nil},
		"another protocol of the application": {[]Export{export("a", 0, nil, "x:TCP:1:http"),
			export("b", 1, nil, "x:TCP:1:h2c")}, "ClusterSetIP x:TCP:1:http PortConflict", nil},
		"one age: the first cluster by name": {[]Export{export("b", 0, nil, "x:TCP:2"), export("a", 0, nil, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 PortConflict", nil},
		"headless": {[]Export{export("a", 0, headless, "x:TCP:1")}, "Headless x:TCP:1 NoConflicts", nil},
		"headless is newer": {[]Export{export("a", 0, nil, "x:TCP:1"), export("b", 1, headless, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 TypeConflict", nil},
		"headless is older": {[]Export{export("a", 1, nil, "x:TCP:1"), export("b", 0, headless, "x:TCP:1")},
			"Headless x:TCP:1 TypeConflict", nil},
		"affinity": {[]Export{export("a", 0, affine(10), "x:TCP:1"), export("b", 1, nil, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 SessionAffinityConflict", func(m Merged) string { return string(m.Spec.SessionAffinity) }},
		"affinity of other times": {[]Export{export("a", 0, affine(10), "x:TCP:1"), export("b", 1, affine(9), "x:TCP:1")},
			"ClusterSetIP x:TCP:1 SessionAffinityConfigConflict",
			func(m Merged) string { return fmt.Sprint(*m.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds) }},
		"traffic policy": {[]Export{export("a", 0, policy(local), "x:TCP:1"), export("b", 1, policy(cluster), "x:TCP:1")},
			"ClusterSetIP x:TCP:1 InternalTrafficPolicyConflict",
			func(m Merged) string { return string(*m.Spec.InternalTrafficPolicy) }},
		"traffic distribution": {[]Export{export("a", 0, func(s *corev1.Service) {
			s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
		}, "x:TCP:1"), export("b", 1, nil, "x:TCP:1")}, "ClusterSetIP x:TCP:1 TrafficDistributionConflict",
			func(m Merged) string { return *m.Spec.TrafficDistribution }},
		"families": {[]Export{export("a", 0, dual, "x:TCP:1"), export("b", 1, nil, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 IPFamilyConflict", func(m Merged) string { return fmt.Sprint(m.Spec.IPFamilies) }},
		"labels": {[]Export{labeled(export("a", 0, nil, "x:TCP:1"), map[string]string{"team": "a"}, nil),
			labeled(export("b", 1, nil, "x:TCP:1"), map[string]string{"also": "b"}, nil)},
			"ClusterSetIP x:TCP:1 LabelsConflict", func(m Merged) string { return fmt.Sprint(m.Labels) }},
		"annotations": {[]Export{labeled(export("a", 0, nil, "x:TCP:1"), nil, nil),
			labeled(export("b", 1, nil, "x:TCP:1"), nil, map[string]string{"also": "b"})},
			"ClusterSetIP x:TCP:1 AnnotationsConflict", nil},
		"none and no labels": {[]Export{labeled(export("a", 0, nil, "x:TCP:1"), map[string]string{}, nil),
			export("b", 1, nil, "x:TCP:1")}, "ClusterSetIP x:TCP:1 NoConflicts", nil},
		"several conflicts": {[]Export{export("a", 0, affine(10), "x:TCP:1"), export("b", 1, headless, "y:TCP:2")},
			"ClusterSetIP x:TCP:1 y:TCP:2 PortConflict,TypeConflict,SessionAffinityConflict", nil},
		"an export without a Service does not count": {[]Export{{Cluster: "a", Created: start},
			export("b", 1, nil, "x:TCP:1")}, "ClusterSetIP x:TCP:1 NoConflicts",
			func(m Merged) string { return strings.Join(m.Exporters, " ") }},
		"nor does one of ExternalName": {[]Export{export("a", 0, external), export("b", 1, nil, "x:TCP:1")},
			"ClusterSetIP x:TCP:1 NoConflicts", func(m Merged) string { return strings.Join(m.Exporters, " ") }},
	} {
		for range 2 { // in any order
			m := Merge(tc.exports)
			var words []string
			words = append(words, string(m.Spec.Type))
			for _, p := range m.Spec.Ports {
				word := fmt.Sprintf("%s:%s:%d", p.Name, p.Protocol, p.Port)
				if p.AppProtocol != nil {
					word += ":" + *p.AppProtocol
				}
				words = append(words, word)
			}
			c := meta.FindStatusCondition(m.Conditions(m.Exporters[0], ""), "Conflict")
			words = append(words, c.Reason)
			if (c.Status == metav1.ConditionTrue) != (c.Reason != "NoConflicts") {
				t.Errorf("%s: Conflict is %s %s", story, c.Status, c.Reason)
			}
			if got := strings.Join(words, " "); got != tc.want {
				t.Errorf("%s: %s, want %s", story, got, tc.want)
			}
			if want := map[string]string{"affinity": "ClientIP", "affinity of other times": "10", "traffic policy": "Local",
				"traffic distribution": "PreferClose", "families": "[IPv6 IPv4]", "labels": "map[team:a]",
				"an export without a Service does not count": "b", "nor does one of ExternalName": "b"}[story]; tc.also != nil &&
				tc.also(m) != want {
				t.Errorf("%s: %s, want %s", story, tc.also(m), want)
			}
			slices.Reverse(tc.exports)
		}
	}
}

// Each cluster reads what is wrong with its own export, and all read of a conflict.
func TestConditionsOfExports(t *testing.T) {
	exports := []Export{export("a", 0, nil, "x:TCP:1"), export("b", 1, nil, "x:TCP:2"), export("c", 2, external),
		{Cluster: "d", Created: start}}
	m := Merge(exports)
	for cluster, want := range map[string]string{
		"a": "Valid=True/Valid Ready=True/Exported Conflict=True/PortConflict",
		"b": "Valid=True/Valid Ready=True/Exported Conflict=True/PortConflict",
		"c": "Valid=False/InvalidServiceType Ready=False/Failed Conflict=False/NoConflicts",
		"d": "Valid=False/NoService Ready=False/Failed Conflict=False/NoConflicts",
	} {
		var words []string
		for _, c := range m.Conditions(cluster, "") {
			words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", cluster, got, want)
		}
	}
	if c := m.Conditions("a", "")[2]; c.Message !=
		"ports: 1 of 2 clusters differ from a, whose ServiceExport is the oldest (b)" {
		t.Errorf("the conflict is %q", c.Message)
	}
	if c := m.Conditions("a", "cluster \"z\": refused")[1]; c.Status != metav1.ConditionFalse || c.Reason != "Failed" ||
		c.Message != `cluster "z": refused` {
		t.Errorf("Ready is %+v", c)
	}
	if m := Merge(exports[2:]); m.Spec != nil || len(m.Exporters) > 0 {
		t.Errorf("exports that are not valid mean %+v", m)
	}
}

// The second reconciliation writes nothing, and conditions of others stay.
func TestConditionsAreWrittenOnce(t *testing.T) {
	e := export("a", 0, nil, "x:TCP:1")
	e.Generation = 3
	e.Conditions = []metav1.Condition{{Type: "Approved", Status: metav1.ConditionTrue, Reason: "Manual"}}
	m := Merge([]Export{e})
	all, changed := Changed(e, m.Conditions("a", ""), metav1.NewTime(start))
	if !changed || len(all) != 4 || all[0].Type != "Approved" || all[1].ObservedGeneration != 3 ||
		!all[1].LastTransitionTime.Time.Equal(start) {
		t.Errorf("the conditions are %+v", all)
	}
	e.Conditions = all
	later := metav1.NewTime(start.Add(time.Hour))
	if _, changed := Changed(e, m.Conditions("a", ""), later); changed {
		t.Error("equal conditions are written again")
	}
	all, changed = Changed(e, m.Conditions("a", "refused"), later)
	if !changed || !all[2].LastTransitionTime.Equal(&later) || all[1].LastTransitionTime.Equal(&later) {
		t.Errorf("the conditions are %+v", all)
	}
}

// Who exports a Service in one cluster steers no hub in the others.
func TestExportsSetNoLabelsOfHubs(t *testing.T) {
	keys := map[string]string{"team": "a", "example.com/team": "a", "karmada.io/managed": "x", "work.karmada.io/name": "x",
		"argosy.io/hands-off": "true", "x.argosy.io/y": "x", "app.kubernetes.io/name": "kept",
		"work.open-cluster-management.io/a": "x", "notkarmada.io/a": "kept"}
	e := &multiclusterv1alpha1.ServiceExport{Spec: multiclusterv1alpha1.ServiceExportSpec{ExportedLabels: keys,
		ExportedAnnotations: keys}}
	const want = "map[app.kubernetes.io/name:kept example.com/team:a notkarmada.io/a:kept team:a]"
	if got := ExportOf("a", e); fmt.Sprint(got.Labels) != want || fmt.Sprint(got.Annotations) != want {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
}
