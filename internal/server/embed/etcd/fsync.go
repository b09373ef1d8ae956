package etcd

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// FsyncDurations returns etcd's histogram of the fsync calls of its log, summed over all members of this process. It
// does not gather the whole default registry: some collectors of the API server dial etcd and wait up to 20 seconds.
func FsyncDurations() (*dto.Histogram, error) {
	// etcd does not export the histogram. The registry returns it to whoever registers a second one of the same name and
	// help.
	err := prometheus.Register(prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "etcd", Subsystem: "disk", Name: "wal_fsync_duration_seconds",
		Help: "The latency distributions of fsync called by WAL.",
	}))
	var registered prometheus.AlreadyRegisteredError
	if !errors.As(err, &registered) {
		return nil, fmt.Errorf("find etcd's fsync histogram: %w", err)
	}
	histogram, ok := registered.ExistingCollector.(prometheus.Histogram)
	if !ok {
		return nil, fmt.Errorf("find etcd's fsync histogram: unexpected type %T", registered.ExistingCollector)
	}
	var m dto.Metric
	if err := histogram.Write(&m); err != nil {
		return nil, fmt.Errorf("read etcd's fsync histogram: %w", err)
	}
	return m.GetHistogram(), nil
}
