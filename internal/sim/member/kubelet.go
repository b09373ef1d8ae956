package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/argosy-io/argosy/internal/member/streams"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// kubeletHost is the address at which the API server reaches the kubelet of every node. It is a name, because an
// address would become the address of pods in the host's network.
const kubeletHost = "localhost"

// kubelet serves the part of the kubelet's API that answers logs, exec and attach, for all nodes of a member. The API
// server authorizes users, checks containers, and passes their requests on.
type kubelet struct {
	client kubernetes.Interface
}

// serveKubelet serves the kubelet's API until ctx ends. Its only client is the API server, with the certificate of the
// front proxy.
func serveKubelet(ctx context.Context, listener net.Listener, files pki.Files, client kubernetes.Interface) error {
	authority, err := os.ReadFile(files.FrontProxyCA)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true) // commands upgrade their connection
	server := &http.Server{Handler: kubelet{client}.handler(), Protocols: protocols, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	return server.ServeTLS(listener, files.Serving, files.ServingKey)
}

func (k kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.serveLog)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", k.serveAttach)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "a simulated node serves logs, exec and attach only", http.StatusNotImplemented)
	})
	return mux
}

// pod returns the pod of a request, or responds that there is none.
func (k kubelet) pod(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	pod, err := k.client.CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
	if err == nil {
		return pod
	}
	code := http.StatusInternalServerError
	if apierrors.IsNotFound(err) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
	return nil
}

type line struct {
	at   time.Time
	text string
}

// logOf returns the log of a container: what is true of a container that runs no program. The errors are the kubelet's.
func logOf(pod *corev1.Pod, name string, previous bool) ([]line, error) {
	status, _ := statusOf(pod, name)
	running, ended := status.State.Running, status.State.Terminated
	image := " with image " + status.Image
	if previous {
		// The status does not have the image that ran before.
		if running, ended, image = nil, status.LastTerminationState.Terminated, ""; ended == nil {
			return nil, fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
		}
	}
	started := metav1.Time{}
	switch {
	case running != nil:
		started = running.StartedAt
	case ended != nil:
		started = ended.StartedAt
	case status.State.Waiting != nil:
		return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name,
			status.State.Waiting.Reason)
	default:
		return nil, fmt.Errorf("container %q in pod %q is not available", name, pod.Name)
	}
	lines := []line{{started.Time, fmt.Sprintf("simulated container %s of pod %s/%s started on node %s%s", name,
		pod.Namespace, pod.Name, pod.Spec.NodeName, image)},
		{started.Time, "it runs no program, and logs only its start and its end"}}
	if ended != nil {
		lines = append(lines, line{ended.FinishedAt.Time, fmt.Sprintf("ended with exit code %d", ended.ExitCode)})
	}
	return lines, nil
}

func statusOf(pod *corev1.Pod, container string) (corev1.ContainerStatus, bool) {
	all := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses,
		pod.Status.EphemeralContainerStatuses)
	return podutil.GetContainerStatus(all, container)
}

// selectLines returns the lines that the options ask for, as text.
func selectLines(lines []line, o *corev1.PodLogOptions, now time.Time) string {
	since := time.Time{}
	if o.SinceTime != nil {
		since = o.SinceTime.Time
	}
	if o.SinceSeconds != nil {
		since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.at.Before(since) })
	if o.TailLines != nil {
		lines = lines[max(0, len(lines)-int(*o.TailLines)):]
	}
	var out strings.Builder
	for _, l := range lines {
		if o.Timestamps {
			out.WriteString(l.at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " ")
		}
		out.WriteString(l.text + "\n")
	}
	text := out.String()
	if o.LimitBytes != nil {
		text = text[:min(len(text), int(*o.LimitBytes))]
	}
	return text
}

func (k kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	o := &corev1.PodLogOptions{}
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod := k.pod(w, r)
	if pod == nil {
		return
	}
	name := r.PathValue("container")
	lines, err := logOf(pod, name, o.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, selectLines(lines, o, time.Now())) // the client is gone, if this fails
}

// serveCommand serves a command in a container that runs.
func (k kubelet) serveCommand(w http.ResponseWriter, r *http.Request, command func(simulated) error) {
	pod := k.pod(w, r)
	if pod == nil {
		return
	}
	name, q := r.PathValue("container"), r.URL.Query()
	spec := kubecontainer.GetContainerSpec(pod, name)
	if status, _ := statusOf(pod, name); spec == nil || status.State.Running == nil {
		http.Error(w, fmt.Sprintf("container %q of pod %q does not run", name, pod.Namespace+"/"+pod.Name),
			http.StatusInternalServerError)
		return
	}
	var wanted []string
	for param, stream := range map[string]string{corev1.ExecStdinParam: streams.Stdin,
		corev1.ExecStdoutParam: streams.Stdout, corev1.ExecStderrParam: streams.Stderr} {
		if q.Get(param) == "1" {
			wanted = append(wanted, stream)
		}
	}
	streams.Serve(w, r, wanted, func(stdin io.Reader, stdout, stderr io.Writer) error {
		c := simulated{pod: pod, container: spec, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
		if stdin != nil {
			c.stdin = stdin
		}
		if stdout != nil {
			c.stdout = stdout
		}
		if stderr != nil {
			c.stderr = stderr
		}
		if q.Get(corev1.ExecTTYParam) == "1" {
			c.stdout = carriage{c.stdout}
			c.stderr = c.stdout
		}
		return command(c)
	})
}

func (k kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()[corev1.ExecCommandParam]
	if len(command) == 0 {
		http.Error(w, "the request has no command", http.StatusBadRequest)
		return
	}
	k.serveCommand(w, r, func(c simulated) error { return c.run(command) })
}

// serveAttach prints the log of the container. No other output can follow.
func (k kubelet) serveAttach(w http.ResponseWriter, r *http.Request) {
	k.serveCommand(w, r, func(c simulated) error {
		lines, err := logOf(c.pod, c.container.Name, false)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.stdout, selectLines(lines, &corev1.PodLogOptions{}, time.Now()))
		return err
	})
}
