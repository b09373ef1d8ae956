package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestWorksOfARestoredHubAreWithheld(t *testing.T) {
	const works = "https://hub/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-eu/works"
	down := errors.New("down")
	for story, tc := range map[string]struct {
		answers []any // an error, or the restore that is pending
		last    error // the error of the last list
	}{
		"a restore":                            {[]any{"", "", "a"}, errRestored},
		"a restore that the controllers know":  {[]any{"a", "a", "a"}, nil},
		"a restore that was accepted":          {[]any{"a", "a", ""}, nil},
		"a second restore":                     {[]any{"a", "a", "b"}, errRestored},
		"a second restore after an acceptance": {[]any{"a", "", "b"}, errRestored},
		"nobody knows":                         {[]any{"", "", down}, down},
		"a restore while nobody knew":          {[]any{"", down, "a"}, errRestored},
		"nobody knew at the start":             {[]any{down, "a", "a"}, nil},
	} {
		n := 0
		guard := newRestoreGuard(func(context.Context) (string, error) {
			answer := tc.answers[n]
			n++
			if err, failed := answer.(error); failed {
				return "", err
			}
			return answer.(string), nil
		})
		closed := 0
		hub := guard.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: body{strings.NewReader("{}"), &closed}}, nil
		}))
		get := func(url string) error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := hub.RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		var last error
		for range tc.answers {
			if err := get(works + "/one"); err != nil { // is not checked
				t.Errorf("%s: a single Work: %v", story, err)
			}
			last = get(works + "?watch=true")
		}
		if !errors.Is(last, tc.last) || n != len(tc.answers) || closed != 2*n {
			t.Errorf("%s: %v after %d checks; %d bodies are closed", story, last, n, closed)
		}
		ended, cancel := context.WithCancel(t.Context())
		if tc.last != errRestored {
			cancel()
		}
		if err := guard.Start(ended); tc.last == errRestored && !errors.Is(err, errRestored) ||
			tc.last != errRestored && err != nil {
			t.Errorf("%s: the agent ends with %v", story, err)
		}
		cancel()
	}
}

// body counts how often it is closed.
type body struct {
	io.Reader
	closed *int
}

func (b body) Close() error { *b.closed++; return nil }
