package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is one that only notes what is run on it.
type machine struct {
	System
	booted, runs bool
	users        []string
	ran          []string
}

func newMachine() *machine {
	m := &machine{booted: true}
	m.System = System{
		Booted: func() bool { return m.booted },
		Has:    func(name string) bool { return name == "systemd-sysusers" },
		Run: func(name string, args ...string) error {
			line := strings.Join(append([]string{name}, args...), " ")
			if strings.Contains(line, "is-active") {
				if m.runs {
					return nil
				}
				return errors.New("inactive")
			}
			m.ran = append(m.ran, line)
			return nil
		},
		User: func(name string) (int, int, error) {
			if slices.Contains(m.users, name) {
				return os.Getuid(), os.Getgid(), nil
			}
			return 0, 0, errors.New("no such user")
		},
	}
	return m
}

// below returns an installation below a folder whose image has the user argosy, who is the one that runs the test.
func below(t *testing.T) Options {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/passwd"), fmt.Sprintf("root:x:0:0::/root:/bin/sh\nargosy:x:%d:%d::/:/bin/false\n",
		os.Getuid(), os.Getgid()))
	binary := filepath.Join(t.TempDir(), "argosy")
	write(t, binary, "#!/bin/true\n")
	if err := os.Chmod(binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{Root: root, Binary: binary, User: "argosy", Config: []byte("port: 7443\n"),
		Unit:        Unit{DataDir: DataDir, Port: 7443},
		Completions: map[string][]byte{"bash": []byte("b"), "zsh": []byte("z"), "fish": []byte("f")},
		System:      newMachine().System}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree is everything below root, with modes and contents.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), " ")
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprint(info.ModTime().UnixNano(), " ", string(data))
		}
		all[strings.TrimPrefix(path, root)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mustInstall installs, and returns the output.
func mustInstall(t *testing.T, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Install(o, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func remove(t *testing.T, r Removal) string {
	t.Helper()
	var out bytes.Buffer
	if err := Uninstall(r, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSecondInstallWritesNothing(t *testing.T) {
	o := below(t)
	mustInstall(t, o)
	first := tree(t, o.Root)
	for path, mode := range map[string]string{
		BinaryPath: "-rwxr-xr-x", ConfigPath: "-rw-r--r--", UnitPath: "-rw-r--r--", usersPath: "-rw-r--r--",
		recordPath: "-rw-r--r--", DataDir: "drwx------", "/var/lib": "drwxr-xr-x",
		"/usr/local/share/bash-completion/completions/argosy":    "-rw-r--r--",
		"/usr/local/share/zsh/site-functions/_argosy":            "-rw-r--r--",
		"/usr/local/share/fish/vendor_completions.d/argosy.fish": "-rw-r--r--",
	} {
		if !strings.HasPrefix(first[path], mode) {
			t.Errorf("%s is %.12q, want mode %s", path, first[path], mode)
		}
	}
	said := mustInstall(t, o)
	for path, is := range tree(t, o.Root) {
		if is != first[path] {
			t.Errorf("%s was written again", path)
		}
	}
	if strings.Contains(said, string(created)+" ") || strings.Contains(said, string(updated)+" ") {
		t.Errorf("a second time it says\n%s", said)
	}
}

func TestADryRunShowsEverythingAndWritesNothing(t *testing.T) {
	o := below(t)
	o.DryRun = true
	before := tree(t, o.Root)
	said := mustInstall(t, o)
	if after := tree(t, o.Root); len(after) != len(before) {
		t.Errorf("a dry run left %d files and folders, there were %d", len(after), len(before))
	}
	for _, want := range []string{BinaryPath, "port: 7443", "ExecStart=" + BinaryPath + " up --config " + ConfigPath,
		"u argosy -", "completions/argosy", DataDir, recordPath, "nothing was changed"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not show %q:\n%s", want, said)
		}
	}
}

func TestUninstallLeavesTheFolderAsItWasBeforeAndTheData(t *testing.T) {
	o := below(t)
	write(t, filepath.Join(o.Root, "/usr/local/share/zsh/site-functions/_other"), "another's")
	before := tree(t, o.Root)
	mustInstall(t, o)
	write(t, filepath.Join(o.Root, DataDir, "store"), "data")
	said := remove(t, Removal{Root: o.Root, System: o.System})
	after := tree(t, o.Root)
	for path := range after {
		if _, was := before[path]; !was && !strings.HasPrefix(path, "/var") {
			t.Errorf("%s is left", path)
		}
	}
	for path := range before {
		if _, is := after[path]; !is {
			t.Errorf("%s is gone, and was there before", path)
		}
	}
	if after[DataDir+"/store"] == "" || !strings.Contains(said, DataDir) {
		t.Errorf("the data is gone, or nobody was told where it is: %s", said)
	}
	if said := remove(t, Removal{Root: o.Root, System: o.System}); !strings.Contains(said, "Nothing is installed") {
		t.Errorf("a second time it says %s", said)
	}
}

func TestEditedFilesAreKept(t *testing.T) {
	o := below(t)
	mustInstall(t, o)
	config, unit := filepath.Join(o.Root, ConfigPath), filepath.Join(o.Root, UnitPath)
	write(t, config, "port: 8443 # mine\n")
	o.Config = []byte("port: 9443\n")
	if said := mustInstall(t, o); !strings.Contains(said, string(kept)) || !strings.Contains(read(t, config), "mine") {
		t.Errorf("an edited configuration is replaced:\n%s", said)
	}
	o.Reconfigure = true
	if err := Install(o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "was edited") {
		t.Errorf("flags change an edited configuration: %v", err)
	}
	o.Reconfigure = false
	write(t, unit, "[Service]\n# mine\n")
	if err := Install(o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), UnitPath) ||
		!strings.Contains(read(t, unit), "mine") {
		t.Errorf("an edited unit is replaced (%v)", err)
	}
	said := remove(t, Removal{Root: o.Root, System: o.System})
	for _, path := range []string{config, unit} {
		if !strings.Contains(read(t, path), "mine") || !strings.Contains(said, path) {
			t.Errorf("%s was edited and is removed:\n%s", path, said)
		}
	}
}

func TestFilesOfOthersStopAnInstallationBeforeAnythingIsWritten(t *testing.T) {
	o := below(t)
	write(t, filepath.Join(o.Root, UnitPath), "[Service]\n# a distribution's\n")
	before := tree(t, o.Root)
	err := Install(o, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), UnitPath) || !strings.Contains(err.Error(), "--force") {
		t.Errorf("it says %v", err)
	}
	if after := tree(t, o.Root); len(after) != len(before) {
		t.Error("something was written")
	}
	o.Force = true
	mustInstall(t, o)
	if !strings.Contains(read(t, filepath.Join(o.Root, UnitPath)), "ExecStart") {
		t.Error("--force does not replace the unit")
	}
}

func TestAnUpgradeReplacesTheBinaryAndKeepsTheConfiguration(t *testing.T) {
	o := below(t)
	mustInstall(t, o)
	write(t, o.Binary, "the next one")
	o.Config = []byte("port: 9443\n")
	mustInstall(t, o)
	if read(t, filepath.Join(o.Root, BinaryPath)) != "the next one" {
		t.Error("the binary is the old one")
	}
	if read(t, filepath.Join(o.Root, ConfigPath)) != "port: 7443\n" {
		t.Error("the configuration changed without a flag")
	}
}

func TestInstallWritesNothingUnlessConfirmed(t *testing.T) {
	o := below(t)
	o.Confirm = func() error { return errors.New("not confirmed") }
	if err := Install(o, io.Discard); err == nil || err.Error() != "not confirmed" {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.Root, BinaryPath)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the binary is installed (%v)", err)
	}
	o.Confirm = func() error { return nil }
	mustInstall(t, o)
}

func TestPurgeNeedsConfirmation(t *testing.T) {
	o := below(t)
	mustInstall(t, o)
	before := tree(t, o.Root)
	r := Removal{Root: o.Root, System: o.System, Purge: os.RemoveAll, Confirm: func(string) error {
		return errors.New("not confirmed")
	}}
	if err := Uninstall(r, &bytes.Buffer{}); err == nil || len(tree(t, o.Root)) != len(before) {
		t.Errorf("without a confirmation something was removed (%v)", err)
	}
	r.Confirm = func(dir string) error {
		if dir != filepath.Join(o.Root, DataDir) {
			t.Errorf("asked about %s", dir)
		}
		return nil
	}
	remove(t, r)
	if _, err := os.Stat(filepath.Join(o.Root, DataDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data is there: %v", err)
	}
}

// What is asked of systemd is decided by whether it runs; nothing of this touches the machine of the test.
func TestUnitIsStartedOnlyBySystemd(t *testing.T) {
	for story, tc := range map[string]struct {
		machine func(*machine)
		change  func(*Options)
		changed bool
		ran     []string
		says    string
	}{
		"systemd runs": {ran: []string{"systemctl daemon-reload",
			"systemctl enable --now argosy.service"}, says: "is running"},
		"systemd does not run": {machine: func(m *machine) { m.booted = false }, says: "systemd is not running"},
		"nothing is to be started": {change: func(o *Options) { o.NoStart = true },
			ran: []string{"systemctl daemon-reload"}, says: "enable --now"},
		"below another folder": {change: func(o *Options) { o.Root = "/srv/image" }, says: "Nothing was started"},
		"the hub runs, and has a new file": {machine: func(m *machine) { m.runs = true }, changed: true,
			ran: []string{"systemctl daemon-reload", "systemctl enable --now argosy.service"}, says: "systemctl restart"},
	} {
		t.Run(story, func(t *testing.T) {
			m := newMachine()
			if tc.machine != nil {
				tc.machine(m)
			}
			o := Options{Root: "/", User: "argosy", System: m.System}
			if tc.change != nil {
				tc.change(&o)
			}
			var out bytes.Buffer
			if err := startUnit(&o, tc.changed, &out); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.ran, tc.ran) || !strings.Contains(out.String(), tc.says) {
				t.Errorf("it ran %q and said %q, want %q and %q", m.ran, out.String(), tc.ran, tc.says)
			}
		})
	}
}

func TestSystemUserIsCreatedOnceWithTheMachinesTool(t *testing.T) {
	m := newMachine()
	o := Options{Root: "/", User: "argosy", Unit: Unit{DataDir: DataDir}, System: m.System}
	if err := makeUser(&o, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	o.System.Has = func(string) bool { return false }
	if err := makeUser(&o, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	m.users = []string{"argosy"}
	if err := makeUser(&o, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"systemd-sysusers /etc/sysusers.d/argosy.conf",
		"useradd --system --user-group --no-create-home --home-dir /var/lib/argosy --shell /usr/sbin/nologin argosy"}
	if !slices.Equal(m.ran, want) {
		t.Errorf("it ran %q, want %q", m.ran, want)
	}
}

func TestUnitPermitsOnlyTheConfiguration(t *testing.T) {
	for story, tc := range map[string]struct {
		unit        Unit
		has, hasNot []string
	}{
		"as by default": {
			Unit{DataDir: DataDir, Port: 7443},
			[]string{"StateDirectory=argosy\n",
				"SystemCallFilter=~@privileged\n# Rotated log files get the owner of the old file, which is the hub.\nSystemCallFilter=@chown\n", "ProtectHome=yes", "CapabilityBoundingSet=\n", "Type=notify", "NoNewPrivileges=yes", "ProtectSystem=strict"},
			[]string{"ReadWritePaths", "CAP_"},
		},
		"folders elsewhere": {
			Unit{DataDir: "/srv/argosy data", OwnFolders: []string{"/mnt/50%/backups"}, Writable: []string{"/var/log"},
				Port: 7443},
			[]string{"ReadWritePaths=\"/srv/argosy data\"\n", "ReadWritePaths=/mnt/50%%/backups\n", "ReadWritePaths=/var/log\n"},
			[]string{"StateDirectory"},
		},
		"logs in a folder that systemd makes": {
			Unit{DataDir: DataDir, Writable: []string{"/var/log/argosy", "/srv/shared"}, logs: []string{"/var/log/argosy"},
				Port: 7443},
			[]string{"LogsDirectory=argosy\nLogsDirectoryMode=0700\n", "ReadWritePaths=/srv/shared\n"},
			[]string{"ReadWritePaths=/var/log"},
		},
		"a port that needs rights": {Unit{DataDir: DataDir, Port: 443},
			[]string{"AmbientCapabilities=CAP_NET_BIND_SERVICE\n", "CapabilityBoundingSet=CAP_NET_BIND_SERVICE\n"}, nil},
		"a home": {Unit{DataDir: "/home/ops/argosy", Port: 7443}, []string{"ProtectHome=no"},
			[]string{"ProtectHome=yes"}},
	} {
		t.Run(story, func(t *testing.T) {
			text := string(tc.unit.text("argosy"))
			for _, want := range tc.has {
				if !strings.Contains(text, want) {
					t.Errorf("the unit lacks %q:\n%s", want, text)
				}
			}
			for _, unwanted := range tc.hasNot {
				if strings.Contains(text, unwanted) {
					t.Errorf("the unit has %q:\n%s", unwanted, text)
				}
			}
		})
	}
}

func TestSystemdTakesTheUnitAndCallsItsExposureLow(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze on this machine, which verifies the unit")
	}
	for story, unit := range map[string]Unit{
		"as by default":     {DataDir: DataDir, Port: 7443},
		"folders elsewhere": {DataDir: "/srv/argosy data", OwnFolders: []string{"/mnt/50%/backups"}, Port: 443},
	} {
		t.Run(story, func(t *testing.T) {
			o := below(t)
			o.Unit = unit
			mustInstall(t, o)
			path := filepath.Join(o.Root, UnitPath)
			// What it starts and what it runs as are below the root here.
			text := strings.ReplaceAll(read(t, path), BinaryPath, filepath.Join(o.Root, BinaryPath))
			text = strings.ReplaceAll(text, "=argosy\nGroup=argosy", "=daemon\nGroup=daemon")
			verified := filepath.Join(t.TempDir(), unitName)
			write(t, verified, text)
			if said, err := exec.Command("systemd-analyze", "verify", "--man=no", "--generators=no",
				verified).CombinedOutput(); err != nil || strings.Contains(string(said), unitName) {
				t.Errorf("systemd-analyze verify: %v\n%s", err, said)
			}
			// 0 is no exposure, 10 the most; systemd calls less than 3 "OK".
			if said, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
				verified).CombinedOutput(); err != nil {
				t.Errorf("systemd-analyze security: %v\n%s", err, said)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// breaking has an installation fail as it comes to a file, as a full disk would.
type breaking struct {
	path  string
	spoil func()
}

func (b *breaking) Write(p []byte) (int, error) {
	if strings.Contains(string(p), b.path) {
		b.spoil()
	}
	return len(p), nil
}

// What is as before is still ours then, and so is what is new.
func TestInterruptedInstallationIsResumedOrRemoved(t *testing.T) {
	for _, breaks := range []string{BinaryPath, UnitPath} {
		for _, then := range []string{"install", "uninstall"} {
			t.Run("at "+breaks+", then "+then, func(t *testing.T) {
				o := below(t)
				mustInstall(t, o)
				write(t, o.Binary, "the next one")
				o.Unit.Port = 443
				at := filepath.Join(o.Root, breaks)
				old := read(t, at)
				spoil := func() {
					if err := errors.Join(os.Remove(at), os.Mkdir(at, 0o755)); err != nil {
						t.Fatal(err)
					}
				}
				if err := Install(o, &breaking{at, spoil}); err == nil {
					t.Fatal("it does not break off")
				}
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
				write(t, at, old)
				if then == "install" {
					write(t, o.Binary, "the one after that")
					mustInstall(t, o)
					if read(t, filepath.Join(o.Root, BinaryPath)) != "the one after that" {
						t.Error("the binary is an old one")
					}
				}
				if said := remove(t, Removal{Root: o.Root, System: o.System}); strings.Contains(said, "changed since") {
					t.Errorf("what it wrote itself is a stranger's:\n%s", said)
				}
			})
		}
	}
}

func TestTheUserOfTheFirstInstallationStays(t *testing.T) {
	o := below(t)
	write(t, filepath.Join(o.Root, "etc/passwd"), fmt.Sprintf("fleet:x:%d:%d::/:/bin/false\n", os.Getuid(), os.Getgid()))
	o.User = "fleet"
	mustInstall(t, o)
	o.User = ""
	mustInstall(t, o)
	if unit := read(t, filepath.Join(o.Root, UnitPath)); !strings.Contains(unit, "User=fleet\n") {
		t.Errorf("after a second installation the unit is\n%s", unit)
	}
}

// The number of a user that is removed goes to the next one that is made, with all files that have it.
func TestUserWithBackupsStays(t *testing.T) {
	o := below(t)
	r := Removal{Root: o.Root}
	was := record{OwnFolders: []string{"/mnt/backups", "/mnt/gone"}}
	if err := os.MkdirAll(filepath.Join(o.Root, "/mnt/backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	if left := r.left(was); !slices.Equal(left, []string{filepath.Join(o.Root, "/mnt/backups")}) {
		t.Errorf("what is left is %v", left)
	}
	m := newMachine()
	m.users = []string{"argosy"}
	r.System = m.System
	for _, left := range [][]string{{"/mnt/backups"}, nil} {
		if err := r.removeUser("argosy", left, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		if removed := slices.Contains(m.ran, "userdel argosy"); removed != (left == nil) {
			t.Errorf("with %v left, the user is removed: %t", left, removed)
		}
	}
	o.Unit.OwnFolders = []string{"/mnt/backups"}
	mustInstall(t, o)
	said := remove(t, Removal{Root: o.Root, System: o.System, Purge: os.RemoveAll, Confirm: func(string) error {
		return nil
	}})
	if !strings.Contains(said, "kept       "+filepath.Join(o.Root, "/mnt/backups")) {
		t.Errorf("nobody is told of the backups:\n%s", said)
	}
}
