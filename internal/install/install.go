// Package install installs the hub as a service and uninstalls it: binary, configuration, systemd unit, system user,
// data folder and shell completion. It records the files it wrote, and never replaces or removes others. The caller
// decides the content of the configuration.
package install

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/server/pki"
)

// Paths of installed files. Software of an administrator belongs in /usr/local and /etc. Shells find completions there.
const (
	BinaryPath = "/usr/local/bin/argosy"
	ConfigPath = "/etc/argosy/config.yaml"
	UnitPath   = "/etc/systemd/system/" + unitName
	// DataDir is the default data directory of an installed hub.
	DataDir = "/var/lib/argosy"

	// DefaultUser is the default system user of a hub.
	DefaultUser = "argosy"

	usersPath  = "/etc/sysusers.d/argosy.conf"
	recordPath = "/usr/local/share/argosy/installed.json"
	unitName   = "argosy.service"
)

// completionPaths are the paths where each shell finds the completion of a command.
var completionPaths = map[string]string{
	"bash": "/usr/local/share/bash-completion/completions/argosy",
	"zsh":  "/usr/local/share/zsh/site-functions/_argosy",
	"fish": "/usr/local/share/fish/vendor_completions.d/argosy.fish",
}

// Options of an installation.
type Options struct {
	// Root is the folder to install below. If it is not "/", Install writes files and runs no command.
	Root string
	// Binary is the file to install as BinaryPath.
	Binary string
	// Config is the text of the configuration file. An existing file is kept unless Reconfigure is set.
	Config      []byte
	Reconfigure bool
	// User is the system user of the hub. Default: the user of the last installation, or else DefaultUser.
	User string
	// Unit has the permissions in the systemd unit.
	Unit Unit
	// Completions are the scripts by shell: bash, zsh or fish.
	Completions map[string][]byte
	// Force replaces files that Install did not write or that users changed.
	Force bool
	// NoStart leaves the unit as it is: neither enabled nor started.
	NoStart bool
	// DryRun shows everything and changes nothing.
	DryRun bool
	// Confirm is called after all checks and before the first change. An error stops the installation. It may be nil.
	Confirm func() error
	// System runs commands on this machine.
	System System
}

// file is a file to install.
type file struct {
	path string
	mode fs.FileMode
	// data is its content. If it is nil, the file is a copy of source.
	data   []byte
	source string
	// config is true for the configuration file: an edited one is kept.
	config bool
}

func (f file) open() (io.ReadCloser, error) {
	if f.source != "" {
		return os.Open(f.source)
	}
	return io.NopCloser(bytes.NewReader(f.data)), nil
}

func (f file) digest() (string, error) {
	r, err := f.open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	return digest(r)
}

func digest(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// files returns the files to install, in the order of writing.
func (o *Options) files() []file {
	all := []file{
		{path: BinaryPath, mode: 0o755, source: o.Binary},
		{path: ConfigPath, mode: 0o644, data: o.Config, config: true},
		{path: usersPath, mode: 0o644, data: sysusers(o.User, o.Unit.DataDir)},
		{path: UnitPath, mode: 0o644, data: o.Unit.text(o.User)},
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if text := o.Completions[shell]; text != nil {
			all = append(all, file{path: completionPaths[shell], mode: 0o644, data: text})
		}
	}
	return all
}

// fate is what Install does with a file or folder.
type fate string

const (
	created   fate = "created"
	updated   fate = "updated"
	unchanged fate = "unchanged"
	kept      fate = "kept"
)

// step is a file with its fate.
type step struct {
	file
	fate fate
	// has is the digest of the existing file if Install wrote it; digest is the digest of the new file.
	has, digest string
}

// Install installs the hub and prints each step to out. It checks everything before the first change. It is idempotent.
func Install(o Options, out io.Writer) error {
	was, err := readRecord(o.Root)
	if err != nil {
		return err
	}
	o.User = cmp.Or(o.User, was.RunsAs, was.User, DefaultUser)
	folders, err := planFolders(&o) // which the unit names
	if err != nil {
		return err
	}
	steps, err := plan(&o, was)
	if err != nil {
		return err
	}
	if o.DryRun {
		return show(&o, steps, folders, out)
	}
	if o.live() && os.Geteuid() != 0 {
		return errors.New("only root may install on this machine: use sudo, or install into another root folder with --root")
	}
	if o.Confirm != nil {
		if err := o.Confirm(); err != nil {
			return err
		}
	}

	// The record comes first, so that uninstall knows the files of an interrupted installation.
	now := record{DataDir: o.Unit.DataDir, OwnFolders: slices.Concat(was.OwnFolders, o.Unit.OwnFolders, o.Unit.logs),
		User: was.User, RunsAs: o.User,
		Folders: slices.Clone(was.Folders), Files: map[string]string{}, Coming: map[string]string{}}
	maps.Copy(now.Files, was.Files)
	for _, s := range steps {
		if s.has != "" {
			now.Files[s.path] = s.has
		}
		if s.fate == created || s.fate == updated {
			now.Coming[s.path] = s.digest
		}
		now.Folders = append(now.Folders, missing(o.Root, filepath.Dir(s.path))...)
	}
	now.Folders = append(now.Folders, missing(o.Root, filepath.Dir(recordPath))...)
	if now.User == "" && o.live() && !o.System.hasUser(o.User) {
		now.User = o.User
	}
	if err := now.write(o.Root); err != nil {
		return err
	}
	for _, s := range steps {
		fmt.Fprintf(out, "%-10s %s\n", s.fate, filepath.Join(o.Root, s.path))
		if s.fate == unchanged || s.fate == kept {
			continue
		}
		if err := replace(filepath.Join(o.Root, s.path), s.file); err != nil {
			return err
		}
	}
	maps.Copy(now.Files, now.Coming)
	now.Coming = nil
	if err := now.write(o.Root); err != nil {
		return err
	}
	if err := makeUser(&o, out); err != nil {
		return err
	}
	for _, f := range folders {
		if err := f.make(&o, out); err != nil {
			return err
		}
	}
	changed := slices.ContainsFunc(steps, func(s step) bool {
		return s.fate == updated && slices.Contains([]string{BinaryPath, ConfigPath, UnitPath}, s.path)
	})
	return startUnit(&o, changed, out)
}

// live reports whether the target is this machine, not an image.
func (o *Options) live() bool { return filepath.Clean(o.Root) == "/" }

// plan decides the fate of each file. It returns an error if a file of a user would be lost.
func plan(o *Options, was record) ([]step, error) {
	var steps []step
	var foreign []string
	if err := confined(o.Root, recordPath); err != nil {
		return nil, err
	}
	for _, f := range o.files() {
		if err := confined(o.Root, f.path); err != nil {
			return nil, err
		}
		want, err := f.digest()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.source, err)
		}
		have, err := digestOf(filepath.Join(o.Root, f.path))
		s := step{file: f, digest: want}
		ours := was.wrote(f.path, have)
		if ours {
			s.has = have
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.fate = created
		case err != nil:
			return nil, err
		case have == want:
			s.fate = unchanged
		case f.config && !o.Reconfigure:
			s.fate = kept
		case ours || o.Force:
			s.fate = updated
		case f.config:
			return nil, fmt.Errorf("%s was edited; make the change in that file, or use --force to overwrite it",
				filepath.Join(o.Root, f.path))
		default:
			foreign = append(foreign, filepath.Join(o.Root, f.path))
		}
		steps = append(steps, s)
	}
	if len(foreign) > 0 {
		return nil, fmt.Errorf("%s: not written by argosy install, or changed since; move it, or replace it with --force",
			strings.Join(foreign, ", "))
	}
	return steps, nil
}

// digestOf returns the digest of the file at path.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digest(f)
}

// show prints everything that would be written and run.
func show(o *Options, steps []step, folders []folder, out io.Writer) error {
	for _, s := range steps {
		verb := map[fate]string{created: "create", updated: "update", unchanged: "leave unchanged",
			kept: "keep unchanged"}[s.fate]
		fmt.Fprintf(out, "# %s %s (mode %04o)\n", verb, filepath.Join(o.Root, s.path), s.mode)
		switch {
		case s.fate == unchanged || s.fate == kept:
		case s.source != "":
			fmt.Fprintf(out, "# a copy of %s\n", s.source)
		case strings.HasPrefix(s.path, "/etc/"):
			fmt.Fprintf(out, "%s\n", bytes.TrimRight(s.data, "\n"))
		default:
			fmt.Fprintf(out, "# %d bytes of shell completion\n", len(s.data))
		}
	}
	for _, f := range folders {
		switch path := filepath.Join(o.Root, f.path); f.fate {
		case unchanged:
			fmt.Fprintf(out, "# leave folder %s unchanged\n", path)
		case atBoot:
			fmt.Fprintf(out, "# %s\n", f.later(o))
		default:
			fmt.Fprintf(out, "# folder %s (mode 0700, owner %s)\n", path, o.User)
		}
	}
	fmt.Fprintf(out, "# record of these files: %s\n", filepath.Join(o.Root, recordPath))
	for _, line := range commands(o) {
		fmt.Fprintf(out, "# run %s\n", line)
	}
	_, err := fmt.Fprintln(out, "Dry run: nothing was changed.")
	return err
}

// replace writes f to path atomically, so that a running program at path continues.
func replace(path string, f file) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	from, err := f.open()
	if err != nil {
		return err
	}
	defer from.Close()
	return pki.Replace(path, from, f.mode)
}

// confined returns an error if a symbolic link leads out of root: an absolute link in an image would point into this
// machine.
func confined(root, path string) error {
	if root = filepath.Clean(root); root == "/" {
		return nil
	}
	at := filepath.Join(root, path)
	for at != root {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		at = filepath.Dir(at)
	}
	top, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made with what is to be in it
	}
	if err != nil {
		return err
	}
	leads, err := filepath.EvalSymlinks(at)
	if rel, relErr := filepath.Rel(top, leads); err != nil || relErr != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s contains a symbolic link that is broken or points outside of %s: replace it with a relative link that stays inside", at, root)
	}
	return nil
}

// missing returns dir and its parents that do not exist below root, the uppermost first.
func missing(root, dir string) []string {
	var all []string
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(root, dir)); err == nil {
			break
		}
		all = append([]string{dir}, all...)
	}
	return all
}
