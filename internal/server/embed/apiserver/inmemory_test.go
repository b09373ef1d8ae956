package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// connect returns a client of a handler over the loopback, and the function that ends the server.
func connect(t *testing.T, handler http.HandlerFunc) (*http.Client, context.CancelFunc) {
	t.Helper()
	l := NewLoopback()
	closed, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	l.target.Store(&target{handler: handler, token: "secret", closed: closed, timeout: time.Minute,
		longRunning: func(r *http.Request) bool { return r.URL.Query().Has("watch") }})
	return &http.Client{Transport: l}, stop
}

func get(t *testing.T, ctx context.Context, c *http.Client) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://loopback/a?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

func TestTheLoopbackCarriesARequestAndItsAnswer(t *testing.T) {
	c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Path", r.RequestURI)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "unseen")
		fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), body)
	})
	resp, err := c.Post("https://loopback/a?b=c", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Path") != "/a?b=c" || resp.Header.Get("X-Late") != "" ||
		string(body) != "Bearer secret hello" || resp.ContentLength != int64(len(body)) {
		t.Errorf("got %d %v %q", resp.StatusCode, resp.Header, body)
	}
}

func TestAWatchIsReadableAsItIsFlushed(t *testing.T) {
	next, gone := make(chan string), make(chan struct{})
	c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		flusher := w.(interface {
			http.Flusher
			http.CloseNotifier //lint:ignore SA1019 the API server's filters look for it
		})
		flusher.Flush()
		for {
			select {
			case event := <-next:
				fmt.Fprint(w, event)
				flusher.Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	resp, err := get(t, t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"one", "two"} {
		next <- event
		buffer := make([]byte, 10)
		n, err := resp.Body.Read(buffer)
		if err != nil || string(buffer[:n]) != event {
			t.Fatalf("read %q, %v", buffer[:n], err)
		}
	}
	resp.Body.Close()
	<-gone // closing the body ended the handler
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a closed body reads: %v", err)
	}
}

func TestLoopbackPassesOnlyChosenValuesOfTheCaller(t *testing.T) {
	type audit struct{}
	type status struct{}
	handler := func(_ http.ResponseWriter, r *http.Request) {
		if v := r.Context().Value(audit{}); v != nil {
			t.Errorf("the handler has %q of the caller", v)
		}
		if v := r.Context().Value(status{}); v != "status" {
			t.Errorf("the handler has %v, want the value that is passed", v)
		}
	}
	l := NewLoopback(status{})
	l.target.Store(&target{handler: http.HandlerFunc(handler), closed: t.Context(), timeout: time.Minute,
		longRunning: func(r *http.Request) bool { return r.URL.Query().Has("watch") }})
	ctx := context.WithValue(context.WithValue(t.Context(), audit{}, "audit event"), status{}, "status")
	for _, path := range []string{"/a?watch=1", "/a"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://loopback"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: l}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func TestAHandlerWaitsForASlowReader(t *testing.T) {
	const size = 4 * windowBytes
	var mu sync.Mutex
	written := 0
	c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1000); ; {
			mu.Lock()
			left := size - written
			mu.Unlock()
			if left == 0 {
				return
			}
			n, err := w.Write(chunk[:min(len(chunk), left)])
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			written += n
			mu.Unlock()
		}
	})
	resp, err := get(t, t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ahead := 0
	kit.Eventually(t, "the handler fills the window", func() string {
		mu.Lock()
		defer mu.Unlock()
		if ahead = written; ahead <= windowBytes-1000 {
			return fmt.Sprintf("%d bytes written", ahead)
		}
		return ""
	})
	if ahead > windowBytes {
		t.Errorf("the handler is %d bytes ahead of a reader that read nothing", ahead)
	}
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestACancelledRequestEndsBothSides(t *testing.T) {
	for name, flush := range map[string]bool{"before the answer": false, "amid the answer": true} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				if flush {
					w.(http.Flusher).Flush()
				} else {
					cancel()
				}
				<-r.Context().Done()
			})
			resp, err := get(t, ctx, c)
			if flush {
				if err != nil {
					t.Fatal(err)
				}
				cancel()
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the caller got %v", err)
			}
			<-gone
		})
	}
}

func TestARequestIsBoundedAndItsAnswerIsNot(t *testing.T) {
	c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if deadline, ok := r.Context().Deadline(); !ok || time.Until(deadline) > time.Minute {
			t.Error("a request has no deadline")
		}
		for range 3 {
			_, _ = w.Write(make([]byte, windowBytes)) // without a reader yet
			w.(http.Flusher).Flush()
		}
	})
	resp, err := c.Get("https://loopback/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != 3*windowBytes || resp.ContentLength != n || err != nil {
		t.Errorf("read %d of %d bytes, %v", n, resp.ContentLength, err)
	}

	c, _ = connect(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Get("https://loopback/a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half an answer gave %v", err)
	}
}

func TestAStoppedServerEndsItsWatches(t *testing.T) {
	c, stop := connect(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	resp, err := get(t, t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, errNotRunning) {
		t.Errorf("the watch ended with %v", err)
	}
	if _, err := get(t, t.Context(), c); !errors.Is(err, errNotRunning) {
		t.Errorf("a request to a stopped server gave %v", err)
	}
	if _, err := get(t, t.Context(), &http.Client{Transport: NewLoopback()}); !errors.Is(err, errNotRunning) {
		t.Errorf("a request to no server gave %v", err)
	}
}

func TestAnAbortedAnswerIsNotTakenForAWholeOne(t *testing.T) {
	for name, panicked := range map[string]any{"aborted": http.ErrAbortHandler, "panicked": "bug"} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "half")
				w.(http.Flusher).Flush()
				panic(panicked)
			})
			resp, err := get(t, t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("read %q, %v", body, err)
			}
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	c, _ := connect(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	before := runtime.NumGoroutine()
	for range 100 {
		resp, err := get(t, t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	kit.Eventually(t, "goroutines end", func() string {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Sprintf("%d, before %d", now, before)
		}
		return ""
	})
}
