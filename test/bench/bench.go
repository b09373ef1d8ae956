// Command bench measures what the hub costs: time against a floor measured in the same run, writes, CPU and memory,
// beside targets.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

// Row is one figure beside its targets.
type Row struct {
	Work string `json:"work"`
	// Unit of Value, Must and Aim: s, x (times the floor), writes, ms, µs, MiB, kB, watches, cores, m (thousandths of a
	// core) or 1/s.
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// Floor is the same work by a plain client that writes straight into the members, in seconds; 0 where there is none.
	Floor float64 `json:"floor,omitempty"`
	// Rest is when the members had processed the writes of the plain client, in seconds. No hub can be faster.
	Rest float64 `json:"rest,omitempty"`
	// Must is the required value, Aim the desired one; 0 is no target. AtLeast is true if more is better.
	Must    float64 `json:"must,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	AtLeast bool    `json:"atLeast,omitempty"`
	// Karmada's figure on such a machine, for comparison; empty where there is none.
	Karmada string `json:"karmada,omitempty"`
}

// Reached reports whether the row is where it must be.
func (r Row) Reached() bool {
	if r.AtLeast {
		return r.Value >= r.Must
	}
	return r.Must == 0 || r.Value <= r.Must
}

// Options of a run.
type Options struct {
	// Binary is the argosy executable, Dir holds what the run writes.
	Binary, Dir string
	// ConfigMaps and Deployments are how many objects are propagated; Workers how many are created at once.
	ConfigMaps, Deployments, Workers int
	// Bindings are how many are scheduled in a hub without members; 0 skips the measurement.
	Bindings int
	// Failovers are how many Deployments leave a member that is lost; 0 leaves the figure out.
	Failovers int
	// FailoverOnly measures nothing else.
	FailoverOnly bool
	// Releases are how many releases run at once; 0 leaves the figures out.
	Releases int
	// ReleasesOnly measures nothing else.
	ReleasesOnly bool
	// ConsoleOnly measures the console's pages and nothing else.
	ConsoleOnly bool
	// Agents is the number of simulated agents of clusters in Pull mode; 0 leaves the figures out.
	Agents int
	// PullOnly measures Pull mode and nothing else.
	PullOnly bool
	// Klusterlets is the number of simulated klusterlets; with more than 0, nothing else is measured.
	Klusterlets int
	// Searched is the number of objects to search; 0 leaves the figures out.
	Searched int
	// SearchOnly measures searches and nothing else.
	SearchOnly bool
	// Full also measures how the times of scheduling grow with clusters and bindings, Pull mode and searches, in half an
	// hour.
	Full bool
	// HubArgs are more arguments of `argosy up`, to measure what a setting costs.
	HubArgs []string
	// Say reports how far the run is.
	Say func(format string, args ...any)
}

const members = 3

// Run measures everything, in about fifteen minutes.
func Run(ctx context.Context, o Options) ([]Row, error) {
	if o.FailoverOnly {
		return failover(ctx, o)
	}
	if o.ReleasesOnly {
		return releases(ctx, o)
	}
	if o.ConsoleOnly {
		return consoleBudgets(ctx, o)
	}
	if o.PullOnly {
		return pullMode(ctx, o)
	}
	if o.Klusterlets > 0 {
		return klusterlets(ctx, o)
	}
	if o.SearchOnly {
		return searching(ctx, o)
	}
	var rows []Row
	o.Say("scheduler decisions in core")
	rows = append(rows, decisions(100, 10_000, "15–22/s end to end"), decisions(1000, 1000, ""))
	regions := []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2,
		MaxGroups: 4}, {SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 10}}
	rows = append(rows, decisions(100, 10_000, "", regions...), decisions(1000, 1000, "", regions...))
	grown, err := growth(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, grown...)

	o.Say("scripts in core")
	calls, err := scripts(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, calls...)

	o.Say("hub start")
	start, err := hubStart(ctx, o)
	if err != nil {
		return nil, err
	}
	rows = append(rows, start)

	if o.Bindings > 0 {
		scheduled, err := scheduling(ctx, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, scheduled...)
	}

	replaced, err := failover(ctx, o)
	if err != nil {
		return nil, err
	}
	rows = append(rows, replaced...)

	released, err := releases(ctx, o)
	if err != nil {
		return nil, err
	}
	rows = append(rows, released...)

	if o.Full {
		agents, err := pullMode(ctx, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, agents...)
		searched, err := searching(ctx, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, searched...)
	}

	o.Say("starting a hub and %d members", members)
	lo := lab.Options{Binary: o.Binary, Dir: o.Dir, HubArgs: o.HubArgs}
	for i := range members {
		lo.Members = append(lo.Members, sim.Member{Name: fmt.Sprintf("member%d", i+1), Nodes: 5})
	}
	l, err := lab.Start(ctx, lo)
	if err != nil {
		return nil, err
	}
	defer l.Stop() // the figures are taken; how the hub ends is the tests' subject
	f, err := newFleet(l)
	if err != nil {
		return nil, err
	}

	o.Say("idle")
	time.Sleep(10 * time.Second)
	idle, err := readUsage(l.Hub.PID())
	if err != nil {
		return nil, err
	}
	rows = append(rows, Row{Work: "hub idle, 3 members joined: memory", Unit: "MiB", Value: mib(idle.Memory), Must: 450,
		Aim: 350, Karmada: "839 MiB, 7 processes"})

	for _, w := range []workload{configMaps(o.ConfigMaps), deployments(o.Deployments)} {
		measured, err := f.measure(ctx, o, w)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	busy, err := readUsage(l.Hub.PID())
	if err != nil {
		return nil, err
	}
	rows = append(rows, Row{Work: "hub after both, memory", Unit: "MiB", Value: mib(busy.Memory)})
	return rows, nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// startHub starts a hub in a folder of o.Dir, with o.HubArgs and args.
func startHub(ctx context.Context, o Options, folder string, args ...string) (*lab.Hub, error) {
	h, err := lab.NewHub(o.Binary, filepath.Join(o.Dir, folder))
	if err != nil {
		return nil, err
	}
	return h, h.Start(ctx, append(slices.Clone(o.HubArgs), args...)...)
}

// hubStart returns the time from exec to the answer that the hub is ready, on an empty data folder.
func hubStart(ctx context.Context, o Options) (Row, error) {
	h, err := lab.NewHub(o.Binary, o.Dir+"/start")
	if err != nil {
		return Row{}, err
	}
	began := time.Now()
	if err := h.Start(ctx, o.HubArgs...); err != nil {
		return Row{}, err
	}
	took := time.Since(began)
	return Row{Work: "hub start to ready", Unit: "s", Value: took.Seconds(), Must: 5, Aim: 3, Karmada: "10 s and more"},
		h.Stop()
}

// fleet is clients of the hub and of the members.
type fleet struct {
	lab *lab.Lab
	// config and hub reach the hub.
	config  *rest.Config
	hub     dynamic.Interface
	members []dynamic.Interface
}

func newFleet(l *lab.Lab) (*fleet, error) {
	config, err := l.Hub.Config()
	if err != nil {
		return nil, err
	}
	f := &fleet{lab: l, config: config}
	if f.hub, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	for _, m := range l.Fleet.Members() {
		config, err := m.RESTConfig()
		if err != nil {
			return nil, err
		}
		config.QPS = -1
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, c)
	}
	return f, nil
}

// runParallel calls do for 0 to n-1 with a number of workers, and returns the first error.
func runParallel(n, workers int, do func(i int) error) error {
	next := make(chan int)
	errs := make(chan error, workers)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			var first error
			for i := range next {
				if first == nil {
					first = do(i)
				}
			}
			errs <- first
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func object(gvr schema.GroupVersionResource, kind, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(map[string]string{"app": "bench"})
	return u
}
