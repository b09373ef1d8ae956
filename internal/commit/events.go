package commit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// SuccessEvents selects the successes that are recorded as events. Each event is a write. Failures are always recorded.
type SuccessEvents string

const (
	// SuccessEventsDefault records rare successes and those that are visible nowhere else: clusters, claims, placements,
	// overrides, dependencies, Services of several clusters, and the end of a failure.
	SuccessEventsDefault SuccessEvents = "default"
	// SuccessEventsAll also records each step of each object, as Karmada does.
	SuccessEventsAll SuccessEvents = "all"
	// SuccessEventsNone records failures only.
	SuccessEventsNone SuccessEvents = "none"
)

// ParseSuccessEvents parses one of the three values. An empty text is the default.
func ParseSuccessEvents(text string) (SuccessEvents, error) {
	switch s := SuccessEvents(text); s {
	case "":
		return SuccessEventsDefault, nil
	case SuccessEventsDefault, SuccessEventsAll, SuccessEventsNone:
		return s, nil
	}
	return "", fmt.Errorf("%q is none of %s, %s and %s", text, SuccessEventsDefault, SuccessEventsAll, SuccessEventsNone)
}

// WithSuccessEvents returns mgr with a setting for the recorders of its controllers. Without it, the default applies.
func WithSuccessEvents(mgr ctrl.Manager, s SuccessEvents) ctrl.Manager { return eventManager{mgr, s} }

type eventManager struct {
	ctrl.Manager
	successes SuccessEvents
}

// Events records events of a component as core/v1 events, which users of Karmada expect.
type Events struct {
	record.EventRecorder
	Successes SuccessEvents
}

// Recorder returns the event recorder of a component.
func Recorder(mgr ctrl.Manager, component string) Events {
	//lint:ignore SA1019 the recorder that replaces it writes events of another group
	e := Events{EventRecorder: mgr.GetEventRecorderFor(component)}
	if m, ok := mgr.(eventManager); ok {
		e.Successes = m.successes
	}
	return e
}

// eventLimit is the maximum length of an event's message in bytes. Messages quote members and webhooks.
const eventLimit = 4 << 10

// Event implements record.EventRecorder.
func (e Events) Event(obj runtime.Object, kind, reason, message string) {
	e.EventRecorder.Event(obj, kind, reason, text.Cut(message, eventLimit))
}

// Eventf implements record.EventRecorder.
func (e Events) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	e.Event(obj, kind, reason, fmt.Sprintf(format, args...))
}

// RecordSuccess records a success on each of the objects, unless the setting is none.
func (e Events) RecordSuccess(reason, message string, objects ...runtime.Object) {
	if e.Successes == SuccessEventsNone {
		return
	}
	for _, obj := range objects {
		e.Event(obj, corev1.EventTypeNormal, reason, message)
	}
}

// RecordStep records a routine success on each of the objects if the setting is all.
func (e Events) RecordStep(reason, message string, objects ...runtime.Object) {
	if e.Successes == SuccessEventsAll {
		e.RecordSuccess(reason, message, objects...)
	}
}
