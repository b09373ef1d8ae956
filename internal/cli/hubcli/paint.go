package hubcli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

var ColorModes = []string{"auto", "always", "never"}

type ColorMode string

func (m *ColorMode) String() string { return string(*m) }
func (m *ColorMode) Type() string   { return "string" }

// Set implements pflag.Value.
func (m *ColorMode) Set(s string) error {
	if !slices.Contains(ColorModes, s) {
		return fmt.Errorf("want %s", strings.Join(ColorModes, ", "))
	}
	*m = ColorMode(s)
	return nil
}

// Colors reports whether a command is to write in color. By itself it does so on a terminal that has colors, unless the
// user has NO_COLOR set.
func Colors(cmd *cobra.Command, out io.Writer) bool {
	if f := cmd.Flag("color"); f != nil && f.Value.String() != ColorModes[0] {
		return f.Value.String() == "always"
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(out)
}

func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// color is an ANSI color; empty for none.
type color string

const (
	none   color = ""
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
	plain        = "\x1b[0m"
)

func (c color) paint(s string) string {
	if c == none || s == "" {
		return s
	}
	return string(c) + s + plain
}

// A painter colors output: problems red, warnings yellow, good states green. It reads formatted lines, so the width of
// columns does not include the colors.
type Painter struct {
	Out io.Writer
	On  bool

	rest []byte // an incomplete line
	// columns are the columns of the current table, by their start.
	columns map[int]string
}

// ColoredOutput returns the standard output of a command, in color if wanted. flush writes an incomplete last line.
func ColoredOutput(cmd *cobra.Command) (out *Painter, flush func()) {
	p := &Painter{Out: cmd.OutOrStdout(), On: Colors(cmd, cmd.OutOrStdout())}
	return p, p.Flush
}

// Write implements io.Writer. Names and messages come from tenants and members: what is not printable becomes a
// blank, so that it cannot control the terminal.
func (p *Painter) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		line, after, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			break
		}
		if _, err := io.WriteString(p.Out, p.line(Harmless(string(line)))+"\n"); err != nil {
			return 0, err
		}
		p.rest = after
	}
	if !p.On && utf8.Valid(p.rest) {
		p.Flush()
	}
	return len(data), nil
}

func (p *Painter) Flush() {
	if len(p.rest) > 0 {
		_, _ = io.WriteString(p.Out, p.line(Harmless(string(p.rest)))) // fails only if the reader is gone
		p.rest = nil
	}
}

// starts are beginnings of lines, with the color of the line.
var starts = []struct {
	text  string
	color color
}{
	{"✗ ", red}, {"! ", yellow}, {"… ", none}, {"✓ ", green},
	{"FAILED CHECKS", red}, {"WARNINGS", yellow}, {"Does not fit", red}, {"Warning: ", yellow},
	{"All checks passed.", green}, {"No check failed.", green}, {"No check of the hub failed; ", yellow},
}

var (
	// cell matches text between two or more blanks.
	cell   = regexp.MustCompile(`\S+(?: \S+)*`)
	header = regexp.MustCompile(`^[A-Z][A-Z0-9 ./()_-]*$`)
)

func (p *Painter) line(s string) string {
	if !p.On {
		return s
	}
	for _, start := range starts {
		if strings.HasPrefix(s, start.text) {
			return start.color.paint(s)
		}
	}
	cells := cell.FindAllStringIndex(s, -1)
	if len(cells) < 2 {
		if len(cells) == 0 {
			p.columns = nil
		}
		return s
	}
	at := func(i int) int { return utf8.RuneCountInString(s[:cells[i][0]]) }
	text := func(i int) string { return s[cells[i][0]:cells[i][1]] }
	if !slices.ContainsFunc(cells, func(c []int) bool { return !header.MatchString(s[c[0]:c[1]]) }) {
		p.columns = map[int]string{}
		for i := range cells {
			p.columns[at(i)] = text(i)
		}
		return s
	}
	var b strings.Builder
	end := 0
	for i, c := range cells {
		of := none
		if column := p.columns[at(i)]; column != "" {
			of = colorOf(column, text(i))
		} else if i == 0 && c[0] == 0 && p.columns == nil {
			of = map[string]color{"ok": green, "FAIL": red}[text(i)] // a check of `argosy status`
		}
		b.WriteString(s[end:c[0]])
		b.WriteString(of.paint(text(i)))
		end = c[1]
	}
	b.WriteString(s[end:])
	return b.String()
}

var (
	// judged are the columns whose cells are colored.
	judged = []string{"READY", "STATE", "STATUS", "HEALTH", "APPLIED", "AVAILABLE", "SCHEDULED", "FULLYAPPLIED", "PHASE"}
	well   = regexp.MustCompile(`^(True|yes|Healthy|Running|Active|Bound|Ready|Succeeded|Completed?)$`)
	ill    = regexp.MustCompile(`^(False|no|Unhealthy|Degraded|Failed|NotReady.*|Lost|Evicted|OOMKilled|down)$|Error|BackOff|^Err`)
	doubt  = regexp.MustCompile(`^(Unknown|Pending|Progressing|Suspended|Leaving|Paused|Terminating|ContainerCreating|PodInitializing|Init:.*|Ready,.*|drained|tainted)$`)
	share  = regexp.MustCompile(`^(\d+)/(\d+)$`)
)

func colorOf(column, text string) color {
	if column == "TAINTS" && text != "<none>" {
		return yellow
	}
	if !slices.Contains(judged, column) {
		return none
	}
	if n := share.FindStringSubmatch(text); n != nil {
		if n[1] == n[2] {
			return green
		}
		return yellow
	}
	switch {
	case well.MatchString(text):
		return green
	case ill.MatchString(text):
		return red
	case doubt.MatchString(text):
		return yellow
	}
	return none
}
