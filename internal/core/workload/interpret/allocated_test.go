package interpret

import (
	"fmt"
	"testing"
)

func TestAllocatedServiceFieldsAreNotSent(t *testing.T) {
	// A Service as the API server stores it, with more metadata.
	stored := func(metadata, spec string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s%s}, spec: {type: LoadBalancer, %s}}", metadata,
			spec)
	}
	// What a user owns beside the controller that writes the status.
	owns := func(spec string) string {
		return fmt.Sprintf(`, managedFields: [{manager: lb, operation: Update, subresource: status, fieldsV1: {"f:spec": {"f:ipFamilies": {}}}},
			{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {%s}}}]`, spec)
	}
	applied := func(port string) string {
		return fmt.Sprintf(`, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"type":"LoadBalancer","ports":[{%s}]}}'}`, port)
	}
	const (
		ports    = "ports: [{port: 80, protocol: TCP, nodePort: 31000}, {port: 80, protocol: UDP, nodePort: 31001}]"
		tcp      = "ports: [{port: 80, protocol: TCP, nodePort: 31000}, {port: 80, protocol: UDP}]"
		none     = "ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]"
		families = ", healthCheckNodePort: 32000, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack"
	)
	for _, c := range []struct{ name, metadata, left, spec string }{
		{"nothing records what users wrote", "", "", ports + families},
		{"nobody owns them", owns(`"f:type": {}`), "", none},
		{
			"a user owns one node port",
			owns(`"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:nodePort": {}}, 'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}}}`),
			"", tcp,
		},
		{"a user owns the list of ports", owns(`"f:ports": {}`), "", ports},
		{"a user owns the rest", owns(`"f:healthCheckNodePort": {}, "f:ipFamilies": {}, "f:ipFamilyPolicy": {}`), "", none +
			families},
		{"a user applied no node port", applied(`"port":80`), applied(`"port":80`), none},
		{"a user applied a node port", applied(`"port":80,"nodePort":31000`), applied(`"port":80,"nodePort":31000`), tcp},
		{"a user applied what another one created", applied(`"port":80,"nodePort":31000`) + owns(`"f:type": {}`),
			applied(`"port":80,"nodePort":31000`), tcp},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, stored(c.metadata, ports+families))
			Prune(obj)
			expectObject(t, obj, stored(c.left, c.spec))
		})
	}
}
