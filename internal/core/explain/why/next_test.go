package why_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/explain/why"
)

var command = regexp.MustCompile("(^|[^`/])\\b(argosy|kubectl) [a-z]")

// checkNext checks that a next step is prose with commands in backquotes. The console makes these copyable.
func checkNext(t *testing.T, next string) {
	t.Helper()
	for i, part := range strings.Split(next, "`") {
		if is := command.MatchString(part); i%2 == 0 && is || i%2 == 1 && (!is || strings.HasPrefix(part, " ")) {
			t.Errorf("commands of a next step belong in backquotes, and nothing else does: %s", next)
		}
	}
	if strings.Count(next, "`")%2 == 1 || strings.Contains(next, "``") {
		t.Errorf("a backquote is missing in the next step %s", next)
	}
}

// Texts that no test reaches follow the same rule, in all packages with next steps.
func TestCommandsInTextsAreInBackquotes(t *testing.T) {
	for _, dir := range []string{".", "../overview", "../../release", "../../adjust/failover", "../../execute"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files (%v)", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				// A command that another text completes starts its literal, and is put into backquotes there.
				if err == nil && command.MatchString(" "+text) && !started[text] {
					t.Errorf("%s: the command is not in backquotes: %s", set.Position(lit.Pos()), text)
				}
				return true
			})
		}
	}
}

// started are literals that begin a command, which gets its backquotes with its end.
var started = map[string]bool{"argosy logs %s -n %s -C %s": true, "argosy why": true, "argosy restore accept": true}

func TestAnObjectThatIsNeverPropagatedHasTheReason(t *testing.T) {
	for object, want := range map[string][2]string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}}": {
			"the API server of each cluster creates one of its own",
			"to propagate its content, create a ConfigMap with another name"},
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: extension-apiserver-authentication, namespace: shop}}": {
			"the API server of each cluster creates one of its own",
			"to propagate its content, create a ConfigMap with another name"},
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: kube-public}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate its content, create it in a namespace of your own"},
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: c, namespace: karmada-system}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate its content, create it in a namespace of your own"},
		"{apiVersion: v1, kind: Namespace, metadata: {name: kube-public}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate objects, create them in a namespace of your own"},
		"{apiVersion: v1, kind: Event, metadata: {name: e, namespace: shop}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
		"{apiVersion: apps.kruise.io/v1alpha1, kind: NodeImage, metadata: {name: n}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
	} {
		h := start(t, object, fleet()...)
		p := h.policy("", "all", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Namespace}]}")
		a := explain(h.Facts)
		if len(a.Findings) != 1 || a.Findings[0].What != "the hub never propagates it: "+want[0] ||
			a.Findings[0].Next != want[1] {
			t.Errorf("%s: found %+v, want %q", object, a.Findings, want)
		}
		claims := why.ExplainPolicy(why.PolicyFacts{Propagation: p, Policies: h.Policies, Clusters: h.Clusters,
			Templates: []why.Selectable{{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
		for _, s := range claims.Templates {
			if s.Why != "is never propagated: "+want[0] {
				t.Errorf("%s: its policy says %q", object, s.Why)
			}
		}
	}
}
