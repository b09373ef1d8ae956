package estimator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// options returns options for the peers by cluster.
func options(peers map[string]*peer) Options {
	o := Options{Timeout: 10 * time.Second, ServicePrefix: "karmada-scheduler-estimator",
		ServiceNamespace: "karmada-system", Port: 10352}
	for cluster, p := range peers {
		o.Addresses = append(o.Addresses, cluster+"="+p.address)
	}
	return o
}

func connect(t *testing.T, o Options) *Estimators {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// binding returns the binding of a Deployment with requirements, or of a template with components.
func binding(components ...workv1alpha2.Component) workv1alpha2.Binding {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = web
	b.Spec.Components = components
	if len(components) == 0 {
		b.Spec.ReplicaRequirements, b.Spec.Replicas = needs, 3
	}
	return b
}

// show writes a Capacity as "a=7 b=?".
func show(room schedule.Capacity, clusters ...string) string {
	var out []string
	for _, c := range clusters {
		n, known := room(c)
		s := fmt.Sprint(n)
		if !known {
			s = "?"
		}
		out = append(out, c+"="+s)
	}
	return strings.Join(out, " ")
}

func TestAllReleasesReadRequests(t *testing.T) {
	const (
		selector = `nodeSelector:{ key:"arch" value:"arm64" } nodeSelector:{ key:"disk" value:"ssd" }`
		typed    = `nodeClaim:{ nodeAffinity:{ nodeSelectorTerms:{ matchExpressions:{ key:"zone" operator:"In" values:"a" values:"b" } } } ` + selector +
			` tolerations:{ key:"gpu" operator:"Exists" effect:"NoSchedule" } tolerations:{ key:"x" value:"y" } }` +
			` resourceRequest:{ key:"cpu" value:{ string:"500m" } } resourceRequest:{ key:"memory" value:{ string:"1Gi" } }`
		bytes = `nodeClaim:{ ` + selector +
			` nodeAffinityBytes:"\n\x12\n\x10\n\x04zone\x12\x02In\x1a\x01a\x1a\x01b"` +
			` tolerationsBytes:"\n\x03gpu\x12\x06Exists\x1a\x00\"\nNoSchedule" tolerationsBytes:"\n\x01x\x12\x00\x1a\x01y\"\x00" }`
		requests = ` resourceRequestBytes:{ key:"cpu" value:"\n\x04500m" } resourceRequestBytes:{ key:"memory" value:"\n\x031Gi" }`
	)
	for release, c := range map[string]struct{ messages, replicas, component string }{
		"earlier": {earlier, typed + ` namespace:"shop" priorityClassName:"high"`, typed + ` priorityClassName:"high"`},
		"later": {later, bytes + ` namespace:"shop" priorityClassName:"high"` + requests, bytes +
			` priorityClassName:"high"` + requests},
	} {
		t.Run(release, func(t *testing.T) {
			p := newPeer(t, c.messages)
			e := connect(t, options(map[string]*peer{"m1": p}))
			if n, err := e.MaxAvailableReplicas(t.Context(), "m1", needs); n != 7 || err != nil {
				t.Errorf("replicas: %d, %v", n, err)
			}
			if n, err := e.MaxAvailableComponentSets(t.Context(), "m1", "shop", parts); n != 7 || err != nil {
				t.Errorf("sets: %d, %v", n, err)
			}
			want := []string{
				`MaxAvailableReplicas cluster:"m1" replicaRequirements:{ ` + c.replicas + ` }`,
				`MaxAvailableComponentSets cluster:"m1" components:{ name:"jobmanager" replicaRequirements:{ ` + c.component +
					` } replicas:1 }` +
					` components:{ name:"taskmanager" replicaRequirements:{} replicas:200 } namespace:"shop"`,
			}
			squeeze := func(s string) string { return strings.NewReplacer(" ", "").Replace(s) }
			for i, got := range p.requests() {
				if i >= len(want) || squeeze(got) != squeeze(want[i]) {
					t.Errorf("it read\n%s\nwant\n%s", got, want[min(i, len(want)-1)])
				}
			}
			if len(p.requests()) != len(want) {
				t.Errorf("it read %d requests", len(p.requests()))
			}
		})
	}
}

func TestFailedEstimatorMakesOnlyItsClusterUnknown(t *testing.T) {
	peers := map[string]*peer{}
	for _, c := range []string{"good", "none", "silent", "failing", "unsure", "old"} {
		peers[c] = newPeer(t, later)
	}
	peers["none"].setAnswer(always(0))
	// As one whose time ran out, once another has answered: they are asked at the same time.
	answered := make(chan struct{})
	var once sync.Once
	peers["good"].setAnswer(func(context.Context) (int32, error) { once.Do(func() { close(answered) }); return 12, nil })
	peers["silent"].setAnswer(func(ctx context.Context) (int32,
		error) {
		<-answered
		return fails(codes.DeadlineExceeded)(ctx)
	})
	peers["failing"].setAnswer(fails(codes.Internal))
	peers["unsure"].setAnswer(always(-1))
	peers["old"].setAnswer(fails(codes.Unimplemented))
	o := options(peers)
	o.Addresses = append(o.Addresses, "down=127.0.0.1:1")
	clusters := []string{"silent", "good", "none", "failing", "unsure", "old", "down"}
	const want = "silent=? good=12 none=0 failing=? unsure=? old=? down=?"
	for name, b := range map[string]workv1alpha2.Binding{"replicas": binding(), "components": binding(parts...)} {
		t.Run(name, func(t *testing.T) {
			if got := show(connect(t, o).Room(t.Context(), b, clusters), clusters...); got != want {
				t.Errorf("the room is %s, want %s", got, want)
			}
		})
	}
	var methods []string
	for _, asked := range peers["good"].requests() {
		methods = append(methods, strings.Fields(asked)[0])
	}
	if slices.Sort(methods); !slices.Equal(methods, []string{"MaxAvailableComponentSets", "MaxAvailableReplicas"}) {
		t.Errorf("asked were %v", methods)
	}
	_, err := connect(t, o).MaxAvailableReplicas(t.Context(), "failing", nil)
	if want := `ask the estimator of cluster "failing" at ` + peers["failing"].address + ": "; err == nil ||
		!strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("the error is %v, want %s…", err, want)
	}
}

func TestUnresponsiveEstimatorIsPausedAndProbedOnce(t *testing.T) {
	p := newPeer(t, later)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	o := options(map[string]*peer{"m1": p})
	o.Clock = clock
	e := connect(t, o)
	ask := func() string { return show(e.Room(context.Background(), binding(), []string{"m1"}), "m1") }

	p.setAnswer(fails(codes.DeadlineExceeded))
	for range 3 {
		if got := ask(); got != "m1=?" {
			t.Fatalf("an unresponsive one gives %s", got)
		}
	}
	if n := len(p.requests()); n != 1 {
		t.Fatalf("it was waited for %d times, want once", n)
	}
	if _, err := e.MaxAvailableReplicas(t.Context(), "m1", nil); err == nil ||
		!strings.Contains(err.Error(), ErrPaused.Error()) {
		t.Errorf("the error is %v, want %v", err, ErrPaused)
	}

	// Silent again, it is left alone for longer.
	clock.SetTime(clock.Now().Add(firstPause))
	ask()
	clock.SetTime(clock.Now().Add(firstPause))
	ask()
	if n := len(p.requests()); n != 2 {
		t.Fatalf("it was waited for %d times, want twice", n)
	}

	// One finds out; who comes meanwhile does not wait.
	clock.SetTime(clock.Now().Add(firstPause))
	asked, release := make(chan struct{}), make(chan struct{})
	p.setAnswer(func(context.Context) (int32, error) { close(asked); <-release; return 9, nil })
	found := make(chan string)
	go func() { found <- ask() }()
	<-asked
	if got := ask(); got != "m1=?" {
		t.Errorf("during the probe got %s", got)
	}
	close(release)
	if got := <-found; got != "m1=9" {
		t.Errorf("after the probe got %s", got)
	}
	p.setAnswer(always(4))
	if got := ask(); got != "m1=4" {
		t.Errorf("then got %s", got)
	}
}

func TestCallEndsAfterTimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := options(nil)
	o.Timeout, o.Addresses = 50*time.Millisecond, []string{"m1=" + listener.Addr().String()}
	e := connect(t, o)
	for _, want := range []error{context.DeadlineExceeded, ErrPaused} {
		if _, err := e.MaxAvailableReplicas(t.Context(), "m1", nil); err == nil ||
			!strings.Contains(err.Error(), want.Error()) {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
}

func TestCanceledCallDoesNotPauseEstimator(t *testing.T) {
	p := newPeer(t, later)
	e := connect(t, options(map[string]*peer{"m1": p}))
	ctx, cancel := context.WithCancel(t.Context())
	p.setAnswer(func(ctx context.Context) (int32, error) { cancel(); return silent(ctx) })
	if got := show(e.Room(ctx, binding(), []string{"m1"}), "m1"); got != "m1=?" {
		t.Errorf("after cancellation got %s", got)
	}
	p.setAnswer(always(3))
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=3" {
		t.Errorf("the next caller hears %s", got)
	}
}

func TestRestartedEstimatorIsFound(t *testing.T) {
	p := newPeer(t, later)
	e := connect(t, options(map[string]*peer{"m1": p}))
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=7" {
		t.Fatalf("got %s", got)
	}
	e.Forget("m1") // its cluster left, and joins again
	p.setAnswer(always(5))
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=5" {
		t.Errorf("after joining again got %s", got)
	}
	e.Close()
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=?" {
		t.Errorf("after Close got %s", got)
	}
}

func TestConcurrentCallsWhileClustersChange(t *testing.T) {
	a, b := newPeer(t, later), newPeer(t, earlier)
	e := connect(t, options(map[string]*peer{"a": a, "b": b}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if got := show(e.Room(context.Background(), binding(), []string{"a", "b"}), "a",
					"b"); !slices.Contains([]string{"a=7 b=7", "a=? b=7"}, got) {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	all.Go(func() {
		for range 50 {
			e.Forget("a")
		}
	})
	all.Wait()
	if got := show(e.Room(t.Context(), binding(), []string{"a", "b"}), "a", "b"); got != "a=7 b=7" {
		t.Errorf("in the end got %s", got)
	}
}

func TestHostileEstimatorResponseIsLimited(t *testing.T) {
	p := newPeer(t, later)
	e := connect(t, options(map[string]*peer{"m1": p}))
	p.setAnswer(func(context.Context) (int32, error) {
		return 0, status.Error(codes.Internal, strings.Repeat("x", 1<<20))
	})
	if _, err := e.MaxAvailableReplicas(t.Context(), "m1", nil); err == nil || len(err.Error()) > 32<<10 {
		t.Errorf("the message of an endless error has %d bytes", len(fmt.Sprint(err)))
	}
	p.setAnswer(func(ctx context.Context) (int32, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("x", strings.Repeat("x", 1<<20)))
		return 7, nil
	})
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=?" {
		t.Errorf("with a giant header the room is %s", got)
	}
	p.setAnswer(always(3))
	if got := show(e.Room(t.Context(), binding(), []string{"m1"}), "m1"); got != "m1=3" {
		t.Errorf("when it behaves again the room is %s", got)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		var in emptypb.Empty
		if err := s.RecvMsg(&in); err != nil {
			return err
		}
		return s.SendMsg(wrapperspb.Bytes(make([]byte, answerLimit+1)))
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	o := options(nil)
	o.Addresses = []string{"m2=" + listener.Addr().String()}
	if _, err := connect(t, o).MaxAvailableReplicas(t.Context(), "m2",
		nil); status.Code(errors.Unwrap(err)) != codes.ResourceExhausted || !strings.Contains(err.Error(), `cluster "m2"`) {
		t.Errorf("a giant answer is %v, want it refused for its size", err)
	}
}
