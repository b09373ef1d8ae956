package hubcli

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"
)

// Steps shows the progress of long work. On a terminal, the current step is animated with its time; elsewhere, each
// step is printed when it ends.
type Steps struct {
	out          io.Writer
	Live, colors bool

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

// NewSteps writes to out; it moves only if out is a terminal.
func NewSteps(out io.Writer, colors bool) *Steps {
	return &Steps{out: out, Live: IsTerminal(out), colors: colors}
}

// Begin starts a step; the one under way, if any, is done.
func (s *Steps) Begin(name string) {
	s.Done("")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = &step{name: name, started: time.Now(), ended: make(chan struct{})}
	if s.Live {
		st := s.under
		st.drawn.Go(func() { s.draw(st) })
	}
}

// Progress shows how far the step under way is.
func (s *Steps) Progress(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under != nil {
		s.under.detail = fmt.Sprintf(format, args...)
	}
}

// Done ends the current step, with a detail if there is one.
func (s *Steps) Done(format string, args ...any) { s.end("✓", green, fmt.Sprintf(format, args...)) }

// Fail ends the step under way as failed.
func (s *Steps) Fail() { s.end("✗", red, "") }

func (s *Steps) end(mark string, of color, detail string) {
	s.mu.Lock()
	st := s.under
	s.under = nil
	s.mu.Unlock()
	if st == nil {
		return
	}
	close(st.ended)
	st.drawn.Wait()
	detail = cmp.Or(detail, st.detail)
	if s.Live {
		fmt.Fprint(s.out, "\r\x1b[2K")
	}
	if s.colors {
		mark = of.paint(mark)
	}
	fmt.Fprintf(s.out, "%s %-44s %6.1f s  %s\n", mark, st.name, time.Since(st.started).Seconds(), detail)
}

func (s *Steps) draw(st *step) {
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
