package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/server/backup"
	"github.com/argosy-io/argosy/test/kit"
)

// lone is a hub without members, whose store a test may break.
type lone struct {
	*lab.Hub
	kit.Cluster
	t *testing.T
}

func newLone(t *testing.T, dir string, args ...string) *lone {
	t.Helper()
	binary, err := kit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	h, err := lab.NewHub(binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Kill)
	l := &lone{Hub: h, t: t}
	if err := l.start(args...); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lone) start(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := l.Hub.Start(ctx, args...); err != nil {
		return err
	}
	config, err := l.Hub.Config()
	if err == nil {
		l.Cluster, err = kit.Connect("hub", config)
	}
	return err
}

func (l *lone) data() string { return filepath.Join(l.Dir, "data") }

// argosy runs a verb of the CLI.
func (l *lone) argosy(args ...string) (string, error) {
	out, err := exec.CommandContext(l.t.Context(), l.Binary,
		append(args, "--kubeconfig", l.Kubeconfig())...).CombinedOutput()
	return string(out), err
}

// raw is what the hub answers at a path, whatever the answer's code.
func (l *lone) raw(path string, query ...string) string {
	config, err := l.Hub.Config()
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	r := c.RESTClient().Get().AbsPath(path)
	for _, q := range query {
		r = r.Param(q, "")
	}
	result := r.Do(l.t.Context())
	raw, err := result.Raw()
	if len(raw) == 0 && err != nil {
		return err.Error()
	}
	return string(raw)
}

// waitReported waits until status, readiness and metrics all contain these texts.
func (l *lone) waitReported(what string, want map[string][]string) {
	l.t.Helper()
	kit.Eventually(l.t, what, func() string {
		output := map[string]string{"readyz": l.raw("/readyz", "verbose"), "metrics": l.raw("/metrics")}
		output["status"], _ = l.argosy("status")
		for where, parts := range want {
			for _, part := range parts {
				part, absent := strings.CutPrefix(part, "not ")
				if strings.Contains(output[where], part) == absent {
					shown := output[where]
					if where == "metrics" {
						shown = grep(shown, "argosy_store", "argosy_data")
					}
					return fmt.Sprintf("%s: %q (absent: %v) in:\n%s", where, part, absent, shown)
				}
			}
		}
		return ""
	})
}

func grep(text string, parts ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, part := range parts {
			if strings.Contains(line, part) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// put makes a ConfigMap of some size that does not compress.
func (l *lone) put(name string, size int) error {
	noise := make([]byte, size)
	dice := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = dice.Read(noise) // it never fails
	return l.Create(l.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{"faults": "fill"}},
		BinaryData: map[string][]byte{"noise": noise}})
}

func (l *lone) puts() int {
	l.t.Helper()
	var all corev1.ConfigMapList
	if err := l.List(l.t.Context(), &all, client.InNamespace("default"),
		client.MatchingLabels{"faults": "fill"}); err != nil {
		l.t.Fatal(err)
	}
	return len(all.Items)
}

// Promised: a full store is reported everywhere, remains readable, and is repaired by deletions and `argosy defrag
// --disarm` alone.
func TestFullStoreIsReportedAndRepaired(t *testing.T) {
	kit.Long(t)
	l := newLone(t, t.TempDir(), "--etcd-quota=32Mi", "--backup-interval=0")
	l.waitReported("a hub that is well", map[string][]string{
		"status": {"All checks passed", "of 32 MiB"},
		"readyz": {"[+]store ok", "not NOSPACE"},
		"metrics": {`argosy_store_alarm{alarm="NOSPACE"} 0`, "argosy_store_quota_bytes 3.3554432e+07",
			"argosy_store_fsync_p99_seconds", "argosy_data_disk_free_bytes"},
	})

	acknowledged := 0
	var err error
	for ; acknowledged < 200; acknowledged++ {
		if err = l.put(fmt.Sprintf("fill-%d", acknowledged), 900<<10); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatalf("%d MB fit in a quota of 32 MiB", acknowledged)
	}
	t.Logf("after %d objects: %v", acknowledged, err)
	l.waitReported("a full store", map[string][]string{
		"status":  {"not All checks passed", "NOSPACE", "reads work, writes are rejected", "argosy defrag --disarm"},
		"readyz":  {"[-]store failed", "[!]store-alarm warned: alarm NOSPACE", "argosy defrag --disarm"},
		"metrics": {`argosy_store_alarm{alarm="NOSPACE"} 1`, `argosy_store_finding{finding="store-alarm"} 1`},
	})
	// The write that raises the alarm is carried out by etcd, and refused.
	if got := l.puts(); got != acknowledged && got != acknowledged+1 {
		t.Errorf("%d objects can be read of %d that were acknowledged", got, acknowledged)
	}

	// Deleting works, and is not enough; defragmenting without more is not, either.
	if err := l.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("default"),
		client.MatchingLabels{"faults": "fill"}); err != nil {
		t.Fatalf("nothing can be deleted in a full store: %v", err)
	}
	out, err := l.argosy("defrag", "--data-dir", l.data())
	if err != nil || !strings.Contains(out, "Alarm NOSPACE is active") {
		t.Errorf("%v: %s", err, out)
	}
	if err := l.put("still", 10); err == nil {
		t.Error("an armed store took a write")
	}
	if out, err = l.argosy("defrag", "--disarm", "--data-dir", l.data()); err != nil ||
		!strings.Contains(out, "No alarm is active") {
		t.Fatalf("%v: %s", err, out)
	}
	t.Log(strings.TrimSpace(out))
	if err := l.put("again", 900<<10); err != nil {
		t.Error(err)
	}
	l.waitReported("the store is mended", map[string][]string{"status": {"All checks passed", "not NOSPACE"},
		"readyz": {"[+]store ok"}, "metrics": {`argosy_store_alarm{alarm="NOSPACE"} 0`}})
}

// small gives a folder a disk of its own until the test ends.
func small(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// fill takes all of a folder's disk but some; it returns the file to remove.
func fill(t *testing.T, dir string, leave int64) string {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fmt.Sprintf("filler-%d", leave))
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyN(f, zeros{}, int64(s.Bavail)*int64(s.Bsize)-leave)
	if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return file
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Promised: before the disk of the data folder is full the hub stops taking writes and says so; it reads on, nothing
// that was acknowledged is lost, and it goes on by itself when there is space.
func TestFullDiskStopsWritesAndLosesNothing(t *testing.T) {
	kit.Long(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	small(t, data, "640m")
	l := newLone(t, dir)
	acknowledged := 0
	for ; acknowledged < 20; acknowledged++ {
		if err := l.put(fmt.Sprintf("fill-%d", acknowledged), 100<<10); err != nil {
			t.Fatal(err)
		}
	}

	// 1. Nearly full.
	most := fill(t, data, 100<<20)
	l.waitReported("a disk nearly full", map[string][]string{
		"status": {"not All checks passed",
			"alarm NOSPACE: the store rejects writes, because the disk of the data folder has only",
			"the disk of the data folder is nearly full", "free space on that disk"},
		"readyz":  {"[-]store failed", "[!]store-disk warned"},
		"metrics": {`argosy_store_alarm{alarm="NOSPACE"} 1`, `argosy_store_finding{finding="store-disk"} 1`},
	})
	if err := l.put("refused", 10); err == nil {
		t.Error("a write was taken")
	}

	// 2. Full to the last byte, while the hub runs: it reads on.
	rest := fill(t, data, 0)
	if got := l.puts(); got != acknowledged {
		t.Errorf("on a full disk the hub reads %d of %d", got, acknowledged)
	}
	if out, err := l.argosy("backup", "--data-dir", l.data()); err == nil ||
		!strings.Contains(out, "not enough space for a backup") {
		t.Errorf("%v: %s", err, out)
	}

	// 3. Killed there it starts and reads, or says why it cannot; it is not ready.
	l.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- l.Start(ctx) }()
	kit.Eventually(t, "on a full disk it says why it is not ready", func() string {
		select {
		case err := <-started:
			if err == nil || !strings.Contains(err.Error(), "free some space") {
				t.Fatalf("on a full disk it starts with %v", err)
			}
			started <- err
			return ""
		default:
		}
		if output := l.raw("/readyz"); !strings.Contains(output, "[-]store failed") {
			return output
		}
		return ""
	})
	cancel()
	if err := <-started; err == nil {
		t.Error("it is ready on a full disk")
	}

	// 4. With space it goes on by itself, with everything.
	if err := os.Remove(most); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(rest); err != nil {
		t.Fatal(err)
	}
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "writes go on", func() string {
		if err := l.put("again", 100<<10); err != nil {
			return err.Error()
		}
		return ""
	})
	if got := l.puts(); got != acknowledged+1 {
		t.Errorf("%d objects are there of %d", got, acknowledged+1)
	}
	l.waitReported("the hub is well", map[string][]string{"status": {"not NOSPACE"}, "readyz": {"[+]store ok"}})
}

// Promised: backups are taken as often as said and no more of them are kept, each its user's alone and good for a
// restore; other folders than safe ones are refused.
func TestAHubTakesBackupsOfItselfAndKeepsTheNewest(t *testing.T) {
	kit.Long(t)
	l := newLone(t, t.TempDir(), "--backup-interval=1s", "--backup-keep=2")
	dir := filepath.Join(l.data(), "backups")
	seen := map[string]bool{}
	n := 0
	kit.Eventually(t, "five backups were taken", func() string {
		n++
		if err := l.put(fmt.Sprintf("fill-%d", n), 10); err != nil {
			return err.Error()
		}
		files, _ := filepath.Glob(filepath.Join(dir, "argosy-*"))
		if len(files) > 3 { // one that was just taken, before the oldest goes
			t.Fatalf("%d backups are kept: %v", len(files), files)
		}
		for _, file := range files {
			seen[file] = true
			if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
				t.Fatalf("%s has mode %v", file, info.Mode())
			}
		}
		if len(seen) < 5 {
			return fmt.Sprint(len(seen))
		}
		return ""
	})
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "argosy-*"))
	if len(files) == 0 || len(files) > 2 {
		t.Fatalf("%v are kept", files)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".argosy-partial-*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	kept := t.TempDir()
	if err := os.Chmod(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(kept, "b"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	// A stopped hub is backed up, too; into folders where others write it is not, and over a file that is there neither.
	before := l.countStopped(t)
	open := filepath.Join(kept, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if out, err := l.argosy("backup", "--data-dir", l.data(), "--to", open); err == nil ||
		!strings.Contains(out, "is writable by other users") {
		t.Errorf("%v: %s", err, out)
	}
	to := filepath.Join(kept, "hub.tar.gz")
	if out, err := l.argosy("backup", "--data-dir", l.data(), "--to", to); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := l.argosy("backup", "--data-dir", l.data(), "--to", to); err == nil ||
		!strings.Contains(out, "already exists") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := l.argosy("restore", to, "--data-dir", l.data()); err == nil || !strings.Contains(out, "empty folder") {
		t.Errorf("%v: %s", err, out)
	}

	// And all of it comes back.
	if err := os.RemoveAll(l.data()); err != nil {
		t.Fatal(err)
	}
	if out, err := l.argosy("restore", to, "--data-dir", l.data()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	if got := l.puts(); got != before {
		t.Errorf("%d objects came back of %d", got, before)
	}
}

// countStopped is puts for a hub that does not run.
func (l *lone) countStopped(t *testing.T) int {
	t.Helper()
	if err := l.start("--backup-interval=0"); err != nil {
		t.Fatal(err)
	}
	n := l.puts()
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	return n
}

// Promised: a backup with keys gives the Secrets back and has none in plain; one without is of use with the pki folder
// alone, and says so.
func TestASecretComesBackWithTheKeysOfABackupAndNotWithoutThem(t *testing.T) {
	kit.Long(t)
	l := newLone(t, t.TempDir(), "--backup-interval=0")
	const word = "a-word-that-nobody-else-says"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"},
		StringData: map[string]string{"word": word}}
	if err := l.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	vault := t.TempDir()
	if err := os.Chmod(vault, 0o700); err != nil {
		t.Fatal(err)
	}
	with, without := filepath.Join(vault, "with.tar.gz"), filepath.Join(vault, "without.tar.gz")
	for file, args := range map[string][]string{with: nil, without: {"--without-keys"}} {
		if out, err := l.argosy(append([]string{"backup", "--data-dir", l.data(), "--to", file}, args...)...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		dir := filepath.Join(t.TempDir(), "unpacked")
		if _, err := backup.Unpack(file, dir); err != nil {
			t.Fatal(err)
		}
		store, err := os.ReadFile(backup.Snapshot(dir))
		if err != nil || bytes.Contains(store, []byte(word)) ||
			!bytes.Contains(store, []byte("/registry/secrets/default/kept")) {
			t.Errorf("%s: the Secret is in the store in plain, or not at all (%v)", file, err)
		}
		_, err = os.Stat(filepath.Join(dir, backup.PKI, "encryption.key"))
		if has := err == nil; has != (file == with) {
			t.Errorf("%s has the key of encryption: %v", file, has)
		}
	}
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(l.Dir, "lost")
	if err := os.Rename(l.data(), lost); err != nil {
		t.Fatal(err)
	}
	reads := func(what string) {
		t.Helper()
		if err := l.start("--backup-interval=0"); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got corev1.Secret
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(secret), &got); err != nil ||
			string(got.Data["word"]) != word {
			t.Errorf("%s: the Secret is %q (%v)", what, got.Data["word"], err)
		}
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	}

	if out, err := l.argosy("restore", with, "--data-dir", l.data()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	reads("restored with keys")
	if err := os.RemoveAll(l.data()); err != nil {
		t.Fatal(err)
	}

	if out, err := l.argosy("restore", without, "--data-dir", l.data()); err != nil ||
		!strings.Contains(out, "The backup has no keys") || !strings.Contains(out, "encryption.key") {
		t.Fatalf("%v: %s", err, out)
	}
	if err := l.start("--backup-interval=0"); err == nil || !strings.Contains(err.Error(), "encryption.key is missing") {
		t.Fatalf("without its keys it says: %v", err)
	}
	pki := filepath.Join(l.data(), "pki")
	if err := errors.Join(os.RemoveAll(pki), os.CopyFS(pki, os.DirFS(filepath.Join(lost, "pki"))),
		os.Chmod(filepath.Join(pki, "encryption.key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	reads("restored without keys, which were put there")
}
