package server

import (
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"k8s.io/klog/v2"
)

// notifySocket is the environment variable with the socket of systemd, see sd_notify(3).
const notifySocket = "NOTIFY_SOCKET"

// notifier reports how the hub is to the systemd that started it; elsewhere it does nothing.
type notifier struct{ socket string }

// takeNotifier removes the socket from the environment. Otherwise the API server would report itself ready there before
// the hub is.
func takeNotifier() notifier {
	n := notifier{os.Getenv(notifySocket)}
	_ = os.Unsetenv(notifySocket)
	return n
}

func (n notifier) notify(state string) {
	if n.socket == "" {
		return
	}
	err := os.Setenv(notifySocket, n.socket)
	if err == nil {
		_, err = daemon.SdNotify(true, state) // true removes the variable
	}
	if err != nil {
		klog.ErrorS(err, "notify systemd", "state", state)
	}
}
