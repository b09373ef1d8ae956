package keyring

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// telling does something each time after a hub said which version of the ring it has.
type telling struct {
	clientv3.KV
	after func()
}

func (k telling) Put(ctx context.Context, key, value string, o ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	done, err := k.KV.Put(ctx, key, value, o...)
	if err == nil && strings.HasPrefix(key, readersPrefix) {
		k.after()
	}
	return done, err
}

// A hub that changes the keys in the moment in which it begins to follow them says so as well: a rotation would wait for it without end.
func TestWhoFollowsIsNotBehindForGood(t *testing.T) {
	w := newWorld(t)
	r := w.open(w.file)
	said := 0
	w.client.KV = telling{w.client.KV, func() {
		if said++; said > 2 { // when it began, and what it loaded then
			return
		}
		if err := r.Again(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Follow(ctx) }()
	defer func() { cancel(); <-ended }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		readers, err := w.client.Get(t.Context(), readersPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		behind, err := r.Behind(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if readers.Count == 1 && behind == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("of %d that follow %d are behind, and nothing changes any more", readers.Count, behind)
		}
	}
}

// The API server has the store forget what was before a few minutes ago, and with it since when the keys are as they are.
func TestWhoBeginsToFollowLateFollows(t *testing.T) {
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
	changed := false
	for end := time.Now().Add(time.Minute); ; {
		select {
		case err := <-ended:
			t.Fatalf("it follows no more: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		readers, err := w.client.Get(t.Context(), readersPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if readers.Count == 1 && !changed {
			changed = true
			if err := other.Again(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if behind, err := other.Behind(t.Context()); err != nil {
			t.Fatal(err)
		} else if changed && behind == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it does not get what another changes")
		}
	}
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
