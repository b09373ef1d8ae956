package server

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/argosy-io/argosy/internal/server/keyring"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// Certificates returns the certificates of the hub of a configuration. The hub need not run.
func Certificates(c Config, now time.Time) ([]pki.Certificate, error) {
	return pki.List(c.pkiDir(), now)
}

// RenewCertificates replaces the named certificates of the hub of a configuration; without names, every certificate
// that is not an authority. It reports whether a running hub must be restarted.
func RenewCertificates(c Config, names []string, now time.Time) (restart bool, err error) {
	if len(names) == 0 {
		names = []string{"apiserver", "admin", "front-proxy"}
	}
	if _, err := pki.List(c.pkiDir(), now); err != nil {
		return false, fmt.Errorf("%w: name the folder with --data-dir or --pki-dir", err)
	}
	if err := ownedByCaller(c.pkiDir()); err != nil {
		return false, err
	}
	if err := pki.Renew(c.pkiDir(), names, now); err != nil {
		return false, err
	}
	for _, name := range names {
		restart = restart || name == "ca" || name == "sa"
	}
	return restart, nil
}

// ForgetOldCertificates ends the trust in authorities and signing keys that were replaced.
func ForgetOldCertificates(c Config, now time.Time) error {
	if _, err := pki.List(c.pkiDir(), now); err != nil {
		return fmt.Errorf("%w: name the folder with --data-dir or --pki-dir", err)
	}
	if err := ownedByCaller(c.pkiDir()); err != nil {
		return err
	}
	return pki.ForgetOld(c.pkiDir(), now)
}

// CreateKeys creates the pki folder of hubs that will share an etcd, with the master key of the store. Existing files
// stay.
func CreateKeys(c Config, now time.Time) (dir string, err error) {
	dir = c.pkiDir()
	release, err := claimKeys(c)
	if err != nil {
		return "", err
	}
	defer release()
	if _, _, err := pki.Ensure(dir, c.hosts(), now); err != nil {
		return "", err
	}
	return dir, keyring.EnsureMaster(MasterKeyFile(dir))
}

// claimKeys locks a data folder before keys are written into it. It fails if a hub runs there: a hub accepts no folder
// that another process has started to fill.
func claimKeys(c Config) (release func(), err error) {
	if err := ownedByCaller(c.DataDir, c.pkiDir()); err != nil {
		return nil, err
	}
	if c.PKIDir != "" {
		return func() {}, nil
	}
	return claim(c.DataDir)
}

// ImportKeys copies the files that hubs on one etcd share from a folder, such as a mounted Secret, into the pki folder
// of the hub. It returns the names of the changed files. It keeps a master key that the source folder lacks, because no
// other key can decrypt what it sealed.
func ImportKeys(c Config, from string) (changed []string, err error) {
	required, optional := pki.Shared()
	master := filepath.Base(MasterKeyFile(""))
	// otherwise each hub would create its own master key, and could not read what another wrote
	if len(c.Etcd.Servers) > 0 {
		required = append(required, master)
	} else {
		optional = append(optional, master)
	}
	release, err := claimKeys(c)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.MkdirAll(c.pkiDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create the certificate folder: %w", err)
	}
	contents := map[string][]byte{}
	for _, name := range slices.Concat(required, optional) {
		data, err := os.ReadFile(filepath.Join(from, name))
		switch {
		case err == nil:
			contents[name] = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("read the keys to import: %w", err)
		case slices.Contains(required, name):
			return nil, fmt.Errorf("%s lacks %s: give a folder that `argosy certificates create` made, or the pki folder of a hub", from, name)
		}
	}
	if err := keepsMaster(c, from, contents[master]); err != nil {
		return nil, err
	}
	if err := pki.WriteFile(importedFile(c.pkiDir()), []byte(from+"\n"), 0o600); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(required, optional) {
		path := filepath.Join(c.pkiDir(), name)
		have, err := os.ReadFile(path)
		data, there := contents[name]
		switch {
		case !there && (errors.Is(err, fs.ErrNotExist) || name == master), there && err == nil && slices.Equal(have, data):
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return changed, err
		case there:
			err = pki.WriteFile(path, data, 0o600)
		default: // the old keys are forgotten
			err = os.Remove(path)
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// importedFile returns the file in a pki folder that records the source of imported keys.
func importedFile(pkiDir string) string { return filepath.Join(pkiDir, "imported-from") }

// keepsMaster rejects an import that would remove a master key: the values that it sealed in the store could not be
// decrypted any more.
func keepsMaster(c Config, from string, imported []byte) error {
	file := MasterKeyFile(c.pkiDir())
	have, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || len(imported) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the master key: %w", err)
	}
	for _, key := range bytes.Fields(have) {
		if !slices.ContainsFunc(bytes.Fields(imported), func(k []byte) bool { return bytes.Equal(k, key) }) {
			return fmt.Errorf("%s has a master key that %s lacks, and what it encrypted could not be read without it: add its line to %s there, or move the file away if the store does not need it",
				file, from, filepath.Base(file))
		}
	}
	return nil
}
