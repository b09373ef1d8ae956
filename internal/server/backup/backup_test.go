package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/server/embed/etcd"
)

// taken returns a backup of a store with one key, and of folders with keys.
func taken(t *testing.T) (file string, m Manifest) {
	t.Helper()
	dir := t.TempDir()
	s, err := etcd.Start(t.Context(), etcd.Options{Dir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err := etcd.Dial(t.Context(), filepath.Join(dir, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"pki/ca.key": "ca", "pki/deep/sa.key": "sa", "data/encryption.key": "rest",
		"data/argosy.log": "no key"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file, m, err = Write(t.Context(), Source{Store: c, PKIDir: filepath.Join(dir, "pki"),
		DataDir: filepath.Join(dir, "data")}, t.TempDir(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return file, m
}

func TestABackupComesBackWithItsKeysAndForItsUserAlone(t *testing.T) {
	file, m := taken(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	to := t.TempDir()
	got, err := Unpack(file, to)
	if err != nil || got.Revision != m.Revision || !got.Keys || got.Objects != 1 {
		t.Fatalf("%+v (%v)", got, err)
	}
	for name, want := range map[string]string{"pki/ca.key": "ca", "pki/deep/sa.key": "sa", "data/encryption.key": "rest",
		"data/argosy.log": ""} {
		text, _ := os.ReadFile(filepath.Join(to, name))
		if string(text) != want {
			t.Errorf("%s is %q, want %q", name, text, want)
		}
	}
	if c, err := etcd.Inspect(Snapshot(to)); err != nil || c.Revision != m.Revision {
		t.Errorf("%+v (%v)", c, err)
	}
	if all := List(filepath.Dir(file)); len(all) != 1 || all[0] != file {
		t.Errorf("listed are %v", all)
	}
}

// Promised: a backup that is damaged or cut off is refused, or gives all that was in it: a few bits of what is packed
// mean nothing.
func TestABackupDamagedAnywhereIsRefused(t *testing.T) {
	file, _ := taken(t)
	good := t.TempDir()
	if _, err := Unpack(file, good); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(1, 1)) // a fixed seed: the suite must give the same result each time
	refused := 0
	damaged := filepath.Join(t.TempDir(), "damaged.tar.gz")
	try := func(what string, at int, content []byte) {
		t.Helper()
		if err := os.WriteFile(damaged, content, 0o600); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if _, err := Unpack(damaged, to); err != nil {
			refused++
			return
		}
		for _, name := range []string{snapshotName, "pki/ca.key", "pki/deep/sa.key", "data/encryption.key"} {
			want, err := os.ReadFile(filepath.Join(good, name))
			got, errGot := os.ReadFile(filepath.Join(to, name))
			if err != nil || errGot != nil || !bytes.Equal(got, want) {
				t.Errorf("%s at byte %d of %d: it was taken for good, and its %s is another", what, at, len(whole), name)
			}
		}
	}
	for i := range 200 {
		// The first ten bytes are gzip's header, of which time and system mean nothing.
		at := 10 + dice.IntN(len(whole)-10)
		if i < 20 {
			at = len(whole) - 1 - i // the checksum at the end
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << dice.IntN(8)
		try("a bit was flipped", at, flipped)
		try("it was cut off", at, whole[:at])
	}
	try("it is empty", 0, nil)
	t.Logf("%d of 401 were refused", refused)
	if refused < 380 {
		t.Error("damage was hardly noticed")
	}
}

// forged returns an archive of these parts, with good checksums.
func forged(t *testing.T, m Manifest, parts map[string]string, order ...string) string {
	t.Helper()
	for _, name := range order {
		sum := sha256.Sum256([]byte(parts[name]))
		m.Parts = append(m.Parts, Part{Name: name, Size: int64(len(parts[name])), SHA256: hex.EncodeToString(sum[:])})
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	head, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, text string) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text) // to memory
	}
	add(manifestName, string(head))
	for _, name := range order {
		add(name, parts[name])
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "forged.tar.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBackupIsUnpackedOnlyIntoItsFolder(t *testing.T) {
	for _, name := range []string{"../escaped", "pki/../../escaped", "/escaped", "pki/./x", "etcd/data", "pki",
		"snapshot.db/x"} {
		to := filepath.Join(t.TempDir(), "in", "to")
		file := forged(t, Manifest{Format: format}, map[string]string{snapshotName: "s", name: "x"}, snapshotName, name)
		if _, err := Unpack(file, to); err == nil || !strings.Contains(err.Error(), "unexpected part") {
			t.Errorf("part %q: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(to, "..", "escaped")); err == nil {
			t.Errorf("part %q was written outside", name)
		}
	}
	for what, m := range map[string]Manifest{"no backup of a later version": {Format: format + 1},
		"nothing": {Format: format}} {
		if _, err := Unpack(forged(t, m, nil), t.TempDir()); err == nil {
			t.Errorf("%s was taken for good", what)
		}
	}
}

func TestSharedFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]string{0o700: "", 0o755: "note", 0o777: "error", 0o770: "error",
		0o777 | os.ModeSticky: "note"} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		note, err := Exposed(dir)
		got := ""
		if err != nil {
			got = "error"
		} else if note != "" {
			got = "note"
		}
		if got != want {
			t.Errorf("mode %v: %q %v, want %q", mode, note, err, want)
		}
	}
}
