package interpret

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/fields"
)

// SentEntriesAnnotation on a member's object is the names of the entries that the hub sent, by list, as JSON. It is on
// objects with a list that members' controllers extend: an entry that is not in it was added by the member and stays.
const SentEntriesAnnotation = "argosy.io/sent-entries"

// extended are the lists of named entries that members' controllers are known to extend, by kind. OpenShift adds the
// pull secret of its registry to every ServiceAccount.
var extended = map[schema.GroupKind][]string{
	{Kind: "ServiceAccount"}: {"imagePullSecrets", "secrets"},
}

// NoteEntries writes the annotation onto what goes to a member, in place.
func NoteEntries(manifest *unstructured.Unstructured) {
	lists, ok := extended[manifest.GroupVersionKind().GroupKind()]
	if !ok {
		return
	}
	sent := map[string][]string{}
	for _, list := range lists {
		entries, _ := manifest.Object[list].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			sent[list] = append(sent[list], fields.Text(entry, "name"))
		}
	}
	notes := manifest.GetAnnotations()
	delete(notes, SentEntriesAnnotation) // the template does not say what was sent
	if len(sent) > 0 {
		text, err := json.Marshal(sent)
		if err != nil {
			panic(err) // names
		}
		if notes == nil {
			notes = map[string]string{}
		}
		notes[SentEntriesAnnotation] = string(text)
	}
	if len(notes) == 0 {
		unstructured.RemoveNestedField(manifest.Object, "metadata", "annotations")
		return
	}
	manifest.SetAnnotations(notes)
}

// sentEntries reads the annotation; recorded is false if it is not there, or not readable.
func sentEntries(observed *unstructured.Unstructured) (sent map[string][]string, recorded bool) {
	text := observed.GetAnnotations()[SentEntriesAnnotation]
	return sent, text != "" && json.Unmarshal([]byte(text), &sent) == nil
}

// RetainEntries keeps the entries of observed that the hub never sent. If the hub sends a list no more and the member
// has entries of its own, the annotation stays: the list belongs to the hub, which has to send these. An object without
// the annotation is of an older hub: all of its entries that desired does not have are taken for the member's.
func RetainEntries(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	sent, recorded := sentEntries(observed)
	retained := desired
	for _, list := range extended[desired.GroupVersionKind().GroupKind()] {
		wanted, sends := desired.Object[list].([]any)
		if !sends && !recorded {
			continue // left open, so that all of it is the member's
		}
		known := map[string]bool{}
		for _, name := range sent[list] {
			known[name] = true
		}
		for _, e := range wanted {
			entry, _ := e.(map[string]any)
			known[fields.Text(entry, "name")] = true
		}
		merged := wanted
		there, _ := observed.Object[list].([]any)
		for _, e := range there {
			if entry, _ := e.(map[string]any); entry != nil && !known[fields.Text(entry, "name")] {
				merged = append(merged[:len(merged):len(merged)], e)
			}
		}
		if len(merged) == len(wanted) {
			continue
		}
		if retained == desired {
			retained = desired.DeepCopy()
		}
		retained.Object[list] = merged
		if notes := retained.GetAnnotations(); notes[SentEntriesAnnotation] == "" {
			if notes == nil {
				notes = map[string]string{}
			}
			notes[SentEntriesAnnotation] = "{}"
			retained.SetAnnotations(notes)
		}
	}
	return retained
}
