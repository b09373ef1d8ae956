package fleet

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var podsToDeletePath = []string{"spec", "scaleStrategy", "podsToDelete"}

// PodsAskedFor are the names in a CloneSet's podsToDelete, and that of a ContainerRecreateRequest's pod, that have to be looked for in
// the clusters, sorted: those that are not routed yet. Others' are none.
func PodsAskedFor(template *unstructured.Unstructured, existing map[string]*workv1alpha1.Work) ([]string, error) {
	if template.GroupVersionKind().GroupKind() == recreateRequestKind {
		if pod := text(template.Object, "spec", "podName"); pod != "" && len(existing) == 0 {
			return []string{pod}, nil
		}
		return nil, nil
	}
	names := podsNamed(template)
	for cluster, w := range existing {
		if len(names) == 0 {
			break
		}
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before == nil || m.generation() != strconv.FormatInt(template.GetGeneration(), 10) {
			continue
		}
		known := texts(list(m.before.Object, podsToDeletePath...))
		if text, ok := w.Annotations[NoteAnnotation]; ok {
			note := parseNote(text)
			known = append(append(known, split(note.Deleted)...), split(note.Missing)...)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
	}
	return unique(names), nil
}

// PodsSent are the pods that a CloneSet names for deletion and that clusters were told of that had them, by cluster; none before each
// of these has taken what its Work says, and while the Works are not made of the template as it is.
func PodsSent(template *unstructured.Unstructured, existing map[string]*workv1alpha1.Work) (map[string][]string, error) {
	names := podsNamed(template)
	if len(names) == 0 {
		return nil, nil
	}
	sent := map[string][]string{}
	for cluster, w := range existing {
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before == nil || m.generation() != strconv.FormatInt(template.GetGeneration(), 10) {
			return nil, nil
		}
		told := texts(list(m.before.Object, podsToDeletePath...))
		if m.note == nil || len(told) == 0 {
			continue
		}
		if !m.fresh {
			return nil, nil
		}
		for _, name := range told {
			if slices.Contains(names, name) && !slices.Contains(split(m.note.Missing), name) {
				sent[cluster] = append(sent[cluster], name)
			}
		}
	}
	return sent, nil
}

// WithoutPods is a CloneSet that does not name these pods for deletion.
func WithoutPods(template *unstructured.Unstructured, gone []string) *unstructured.Unstructured {
	out := template.DeepCopy()
	left := slices.DeleteFunc(list(out.Object, podsToDeletePath...), func(v any) bool {
		name, ok := v.(string)
		return ok && slices.Contains(gone, name)
	})
	if len(left) > 0 {
		// It was there as a list.
		_ = unstructured.SetNestedSlice(out.Object, left, podsToDeletePath...)
		return out
	}
	unstructured.RemoveNestedField(out.Object, podsToDeletePath...)
	if parent := podsToDeletePath[:len(podsToDeletePath)-1]; len(object(out.Object, parent...)) == 0 {
		unstructured.RemoveNestedField(out.Object, parent...)
	}
	return out
}

// PodsToDelete are the names in a CloneSet's podsToDelete; nil where there is no such list, and of other kinds.
func PodsToDelete(template *unstructured.Unstructured) []string {
	if template.GroupVersionKind().GroupKind() != cloneSetKind || field(template.Object, podsToDeletePath...) == nil {
		return nil
	}
	return append([]string{}, podsNamed(template)...)
}

// podsNamed are the names in a CloneSet's podsToDelete; none of other kinds.
func podsNamed(template *unstructured.Unstructured) []string {
	if template.GroupVersionKind().GroupKind() != cloneSetKind {
		return nil
	}
	return texts(list(template.Object, podsToDeletePath...))
}

// passPods is routePods of a template in one cluster, which is told of all. Which of the pods it did not have is noted.
func (f *fleet) passPods(m *member) {
	var missing []string
	for _, name := range podsNamed(f.Template) {
		sent := m.before != nil && m.note != nil && m.generation() == strconv.FormatInt(f.Template.GetGeneration(), 10) &&
			!slices.Contains(split(m.note.Missing), name)
		if !sent && !slices.Contains(f.Pods[name], m.Cluster) {
			missing = append(missing, name)
		}
	}
	f.result.Notes[m.Cluster] = Note{Missing: strings.Join(missing, ",")}.String()
}

// routePods sends each cluster the names of its own pods. A name that is nowhere, or in two clusters, is sent to none: a member
// refuses the whole update for it. One that was sent stays in the Work until the template changes, as the member's controller takes
// it off its list when the pod is gone; what is gone by then is neither sent nor missed.
//
// A name goes to its cluster in one write with the replica that goes with it: as long as the scheduler has yet to take back
// replicas, new names wait, or the pod would be made anew and another one deleted.
func (f *fleet) routePods() {
	names := texts(list(f.Template.Object, podsToDeletePath...))
	own, deleted := make([][]any, len(f.members)), make([][]string, len(f.members))
	waits := f.placedTooMany()
	var nowhere, searched, twice []string
	for _, name := range names {
		var in []int
		gone := -1
		missing, routed := false, false
		for i, m := range f.members {
			if slices.Contains(f.Pods[name], m.Cluster) {
				in = append(in, i)
			}
			if m.before == nil {
				continue
			}
			same := m.generation() == strconv.FormatInt(f.Template.GetGeneration(), 10)
			if slices.Contains(texts(list(m.before.Object, podsToDeletePath...)), name) {
				if same {
					in, routed = []int{i}, true
					break
				}
				gone = i
			}
			if m.note != nil {
				if slices.Contains(split(m.note.Deleted), name) {
					gone = i
				}
				missing = missing || same && slices.Contains(split(m.note.Missing), name)
			}
		}
		_, looked := f.Pods[name]
		switch {
		case waits && !routed && gone < 0:
			continue
		case len(in) == 1:
			own[in[0]] = append(own[in[0]], name)
		case len(in) > 1:
			twice = append(twice, name)
		case gone >= 0:
			deleted[gone] = append(deleted[gone], name)
		default:
			nowhere = append(nowhere, name)
			if looked || missing {
				searched = append(searched, name)
			}
		}
	}
	for i, m := range f.members {
		if m.Base == nil {
			continue
		}
		if len(names) > 0 {
			if own[i] == nil {
				own[i] = []any{}
			}
			f.put(m, own[i], podsToDeletePath...)
		}
		if _, ok := f.result.Notes[m.Cluster]; !ok && len(own[i]) > 0 {
			f.result.Notes[m.Cluster] = Note{}.String() // what it says then has the hub look whether they are gone
		}
		if text, ok := f.result.Notes[m.Cluster]; ok {
			note := parseNote(text)
			note.Deleted, note.Missing = strings.Join(deleted[i], ","), strings.Join(searched, ",")
			f.result.Notes[m.Cluster] = note.String()
		}
	}
	var texts []string
	if len(nowhere) > 0 {
		texts = append(texts, strings.Join(nowhere, ", ")+" not found in any responding cluster")
	}
	if len(twice) > 0 {
		texts = append(texts, strings.Join(twice, ", ")+" found in several clusters")
	}
	if len(texts) > 0 {
		f.tell(PodNotFound, "pods named in spec.scaleStrategy.podsToDelete are not deleted: %s; remove the names, or delete the pods in their clusters", strings.Join(texts, "; "))
	}
}

// placedTooMany says whether the clusters have more replicas than the template asks for.
func (f *fleet) placedTooMany() bool {
	if !f.Divided {
		return false
	}
	asked, set := whole(field(f.Template.Object, "spec", "replicas"))
	if !set {
		asked = 1
	}
	var placed int64
	for _, m := range f.members {
		placed += m.Replicas
	}
	return placed > asked
}

// parseNote is the note of an annotation; one that somebody broke is none.
func parseNote(text string) (n Note) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return Note{}
	}
	return n
}

func split(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
}

// generation is that of the template that the Work was made from.
func (m *member) generation() string {
	return m.before.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]
}

func texts(all []any) []string {
	var out []string
	for _, v := range all {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
