package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// copies is the number of nightly copies.
	copies = 7
	// copyPrefix begins the name of a nightly copy; its day and ".db" follow.
	copyPrefix = "history-"
	dayLayout  = "2006-01-02"
)

// Backup writes the copy of a day beside a SQLite file and removes the oldest ones. It does nothing if the day has a
// copy, and for PostgreSQL, which its administrators back up.
func (s *Store) Backup(ctx context.Context, now time.Time) error {
	if s.postgres {
		return nil
	}
	path := filepath.Join(filepath.Dir(s.path), copyPrefix+now.UTC().Format(dayLayout)+".db")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	unfinished := path + ".part"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.checkRoom(s.Size(ctx)); err != nil {
		return err
	}
	// A reader makes the copy, so that writes continue.
	if _, err := s.read.ExecContext(ctx, "VACUUM INTO ?", unfinished); err != nil {
		return fmt.Errorf("copy the history database to %s: %w", path, err)
	}
	if err := os.Chmod(unfinished, 0o600); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	kept := backups(s.path)
	for _, old := range kept[min(len(kept), copies):] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove an old copy of the history database: %w", err)
		}
	}
	return nil
}

// backups returns the nightly copies of a database file, the newest first.
func backups(path string) []string {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), copyPrefix+"*.db"))
	slices.Sort(found)
	slices.Reverse(found)
	return found
}

// Size returns the bytes that the database has on disk, 0 if that is not known.
func (s *Store) Size(ctx context.Context) int64 {
	query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if s.postgres {
		query = "SELECT pg_database_size(current_database())"
	}
	var size int64
	if err := s.read.QueryRowContext(ctx, query).Scan(&size); err != nil {
		return 0
	}
	return size
}

// repair moves a damaged file aside. It puts the newest undamaged copy in the place of a file that is damaged or gone,
// if the disk has room for it. If not, the history starts empty.
func (s *Store) repair(ctx context.Context) (Restored, error) {
	var done Restored
	path := s.path
	// Of a process that ended while it copied.
	if err := os.Remove(path + ".part"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("read the history database: %w", err)
	}
	if err == nil {
		damaged, err := isDamaged(ctx, path)
		if err != nil || !damaged {
			return done, err
		}
		done.Moved = fmt.Sprintf("%s.bad-%s", path, time.Now().UTC().Format("20060102T150405"))
		if err := os.Rename(path, done.Moved); err != nil {
			return Restored{}, fmt.Errorf("move the damaged history database aside: %w", err)
		}
	}
	for _, extra := range []string{"-wal", "-shm"} { // they belong to the file that is gone
		if done.Moved == "" {
			err = os.Remove(path + extra)
		} else {
			err = os.Rename(path+extra, done.Moved+extra)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Restored{}, fmt.Errorf("move the damaged history database aside: %w", err)
		}
	}
	for _, copied := range backups(path) {
		damaged, err := isDamaged(ctx, copied)
		if err != nil {
			return Restored{}, err
		}
		if damaged {
			continue
		}
		info, err := os.Stat(copied)
		if err != nil {
			return Restored{}, err
		}
		if err := s.checkRoom(info.Size()); errors.Is(err, ErrDiskFull) {
			done.NoRoom = copied
			return done, nil
		} else if err != nil {
			return Restored{}, err
		}
		if err := copyFile(copied, path); err != nil {
			return Restored{}, fmt.Errorf("restore the history database from %s: %w", copied, err)
		}
		done.From = copied
		break
	}
	return done, nil
}

// copyFile copies a file. A copy that is not complete does not stay.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	unfinished := to + ".part"
	out, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(unfinished))
		}
	}()
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished, to)
}

// noteGap stores that the history may lack releases: since the copy that was restored, or all that were deleted.
func (s *Store) noteGap(ctx context.Context, restored Restored) error {
	from := ""
	if restored.From != "" {
		day := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(restored.From), copyPrefix), ".db")
		from = day + "T00:00:00Z"
	}
	_, err := s.write.ExecContext(ctx, "INSERT INTO gaps (found_at, from_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
		time.Now().UTC().Format(time.RFC3339), from)
	if err != nil {
		return fmt.Errorf("note the gap of the history: %w", err)
	}
	return nil
}

// Gaps describes the periods of which the history may lack releases that do not exist any more.
func (s *Store) Gaps(ctx context.Context) ([]string, error) {
	var found []string
	err := s.query(ctx, "SELECT found_at, from_at FROM gaps ORDER BY found_at", nil, func(rows *sql.Rows) error {
		var foundAt, from string
		err := rows.Scan(&foundAt, &from)
		if from != "" {
			from = " and after " + from
		}
		found = append(found, "the release history is incomplete before "+foundAt+from+
			": the database was damaged or lost, and only releases that still existed were recorded again")
		return err
	})
	return found, err
}
