package membertest

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/member/streams"
)

// Kubelet answers for pods what a member's nodes would: logs, and commands over SPDY and websocket. Its Serve is for
// Server.Behave.
type Kubelet struct {
	// Log has the logs of pods, by namespace/pod, and follow their next lines; a followed log ends when the channel is
	// closed.
	Log    map[string]string
	Follow <-chan string
	// Exec runs a command in a pod; attach is one without a command.
	Exec func(pod string, command []string, stdin io.Reader, stdout, stderr io.Writer) error
}

// Serve answers requests for pods' subresources, and reports whether it did.
func (k *Kubelet) Serve(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
	if len(parts) != 4 || parts[1] != "pods" {
		return false
	}
	pod, q := parts[0]+"/"+parts[2], r.URL.Query()
	switch parts[3] {
	case "log":
		k.log(w, r, pod, q.Get("follow") == "true")
	case "exec", "attach":
		wanted := slices.DeleteFunc([]string{streams.Stdin, streams.Stdout, streams.Stderr},
			func(name string) bool { return q.Get(name) != "true" })
		streams.Serve(w, r, wanted, func(stdin io.Reader, stdout, stderr io.Writer) error {
			return k.Exec(pod, q["command"], stdin, stdout, stderr)
		})
	default:
		return false
	}
	return true
}

func (k *Kubelet) log(w http.ResponseWriter, r *http.Request, pod string, follow bool) {
	text, ok := k.Log[pod]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, text)
	for follow {
		_ = http.NewResponseController(w).Flush()
		select {
		case more, open := <-k.Follow:
			if !open {
				return
			}
			_, _ = io.WriteString(w, more)
		case <-r.Context().Done():
			return
		}
	}
}
