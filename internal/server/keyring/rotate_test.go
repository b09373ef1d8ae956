package keyring

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/argosy-io/argosy/test/kit"
)

// telling calls a function each time a hub records which version of the ring it has.
type observedKV struct {
	clientv3.KV
	after func()
}

func (k observedKV) Put(ctx context.Context, key, value string, o ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	done, err := k.KV.Put(ctx, key, value, o...)
	if err == nil && strings.HasPrefix(key, readersPrefix) {
		k.after()
	}
	return done, err
}

// A hub that changes the keys while it begins to follow them records its version too. Otherwise a rotation would wait
// forever.
func TestFollowerCatchesUp(t *testing.T) {
	w := newWorld(t)
	r := w.open(w.file)
	puts := 0
	w.client.KV = observedKV{w.client.KV, func() {
		if puts++; puts > 2 { // when it began, and what it loaded then
			return
		}
		if err := r.RewriteAll(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Follow(ctx) }()
	defer func() { cancel(); <-ended }()
	kit.Eventually(t, "the hub follows and is not behind", func() string {
		readers, err := w.client.Get(t.Context(), readersPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		behind, err := r.Behind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if readers.Count != 1 || behind > 0 {
			return fmt.Sprintf("of %d that follow %d are behind", readers.Count, behind)
		}
		return ""
	})
}

// The API server has the store forget what was before a few minutes ago, and with it since when the keys are as they
// are.
func TestLateFollowerCatchesUp(t *testing.T) {
	w := newWorld(t)
	r, other := w.open(w.file), w.open(w.file)
	for i := range 10 {
		last, err := w.client.Put(t.Context(), "/something/else", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			if _, err := w.client.Compact(t.Context(), last.Header.Revision); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.followOnce(ctx, readersPrefix+"late") }()
	defer cancel()
	until := func(what string, ok func() bool) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			select {
			case err := <-ended:
				t.Fatalf("it follows no more: %v", err)
			default:
			}
			if !ok() {
				return "not yet"
			}
			return ""
		})
	}
	until("it follows", func() bool {
		readers, err := w.client.Get(t.Context(), readersPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && readers.Count == 1
	})
	if err := other.RewriteAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("it has what another hub changed", func() bool {
		behind, err := other.Behind(t.Context())
		return err == nil && behind == 0
	})
}

// What was read before a change, and comes to be taken after it, does not bring the keys of before back.
func TestALaterVersionStays(t *testing.T) {
	w := newWorld(t)
	r := w.open(w.file)
	got, err := w.client.Get(t.Context(), documentKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.take(got.Kvs[0].Value, got.Kvs[0].ModRevision); err != nil {
		t.Fatal(err)
	}
	if len(r.Keys()) != 2 || !r.Rotating() {
		t.Errorf("the ring has %v", r.Keys())
	}
}
