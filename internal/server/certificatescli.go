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

// Certificates are those of the configuration's hub, which need not run.
func Certificates(c Config, now time.Time) ([]pki.Certificate, error) {
	return pki.List(c.pkiDir(), now)
}

// RenewCertificates replaces what is named of the configuration's hub, or without names every certificate that is not
// an authority. It says whether a hub that runs must be started again for it.
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
	if err := pki.Renew(c.pkiDir(), names, now, pki.LeafLife); err != nil {
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
	return pki.ForgetOld(c.pkiDir(), now, pki.LeafLife)
}

// CreateKeys makes the pki folder of hubs that are to share an etcd, with the master key of the store. What is there
// stays.
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

// claimKeys makes a data folder that is to hold the keys a hub's, which must not run: a hub takes no folder that others
// began.
func claimKeys(c Config) (release func(), err error) {
	if err := ownedByCaller(c.DataDir, c.pkiDir()); err != nil {
		return nil, err
	}
	if c.PKIDir != "" {
		return func() {}, nil
	}
	return claim(c.DataDir)
}

// ImportKeys brings what hubs on one etcd share from a folder, such as a mounted Secret, into the pki folder of the
// configuration's hub. It returns the names of what changed. A master key that the folder lacks stays: nothing else
// reads what it sealed.
func ImportKeys(c Config, from string) (changed []string, err error) {
	required, optional := pki.Shared()
	master := filepath.Base(MasterKeyFile(""))
	if len(c.Etcd.Servers) > 0 { // each hub would make a master key of its own, and none could read what another wrote
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

// importedFile says, in a pki folder, where its keys were imported from.
func importedFile(pkiDir string) string { return filepath.Join(pkiDir, "imported-from") }

// keepsMaster refuses an import that would replace a master key by others: what it sealed in the store could not be
// read any more.
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
