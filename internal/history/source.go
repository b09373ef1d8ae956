package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnavailable is returned while the database cannot be opened.
var ErrUnavailable = errors.New("the history database is not available")

// openRetry is how long a failed attempt to open the database counts for all.
const openRetry = 10 * time.Second

// Source opens a database when it is first needed, and tries again after a failure: the hub starts without it.
type Source struct {
	open func(context.Context) (*Store, error)
	now  func() time.Time

	mu     sync.Mutex
	store  *Store
	err    error
	failed time.Time
}

// NewSource returns a source of the database that open opens.
func NewSource(open func(context.Context) (*Store, error)) *Source {
	return &Source{open: open, now: time.Now}
}

// Store returns the open database.
func (s *Source) Store(ctx context.Context) (*Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		return s.store, nil
	}
	if s.err != nil && s.now().Sub(s.failed) < openRetry {
		return nil, s.err
	}
	store, err := s.open(ctx)
	if err != nil {
		s.err, s.failed = fmt.Errorf("%w: %w", ErrUnavailable, err), s.now()
		return nil, s.err
	}
	s.store, s.err = store, nil
	return store, nil
}

// Close closes the database if it is open.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}
