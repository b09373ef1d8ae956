package history

import (
	"context"
	"fmt"
	"time"
)

// Retention has the times for which the history is kept after a release has ended.
type Retention struct {
	// Details applies to events, gates, approvals and clusters of stages, and to events of the fleet.
	Details time.Duration
	// Releases applies to releases, their targets and stages, and the revisions that ran in clusters.
	Releases time.Duration
	// Revisions is the number of revisions of each workload that are kept beside the revisions of releases.
	Revisions int
}

// DefaultRetention keeps details 400 days and releases three years.
var DefaultRetention = Retention{Details: 400 * 24 * time.Hour, Releases: 3 * 365 * 24 * time.Hour, Revisions: 50}

// deletedAtOnce bounds a deletion, so that others can write between two.
const deletedAtOnce = 500

// Delete removes rows that are older than the retention. It keeps releases that have not ended, and releases of
// revisions that run in a cluster now. It does not matter whether the object still exists.
func (s *Store) Delete(ctx context.Context, keep Retention, now time.Time) error {
	if s.newer != nil {
		return nil
	}
	details := now.Add(-keep.Details).UTC().Format(time.RFC3339)
	releases := now.Add(-keep.Releases).UTC().Format(time.RFC3339)
	const ended = "release_uid IN (SELECT uid FROM releases WHERE ended_at IS NOT NULL AND ended_at < ?)"
	for _, d := range []struct {
		table, key, where string
		before            any
	}{
		{"events", "release_uid, seq, at", ended, details},
		{"gates", "release_uid, stage, position, name, attempt", ended, details},
		{"approvals", "uid", ended, details},
		{"stage_clusters", "release_uid, stage, cluster, target", ended, details},
		{"fleet_events", "uid, type, at, generation", "at < ?", details},
		{"usage_samples", "at, namespace, cluster", "at < ?", now.Add(-usageKept).UTC().Format(time.RFC3339)},
		{"placements", "namespace, binding", "uid = ?", ""}, // of bindings that were deleted
		// Their targets and stages go with them.
		{"releases", "uid", `ended_at IS NOT NULL AND ended_at < ?
			AND uid NOT IN (SELECT release_uid FROM deployments WHERE to_at IS NULL)`, releases},
		{"deployment_ends", "api_group, kind, namespace, name, at", `at < ? AND NOT EXISTS (SELECT 1 FROM deployment_starts s
			WHERE s.api_group = deployment_ends.api_group AND s.kind = deployment_ends.kind
				AND s.namespace = deployment_ends.namespace AND s.name = deployment_ends.name)`, releases},
		{"revisions", "namespace, revision", `(namespace, revision) IN (SELECT namespace, revision FROM (
			SELECT namespace, revision, ROW_NUMBER() OVER (PARTITION BY api_group, kind, namespace, name
				ORDER BY created_at DESC, revision) AS age FROM revisions) AS ranked WHERE age > ?)
			AND NOT EXISTS (SELECT 1 FROM release_targets t WHERE t.namespace = revisions.namespace
				AND (t.revision_from = revisions.revision OR t.revision_to = revisions.revision))`, keep.Revisions},
		{"revision_images", "namespace, revision, image", `? > 0 AND NOT EXISTS (SELECT 1 FROM revisions r
			WHERE r.namespace = revision_images.namespace AND r.revision = revision_images.revision)`, 1},
	} {
		statement := s.bind(fmt.Sprintf("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE %s LIMIT %d)", d.table, d.key,
			d.key, d.table, d.where, deletedAtOnce))
		for {
			result, err := s.write.ExecContext(ctx, statement, d.before)
			if err != nil {
				return fmt.Errorf("delete old rows of table %s: %w", d.table, err)
			}
			if n, err := result.RowsAffected(); err != nil || n < deletedAtOnce {
				break
			}
		}
	}
	return nil
}
