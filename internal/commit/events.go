package commit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/argosy-io/argosy/internal/core/text"
)

// Successes is of which successes users are told by events. Each event is a write; failures are always told.
type Successes string

const (
	// SuccessesDefault tells of what is seldom or what a user would not see otherwise: clusters, claims, placements,
	// overrides, dependencies, Services of several clusters, and the end of a failure.
	SuccessesDefault Successes = "default"
	// SuccessesAll tells of each step of each object as well, as Karmada does.
	SuccessesAll Successes = "all"
	// SuccessesNone tells of failures alone.
	SuccessesNone Successes = "none"
)

// ParseSuccesses understands one of the three; empty is the default.
func ParseSuccesses(text string) (Successes, error) {
	switch s := Successes(text); s {
	case "":
		return SuccessesDefault, nil
	case SuccessesDefault, SuccessesAll, SuccessesNone:
		return s, nil
	}
	return "", fmt.Errorf("%q is none of %s, %s and %s", text, SuccessesDefault, SuccessesAll, SuccessesNone)
}

// Telling is the manager for controllers that tell of these successes; of a manager as it is, they tell of the default.
func Telling(mgr ctrl.Manager, s Successes) ctrl.Manager { return telling{mgr, s} }

type telling struct {
	ctrl.Manager
	successes Successes
}

// Events writes events in the name of a component, as core/v1 events: those are what users of Karmada look at. It alone
// decides of which successes they are told.
type Events struct {
	record.EventRecorder
	Successes Successes
}

// Recorder writes events in the name of a component.
func Recorder(mgr ctrl.Manager, component string) Events {
	//lint:ignore SA1019 the recorder that replaces it writes events of another group
	e := Events{EventRecorder: mgr.GetEventRecorderFor(component)}
	if t, ok := mgr.(telling); ok {
		e.Successes = t.successes
	}
	return e
}

// eventLimit is the most bytes of what an event says: parts of it are words of members and of webhooks.
const eventLimit = 4 << 10

// Event implements record.EventRecorder.
func (e Events) Event(obj runtime.Object, kind, reason, message string) {
	e.EventRecorder.Event(obj, kind, reason, text.Cut(message, eventLimit))
}

// Eventf implements record.EventRecorder.
func (e Events) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	e.Event(obj, kind, reason, fmt.Sprintf(format, args...))
}

// Succeeded tells of a success on each of the objects, unless of none is told.
func (e Events) Succeeded(reason, message string, objects ...runtime.Object) {
	if e.Successes == SuccessesNone {
		return
	}
	for _, obj := range objects {
		e.Event(obj, corev1.EventTypeNormal, reason, message)
	}
}

// Stepped tells of what goes well each time, if of all successes is told.
func (e Events) Stepped(reason, message string, objects ...runtime.Object) {
	if e.Successes == SuccessesAll {
		e.Succeeded(reason, message, objects...)
	}
}
