// Package history keeps what releases did in a relational database: SQLite in the data folder, or PostgreSQL.
//
// The objects on the hub decide; the database remembers. No decision reads it. Every write is idempotent, so that the
// history of all objects that exist can be written again at any time.
package history

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// File is the name of the SQLite database in the data folder.
	File = "history.db"
	// statementTimeout bounds a write: a database that is slower counts as unavailable.
	statementTimeout = 2 * time.Second
	// readers is how many queries run at once.
	readers = 4
)

// ErrNewer is returned by Open for a database that a newer release of Argosy has changed.
var ErrNewer = errors.New("the history database was written by a newer release of Argosy")

// Store is an open database. It is safe for concurrent use.
type Store struct {
	write, read *sql.DB
	postgres    bool
	path        string
	restored    Restored
}

// Restored says what Open did about a damaged SQLite file.
type Restored struct {
	// Moved is where the damaged file is now; empty if there was none.
	Moved string
	// From is the nightly copy that took its place; empty for an empty database.
	From string
}

// OpenSQLite opens the database file of a data folder, or creates it. A damaged file is moved aside, and the newest
// undamaged nightly copy takes its place.
func OpenSQLite(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, File)
	restored, err := repair(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, restored: restored}
	if s.write, err = openFile(path, "rwc"); err != nil {
		return nil, err
	}
	s.write.SetMaxOpenConns(1) // SQLite has one writer
	if err := s.migrate(ctx, goose.DialectSQLite3); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	if s.read, err = openFile(path, "ro"); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	s.read.SetMaxOpenConns(readers)
	return s, nil
}

// openFile opens a SQLite file with a mode: rwc or ro.
func openFile(path, mode string) (*sql.DB, error) {
	if mode == "rwc" { // before SQLite makes it with the process's umask
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("create the history database: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode="+mode+"&_txlock=immediate&_pragma=busy_timeout(5000)"+
		"&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(on)")
	if err != nil {
		return nil, fmt.Errorf("open the history database %s: %w", path, err)
	}
	return db, nil
}

// OpenPostgres opens a PostgreSQL database by its connection string. The password may come from the environment
// (PGPASSWORD) or from a password file, as libpq reads them.
func OpenPostgres(ctx context.Context, dsn string) (*Store, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string of the history database: %w", err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(readers + 1)
	s := &Store{write: db, read: db, postgres: true}
	if err := s.migrate(ctx, goose.DialectPostgres); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// migrate brings the schema up to date. Replicas of the hub take turns.
func (s *Store) migrate(ctx context.Context, dialect goose.Dialect) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.postgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, s.write, files, options...)
	if err != nil {
		return fmt.Errorf("read the migrations of the history database: %w", err)
	}
	stored, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the history database: %w", err)
	}
	if stored > target {
		return fmt.Errorf("%w: its schema is version %d, this binary knows %d; upgrade Argosy, or move the database aside",
			ErrNewer, stored, target)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("update the schema of the history database: %w", err)
	}
	return nil
}

// Restored says what Open did about a damaged file.
func (s *Store) Restored() Restored { return s.restored }

// Close closes the database.
func (s *Store) Close() error {
	if s.read == s.write {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// RecordRelease writes all that is known of a release.
func (s *Store) RecordRelease(ctx context.Context, r *releasev1alpha1.Release) error {
	return s.upsert(ctx, releaseRows(r))
}

// RecordApproval writes an approval.
func (s *Store) RecordApproval(ctx context.Context, a *releasev1alpha1.ReleaseApproval) error {
	return s.upsert(ctx, approvalRows(a))
}

// RecordRevision writes a revision.
func (s *Store) RecordRevision(ctx context.Context, r *releasev1alpha1.ReleaseRevision) error {
	rows, err := revisionRows(r)
	if err != nil {
		return err
	}
	return s.upsert(ctx, rows)
}

// upsert writes rows in one transaction.
func (s *Store) upsert(ctx context.Context, rows []row) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write the release history: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, r := range rows {
		if _, err := tx.ExecContext(ctx, s.statement(r.table), r.values...); err != nil {
			return fmt.Errorf("write the release history, table %s: %w", r.table.name, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write the release history: %w", err)
	}
	return nil
}

// statement returns the SQL that inserts a row or updates the one with its key.
func (s *Store) statement(t table) string {
	action := "DO NOTHING"
	if !t.immutable {
		var sets []string
		for _, c := range t.columns[t.keys:] {
			sets = append(sets, c+" = excluded."+c)
		}
		action = "DO UPDATE SET " + strings.Join(sets, ", ")
	}
	return s.bind(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (%s) %s", t.name, strings.Join(t.columns, ", "),
		strings.Join(slices.Repeat([]string{"?"}, len(t.columns)), ", "), strings.Join(t.columns[:t.keys], ", "), action))
}

// bind writes the placeholders of a statement as the database wants them.
func (s *Store) bind(statement string) string {
	if !s.postgres {
		return statement
	}
	parts := strings.Split(statement, "?")
	var out strings.Builder
	for i, part := range parts {
		out.WriteString(part)
		if i < len(parts)-1 {
			fmt.Fprintf(&out, "$%d", i+1)
		}
	}
	return out.String()
}
