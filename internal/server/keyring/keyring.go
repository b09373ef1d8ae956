// Package keyring encrypts secret values in the store. The keys are in the store too, each sealed with a master key,
// which is a file in the pki folder. Replicas of a hub share that folder's content, so they can change keys together.
// The caller decides which resources are encrypted.
package keyring

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"
	encryptaes "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

const (
	// documentKey is the key of the ring in the store. Below readersPrefix each reader records the revision that it has
	// read.
	documentKey   = "/argosy/encryption"
	readersPrefix = "/argosy/encryption-readers/"
	// valuePrefix begins every value that a ring encrypted; the key's name and a colon follow.
	valuePrefix = "k8s:enc:argosy:v1:"
)

// ErrBusy reports that another change of the keys is in progress.
var ErrBusy = errors.New("another change of the keys is in progress")

// errSealed reports that a key of the ring is sealed with a master key that the hub does not have.
var errSealed = errors.New("cannot be decrypted")

// document is the stored ring. The first key encrypts; all keys decrypt.
type document struct {
	Keys []sealedKey `json:"keys"`
	// Next is the key that will be the first after the current rotation.
	Next string `json:"next,omitempty"`
	// Rewritten is true if all values in the store are encrypted with the current settings, in the mode Mode.
	Rewritten bool   `json:"rewritten"`
	Mode      string `json:"mode,omitempty"`
}

type sealedKey struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Sealed  []byte    `json:"sealed"`
}

// Key is a key of the ring.
type Key struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Writes is true if the key encrypts new values.
	Writes bool `json:"writes"`
}

// Ring encrypts and decrypts with the keys that it has now. It is a value.Transformer of Kubernetes' storage.
type Ring struct {
	client *clientv3.Client
	master masterKeys
	plain  bool

	// taking serializes loads, so that an older version never replaces a newer one.
	taking  sync.Mutex
	current atomic.Pointer[state]
	// changing serializes changes of the keys.
	changing sync.Mutex
}

// state is one version of the ring.
type state struct {
	document
	revision int64 // of the document
	value.Transformer
}

// Options configure a ring.
type Options struct {
	// Client reaches the store; the caller closes it after the ring's last use.
	Client *clientv3.Client
	// MasterFile is the file of the master key. It is created for a store without a ring.
	MasterFile string
	// Prefixes are the keys of the store below which values are encrypted.
	Prefixes []string
	// Plain writes without encryption, and decrypts existing values.
	Plain bool
}

// Open reads the ring of the store, or creates one. Values that were written without encryption, before there was a
// ring, can still be read.
func Open(ctx context.Context, o Options) (*Ring, error) {
	found, err := o.Client.Get(ctx, documentKey)
	if err != nil {
		return nil, fmt.Errorf("read the encryption keys of the store: %w", err)
	}
	master, err := readMaster(o.MasterFile)
	made := false
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(found.Kvs) > 0:
		return nil, fmt.Errorf("the Secrets in the store are encrypted, and their master key %s is missing: restore the file from a backup of the pki folder, or copy it from another hub that uses this store", o.MasterFile)
	case errors.Is(err, fs.ErrNotExist):
		if err := o.refuseLostRing(ctx); err != nil {
			return nil, err
		}
		if master, err = makeMaster(o.MasterFile); err != nil {
			return nil, err
		}
		made = true
	case err != nil:
		return nil, err
	}
	r := &Ring{client: o.Client, master: master, plain: o.Plain}
	if len(found.Kvs) == 0 {
		if !made {
			if err := o.refuseLostRing(ctx); err != nil {
				return nil, err
			}
		}
		// Keep the file after a failure: the store may have saved the ring although the answer was lost.
		if err := r.create(ctx, o.Prefixes); err != nil {
			return nil, err
		}
	}
	switch _, err := r.load(ctx); {
	case errors.Is(err, errSealed):
		if made { // another hub created the ring first, with its own key: ours is useless
			_ = os.Remove(o.MasterFile)
		}
		return nil, fmt.Errorf("%w: the master key in %s does not match the store; restore the right file from a backup of the pki folder, or copy it from another hub that uses this store", err, o.MasterFile)
	case err != nil:
		return nil, err
	}
	return r, nil
}

// refuseLostRing returns an error if the store has encrypted values but no ring.
func (o Options) refuseLostRing(ctx context.Context) error {
	for _, prefix := range o.Prefixes {
		first, err := o.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
		if err != nil {
			return fmt.Errorf("look for encrypted values: %w", err)
		}
		if len(first.Kvs) > 0 && bytes.HasPrefix(first.Kvs[0].Value, []byte(valuePrefix)) {
			return fmt.Errorf("values in the store are encrypted, but their keys (%s) are missing from it: restore a backup of the whole store", documentKey)
		}
	}
	return nil
}

// create stores a ring with one key, unless there is a ring already.
func (r *Ring) create(ctx context.Context, prefixes []string) error {
	d := document{Keys: []sealedKey{r.newKey()}, Rewritten: true}
	for _, prefix := range prefixes {
		n, err := r.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("count the values to encrypt: %w", err)
		}
		d.Rewritten = d.Rewritten && n.Count == 0
	}
	data := text.JSON(d)
	if _, err := r.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(documentKey), "=",
		0)).Then(clientv3.OpPut(documentKey, data)).Commit(); err != nil {
		return fmt.Errorf("write the encryption keys: %w", err)
	}
	return nil
}

// load reads the ring from the store, and returns the revision of the store.
func (r *Ring) load(ctx context.Context) (revision int64, err error) {
	found, err := r.client.Get(ctx, documentKey)
	if err != nil {
		return 0, fmt.Errorf("read the encryption keys of the store: %w", err)
	}
	if len(found.Kvs) == 0 {
		return 0, fmt.Errorf("the encryption keys (%s) are missing from the store", documentKey)
	}
	return found.Header.Revision, r.take(found.Kvs[0].Value, found.Kvs[0].ModRevision)
}

// take starts to use a version of the ring, unless a later one is in use.
func (r *Ring) take(data []byte, revision int64) error {
	r.taking.Lock()
	defer r.taking.Unlock()
	if has := r.current.Load(); has != nil && has.revision >= revision {
		return nil
	}
	s := &state{revision: revision}
	if err := json.Unmarshal(data, &s.document); err != nil {
		return fmt.Errorf("read the encryption keys (%s): %w", documentKey, err)
	}
	if len(s.Keys) == 0 {
		return fmt.Errorf("the encryption keys (%s) are empty", documentKey)
	}
	var all []value.PrefixTransformer
	for _, k := range s.Keys {
		seed, err := r.master.unseal(k)
		if err != nil {
			return err
		}
		t, err := encryptaes.NewHKDFExtendedNonceGCMTransformer(seed)
		if err != nil {
			return fmt.Errorf("key %s: %w", k.Name, err)
		}
		all = append(all, value.PrefixTransformer{Prefix: []byte(valuePrefix + k.Name + ":"), Transformer: t})
	}
	unencrypted := value.PrefixTransformer{Transformer: identity.NewEncryptCheckTransformer()}
	if r.plain {
		all = append([]value.PrefixTransformer{unencrypted}, all...)
	} else {
		all = append(all, unencrypted)
	}
	s.Transformer = value.NewPrefixTransformers(errors.New("the value is encrypted with a key that the hub does not have"),
		all...)
	r.current.Store(s)
	return nil
}

// TransformFromStorage implements value.Transformer.
func (r *Ring) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	return r.current.Load().TransformFromStorage(ctx, data, at)
}

// TransformToStorage implements value.Transformer.
func (r *Ring) TransformToStorage(ctx context.Context, data []byte, at value.Context) ([]byte, error) {
	return r.current.Load().TransformToStorage(ctx, data, at)
}

// Before returns a transformer that writes with other, and also reads what the ring encrypted.
func (r *Ring) Before(other value.Transformer) value.Transformer { return both{r, other} }

type both struct {
	ring *Ring
	value.Transformer
}

func (b both) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	if bytes.HasPrefix(data, []byte(valuePrefix)) {
		out, _, err := b.ring.TransformFromStorage(ctx, data, at)
		return out, true, err
	}
	return b.Transformer.TransformFromStorage(ctx, data, at)
}

// Keys returns the keys of the ring; the first one encrypts.
func (r *Ring) Keys() []Key {
	s := r.current.Load()
	keys := make([]Key, len(s.Keys))
	for i, k := range s.Keys {
		keys[i] = Key{Name: k.Name, Created: k.Created, Writes: i == 0 && !r.plain}
	}
	return keys
}

// Rotating reports whether a rotation is in progress.
func (r *Ring) Rotating() bool { return r.current.Load().Next != "" }

// Rewritten reports whether all values are encrypted with the current settings.
func (r *Ring) Rewritten() bool { return r.current.Load().Rewritten }

// Write sets the current mode of encryption. If it differs from the previous mode, all values are rewritten.
func (r *Ring) Write(ctx context.Context, mode string) error {
	was := r.current.Load().Mode
	if was == mode {
		return nil
	}
	return r.change(ctx, func(d *document) error {
		d.Mode = mode
		d.Rewritten = d.Rewritten && was == ""
		return nil
	})
}

// RewriteAll checks all values again, and rewrites those that are not encrypted with the current settings.
func (r *Ring) RewriteAll(ctx context.Context) error {
	return r.change(ctx, func(d *document) error { d.Rewritten = false; return nil })
}

// newKey returns a random key, sealed.
func (r *Ring) newKey() sealedKey {
	seed, id := make([]byte, encryptaes.MinSeedSizeExtendedNonceGCM), make([]byte, 4)
	_, _ = rand.Read(seed) // never fails
	_, _ = rand.Read(id)
	k := sealedKey{Name: "key-" + hex.EncodeToString(id), Created: time.Now().UTC().Truncate(time.Second)}
	k.Sealed = r.master[0].Seal(nil, nil, seed, []byte(k.Name))
	return k
}

// change replaces the document, unless another replica changed it in the meantime, and loads the result.
func (r *Ring) change(ctx context.Context, amend func(*document) error) error {
	s := r.current.Load()
	d := s.document
	d.Keys = slices.Clone(s.Keys)
	if err := amend(&d); err != nil {
		return err
	}
	data := text.JSON(d)
	done, err := r.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(documentKey), "=",
		s.revision)).Then(clientv3.OpPut(documentKey, data)).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("write the encryption keys: %w", err)
	case !done.Succeeded:
		_, err := r.load(ctx)
		return errors.Join(ErrBusy, err)
	}
	return r.take([]byte(data), done.Header.Revision)
}
