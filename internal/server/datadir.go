package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// markerFile tells a data folder of ours from any other, and is what its user holds a lock on.
const markerFile = ".argosy-hub"

// claim makes the folder ours, or says why it cannot be: not writable, somebody else's, or in use. The claim
// ends with the process, or with release.
func claim(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder %s cannot be made (%w): choose another with --data-dir", dir, reason(err))
	}
	marker := filepath.Join(dir, markerFile)
	if _, err := os.Lstat(marker); errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("data folder %s cannot be read (%w): choose another with --data-dir", dir, reason(err))
		}
		for _, e := range entries {
			if e.Name() != "lost+found" { // what a freshly made file system holds
				return nil, fmt.Errorf("data folder %s holds %q and was not made by argosy: choose an empty one with --data-dir", dir, e.Name())
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
		return nil, fmt.Errorf("data folder %s cannot be locked (%w): choose one on a local file system with --data-dir", dir, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it holds keys
		f.Close()
		return nil, fmt.Errorf("data folder %s cannot be made private (%w): choose another with --data-dir", dir, reason(err))
	}
	return func() { _ = f.Close() }, nil
}

// reason is err without the path, which the sentence around it already has.
func reason(err error) error {
	if pathErr := new(os.PathError); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
