// Package browser drives a real browser in the tests of the console.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout is how long a test waits for a page. This package does not use test/kit, so that the tests of pages without
// a hub are linked in seconds.
const timeout = 3 * time.Minute

// name is the browser of Debian's package.
const name = "chromium-headless-shell"

// Missing returns why there is no browser; empty if there is one. The long suite installs Debian's if it is
// missing. For the gate, .ci/run does.
func Missing() string {
	if _, err := exec.LookPath(name); err == nil {
		return ""
	}
	if testing.Short() {
		return name + " is not installed"
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return name + " is not installed"
	}
	install := exec.Command("sh", "-c",
		"apt-get update -qq && apt-get install -y -qq --no-install-recommends "+name)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s cannot be installed: %v: %.200s", name, err, out)
	}
	return ""
}

// Tab is a page in a browser with a profile of its own.
type Tab struct {
	t   *testing.T
	ctx context.Context
	hub string
	// wrong is what the browser reported: errors of scripts, violations of the policy, and requests to other hosts.
	mu    sync.Mutex
	wrong []string
	// requests counts what the browser sent: without one, record has seen nothing.
	requests int
	// Close ends the browser and reports what is wrong.
	Close func()
	// expected are parts of reports that a test provokes.
	expected []string
}

// Open opens a tab of the hub at an address, which is not logged in. At the end of the test, everything that the
// browser reported is a failure, and so is a violation of WCAG in the page as the test leaves it.
func Open(t *testing.T, hub string, expected ...string) *Tab {
	t.Helper()
	b := &Tab{t: t, hub: hub, expected: expected}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(name), chromedp.NoSandbox,
		chromedp.Headless, chromedp.IgnoreCertErrors, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-US"), chromedp.WSURLReadTimeout(timeout))
	ctx, end := chromedp.NewContext(allocator, chromedp.WithListener(b.record))
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	b.ctx = ctx
	b.Close = sync.OnceFunc(func() {
		defer stop()
		defer end()
		defer cancel()
		if !t.Failed() {
			b.Accessible("the last page")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			t.Errorf("the browser reported: %s", w)
		}
		if b.requests == 0 {
			t.Error("the test saw no request of the browser")
		}
	})
	t.Cleanup(b.Close)
	b.Perform(enableReports(), b.Size(1440, 900, ""))
	return b
}

// enableReports turns on what record listens to.
func enableReports() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpruntime.Enable, cdp.Empty{})
		if err == nil {
			_, err = cdp.Call(ctx, t, cdplog.Enable, cdp.Empty{})
		}
		if err == nil {
			_, err = cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		}
		return err
	})
}

func (b *Tab) record(event any) {
	report := ""
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		report = fmt.Sprint("exception ", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.ConsoleAPICalledTypeError {
			report = fmt.Sprint("console.error ", e.Args)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			report = e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests++
		b.mu.Unlock()
		if !strings.HasPrefix(e.Request.URL, b.hub) && !strings.HasPrefix(e.Request.URL, "data:") {
			report = "request to " + e.Request.URL
		}
		if strings.Contains(e.Request.URL, "watch=") {
			report = "the page watches the API, as each open tab would: " + e.Request.URL
		}
	}
	if report == "" {
		return
	}
	for _, part := range b.expected {
		if strings.Contains(report, part) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, report)
}

// Perform does steps of chromedp.
func (b *Tab) Perform(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Visit goes to a page of the console.
func (b *Tab) Visit(path string) {
	b.t.Helper()
	b.Perform(chromedp.Navigate(b.hub + "/console/" + path))
	b.WaitFor("the page "+path+" has a heading", func() string {
		if heading, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.querySelector("h1") !== null`)); err != nil {
			return err.Error()
		} else if !heading {
			return "it shows " + b.Text()
		}
		return ""
	})
}

// Text returns what the page shows.
func (b *Tab) Text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// See waits until the page shows all texts.
func (b *Tab) See(texts ...string) {
	b.t.Helper()
	b.WaitFor(fmt.Sprintf("the page shows %q", texts), func() string {
		shown := b.Text()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Sprintf("no %q in:\n%s", text, shown)
			}
		}
		return ""
	})
}

// WaitFor waits until then returns "". Otherwise it returns what is wrong.
func (b *Tab) WaitFor(what string, then func() string) {
	b.t.Helper()
	wrong := ""
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if wrong = then(); wrong == "" {
			return
		}
	}
	b.t.Fatalf("%s: not within %s: %s", what, timeout, wrong)
}

// Run evaluates a script of the test in the page.
func Run[T any](b *Tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// Size sets the size and the colour scheme of the page.
func (b *Tab) Size(width, height int64, scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.EmulateViewport(width, height), chromedp.Func(
		func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
}

// axe is the source of axe-core, which the registry of npm has; empty without npm.
var axe = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "argosy-axe-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund",
		"axe-core@4.14.1")
	if install.Run() != nil {
		return ""
	}
	source, _ := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source)
})

// Accessible fails if axe-core finds a violation of WCAG 2.2 AA in the page as it is.
func (b *Tab) Accessible(where string) {
	b.t.Helper()
	source := axe()
	if source == "" {
		b.t.Log("axe-core cannot be had: the check of accessibility is skipped")
		return
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](source+";0")); err != nil {
		b.t.Fatalf("load axe-core: %v", err)
	}
	found := Run[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(
		r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " +
		n.any.concat(n.all).map(c => c.message).join("; ").slice(0, 200)).join(" | "))))`)
	var violations []string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %s", where, v)
	}
}

// Shoot checks the page in both widths and themes. With ARGOSY_SCREENSHOTS it writes a picture of each to that folder.
func (b *Tab) Shoot(title string) {
	b.t.Helper()
	b.views(title, os.Getenv("ARGOSY_SCREENSHOTS"))
}

// Check is Shoot without pictures.
func (b *Tab) Check(title string) {
	b.t.Helper()
	b.views(title, "")
}

func (b *Tab) views(title, dir string) {
	b.t.Helper()
	for _, view := range []struct {
		width, height int64
		scheme        string
	}{{1440, 900, "light"}, {1440, 900, "dark"}, {390, 844, "light"}, {390, 844, "dark"}} {
		where := fmt.Sprintf("%s-%s-%d", title, view.scheme, view.width)
		b.Perform(b.Size(view.width, view.height, view.scheme))
		Run[any](b, "scrollTo(0, 0)")
		b.Accessible(where)
		if wide := Run[int64](b, "document.documentElement.scrollWidth"); wide > view.width {
			b.t.Errorf("%s scrolls sideways: %d px", where, wide)
		}
		if dir != "" {
			picture, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
				Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(80))})
			if err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "console-"+where+".webp"), picture.Data, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.Perform(b.Size(1440, 900, ""))
}

// Fill sets the value of a field as pasting does.
func (b *Tab) Fill(selector, value string) {
	b.t.Helper()
	quoted, _ := json.Marshal(value)
	Run[any](b, fmt.Sprintf(`{ const f = document.querySelector(%q); f.value = %s; f.dispatchEvent(new Event("input", {bubbles: true})); 0 }`,
		selector, quoted))
}
