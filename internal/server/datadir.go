package server

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// markerFile marks a folder as a data folder of a hub. A running hub has a lock on it.
const markerFile = ".argosy-hub"

// claim locks the folder for this hub. It returns an error if the folder is not writable, belongs to another program,
// or is in use. The lock ends with the process, or with release.
func claim(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder %s cannot be created (%w): choose another with --data-dir", dir, reason(err))
	}
	marker := filepath.Join(dir, markerFile)
	if _, err := os.Lstat(marker); errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("data folder %s cannot be read (%w): choose another with --data-dir", dir, reason(err))
		}
		for _, e := range entries {
			if e.Name() != "lost+found" { // what a freshly made file system holds
				return nil, fmt.Errorf("data folder %s contains %q and was not created by argosy: choose an empty one with --data-dir", dir, e.Name())
			}
		}
	}
	f, err := os.OpenFile(marker, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s cannot be written (%w): choose another with --data-dir", dir, reason(err))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is in use by another argosy: stop that one, or choose another folder with --data-dir", dir)
		}
		return nil, fmt.Errorf("data folder %s cannot be locked (%w): choose one on a local file system with --data-dir", dir,
			err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it holds keys
		f.Close()
		return nil, fmt.Errorf("data folder %s cannot be made private (%w): choose another with --data-dir", dir, reason(err))
	}
	return func() { _ = f.Close() }, nil
}

// effectiveUser returns the user id of this process.
var effectiveUser = os.Geteuid

// ownedByCaller rejects writing into a folder of another user. If root wrote into the folder of an installed hub, the
// hub could not read its keys and its store any more. A folder of root that others may write, such as the root of a
// volume, is accepted.
func ownedByCaller(dirs ...string) error {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue // the caller that needs it returns a clear error
		}
		has, ok := info.Sys().(*syscall.Stat_t)
		if !ok || has.Uid == 0 || int(has.Uid) == effectiveUser() {
			continue
		}
		owner := strconv.Itoa(int(has.Uid))
		if u, err := user.LookupId(owner); err == nil {
			owner = u.Username
		}
		return fmt.Errorf("%s belongs to the user %s, who could not read what another user writes there: run the command as that user, `sudo -u %s argosy ...`, for an installed hub with --config /etc/argosy/config.yaml", dir, owner, owner)
	}
	return nil
}

// Purge deletes the data folder of a hub that does not run, with its store and keys. It rejects other folders, and
// ignores a missing one.
func Purge(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	release, err := claim(dir)
	if err != nil {
		return err
	}
	defer release()
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("delete the data folder: %w", err)
	}
	return nil
}

// reason is err without the path, which the sentence around it already has.
func reason(err error) error {
	if pathErr := new(os.PathError); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
