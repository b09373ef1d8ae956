package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// folder is a folder that only the hub uses, with its fate.
type folder struct {
	path string
	fate fate
}

// atBoot is the fate of a folder that systemd creates, with its owner.
const atBoot fate = "at boot"

// later returns when a folder is created that Install does not create.
func (f folder) later(o *Options) string {
	return fmt.Sprintf("%s is not created: there is no user %s below %s yet; systemd creates both at boot",
		filepath.Join(o.Root, f.path), o.User, o.Root)
}

// noOwner is the ID of a user that does not exist yet.
const noOwner = -1

// planFolders decides the fate of each folder of the hub. It returns an error if the unit could not start: for a folder
// of another user, a folder that the hub may not write, or a file that it may not read.
func planFolders(o *Options) ([]folder, error) {
	uid, gid, err := o.owner()
	inImage := err != nil && errors.Is(err, fs.ErrNotExist) && !o.live()
	switch {
	case inImage, err != nil && o.live(): // makeUser makes one
		uid, gid = noOwner, noOwner
	case err != nil:
		return nil, fmt.Errorf("find the user %s: %w", o.User, err)
	}
	var all []folder
	for _, dir := range slices.Concat([]string{o.Unit.DataDir}, o.Unit.OwnFolders) {
		f, err := planFolder(o, dir, uid, inImage)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	o.Unit.logs = nil
	for _, dir := range o.Unit.Writable {
		made, err := planWritable(o, dir, uid, gid, inImage)
		if err != nil {
			return nil, err
		}
		if made {
			o.Unit.logs = append(o.Unit.logs, dir)
		}
	}
	for _, file := range o.Unit.Reads {
		if err := planRead(o, file, uid, gid, inImage); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// planFolder decides the fate of a folder that only the hub uses. An existing folder must be empty or belong to the
// hub.
func planFolder(o *Options, dir string, uid int, inImage bool) (folder, error) {
	path := filepath.Join(o.Root, dir)
	f := folder{dir, unchanged}
	if within(dir, temporary...) {
		return f, fmt.Errorf("%s is temporary and not visible to the service: choose another folder, such as %s", dir,
			DataDir)
	}
	if err := confined(o.Root, dir); err != nil {
		return f, err
	}
	if inImage {
		if !within(dir, "/var/lib") {
			return f, fmt.Errorf("the owner of %s is unknown: add the user %s to %s, or choose a folder in /var/lib with --data-dir", path, o.User, filepath.Join(o.Root, "etc/passwd"))
		}
		f.fate = atBoot
		return f, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.fate = created
		return f, nil
	case err != nil:
		return f, err
	case !info.IsDir():
		return f, fmt.Errorf("%s is not a folder: choose another", path)
	}
	has, _ := info.Sys().(*syscall.Stat_t)
	if int(has.Uid) == uid && info.Mode().Perm() == 0o700 {
		return f, nil
	}
	if filepath.Dir(dir) == "/" {
		return f, fmt.Errorf("%s is a system folder, which would be owned by %s: choose a folder inside it, such as %s", path,
			o.User, filepath.Join(dir, "argosy"))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return f, err
	}
	if len(entries) > 0 && int(has.Uid) != uid {
		return f, fmt.Errorf("%s is not owned by the user %s: change its owner with `chown -R %s: %s`, or choose another folder", path, o.User, o.User, path)
	}
	f.fate = updated
	return f, nil
}

// planWritable reports whether systemd creates a folder that the hub shares with others. It returns an error if systemd
// does not and the folder is missing or not writable for the hub.
func planWritable(o *Options, dir string, uid, gid int, inImage bool) (made bool, err error) {
	path := filepath.Join(o.Root, dir)
	if within(dir, temporary...) {
		return false, fmt.Errorf("%s is temporary and not visible to the service: choose another folder", dir)
	}
	info, err := os.Stat(path)
	if strings.HasPrefix(dir, logDir+"/") { // systemd would take one that is there from its owner
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if has, ok := ownerOf(info); ok && has == uid {
			return true, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("the hub must write to %s, which does not exist: create it, owned by the user %s, or choose a folder in %s", path, o.User, logDir)
	case err != nil:
		return false, err
	case inImage, permitted(o.Root, dir, uid, gid, 0o3):
		return false, nil
	}
	return false, fmt.Errorf("the hub must write to %s, but the user %s may not: choose a separate folder, such as %s/argosy for logs", path, o.User, logDir)
}

// planRead returns an error for a file that the service could not read.
func planRead(o *Options, file string, uid, gid int, inImage bool) error {
	if within(file, temporary...) || within(file, homes...) && !o.Unit.inHome() {
		return fmt.Errorf("%s is not visible to the service: keep files that the hub reads outside of %s, such as in /etc/argosy", file, strings.Join(slices.Concat(homes, temporary), ", "))
	}
	if _, err := os.Stat(filepath.Join(o.Root, file)); err != nil || inImage {
		return nil // the hub says what is missing
	}
	if !permitted(o.Root, file, uid, gid, 0o4) {
		first := ""
		if uid == noOwner {
			first = fmt.Sprintf("create that user with `useradd --system --user-group %s`, and ", o.User)
		}
		return fmt.Errorf("the user %[2]s may not read %[1]s: %[3]sallow it with `chgrp %[2]s` and `chmod g+r` on the file, and `chmod o+x` on its parent folders", filepath.Join(o.Root, file), o.User, first)
	}
	return nil
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	if info == nil {
		return 0, false
	}
	has, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(has.Uid), true
}

// permitted reports whether a user has the rights, as one digit of a mode, on a path, and may enter its parent
// folders.
func permitted(root, path string, uid, gid int, rights fs.FileMode) bool {
	if uid == 0 {
		return true
	}
	for at := path; ; at, rights = filepath.Dir(at), 0o1 {
		info, err := os.Stat(filepath.Join(root, at))
		if err != nil {
			return false
		}
		has, _ := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		switch {
		case int(has.Uid) == uid:
			mode >>= 6
		case int(has.Gid) == gid:
			mode >>= 3
		}
		if mode&rights != rights {
			return false
		}
		if at == "/" || at == "." {
			return true
		}
	}
}

// make creates the folder. The hub's user owns it.
func (f folder) make(o *Options, out io.Writer) error {
	path := filepath.Join(o.Root, f.path)
	if f.fate == atBoot {
		_, err := fmt.Fprintln(out, f.later(o))
		return err
	}
	fmt.Fprintf(out, "%-10s %s\n", f.fate, path)
	if f.fate == unchanged {
		return nil
	}
	uid, gid, err := o.owner()
	if err != nil {
		return fmt.Errorf("find the user %s: %w", o.User, err)
	}
	if f.fate == created {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.MkdirAll(path, 0o700)); err != nil {
			return err
		}
	}
	return errors.Join(os.Chown(path, uid, gid), os.Chmod(path, 0o700))
}
