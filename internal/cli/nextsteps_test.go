package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// offered matches a command in a next step.
	offered = regexp.MustCompile("`((?:argosy|kubectl) [^`]+)`")
	// formatted matches a verb of a format.
	formatted = regexp.MustCompile(`%(?:\[\d\])?[sdq]`)
)

// verbsOfKubectl are those that texts may offer.
var verbsOfKubectl = []string{"annotate", "apply", "create", "delete", "describe", "edit", "get", "label", "logs",
	"patch", "replace", "rollout", "scale", "taint"}

// knows returns an error if argosy has no such command or flag, or kubectl no such verb. Arguments may be left out.
func knows(line string) error {
	words := splitWords(formatted.ReplaceAllString(line, "x"))
	if words[0] == "kubectl" {
		if !slices.Contains(verbsOfKubectl, words[1]) {
			return fmt.Errorf("kubectl has no command %s", words[1])
		}
		return nil
	}
	cmd, rest, err := newRoot("argosy").Find(words[1:])
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && !cmd.Runnable() && len(args) > 0 &&
		args[0] != "x" {
		return fmt.Errorf("%s has no command %s", cmd.CommandPath(), args[0])
	}
	return nil
}

// Users copy the commands that texts of the hub offer.
func TestOfferedCommandsExist(t *testing.T) {
	core, n := filepath.Join("..", "core"), 0
	check := func(at, text string) {
		for _, m := range offered.FindAllStringSubmatch(text, -1) {
			n++
			if err := knows(m[1]); err != nil {
				t.Errorf("%s: `%s`: %v", at, m[1], err)
			}
		}
	}
	if err := filepath.WalkDir(core, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		switch filepath.Ext(path) {
		case ".txt": // what `argosy why` and others print
			text, err := os.ReadFile(path)
			check(path, string(text))
			return err
		case ".go":
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return nil // a file of a test that is not Go
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						check(set.Position(lit.Pos()).String(), text)
					}
				}
				return true
			})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n < 50 {
		t.Errorf("only %d commands were found", n)
	}
	for _, wrong := range []string{"argosy whys x", "argosy why x --clusters a", "argosy migrate on", "kubectl gets x"} {
		if knows(wrong) == nil {
			t.Errorf("`%s` is known", wrong)
		}
	}
}
