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
	s := source{literals: map[string]string{}}
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
		`func f(r Recorder) { r.Event(nil, "Warning", "Lost", "") }`:                          "make the reason of the event a constant",
	} {
		missing := verify(scanned(t, text))
		if len(missing) != 1 || !strings.Contains(missing[0].Error(), want) {
			t.Errorf("%s: got %v, want %q", text, missing, want)
		}
	}
	if _, err := eventsPage(scanned(t,
		"// EventLost: gone.\n//\n//reference:event Work\nconst EventLost = \"Lost\"")); err == nil {
		t.Error("an event without a type is accepted")
	}
	if _, err := conditionsPage(scanned(t,
		"// Ready: is.\n//\n//reference:condition Wok\nconst Ready = \"Ready\"")); err == nil {
		t.Error("a condition of an unknown object is accepted")
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	_, err := namesPage(scanned(t, `var x = "argosy.io/unheard-of"`))
	if err == nil || !strings.Contains(err.Error(), "argosy.io/unheard-of is not in the table") {
		t.Errorf("got %v", err)
	}
}
