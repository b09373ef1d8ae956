// Package sim runs simulated member clusters, each a child process of our own binary: a real etcd, kube-apiserver,
// controller manager and scheduler, with fake nodes and the behaviour of OpenKruise. This package is the parent's side
// and light enough for any test; what the child does is in the package member.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/argosy-io/argosy/api/kruise"
)

// Options are a fleet to start.
type Options struct {
	// Binary is an argosy executable; the running one if empty.
	Binary string
	// Dir holds a folder per member. A member found there is continued. It is the caller's to remove.
	Dir string
	// Members have different names.
	Members []Member
	// Log receives a line per event of the fleet; nil discards them. What members log is in their own files.
	Log io.Writer
}

// Fleet is a number of running members.
type Fleet struct {
	members []*Running
}

// Start runs all members, side by side, and returns when each is ready to run pods. If one fails, the others are
// stopped, and the error tells the last lines of its log. Cancelling ctx gives up; a started fleet ends with Stop,
// or with this process, however that ends.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if o.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find our own executable: %w", err)
		}
		o.Binary = self
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	logger := log.New(o.Log, "", 0)
	f := &Fleet{}
	names, ports := map[string]bool{}, map[int]bool{}
	for _, m := range o.Members {
		if m.Name == "" || names[m.Name] || filepath.Base(m.Name) != m.Name {
			return nil, fmt.Errorf("member %q: a member needs a name of its own that is good for a folder", m.Name)
		}
		if releases := []string{"", kruise.Release1_8, kruise.Release1_9, kruise.Release1_10}; !slices.Contains(releases,
			m.OpenKruise) {
			return nil, fmt.Errorf("member %q: there is no OpenKruise %q to simulate, but 1.8, 1.9 and 1.10", m.Name,
				m.OpenKruise)
		}
		names[m.Name] = true
		r, err := prepare(o.Binary, filepath.Join(o.Dir, m.Name), m, ports, logger)
		if err != nil {
			return nil, fmt.Errorf("prepare member %q: %w", m.Name, err)
		}
		f.members = append(f.members, r)
	}
	// One failure ends the waiting for all.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(f.members))
	var wg sync.WaitGroup
	for i, r := range f.members {
		wg.Go(func() {
			if errs[i] = r.start(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	// The others' cancelled waits say nothing.
	cause := slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return err == nil || errors.Is(err, context.Canceled)
	})
	if len(cause) == 0 {
		cause = errs
	}
	if err := errors.Join(cause...); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// Members returns the members in the order asked for, stopped ones included.
func (f *Fleet) Members() []*Running { return slices.Clone(f.members) }

// Stop stops all members and waits for them. Their data stays.
func (f *Fleet) Stop() error {
	errs := make([]error, len(f.members))
	var wg sync.WaitGroup
	for i, r := range f.members {
		wg.Go(func() { errs[i] = r.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// WriteKubeconfig writes one kubeconfig, mode 0600, with a context per member under its name.
func (f *Fleet) WriteKubeconfig(file string) error {
	merged := clientcmdapi.NewConfig()
	for _, r := range f.members {
		c, err := clientcmd.LoadFromFile(r.Kubeconfig)
		if err != nil {
			return fmt.Errorf("read the kubeconfig of member %q: %w", r.Name, err)
		}
		maps.Copy(merged.Clusters, c.Clusters)
		maps.Copy(merged.AuthInfos, c.AuthInfos)
		maps.Copy(merged.Contexts, c.Contexts)
		merged.CurrentContext = cmp.Or(merged.CurrentContext, c.CurrentContext)
	}
	if err := clientcmd.WriteToFile(*merged, file); err != nil {
		return fmt.Errorf("write the fleet's kubeconfig: %w", err)
	}
	return nil
}
