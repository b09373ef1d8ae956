package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

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
		l.Fleet, fleetErr = sim.Start(ctx, sim.Options{Binary: o.Binary, Dir: filepath.Join(o.Dir, "members"), Members: o.Members})
	})
	both.Wait()
	for _, err := range []error{hubErr, fleetErr} {
		if err != nil {
			return nil, errors.Join(err, l.Stop())
		}
	}
	if err := l.Join(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// Join has every member join under its own name, as a user would: by `argosy join`.
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
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Argosy runs a verb of the CLI against the hub and returns what it printed.
func (l *Lab) Argosy(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, l.Hub.Binary, append(args, "--kubeconfig", l.Hub.Kubeconfig())...).CombinedOutput()
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
