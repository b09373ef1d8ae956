// Package backup writes and reads backups: one file with the store at one moment, and the keys. Callers decide when
// backups are taken and how many are kept.
package backup

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// format is the version of the file format that this version writes and reads.
const format = 1

// The parts of a backup: first its table of contents, then the store, and in folders the keys.
const (
	manifestName = "manifest.json"
	snapshotName = "snapshot.db"
	// PKI and Data are the folders of the hub that the keys are from.
	PKI  = "pki"
	Data = "data"
)

// Manifest describes a backup.
type Manifest struct {
	Format int `json:"format"`
	// Hub is the UID of the hub's namespace kube-system, which lasts as long as its store.
	Hub string `json:"hub,omitempty"`
	// Writer is the version of argosy that wrote the store; nil if not recorded.
	Writer *upkeep.Writer `json:"writer,omitempty"`
	// Revision is the store's, Time when it was that, by the hub's clock.
	Revision int64     `json:"revision"`
	Time     time.Time `json:"time"`
	// Objects is the number of objects in the store.
	Objects int `json:"objects"`
	// Keys reports whether the hub's keys are in the backup.
	Keys bool `json:"keys"`
	// Parts are all others, in their order.
	Parts []Part `json:"parts"`
}

// Part is one file in a backup.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Source is the hub that a backup is taken of.
type Source struct {
	Store *etcd.Client
	// Writer is the recorded writer of the store.
	Writer *upkeep.Writer
	// PKIDir and DataDir are the folders with the hub's keys; both empty leaves the keys out.
	PKIDir, DataDir string
}

// maxKeys bounds the total size of the folders with keys. The hub writes about a dozen small files, but a user may name
// a folder with others, and each backup would contain these.
const maxKeys = 32 << 20

// Name returns the file of a backup.
func (m Manifest) Name() string {
	return fmt.Sprintf("argosy-%s-r%d.tar.gz", m.Time.UTC().Format("20060102T150405Z"), m.Revision)
}

// Parse reads what Name wrote.
func Parse(name string) (taken time.Time, revision int64, ok bool) {
	var stamp string
	rest, ok := strings.CutPrefix(name, "argosy-")
	if ok {
		stamp, rest, ok = strings.Cut(rest, "-r")
	}
	if !ok || !strings.HasSuffix(rest, ".tar.gz") {
		return taken, 0, false
	}
	taken, err := time.Parse("20060102T150405Z", stamp)
	if err != nil {
		return taken, 0, false
	}
	if n, err := fmt.Sscanf(rest, "%d.tar.gz", &revision); err != nil || n != 1 {
		return taken, 0, false
	}
	return taken, revision, true
}

// List returns the backups in a folder, the newest first; none if there is no folder.
func List(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if _, _, ok := Parse(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	// Revisions never go back, clocks do.
	slices.SortFunc(names, func(a, b string) int {
		_, ra, _ := Parse(filepath.Base(a))
		_, rb, _ := Parse(filepath.Base(b))
		return cmp.Or(cmp.Compare(rb, ra), strings.Compare(b, a))
	})
	return names
}

// partial is the prefix of files that are being written.
const partial = ".argosy-partial-"

// Clean removes the files of incomplete backups. No backup may be running there.
func Clean(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, partial+"*")) // fails only for a malformed pattern
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// Write writes a backup into a new file in dir, or at to if set, and returns its path once it is complete and synced.
// Only the user can read the file. It never replaces a file.
func Write(ctx context.Context, s Source, dir, to string, now time.Time) (_ string, _ Manifest, err error) {
	if to != "" {
		dir = filepath.Dir(to)
		if _, err := os.Lstat(to); err == nil {
			return "", Manifest{}, fmt.Errorf("%s already exists: choose another name with --to", to)
		}
	}
	// 1. The store, which can be counted and summed up only once it is in a file.
	db, err := os.CreateTemp(dir, partial) // 0600
	if err != nil {
		return "", Manifest{}, fmt.Errorf("create a file in %s: %w", dir, reason(err))
	}
	defer os.Remove(db.Name())
	defer db.Close()
	if err := etcd.Snapshot(ctx, s.Store, db); err != nil {
		return "", Manifest{}, err
	}
	contents, err := etcd.Inspect(db.Name())
	if err != nil {
		return "", Manifest{}, err
	}
	m := Manifest{Format: format, Writer: s.Writer, Revision: contents.Revision, Objects: contents.Keys,
		Time: now.UTC().Truncate(time.Second), Keys: s.PKIDir != ""}
	if m.Hub, err = etcd.NamespaceUID(ctx, s.Store, "kube-system"); err != nil {
		return "", Manifest{}, err
	}

	// 2. What is in it.
	from := map[string]string{snapshotName: db.Name()}
	names := []string{snapshotName}
	keys, err := s.keys()
	if err != nil {
		return "", Manifest{}, err
	}
	for _, k := range keys {
		from[k.name] = k.file
		names = append(names, k.name)
	}
	for _, name := range names {
		p, err := partOf(name, from[name])
		if err != nil {
			return "", Manifest{}, err
		}
		m.Parts = append(m.Parts, p)
	}

	// 3. The file, at its place when it is whole.
	out, err := os.CreateTemp(dir, partial)
	if err != nil {
		return "", Manifest{}, fmt.Errorf("create a file in %s: %w", dir, reason(err))
	}
	defer func() {
		_ = out.Close()
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	if err := m.pack(out, from); err != nil {
		return "", Manifest{}, fmt.Errorf("write %s: %w", out.Name(), reason(err))
	}
	if err := out.Sync(); err != nil {
		return "", Manifest{}, fmt.Errorf("write %s: %w", out.Name(), reason(err))
	}
	if to == "" {
		to = filepath.Join(dir, m.Name())
	}
	if err := os.Link(out.Name(), to); err != nil { // unlike a rename, a link never replaces a file
		return "", Manifest{}, fmt.Errorf("write %s: %w", to, reason(err))
	}
	_ = os.Remove(out.Name())
	return to, m, pki.SyncFolder(dir)
}

// key is a file that a hub cannot be without.
type key struct{ name, file string }

// keys returns the files of the pki folder, and those of the data folder that are neither the store nor generated.
func (s Source) keys() ([]key, error) {
	var all []key
	size := int64(0)
	take := func(name, file string, info fs.FileInfo) error {
		if size += info.Size(); size > maxKeys {
			return fmt.Errorf("the files up to %s are larger than %d MiB in total: keep only keys in that folder", file,
				maxKeys>>20)
		}
		all = append(all, key{name, file})
		return nil
	}
	if s.PKIDir != "" {
		err := filepath.WalkDir(s.PKIDir, func(file string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			below, err := filepath.Rel(s.PKIDir, file)
			if err != nil {
				return err
			}
			return take(path.Join(PKI, filepath.ToSlash(below)), file, info)
		})
		if err != nil {
			return nil, fmt.Errorf("read the hub's keys (leave them out with --without-keys): %w", err)
		}
	}
	if s.DataDir != "" {
		entries, err := os.ReadDir(s.DataDir)
		if err != nil {
			return nil, fmt.Errorf("read the hub's data folder: %w", reason(err))
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isKey(e.Name()) {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			if err := take(path.Join(Data, e.Name()), filepath.Join(s.DataDir, e.Name()), info); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// isKey reports whether a file of a data folder is a key, such as that of encryption at rest.
func isKey(name string) bool {
	return strings.HasSuffix(name, ".key") || strings.HasPrefix(name, "encryption")
}

func partOf(name, file string) (Part, error) {
	f, err := os.Open(file)
	if err != nil {
		return Part{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return Part{}, fmt.Errorf("read %s: %w", file, reason(err))
	}
	return Part{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// pack writes the archive. A file that changes meanwhile is an error, since its sum is written already.
func (m Manifest) pack(w io.Writer, from map[string]string) error {
	buffered := bufio.NewWriterSize(w, 1<<20)
	zipped, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	contents, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	add := func(name string, size int64, r io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: m.Time,
			Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := io.Copy(archive, r)
		return err
	}
	if err := add(manifestName, int64(len(contents)), strings.NewReader(string(contents))); err != nil {
		return err
	}
	for _, p := range m.Parts {
		f, err := os.Open(from[p.Name])
		if err != nil {
			return err
		}
		sum := sha256.New()
		err = add(p.Name, p.Size, io.TeeReader(f, sum))
		_ = f.Close()
		if err == nil && hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
			err = fmt.Errorf("%s changed while it was read: take the backup again", from[p.Name])
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close(), buffered.Flush())
}

// Unpack reads and checks the whole backup, and writes its files below dir, readable only by the user. After an error,
// do not use the files.
func Unpack(file, dir string) (Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return Manifest{}, fmt.Errorf("open the backup: %w", err)
	}
	defer f.Close()
	m, err := unpack(bufio.NewReaderSize(f, 1<<20), dir)
	if err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}
	return m, nil
}

// maxManifest bounds what is read before a file is known to be a backup: any archive can be named, and a small one can
// unpack to terabytes.
const maxManifest = 4 << 20

func unpack(r io.Reader, dir string) (m Manifest, err error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return m, fmt.Errorf("it is not an argosy backup, or its header is damaged: %w", err)
	}
	archive := tar.NewReader(zipped)
	head, err := archive.Next()
	if err != nil || head.Name != manifestName {
		return m, fmt.Errorf("it is not an argosy backup: it does not begin with %s", manifestName)
	}
	if err := json.NewDecoder(io.LimitReader(archive, maxManifest)).Decode(&m); err != nil {
		return m, fmt.Errorf("its %s is damaged: %w", manifestName, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("it has format %d, and this version reads %d: use the version of argosy that wrote it, or a later one", m.Format, format)
	}
	for i, p := range m.Parts {
		if !filepath.IsLocal(filepath.FromSlash(p.Name)) || p.Name != path.Clean(p.Name) ||
			i == 0 != (p.Name == snapshotName) || i > 0 && !strings.HasPrefix(p.Name, PKI+"/") &&
			!strings.HasPrefix(p.Name, Data+"/") {
			return m, fmt.Errorf("unexpected part %q", p.Name)
		}
		head, err := archive.Next()
		if err != nil {
			return m, fmt.Errorf("part %s is missing: the file is truncated or damaged: %w", p.Name, err)
		}
		if head.Name != p.Name || head.Size != p.Size || head.Typeflag != tar.TypeReg {
			return m, fmt.Errorf("found part %q of %d bytes, expected %q of %d bytes", head.Name, head.Size, p.Name, p.Size)
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(p.Name)), archive, p); err != nil {
			return m, err
		}
	}
	if len(m.Parts) == 0 {
		return m, errors.New("it is empty")
	}
	// The end has a checksum, too.
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return m, errors.New("unexpected data after its last part")
	}
	if _, err := io.Copy(io.Discard, zipped); err != nil {
		return m, fmt.Errorf("its end is damaged: %w", err)
	}
	return m, nil
}

func write(file string, r io.Reader, p Part) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), r)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("part %s: %w", p.Name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("part %s is damaged: its sha256 is %s, expected %s", p.Name, got, p.SHA256)
	}
	return nil
}

// Snapshot returns the file of the store below a folder that a backup was unpacked to.
func Snapshot(dir string) string { return filepath.Join(dir, snapshotName) }

// Exposed checks the permissions of a folder. It returns an error if other users could replace files, and a note if
// they can list names.
func Exposed(dir string) (note string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("backup folder: %w", err)
	}
	switch mode := info.Mode(); {
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", dir)
	case mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0:
		return "", fmt.Errorf("%s is writable by other users (mode %04o), who could replace the backup; a backup contains keys and all Secrets. "+
			"Run chmod go-w on it, or choose another folder with --to", dir, mode.Perm())
	case mode.Perm()&0o055 != 0:
		return fmt.Sprintf("%s is readable by other users (mode %04o); the backup itself is readable only by its owner", dir,
			mode.Perm()), nil
	}
	return "", nil
}

// Free returns the free and total space of the file system of a folder.
func Free(dir string) (free, total int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("get the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}

// reason is err without the path, which the sentence around it already has.
func reason(err error) error {
	if pathErr := new(fs.PathError); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	if linkErr := new(os.LinkError); errors.As(err, &linkErr) {
		return linkErr.Err
	}
	return err
}
