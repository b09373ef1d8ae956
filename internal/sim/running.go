package sim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// stopTimeout is how long a member may take to stop before it is killed. Its data survives either.
const stopTimeout = 15 * time.Second

// Running is a member of a fleet. Its methods may be called from several goroutines.
type Running struct {
	Member
	// Dir holds all that the member writes; Kubeconfig is the file inside that reaches it as administrator.
	Dir, Kubeconfig string
	// Server is the URL of its API server, the same for life.
	Server string

	binary string
	log    *log.Logger

	life sync.Mutex // held while starting or stopping
	mu   sync.Mutex
	last *process // guarded by mu; nil before the first start
}

// process is one run of the member's child process.
type process struct {
	pid      int
	lifeline *os.File // closing it ends the child
	done     chan struct{}
	err      error       // how it ended, valid when done is closed
	stopping atomic.Bool // Stop or kill was called, or a crash was reported
}

// prepare makes the member's folder, or takes the port from a folder that was used before. Ports are not to be
// taken by another member of the fleet, and the one chosen is added to them.
func prepare(binary, dir string, m Member, ports map[int]bool, logger *log.Logger) (*Running, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c, err := ReadConfig(dir)
	if err != nil {
		c = Config{}
		if c.Port, err = FreePort(lowestPort, ports); err != nil {
			return nil, err
		}
	}
	ports[c.Port] = true
	c.Member = m.withDefaults()
	if err := writeConfig(dir, c); err != nil {
		return nil, err
	}
	return &Running{
		Member:     c.Member,
		Dir:        dir,
		Kubeconfig: KubeconfigFile(dir),
		Server:     "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)),
		binary:     binary,
		log:        logger,
	}, nil
}

// lowestPort is the first of those that members take theirs from.
const lowestPort = 20000

// given are the ports that FreePort has given out: whoever has one listens on it only later.
var given sync.Map

// FreePort returns a port of 127.0.0.1 that nothing listens on: one of ten thousand from low on, none of those in not,
// and none that it returned before. It is below the range from which systems take ports for outgoing
// connections, so that it is still free when a killed process wants it back.
func FreePort(low int, not map[int]bool) (int, error) {
	var err error
	for range 50 {
		port := low + rand.IntN(10000)
		if not[port] {
			continue
		}
		if _, before := given.LoadOrStore(port, true); before {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// process returns the running or last process of the member, nil if there never was one.
func (r *Running) process() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// start runs the child and waits until it is ready. It leaves no child behind when it fails.
func (r *Running) start(ctx context.Context) error {
	r.life.Lock()
	defer r.life.Unlock()
	if p := r.process(); p != nil && !p.ended() {
		return fmt.Errorf("member %q is running already", r.Name)
	}
	begin := time.Now()
	p, report, err := r.spawn()
	if err != nil {
		return fmt.Errorf("start member %q: %w", r.Name, err)
	}
	r.mu.Lock()
	r.last = p
	r.mu.Unlock()

	lines := make(chan string, 1)
	go func() {
		defer report.Close()
		line, _ := bufio.NewReader(report).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		if line == ReportReady {
			r.log.Printf("member %s is ready after %v: %s, pid %d", r.Name, time.Since(begin).Round(10*time.Millisecond),
				r.Server, p.pid)
			return nil
		}
		p.kill()
		if line == "" {
			line = fmt.Sprintf("it ended (%v)", p.err)
		}
		return fmt.Errorf("start member %q: %s; its log %s ends with\n%s", r.Name, line, logFile(r.Dir), r.logTail())
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("start member %q: %w; its log %s ends with\n%s", r.Name, ctx.Err(), logFile(r.Dir), r.logTail())
	}
}

// spawn starts the child and returns what it will report on.
func (r *Running) spawn() (*process, *os.File, error) {
	report, childReport, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer childReport.Close()
	childLifeline, lifeline, err := os.Pipe()
	if err != nil {
		report.Close()
		return nil, nil, err
	}
	defer childLifeline.Close()
	log, err := os.OpenFile(logFile(r.Dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		report.Close()
		lifeline.Close()
		return nil, nil, err
	}
	defer log.Close()

	cmd := exec.Command(r.binary, ChildVerb, "--dir", r.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{childReport, childLifeline} // ReportFD, LifelineFD
	// The kernel kills the child when this process dies, even while the child is stopped. The child has a process group of
	// its own, so that a Ctrl-C reaches this process alone, which then stops the members.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{lifeline: lifeline, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that started it ends, so this one lasts as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		report.Close()
		lifeline.Close()
		return nil, nil, err
	}
	return p, report, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal reaches the child only while it is ours: a process that was waited for may have left its id to another.
func (p *process) signal(s syscall.Signal) {
	if !p.ended() {
		_ = syscall.Kill(p.pid, s)
	}
}

func (p *process) kill() {
	p.stopping.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.done
	p.lifeline.Close()
}

// Stop shuts the member down and returns when its process has ended. The first Stop after a crash returns an error.
func (r *Running) Stop() error {
	r.life.Lock()
	defer r.life.Unlock()
	p := r.process()
	if p == nil {
		return nil
	}
	if p.ended() {
		p.lifeline.Close()
		if !p.stopping.Swap(true) {
			return fmt.Errorf("member %q had ended by itself (%v); its log %s ends with\n%s", r.Name, p.err, logFile(r.Dir),
				r.logTail())
		}
		return nil
	}
	p.stopping.Store(true)
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
	select {
	case <-p.done:
		p.lifeline.Close()
		return nil
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("member %q did not stop within %v and was killed", r.Name, stopTimeout)
	}
}

// Kill ends the member as a power cut would, and returns when its process is gone.
func (r *Running) Kill() {
	if p := r.process(); p != nil {
		p.kill()
	}
}

// Restart runs the member again on its data and its port, after it was stopped, was killed or died; one that runs is
// stopped first.
func (r *Running) Restart(ctx context.Context) error {
	if p := r.process(); p != nil && !p.ended() {
		if err := r.Stop(); err != nil {
			return err
		}
	}
	return r.start(ctx)
}

// PID returns the member's process, or its last one; 0 if there never was one.
func (r *Running) PID() int {
	if p := r.process(); p != nil {
		return p.pid
	}
	return 0
}

// RSS returns the memory that the member's process holds, in bytes; 0 if it does not run.
func (r *Running) RSS() int64 {
	if p := r.process(); p != nil && !p.ended() {
		return residentSet(p.pid)
	}
	return 0
}

// Done is closed when the member's process has ended, for whatever reason; it is that of the last start.
func (r *Running) Done() <-chan struct{} { return r.process().done }

// RESTConfig returns a client configuration of the member's administrator.
func (r *Running) RESTConfig() (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of member %q: %w", r.Name, err)
	}
	return c, nil
}

// logTail returns the last lines that the member logged, without mere information.
func (r *Running) logTail() string {
	f, err := os.Open(logFile(r.Dir))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	data, _ := io.ReadAll(f)
	lines := slices.DeleteFunc(strings.Split(strings.TrimRight(string(data), "\n"), "\n"), func(line string) bool {
		return len(line) > 1 && line[0] == 'I' && '0' <= line[1] && line[1] <= '9'
	})
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
