package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func startOn(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filled returns the folder of a store with n keys, which has been stopped.
func filled(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	s := startOn(t, Options{Dir: dir})
	c := s.Client()
	for i := range n {
		if _, err := c.Put(t.Context(), fmt.Sprintf("key-%d", i), strings.Repeat("v", 500)); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	s.Stop()
	return dir
}

func count(t *testing.T, dir string) (keys, revision int64) {
	t.Helper()
	s := startOn(t, Options{Dir: dir})
	defer s.Stop()
	c := s.Client()
	defer c.Close()
	got, err := c.Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return got.Count, got.Header.Revision
}

func TestRestoredStoreHasTheSnapshotAndLaterRevisions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	s := startOn(t, Options{Dir: dir})
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.Endpoint, "key-before", "v")
	file := filepath.Join(t.TempDir(), "snapshot.db")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Snapshot(t.Context(), c, f), f.Close()); err != nil {
		t.Fatal(err)
	}
	put(t, s.Endpoint, "key-after", "v")
	last := s.Revision()
	_ = c.Close()
	s.Stop()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stopped member is dialled with %v", err)
	}

	restored := filepath.Join(t.TempDir(), "etcd")
	if err := Restore(file, restored); err != nil {
		t.Fatal(err)
	}
	s = startOn(t, Options{Dir: restored})
	defer s.Stop()
	if s.Revision() <= last {
		t.Errorf("the restored store is at revision %d, and the lost one was at %d", s.Revision(), last)
	}
	in := s.Client()
	defer in.Close()
	got, err := in.Get(t.Context(), "key-", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Key) != "key-before" {
		t.Errorf("the restored store holds %v (%v), want key-before", got, err)
	}
	// A client that watches from a revision of the lost store gets an error and lists again.
	w := <-in.Watch(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithRev(last))
	if w.CompactRevision == 0 {
		t.Errorf("a watch from the lost store's revision %d goes on: %+v", last, w)
	}
	if err := Restore(file, restored); err == nil {
		t.Error("a store was restored over another")
	}
}

// A store that was cut off anywhere either reports what is broken, or has everything. It never starts with less data.
func TestTruncatedStoreNeverStartsWithLessData(t *testing.T) {
	const keys = 300
	whole := filled(t, keys)
	tries := 12
	if testing.Short() {
		tries = 3
	}
	dice := rand.New(rand.NewPCG(1, 1))
	var files []string
	_ = filepath.WalkDir(whole, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && (strings.HasSuffix(path, "/db") || strings.HasSuffix(path, ".wal")) {
			rel, _ := filepath.Rel(whole, path)
			files = append(files, rel)
		}
		return err
	})
	refused, same := 0, 0
	for _, rel := range files {
		for try := range tries {
			dir := filepath.Join(t.TempDir(), "etcd")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, rel)
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			// The log is 64 MB, most of it empty: half of the cuts are in what is written.
			end := info.Size()
			if strings.HasSuffix(rel, ".wal") && try%2 == 0 {
				end = min(end, keys*700)
			}
			at := dice.Int64N(end)
			if try == 1 {
				at = 0
			}
			if err := os.Truncate(file, at); err != nil {
				t.Fatal(err)
			}
			s, err := Start(t.Context(), Options{Dir: dir, UnsafeNoFsync: true})
			if err != nil {
				refused++
				if damaged := new(DamagedError); !errors.As(err, &damaged) {
					t.Logf("%s cut off at %d: %v", rel, at, err)
				}
				continue
			}
			c := s.Client()
			got, err := c.Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
			_ = c.Close()
			s.Stop()
			if err != nil || got.Count != keys {
				t.Errorf("%s cut off at byte %d of %d: it started, and has %v keys of %d (%v)", rel, at, info.Size(), got, keys,
					err)
			}
			same++
		}
	}
	t.Logf("%d files cut off: %d starts were refused, %d had everything", len(files)*tries, refused, same)
	if refused == 0 {
		t.Error("no cut was noticed")
	}

	// A file that is gone is no reason to start anew either.
	for _, gone := range []string{"data/member/snap/db", "data/member/wal"} {
		dir := filepath.Join(t.TempDir(), "etcd")
		if err := errors.Join(os.CopyFS(dir, os.DirFS(whole)), os.RemoveAll(filepath.Join(dir, gone))); err != nil {
			t.Fatal(err)
		}
		if s, err := Start(t.Context(), Options{Dir: dir, UnsafeNoFsync: true}); err == nil {
			s.Stop()
			t.Errorf("it started without %s", gone)
		}
	}
	if n, _ := count(t, whole); n != keys {
		t.Errorf("the whole store has %d keys", n)
	}
}

func TestCompactDefragmentAndDisarmRepairAFullStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	s := startOn(t, Options{Dir: dir, Quota: 4 << 20, UnsafeNoFsync: true})
	defer s.Stop()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 5000 { // etcd sees the size of what it has committed, which is some 100 ms later
		if _, err = c.Put(t.Context(), "key", strings.Repeat("v", 100<<10)); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("500 MB fit in a quota of 4")
	}
	state, err := Look(t.Context(), c)
	if err != nil || len(state.Alarms) != 1 || state.Alarms[0] != "NOSPACE" || state.Quota != 4<<20 {
		t.Fatalf("a full store is %+v (%v)", state, err)
	}
	for _, mend := range []func() error{
		func() error { return Compact(t.Context(), c) },
		func() error { return Defragment(t.Context(), c) },
		func() error { return Disarm(t.Context(), c) },
	} {
		if err := mend(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Look(t.Context(), c)
	if err != nil || len(after.Alarms) != 0 || after.Size >= state.Size {
		t.Errorf("after mending it is %+v (%v), before it was %+v", after, err, state)
	}
	if _, err := c.Put(t.Context(), "key", "v"); err != nil {
		t.Error(err)
	}
}
