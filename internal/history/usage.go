package history

import (
	"context"
	"database/sql"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/explain/usage"
)

const (
	// UsagePeriod is the interval between two samples of what is requested.
	UsagePeriod = 24 * time.Hour
	// usageAge is the age from which a sample does not count: the next one may be late by an hour.
	usageAge = UsagePeriod + 2*time.Hour
	// usageKept is the time for which samples are kept.
	usageKept = 100 * 24 * time.Hour
	// usageChunk is the number of rows that are written together, so that others can write between two.
	usageChunk = 1000
)

var usageTable = table{name: "usage_samples", keys: 3, immutable: true, columns: []string{"namespace", "cluster", "at",
	"cpu", "memory"}}

// RecordUsage writes all that is requested at a time. A row without a namespace, which is written last, marks the
// sample as complete.
func (s *Store) RecordUsage(ctx context.Context, samples []usage.Sample, at time.Time) error {
	when := timeText(&metav1.Time{Time: at})
	rows := make([]row, len(samples))
	for i, u := range samples {
		rows[i] = row{usageTable, []any{u.Namespace, u.Cluster, when, u.CPU, u.Memory}}
	}
	for chunk := range slices.Chunk(rows, usageChunk) {
		if err := s.upsert(ctx, chunk); err != nil {
			return err
		}
	}
	return s.upsert(ctx, []row{{usageTable, []any{"", "", when, 0, 0}}})
}

// UsageSampled returns the time of the last complete sample that counts at a time, as text; empty if there is none.
func (s *Store) UsageSampled(ctx context.Context, at time.Time) (text string, err error) {
	var w where
	w.between("at", at.Add(-usageAge), at)
	w.add("namespace = ?", "")
	err = s.query(ctx, "SELECT at FROM usage_samples"+w.String()+" ORDER BY at DESC LIMIT 1", w.values,
		func(rows *sql.Rows) error { return rows.Scan(&text) })
	return text, err
}

// UsageAt returns what was requested at a time in the namespaces of a filter; nil if the history does not know.
func (s *Store) UsageAt(ctx context.Context, f Filter, at time.Time) ([]usage.Sample, error) {
	sampled, err := s.UsageSampled(ctx, at)
	if err != nil || sampled == "" {
		return nil, err
	}
	var w where
	w.equal("at", sampled)
	w.oneOf("namespace", f.Namespaces)
	w.equal("cluster", f.Cluster)
	w.add("namespace <> ?", "")
	return queryAll(ctx, s, "SELECT namespace, cluster, cpu, memory FROM usage_samples"+w.String()+
		" ORDER BY namespace, cluster", w.values, func(u *usage.Sample) []any {
		return []any{&u.Namespace, &u.Cluster, &u.CPU, &u.Memory}
	})
}
