package member

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/internal/member/streams"
)

// noon is when the containers of these tests start.
var noon = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

// after returns a time some seconds after noon.
func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// podOf returns a pod whose containers have these statuses.
func podOf(statuses ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Spec:   corev1.PodSpec{NodeName: "eu-node-0"},
		Status: corev1.PodStatus{ContainerStatuses: statuses}}
}

func TestLogSaysWhatIsTrueOfASimulatedContainer(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: noon}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: noon, FinishedAt: after(5),
		ExitCode: 2}}
	const first, second = "simulated container app of pod shop/web-1 started on node eu-node-0",
		"it runs no program, and logs only its start and its end"
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		previous bool
		want     []string
		err      string
	}{
		"running": {pod: podOf(corev1.ContainerStatus{Name: "app", Image: "web:1", State: runs}),
			want: []string{first + " with image web:1", second}},
		"ended": {pod: podOf(corev1.ContainerStatus{Name: "app", Image: "web:1", State: ended}),
			want: []string{first + " with image web:1", second, "ended with exit code 2"}},
		"previous": {pod: podOf(corev1.ContainerStatus{Name: "app", Image: "web:2", State: runs,
			LastTerminationState: ended}), previous: true, want: []string{first, second, "ended with exit code 2"}},
		"no previous": {pod: podOf(corev1.ContainerStatus{Name: "app", State: runs}), previous: true,
			err: `previous terminated container "app" in pod "web-1" not found`},
		"waiting": {pod: podOf(corev1.ContainerStatus{Name: "app",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}),
			err: `container "app" in pod "web-1" is waiting to start: ImagePullBackOff`},
		"not started": {pod: podOf(), err: `container "app" in pod "web-1" is not available`},
		"an init container": {pod: &corev1.Pod{ObjectMeta: podOf().ObjectMeta, Spec: podOf().Spec,
			Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "app", Image: "init:1",
				State: ended}}}},
			want: []string{first + " with image init:1", second, "ended with exit code 2"}},
	} {
		lines, err := logOf(c.pod, "app", c.previous)
		if text := errorText(err); text != c.err {
			t.Errorf("%s: error %q, want %q", name, text, c.err)
		}
		want := ""
		if c.err == "" {
			want = strings.Join(c.want, "\n") + "\n"
		}
		if got := selectLines(lines, &corev1.PodLogOptions{}, noon.Time); got != want {
			t.Errorf("%s: the log is %q, want %q", name, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLogOptionsSelectLines(t *testing.T) {
	lines := []line{{noon.Time, "one"}, {noon.Time, "two"}, {after(5).Time, "three"}}
	for name, c := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"all":           {want: "one\ntwo\nthree\n"},
		"tail":          {options: corev1.PodLogOptions{TailLines: ptr.To[int64](1)}, want: "three\n"},
		"no tail":       {options: corev1.PodLogOptions{TailLines: ptr.To[int64](0)}},
		"a long tail":   {options: corev1.PodLogOptions{TailLines: ptr.To[int64](9)}, want: "one\ntwo\nthree\n"},
		"since seconds": {options: corev1.PodLogOptions{SinceSeconds: ptr.To[int64](6)}, want: "three\n"},
		"since a time":  {options: corev1.PodLogOptions{SinceTime: ptr.To(after(1))}, want: "three\n"},
		"bytes":         {options: corev1.PodLogOptions{LimitBytes: ptr.To[int64](5)}, want: "one\nt"},
		"timestamps": {options: corev1.PodLogOptions{Timestamps: true, TailLines: ptr.To[int64](1)},
			want: "2026-01-01T12:00:05.000000000Z three\n"},
	} {
		if got := selectLines(lines, &c.options, after(10).Time); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSimulatedContainersHaveAFewCommands(t *testing.T) {
	const missing = ": not found: container app of pod shop/web-1 is simulated, and knows only " + commands + "\n"
	for name, c := range map[string]struct {
		command             []string
		stdin, out, errText string
		code                streams.ExitCode
	}{
		"echo":     {command: []string{"echo", "a", "b"}, out: "a b\n"},
		"hostname": {command: []string{"hostname"}, out: "web-1\n"},
		"env":      {command: []string{"env"}, out: "HOSTNAME=web-1\nMODE=fast\n"},
		"cat":      {command: []string{"cat"}, stdin: "typed", out: "typed"},
		"cat of a file": {command: []string{"cat", "/etc/hosts"}, code: 1,
			errText: "cat: /etc/hosts: a simulated container has no files\n"},
		"true":           {command: []string{"true"}},
		"false":          {command: []string{"false"}, code: 1},
		"an unknown one": {command: []string{"ls", "-l"}, errText: "ls" + missing, code: 127},
		"a shell's text": {command: []string{"sh", "-c", "echo a\n\nls\nhostname"}, stdin: "echo b", out: "a\nweb-1\n",
			errText: "ls" + missing},
		"the code of its last command": {command: []string{"/bin/sh", "-c", "echo a\nfalse"}, out: "a\n", code: 1},
		"its end":                      {command: []string{"sh", "-c", "false\nexit\necho a"}, code: 1},
		"an interactive shell": {command: []string{"sh"}, code: 127,
			errText: "sh: a simulated container has no files, and no input to a shell: use sh -c\n"},
		"a script": {command: []string{"sh", "/run.sh"}, code: 127,
			errText: "sh: a simulated container has no files, and no input to a shell: use sh -c\n"},
		"cat in a shell":   {command: []string{"bash", "-c", "cat\necho a"}, stdin: "typed", out: "typeda\n"},
		"the shell's last": {command: []string{"sh", "-c", "false\ntrue"}},
	} {
		var out, errOut bytes.Buffer
		container := &corev1.Container{Name: "app", Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"},
			{Name: "KEY", ValueFrom: &corev1.EnvVarSource{}}}}
		err := simulated{pod: podOf(), container: container, stdin: strings.NewReader(c.stdin), stdout: &out,
			stderr: &errOut}.run(c.command)
		var code streams.ExitCode
		if errors.As(err, &code); code != c.code || err != nil && code == 0 {
			t.Errorf("%s: ended with %v, want exit code %d", name, err, c.code)
		}
		if out.String() != c.out || errOut.String() != c.errText {
			t.Errorf("%s: printed %q and %q, want %q and %q", name, out.String(), errOut.String(), c.out, c.errText)
		}
	}
}
