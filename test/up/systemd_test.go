package up

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The unit is of Type=notify: without these words systemd would take each start for one that failed.
func TestTheHubTellsSystemdWhenItServesAndWhenItStops(t *testing.T) {
	dir, err := os.MkdirTemp("", "argosy") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	words, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	cmd := exec.CommandContext(t.Context(), binary(t), "up", "--data-dir", filepath.Join(dir, "data"), "--port", "0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &said, &said, append(os.Environ(), "NOTIFY_SOCKET="+socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := func() string {
		t.Helper()
		_ = words.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1024)
		n, err := words.Read(b)
		if err != nil {
			t.Errorf("systemd hears nothing (%v)", err)
		}
		return string(b[:n])
	}
	if first := heard(); first != "READY=1" {
		t.Errorf("first it says %q", first)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if next := heard(); next != "STOPPING=1" {
		t.Errorf("then it says %q", next)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, said.String())
	}
}
