package etcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func put(t *testing.T, endpoint, key, value string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	if value != "" {
		if _, err := c.Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 {
		t.Fatalf("%s is not there", key)
	}
}

func TestDataOutlivesTheServer(t *testing.T) {
	dirs := map[string]string{
		"in a usual folder":                          filepath.Join(t.TempDir(), "etcd"),
		"in one whose path is too long for a socket": filepath.Join(t.TempDir(), strings.Repeat("long/", 25)),
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			s, err := Start(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(t.Context(), []string{"http://127.0.0.1:1", s.Endpoint}, "", "", ""); err != nil {
				t.Errorf("one of two servers answers, and yet: %v", err)
			}
			before := s.Revision()
			put(t, s.Endpoint, "key", "value")
			if wrote := s.Revision() - before; wrote != 1 {
				t.Errorf("one write counts as %d", wrote)
			}
			s.Stop()
			if s.tempDir != "" {
				if _, err := os.Stat(s.tempDir); !os.IsNotExist(err) {
					t.Errorf("%s is left behind", s.tempDir)
				}
			}
			if s, err = Start(t.Context(), Options{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			put(t, s.Endpoint, "key", "")
		})
	}
}

func TestFsyncDurationsCountWrites(t *testing.T) {
	s, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before, err := FsyncDurations()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.Endpoint, "key", "value")
	after, err := FsyncDurations()
	if err != nil || after.GetSampleCount() <= before.GetSampleCount() {
		t.Errorf("a write changed the number of fsync calls from %d to %d (%v)", before.GetSampleCount(),
			after.GetSampleCount(), err)
	}
}
