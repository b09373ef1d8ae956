// Package estimate tells how a hub places by what the members' scheduler estimators say: on real servers, with
// estimators that speak the bytes of the protocol.
package estimate

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

var (
	fleet      *kit.Fleet
	estimators = map[string]*estimator{}
)

// estimator answers every question about its cluster with the same number.
type estimator struct {
	*grpc.Server
	address string

	mu     sync.Mutex
	room   byte // below 128, which is its own varint
	asked  map[string]int
	strays []string // questions about another cluster
}

// bytes are messages as they are on the wire.
type bytes struct{}

func (bytes) Name() string                       { return "proto" }
func (bytes) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (bytes) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }

// serve starts the estimator of a cluster whose name has two letters.
func serve(cluster string, room byte) (*estimator, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &estimator{address: listener.Addr().String(), room: room, asked: map[string]int{}}
	e.Server = grpc.NewServer(grpc.ForceServerCodec(bytes{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			e.mu.Lock()
			e.asked[method]++
			if want := "\x0a\x02" + cluster; !strings.HasPrefix(string(request), want) { // field 1 is the cluster
				e.strays = append(e.strays, string(request))
			}
			answer := []byte{0x08, e.room} // field 1 is the number
			e.mu.Unlock()
			return stream.SendMsg(&answer)
		}))
	go func() { _ = e.Serve(listener) }()
	return e, nil
}

// setRoom sets the estimator's answer.
func (e *estimator) setRoom(room byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room = room
}

func TestMain(m *testing.M) {
	kit.MainLong("estimate", func(dir string) (_ *kit.Fleet, err error) {
		o := lab.Options{Dir: dir, HubArgs: []string{"--enable-scheduler-estimator"}}
		for name, room := range map[string]byte{"m1": 6, "m2": 2} {
			if estimators[name], err = serve(name, room); err != nil {
				return nil, err
			}
			o.HubArgs = append(o.HubArgs, "--scheduler-estimator-address="+name+"="+estimators[name].address)
			o.Members = append(o.Members, sim.Member{Name: name, Nodes: 1, NodeCPU: "16", Provider: "lab", Region: "eu",
				Zone: "z1"})
		}
		fleet, err = kit.StartWith(o)
		return fleet, err
	}, m.Run)
}

// workload is divided by room, and a replica of it takes one of a member's 16 CPUs.
func workload(ns, name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[2]s}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  paused: true
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers: [{name: c, image: "example.com/c:1", resources: {requests: {cpu: "1"}}}]
`, ns, name, replicas)
}

// waitPlaced waits until a Deployment's binding is placed so: "m1:3 m2:1".
func waitPlaced(t *testing.T, ns, name, want string) {
	t.Helper()
	kit.Eventually(t, name+" is placed as "+want, func() string {
		b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, name+"-deployment")
		if b == nil {
			return "there is no binding"
		}
		clusters, _ := kit.Field(b, "spec", "clusters").([]any)
		var out []string
		for _, c := range clusters {
			u := &unstructured.Unstructured{Object: c.(map[string]any)}
			out = append(out, fmt.Sprintf("%v:%v", kit.Field(u, "name"), kit.Field(u, "replicas")))
		}
		if got := strings.Join(out, " "); got != want {
			return "it is placed as " + got
		}
		return ""
	})
}

func TestReplicasFollowEstimators(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, workload(ns, "asked", 4))
	waitPlaced(t, ns, "asked", "m1:3 m2:1")
	for name, e := range estimators {
		e.mu.Lock()
		if n := e.asked["/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"]; n == 0 ||
			len(e.asked) != 1 || len(e.strays) > 0 {
			t.Errorf("the estimator of %s was asked %v, and about others %q", name, e.asked, e.strays)
		}
		e.mu.Unlock()
	}

	// What an estimator says more than the hub sees does not count: m2 has 15 CPUs left.
	estimators["m2"].setRoom(100)
	fleet.Hub.Apply(t, workload(ns, "most", 18))
	waitPlaced(t, ns, "most", "m1:5 m2:13")

	// One that is gone leaves its cluster to what the hub sees, which is 8 CPUs, and the other to its estimator.
	estimators["m1"].Stop()
	estimators["m2"].setRoom(1)
	fleet.Hub.Apply(t, workload(ns, "gone", 9))
	waitPlaced(t, ns, "gone", "m1:8 m2:1")
}
