package history

import (
	"context"
	"fmt"
	"time"
)

// Retention is how long the history is kept after a release has ended.
type Retention struct {
	// Details are events, gates, approvals and clusters of stages.
	Details time.Duration
	// Releases are releases, their targets and stages, and what ran where.
	Releases time.Duration
}

// DefaultRetention keeps details 400 days and releases three years.
var DefaultRetention = Retention{Details: 400 * 24 * time.Hour, Releases: 3 * 365 * 24 * time.Hour}

// deletedAtOnce bounds a deletion, so that others can write between two.
const deletedAtOnce = 500

// Delete removes what is older than the retention. Releases that have not ended are never removed.
func (s *Store) Delete(ctx context.Context, keep Retention, now time.Time) error {
	details := now.Add(-keep.Details).UTC().Format(time.RFC3339)
	releases := now.Add(-keep.Releases).UTC().Format(time.RFC3339)
	const ended = "SELECT uid FROM releases WHERE ended_at IS NOT NULL AND ended_at < ?"
	for _, d := range []struct{ table, key, where, before string }{
		{"events", "release_uid, seq, at", "release_uid IN (" + ended + ")", details},
		{"gates", "release_uid, stage, position, name, attempt", "release_uid IN (" + ended + ")", details},
		{"approvals", "uid", "release_uid IN (" + ended + ")", details},
		{"stage_clusters", "release_uid, stage, cluster, target", "release_uid IN (" + ended + ")", details},
		{"releases", "uid", "ended_at IS NOT NULL AND ended_at < ?", releases}, // the rest goes with them
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
