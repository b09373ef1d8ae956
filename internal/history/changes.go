package history

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// writtenStates has the last written state of each release that has not ended and is not being deleted.
type writtenStates struct {
	mu     sync.Mutex
	states map[types.UID]writtenState
}

// writtenState is a state of a release in the database: its version, and the hashes of its rows.
type writtenState struct {
	version int64
	rows    map[uint64]bool
}

// changed returns the rows of a release that differ from the database. The first row, of the release itself, is always
// among them, because it decides whether the state is newer.
func (s *Store) changed(ctx context.Context, r *releasev1alpha1.Release, rows []row) []row {
	s.written.mu.Lock()
	last, ok := s.written.states[r.UID]
	s.written.mu.Unlock()
	if !ok {
		return rows
	}
	// Another hub, or an import, may have written meanwhile.
	var stored int64
	err := s.query(ctx, "SELECT version FROM releases WHERE uid = ?", []any{string(r.UID)}, func(found *sql.Rows) error {
		return found.Scan(&stored)
	})
	if err != nil || stored != last.version {
		return rows
	}
	out := rows[:1:1]
	for _, one := range rows[1:] {
		if !last.rows[one.hash()] {
			out = append(out, one)
		}
	}
	return out
}

// noteWritten remembers the rows of a release that the database has now. A release that has ended, or is being deleted,
// hardly changes.
func (s *Store) noteWritten(r *releasev1alpha1.Release, rows []row, written bool) {
	s.written.mu.Lock()
	defer s.written.mu.Unlock()
	if !written || r.Status.Phase.Ended() || r.DeletionTimestamp != nil {
		delete(s.written.states, r.UID)
		return
	}
	state := writtenState{version: versionOf(r), rows: make(map[uint64]bool, len(rows))}
	for _, one := range rows {
		state.rows[one.hash()] = true
	}
	if s.written.states == nil {
		s.written.states = map[types.UID]writtenState{}
	}
	s.written.states[r.UID] = state
}

// hash returns a hash of the table and the values.
func (r row) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%#v", r.table.name, r.values)
	return h.Sum64()
}
