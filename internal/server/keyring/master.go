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

	"github.com/argosy-io/argosy/internal/server/pki"
)

const masterBytes = 32

// masterKeys are the keys in the file of the master key, one per line in base64. The first seals new keys of the ring.
// Users add a line before it to replace it.
type masterKeys []cipher.AEAD

func readMaster(path string) (masterKeys, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	var keys masterKeys
	for _, line := range bytes.Fields(data) {
		raw, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(raw) != masterBytes {
			return nil, fmt.Errorf("%s is damaged: it is not %d bytes in base64; restore it from a backup of the pki folder",
				path, masterBytes)
		}
		k, err := newMasterKey(raw)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s is damaged: it is empty; restore it from a backup of the pki folder", path)
	}
	return keys, nil
}

// EnsureMaster creates a master key for a future store, unless there is one.
func EnsureMaster(path string) error {
	_, err := readMaster(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = makeMaster(path)
	}
	return err
}

func makeMaster(path string) (masterKeys, error) {
	raw := make([]byte, masterBytes)
	_, _ = rand.Read(raw) // never fails
	k, err := newMasterKey(raw)
	if err != nil {
		return nil, err
	}
	if err := pki.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(raw)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("create the master key: %w", err)
	}
	return masterKeys{k}, nil
}

func newMasterKey(raw []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// unseal opens a sealed key with the master key that sealed it.
func (m masterKeys) unseal(s sealedKey) ([]byte, error) {
	for _, k := range m {
		if seed, err := k.Open(nil, nil, s.Sealed, []byte(s.Name)); err == nil {
			return seed, nil
		}
	}
	return nil, fmt.Errorf("key %s %w with the hub's master key", s.Name, errSealed)
}
