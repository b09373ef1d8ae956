package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/console/web"
	"github.com/argosy-io/argosy/internal/lab"
)

// consoleClusters and consoleBindings are the fleet that the console is measured with.
const consoleClusters, consoleBindings = 1000, 10_000

// consoleBudgets measures the console's pages in a browser, on a hub with a large fleet. Without a browser, only the
// sizes are measured.
func consoleBudgets(ctx context.Context, o Options) ([]Row, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	o.Say("console: sizes")
	rows, err := consoleSizes()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(browserName); err != nil {
		o.Say("console: %s is not installed, so that only sizes are measured", browserName)
		return rows, nil
	}
	o.Say("console: memory of an idle hub with and without it")
	idle, err := consoleMemory(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Say("console: making %d clusters and %d bindings", consoleClusters, consoleBindings)
	h, err := startHub(ctx, o, "console")
	if err != nil {
		return nil, err
	}
	measured, err := measureConsole(ctx, o, h)
	if ended := h.Stop(); err == nil {
		err = ended
	}
	return append(append(rows, idle), measured...), err
}

// consoleSizes returns how much a browser loads.
func consoleSizes() ([]Row, error) {
	pages, err := web.Handler(console.Path)
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, path := range []string{"", "assets/console.js", "assets/console.css", "assets/icon.svg"} {
		r, err := http.NewRequest(http.MethodGet, console.Path+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Accept-Encoding", "gzip")
		w := &sizeWriter{header: http.Header{}}
		pages.ServeHTTP(w, r)
		sum += w.size
	}
	kB := float64(sum) / 1000
	return []Row{{Work: "console: first page, compressed", Unit: "kB", Value: kB, Must: 120},
		{Work: "… all pages: they are in one bundle", Unit: "kB", Value: kB, Must: 400}}, nil
}

// sizeWriter counts the bytes of a response.
type sizeWriter struct {
	header http.Header
	size   int
}

func (w *sizeWriter) Header() http.Header { return w.header }

func (w *sizeWriter) WriteHeader(int) {}

func (w *sizeWriter) Write(b []byte) (int, error) {
	w.size += len(b)
	return len(b), nil
}

// consoleMemory returns how much more memory a hub without members takes with the console, while no page is open.
func consoleMemory(ctx context.Context, o Options) (Row, error) {
	var memory [2]float64
	for i, args := range [][]string{{"--components=*,-console"}, nil} {
		h, err := startHub(ctx, o, fmt.Sprintf("console-idle-%d", i), args...)
		if err != nil {
			return Row{}, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second): // the hub comes to rest
		}
		var used processUsage
		used, err = readUsage(h.PID())
		if err := errors.Join(err, h.Stop()); err != nil {
			return Row{}, err
		}
		memory[i] = mib(used.Memory)
	}
	return Row{Work: "console: memory of an idle hub with no page open, more than without the console", Unit: "MiB",
		Value: max(0, memory[1]-memory[0]), Must: 10}, nil
}

func measureConsole(ctx context.Context, o Options, h *lab.Hub) ([]Row, error) {
	config, err := h.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, coordinationv1.AddToScheme,
		workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	hub := rest.CopyConfig(config)
	hub.Impersonate = rest.ImpersonationConfig{UserName: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	c, err := client.NewWithWatch(hub, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	err = runParallel(consoleClusters, o.Workers, func(i int) error { return register(ctx, c, silent(i)) })
	if err != nil {
		return nil, fmt.Errorf("make clusters: %w", err)
	}
	if err := known(ctx, c, consoleClusters); err != nil {
		return nil, err
	}
	arrived, err := placements(ctx, c, consoleBindings, chosen(0))
	if err != nil {
		return nil, err
	}
	err = runParallel(consoleBindings, o.Workers, func(i int) error { return c.Create(ctx, unplaced(i)) })
	if err != nil {
		return nil, fmt.Errorf("make bindings: %w", err)
	}
	if err := arrived(); err != nil {
		return nil, err
	}

	b, err := startBrowser(ctx, o.Dir+"/browser")
	if err != nil {
		return nil, err
	}
	defer b.close()
	m := &consoleMeter{ctx: ctx, b: b, c: c, config: config, address: strings.TrimSuffix(config.Host, "/") + console.Path}
	o.Say("console: pages")
	return m.measure()
}

// consoleMeter measures the console of one hub.
type consoleMeter struct {
	ctx     context.Context
	b       *cdpBrowser
	c       client.Client
	config  *rest.Config
	address string
}

// rowsShown resolves with the time since the navigation when the first rows are drawn.
const rowsShown = `new Promise(done => { const look = () => document.querySelectorAll("[data-row]").length >= 30
	? done(performance.now()) : requestAnimationFrame(look); look(); })`

func (m *consoleMeter) measure() ([]Row, error) {
	if err := m.logIn(); err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	const times = 7
	var paints, shown []float64
	for range times {
		if err := m.b.navigate(m.address + "workloads"); err != nil {
			return nil, err
		}
		ms, err := m.b.number(rowsShown)
		if err != nil {
			return nil, fmt.Errorf("wait for rows: %w", err)
		}
		paint, err := m.b.number(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1`)
		if err != nil {
			return nil, err
		}
		shown, paints = append(shown, ms), append(paints, paint)
	}
	fleet := fmt.Sprintf("%d clusters × %d templates", consoleClusters, consoleBindings)
	rows := []Row{{Work: "console: first paint without a cache, median", Unit: "ms", Value: share(paints, .5), Must: 300},
		{Work: "… " + fleet + ": first rows, median", Unit: "ms", Value: share(shown, .5), Must: 800}}

	keys, err := m.keyPresses()
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	rows = append(rows,
		Row{Work: "… filter, until a key press is drawn, median", Unit: "ms", Value: share(keys, .5), Must: 16},
		Row{Work: "… filter, the slowest key press", Unit: "ms", Value: share(keys, 1)})

	changes, err := m.changes(40)
	if err != nil {
		return nil, fmt.Errorf("change a cluster: %w", err)
	}
	rows = append(rows, Row{Work: "… change by the API → seen, 95th percentile", Unit: "ms",
		Value: share(changes, .95), Must: 500})
	watches, err := m.watches(10)
	if err != nil {
		return nil, fmt.Errorf("count watches: %w", err)
	}
	return append(rows, Row{Work: "… watches of the API server for 10 open tabs", Unit: "watches", Value: watches,
		Must: .5}), nil
}

func (m *consoleMeter) logIn() error {
	d, err := discovery.NewDiscoveryClientForConfig(m.config)
	if err != nil {
		return err
	}
	raw, err := d.RESTClient().Post().AbsPath(console.LinkPath).DoRaw(m.ctx)
	if err != nil {
		return err
	}
	var link console.Link
	if err := json.Unmarshal(raw, &link); err != nil {
		return err
	}
	if err := m.b.navigate(console.LinkURL(strings.TrimSuffix(m.config.Host, "/"), link.Code)); err != nil {
		return err
	}
	_, err = m.b.number(`new Promise(done => { const look = () => document.querySelector(".rail") ? done(0)
		: setTimeout(look, 20); look(); })`)
	return err
}

// keyPresses returns how long the page takes for each key in the filter, its layout included.
func (m *consoleMeter) keyPresses() (all []float64, err error) {
	for _, text := range []string{"b", "be", "ben", "benc", "bench", "bench-", "bench-0", "bench-09", "bench-099",
		"bench-09", "bench-0", "bench-", ""} {
		ms, err := m.b.number(fmt.Sprintf(`(async () => {
			const field = document.querySelector("[data-filter]"), began = performance.now();
			field.value = %q;
			field.dispatchEvent(new Event("input", {bubbles: true}));
			await new Promise(done => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); });
			document.body.offsetHeight;
			return performance.now() - began;
		})()`, text))
		if err != nil {
			return nil, err
		}
		all = append(all, ms)
	}
	return all, nil
}

// changes changes a cluster n times, and returns how long each takes until the page shows it.
func (m *consoleMeter) changes(n int) (all []float64, err error) {
	if err := m.b.navigate(m.address + "clusters"); err != nil {
		return nil, err
	}
	if _, err := m.b.number(rowsShown); err != nil {
		return nil, err
	}
	for i := range n {
		region := fmt.Sprintf("region-%02d", i)
		seen := make(chan error, 1)
		var at float64
		go func() {
			var err error
			at, err = m.b.number(fmt.Sprintf(`new Promise(done => { const look = () => { if (document.querySelector(
				"[href$='clusters/%s']")?.closest(".row").textContent.includes(%q)) { watch.disconnect(); done(Date.now()); } };
				const watch = new MutationObserver(look); watch.observe(document.body, {subtree: true, childList: true,
				characterData: true}); look(); })`, clusterName(0), region))
			seen <- err
		}()
		var cluster clusterv1alpha1.Cluster
		if err := m.c.Get(m.ctx, client.ObjectKey{Name: clusterName(0)}, &cluster); err != nil {
			return nil, err
		}
		before := cluster.DeepCopy()
		cluster.Spec.Region = region
		if err := m.c.Patch(m.ctx, &cluster, client.MergeFrom(before)); err != nil {
			return nil, err
		}
		written := time.Now()
		if err := <-seen; err != nil {
			return nil, err
		}
		all = append(all, max(0, at-float64(written.UnixMilli())))
		// Changes come at any time between two looks of the hub at its fleet.
		select {
		case <-m.ctx.Done():
		case <-time.After(time.Duration(100+37*i) * time.Millisecond):
		}
	}
	return all, nil
}

// watches opens tabs, and returns how many more watches the API server then has.
func (m *consoleMeter) watches(tabs int) (float64, error) {
	before, err := m.watching()
	if err != nil {
		return 0, err
	}
	for range tabs {
		if err := m.b.open(m.address + "workloads"); err != nil {
			return 0, err
		}
		if _, err := m.b.number(rowsShown); err != nil {
			return 0, err
		}
	}
	after, err := m.watching()
	return max(0, after-before), err
}

func (m *consoleMeter) watching() (float64, error) {
	return sumMetric(m.ctx, m.config, "apiserver_longrunning_requests", func(line string) bool {
		return strings.Contains(line, `verb="WATCH"`)
	})
}

// sumMetric returns the sum of a metric of the hub over the lines that are selected by their labels.
func sumMetric(ctx context.Context, config *rest.Config, name string, selects func(line string) bool) (float64, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	raw, err := d.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, name+"{") && selects(line) {
			fields := strings.Fields(line)
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("the metrics of the hub have no %s", name)
	}
	return sum, nil
}

// share returns the value below which a share of the values is.
func share(values []float64, of float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(of*float64(len(sorted))))]
}
