package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/sim"
)

// Lab is a hub and simulated members that have joined it.
type Lab struct {
	Hub   *Hub
	Fleet *sim.Fleet
}

// Options of a lab.
type Options struct {
	// Binary is the argosy executable that all processes run.
	Binary string
	// Dir holds everything that the lab writes; it is the caller's to remove.
	Dir string
	// Members to simulate, and the name that each joins under.
	Members []sim.Member
	// HubArgs are more arguments for `argosy up`.
	HubArgs []string
}

// Start runs the hub and the members side by side and has the members join. On an error everything is stopped again.
func Start(ctx context.Context, o Options) (_ *Lab, err error) {
	l := &Lab{}
	if l.Hub, err = NewHub(o.Binary, filepath.Join(o.Dir, "hub")); err != nil {
		return nil, err
	}
	var hubErr, fleetErr error
	var both sync.WaitGroup
	both.Go(func() { hubErr = l.Hub.Start(ctx, o.HubArgs...) })
	both.Go(func() {
		l.Fleet, fleetErr = sim.Start(ctx, sim.Options{Binary: o.Binary, Dir: filepath.Join(o.Dir, "members"),
			Members: o.Members})
	})
	both.Wait()
	if err := errors.Join(hubErr, fleetErr); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	if err := l.Join(ctx); err != nil {
		return nil, errors.Join(err, l.Stop(), fmt.Errorf("the hub said:\n%s", tail(l.Hub.Log())))
	}
	return l, nil
}

// Join has every member join under its own name, as a user would: by `argosy join`. It returns when all are Ready.
func (l *Lab) Join(ctx context.Context) error {
	members := l.Fleet.Members()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			out, err := l.Argosy(ctx, "join", m.Name, "--cluster-kubeconfig", m.Kubeconfig,
				"--cluster-region", m.Region, "--cluster-provider", m.Provider, "--cluster-zones", m.Zone)
			if err != nil {
				errs[i] = fmt.Errorf("join %s: %w: %s", m.Name, err, out)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.ready(ctx)
}

// ready waits until every member's cluster is Ready on the hub.
func (l *Lab) ready(ctx context.Context) error {
	config, err := l.Hub.Config()
	if err != nil {
		return err
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		raw, err := hub.RESTClient().Get().AbsPath("/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("list the clusters: %w", err)
		}
		var clusters clusterv1alpha1.ClusterList
		if err := json.Unmarshal(raw, &clusters); err != nil {
			return fmt.Errorf("list the clusters: %w", err)
		}
		ready := map[string]bool{}
		for _, c := range clusters.Items {
			ready[c.Name] = membership.IsReady(&c)
		}
		waiting := slices.DeleteFunc(l.Fleet.Members(), func(m *sim.Running) bool { return ready[m.Name] })
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s did not become Ready: %w", waiting[0].Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Argosy runs a verb of the CLI against the hub and returns what it printed.
func (l *Lab) Argosy(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, l.Hub.Binary,
		append(args, "--kubeconfig", l.Hub.Kubeconfig())...).CombinedOutput()
	return string(out), err
}

// Stop ends everything that runs and returns what did not end well.
func (l *Lab) Stop() error {
	var hubErr, fleetErr error
	var both sync.WaitGroup
	both.Go(func() { hubErr = l.Hub.Stop() })
	if l.Fleet != nil {
		both.Go(func() { fleetErr = l.Fleet.Stop() })
	}
	both.Wait()
	return errors.Join(hubErr, fleetErr)
}
