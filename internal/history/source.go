package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of a Source.
var (
	// ErrUnavailable is returned while the database cannot be opened.
	ErrUnavailable = errors.New("the history database is not available")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the hub is stopping")
)

const (
	// openRetry is the time between two attempts to open the database.
	openRetry = 10 * time.Second
	// openTimeout bounds an attempt. SQLite checks the whole file.
	openTimeout = 2 * time.Minute
)

// Source opens a database when it is first needed, and again after a failure or if its file is gone. The hub starts
// without it.
type Source struct {
	// Note is a remark about the whole history for its readers; empty for none.
	Note string

	open func(context.Context) (*Store, error)
	now  func() time.Time

	mu     sync.Mutex
	store  *Store
	opened int
	closed bool
	err    error
	failed time.Time
}

// NewSource returns a source of the database that open opens.
func NewSource(open func(context.Context) (*Store, error)) *Source {
	return &Source{open: open, now: time.Now}
}

// Store returns the open database, and the number of times that a database was opened. With each new number, earlier
// writes may be lost.
func (s *Source) Store(ctx context.Context) (store *Store, opened int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, 0, ErrClosed
	case s.store != nil && !s.store.isGone():
		return s.store, s.opened, nil
	case s.store != nil:
		_ = s.store.Close() // nothing that it has can be kept
		s.store = nil
	case s.err != nil && s.now().Sub(s.failed) < openRetry:
		return nil, 0, s.err
	}
	// Others wait for the same attempt.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	store, err = s.open(ctx)
	if err != nil {
		s.err, s.failed = fmt.Errorf("%w: %w", ErrUnavailable, err), s.now()
		return nil, 0, s.err
	}
	s.store, s.err, s.opened = store, nil, s.opened+1
	return store, s.opened, nil
}

// Opened returns the database if it is open, nil otherwise.
func (s *Source) Opened() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// Close closes the database for good.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}
