package interpret

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// extended are the lists that members' controllers extend, by kind. OpenShift adds a pull secret to every
// ServiceAccount.
var extended = map[schema.GroupKind][]string{
	{Kind: "ServiceAccount"}: {"imagePullSecrets", "secrets"},
}

// NoteEntries sets the annotation on a manifest in place.
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
	value := "" // the template's annotation does not count
	if len(sent) > 0 {
		value = text.JSON(sent)
	}
	fields.PutAnnotation(manifest, wellknown.SentEntriesAnnotation, value)
}

// sentEntries reads the annotation. recorded is false if it is missing or invalid.
func sentEntries(observed *unstructured.Unstructured) (sent map[string][]string, recorded bool) {
	text := observed.GetAnnotations()[wellknown.SentEntriesAnnotation]
	return sent, text != "" && json.Unmarshal([]byte(text), &sent) == nil
}

// RetainEntries keeps the entries of observed that the hub never sent. If the hub no longer sends the list but the
// member has own entries, the annotation stays, because the hub owns the list and must send these. Without the
// annotation (older hub) all entries missing in desired belong to the member.
func RetainEntries(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	sent, recorded := sentEntries(observed)
	retained := desired
	for _, list := range extended[desired.GroupVersionKind().GroupKind()] {
		wanted, sends := desired.Object[list].([]any)
		if !sends && !recorded {
			continue // not set, so the member owns the list
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
		if notes := retained.GetAnnotations(); notes[wellknown.SentEntriesAnnotation] == "" {
			if notes == nil {
				notes = map[string]string{}
			}
			notes[wellknown.SentEntriesAnnotation] = "{}"
			retained.SetAnnotations(notes)
		}
	}
	return retained
}

// NoteSuspension sets the annotation on a manifest in place, if it is suspended.
func NoteSuspension(manifest *unstructured.Unstructured) {
	if !kind.Facts(manifest).StatusIsShared {
		return
	}
	value := ""
	if fields.Yes(manifest.Object, "spec", "suspend") {
		value = "true"
	}
	fields.PutAnnotation(manifest, wellknown.TemplateSuspendsAnnotation, value)
}
