package estimator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"google.golang.org/protobuf/encoding/protowire"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Full names of the methods of karmada-scheduler-estimator.
const (
	service              = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/"
	maxAvailableReplicas = service + "MaxAvailableReplicas"
	maxAvailableSets     = service + "MaxAvailableComponentSets"
)

// Kubernetes types are encoded as messages up to release 1.18 and as bytes in separate fields from 1.18 on. The wire
// types are the same, so requests contain both, and each release reads its own.

// message builds an encoded message. Empty fields are omitted. Maps are sorted by key, so that equal requests have
// equal bytes.
type message struct {
	bytes []byte
	err   error
}

func (m *message) text(n protowire.Number, s string) {
	if s != "" {
		m.raw(n, []byte(s))
	}
}

func (m *message) number(n protowire.Number, v int64) {
	if v != 0 {
		m.bytes = protowire.AppendVarint(protowire.AppendTag(m.bytes, n, protowire.VarintType), uint64(v))
	}
}

// raw writes a field of bytes, text or message, even if it is empty.
func (m *message) raw(n protowire.Number, data []byte) {
	m.bytes = protowire.AppendBytes(protowire.AppendTag(m.bytes, n, protowire.BytesType), data)
}

func (m *message) nested(n protowire.Number, of message) {
	m.raw(n, of.bytes)
	m.err = cmp.Or(m.err, of.err)
}

// entry writes a map entry.
func (m *message) entry(n protowire.Number, key string, value []byte) {
	var e message
	e.raw(1, []byte(key))
	e.raw(2, value)
	m.nested(n, e)
}

// kubernetes encodes a Kubernetes type.
func (m *message) kubernetes(of interface{ Marshal() ([]byte, error) }) []byte {
	data, err := of.Marshal()
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("encode %T: %w", of, err)
	}
	return data
}

func (m *message) resources(asMessage, asBytes protowire.Number, list corev1.ResourceList) {
	names := slices.Sorted(maps.Keys(list))
	for _, n := range []protowire.Number{asMessage, asBytes} {
		for _, name := range names {
			q := list[name]
			m.entry(n, string(name), m.kubernetes(&q))
		}
	}
}

func nodeClaim(claim *workv1alpha2.NodeClaim) (m message) {
	if claim.HardNodeAffinity != nil {
		m.raw(1, m.kubernetes(claim.HardNodeAffinity))
	}
	for _, key := range slices.Sorted(maps.Keys(claim.NodeSelector)) {
		m.entry(2, key, []byte(claim.NodeSelector[key]))
	}
	for i := range claim.Tolerations {
		m.raw(3, m.kubernetes(&claim.Tolerations[i]))
	}
	if claim.HardNodeAffinity != nil {
		m.raw(4, m.kubernetes(claim.HardNodeAffinity))
	}
	for i := range claim.Tolerations {
		m.raw(5, m.kubernetes(&claim.Tolerations[i]))
	}
	return m
}

// requirements encodes what a replica or component requires. The texts are its fields from 3 on.
func requirements(claim *workv1alpha2.NodeClaim, requests corev1.ResourceList, requestsAsBytes protowire.Number,
	texts ...string) (m message) {
	if claim != nil {
		m.nested(1, nodeClaim(claim))
	}
	m.resources(2, requestsAsBytes, requests)
	for i, text := range texts {
		m.text(protowire.Number(3+i), text)
	}
	return m
}

func replicasRequest(cluster string, r *workv1alpha2.ReplicaRequirements) ([]byte, error) {
	var m message
	m.text(1, cluster)
	r = cmp.Or(r, &workv1alpha2.ReplicaRequirements{}) // nil is a pod without requests
	m.nested(2, requirements(r.NodeClaim, r.ResourceRequest, 5, r.Namespace, r.PriorityClassName))
	return m.bytes, m.err
}

func setsRequest(cluster, namespace string, components []workv1alpha2.Component) ([]byte, error) {
	var m message
	m.text(1, cluster)
	for i := range components {
		c := &components[i]
		var component message
		component.text(1, c.Name)
		r := cmp.Or(c.ReplicaRequirements, &workv1alpha2.ComponentReplicaRequirements{})
		component.nested(2, requirements(r.NodeClaim, r.ResourceRequest, 4, r.PriorityClassName))
		component.number(3, int64(c.Replicas))
		m.nested(2, component)
	}
	m.text(3, namespace)
	return m.bytes, m.err
}

// answer returns field 1 of a response, the only one; 0 if omitted.
func answer(data []byte) (n int32, err error) {
	for len(data) > 0 {
		field, kind, length := protowire.ConsumeTag(data)
		if length < 0 {
			return 0, fmt.Errorf("decode the answer: %w", protowire.ParseError(length))
		}
		data = data[length:]
		if field == 1 && kind == protowire.VarintType {
			var v uint64
			v, length = protowire.ConsumeVarint(data)
			n = int32(v)
		} else {
			length = protowire.ConsumeFieldValue(field, kind, data)
		}
		if length < 0 {
			return 0, fmt.Errorf("decode the answer: %w", protowire.ParseError(length))
		}
		data = data[length:]
	}
	return n, nil
}
