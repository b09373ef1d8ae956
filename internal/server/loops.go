package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Kubernetes' own timings: a dead leader is replaced after leaseDuration at the latest, and a leader that cannot renew
// its lease stops five seconds before that.
const (
	leaseName     = "argosy"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// elects reports whether leader election is needed. A hub with its own store has a lock on the data folder and is
// always alone.
func (h *Hub) elects() bool { return len(h.config.Etcd.Servers) > 0 }

// newAlive returns a liveness check that fails when a leader has not renewed for a lease's length and yet leads on.
func newAlive() *leaderelection.HealthzAdaptor {
	return leaderelection.NewLeaderHealthzAdaptor(leaseDuration)
}

// startLoops returns at once: replicas that are not the leader are ready too.
func (h *Hub) startLoops(context.Context) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	run := h.runLoops
	if h.elects() {
		elector, err := h.elector()
		if err != nil {
			cancel()
			return nil, err
		}
		run = elector
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			h.fail(err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// runLoops runs every loop until ctx ends or one fails, and returns when all have returned.
func (h *Hub) runLoops(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.leads.Store(true)
	defer h.leads.Store(false)
	var running sync.WaitGroup
	for _, l := range loops {
		if !h.config.runs(l.name) {
			continue
		}
		running.Go(func() {
			err := l.run(h, klog.NewContext(ctx, klog.Background().WithName(l.name)))
			switch {
			case err != nil:
				cancel(fmt.Errorf("%s stopped: %w", l.name, err))
			case ctx.Err() == nil:
				cancel(fmt.Errorf("%s stopped unexpectedly", l.name))
			}
		})
	}
	<-ctx.Done()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// elector returns a function that runs the loops whenever this replica leads, until its context ends.
func (h *Hub) elector() (func(context.Context) error, error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID()) // several hubs may run on one machine
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: systemNamespace, Name: leaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := h.leadOnce(ctx, lock); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// leadOnce waits for the lease, leads, and returns after its loops have ended. On a stop, it ends the loops before it
// releases the lease, so that two replicas never run them at the same time. If loops do not end after the lease was
// lost, it returns an error, and the process must exit.
func (h *Hub) leadOnce(ctx context.Context, lock resourcelock.Interface) error {
	candidacy, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	var (
		mu       sync.Mutex
		loops    chan error // the result of the loops; nil until they start
		resigned bool
	)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: leaseName, WatchDog: h.alive, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				mu.Lock()
				if resigned {
					mu.Unlock()
					return
				}
				loops = make(chan error, 1)
				mu.Unlock()
				klog.InfoS("this replica is now the leader", "identity", lock.Identity())
				defer resign()
				running, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				loops <- h.runLoops(running)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	h.alive.SetLeaderElection(elector)
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if loops == nil {
			resigned = true
			resign()
		}
	})()
	elector.Run(candidacy)

	mu.Lock()
	resigned = true
	mu.Unlock()
	if loops == nil {
		return nil
	}
	select {
	case err := <-loops:
		klog.InfoS("this replica is no longer the leader", "identity", lock.Identity())
		return err
	case <-time.After(leaseDuration - renewDeadline):
		return errors.New("the controllers are still running although another replica may be the leader now")
	}
}
