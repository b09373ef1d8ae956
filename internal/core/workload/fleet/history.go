package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Revision has the fields of a template that make its pods, or those that a SidecarSet injects. Users go back to it.
type Revision struct {
	// Name is a digest of the content. It is unique among the revisions of a template.
	Name string
	// Number orders revisions; the newest has the largest.
	Number int64
	// Data are the fields by their paths, as JSON; of a SidecarSet, by their names in the spec.
	Data []byte
}

// leastHistory is the minimum number of revisions that are kept.
const leastHistory = 2

// KeepsHistory reports whether the hub stores revisions of the template: users go back to them.
func KeepsHistory(template *unstructured.Unstructured) bool {
	return kind.Facts(template).Revisions
}

// HistoryNamespace is the namespace of the stored revisions of a template: its own, or that of the hub.
func HistoryNamespace(template *unstructured.Unstructured) string {
	return cmp.Or(template.GetNamespace(), names.System)
}

// StoredRevision reads a stored revision of a template.
func StoredRevision(template *unstructured.Unstructured, c *appsv1.ControllerRevision) Revision {
	return Revision{Name: strings.TrimPrefix(c.Name, RevisionPrefix(template)), Number: c.Revision, Data: c.Data.Raw}
}

// RevisionPrefix begins the names of the stored revisions of a template.
func RevisionPrefix(template *unstructured.Unstructured) string {
	return strings.ToLower(template.GetKind()) + "-" + string(template.GetUID()) + "-"
}

// IsCurrent reports whether a template has a revision now.
func (r Revision) IsCurrent(template *unstructured.Unstructured) bool {
	return r.hasContentOf(revisionOf(template))
}

// hasContentOf reports whether two revisions have the same content. Former versions of the hub gave it other names.
func (r Revision) hasContentOf(other Revision) bool {
	if r.Name == other.Name || bytes.Equal(r.Data, other.Data) {
		return true
	}
	var mine, theirs map[string]any
	return json.Unmarshal(r.Data, &mine) == nil && json.Unmarshal(other.Data, &theirs) == nil &&
		equality.Semantic.DeepEqual(mine, theirs)
}

// Applied returns a copy of a template with the pods, or the injected fields, of a revision of it.
func (r Revision) Applied(template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var data map[string]any
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return nil, fmt.Errorf("read revision %d of %s %s: %w", r.Number, template.GetKind(), template.GetName(), err)
	}
	out := template.DeepCopy()
	for key, path := range HistoryPaths(template) {
		if data[key] == nil {
			unstructured.RemoveNestedField(out.Object, path...)
			continue
		}
		if err := unstructured.SetNestedField(out.Object, data[key], path...); err != nil {
			return nil, fmt.Errorf("apply %s of revision %d: %w", key, r.Number, err)
		}
	}
	return out, nil
}

// HistoryPaths returns the fields of a template that its revisions have, by their keys in Revision.Data.
func HistoryPaths(template *unstructured.Unstructured) map[string][]string {
	paths, of := map[string][]string{}, kind.Facts(template)
	for _, name := range of.Pods.Injected {
		paths[name] = []string{"spec", name}
	}
	if len(paths) > 0 {
		return paths
	}
	for _, path := range of.RevisionPaths() {
		paths[strings.Join(path, ".")] = path
	}
	return paths
}

// Remember returns the revision of the template to store, nil for none, and the stored revisions to delete: those
// beyond revisionHistoryLimit (default 10, minimum 2).
func Remember(template *unstructured.Unstructured, stored []Revision) (store *Revision, surplus []Revision) {
	kept := slices.Clone(stored)
	slices.SortFunc(kept, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Name, b.Name))
	})
	if r := revisionOf(template); string(r.Data) != "{}" && (len(kept) == 0 || !kept[0].hasContentOf(r)) {
		if len(kept) > 0 {
			r.Number = kept[0].Number
		}
		r.Number++
		// If the template returned to an earlier revision, store that as the newest.
		kept = slices.DeleteFunc(kept, func(k Revision) bool {
			again := k.hasContentOf(r)
			if again {
				surplus = append(surplus, k)
			}
			return again
		})
		store = &r
		kept = slices.Insert(kept, 0, r)
	}
	limit := int64(10)
	if n, set := whole(field(template.Object, "spec", "revisionHistoryLimit")); set {
		limit = max(n, leastHistory)
	}
	return store, append(surplus, kept[min(int64(len(kept)), limit):]...)
}

// revisionOf returns the revision of a template, without a number.
func revisionOf(template *unstructured.Unstructured) Revision {
	data := map[string]any{}
	for key, path := range HistoryPaths(template) {
		if v := field(template.Object, path...); v != nil {
			data[key] = v
		}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // it was read from JSON
	}
	h := fnv.New64a()
	// fnv never fails to write. The names of stored revisions begin with the zero byte.
	_, _ = h.Write(append([]byte{0}, raw...))
	return Revision{Name: strconv.FormatUint(h.Sum64(), 36), Data: raw}
}
