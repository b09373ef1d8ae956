package history

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Workload struct{ Group, Kind, Namespace, Name string }

// Deployed returns the workloads with a revision of a release that runs in a cluster now.
func (s *Store) Deployed(ctx context.Context) ([]Workload, error) {
	return queryAll(ctx, s, "SELECT DISTINCT api_group, kind, namespace, name FROM deployments WHERE to_at IS NULL "+
		"ORDER BY namespace, name, kind, api_group", nil,
		func(w *Workload) []any { return []any{&w.Group, &w.Kind, &w.Namespace, &w.Name} })
}

// RecordEnds writes that workloads were deleted on the hub, which ends their pods in all clusters.
func (s *Store) RecordEnds(ctx context.Context, deleted []Workload, at time.Time) error {
	rows := make([]row, len(deleted))
	for i, w := range deleted {
		rows[i] = row{endsTable, []any{w.Group, w.Kind, w.Namespace, w.Name, timeText(&metav1.Time{Time: at})}}
	}
	return s.upsert(ctx, rows)
}
