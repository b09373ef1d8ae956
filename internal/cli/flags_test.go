package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandFlags returns the flags of each command by its path without "argosy", with those that it inherits.
func commandFlags() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		flags := map[string]bool{"help": true, "version": true}
		add := func(f *pflag.Flag) { flags[f.Name] = true }
		cmd.LocalFlags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		all[path] = flags
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot("argosy"))
	return all
}

var (
	flagName = regexp.MustCompile(`(?:^|[\s"'` + "`" + `(\[=|/])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)`)
	// usage is a command line of argosy, up to what ends it in a sentence or in code.
	usage = regexp.MustCompile(`(?:^|[\s"'` + "`" + `(])(?:argosy|karmadactl) ((?:[a-z][a-z-]*)(?: [^` + "`" +
		`;|&\n]*)?)`)
)

// unknownFlags returns the flags that a text names and no command has, or the command that it names does not have.
func unknownFlags(text string, commands map[string]map[string]bool, foreign map[string]bool) []string {
	anywhere := map[string]bool{}
	for _, flags := range commands {
		maps.Copy(anywhere, flags)
	}
	var out []string
	for _, m := range flagName.FindAllStringSubmatch(text, -1) {
		if !anywhere[m[1]] && !foreign[m[1]] {
			out = append(out, "--"+m[1])
		}
	}
	for _, m := range usage.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		path := ""
		for _, w := range words {
			next := strings.TrimSpace(path + " " + w)
			if commands[next] == nil {
				break
			}
			path = next
		}
		if path == "" {
			continue
		}
		command, _, _ := strings.Cut(m[1], " -- ")             // what follows is another program's
		command = strings.ReplaceAll(command, "=--", "= --- ") // a flag as a value
		for _, f := range flagName.FindAllStringSubmatch(command, -1) {
			if anywhere[f[1]] && !commands[path][f[1]] && !foreign[f[1]] {
				out = append(out, "argosy "+path+" --"+f[1])
			}
		}
	}
	return out
}

// otherProgramsFlags are the flags of other programs that messages and pages name, by program.
var otherProgramsFlags = map[string]string{
	"kubectl":                 "cascade clusterrole current duration flatten for from-file group list minify patch patch-file replicas serviceaccount type embed-certs",
	"helm":                    "create-namespace install reuse-values set values include-crds",
	"docker, podman":          "detach input name publish volume",
	"systemctl, useradd, tar": "home-dir ignore-missing no-create-home now patch shell system user-group",
	"etcdutl":                 "bump-revision mark-compacted",
	"kube-apiserver": "encryption-provider-config-automatic-reload kubelet-certificate-authority kubelet-client-certificate " +
		"kubelet-client-key oidc service-account-key-file service-account-max-token-expiration " +
		"shutdown-delay-duration shutdown-watch-termination-grace-period",
	"kube-controller-manager": "cluster-signing-cert-file cluster-signing-key-file controller-start-interval controllers node-monitor-grace-period " +
		"root-ca-file service-account-private-key-file",
	"karmada-scheduler": "master v",
	"klusterlet":        "appliedmanifestwork-eviction-grace-period addon-kubeclient-registration-auth",
	"jq":                "arg",
	"make bench":        "hub-arg pull-only",
}

// eachLiteral calls check with each string literal of the hub's code, and with each sum of literals.
func eachLiteral(t *testing.T, root string, check func(path, text string)) {
	t.Helper()
	for _, dir := range []string{"internal", "cmd", "api"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					if text := literalText(e); text != "" {
						check(path, text)
						return false
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// literalText returns the text of a string literal or of a sum of literals, and "" for other expressions.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if x, y := literalText(e.X), literalText(e.Y); e.Op == token.ADD && x != "" && y != "" {
			return x + y
		}
	}
	return ""
}

// A flag that a message advises, or a page, is one of the commands'.
func TestFlagsInMessagesAndPagesExist(t *testing.T) {
	commands, foreign, seen := commandFlags(), map[string]bool{}, map[string]bool{}
	for _, flags := range otherProgramsFlags {
		for _, flag := range strings.Fields(flags) {
			foreign[flag] = true
		}
	}
	check := func(at, text string) {
		for _, flag := range unknownFlags(text, commands, foreign) {
			t.Errorf("%s names %s, which does not exist", at, flag)
		}
		for _, m := range flagName.FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
		}
	}
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "SECURITY.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check(page, string(text))
	}
	eachLiteral(t, root, check)
	for _, flag := range slices.Sorted(maps.Keys(foreign)) {
		if !seen[flag] {
			t.Errorf("no message or page names --%s of another program: remove it from otherProgramsFlags", flag)
		}
	}
}

func TestUnknownFlagsAreFound(t *testing.T) {
	commands := map[string]map[string]bool{"": {}, "up": {"components": true}, "join": {"cluster-kubeconfig": true}}
	for text, want := range map[string]string{
		"start the hub with --components=-descheduler":      "",
		"the flag --controllers disables it":                "--controllers",
		"run `argosy up --components x`, or `kubectl --as`": "--as",
		"argosy join eu --components=x":                     "argosy join --components",
		"argosy join eu --cluster-kubeconfig=--components":  "",
		"a - b -- c --- d":                                  "",
	} {
		if got := strings.Join(unknownFlags(text, commands, nil), " "); got != want {
			t.Errorf("in %q, unknown are %q, want %q", text, got, want)
		}
	}
}
