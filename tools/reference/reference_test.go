package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// scanned returns the source of one file.
func scanned(t *testing.T, text string) source {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "internal/a/a.go", "package a\n"+text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource()
	s.add(files, "internal/a/a.go", parsed)
	return s
}

const goodFile = `
// Reasons of events.
//
//reference:event Warning on Work
const (
	// EventLost: the object is gone | forever.
	EventLost = "Lost"
	// EventFound: the object is
	// there again.
	//
	//reference:event Normal on Work and template
	EventFound = "Found"
)

// Ready: the object is ready.
//
//reference:condition Work
const Ready = "Ready"

// ReasonGood: all is well.
//
//reference:reason Ready of Work
//reference:event Normal on template
const ReasonGood = "Good"

//reference:none
const ReasonHidden = "Hidden"
`

func TestPagesListConstantsWithTheirMeaning(t *testing.T) {
	s := scanned(t, goodFile)
	if missing := verify(s); len(missing) > 0 {
		t.Fatal(missing)
	}
	events, err := eventsPage(s)
	if err != nil {
		t.Fatal(err)
	}
	conditions, err := conditionsPage(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| `Lost` | Warning | Work | the object is gone \\| forever |\n",
		"| `Found` | Normal | Work and template | the object is there again |\n",
		"| `Ready` | the object is ready |\n",
		"| Ready | `Good` | all is well |\n",
		"| `Good` | Normal | template | all is well |\n",
	} {
		if !strings.Contains(events+conditions, row) {
			t.Errorf("no page has the row %q", row)
		}
	}
	if strings.Contains(events+conditions, "Hidden") {
		t.Error("a constant with the directive none is listed")
	}
}

func TestIncompleteConstantsAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		`const EventLost = "Lost"`: "needs a directive",
		"// Lost is gone.\n//\n//reference:event Warning on Work\nconst EventLost = \"Lost\"": "needs a doc comment",
		`func f(r Recorder) { r.Event(nil, "Warning", "Lost", "") }`:                          "make the reason",
		"// Lost: gone.\n//\n//reference:condition Work\nconst Lost = \"Lost\"\n" +
			"func f(r Recorder) { r.Event(nil, \"Warning\", a.Lost, \"\") }": "the event Lost needs a directive",
	} {
		missing := verify(scanned(t, text))
		if len(missing) != 1 || !strings.Contains(missing[0].Error(), want) {
			t.Errorf("%s: got %v, want %q", text, missing, want)
		}
	}
	untyped := scanned(t, "// EventLost: gone.\n//\n//reference:event Work\nconst EventLost = \"Lost\"")
	if _, err := eventsPage(untyped); err == nil {
		t.Error("an event without a type is accepted")
	}
	unknown := scanned(t, "// Ready: is.\n//\n//reference:condition Wok\nconst Ready = \"Ready\"")
	if _, err := conditionsPage(unknown); err == nil {
		t.Error("a condition of an unknown object is accepted")
	}
}

func TestDocCommentStatesTheFactsOfAName(t *testing.T) {
	text, n, ok := factsOf("X is on it. On: Works, objects in members. Written by: cli, core/a, core/b. Read by: x. " +
		"Users may set it: with `argosy restore accept`.")
	want := name{on: "Works, objects in members", by: "`argosy`, the hub (with `argosy restore accept`)", users: true}
	if !ok || text != "X is on it." || n != want {
		t.Errorf("got %q, %+v, %t", text, n, ok)
	}
	if _, n, _ := factsOf("On: bindings. Users may set it: no."); n.on != "bindings" || n.users {
		t.Errorf("got %+v", n)
	}
	if _, _, ok := factsOf("X is on it."); ok {
		t.Error("facts are found where there are none")
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	_, err := namesPage(scanned(t, `var x = "argosy.io/unheard-of"`))
	if err == nil || !strings.Contains(err.Error(), "argosy.io/unheard-of does not end with its facts") {
		t.Errorf("got %v", err)
	}
}
