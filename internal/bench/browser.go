package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

const browserName = "chromium-headless-shell"

// cdpBrowser is a headless browser that is driven through a pipe by the Chrome DevTools Protocol. It has only what the
// benchmark needs, so that the binary does not contain a library of the whole protocol.
type cdpBrowser struct {
	cmd *exec.Cmd
	in  *os.File

	mu      sync.Mutex
	last    int
	waiting map[int]chan cdpMessage
	ended   error
	session string // of the tab that is driven
}

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
		return nil, err
	}
	cmd := exec.CommandContext(ctx, browserName, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
		"--ignore-certificate-errors", "--disable-background-networking", "--disable-component-update",
		"--user-data-dir="+dir, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the browser's file descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", browserName, err)
	}
	_, _ = theirIn.Close(), theirOut.Close() // the browser has its own
	b := &cdpBrowser{cmd: cmd, in: in, waiting: map[int]chan cdpMessage{}}
	go b.read(out)
	if err := b.open("about:blank"); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *cdpBrowser) close() {
	_ = b.in.Close()
	_ = b.cmd.Process.Kill() // nothing of it is kept
	_ = b.cmd.Wait()
}

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

// call sends a command, to the tab if there is one, and reads its result.
func (b *cdpBrowser) call(method string, params, result any) error {
	answer := make(chan cdpMessage, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.last++
	raw, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{b.last, b.session, method, params})
	if err == nil {
		b.waiting[b.last] = answer
		_, err = b.in.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	m, found := <-answer
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

// number evaluates a script, which may return a promise of a number.
func (b *cdpBrowser) number(script string) (float64, error) {
	var done struct {
		Result           struct{ Value float64 }
		ExceptionDetails *struct{ Text string }
	}
	err := b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true},
		&done)
	if err == nil && done.ExceptionDetails != nil {
		err = errors.New(done.ExceptionDetails.Text)
	}
	return done.Result.Value, err
}
