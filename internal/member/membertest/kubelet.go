package membertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
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
		if wsstream.IsWebSocketRequest(r) {
			k.overWebsocket(w, r, pod, q)
		} else {
			k.overSPDY(w, r, pod, q)
		}
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

func (k *Kubelet) run(pod string, q url.Values, stdin io.Reader, stdout, stderr io.Writer) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if err := k.Exec(pod, q["command"], stdin, stdout, stderr); err != nil {
		status = metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonInternalError}
		var exit ExitCode
		if errors.As(err, &exit) {
			status.Reason = "NonZeroExitCode"
			status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode",
				Message: fmt.Sprint(int(exit))}}}
		}
	}
	text, err := json.Marshal(status)
	if err != nil {
		panic(err) // a status always encodes
	}
	return text
}

// ExitCode is the exit code of a command in a pod that failed.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("command terminated with exit code %d", int(e)) }

func (k *Kubelet) overSPDY(w http.ResponseWriter, r *http.Request, pod string, q url.Values) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	wanted := 1 // the stream for errors
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		if q.Get(name) == "true" {
			wanted++
		}
	}
	opened := make(chan httpstream.Stream, wanted)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	streams := map[string]io.ReadWriter{}
	for range wanted {
		select {
		case s := <-opened:
			streams[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		}
	}
	_, _ = streams["error"].Write(k.run(pod, q, streams["stdin"], streams["stdout"], streams["stderr"]))
	for _, s := range streams {
		_ = s.(httpstream.Stream).Close()
	}
	<-conn.CloseChan() // the client closes after it has read everything
}

func (k *Kubelet) overWebsocket(w http.ResponseWriter, r *http.Request, pod string, q url.Values) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true,
		Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel}}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return // the other side is gone, or has a response
	}
	defer conn.Close()
	_, _ = streams[3].Write(k.run(pod, q, streams[0], streams[1], streams[2]))
}
