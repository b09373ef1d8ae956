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
)

// Removal has the options of an uninstallation.
type Removal struct {
	// Root is the Root of the installation.
	Root string
	// Purge deletes the data folder; nil keeps it. Confirm is called for it before the first change.
	Purge   func(dir string) error
	Confirm func(dir string) error
	// DryRun shows everything and changes nothing.
	DryRun bool
	System System
}

// Uninstall removes the unchanged files of Install. The data stays unless Purge is set.
func Uninstall(r Removal, out io.Writer) error {
	was, err := readRecord(r.Root)
	if err != nil {
		return err
	}
	if was.Files == nil {
		if r.Purge != nil {
			return fmt.Errorf("nothing is installed in %s, so the data folder is unknown: delete it manually", r.Root)
		}
		fmt.Fprintf(out, "Nothing is installed in %s.\n", r.Root)
		return nil
	}
	live := filepath.Clean(r.Root) == "/"
	data := filepath.Join(r.Root, was.DataDir)
	files, err := r.files(was)
	if err != nil {
		return err
	}
	if err := errors.Join(confined(r.Root, was.DataDir), confined(r.Root, recordPath)); err != nil {
		return err
	}
	if r.DryRun {
		return r.show(was, files, data, out)
	}
	if live && os.Geteuid() != 0 {
		return errors.New("only root may uninstall on this machine: use sudo")
	}
	if r.Purge != nil {
		if err := r.Confirm(data); err != nil {
			return err
		}
	}

	// Stop the hub before its files are removed.
	managed := live && r.System.Booted()
	if _, err := os.Lstat(filepath.Join(r.Root, UnitPath)); err == nil && managed {
		if err := r.System.Run("systemctl", "disable", "--now", unitName); err != nil {
			return fmt.Errorf("stop the hub: %w", err)
		}
		fmt.Fprintln(out, "The hub is stopped.")
	}
	if r.Purge != nil {
		if err := r.Purge(data); err != nil {
			return err
		}
		fmt.Fprintf(out, "removed    %s\n", data)
	}
	for _, f := range files {
		switch {
		case f.changed:
			fmt.Fprintf(out, "kept       %s, which was changed since\n", f.path)
		default:
			if err := os.Remove(f.path); err != nil {
				return err
			}
			fmt.Fprintf(out, "removed    %s\n", f.path)
		}
	}
	if managed {
		if err := r.System.Run("systemctl", "daemon-reload"); err != nil {
			return err
		}
	}
	left := r.left(was)
	for _, dir := range left {
		fmt.Fprintf(out, "kept       %s, which the hub owned\n", dir)
	}
	if r.Purge != nil && live {
		if err := r.removeUser(was.User, left, out); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(r.Root, recordPath)); err != nil {
		return err
	}
	// A folder comes after its parents in the list.
	for _, dir := range slices.Backward(slices.Sorted(slices.Values(was.Folders))) {
		_ = os.Remove(filepath.Join(r.Root, dir)) // others have put something there
	}
	if _, err := os.Lstat(data); err == nil {
		fmt.Fprintf(out, "The hub's data is kept in %s.\n", data)
	}
	return nil
}

// installed is a file of the record that exists.
type installed struct {
	path string
	// changed is true if a user changed the content.
	changed bool
}

// files returns the existing files of the record.
func (r *Removal) files(was record) ([]installed, error) {
	var all []installed
	for _, path := range was.paths() {
		full := filepath.Join(r.Root, path)
		if err := confined(r.Root, path); err != nil {
			return nil, err
		}
		have, err := digestOf(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, installed{full, !was.wrote(path, have)})
	}
	return all, nil
}

// left returns folders of the hub's user outside of the data folder, such as backups. They are never deleted.
func (r *Removal) left(was record) []string {
	var all []string
	for _, dir := range was.OwnFolders {
		full := filepath.Join(r.Root, dir)
		if _, err := os.Lstat(full); err == nil {
			all = append(all, full)
		}
	}
	return all
}

// removeUser removes the user that Install created. It keeps a user with remaining folders: otherwise the next user
// with the same ID would own them.
func (r *Removal) removeUser(user string, left []string, out io.Writer) error {
	if user == "" || !r.System.hasUser(user) {
		return nil
	}
	if len(left) > 0 {
		_, err := fmt.Fprintf(out, "kept       system user %s, which owns %s: delete both manually, the user with `userdel %s`\n", user, strings.Join(left, ", "), user)
		return err
	}
	if err := r.System.Run("userdel", user); err != nil {
		return fmt.Errorf("remove the system user %s: %w", user, err)
	}
	_, err := fmt.Fprintf(out, "removed    system user %s\n", user)
	return err
}

// show prints the planned removals.
func (r *Removal) show(was record, files []installed, data string, out io.Writer) error {
	for _, f := range files {
		if f.changed {
			fmt.Fprintf(out, "keep       %s, which was changed since\n", f.path)
			continue
		}
		fmt.Fprintf(out, "remove     %s\n", f.path)
	}
	for _, dir := range r.left(was) {
		fmt.Fprintf(out, "keep       %s, which the hub owns\n", dir)
	}
	verb := "keep"
	if r.Purge != nil {
		verb = "remove"
	}
	fmt.Fprintf(out, "%-10s %s\n", verb, data)
	_, err := fmt.Fprintln(out, "Dry run: nothing was changed.")
	return err
}
