package member

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/argosy-io/argosy/internal/member/streams"
)

// Exit codes of a shell.
const (
	failed   = streams.ExitCode(1)
	notFound = streams.ExitCode(127)
)

// commands are those of a simulated container, which has no files and no programs.
const commands = "cat, date, echo, env, exit, false, hostname, sh, true"

// simulated is a simulated container with the streams of a command.
type simulated struct {
	pod            *corev1.Pod
	container      *corev1.Container
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run runs a command. Its error is the exit code, or that of a stream.
func (c simulated) run(command []string) error {
	name, args := command[0], command[1:]
	if name == "sh" || name == "bash" || name == "/bin/sh" || name == "/bin/bash" {
		return c.shell(args)
	}
	var out string
	switch name {
	case "cat":
		if len(args) > 0 {
			fmt.Fprintf(c.stderr, "cat: %s: a simulated container has no files\n", strings.Join(args, " "))
			return failed
		}
		_, err := io.Copy(c.stdout, c.stdin)
		return err
	case "date":
		out = time.Now().UTC().Format(time.UnixDate) + "\n"
	case "echo":
		out = strings.Join(args, " ") + "\n"
	case "env":
		out = "HOSTNAME=" + c.pod.Name + "\n"
		for _, e := range c.container.Env {
			if e.ValueFrom == nil {
				out += e.Name + "=" + e.Value + "\n"
			}
		}
	case "false":
		return failed
	case "hostname":
		out = c.pod.Name + "\n"
	case "true":
	default:
		fmt.Fprintf(c.stderr, "%s: not found: container %s of pod %s/%s is simulated, and knows only %s\n", name,
			c.container.Name, c.pod.Namespace, c.pod.Name, commands)
		return notFound
	}
	_, err := io.WriteString(c.stdout, out)
	return err
}

// shell runs each line of the text after -c as one command with words and no quotes. Its error is that of the last
// command.
func (c simulated) shell(args []string) error {
	if len(args) < 2 || args[0] != "-c" {
		fmt.Fprintln(c.stderr, "sh: a simulated container has no files, and no input to a shell: use sh -c")
		return notFound
	}
	var last error
	for line := range strings.Lines(args[1]) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "exit":
			return last
		default:
			last = c.run(words)
		}
	}
	return last
}

// carriage ends lines as a terminal needs it.
type carriage struct{ io.Writer }

func (w carriage) Write(p []byte) (int, error) {
	_, err := io.WriteString(w.Writer, strings.ReplaceAll(string(p), "\n", "\r\n"))
	return len(p), err
}
