// Package estimator asks the karmada-scheduler-estimators of member clusters, by gRPC, what room there is. Each is
// asked by itself: one that is silent or fails makes its own cluster unknown, and no other. What the answers count for
// is decided by core/schedule.
package estimator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
)

// One that did not answer in time is left alone for a while, so that it does not hold up every placement: for
// firstPause, then twice as long each time up to lastPause. Then one caller asks it again, and the others do not wait
// for that.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

const (
	// answerLimit is the most bytes of an answer, which is one number.
	answerLimit = 64 << 10
	// headerLimit is the most bytes of its headers, in which an error is told.
	headerLimit = 16 << 10
)

// errGone: the estimator is not to be asked any more.
var errGone = errors.New("its cluster left the fleet, or the hub is stopping")

// ErrPaused says that an estimator was silent lately and is not asked now.
var ErrPaused = errors.New("it has not responded recently, and is retried later")

// Estimators are those of all member clusters, connected to when they are asked first. They are safe for concurrent
// use.
type Estimators struct {
	options   Options
	addresses map[string]string
	dial      []grpc.DialOption

	mu       sync.Mutex
	remotes  map[string]*remote // nil when closed
	answered commit.Dedup[string]
}

// New connects to nobody yet. The error is that of Options.Validate, or of a file.
func New(o Options) (*Estimators, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
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
			grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(answerLimit))}}, nil
}

// MaxAvailableReplicas is how many more replicas with these requirements, nil for none, a cluster has room for.
func (e *Estimators) MaxAvailableReplicas(ctx context.Context, cluster string,
	r *workv1alpha2.ReplicaRequirements) (int32, error) {
	request, err := replicasRequest(cluster, r)
	if err != nil {
		return 0, err
	}
	return e.ask(ctx, cluster, maxAvailableReplicas, request)
}

// MaxAvailableComponentSets is how many more sets of all components, of a template in a namespace, a cluster has room
// for. Older estimators do not know the question, which makes the cluster unknown.
func (e *Estimators) MaxAvailableComponentSets(ctx context.Context, cluster, namespace string,
	components []workv1alpha2.Component) (int32, error) {
	request, err := setsRequest(cluster, namespace, components)
	if err != nil {
		return 0, err
	}
	return e.ask(ctx, cluster, maxAvailableSets, request)
}

// GetUnschedulableReplicas is how many replicas of an object in a cluster have been unschedulable for longer than
// threshold.
func (e *Estimators) GetUnschedulableReplicas(ctx context.Context, cluster string, ref workv1alpha2.ObjectReference,
	threshold time.Duration) (int32, error) {
	request, err := unschedulableRequest(cluster, ref, threshold)
	if err != nil {
		return 0, err
	}
	return e.ask(ctx, cluster, unschedulableReplicas, request)
}

// ask has one estimator answer within the timeout. A number below 0 is how estimators say that they do not know.
func (e *Estimators) ask(ctx context.Context, cluster, method string, request []byte) (int32, error) {
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
	in, out := frame(request), frame(nil)
	err = conn.Invoke(limited, method, &in, &out)
	// A caller that gave up says nothing of the estimator.
	r.done(conn, e.options.Clock.Now(), status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil)
	if err != nil {
		return 0, err
	}
	return answer(out)
}

// remote is the estimator of a cluster.
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

// Forget ends the connection to the estimator of a cluster that is gone.
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

// Close ends all connections, and all that is asked.
func (e *Estimators) Close() {
	e.mu.Lock()
	remotes := e.remotes
	e.remotes = nil
	e.mu.Unlock()
	for _, r := range remotes {
		r.close()
	}
}

// heard logs when an estimator ceases to answer, in another way than before, and when it answers again.
func (e *Estimators) heard(ctx context.Context, cluster string, err error) {
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

// remote is one estimator: a connection, and whether it is worth waiting for.
type remote struct {
	connect func() (*grpc.ClientConn, error)

	mu     sync.Mutex
	conn   *grpc.ClientConn // nil until somebody asks
	closed bool
	// pause is how long it was left alone last, 0 if it answers; until is when that ends. asking says that somebody finds
	// out.
	pause  time.Duration
	until  time.Time
	asking bool
}

// start is the connection to ask by; ErrPaused if it is not to be asked now. done must follow.
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

// done says how asking by conn went. Silence may be that of a connection that broke without a word, so it is made anew.
func (r *remote) done(conn *grpc.ClientConn, now time.Time, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conn != r.conn {
		return // of a connection that was given up
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
