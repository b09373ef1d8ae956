package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/membercli"
)

var (
	// indented matches a line of a code block without fences.
	indented = regexp.MustCompile(`^    \S`)
	// invoked matches a command that runs argosy, and captures its arguments.
	invoked = regexp.MustCompile(`^(?:sudo (?:-u \w+ )?)?(?:(?:podman|kubectl) exec .*)?(?:bin/|/usr/local/bin/)?argosy (.*)$`)
	// inline matches a command line in a sentence.
	inline = regexp.MustCompile("`bin/argosy ([^`]+)`")
	// separated matches what separates commands in a line.
	separated = regexp.MustCompile(`; |\| |&& `)
)

// argosyCommands returns the arguments of each command line of argosy in the code blocks of a page.
func argosyCommands(page string) [][]string {
	var found [][]string
	inFence, language := false, ""
	text := strings.ReplaceAll(page, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "```"); ok {
			inFence, language = !inFence, rest
			continue
		}
		if !indented.MatchString(line) && !inFence || inFence && language != "" && language != "sh" {
			continue
		}
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		line = strings.TrimPrefix(line, "until ")
		for _, command := range separated.Split(line, -1) {
			m := invoked.FindStringSubmatch(strings.TrimPrefix(command, "$ "))
			if m == nil {
				continue
			}
			arguments, _, _ := strings.Cut(strings.TrimSuffix(m[1], " &"), " > ")
			found = append(found, splitWords(strings.TrimSuffix(arguments, ")")))
		}
	}
	return found
}

// splitWords splits a command at its spaces, except for those in quotes.
func splitWords(command string) []string {
	var words []string
	var word strings.Builder
	quote, started := rune(0), false
	for _, r := range command + " " {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote, started = r, true
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if started || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
		}
	}
	return words
}

// accepts returns an error if the command line has no such command, flag or number of arguments.
func accepts(args []string) error {
	cmd, rest, err := newRoot("argosy").Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	return cmd.ValidateRequiredFlags()
}

func TestCommandLinesOfPagesAreAccepted(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(append(pages, more...), filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		commands := argosyCommands(string(text))
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, strings.Fields(m[1]))
		}
		for _, args := range commands {
			n++
			if err := accepts(args); err != nil {
				t.Errorf("%s: argosy %s: %v", page, strings.Join(args, " "), err)
			}
		}
	}
	if n < 80 {
		t.Errorf("only %d command lines were found", n)
	}
}

func TestWrongCommandLinesAreFound(t *testing.T) {
	page := "```\n$ argosy unjoin eu --dry-run\nkubectl get x | sudo -u argosy argosy why a 'b c' > f  # argosy x\n" +
		"helm install argosy charts/argosy\n(umask 077; podman exec argosy /usr/local/bin/argosy status > f)\n```\n" +
		"argosy no command\n```yaml\nargosy: neither\n```\n    argosy up \\\n      --port 1\n"
	var got []string
	for _, args := range argosyCommands(page) {
		got = append(got, strings.Join(args, "+"))
	}
	if want := "unjoin+eu+--dry-run why+a+b c status up+--port+1"; strings.Join(got, " ") != want {
		t.Errorf("found %q, want %q", strings.Join(got, " "), want)
	}
	for _, args := range []string{"unjoins eu", "unjoin eu --dry", "why", "join eu us"} {
		if err := accepts(strings.Fields(args)); err == nil {
			t.Errorf("argosy %s is accepted", args)
		}
	}
}

// backticked matches a word or command in backticks.
var backticked = regexp.MustCompile("`([^`]+)`")

// listedCommands returns the commands that the tables of a page list. A row can add subcommands in a short form:
// "`argosy certificates`, with `renew`".
func listedCommands(t *testing.T, page string) map[string]bool {
	t.Helper()
	root, found := newRoot("argosy"), map[string]bool{}
	for line := range strings.Lines(page) {
		var last *cobra.Command
		for _, m := range backticked.FindAllStringSubmatch(line, -1) {
			words, isArgosy := strings.CutPrefix(m[1], "argosy ")
			args := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(words))
			if !isArgosy {
				for parent := last; parent != nil && len(args) > 0; parent = parent.Parent() {
					if sub := subcommand(parent, args[0]); sub != nil {
						found[sub.CommandPath()] = true
						break
					}
				}
				continue
			}
			last = root
			for _, word := range args {
				if sub := subcommand(last, word); sub != nil {
					last = sub
				} else if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
					if name, _, _ = strings.Cut(name, "="); last.Flag(name) == nil && name != "help" && name != "version" {
						t.Errorf("%q: there is no flag --%s", m[1], name)
					}
				} else if last == root && !strings.HasPrefix(word, "-") && word != "COMMAND" {
					t.Errorf("%q: there is no such command", m[1])
				}
			}
			found[last.CommandPath()] = true
		}
	}
	return found
}

// subcommand returns the command of a name below parent; nil if there is none.
func subcommand(parent *cobra.Command, name string) *cobra.Command {
	for _, child := range parent.Commands() {
		if child.Name() == name {
			return child
		}
	}
	return nil
}

func TestCommandsPageListsEveryCommand(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := listedCommands(t, string(page))
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		if cmd.HasParent() && cmd.Runnable() && !found[cmd.CommandPath()] {
			t.Errorf("docs/commands.md does not list `%s`", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			check(child)
		}
	}
	check(newRoot("argosy"))
	for _, kind := range append([]string{"clusters"}, membercli.ComputedKinds...) {
		if !strings.Contains(string(page), "`argosy get "+kind+"`") {
			t.Errorf("docs/commands.md does not list `argosy get %s`", kind)
		}
	}
}
