package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hub is the number of the hub's user in these tests, which owns nothing unless it is said to.
const hub = 65532

// place makes a folder or, with text, a file below root.
func place(t *testing.T, root, path string, mode os.FileMode, uid int, text ...string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if len(text) > 0 {
		err = os.WriteFile(full, []byte(text[0]), 0o600)
	} else {
		err = os.MkdirAll(full, 0o755)
	}
	if err == nil && uid != os.Getuid() {
		err = os.Chown(full, uid, uid)
	}
	if err == nil {
		err = os.Chmod(full, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A unit that names a folder which is not there, or is not the hub's to write, does not start.
func TestInstallRejectsUnusablePathsBeforeWriting(t *testing.T) {
	me := os.Getuid()
	for story, tc := range map[string]struct {
		unit    Unit
		there   func(t *testing.T, root string)
		own     bool
		refused string
		logs    string
	}{
		"logs in a folder to be made": {unit: Unit{Writable: []string{"/var/log/argosy"}},
			logs: "/var/log/argosy"},
		"logs in a folder of its own": {unit: Unit{Writable: []string{"/var/log/argosy"}},
			there: func(t *testing.T, root string) { place(t, root, "/var/log/argosy", 0o700, me) }, own: true,
			logs: "/var/log/argosy"},
		"logs in another user's folder": {unit: Unit{Writable: []string{"/var/log/nginx"}},
			there: func(t *testing.T, root string) { place(t, root, "/var/log/nginx", 0o755, me) }},
		"a kubeconfig where there is no folder": {unit: Unit{Writable: []string{"/srv/shared"}}, refused: "no such file"},
		"a kubeconfig where everybody may write": {unit: Unit{Writable: []string{"/srv/shared"}},
			there: func(t *testing.T, root string) { place(t, root, "/srv/shared", 0o777, me) }},
		"a log in a temporary folder": {unit: Unit{Writable: []string{"/tmp"}}, refused: "temporary"},
		"data in a temporary folder":  {unit: Unit{DataDir: "/var/tmp/argosy"}, refused: "temporary"},
		"an empty folder of the system": {unit: Unit{DataDir: "/srv"},
			there: func(t *testing.T, root string) { place(t, root, "/srv", 0o755, me) }, refused: "/srv/argosy"},
	} {
		t.Run(story, func(t *testing.T) {
			root, uid := t.TempDir(), hub
			if tc.there != nil {
				tc.there(t, root)
			}
			if tc.own {
				uid = me
			}
			write(t, filepath.Join(root, "etc/passwd"), "argosy:x:"+strconv.Itoa(uid)+":"+strconv.Itoa(uid)+"::/:/bin/false\n")
			o := Options{Root: root, User: "argosy", Unit: tc.unit, System: newMachine().System}
			if o.Unit.DataDir == "" {
				o.Unit.DataDir = DataDir
			}
			_, err := planFolders(&o)
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("it says %v, want %q", err, tc.refused)
			}
			if got := strings.Join(o.Unit.logs, " "); tc.refused == "" && got != tc.logs {
				t.Errorf("systemd makes %q, want %q", got, tc.logs)
			}
		})
	}
}

// ofHub returns an image with the hub's user, who is another than the one that runs the test.
func ofHub(t *testing.T) Options {
	t.Helper()
	o := below(t)
	write(t, filepath.Join(o.Root, "etc/passwd"), "argosy:x:65532:65532::/:/bin/false\n")
	return o
}

func TestAFolderOfOthersStopsADryRunToo(t *testing.T) {
	o := ofHub(t)
	o.Unit.DataDir = "/srv/data"
	place(t, o.Root, "/srv/data/theirs", 0o644, os.Getuid(), "")
	before := tree(t, o.Root)
	for _, o.DryRun = range []bool{true, false} {
		if err := Install(o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "change its owner") {
			t.Errorf("with --dry-run %t it says %v", o.DryRun, err)
		}
	}
	if after := tree(t, o.Root); len(after) != len(before) {
		t.Error("something was written")
	}
}

func TestASymbolicLinkOfAnImageLeadsNowhereElse(t *testing.T) {
	for _, link := range []string{"etc/systemd", "usr/local/bin", "usr/local", "var/lib/argosy", "etc"} {
		t.Run(link, func(t *testing.T) {
			o, host := below(t), t.TempDir()
			at := filepath.Join(o.Root, link)
			if link == "etc" { // which has the users of the image
				write(t, filepath.Join(host, "passwd"), read(t, filepath.Join(at, "passwd")))
				if err := os.RemoveAll(at); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(host, at); err != nil {
				t.Fatal(err)
			}
			before := len(tree(t, host))
			if err := Install(o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("it says %v", err)
			}
			if len(tree(t, host)) != before {
				t.Error("something was written outside of the image")
			}
		})
	}
	o := below(t)
	if err := os.MkdirAll(filepath.Join(o.Root, "opt/local"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.Root, "usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../opt/local", filepath.Join(o.Root, "usr/local")); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, o) // a link that stays inside is an image's own affair
}
