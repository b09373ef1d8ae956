package interpret

import (
	"fmt"
	"strings"
	"testing"
)

func TestMembersAllocateWhatNoUserSet(t *testing.T) {
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
	marked := func(ports string) string { return ", annotations: {argosy.io/allocated-node-ports: '" + ports + "'}" }
	both, udp := marked("80/TCP=31000,80/UDP=31001"), marked("80/UDP=31001")
	appliedAnd := func(port, ports string) string {
		return strings.TrimSuffix(applied(port), "}") + ", " + strings.TrimPrefix(marked(ports), ", annotations: {")
	}
	const (
		ports    = "ports: [{port: 80, protocol: TCP, nodePort: 31000}, {port: 80, protocol: UDP, nodePort: 31001}]"
		families = ", healthCheckNodePort: 32000, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack"
	)
	for _, c := range []struct{ name, metadata, left, spec string }{
		{"nothing records what users wrote", "", "", ports + families},
		{"nobody owns them", owns(`"f:type": {}`), both, ports},
		{
			"a user owns one node port",
			owns(`"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:nodePort": {}}, 'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}}}`),
			udp, ports,
		},
		{"a user owns the list of ports", owns(`"f:ports": {}`), "", ports},
		{"a user applied a copy from a member", both + owns(`"f:ports": {}`), "", ports},
		{"a user owns the rest", owns(`"f:healthCheckNodePort": {}, "f:ipFamilies": {}, "f:ipFamilyPolicy": {}`), both,
			ports + families},
		{"a user applied no node port", applied(`"port":80`), appliedAnd(`"port":80`, "80/TCP=31000,80/UDP=31001"), ports},
		{"a user applied a node port", applied(`"port":80,"nodePort":31000`),
			appliedAnd(`"port":80,"nodePort":31000`, "80/UDP=31001"), ports},
		{"a user applied what another one created", applied(`"port":80,"nodePort":31000`) + owns(`"f:type": {}`),
			appliedAnd(`"port":80,"nodePort":31000`, "80/UDP=31001"), ports},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, stored(c.metadata, ports+families))
			Prune(obj)
			expectObject(t, obj, stored(c.left, c.spec))
		})
	}
}

func TestOnlyAllocatedNodePortsAreGivenUp(t *testing.T) {
	const text = `{apiVersion: v1, kind: %s, metadata: {name: s, annotations: {argosy.io/allocated-node-ports: '80/TCP=31000,443/TCP=31443'}},
		spec: {ports: [%s]}}`
	for _, c := range []struct{ name, kind, ports, want string }{
		{"both are allocated", "Service", "{port: 80, nodePort: 31000}, {port: 443, nodePort: 31443}",
			"{port: 80}, {port: 443}"},
		{"an override set one", "Service", "{port: 80, nodePort: 32000}, {port: 443, nodePort: 31443}",
			"{port: 80, nodePort: 32000}, {port: 443}"},
		{"a user set all", "Service", "{port: 8080, nodePort: 32000}", ""},
		{"another kind", "Pod", "{port: 80, nodePort: 31000}", ""},
	} {
		got, ok := WithoutAllocatedNodePorts(read(t, fmt.Sprintf(text, c.kind, c.ports)))
		if ok != (c.want != "") {
			t.Errorf("%s: given up %t", c.name, ok)
		} else if ok {
			expectObject(t, got, fmt.Sprintf(text, c.kind, c.want))
		}
	}
}
