package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/server/backup"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
)

func TestLateRestoreFailureLeavesNoUsableFolder(t *testing.T) {
	lost := t.TempDir()
	s, err := etcd.Start(t.Context(), etcd.Options{Dir: filepath.Join(lost, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	store, err := etcd.Dial(t.Context(), filepath.Join(lost, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	pki := filepath.Join(lost, "pki")
	_, err = store.Put(t.Context(), "key", "value")
	if err := errors.Join(err, os.Mkdir(pki, 0o700),
		os.WriteFile(filepath.Join(pki, "ca.key"), []byte("ca"), 0o600)); err != nil {
		t.Fatal(err)
	}
	file, _, err := backup.Write(t.Context(), backup.Source{Store: store, PKIDir: pki, DataDir: lost}, t.TempDir(), "",
		time.Now())
	if err != nil {
		t.Fatal(err)
	}

	c := DefaultConfig()
	c.DataDir, c.PKIDir = filepath.Join(t.TempDir(), "hub"), filepath.Join(t.TempDir(), "pki")
	if err := os.Symlink(filepath.Join(lost, "nowhere", "pki"), c.PKIDir); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(c, file, false); err == nil {
		t.Fatal("the keys were put nowhere, and it is no error")
	}
	if err := storeThere(c.DataDir); err == nil {
		t.Error("a hub starts on what a failed restore left")
	}

	// What fails before anything is in place leaves the folder as it was.
	c.DataDir = filepath.Join(t.TempDir(), "hub")
	if _, err := Restore(c, filepath.Join(lost, "no-backup.tar.gz"), false); err == nil {
		t.Fatal("there is no such backup, and it is no error")
	}
	if err := storeThere(c.DataDir); err != nil {
		t.Error(err)
	}
}

// The folder records who wrote its store. A binary can read that without opening the store.
func TestRestoredFolderNamesItsVersion(t *testing.T) {
	lost := t.TempDir()
	s, err := etcd.Start(t.Context(), etcd.Options{Dir: filepath.Join(lost, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	store, err := etcd.Dial(t.Context(), filepath.Join(lost, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keys := filepath.Join(lost, "pki")
	_, err = store.Put(t.Context(), "key", "value")
	if err := errors.Join(err, os.Mkdir(keys, 0o700), os.WriteFile(filepath.Join(keys, "ca.key"), []byte("ca"), 0o600),
		os.WriteFile(importedFile(keys), []byte("/etc/argosy/pki"), 0o600)); err != nil {
		t.Fatal(err)
	}
	wrote := writer()
	wrote.Version = "v0.9.0"
	file, _, err := backup.Write(t.Context(), backup.Source{Store: store, Writer: &wrote, PKIDir: keys, DataDir: lost},
		t.TempDir(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	if _, err := Restore(c, file, false); err != nil {
		t.Fatal(err)
	}
	if stored, err := folderWriter(c.DataDir); err != nil || stored == nil || stored.Version != "v0.9.0" {
		t.Errorf("the folder says that %v wrote it (%v), want v0.9.0", stored, err)
	}
	if _, err := os.Stat(importedFile(c.pkiDir())); err == nil {
		t.Error("the keys of a restored hub are said to be imported")
	}
}
