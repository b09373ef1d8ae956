package up

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// piece is a block of a page, at its first line. skip is the reason of an HTML comment "not run: …" above it.
type piece struct {
	language, text, skip string
	line                 int
}

var notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// piecesOf returns the blocks of a page in their order.
func piecesOf(page string) (found []piece) {
	var open *piece
	skip := ""
	for i, line := range strings.Split(page, "\n") {
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &piece{language: language, line: i + 2, skip: skip}
			skip = ""
		case isFence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.TrimSpace(line) != "":
			skip = ""
			if m := notRun.FindStringSubmatch(line); m != nil {
				skip = m[1]
			}
		}
	}
	return found
}

// commandsOf returns the commands of a block. A command goes on in the next line while a quote is open, and after a
// backslash.
func commandsOf(text string) (found []string) {
	current := ""
	for line := range strings.Lines(text) {
		current += line
		if strings.Count(current, "'")%2 == 0 && !strings.HasSuffix(line, "\\\n") {
			if current = strings.TrimSpace(current); current != "" {
				found = append(found, current)
			}
			current = ""
		}
	}
	return found
}

// lacksOf returns the first line of a shown output that a real one lacks. Of a table, which begins with NAME, the shown
// columns are compared, and of other lines the words in their order. In a word, … stands for anything.
func lacksOf(shown, output string) string {
	head, rows, _ := strings.Cut(shown, "\n")
	isTable := strings.HasPrefix(head, "NAME ")
	if !isTable {
		rows = shown
	}
	for want := range strings.Lines(rows) {
		there := false
		for line := range strings.Lines(output) {
			if isTable {
				there = there || hasCells(strings.Fields(head), strings.Fields(want), headOf(output), line)
			} else {
				there = there || hasWords(strings.Fields(want), strings.Fields(line))
			}
		}
		if !there {
			return strings.TrimSpace(want)
		}
	}
	return ""
}

// headOf returns the line of an output that begins with NAME.
func headOf(output string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "NAME ") {
			return line
		}
	}
	return ""
}

// hasCells reports whether a line of a table has these words in these columns, which begin as in its head.
func hasCells(columns, words []string, head, line string) bool {
	for i, word := range words {
		at := regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(columns[i]) + `(\s|$)`).FindStringIndex(head)
		if at == nil {
			return false
		}
		begin := at[0]
		if i > 0 {
			begin++
		}
		cell := ""
		if runes := []rune(line); begin < len(runes) {
			cell, _, _ = strings.Cut(strings.TrimSuffix(string(runes[begin:]), "\n"), "  ")
		}
		if !matches(word, cell) {
			return false
		}
	}
	return true
}

// hasWords reports whether a line has words in their order.
func hasWords(words, line []string) bool {
	for _, word := range line {
		if len(words) > 0 && matches(words[0], word) {
			words = words[1:]
		}
	}
	return len(words) == 0
}

func matches(shown, word string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*") + "$").MatchString(word)
}

// terminal is a bash that a reader of a page types into.
type terminal struct {
	t      *testing.T
	in     io.Writer
	ended  *bufio.Scanner
	output string
	n      int
}

// openTerminal starts a bash in a folder, which is its home.
func openTerminal(t *testing.T, folder, prelude string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*kit.Timeout)
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir = folder
	cmd.Env = readerIn(folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		cancel()
	})
	term := &terminal{t: t, in: in, ended: bufio.NewScanner(out), output: filepath.Join(folder, "output")}
	fmt.Fprintln(in, prelude)
	return term
}

// run runs a command and returns its output and its exit code.
func (term *terminal) run(command string) (string, int) {
	term.t.Helper()
	term.n++
	file := fmt.Sprintf("%s.%d", term.output, term.n)
	fmt.Fprintf(term.in, "{ %s\n} </dev/null >%s 2>&1; echo code $?\n", command, file)
	for term.ended.Scan() {
		if code, found := strings.CutPrefix(term.ended.Text(), "code "); found {
			n, err := strconv.Atoi(code)
			raw, readErr := os.ReadFile(file)
			if err != nil || readErr != nil {
				term.t.Fatal(err, readErr)
			}
			return string(raw), n
		}
	}
	term.t.Fatalf("bash ended at %s", command)
	return "", 0
}

// guide runs the pieces of a page.
type guide struct {
	*terminal
	folder string
}

// apply applies a YAML block as the page says, or saves it if it names a file.
func (g guide) apply(p piece) {
	g.t.Helper()
	first, _, _ := strings.Cut(p.text, "\n")
	name, isFile := strings.CutPrefix(first, "# file: ")
	if !isFile {
		name = fmt.Sprintf("block.%d", p.line)
	}
	file := filepath.Join(g.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(p.text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if isFile {
		return
	}
	if output, code := g.run("kubectl apply -f - <" + name); code != 0 || strings.Contains(output, "Warning") {
		g.t.Fatalf("docs/guide.md:%d: kubectl apply ended with %d:\n%s", p.line, code, output)
	}
}

// command runs a command of the page, again until it has the output that the page shows; empty for none.
func (g guide) command(line int, command, shown string) {
	g.t.Helper()
	kit.Eventually(g.t, fmt.Sprintf("docs/guide.md:%d: %s", line, command), func() string {
		output, code := g.run(command)
		lack := lacksOf(shown, output)
		if code == 0 && lack == "" {
			g.t.Logf("$ %s\n%s", command, output)
			return ""
		}
		problem := fmt.Sprintf("it ended with %d; the output lacks %q:\n%s", code, lack, output)
		if shown == "" {
			g.t.Fatal(problem) // such a command runs once
		}
		return problem
	})
}

// followGuide runs the guide from its top to its end: each command succeeds, each block is accepted without a warning,
// and what the page shows of an output is seen.
func followGuide(t *testing.T, root, folder string) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	pieces := piecesOf(string(page))
	g := guide{openTerminal(t, folder, fmt.Sprintf(prelude, root)), folder}
	ran, skipped := 0, 0
	for i, p := range pieces {
		switch {
		case p.skip != "":
			t.Logf("docs/guide.md:%d is not run: %s", p.line, p.skip)
			skipped++
		case p.language == "yaml":
			g.apply(p)
		case p.language == "sh":
			shown := ""
			if i+1 < len(pieces) && pieces[i+1].language == "text" {
				shown = pieces[i+1].text
			}
			commands := commandsOf(p.text)
			for n, command := range commands {
				if n < len(commands)-1 {
					g.command(p.line, command, "")
				} else {
					g.command(p.line, command, shown)
				}
			}
		case p.language != "text":
			t.Fatalf("docs/guide.md:%d: a block of %q is neither sh, yaml nor text", p.line, p.language)
		}
		ran++
		if t.Failed() {
			break
		}
	}
	if ran < 50 || skipped > 3 {
		t.Errorf("%d blocks ran, and %d are not run", ran, skipped)
	}
}

func TestShownOutputIsCompared(t *testing.T) {
	const output = "NAME      CLUSTER   READY   STATUS      AGE\nshop-x2   berlin    2/2     Running     5s\n" +
		"db        oregon            Not ready   1m\n  - result: Successful of 2\n"
	for shown, lack := range map[string]string{
		"":                                              "",
		"NAME CLUSTER\nshop-… berlin\n":                 "",
		"NAME READY\nshop-… 2/2\ndb …\n":                "",
		"NAME CLUSTER\nshop-… oregon":                   "shop-… oregon",
		"NAME READY\nshop-x2 Running":                   "shop-x2 Running",
		"NAME READY\nshop-x2 2":                         "shop-x2 2",
		"NAME READY\ndb 1m":                             "db 1m",
		"NAME ZONE\nshop-x2 2/2":                        "shop-x2 2/2",
		"NAME READY\nhop-x2 2/2":                        "hop-x2 2/2",
		"result: 2":                                     "",
		"result: Successful\n- 2\n- Failed":             "- Failed",
		"Successful result:":                            "Successful result:",
		"NAME CLUSTER STATUS AGE\nshop-x2 … Running 5s": "",
	} {
		if got := lacksOf(shown, output); got != lack {
			t.Errorf("of %q, the output lacks %q, want %q", shown, got, lack)
		}
	}
	if got := commandsOf("a '{\n b}'\nc \\\n d\n\ne # x\n"); strings.Join(got, "|") != "a '{\n b}'|c \\\n d|e # x" {
		t.Errorf("the commands are %q", got)
	}
}
