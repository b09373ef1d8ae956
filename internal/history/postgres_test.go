package history

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// startPostgres starts a PostgreSQL server that listens on a socket only, and returns its connection string. It skips
// the test where PostgreSQL is not installed.
func startPostgres(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed: apt-get install postgresql")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "pg") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		as = &syscall.SysProcAttr{Credential: ownerFor(t, dir)}
	}
	run := func(name string, args ...string) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.SysProcAttr, cmd.Dir = as, dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	data, log := filepath.Join(dir, "data"), filepath.Join(dir, "log")
	run("initdb", "-D", data, "-U", "argosy", "-A", "trust", "-E", "UTF8", "--no-sync")
	run("pg_ctl", "-D", data, "-w", "-l", log, "-o", fmt.Sprintf("-c listen_addresses= -c fsync=off -k %s", dir), "start")
	t.Cleanup(func() { run("pg_ctl", "-D", data, "-m", "immediate", "stop") })
	return fmt.Sprintf("host=%s user=argosy dbname=postgres", dir)
}

// ownerFor gives a folder to a user without rights and returns the user's credentials.
func ownerFor(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("PostgreSQL does not run as root: %v", err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
