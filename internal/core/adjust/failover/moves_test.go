package failover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// moves are those of all bindings in short: "web a>b:2 TaintUntolerated ReplacementNotHealthy since 5m0s".
func (w *world) moves() string {
	var bindings []workv1alpha2.Binding
	for _, b := range w.bindings {
		bindings = append(bindings, b)
	}
	var out []string
	for _, m := range Moves(bindings, w.plan(), w.now) {
		text := fmt.Sprintf("%s %s>%s %s %s", m.Name, m.From, m.Destination(), m.Reason, m.WaitingFor)
		if m.Since != nil {
			text += " since " + w.now.Sub(*m.Since).String()
		}
		if m.Until != nil {
			text += " until " + m.Until.Sub(w.now).String()
		}
		if m.Ended != nil {
			text += " ended " + w.now.Sub(*m.Ended).String()
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestMovesFollowAFailoverToItsEnd(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	b := w.deployment("web", "a=2 b=2", byRoom())
	is := func(want string) {
		t.Helper()
		if got := w.moves(); got != want {
			t.Fatalf("the moves are %q, want %q", got, want)
		}
	}
	is("")
	w.lose("a")
	is("web a> TaintUntolerated Tolerated since 0s until 5m0s")
	w.pass(5 * time.Minute)
	is("web a>b:1, c:1 TaintUntolerated  since 5m0s")
	w.execute(w.plan())
	w.pass(time.Minute)
	is("web a>b:1, c:1 TaintUntolerated ReplacementNotHealthy since 6m0s until 9m0s")
	w.healthy(b)
	is("web a>b:1, c:1 TaintUntolerated  since 6m0s")
	w.execute(w.plan())
	w.pass(time.Hour)
	is("web a>b:1, c:1 TaintUntolerated  since 1h6m0s ended 1h0m0s")
	w.pass(time.Second)
	is("")
}

func TestMovesReportRemainingWorkloads(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.deployment("web", "a=2 b=2", byRoom())
	w.room["b"] = 1
	w.lose("a")
	w.pass(5 * time.Minute)
	w.execute(w.plan())
	if got, want := w.moves(), "web a>b:1 TaintUntolerated ReplacementNotHealthy since 5m0s until 10m0s; web a> TaintUntolerated NothingFits since 5m0s"; got != want {
		t.Errorf("the moves are %q, want %q", got, want)
	}
}
