package up

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// building stands for go build -v: modules, packages, what the compiler writes, and an exit code.
const building = `#!/bin/sh
echo "go: downloading example.com/module v1.0.0" >&2
sleep 3
echo example.com/module >&2
sleep 3
printf '%b' "$WRITES" >&2
exit $CODE
`

// A build shows one line that changes on a terminal, and few lines elsewhere. What the compiler writes is shown whole.
func TestBuildShowsItsProgressAndItsErrors(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(t.TempDir(), "build")
	if err := os.WriteFile(build, []byte(building), 0o755); err != nil {
		t.Fatal(err)
	}
	progress := filepath.Join(root, "hack", "progress.sh") + " building " + build
	const compiles, wrong = "package 1, compiling example.com/module", `# example.com/module\na.go:1:2: undefined: x\n`
	for story, tc := range map[string]struct {
		terminal            bool
		writes, code, every string
		has                 []string
		most                int
	}{
		"on a terminal": {terminal: true, code: "0", every: "60", most: 1,
			has: []string{"module 1, downloading example.com/module", compiles, "building took"}},
		"elsewhere":                 {code: "0", every: "1", most: 8, has: []string{compiles, "building took"}},
		"elsewhere, and it is fast": {code: "0", every: "60", most: 0},
		"an error on a terminal": {terminal: true, code: "3", every: "60", most: 2,
			writes: wrong, has: []string{"a.go:1:2: undefined: x"}},
		"an error elsewhere": {code: "3", every: "60", most: 2,
			writes: wrong, has: []string{"# example.com/module\na.go:1:2: undefined: x"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "bash", "-c", progress)
			if tc.terminal {
				if _, err := exec.LookPath("script"); err != nil {
					t.Skip("script makes the terminal, and this machine does not have it")
				}
				cmd = exec.CommandContext(t.Context(), "script", "-qec", progress, "/dev/null")
			}
			cmd.Env = append(os.Environ(), "WRITES="+tc.writes, "CODE="+tc.code, "PROGRESS_SECONDS="+tc.every)
			raw, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if (err != nil) != (tc.code == "3") || err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
				t.Errorf("it ended with %v, want exit code %s", err, tc.code)
			}
			output := strings.ReplaceAll(string(raw), "\r\n", "\n")
			for _, want := range tc.has {
				if !strings.Contains(output, want) {
					t.Errorf("it lacks %q:\n%q", want, output)
				}
			}
			if got := strings.Count(output, "\n"); got > tc.most {
				t.Errorf("it has %d lines, want at most %d:\n%s", got, tc.most, output)
			}
		})
	}
}
