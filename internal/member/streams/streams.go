// Package streams serves commands in containers as a kubelet does, over SPDY and websocket. Simulated and in-memory
// members use it.
package streams

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// The streams of a command.
const (
	Stdin  = "stdin"
	Stdout = "stdout"
	Stderr = "stderr"
)

// Command runs in a container. A stream that the client did not ask for is nil.
type Command func(stdin io.Reader, stdout, stderr io.Writer) error

// ExitCode is the exit code of a command that failed.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("command terminated with exit code %d", int(e)) }

// Serve runs a command with the streams that the client asked for, and returns when the client has its result.
func Serve(w http.ResponseWriter, r *http.Request, wanted []string, command Command) {
	if wsstream.IsWebSocketRequest(r) {
		overWebsocket(w, r, wanted, command)
	} else {
		overSPDY(w, r, wanted, command)
	}
}

// result returns the end of a command as the client reads it.
func result(err error) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if err != nil {
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

func overSPDY(w http.ResponseWriter, r *http.Request, wanted []string, command Command) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	count := len(wanted) + 1 // the stream for errors
	opened := make(chan httpstream.Stream, count)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		if name := s.Headers().Get("streamType"); name == "error" || slices.Contains(wanted, name) {
			opened <- s
		}
		return nil
	})
	if conn == nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	streams := map[string]io.ReadWriter{}
	for range count {
		select {
		case s := <-opened:
			streams[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		}
	}
	_, _ = streams["error"].Write(result(command(streams[Stdin], streams[Stdout], streams[Stderr])))
	for _, s := range streams {
		_ = s.(httpstream.Stream).Close()
	}
	<-conn.CloseChan() // the client closes after it has read everything
}

func overWebsocket(w http.ResponseWriter, r *http.Request, wanted []string, command Command) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true,
		Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel}}})
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return // the other side is gone, or has a response
	}
	defer conn.Close()
	streams := map[string]io.ReadWriter{}
	for i, name := range []string{Stdin, Stdout, Stderr} {
		if slices.Contains(wanted, name) {
			streams[name] = channels[i]
		}
	}
	_, _ = channels[3].Write(result(command(streams[Stdin], streams[Stdout], streams[Stderr])))
}
