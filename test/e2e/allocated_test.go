package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

// nodePort is the node port of the first port of a Service, 0 for none.
func nodePort(service *unstructured.Unstructured) int64 {
	if service == nil {
		return 0
	}
	ports, _ := kit.Field(service, "spec", "ports").([]any)
	if len(ports) == 0 {
		return 0
	}
	n, _ := ports[0].(map[string]any)["nodePort"].(int64)
	return n
}

func TestAllocatedNodePortIsTheSameWhereItIsFree(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const service = `
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s}
spec: {type: NodePort, selector: {app: x}, ports: [{name: http, port: 80, targetPort: 8080%s}]}`
	fleet.Hub.Apply(t, fmt.Sprintf(service, "front", ns, ""))
	port := nodePort(fleet.Hub.Find(t, "v1", "Service", ns, "front"))
	if port == 0 {
		t.Fatal("the hub allocated no node port")
	}
	fleet.Members["m2"].Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s}
---`+service, ns, "taken", ns, fmt.Sprintf(", nodePort: %d", port)))
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "Service", "{clusterAffinity: {clusterNames: [m1, m2]}}"))
	kit.Eventually(t, "the Service is in m2 with a node port of that cluster", func() string {
		if got := nodePort(fleet.Members["m2"].Find(t, "v1", "Service", ns, "front")); got == 0 || got == port {
			return fmt.Sprintf("its node port is %d, on the hub %d", got, port)
		}
		return ""
	})
	kit.Eventually(t, "the Service is in m1 with the node port of the hub", func() string {
		if got := nodePort(fleet.Members["m1"].Find(t, "v1", "Service", ns, "front")); got != port {
			return fmt.Sprintf("its node port is %d, on the hub %d", got, port)
		}
		return ""
	})
	own := nodePort(fleet.Members["m2"].Find(t, "v1", "Service", ns, "front"))
	fleet.Hub.Change(t, "v1", "Service", ns, "front",
		func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"changed": "yes"}) })
	kit.Eventually(t, "a change arrives and the node port stays", func() string {
		u := fleet.Members["m2"].Find(t, "v1", "Service", ns, "front")
		if u.GetLabels()["changed"] != "yes" || nodePort(u) != own {
			return fmt.Sprintf("its labels are %v, its node port is %d, want %d", u.GetLabels(), nodePort(u), own)
		}
		return ""
	})
	const written = 32345
	fleet.Hub.Apply(t, fmt.Sprintf(service, "fixed", ns, fmt.Sprintf(", nodePort: %d", written)))
	kit.Eventually(t, "a node port that the user wrote is sent", func() string {
		if got := nodePort(fleet.Members["m1"].Find(t, "v1", "Service", ns, "fixed")); got != written {
			return fmt.Sprintf("its node port is %d", got)
		}
		return ""
	})
}
