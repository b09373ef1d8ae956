package install

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// System is the target machine, apart from its files.
type System struct {
	// Booted is true if systemd runs the machine.
	Booted func() bool
	// Run runs a program to its end. The error has the program's output.
	Run func(name string, args ...string) error
	// Has reports whether the program exists.
	Has func(name string) bool
	// User looks up a user of the machine.
	User func(name string) (uid, gid int, err error)
}

// Machine returns the machine of this process.
func Machine() System {
	return System{
		// As sd_booted(3) does.
		Booted: func() bool { info, err := os.Lstat("/run/systemd/system"); return err == nil && info.IsDir() },
		Run: func(name string, args ...string) error {
			said, err := exec.Command(name, args...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err,
					strings.TrimSpace(string(said)))
			}
			return nil
		},
		Has: func(name string) bool { _, err := exec.LookPath(name); return err == nil },
		User: func(name string) (int, int, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, 0, err
			}
			return ids(u.Uid, u.Gid)
		},
	}
}

func ids(uid, gid string) (int, int, error) {
	u, err := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	return u, g, errors.Join(err, err2)
}

func (s System) hasUser(name string) bool {
	_, _, err := s.User(name)
	return err == nil
}

// owner returns the IDs of the hub's user below root. An image may lack the user until its first boot.
func (o *Options) owner() (uid, gid int, err error) {
	if o.live() {
		return o.System.User(o.User)
	}
	if err := confined(o.Root, "etc/passwd"); err != nil {
		return 0, 0, err
	}
	f, err := os.Open(filepath.Join(o.Root, "etc/passwd"))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 3 && fields[0] == o.User {
			return ids(fields[2], fields[3])
		}
	}
	return 0, 0, fmt.Errorf("no user %s in %s: %w", o.User, f.Name(), fs.ErrNotExist)
}

// commands returns the commands that Install runs, for display.
func commands(o *Options) []string {
	if !o.live() {
		return nil
	}
	var all []string
	if !o.System.hasUser(o.User) {
		all = append(all, strings.Join(userCommand(o), " "))
	}
	if o.System.Booted() {
		all = append(all, "systemctl daemon-reload")
		if !o.NoStart {
			all = append(all, "systemctl enable --now "+unitName)
		}
	}
	return all
}

func userCommand(o *Options) []string {
	if o.System.Has("systemd-sysusers") {
		return []string{"systemd-sysusers", usersPath}
	}
	return []string{"useradd", "--system", "--user-group", "--no-create-home", "--home-dir", o.Unit.DataDir, "--shell",
		"/usr/sbin/nologin", o.User}
}

// makeUser creates the system user if it does not exist.
func makeUser(o *Options, out io.Writer) error {
	if !o.live() || o.System.hasUser(o.User) {
		return nil
	}
	c := userCommand(o)
	if err := o.System.Run(c[0], c[1:]...); err != nil {
		return fmt.Errorf("create the system user %s: %w", o.User, err)
	}
	fmt.Fprintf(out, "%-10s system user %s\n", created, o.User)
	return nil
}

// startUnit enables and starts the unit if systemd runs.
func startUnit(o *Options, changed bool, out io.Writer) error {
	start := fmt.Sprintf("start the hub with `%s up --config %s` as user %s", BinaryPath, ConfigPath, o.User)
	switch {
	case !o.live():
		fmt.Fprintf(out, "Installed in %s. Nothing was started; `systemctl --root=%s enable argosy` makes the hub start at boot.\n", o.Root, o.Root)
		return nil
	case !o.System.Booted():
		fmt.Fprintf(out, "Installed. systemd is not running here, so the hub was not started: %s.\n", start)
		return nil
	}
	if err := o.System.Run("systemctl", "daemon-reload"); err != nil {
		return err
	}
	if o.NoStart {
		fmt.Fprintln(out, "Installed. Start the hub with `systemctl enable --now argosy`.")
		return nil
	}
	runs := o.System.Run("systemctl", "is-active", "--quiet", unitName) == nil
	if err := o.System.Run("systemctl", "enable", "--now", unitName); err != nil {
		return fmt.Errorf("start the hub: %w; `journalctl -u argosy` shows the reason", err)
	}
	if runs && changed {
		fmt.Fprintln(out, "Installed. The running hub is unchanged: restart it with `systemctl restart argosy`.")
		return nil
	}
	fmt.Fprintln(out, "Installed. The hub is running and starts at boot; `systemctl status argosy` shows its status.")
	return nil
}
