package keyring

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	prefix = "/registry/secrets/"
	secret = prefix + "shop/password"
	word   = "correct-horse"
)

// world is a store with a hub's master key beside it.
type world struct {
	*testing.T
	client *clientv3.Client
	file   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := etcd.Start(t.Context(), etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	client, err := etcd.ConnectAll([]string{store.Endpoint}, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &world{t, client, filepath.Join(t.TempDir(), "encryption.key")}
}

// open returns a hub's start, with the master key in file.
func (w *world) open(file string) *Ring {
	w.Helper()
	r, err := Open(w.Context(), Options{Client: w.client, MasterFile: file, Prefixes: []string{prefix}})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) write(r *Ring) {
	w.Helper()
	data, err := r.TransformToStorage(w.Context(), []byte(word), value.DefaultContext(secret))
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.client.Put(w.Context(), secret, string(data)); err != nil {
		w.Fatal(err)
	}
}

// reads fails the test if the ring cannot read what was written.
func (w *world) reads(r *Ring) {
	w.Helper()
	got, err := w.client.Get(w.Context(), secret)
	if err != nil || len(got.Kvs) != 1 {
		w.Fatal(got, err)
	}
	if data, _, err := r.TransformFromStorage(w.Context(), got.Kvs[0].Value, value.DefaultContext(secret)); err != nil ||
		string(data) != word {
		w.Errorf("the Secret is %q, %v", data, err)
	}
}

func (w *world) rotate(r *Ring) {
	w.Helper()
	if err := r.Rotate(w.Context(), []Target{{prefix, r}}, func(string, int) {}); err != nil {
		w.Fatal(err)
	}
}

// content of a file, without the newline at its end.
func (w *world) content(file string) string {
	w.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	return string(bytes.TrimSpace(data))
}

// A user adds a master key before the old one, rotates, and removes the old one. A hub may start at each moment.
func TestAMasterKeyIsReplaced(t *testing.T) {
	t.Parallel() // a rotation waits for watches
	w := newWorld(t)
	w.write(w.open(w.file))
	old := w.content(w.file)
	made := filepath.Join(t.TempDir(), "encryption.key")
	if err := EnsureMaster(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	opens := func(keys, refused string) {
		t.Helper()
		if err := os.WriteFile(w.file, []byte(keys+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), Options{Client: w.client, MasterFile: w.file, Prefixes: []string{prefix}})
		switch {
		case refused == "" && err == nil:
			w.reads(r)
		case refused == "" || err == nil || !strings.Contains(err.Error(), refused):
			t.Errorf("with %q it says %v, want %q", keys, err, refused)
		}
	}
	next := w.content(made)
	opens(next, "does not match the store")
	opens(next+"\n"+old, "")
	r := w.open(w.file)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	opens(next, "does not match the store")
	opens(old, "copy it from another hub")
	opens(next+"\n"+old, "")
	w.rotate(r)
	opens(next+"\n"+old, "")
	opens(old, "does not match the store")
	opens(next, "")
}

// A first start that is broken off after the ring is in the store keeps the master key that seals it.
func TestInterruptedFirstStartKeepsItsMasterKey(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	kv := clientv3.NewKV(w.client)
	w.client.KV = failing{kv, func() error {
		if reads++; reads > 1 { // the second read of the ring, after it was written
			cancel()
			return context.Canceled
		}
		return nil
	}}
	if _, err := Open(ctx, Options{Client: w.client, MasterFile: w.file, Prefixes: []string{prefix}}); err == nil ||
		strings.Contains(err.Error(), "does not match the store") {
		t.Fatalf("it ended with %v", err)
	}
	w.client.KV = kv
	if got, err := w.client.Get(t.Context(), documentKey); err != nil || len(got.Kvs) != 1 {
		t.Fatalf("the ring is %v, %v", got, err)
	}
	r := w.open(w.file)
	w.write(r)
	w.reads(r)
}

// failing is a store in which reads of the ring may fail.
type failing struct {
	clientv3.KV
	err func() error
}

func (f failing) Get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if key == documentKey {
		if err := f.err(); err != nil {
			return nil, err
		}
	}
	return f.KV.Get(ctx, key, o...)
}

// Hubs on one store: nothing is written with a new master key before each of them has it.
func TestHubsOnOneStoreWaitForTheNewMasterKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open(w.file)
	w.write(first)
	others := filepath.Join(t.TempDir(), "encryption.key")
	copyKey := func() {
		if err := os.WriteFile(others, []byte(w.content(w.file)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyKey()
	second := w.open(others)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); second.Follow(ctx) }()
	defer func() { cancel(); <-ended }()
	until := func(what string, ok func() bool) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			if !ok() {
				return "not yet"
			}
			return ""
		})
	}
	readers := func() int {
		got, err := w.client.Get(t.Context(), readersPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return int(got.Count)
	}
	until("the second follows", func() bool { return readers() == 1 })
	// The first starts with another key before the old one.
	next := filepath.Join(t.TempDir(), "encryption.key")
	if err := EnsureMaster(next); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.file, []byte(w.content(next)+"\n"+w.content(w.file)), 0o600); err != nil {
		t.Fatal(err)
	}
	first = w.open(w.file)
	if err := first.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	rotated := make(chan error, 1)
	go func() { rotated <- first.Rotate(t.Context(), []Target{{prefix, first}}, func(string, int) {}) }()
	until("the second is waited for", func() bool { n, err := first.Behind(t.Context()); return err == nil && n == 1 })
	w.reads(second)
	if _, err := Open(t.Context(), Options{Client: w.client, MasterFile: others,
		Prefixes: []string{prefix}}); err == nil || !strings.Contains(err.Error(), "copy it from another hub") {
		t.Errorf("a hub that starts without the new master key gets %v", err)
	}
	select {
	case err := <-rotated:
		t.Fatalf("the rotation ended without the second: %v", err)
	default:
	}

	// The second starts again with both.
	cancel()
	<-ended
	copyKey()
	w.reads(w.open(others))
	if err := <-rotated; err != nil {
		t.Fatal(err)
	}
	w.reads(w.open(others))
}
