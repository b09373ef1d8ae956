package member

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"
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
	// terminal is true if the client's terminal passes on each key.
	terminal bool
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

// shell runs each line of its input, or the text after -c, as one command with words and no quotes. Its error is that
// of the last command.
func (c simulated) shell(args []string) error {
	switch {
	case len(args) > 1 && args[0] == "-c":
		c.stdin, c.terminal = strings.NewReader(args[1]), false
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		fmt.Fprintf(c.stderr, "sh: %s: a simulated container has no files\n", args[0])
		return notFound
	}
	next := c.lines()
	c.stdin = strings.NewReader("") // the shell reads it
	var last error
	for {
		line, err := next()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "exit" {
			return last
		}
		last = c.run(words)
	}
}

// lines returns a function that reads the next line of the input. In a terminal, users edit it behind a prompt.
func (c simulated) lines() func() (string, error) {
	if c.terminal {
		return term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{c.stdin, c.stdout}, c.pod.Name+" $ ").ReadLine
	}
	lines := bufio.NewScanner(c.stdin)
	return func() (string, error) {
		if lines.Scan() {
			return lines.Text(), nil
		}
		if err := lines.Err(); err != nil {
			return "", err
		}
		return "", io.EOF
	}
}

// carriage ends lines as a terminal needs it.
type carriage struct{ io.Writer }

func (w carriage) Write(p []byte) (int, error) {
	_, err := io.WriteString(w.Writer, strings.ReplaceAll(strings.ReplaceAll(string(p), "\r\n", "\n"), "\n", "\r\n"))
	return len(p), err
}
