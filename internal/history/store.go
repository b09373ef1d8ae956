// Package history keeps what releases did in a relational database: SQLite in the data folder, or PostgreSQL.
//
// The objects on the hub decide; the database remembers. No decision reads it. Every write is idempotent, so that the
// history of all objects that exist can be written again at any time.
package history

import (
	"cmp"
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
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

//go:embed migrations/*.sql
var migrations embed.FS

// statementTimeout bounds a write: a database that is slower counts as unavailable. Tests wait longer, because their
// machine may stand still.
var statementTimeout = 2 * time.Second

const (
	// File is the name of the SQLite database in the data folder.
	File = "history.db"
	// connectTimeout bounds a connection to PostgreSQL, unless the connection string sets its own.
	connectTimeout = 5 * time.Second
	// readers bounds the queries that run at the same time.
	readers = 4
	// idleTime is the time after which an unused connection closes. Each has a cache.
	idleTime = time.Minute
	// reserve is the number of bytes that SQLite leaves free on the disk for the hub's own store.
	reserve = 256 << 20
	// longestImage bounds the bytes of a stored image name, because PostgreSQL cannot index long texts.
	longestImage = 1000
	// rowsAtOnce is the number of rows in one statement. PostgreSQL takes up to 65535 values.
	rowsAtOnce = 200
)

// Errors of writes.
var (
	// ErrNewer is returned by writes to a database with the schema of a newer release of Argosy. It can be read.
	ErrNewer = errors.New("the history database was written by a newer release of Argosy")
	// ErrDiskFull is returned by writes to SQLite if the disk has little room.
	ErrDiskFull = errors.New("the disk has too little room for the release history")
)

// Store is an open database. It is safe for concurrent use.
type Store struct {
	write, read *sql.DB
	postgres    bool
	// newer is ErrNewer for a database that can only be read.
	newer error
	// path and file of SQLite.
	path     string
	file     fs.FileInfo
	restored Restored
	// free returns the free bytes of the disk.
	free    func() (int64, error)
	written writtenStates
}

// Restored describes the repair of a SQLite file that was damaged, or that was gone although it has copies.
type Restored struct {
	// Moved is the new path of the damaged file; empty if there was none.
	Moved string
	// From is the nightly copy that took its place; empty for an empty database.
	From string
	// NoRoom is the nightly copy that did not take its place, because the disk has too little room for it.
	NoRoom string
}

// OpenSQLite opens the database file of a data folder, or creates it. A damaged file is moved aside. The newest
// undamaged nightly copy takes the place of a file that is damaged or gone, if the disk has room for it.
func OpenSQLite(ctx context.Context, dir string) (*Store, error) {
	return openSQLiteIn(ctx, dir, func() (int64, error) { return freeSpace(dir) })
}

// openSQLiteIn is OpenSQLite on a disk with a number of free bytes.
func openSQLiteIn(ctx context.Context, dir string, free func() (int64, error)) (*Store, error) {
	s := &Store{path: filepath.Join(dir, File), free: free}
	path := s.path
	restored, err := s.repair(ctx)
	if err != nil {
		return nil, err
	}
	s.restored = restored
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
	s.read.SetMaxIdleConns(1)
	for _, db := range []*sql.DB{s.write, s.read} {
		db.SetConnMaxIdleTime(idleTime)
	}
	if s.file, err = os.Stat(path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if (restored != Restored{}) && s.newer == nil {
		if err := s.noteGap(ctx, restored); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// isGone reports whether the SQLite file was deleted or replaced since it was opened.
func (s *Store) isGone() bool {
	if s.postgres {
		return false
	}
	now, err := os.Stat(s.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, s.file)
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
		"&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(on)&_pragma=cache_size(-1000)")
	if err != nil {
		return nil, fmt.Errorf("open the history database %s: %w", path, err)
	}
	return db, nil
}

// OpenPostgres opens a PostgreSQL database by its connection string. The password is in a file, or, if passwordFile is
// empty, comes from the environment (PGPASSWORD) or from a passfile, as libpq reads them.
func OpenPostgres(ctx context.Context, dsn, passwordFile string) (*Store, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string of the history database: %w", err)
	}
	if passwordFile != "" {
		password, err := os.ReadFile(passwordFile)
		if err != nil {
			return nil, fmt.Errorf("read the password of the history database: %w", err)
		}
		config.Password = strings.TrimSpace(string(password))
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(1)
	db.SetConnMaxIdleTime(idleTime)
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
		s.newer = fmt.Errorf("%w: its schema is version %d, this binary knows %d; it is only read until Argosy is upgraded",
			ErrNewer, stored, target)
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("update the schema of the history database: %w", err)
	}
	return nil
}

// Restored returns the repair of the file when it was opened.
func (s *Store) Restored() Restored { return s.restored }

// Close closes the database.
func (s *Store) Close() error {
	if s.read == s.write {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// RecordRelease writes the rows of a release that this store has not written yet. A state that is older than the stored
// one adds missing rows, and changes none.
func (s *Store) RecordRelease(ctx context.Context, r *releasev1alpha1.Release) error {
	rows := releaseRows(r)
	stale, err := s.upsertState(ctx, s.changed(ctx, r, rows))
	s.noteWritten(r, rows, err == nil && !stale)
	return err
}

func (s *Store) RecordApproval(ctx context.Context, a *releasev1alpha1.ReleaseApproval) error {
	return s.upsert(ctx, approvalRows(a))
}

func (s *Store) RecordRevision(ctx context.Context, r *releasev1alpha1.ReleaseRevision) error {
	return s.upsert(ctx, revisionRows(r))
}

// upsert writes rows in one transaction.
func (s *Store) upsert(ctx context.Context, rows []row) error {
	_, err := s.upsertState(ctx, rows)
	return err
}

// upsertState writes rows in one transaction. stale is true if the database has a newer state of the release, so that
// only immutable rows were added.
func (s *Store) upsertState(ctx context.Context, rows []row) (stale bool, err error) {
	if s.newer != nil {
		return false, s.newer
	}
	if err := s.checkRoom(0); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("write the release history: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for len(rows) > 0 {
		t := rows[0].table
		n := 1
		for n < len(rows) && n < rowsAtOnce && rows[n].table.name == t.name {
			n++
		}
		var values []any
		for _, r := range rows[:n] {
			for _, v := range r.values {
				if text, ok := v.(string); ok {
					v = strings.ReplaceAll(text, "\x00", "\uFFFD") // PostgreSQL has no texts with it
				}
				values = append(values, v)
			}
		}
		rows = rows[n:]
		if stale && !t.immutable {
			continue
		}
		result, err := tx.ExecContext(ctx, s.statement(t, n), values...)
		if err != nil {
			return false, fmt.Errorf("write the release history, table %s: %w", t.name, err)
		}
		if t.guard != "" {
			changed, err := result.RowsAffected()
			if err != nil {
				return false, fmt.Errorf("write the release history, table %s: %w", t.name, err)
			}
			stale = changed == 0
		}
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("write the release history: %w", err)
	}
	return stale, nil
}

// ofObject lists the classes of PostgreSQL errors that the written values cause: cardinality, data, constraints and
// program limits.
var ofObject = []string{"21", "22", "23", "54"}

// IsOfObject reports whether a write failed because of the object: the database takes others.
func IsOfObject(err error) bool {
	var connect *pgconn.ConnectError
	if errors.Is(err, ErrUnavailable) || errors.As(err, &connect) { // such as a wrong password
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return slices.ContainsFunc(ofObject, func(code string) bool { return strings.HasPrefix(pg.Code, code) })
	}
	return isConstraint(err)
}

// checkRoom returns ErrDiskFull if the disk would have less than the reserve after a number of bytes.
func (s *Store) checkRoom(bytes int64) error {
	if s.postgres {
		return nil
	}
	free, err := s.free()
	if err != nil {
		return err
	}
	if free-bytes < reserve {
		return fmt.Errorf("%w: %d MiB are free, and %d MiB must stay free for the hub's own store", ErrDiskFull, free>>20,
			(reserve+bytes)>>20)
	}
	return nil
}

// freeSpace returns how many bytes can be written to the file system of a folder.
func freeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("get the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// statement returns the SQL that inserts n rows or updates those with their keys.
func (s *Store) statement(t table, n int) string {
	action := "DO NOTHING"
	if !t.immutable {
		var sets []string
		for _, c := range t.columns[t.keys:] {
			sets = append(sets, c+" = excluded."+c)
		}
		action = "DO UPDATE SET " + strings.Join(sets, ", ")
	}
	if t.guard != "" {
		action += fmt.Sprintf(" WHERE excluded.%s >= %s.%s", t.guard, t.name, t.guard)
	}
	one := "(" + strings.Join(slices.Repeat([]string{"?"}, len(t.columns)), ", ") + ")"
	return s.bind(fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON CONFLICT (%s) %s", t.name, strings.Join(t.columns, ", "),
		strings.Join(slices.Repeat([]string{one}, n), ", "), strings.Join(t.columns[:t.keys], ", "), action))
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
