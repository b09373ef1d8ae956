package release

import (
	"encoding/json"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// VerbsAnnotation has the users of verbs on a release.
const VerbsAnnotation = wellknown.ReleaseVerbsAnnotation

// stateChange is the key of the last change of spec.state in VerbsAnnotation. The other keys are the annotations that
// need a verb.
const stateChange = "state"

// usedVerb is the last use of a verb on a release: its user, the value that it set, and why.
type usedVerb struct {
	Value  string `json:"value"`
	User   string `json:"user"`
	Reason string `json:"reason,omitempty"`
}

// verbsOf are the verbs that users have used on a release. It ignores an annotation that is not the hub's.
func verbsOf(r *releasev1alpha1.Release) map[string]usedVerb {
	verbs := map[string]usedVerb{}
	if json.Unmarshal([]byte(r.Annotations[VerbsAnnotation]), &verbs) != nil {
		return nil
	}
	return verbs
}

// StampVerbs returns the value of VerbsAnnotation after a user wrote a release; empty for none. It keeps what the hub
// stamped before, whatever the user wrote there. old is nil for a new release.
func StampVerbs(old, r *releasev1alpha1.Release, user string) string {
	verbs := map[string]usedVerb{}
	was, before := releasev1alpha1.StateRun, map[string]string(nil)
	if old != nil {
		if kept := verbsOf(old); kept != nil {
			verbs = kept
		}
		was, before = stateOf(old), old.Annotations
	}
	reason := r.Annotations[releasev1alpha1.ReleaseReasonAnnotation]
	if is := stateOf(r); is != was {
		used := usedVerb{Value: string(is), User: user}
		if reason != before[releasev1alpha1.ReleaseReasonAnnotation] {
			used.Reason = reason // else it is of an earlier verb
		}
		verbs[stateChange] = used
	}
	for _, a := range annotationVerbs {
		if value := r.Annotations[a.annotation]; value != before[a.annotation] && value != "" {
			verbs[a.annotation] = usedVerb{value, user, reason}
		}
	}
	if len(verbs) == 0 {
		return ""
	}
	return text.JSON(verbs)
}

// verbFor returns who set the annotation or the state to the value that it has, and why.
func (s *stepper) verbFor(key string) usedVerb {
	value := s.Release.Annotations[key]
	if key == stateChange {
		value = string(stateOf(s.Release))
	}
	if v := verbsOf(s.Release)[key]; v.Value == value {
		return v
	}
	return usedVerb{}
}

// verbForPhase returns who asked for the phase that the release enters, by the reason of the phase; empty if no user
// did.
func (s *stepper) verbForPhase(reason string) usedVerb {
	switch reason {
	case releasev1alpha1.ReasonPausedByUser, releasev1alpha1.ReasonAborted, releasev1alpha1.ReasonUserRequest:
		return s.verbFor(stateChange)
	case "Resumed":
		// After a failure, a verb on the stage resumes.
		for _, e := range slices.Backward(s.status.Journal) {
			if e.Type != releasev1alpha1.JournalPhase {
				continue
			}
			if e.Reason == releasev1alpha1.ReasonPausedByUser {
				return s.verbFor(stateChange)
			}
			break
		}
	}
	return usedVerb{}
}
