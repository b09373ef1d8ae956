package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// DamagedError describes what is broken in the files of a store.
type DamagedError struct {
	File string
	Why  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.File, e.Why) }
func (e *DamagedError) Unwrap() error { return e.Why }

// checkFiles returns what is broken in the store in dir, before etcd opens it. etcd would create an empty store if the
// file is empty or missing, and would repair a log by truncating it, which loses writes.
func checkFiles(dir string) error {
	db := filepath.Join(dir, "data", "member", "snap", "db")
	applied, err := lastApplied(db)
	if err != nil {
		return &DamagedError{db, err}
	}
	log := filepath.Join(dir, "data", "member", "wal")
	logged, err := lastLogged(log)
	if err != nil {
		return &DamagedError{log, err}
	}
	if logged < applied {
		return &DamagedError{log, fmt.Errorf("it ends at entry %d, but the store is at entry %d: the last writes are missing",
			logged, applied)}
	}
	return nil
}

// lastApplied returns the last entry of the log that is in the store.
func lastApplied(file string) (index uint64, err error) {
	defer notPanicking(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // reading beyond the end of a mapped file is a fault
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, errors.New("it is missing, but its log exists")
	}
	if err != nil {
		return 0, err
	}
	if info.Size() == 0 {
		return 0, errors.New("it is empty")
	}
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return index, db.View(func(tx *bolt.Tx) error {
		if size := tx.Size(); info.Size() < size {
			return fmt.Errorf("it has %d bytes of %d: it is truncated", info.Size(), size)
		}
		meta := tx.Bucket(schema.Meta.Name())
		if meta == nil {
			return nil // a killed start leaves this state
		}
		if v := meta.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
			index = binary.BigEndian.Uint64(v)
		}
		return nil
	})
}

// lastLogged returns the last entry of the log, whether it was applied or not.
func lastLogged(dir string) (index uint64, err error) {
	defer notPanicking(&err)
	if !wal.Exist(dir) {
		return 0, errors.New("it contains no log")
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, err
	}
	if len(snapshots) == 0 {
		return 0, errors.New("its first entry is missing")
	}
	last := snapshots[len(snapshots)-1]
	w, err := wal.OpenForRead(zap.NewNop(), dir, last)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 {
		return last.Index, nil
	}
	return entries[len(entries)-1].Index, nil
}
