package history

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// postgres is a PostgreSQL server that listens on a socket only.
type postgres struct {
	bin, dir string
	as       *syscall.SysProcAttr
}

// errNoPostgres is why tests with PostgreSQL are skipped.
var errNoPostgres = errors.New("PostgreSQL is not installed: apt-get install postgresql")

// sharedPostgres is a server for all tests, with a database for each.
var (
	sharedPostgres = sync.OnceValues(startPostgres)
	started        atomic.Bool
	databases      atomic.Int32
)

func TestMain(m *testing.M) {
	statementTimeout = time.Minute
	code := m.Run()
	if started.Load() {
		if p, err := sharedPostgres(); err == nil {
			p.end()
		}
	}
	os.Exit(code)
}

// startPostgres makes the data folder of a server and starts it. The server runs without rights.
func startPostgres() (*postgres, error) {
	started.Store(true)
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, errNoPostgres
	}
	dir, err := os.MkdirTemp("", "pg") // a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	p := &postgres{bin: filepath.Dir(found[len(found)-1]), dir: dir}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		owner, err := unprivilegedOwner(dir)
		if err != nil {
			return nil, errors.Join(errNoPostgres, err, os.RemoveAll(dir))
		}
		p.as = &syscall.SysProcAttr{Credential: owner}
	}
	err = p.run("initdb", "-D", filepath.Join(dir, "data"), "-U", "argosy", "-A", "trust", "-E", "UTF8", "--no-sync")
	if err == nil {
		err = p.start()
	}
	if err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

func (p *postgres) start() error {
	return p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-w", "-l", filepath.Join(p.dir, "log"), "-o",
		"-c listen_addresses= -c fsync=off -k "+p.dir, "start")
}

func (p *postgres) stop() error {
	return p.run("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-w", "-m", "immediate", "stop")
}

func (p *postgres) end() {
	_ = p.stop()
	_ = os.RemoveAll(p.dir)
}

func (p *postgres) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = p.as, p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// dsn is the connection string of a database.
func (p *postgres) dsn(database string) string {
	return fmt.Sprintf("host=%s user=argosy dbname=%s", p.dir, database)
}

// unprivilegedOwner gives a folder to a user without rights and returns the user's credentials.
func unprivilegedOwner(dir string) (*syscall.Credential, error) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

// newPostgres returns a server, and the connection string of a new database. It skips the test in the gate, and where
// PostgreSQL is not installed.
func newPostgres(t *testing.T) (*postgres, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
	p, err := sharedPostgres()
	if errors.Is(err, errNoPostgres) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	if err := p.run("createdb", "-h", p.dir, "-U", "argosy", name); err != nil {
		t.Fatal(err)
	}
	return p, p.dsn(name)
}

func openPostgres(t *testing.T, dsn string) *Store {
	t.Helper()
	s, err := OpenPostgres(t.Context(), dsn, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A server that is down refuses writes, and takes them when it is back. The store stays open meanwhile.
func TestPostgresThatWasDownTakesTheSameRowsAgain(t *testing.T) {
	p, dsn := newPostgres(t)
	s := openPostgres(t, dsn)
	record(t, s, history()...)
	before := dump(t, s)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordRelease(t.Context(), release("r9", 0, "x", releasev1alpha1.ReleaseRunning)); err == nil {
		t.Error("a server that is down took a release")
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	record(t, s, history()...)
	if after := dump(t, s); after != before {
		t.Errorf("the rows are\n%s\nwant\n%s", after, before)
	}
}

// Replicas of a hub start at the same time.
func TestPostgresSchemaIsMadeByOneOfSeveralHubs(t *testing.T) {
	_, dsn := newPostgres(t)
	var hubs sync.WaitGroup
	for range 4 {
		hubs.Go(func() {
			s, err := OpenPostgres(t.Context(), dsn, "")
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.RecordRelease(t.Context(), release("r1", 0, "x", releasev1alpha1.ReleaseRunning)),
				s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	hubs.Wait()
	found, err := openPostgres(t, dsn).Releases(t.Context(), Filter{})
	if err != nil || len(found) != 1 {
		t.Errorf("the releases are %v, %v", found, err)
	}
}
