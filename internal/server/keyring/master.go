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
	text string // in base64, as in the file
	cipher.AEAD
}

// masterFile is the file of the master key, a line in base64. During a replacement it has two keys, the new one first.
// So the file opens every key in the store at each moment, even after a crash.
type masterFile struct {
	path string
	mu   sync.Mutex
	keys []*masterKey
}

// oldMasterName is the file name of a replaced master key, with the time. Older backups need it.
const oldMasterName = "encryption-until-%s.key"

func readMaster(path string) (*masterFile, error) {
	f := &masterFile{path: path}
	return f, f.read()
}

// read reads the keys from the file.
func (f *masterFile) read() error {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read the master key: %w", err)
	}
	var keys []*masterKey
	for line := range strings.Lines(string(bytes.TrimSpace(data))) {
		line = strings.TrimSpace(line)
		i := slices.IndexFunc(f.keys, func(k *masterKey) bool { return k.text == line })
		if i >= 0 { // keep the value of a known key
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

// EnsureMaster creates a master key for a future store, unless there is one.
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

// next returns a master key that replaces used. It returns the first key of the file if that is another one: an earlier
// attempt added it, and a lost answer of the store may hide whether it sealed a key.
func (f *masterFile) next(used *masterKey) (*masterKey, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[0] != used {
		return f.keys[0], nil
	}
	return f.add()
}

// unseal opens a sealed key, and returns the master key that opened it. If none does, it reads the file again, because
// a user may have replaced it.
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

// OldMasterKeys returns the names of the files of replaced master keys.
func OldMasterKeys(path string) []string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), fmt.Sprintf(oldMasterName, "*")))
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	return files
}
