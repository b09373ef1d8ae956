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

	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// The unit is of Type=notify: systemd waits for READY=1.
func TestBinaryStartsServesAndStops(t *testing.T) {
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
	kubeconfig := filepath.Join(dir, "kubeconfig")
	cmd := exec.CommandContext(t.Context(), binary(t), "up", "--data-dir", filepath.Join(dir, "data"), "--port", "0",
		"--kubeconfig-out", kubeconfig)
	var gotText bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &gotText, &gotText, append(os.Environ(), "NOTIFY_SOCKET="+socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	notified := func() string {
		t.Helper()
		_ = words.SetReadDeadline(time.Now().Add(kit.Timeout))
		b := make([]byte, 1024)
		n, err := words.Read(b)
		if err != nil {
			t.Errorf("no notification: %v", err)
		}
		return string(b[:n])
	}
	if first := notified(); first != "READY=1" {
		t.Errorf("the first notification is %q", first)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := kit.Connect("the hub", config)
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.List(t.Context(), &clusterv1alpha1.ClusterList{}); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if next := notified(); next != "STOPPING=1" {
		t.Errorf("the next notification is %q", next)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, gotText.String())
	}
}
