package keyring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

const (
	// page is the number of values that are read at a time, perSecond the number of values that are rewritten per second,
	// so that other users of the store are not slowed down.
	page      = 100
	perSecond = 200
	// readerLife is how long a replica that does not respond any more is waited for.
	readerLife = 30 * time.Second
	// settle is how long watches may lag behind a rewrite; they read old values with the old key.
	settle = 2 * time.Second
)

// Target is a part of the store whose values one transformer encrypts.
type Target struct {
	Prefix string
	value.Transformer
}

// Count is the result of a count of values.
type Count struct {
	// Total values, of which Stale are not encrypted with the current settings, and Unreadable cannot be decrypted.
	Total, Stale, Unreadable int
}

// Look counts, and writes nothing.
func (r *Ring) Look(ctx context.Context, targets []Target) (Count, error) {
	return r.walk(ctx, targets, nil)
}

// rewrite encrypts every value with the current key. It keeps values that it cannot decrypt.
func (r *Ring) rewrite(ctx context.Context, targets []Target, progress func(done int)) error {
	limit := flowcontrol.NewTokenBucketRateLimiter(perSecond, page)
	for {
		done := 0
		count, err := r.walk(ctx, targets, func(t Target, key, plain []byte, revision int64) error {
			if err := limit.Wait(ctx); err != nil {
				return err
			}
			fresh, err := t.TransformToStorage(ctx, plain, value.DefaultContext(key))
			if err != nil {
				return fmt.Errorf("encrypt %s: %w", key, err)
			}
			// A value that changed in the meantime was encrypted by its writer.
			_, err = r.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(string(key)), "=", revision)).
				Then(clientv3.OpPut(string(key), string(fresh), clientv3.WithIgnoreLease())).Commit()
			if err != nil {
				return fmt.Errorf("rewrite %s: %w", key, err)
			}
			done++
			progress(done)
			return nil
		})
		switch {
		case err != nil:
			return err
		case count.Unreadable > 0:
			return fmt.Errorf("%d of %d values cannot be decrypted with any of the hub's keys; these values and the keys are kept", count.Unreadable, count.Total)
		case count.Stale == 0:
			return nil
		}
	}
}

// walk reads all values, and calls visit for the stale ones.
func (r *Ring) walk(ctx context.Context, targets []Target,
	visit func(t Target, key, plain []byte, revision int64) error) (Count, error) {
	var count Count
	for _, t := range targets {
		end := clientv3.GetPrefixRangeEnd(t.Prefix)
		for from := t.Prefix; ; {
			got, err := r.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
			if err != nil {
				return count, fmt.Errorf("read %s: %w", t.Prefix, err)
			}
			for _, kv := range got.Kvs {
				count.Total++
				plain, stale, err := t.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
				if err != nil {
					count.Unreadable++
					continue
				}
				if !stale {
					continue
				}
				count.Stale++
				if visit != nil {
					if err := visit(t, kv.Key, plain, kv.ModRevision); err != nil {
						return count, err
					}
				}
			}
			if !got.More {
				break
			}
			from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		}
	}
	return count, nil
}

// Migrate rewrites everything with the current key, once.
func (r *Ring) Migrate(ctx context.Context, targets []Target, progress func(done int)) error {
	if !r.changing.TryLock() {
		return ErrBusy
	}
	defer r.changing.Unlock()
	if err := r.rewrite(ctx, targets, progress); err != nil {
		return err
	}
	return r.change(ctx, func(d *document) error { d.Rewritten = true; return nil })
}

// Begin adds the key that Rotate is to make the first.
func (r *Ring) Begin(ctx context.Context) error {
	switch {
	case r.plain:
		return errors.New("encryption is disabled: enable it first (--encrypt-secrets)")
	case r.Rotating():
		return ErrBusy
	}
	key := r.newKey()
	return r.change(ctx, func(d *document) error {
		d.Keys, d.Next = append(d.Keys, key), key.Name
		return nil
	})
}

// Rotate replaces the key that encrypts new values:
//
//	(old) → (old new) → (new old) → everything rewritten → (new)
//
// Each step waits until every replica that follows the ring has taken the one before. One that was broken off is taken
// up where it was.
func (r *Ring) Rotate(ctx context.Context, targets []Target, progress func(step string, done int)) error {
	if !r.changing.TryLock() {
		return ErrBusy
	}
	defer r.changing.Unlock()
	if !r.Rotating() {
		progress("adding the new key for reading", 0)
		if err := r.Begin(ctx); err != nil {
			return err
		}
	}
	if err := r.awaitReaders(ctx); err != nil {
		return err
	}
	progress("writing with the new key", 0)
	if err := r.change(ctx, func(d *document) error {
		next := slices.IndexFunc(d.Keys, func(k sealedKey) bool { return k.Name == d.Next })
		if next < 0 {
			return fmt.Errorf("the next key %s is missing", d.Next)
		}
		d.Keys[0], d.Keys[next] = d.Keys[next], d.Keys[0]
		d.Rewritten = false
		return nil
	}); err != nil {
		return err
	}
	if err := r.awaitReaders(ctx); err != nil {
		return err
	}
	if err := r.rewrite(ctx, targets, func(done int) { progress("rewriting", done) }); err != nil {
		return err
	}
	progress("removing the old key", 0)
	// Lists in pages and earlier watches would read values with the old key; after the compaction they start again.
	if err := r.compact(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.change(ctx, func(d *document) error {
		d.Keys, d.Next, d.Rewritten = d.Keys[:1], "", true
		return nil
	})
}

// compact forgets what values were before.
func (r *Ring) compact(ctx context.Context) error {
	now, err := r.client.Get(ctx, documentKey)
	if err != nil {
		return fmt.Errorf("read the store's revision: %w", err)
	}
	if _, err := r.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact the store: %w", err)
	}
	return nil
}

// Forget compacts old revisions and defragments, so that no file of the store but its log contains old values.
func (r *Ring) Forget(ctx context.Context) error {
	if err := r.compact(ctx); err != nil {
		return err
	}
	for _, endpoint := range r.client.Endpoints() {
		if _, err := r.client.Defragment(ctx, endpoint); err != nil {
			return fmt.Errorf("defragment the store: %w", err)
		}
	}
	return nil
}

// Follow loads each change by other replicas, and records which version this replica has, until ctx ends. Only a shared
// store needs it.
func (r *Ring) Follow(ctx context.Context) {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	key := readersPrefix + hex.EncodeToString(id)
	for ctx.Err() == nil {
		if err := r.followOnce(ctx, key); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "cannot watch the encryption keys; retrying")
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	// Those who wait for replicas need not wait for this one.
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = r.client.Delete(parting, key)
}

func (r *Ring) followOnce(ctx context.Context, key string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lease, err := r.client.Grant(ctx, int64(readerLife/time.Second))
	if err != nil {
		return fmt.Errorf("request a lease: %w", err)
	}
	alive, err := r.client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return fmt.Errorf("keep the lease: %w", err)
	}
	announce := func() error {
		_, err := r.client.Put(ctx, key, strconv.FormatInt(r.current.Load().revision, 10), clientv3.WithLease(lease.ID))
		return err
	}
	// In this order, other replicas never see a version that this replica does not have, and never miss this replica.
	if err := announce(); err != nil {
		return fmt.Errorf("publish which keys are loaded: %w", err)
	}
	seen, err := r.load(ctx)
	if err != nil {
		return err
	}
	if err := announce(); err != nil {
		return fmt.Errorf("publish which keys are loaded: %w", err)
	}
	// This replica also records its own changes from now on. Earlier changes are compacted and cannot be watched.
	changes := r.client.Watch(ctx, documentKey, clientv3.WithRev(seen+1))
	for {
		select {
		case _, ok := <-alive:
			if !ok {
				return errors.New("the lease ended")
			}
		case change, ok := <-changes:
			if !ok || change.Err() != nil {
				return fmt.Errorf("watch the keys: %w", change.Err())
			}
			for _, e := range change.Events {
				if e.Type != clientv3.EventTypePut {
					continue
				}
				if err := r.take(e.Kv.Value, e.Kv.ModRevision); err != nil {
					return err
				}
			}
			if err := announce(); err != nil {
				return fmt.Errorf("publish which keys are loaded: %w", err)
			}
		}
	}
}

// Behind returns how many replicas have not loaded the current ring.
func (r *Ring) Behind(ctx context.Context) (int, error) {
	want := r.current.Load().revision
	readers, err := r.client.Get(ctx, readersPrefix, clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("list the keys that replicas have loaded: %w", err)
	}
	behind := 0
	for _, kv := range readers.Kvs {
		if has, err := strconv.ParseInt(string(kv.Value), 10, 64); err != nil || has < want {
			behind++
		}
	}
	return behind, nil
}

// awaitReaders returns when every replica has loaded the current ring. It ignores replicas that have not responded for
// readerLife.
func (r *Ring) awaitReaders(ctx context.Context) error {
	for {
		behind, err := r.Behind(ctx)
		if err != nil || behind == 0 {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
