package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

const browserName = "chromium-headless-shell"

// cdpBrowser is a headless browser that is driven through a pipe by the Chrome DevTools Protocol. It has only what the
// benchmark needs, so that the binary does not contain a library of the whole protocol. Its callers use it in turn.
type cdpBrowser struct {
	cmd *exec.Cmd
	// in is the browser's end of commands. Commands and answers are JSON, each ended by a zero byte.
	in *os.File
	// session is the tab that is driven; empty for commands to the browser itself.
	session string
	last    int

	mu      sync.Mutex
	waiting map[int]chan cdpMessage // by the number of the command
	ended   error
}

// cdpMessage is the answer to a command, or an event, which has no ID.
type cdpMessage struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser starts a browser with one tab and a profile of its own in dir.
func startBrowser(ctx context.Context, dir string) (*cdpBrowser, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), in.Close() // nothing was written
		return nil, err
	}
	cmd := exec.CommandContext(ctx, browserName, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
		"--ignore-certificate-errors", "--disable-background-networking", "--disable-component-update",
		"--user-data-dir="+dir, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the browser's file descriptors 3 and 4
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close() // the browser has its own
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, fmt.Errorf("start %s: %w", browserName, err)
	}
	b := &cdpBrowser{cmd: cmd, in: in, waiting: map[int]chan cdpMessage{}}
	go b.read(out)
	if err := b.open("about:blank"); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// close ends the browser, which ends its own processes when the pipe is closed. Its profile stays in the folder of the
// benchmark.
func (b *cdpBrowser) close() {
	_ = b.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = b.cmd.Process.Kill() }) // nothing of it is kept
	defer late.Stop()
	_ = b.cmd.Wait()
}

// read hands answers to call until the browser ends. It ignores events.
func (b *cdpBrowser) read(out *os.File) {
	defer out.Close()
	for r := bufio.NewReader(out); ; {
		raw, err := r.ReadBytes(0)
		var m cdpMessage
		if err == nil {
			err = json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m)
		}
		b.mu.Lock()
		if err != nil {
			b.ended = fmt.Errorf("the browser ended: %w", err)
			for _, answer := range b.waiting {
				close(answer)
			}
			clear(b.waiting)
			b.mu.Unlock()
			return
		}
		if answer := b.waiting[m.ID]; m.ID != 0 && answer != nil {
			delete(b.waiting, m.ID)
			answer <- m
		}
		b.mu.Unlock()
	}
}

// answerTimeout bounds one command. A page that never shows what a script waits for ends the benchmark with an error.
const answerTimeout = 2 * time.Minute

// call sends a command, to the tab if there is one, and reads its result.
func (b *cdpBrowser) call(method string, params, result any) error {
	b.last++
	raw, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{b.last, b.session, method, params})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	answer, id := make(chan cdpMessage, 1), b.last
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", method, b.ended)
	}
	b.waiting[id] = answer
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, id)
		b.mu.Unlock()
	}()
	if _, err := b.in.Write(append(raw, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var m cdpMessage
	var found bool
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	select {
	case m, found = <-answer:
	case <-late.C:
		return fmt.Errorf("%s: no answer within %s", method, answerTimeout)
	}
	switch {
	case !found:
		return fmt.Errorf("%s: %w", method, b.ended)
	case m.Error != nil:
		return fmt.Errorf("%s: %s", method, m.Error.Message)
	case result == nil:
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// open opens a tab, which is driven from then on. The others stay open.
func (b *cdpBrowser) open(address string) error {
	b.session = ""
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true},
		&attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, method := range []string{"Page.enable", "Network.enable"} {
		if err := b.call(method, nil, nil); err != nil {
			return err
		}
	}
	if err := b.call("Network.setCacheDisabled", map[string]any{"cacheDisabled": true}, nil); err != nil {
		return err
	}
	return b.navigate(address)
}

// navigate opens an address in the tab, and returns when the new document has begun. Scripts then run in it.
func (b *cdpBrowser) navigate(address string) error {
	var done struct{ ErrorText string }
	if err := b.call("Page.navigate", map[string]any{"url": address}, &done); err != nil {
		return err
	}
	if done.ErrorText != "" {
		return errors.New(done.ErrorText)
	}
	return nil
}

// number evaluates a script in the tab. The script returns a number, or a promise of one.
func (b *cdpBrowser) number(script string) (float64, error) {
	var done struct {
		Result           struct{ Value *float64 }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true},
		&done)
	switch {
	case err != nil:
		return 0, err
	case done.ExceptionDetails != nil:
		return 0, errors.New(cmp.Or(done.ExceptionDetails.Exception.Description, done.ExceptionDetails.Text))
	case done.Result.Value == nil:
		return 0, errors.New("the script returned no number")
	}
	return *done.Result.Value, nil
}
