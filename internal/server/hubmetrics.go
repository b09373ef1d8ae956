package server

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"

	"github.com/argosy-io/argosy/internal/server/pki"
)

var (
	buildInfo = prometheus.NewDesc("argosy_build_info",
		"Always 1, labeled with the version of the hub, its Kubernetes release and the format of its store.",
		[]string{"version", "commit", "kubernetes", "store_format"}, nil)
	loopsRunning = prometheus.NewDesc("argosy_loops_running",
		"1 while the controllers run in this process; with several replicas, they run in the leader only.", nil, nil)
	certificateEnds = prometheus.NewDesc("argosy_certificate_expiration_timestamp_seconds",
		"Expiration time of a certificate of the hub.", []string{"certificate"}, nil)
	restorePaused = prometheus.NewDesc("argosy_restore_held_works",
		"Number of Works that wait for `argosy restore accept` after the hub was restored from a backup.", nil, nil)
	orphaned = prometheus.NewDesc("argosy_orphans",
		"Number of objects in a cluster that carry this hub's mark and have no Work on the hub.", []string{"member_cluster"},
		nil)
	searchBytes = prometheus.NewDesc("argosy_search_cache_bytes",
		"Approximate memory of the objects of members that this replica caches for ResourceRegistries and for searches.",
		[]string{"purpose"}, nil)
	searchObjects = prometheus.NewDesc("argosy_search_cached_objects",
		"Number of objects of members that this replica caches.", []string{"resource"}, nil)
	searchWatches = prometheus.NewDesc("argosy_search_watches",
		"Number of open watches of the global proxy in this replica.", nil, nil)
)

// hubMetrics has the metrics of the whole process.
type hubMetrics struct {
	hub *Hub

	mu      sync.Mutex
	counted time.Time
	orphans map[string]int
	paused  int
}

// recount is the minimal interval between counts of what a restore left, because a count reads all Works.
const recount = time.Minute

// Describe implements prometheus.Collector.
func (m *hubMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{buildInfo, loopsRunning, certificateEnds, restorePaused, orphaned,
		searchBytes, searchObjects, searchWatches} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *hubMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	me := writer()
	gauge(buildInfo, 1, me.Version, me.Commit, me.Kubernetes, strconv.Itoa(me.Format))
	leads := 0.0
	if m.hub.leads.Load() {
		leads = 1
	}
	gauge(loopsRunning, leads)
	for name, ends := range m.hub.certificatesEnd(time.Now()) {
		gauge(certificateEnds, float64(ends.Unix()), name)
	}
	if m.hub.parts.Searched != nil {
		used := m.hub.parts.Searched()
		gauge(searchBytes, float64(used.Registries), "registries")
		gauge(searchBytes, float64(used.Searches), "searches")
		gauge(searchWatches, float64(used.Watches))
		for resource, n := range used.Objects {
			gauge(searchObjects, float64(n), resource.String())
		}
	}
	if leads == 0 { // another replica knows
		return
	}
	orphans, paused := m.restored()
	gauge(restorePaused, float64(paused))
	for cluster, n := range orphans {
		gauge(orphaned, float64(n), cluster)
	}
}

func (m *hubMetrics) restored() (orphans map[string]int, paused int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hub.parts.Restored != nil && (m.counted.IsZero() || time.Since(m.counted) >= recount) {
		m.orphans, m.paused = m.hub.parts.Restored()
		m.counted = time.Now()
	}
	return m.orphans, m.paused
}

// certificatesEnd returns the expiry of each certificate in use. A user's own serving certificate is "serving", and one
// for further names has the name of its file. Unreadable certificates are left out.
func (h *Hub) certificatesEnd(now time.Time) map[string]time.Time {
	ends := map[string]time.Time{}
	all, _ := pki.List(h.config.pkiDir(), now) // without a folder there is none
	for _, c := range all {
		if c.Ends != nil {
			ends[c.Name] = *c.Ends
		}
	}
	if file := h.config.KubeAPIServer.TLSCertFile; file != "" {
		if chain, err := cert.CertsFromFile(file); err == nil {
			ends["serving"] = chain[0].NotAfter
		}
	}
	for _, pair := range h.config.KubeAPIServer.TLSSNICertKeys {
		file, _ := sniFiles(pair)
		if chain, err := cert.CertsFromFile(file); err == nil {
			ends[file] = chain[0].NotAfter
		}
	}
	return ends
}
