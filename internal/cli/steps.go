package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// steps shows the progress of long work. On a terminal, the current step is animated with its time; elsewhere, each
// step is printed when it ends.
type steps struct {
	out          io.Writer
	live, colors bool

	mu    sync.Mutex
	under *step
}

type step struct {
	name    string
	detail  string
	started time.Time
	ended   chan struct{}
	drawn   sync.WaitGroup
}

// newSteps writes to out; it moves only if out is a terminal.
func newSteps(out io.Writer, colors bool) *steps {
	return &steps{out: out, live: isTerminal(out), colors: colors}
}

// begin starts a step; the one under way, if any, is done.
func (s *steps) begin(name string) {
	s.done("")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = &step{name: name, started: time.Now(), ended: make(chan struct{})}
	if s.live {
		st := s.under
		st.drawn.Go(func() { s.draw(st) })
	}
}

// progress shows how far the step under way is.
func (s *steps) progress(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under != nil {
		s.under.detail = fmt.Sprintf(format, args...)
	}
}

// done ends the current step, with a detail if there is one.
func (s *steps) done(format string, args ...any) { s.end("✓", green, fmt.Sprintf(format, args...)) }

// fail ends the step under way as failed.
func (s *steps) fail() { s.end("✗", red, "") }

func (s *steps) end(mark string, of color, detail string) {
	s.mu.Lock()
	st := s.under
	s.under = nil
	s.mu.Unlock()
	if st == nil {
		return
	}
	close(st.ended)
	st.drawn.Wait()
	if detail == "" {
		detail = st.detail
	}
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[2K")
	}
	if s.colors {
		mark = of.paint(mark)
	}
	fmt.Fprintf(s.out, "%s %-44s %6.1f s  %s\n", mark, st.name, time.Since(st.started).Seconds(), detail)
}

func (s *steps) draw(st *step) {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for i := 0; ; i++ {
		s.mu.Lock()
		detail := st.detail
		s.mu.Unlock()
		fmt.Fprintf(s.out, "\r\x1b[2K%c %-44s %6.1f s  %s", frames[i%len(frames)], st.name, time.Since(st.started).Seconds(),
			detail)
		select {
		case <-st.ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
