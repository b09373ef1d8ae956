// Package estimator queries the karmada-scheduler-estimators of member clusters by gRPC. Each is queried separately: an
// estimator that fails makes only its own cluster unknown. core/schedule decides how the answers are used.
package estimator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
)

// An estimator that timed out is paused with backoff, from firstPause doubled up to lastPause, so that it does not
// delay every placement. Then one caller probes it while the others do not wait.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

const (
	// answerLimit is the maximum size of a response in bytes. It contains one number.
	answerLimit = 64 << 10
	// headerLimit is the maximum size of the response headers in bytes. They contain error messages.
	headerLimit = 16 << 10
)

// errGone is returned for an estimator that must not be called anymore.
var errGone = errors.New("its cluster left the fleet, or the hub is stopping")

// ErrPaused is returned without a call if the estimator timed out recently.
var ErrPaused = errors.New("it has not responded recently, and is retried later")

// Estimators has the estimators of all member clusters. It connects on the first call. It is safe for concurrent use.
type Estimators struct {
	options   Options
	addresses map[string]string
	dial      []grpc.DialOption

	mu       sync.Mutex
	remotes  map[string]*remote // nil when closed
	answered commit.Dedup[string]
}

// New does not connect yet. It fails if the options are not valid or a file cannot be read.
func New(o Options) (*Estimators, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	creds, err := o.credentials()
	if err != nil {
		return nil, err
	}
	addresses, err := o.addresses()
	if err != nil {
		return nil, err
	}
	return &Estimators{options: o, addresses: addresses, remotes: map[string]*remote{},
		dial: []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(),
			grpc.WithMaxHeaderListSize(headerLimit),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerLimit))}}, nil
}

// MaxAvailableReplicas returns how many more replicas with these requirements fit in a cluster. nil means no
// requirements.
func (e *Estimators) MaxAvailableReplicas(ctx context.Context, cluster string,
	r *workv1alpha2.ReplicaRequirements) (int32, error) {
	request, err := replicasRequest(cluster, r)
	if err != nil {
		return 0, err
	}
	return e.query(ctx, cluster, maxAvailableReplicas, request)
}

// MaxAvailableComponentSets returns how many more sets of all components fit in a cluster. Older estimators do not have
// this method; then the cluster is unknown.
func (e *Estimators) MaxAvailableComponentSets(ctx context.Context, cluster, namespace string,
	components []workv1alpha2.Component) (int32, error) {
	request, err := setsRequest(cluster, namespace, components)
	if err != nil {
		return 0, err
	}
	return e.query(ctx, cluster, maxAvailableSets, request)
}

// query calls one estimator with the timeout. Estimators return a negative number for unknown.
func (e *Estimators) query(ctx context.Context, cluster, method string, request []byte) (int32, error) {
	n, err := e.call(ctx, cluster, method, request)
	if err == nil && n < 0 {
		err = fmt.Errorf("it returned %d, which means unknown", n)
	}
	if err != nil {
		return 0, fmt.Errorf("ask the estimator of cluster %q at %s: %w", cluster, e.options.address(e.addresses, cluster),
			err)
	}
	return n, nil
}

func (e *Estimators) call(ctx context.Context, cluster, method string, request []byte) (int32, error) {
	r, err := e.remote(cluster)
	if err != nil {
		return 0, err
	}
	conn, err := r.start(e.options.Clock.Now())
	if err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	// A message without fields keeps all fields as they are on the wire.
	var in, out emptypb.Empty
	in.ProtoReflect().SetUnknown(request)
	err = conn.Invoke(limited, method, &in, &out)
	// A caller that gave up is no failure of the estimator.
	r.done(conn, e.options.Clock.Now(), status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil)
	if err != nil {
		return 0, err
	}
	return answer(out.ProtoReflect().GetUnknown())
}

func (e *Estimators) remote(cluster string) (*remote, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.remotes == nil {
		return nil, errGone
	}
	r := e.remotes[cluster]
	if r == nil {
		address := e.options.address(e.addresses, cluster)
		r = &remote{connect: func() (*grpc.ClientConn, error) { return grpc.NewClient("dns:///"+address, e.dial...) }}
		e.remotes[cluster] = r
	}
	return r, nil
}

// Forget closes the connection to the estimator of a removed cluster.
func (e *Estimators) Forget(cluster string) {
	e.mu.Lock()
	r := e.remotes[cluster]
	delete(e.remotes, cluster)
	e.mu.Unlock()
	if r != nil {
		r.close()
	}
	e.answered.Forget(cluster)
}

// Close closes all connections and aborts calls.
func (e *Estimators) Close() {
	e.mu.Lock()
	remotes := e.remotes
	e.remotes = nil
	e.mu.Unlock()
	for _, r := range remotes {
		r.close()
	}
}

// logOutcome logs when an estimator stops responding, when its error changes, and when it responds again.
func (e *Estimators) logOutcome(ctx context.Context, cluster string, err error) {
	switch log := klog.FromContext(ctx).WithName("estimator"); {
	case errors.Is(err, ErrPaused), errors.Is(err, errGone), errors.Is(ctx.Err(), context.Canceled):
	case err == nil:
		if e.answered.Forget(cluster) {
			log.Info("the estimator responds again", "cluster", cluster)
		}
	case e.answered.IsNew(cluster, status.Code(errors.Unwrap(err)).String()):
		log.Info("the estimator does not respond; the hub's own estimate is used", "cluster", cluster, "error", err.Error())
	}
}

// remote is the connection to one estimator, with its backoff.
type remote struct {
	connect func() (*grpc.ClientConn, error)

	mu     sync.Mutex
	conn   *grpc.ClientConn // nil before the first call
	closed bool
	// pause is the last backoff, 0 if the estimator responds. until is its end. asking is true while a caller probes.
	pause  time.Duration
	until  time.Time
	asking bool
}

// start returns the connection for a call, or ErrPaused. The caller must call done afterwards.
func (r *remote) start(now time.Time) (*grpc.ClientConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errGone
	case r.pause > 0 && (r.asking || now.Before(r.until)):
		return nil, ErrPaused
	}
	if r.conn == nil {
		conn, err := r.connect()
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	r.asking = r.pause > 0
	return r.conn, nil
}

// done records the result of a call. After a timeout the connection is closed, because it may be broken.
func (r *remote) done(conn *grpc.ClientConn, now time.Time, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conn != r.conn {
		return // the connection was replaced meanwhile
	}
	switch {
	case !silent:
		r.pause = 0
	case r.pause == 0:
		r.pause = firstPause
	default:
		r.pause = min(2*r.pause, lastPause)
	}
	r.asking, r.until = false, now.Add(r.pause)
	if silent {
		r.conn = nil
		conn.Close()
	}
}

func (r *remote) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}
