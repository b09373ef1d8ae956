package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/argosy-io/argosy/internal/server/pki"
)

const masterBytes = 32

// masterKey seals the keys of a ring.
type masterKey struct {
	text string // in base64, as its file has it
	cipher.AEAD
}

// masterFile has the master key, a line in base64. While one is replaced it has two, the new one first: so at each
// moment the file opens every key in the store, wherever a crash comes between the two.
type masterFile struct {
	path string
	mu   sync.Mutex
	keys []*masterKey
}

// oldMasterName is what a master key that was replaced is kept as, with the time: backups of before need it.
const oldMasterName = "encryption-until-%s.key"

func readMaster(path string) (*masterFile, error) {
	f := &masterFile{path: path}
	return f, f.read()
}

// read takes the keys as the file has them now.
func (f *masterFile) read() error {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read the master key: %w", err)
	}
	var keys []*masterKey
	for line := range strings.Lines(string(bytes.TrimSpace(data))) {
		line = strings.TrimSpace(line)
		i := slices.IndexFunc(f.keys, func(k *masterKey) bool { return k.text == line })
		if i >= 0 { // the same key stays the same value
			keys = append(keys, f.keys[i])
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != masterBytes {
			return fmt.Errorf("%s is damaged: it is not %d bytes in base64; restore it from a backup of the pki folder", f.path,
				masterBytes)
		}
		k, err := newMasterKey(raw)
		if err != nil {
			return err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return fmt.Errorf("%s is damaged: it is empty; restore it from a backup of the pki folder", f.path)
	}
	f.keys = keys
	return nil
}

// EnsureMaster makes a master key for a store to come, unless there is one.
func EnsureMaster(path string) error {
	_, err := readMaster(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = makeMaster(path)
	}
	return err
}

func makeMaster(path string) (*masterFile, error) {
	f := &masterFile{path: path}
	_, err := f.add()
	return f, err
}

func newMasterKey(raw []byte) (*masterKey, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &masterKey{base64.StdEncoding.EncodeToString(raw), aead}, nil
}

// add writes a new key before the others, and returns it.
func (f *masterFile) add() (*masterKey, error) {
	raw := make([]byte, masterBytes)
	if _, err := rand.Read(raw); err != nil {
		return nil, fmt.Errorf("create the master key: %w", err)
	}
	k, err := newMasterKey(raw)
	if err != nil {
		return nil, err
	}
	keys := append([]*masterKey{k}, f.keys...)
	if err := writeMaster(f.path, keys); err != nil {
		return nil, fmt.Errorf("create the master key: %w", err)
	}
	f.keys = keys
	return k, nil
}

func writeMaster(path string, keys []*masterKey) error {
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.text + "\n")
	}
	return pki.WriteFile(path, []byte(text.String()), 0o600)
}

// next is a key that seals none of a ring that used sealed, for one that is to replace it. One that was made for that
// and never used is taken again: whether it was used is not always known, as when the store did not answer.
func (f *masterFile) next(used *masterKey) (*masterKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[0] != used {
		return f.keys[0], nil
	}
	return f.add()
}

// unseal opens a sealed key, and says with which master key. The file is read again where none opens it: somebody may
// have brought a new one.
func (f *masterFile) unseal(s sealedKey) (seed []byte, by *masterKey, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range 2 {
		for _, k := range f.keys {
			n := k.NonceSize()
			if len(s.Sealed) < n {
				return nil, nil, fmt.Errorf("key %s is truncated", s.Name)
			}
			if seed, err := k.Open(nil, s.Sealed[:n], s.Sealed[n:], []byte(s.Name)); err == nil {
				return seed, k, nil
			}
		}
		if err := f.read(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("key %s %w with %s", s.Name, errSealed, f.path)
}

// forget moves the keys after the first into a file of their own, once the first alone seals the ring.
func (f *masterFile) forget(used []*masterKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) < 2 || slices.ContainsFunc(used, func(k *masterKey) bool { return k != f.keys[0] }) {
		return nil
	}
	old := filepath.Join(filepath.Dir(f.path), fmt.Sprintf(oldMasterName, time.Now().UTC().Format("20060102T150405Z")))
	if err := writeMaster(old, f.keys[1:]); err != nil {
		return fmt.Errorf("keep the old master key: %w", err)
	}
	if err := writeMaster(f.path, f.keys[:1]); err != nil {
		return fmt.Errorf("remove the old master key: %w", err)
	}
	f.keys = f.keys[:1]
	return nil
}

// OldMasterKeys are the names of the files beside a master key that have those of before.
func OldMasterKeys(path string) []string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), fmt.Sprintf(oldMasterName, "*")))
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return files
}
