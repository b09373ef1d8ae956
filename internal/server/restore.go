package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/server/backup"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
)

const (
	// restoringDir is in a data folder while a backup is restored into it.
	restoringDir = ".restoring"
	// restoredFile is in a data folder from a restore until the hub has announced the restore to its loops.
	restoredFile = "restored.json"
)

// open connects to the store of a configuration: of the hub that runs on the data folder, or an external one. If no hub
// runs, it opens the files in the folder, and locks them until close.
func (c *Config) open(ctx context.Context) (store *etcd.Client, close func(), err error) {
	if e := c.Etcd; len(e.Servers) > 0 {
		store, err = etcd.Connect(ctx, e.Servers, e.CAFile, e.CertFile, e.KeyFile)
		if err != nil {
			return nil, nil, err
		}
		return store, func() { _ = store.Close() }, nil
	}
	if err := ownedByCaller(c.DataDir); err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(c.DataDir, "etcd")
	if store, err = etcd.Dial(ctx, dir); err == nil {
		return store, func() { _ = store.Close() }, nil
	}
	if !etcd.HasData(dir) {
		return nil, nil, fmt.Errorf("data folder %s does not contain the store of a hub: give the hub's data folder with --data-dir, or an external etcd with --etcd-servers", c.DataDir)
	}
	release, claimed := claim(c.DataDir)
	if claimed != nil {
		return nil, nil, fmt.Errorf("a hub is running on %s, but its store is not responding: %w", c.DataDir, err)
	}
	if err := checkFolder(c.DataDir); err != nil {
		release()
		return nil, nil, err
	}
	h := &Hub{config: *c, out: io.Discard}
	s, err := etcd.Start(ctx, etcd.Options{Dir: dir, Quota: c.Etcd.Quota.Value()})
	if err != nil {
		release()
		return nil, nil, h.broken(err)
	}
	if store, err = etcd.Dial(ctx, dir); err != nil {
		s.Stop()
		release()
		return nil, nil, err
	}
	return store, func() {
		_ = store.Close()
		s.Stop()
		release()
	}, nil
}

func (c *Config) pkiDir() string {
	if c.PKIDir != "" {
		return c.PKIDir
	}
	return filepath.Join(c.DataDir, "pki")
}

// PKI returns the folder of the hub's keys.
func (c *Config) PKI() string { return c.pkiDir() }

// Backup writes a backup of the hub to a folder or file, and returns the path. If to is empty, the hub's own folder of
// backups is used.
func Backup(ctx context.Context, c Config, to string, keys bool, warn io.Writer) (string, backup.Manifest, error) {
	if err := c.Validate(); err != nil {
		return "", backup.Manifest{}, err
	}
	store, close, err := c.open(ctx)
	if err != nil {
		return "", backup.Manifest{}, err
	}
	defer close()

	// 1. Where it goes, and who may look there.
	dir, file := c.BackupDir(), ""
	if to == "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", backup.Manifest{}, fmt.Errorf("backup folder: %w", err)
		}
	} else if info, err := os.Stat(to); err == nil && info.IsDir() {
		dir = to
	} else {
		dir, file = filepath.Dir(to), to
	}
	note, err := backup.Exposed(dir)
	if err != nil {
		return "", backup.Manifest{}, err
	}
	if note != "" {
		fmt.Fprintln(warn, "Note:", note)
	}
	state, err := etcd.Look(ctx, store)
	if err != nil {
		return "", backup.Manifest{}, err
	}
	free, _, err := backup.Free(dir)
	if err != nil {
		return "", backup.Manifest{}, err
	}
	if err := upkeep.Room(state.InUse, free); err != nil {
		return "", backup.Manifest{}, fmt.Errorf(
			"not enough space for a backup in %s: %w: free some space, or choose another folder with --to", dir, err)
	}

	// 2. The backup.
	if file := c.Encryption.ProviderConfig; file != "" && keys {
		fmt.Fprintf(warn, "Note: Secrets are encrypted as configured in %s: that file, and the keys that it refers to, are not in the backup\n", file)
	}
	source := backup.Source{Store: store}
	if source.Writer, err = storeWriter(ctx, store); err != nil {
		return "", backup.Manifest{}, err
	}
	if keys {
		source.PKIDir, source.DataDir = c.pkiDir(), c.DataDir
		if _, err := os.Stat(source.PKIDir); err != nil {
			return "", backup.Manifest{}, fmt.Errorf(
				"the hub's keys: %w: name their folder with --pki-dir, or leave them out with --without-keys", err)
		}
	}
	return backup.Write(ctx, source, dir, file, time.Now())
}

// restored is what a hub reads at its first start after a restore.
type restored struct {
	File     string          `json:"file"`
	At       time.Time       `json:"at"`
	Manifest backup.Manifest `json:"manifest"`
}

// Restore creates the data folder of a hub from a backup; the folder must be empty. Unless accepted is true, the hub
// then does not change objects in member clusters that differ from the backup, until a user accepts it.
func Restore(c Config, file string, accepted bool) (m backup.Manifest, err error) {
	if err := c.Validate(); err != nil {
		return m, err
	}
	if len(c.Etcd.Servers) > 0 {
		return m, errors.New("a backup can be restored only into a data folder: for an external etcd, unpack it with tar, and restore its snapshot.db with etcdutl --bump-revision 1000000000 --mark-compacted")
	}
	if err := ownedByCaller(c.DataDir, c.pkiDir()); err != nil {
		return m, err
	}
	release, err := claim(c.DataDir)
	if err != nil {
		return m, err
	}
	defer release()
	if err := onlyIn(c.DataDir, markerFile, "lost+found"); err != nil {
		return m, fmt.Errorf("data folder %s %w: a backup is restored into an empty folder; choose another with --data-dir",
			c.DataDir, err)
	}

	// 1. Write everything into another folder, so that an interrupted restore has no effect.
	aside := filepath.Join(c.DataDir, restoringDir)
	if err := os.Mkdir(aside, 0o700); err != nil {
		return m, err
	}
	begun := false
	defer func() {
		if err != nil && begun {
			// What is in place is no whole hub, and without its store would begin as an empty one: this has a start refuse.
			err = fmt.Errorf("%w: the restore did not complete; empty %s and %s, and restore again", err, c.DataDir, c.pkiDir())
			return
		}
		if cleaned := os.RemoveAll(aside); err == nil {
			err = cleaned
		}
	}()
	if m, err = backup.Unpack(file, aside); err != nil {
		return m, err
	}
	if m.Writer != nil {
		if err := writer().Opens(*m.Writer); err != nil {
			return m, fmt.Errorf("backup %s: %w", file, err)
		}
	}
	contents, err := etcd.Inspect(backup.Snapshot(aside))
	if err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}
	if contents.Revision != m.Revision {
		return m, fmt.Errorf("backup %s has revision %d in its manifest, but %d in its store", file, m.Revision,
			contents.Revision)
	}
	if err := etcd.Restore(backup.Snapshot(aside), filepath.Join(aside, "etcd")); err != nil {
		return m, fmt.Errorf("backup %s: %w", file, err)
	}

	pkiDir := c.pkiDir()
	if m.Keys {
		if err := onlyIn(pkiDir); err != nil {
			return m, fmt.Errorf("folder %s %w, and the backup also contains keys: choose an empty folder with --pki-dir",
				pkiDir, err)
		}
	}

	// 2. Then it is put where it belongs.
	begun = true
	if m.Keys {
		if err := os.MkdirAll(filepath.Dir(pkiDir), 0o700); err != nil {
			return m, err
		}
		if err := os.CopyFS(pkiDir, os.DirFS(filepath.Join(aside, backup.PKI))); err != nil { // it may be on another disk
			return m, fmt.Errorf("restore the hub's keys: %w", err)
		}
		if err := private(pkiDir); err != nil {
			return m, err
		}
		// these come from nowhere else
		if err := os.Remove(importedFile(pkiDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return m, err
		}
		entries, _ := os.ReadDir(filepath.Join(aside, backup.Data)) // the folder does not exist if there are none
		for _, e := range entries {
			if err := os.Rename(filepath.Join(aside, backup.Data, e.Name()), filepath.Join(c.DataDir, e.Name())); err != nil {
				return m, err
			}
		}
	}
	// An older binary must refuse the folder before etcd opens the store, as it would have refused the original folder.
	if m.Writer != nil {
		if err := recordInFolder(c.DataDir, *m.Writer); err != nil {
			return m, err
		}
	}
	if !accepted {
		raw, err := json.Marshal(restored{File: file, At: time.Now().UTC(), Manifest: m})
		if err == nil {
			err = os.WriteFile(filepath.Join(c.DataDir, restoredFile), raw, 0o600)
		}
		if err != nil {
			return m, err
		}
	}
	if err := os.Rename(filepath.Join(aside, "etcd"), filepath.Join(c.DataDir, "etcd")); err != nil {
		return m, err
	}
	return m, markStore(c.DataDir)
}

// private removes the permissions of other users from files: a copy has the mode of the umask.
func private(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
}

// onlyIn returns an error if a folder contains anything but the named files. The folder need not exist.
func onlyIn(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot be read: %w", reason(err))
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return fmt.Errorf("contains %q", e.Name())
		}
	}
	return nil
}

// announceRestore creates a ConfigMap that announces the restore to the hub's loops. It stays until a user accepts the
// restored state.
func (h *Hub) announceRestore(ctx context.Context, client kubernetes.Interface) error {
	file := filepath.Join(h.config.DataDir, restoredFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var r restored
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return fmt.Errorf("read the restored store: %w", err)
	}
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.System, Name: execute.RestoreMark},
		Data: map[string]string{
			"file": r.File, "restored": r.At.Format(time.RFC3339), "taken": r.Manifest.Time.Format(time.RFC3339),
			"revision": strconv.FormatInt(r.Manifest.Revision, 10)}}
	maps := client.CoreV1().ConfigMaps(names.System)
	if _, err = maps.Create(ctx, mark, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(ctx, mark, metav1.UpdateOptions{}) // the backup is of a hub that was restored before
	}
	if err != nil {
		return fmt.Errorf("mark the store as restored: %w", err)
	}
	klog.InfoS("the store was restored from a backup: objects in member clusters that differ from it are held until `argosy restore accept`", "backup", r.File, "taken", r.Manifest.Time)
	return os.Remove(file)
}

// Defragment frees unused space of the store. With disarm it compacts old revisions first, and clears the NOSPACE alarm
// afterwards.
func Defragment(ctx context.Context, c Config, disarm bool) (before, after etcd.State, err error) {
	if err := c.Validate(); err != nil {
		return before, after, err
	}
	store, close, err := c.open(ctx)
	if err != nil {
		return before, after, err
	}
	defer close()
	if before, err = etcd.Look(ctx, store); err != nil {
		return before, after, err
	}
	if disarm {
		if err := etcd.Compact(ctx, store); err != nil {
			return before, after, err
		}
	}
	if err := etcd.Defragment(ctx, store); err != nil {
		return before, after, err
	}
	if disarm {
		if err := etcd.Disarm(ctx, store); err != nil {
			return before, after, err
		}
	}
	after, err = etcd.Look(ctx, store)
	return before, after, err
}
