package server

import (
	"errors"
	"testing"

	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
)

func TestOnlyStoreWithoutWorksGetsItsFirstRecord(t *testing.T) {
	s, err := etcd.Start(t.Context(), etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	store := s.Client()
	defer store.Close()
	const work = "/registry/work.karmada.io/works/karmada-es-eu/web"
	if _, err := store.Put(t.Context(), work, "{}"); err != nil {
		t.Fatal(err)
	}
	var old *upkeep.TooOldError
	if err := recordInStore(t.Context(), store, writer()); !errors.As(err, &old) {
		t.Errorf("a store with a Work and without a record: %v, want it refused", err)
	}
	if stored, err := storeWriter(t.Context(), store); err != nil || stored != nil {
		t.Errorf("the refused start recorded %v (%v)", stored, err)
	}
	if _, err := store.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if err := recordInStore(t.Context(), store, writer()); err != nil {
		t.Fatalf("a store without Works: %v", err)
	}
	if _, err := store.Put(t.Context(), work, "{}"); err != nil {
		t.Fatal(err)
	}
	if err := recordInStore(t.Context(), store, writer()); err != nil {
		t.Errorf("a store with a record and a Work: %v", err)
	}
}
