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
// of another user, or one that is missing or that the unit hides.
func planFolders(o *Options) ([]folder, error) {
	uid, _, err := o.owner()
	inImage := err != nil && errors.Is(err, fs.ErrNotExist) && !o.live()
	switch {
	case inImage, err != nil && o.live(): // makeUser makes one
		uid = noOwner
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
		made, err := planWritable(o, dir, uid)
		if err != nil {
			return nil, err
		}
		if made {
			o.Unit.logs = append(o.Unit.logs, dir)
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

// planWritable reports whether systemd creates a folder that the hub shares with others: a new one below logDir, or one
// there that the hub owns. It returns an error for a folder that is missing or that the unit hides.
func planWritable(o *Options, dir string, uid int) (made bool, err error) {
	if within(dir, temporary...) {
		return false, fmt.Errorf("%s is temporary and not visible to the service: choose another folder", dir)
	}
	info, err := os.Stat(filepath.Join(o.Root, dir))
	inLogs := strings.HasPrefix(dir, logDir+"/")
	switch {
	case errors.Is(err, fs.ErrNotExist) && inLogs:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("the hub must write to this folder: create it, owned by the user %s, or choose one in %s: %w", o.User, logDir, err)
	}
	has, _ := info.Sys().(*syscall.Stat_t)
	return inLogs && int(has.Uid) == uid, nil // systemd would take one of another user from its owner
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
