package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestBrowserIsDrivenThroughItsPipe(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
	if _, err := exec.LookPath(browserName); err != nil {
		t.Skip(browserName + " is not installed")
	}
	b, err := startBrowser(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	if err := b.navigate("data:text/html,<p>one</p><p>two</p>"); err != nil {
		t.Fatal(err)
	}
	const paragraphs = `new Promise(done => requestAnimationFrame(() => done(document.querySelectorAll("p").length)))`
	if n, err := b.number(paragraphs); n != 2 || err != nil {
		t.Errorf("the page has %v paragraphs, %v", n, err)
	}
	if err := b.open("data:text/html,<p>three</p>"); err != nil {
		t.Fatal(err)
	}
	if n, err := b.number(paragraphs); n != 1 || err != nil {
		t.Errorf("the second tab has %v paragraphs, %v", n, err)
	}

	// What goes wrong in a page is an error, and not a figure.
	for script, want := range map[string]string{`missing.field`: "missing is not defined", `"text"`: "cannot unmarshal",
		`undefined`: "no number"} {
		if n, err := b.number(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, %v, want an error with %q", script, n, err, want)
		}
	}
	if err := b.navigate("http://127.0.0.1:1/"); err == nil {
		t.Error("a page that cannot be loaded is no error")
	}
	b.close()
	if _, err := b.number("1"); err == nil {
		t.Error("a browser that has ended answers")
	}
}
