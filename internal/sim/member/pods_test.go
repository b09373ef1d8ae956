package member_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// clientsOf returns clients of a user of a member, or of the administrator.
func clientsOf(t *testing.T, m *sim.Running, user string) (*rest.Config, *kubernetes.Clientset) {
	t.Helper()
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = user
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return config, c
}

// runningPod creates a pod in the namespace default and returns it when it runs.
func runningPod(t *testing.T, c *kubernetes.Clientset, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:1",
			Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, name+" runs", func() string {
		if pod, err = c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning {
			return string(pod.Status.Phase)
		}
		return ""
	})
	return pod
}

// podLog reads a log as kubectl does.
func podLog(t *testing.T, c *kubernetes.Clientset, name string, o *corev1.PodLogOptions) (string, error) {
	stream, err := c.CoreV1().Pods("default").GetLogs(name, o).Stream(t.Context())
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

const logEnd = "\nit runs no program, and logs only its start and its end\n"

func TestSimulatedPodsHaveLogs(t *testing.T) {
	m := sharedFleet(t).Members()[0]
	_, c := clientsOf(t, m, "")
	pod := runningPod(t, c, "logs")
	start := "simulated container app of pod default/logs started on node " + pod.Spec.NodeName

	// 1. Kubernetes' own checks of the request, and what the container says.
	for name, o := range map[string]struct {
		options corev1.PodLogOptions
		want    string
		err     string
	}{
		"all":               {want: start + " with image web:1" + logEnd},
		"the last line":     {options: corev1.PodLogOptions{TailLines: ptr.To[int64](1)}, want: logEnd[1:]},
		"no previous one":   {options: corev1.PodLogOptions{Previous: true}, err: `previous terminated container "app"`},
		"no such container": {options: corev1.PodLogOptions{Container: "db"}, err: "container db is not valid for pod logs"},
		"by name":           {options: corev1.PodLogOptions{Container: "app"}, want: start + " with image web:1" + logEnd},
	} {
		got, err := podLog(t, c, "logs", &o.options)
		if o.err == "" && err != nil || o.err != "" && (err == nil || !strings.Contains(err.Error(), o.err)) {
			t.Errorf("%s: %v, want %q", name, err, o.err)
		}
		if o.err == "" && got != o.want {
			t.Errorf("%s: the log is %q, want %q", name, got, o.want)
		}
	}
	if _, err := podLog(t, c, "nowhere", &corev1.PodLogOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that does not exist: %v", err)
	}

	// 2. A new image replaces the container; then there is a previous log.
	if _, err := c.CoreV1().Pods("default").Patch(t.Context(), "logs", types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"app","image":"web:2"}]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for o, want := range map[corev1.PodLogOptions]string{
		{}:               start + " with image web:2" + logEnd,
		{Previous: true}: start + logEnd + "ended with exit code 0\n",
	} {
		kit.Eventually(t, "the log of each image", func() string {
			if got, err := podLog(t, c, "logs", &o); err != nil || got != want {
				return fmt.Sprintf("with %v it is %q, %v", o, got, err)
			}
			return ""
		})
	}
}

// stream runs a command in a container, or attaches to it, over a protocol.
func stream(t *testing.T, config *rest.Config, c *kubernetes.Clientset, protocol, pod, subresource string,
	o *corev1.PodExecOptions, stdin string) (out, errOut string, err error) {
	t.Helper()
	target := c.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource(subresource).
		VersionedParams(o, clientgoscheme.ParameterCodec).URL()
	var executor remotecommand.Executor
	if protocol == "SPDY" {
		executor, err = remotecommand.NewSPDYExecutor(config, "POST", target)
	} else {
		executor, err = remotecommand.NewWebSocketExecutor(config, "GET", target.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	options := remotecommand.StreamOptions{Stdout: &stdout}
	if o.Stdin {
		options.Stdin = strings.NewReader(stdin)
	}
	if o.Stderr {
		options.Stderr = &stderr
	}
	err = executor.StreamWithContext(t.Context(), options)
	return stdout.String(), stderr.String(), err
}

func TestSimulatedPodsRunCommands(t *testing.T) {
	m := sharedFleet(t).Members()[0]
	config, c := clientsOf(t, m, "")
	pod := runningPod(t, c, "commands")
	for _, protocol := range []string{"SPDY", "websocket"} {
		for name, test := range map[string]struct {
			subresource string
			command     []string
			container   string
			stdin       string
			out         string
			err         string
		}{
			"hostname":  {command: []string{"hostname"}, out: "commands\n"},
			"env":       {command: []string{"env"}, out: "HOSTNAME=commands\nMODE=fast\n"},
			"the input": {command: []string{"cat"}, stdin: "typed", out: "typed"},
			"a shell":   {command: []string{"sh", "-c", "echo a b\nfalse\n"}, out: "a b\n", err: "exit code 1"},
			"a failure": {command: []string{"ls"}, err: "exit code 127"},
			"nothing":   {err: "the request has no command"},
			"no such container": {command: []string{"true"}, container: "db",
				err: "container db is not valid for pod commands"},
			"attach": {subresource: "attach", out: "simulated container app of pod default/commands started on node " +
				pod.Spec.NodeName + " with image web:1" + logEnd},
		} {
			o := &corev1.PodExecOptions{Command: test.command, Container: test.container, Stdin: test.stdin != "", Stdout: true,
				Stderr: true}
			subresource := "exec"
			if test.subresource != "" {
				subresource = test.subresource
			}
			out, errOut, err := stream(t, config, c, protocol, "commands", subresource, o, test.stdin)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%s over %s: ended with %v, want %q", name, protocol, err, test.err)
			}
			if out != test.out {
				t.Errorf("%s over %s: printed %q, want %q", name, protocol, out, test.out)
			}
			if test.err == "exit code 127" && !strings.Contains(errOut, "is simulated, and knows only cat, date, echo") {
				t.Errorf("%s over %s: the error is %q", name, protocol, errOut)
			}
		}
	}

	// A container that does not run has no commands.
	cl := connect(t, m)
	u := parse(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: stuck, labels: {app: stuck}}\n"+
		"spec: {containers: [{name: app, image: \"web:bad\"}]}\n")
	cl.createObject(u)
	cl.awaitPod("stuck", "waits for its image", func(p *corev1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 })
	_, _, err := stream(t, config, c, "SPDY", "stuck", "exec",
		&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, "")
	if err == nil || !strings.Contains(err.Error(), `container "app" of pod "default/stuck" does not run`) {
		t.Errorf("a command in a pod that does not run: %v", err)
	}
	if _, err := podLog(t, c, "stuck", &corev1.PodLogOptions{}); err == nil ||
		!strings.Contains(err.Error(), "is waiting to start: ImagePullBackOff") {
		t.Errorf("the log of a pod that does not run: %v", err)
	}
}

func TestTheMembersRBACAppliesToLogsAndCommands(t *testing.T) {
	m := sharedFleet(t).Members()[0]
	_, admin := clientsOf(t, m, "")
	runningPod(t, admin, "guarded")
	config, user := clientsOf(t, m, "anne")
	grant := func(name string, verb string, resources ...string) {
		t.Helper()
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{verb}}}}
		if _, err := admin.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anne"}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
		if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reads := func() error { _, err := podLog(t, user, "guarded", &corev1.PodLogOptions{}); return err }
	runs := func(protocol, subresource string) error {
		_, _, err := stream(t, config, user, protocol, "guarded", subresource,
			&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, "")
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), `"anne" cannot`) {
			t.Errorf("%s: %v", what, err)
		}
	}

	// 1. Reading pods is neither reading logs nor running commands.
	grant("pods", "get", "pods")
	kit.Eventually(t, "she reads pods", func() string {
		if _, err := user.CoreV1().Pods("default").Get(t.Context(), "guarded", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	refused("logs without the right", reads())
	for _, protocol := range []string{"SPDY", "websocket"} {
		for _, subresource := range []string{"exec", "attach"} {
			refused(subresource+" without the right", runs(protocol, subresource))
		}
	}

	// 2. Each right is one of its own.
	grant("logs", "get", "pods/log")
	kit.Eventually(t, "she reads logs", func() string {
		if err := reads(); err != nil {
			return err.Error()
		}
		return ""
	})
	refused("exec with the right to read logs", runs("SPDY", "exec"))
	grant("commands", "create", "pods/exec")
	kit.Eventually(t, "she runs commands", func() string {
		if err := runs("SPDY", "exec"); err != nil {
			return err.Error()
		}
		return ""
	})
	refused("attach with the right to run commands", runs("SPDY", "attach"))
}

// Nothing but the API server reaches the kubelet's API.
func TestTheKubeletsAPIIsTheAPIServersAlone(t *testing.T) {
	m := sharedFleet(t).Members()[0]
	config, c := clientsOf(t, m, "")
	pod := runningPod(t, c, "closed")
	node, err := c.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admins, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	at := net.JoinHostPort("127.0.0.1", fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
	for who, certificates := range map[string][]tls.Certificate{"nobody": nil, "the administrator": {admins}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
			Certificates: certificates}}}
		resp, err := client.Get("https://" + at + "/containerLogs/default/closed/app")
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s got %s", who, resp.Status)
		}
	}
	if _, err := c.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").
		Suffix("containerLogs/default/closed/app").Stream(t.Context()); err == nil {
		t.Error("the proxy of the node serves the kubelet's API")
	}

	// What a simulated node cannot do, it refuses with a reason.
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target := c.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("closed").
		SubResource("portforward").URL()
	_, _, err = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", target).Dial("portforward.k8s.io")
	if err == nil || !strings.Contains(err.Error(), "a simulated node serves logs, exec and attach only") {
		t.Errorf("port forwarding answers %v", err)
	}
}

func TestMetricsAreDiscovered(t *testing.T) {
	m := sharedFleet(t).Members()[0]
	_, c := clientsOf(t, m, "")
	groups, lists, err := c.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	group, resources := "", ""
	for _, g := range groups {
		if g.Name == "metrics.k8s.io" {
			group = g.PreferredVersion.GroupVersion
		}
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if list.GroupVersion == "metrics.k8s.io/v1beta1" {
				resources += fmt.Sprintf("%s %s %v, ", r.Name, r.Kind, r.Namespaced)
			}
		}
	}
	if want := "nodes NodeMetrics false, pods PodMetrics true, "; group != "metrics.k8s.io/v1beta1" || resources != want {
		t.Errorf("group %q, resources %q, want %q", group, resources, want)
	}
}
