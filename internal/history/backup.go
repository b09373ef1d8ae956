package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// copies is how many nightly copies are kept.
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
	if _, err := s.write.ExecContext(ctx, "VACUUM INTO ?", unfinished); err != nil {
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

// repair moves a damaged file aside and puts the newest undamaged copy in its place.
func repair(ctx context.Context, path string) (Restored, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Restored{}, nil
	}
	if intact(ctx, path) {
		return Restored{}, nil
	}
	moved := fmt.Sprintf("%s.bad-%s", path, time.Now().UTC().Format("20060102T150405"))
	if err := os.Rename(path, moved); err != nil {
		return Restored{}, fmt.Errorf("move the damaged history database aside: %w", err)
	}
	for _, extra := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+extra, moved+extra); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Restored{}, fmt.Errorf("move the damaged history database aside: %w", err)
		}
	}
	for _, copied := range backups(path) {
		if !intact(ctx, copied) {
			continue
		}
		content, err := os.ReadFile(copied)
		if err != nil {
			return Restored{}, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return Restored{}, fmt.Errorf("restore the history database from %s: %w", copied, err)
		}
		return Restored{Moved: moved, From: copied}, nil
	}
	return Restored{Moved: moved}, nil
}

// intact reports whether SQLite finds a file in order.
func intact(ctx context.Context, path string) bool {
	db, err := openFile(path, "rw")
	if err != nil {
		return false
	}
	defer func() { _ = db.Close() }()
	var result string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result)
	return err == nil && strings.EqualFold(result, "ok")
}
