package estimator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var (
	claim = &workv1alpha2.NodeClaim{
		HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"a", "b"}}}}}},
		NodeSelector: map[string]string{"disk": "ssd", "arch": "arm64"},
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}, {Key: "x", Value: "y"}},
	}
	request = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	needs = &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request, Namespace: "shop",
		PriorityClassName: "high"}
	parts = []workv1alpha2.Component{
		{Name: "jobmanager", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{NodeClaim: claim,
			ResourceRequest: request, PriorityClassName: "high"}},
		{Name: "taskmanager", Replicas: 200},
	}
	web = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
)

// The bytes were written by hand: a length-delimited field N begins with N<<3|2, a varint with N<<3.
func TestRequestEncoding(t *testing.T) {
	small := &workv1alpha2.ReplicaRequirements{
		NodeClaim: &workv1alpha2.NodeClaim{
			HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "z", Operator: "In", Values: []string{"a"}}}}}},
			NodeSelector: map[string]string{"d": "s", "a": ""},
			Tolerations:  []corev1.Toleration{{Key: "g", Operator: "Exists"}},
		},
		ResourceRequest: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("500m")},
		Namespace:       "ns", PriorityClassName: "p",
	}
	const (
		affinity   = "\x0a\x0c\x0a\x0a\x0a\x01z\x12\x02In\x1a\x01a"
		toleration = "\x0a\x01g\x12\x06Exists\x1a\x00\x22\x00" // Kubernetes writes its empty texts
		// Entries: key is 1, value is 2; a Quantity is its text in field 1.
		requests = "\x0a\x03cpu\x12\x06\x0a\x04500m"
		memories = "\x0a\x06memory\x12\x05\x0a\x031Gi"
		claims   = "\x0a\x0e" + affinity + // 1
			"\x12\x05\x0a\x01a\x12\x00" + "\x12\x06\x0a\x01d\x12\x01s" + // 2
			"\x1a\x0f" + toleration + // 3
			"\x22\x0e" + affinity + // 4
			"\x2a\x0f" + toleration // 5
	)
	const whole = "\x0a\x51" + claims + // 1: 81 bytes
		"\x12\x0d" + requests + "\x12\x0f" + memories + // 2
		"\x2a\x0d" + requests + "\x2a\x0f" + memories + // 5
		"\x1a\x02ns" + "\x22\x01p" // 3, 4
	for name, c := range map[string]struct {
		encode func() ([]byte, error)
		want   string
	}{
		"nothing needed": {func() ([]byte, error) { return replicasRequest("m1", nil) }, "\x0a\x02m1\x12\x00"},
		"all that a replica may need": {func() ([]byte, error) { return replicasRequest("m1", small) },
			"\x0a\x02m1" + "\x12\x9a\x01" + whole},
		"sets": {func() ([]byte, error) {
			return setsRequest("m1", "ns", []workv1alpha2.Component{{Name: "a", Replicas: 300,
				ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
					ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("2")}, PriorityClassName: "p"}}, {Name: "b"}})
		}, "\x0a\x02m1" +
			"\x12\x23" + "\x0a\x01a" + "\x12\x1b" + "\x12\x0a\x0a\x03cpu\x12\x03\x0a\x012" +
			"\x22\x0a\x0a\x03cpu\x12\x03\x0a\x012" + "\x1a\x01p" + "\x18\xac\x02" +
			"\x12\x05" + "\x0a\x01b" + "\x12\x00" +
			"\x1a\x02ns"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.encode()
			if err != nil || string(got) != c.want {
				t.Errorf("the bytes are\n%q, error %v; want\n%q", got, err, c.want)
			}
		})
	}
}

func TestAnswerDecoding(t *testing.T) {
	for data, want := range map[string]int32{
		"":                                       0,
		"\x08\x07":                               7,
		"\x08\xff\xff\xff\xff\x07":               1<<31 - 1,
		"\x12\x02ab\x08\x07\x1d\x01\x02\x03\x04": 7, // fields of a later release
		"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": -1,
	} {
		if got, err := answer([]byte(data)); err != nil || got != want {
			t.Errorf("%q is read as %d, %v; want %d", data, got, err, want)
		}
	}
	for _, data := range []string{"\x08", "\x08\xff", "\x12\x05a", "\xff\xff"} {
		if n, err := answer([]byte(data)); err == nil || !strings.Contains(err.Error(), "decode the answer") {
			t.Errorf("%q is read as %d, %v; want an error", data, n, err)
		}
	}
}
