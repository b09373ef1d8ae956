package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// UndoInput has all that decides whether and how a workload goes back to a stored revision without a Release.
type UndoInput struct {
	Template *unstructured.Unstructured
	// Binding of the workload; nil if no policy propagates it.
	Binding workv1alpha2.Binding
	// Stored are the revisions that the hub has stored.
	Stored []appsv1.ControllerRevision
	// Releases in the namespace of the workload.
	Releases []releasev1alpha1.Release
}

// PastRevision is a stored revision of a workload.
type PastRevision struct {
	Revision  int64       `json:"revision"`
	CreatedAt metav1.Time `json:"createdAt"`
	Images    []string    `json:"images"`
	// Current is true if the template has it now.
	Current bool `json:"current,omitempty"`

	content *unstructured.Unstructured
}

// Undo is a way back to a stored revision.
type Undo struct {
	// From is the revision that the template has now; 0 if it is not stored.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to"`
	// Images are by container, Changes the other fields.
	Images  []Change `json:"images"`
	Changes []Change `json:"changes"`
	// Patch of the template, a JSON patch. It fails if the spec of the template has changed since.
	Patch []PatchOperation `json:"patch"`
}

// PatchOperation is a line of a JSON patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Past returns the stored revisions, the newest first.
func (in UndoInput) Past() ([]PastRevision, error) {
	if !fleet.KeepsHistory(in.Template) {
		return nil, fmt.Errorf("the hub keeps no revisions of a %s: apply the former template again", in.Template.GetKind())
	}
	past := []PastRevision{}
	for i := range in.Stored {
		c := &in.Stored[i]
		if !metav1.IsControlledBy(c, in.Template) {
			continue
		}
		stored := fleet.StoredRevision(in.Template, c)
		content, err := stored.Applied(in.Template)
		if err != nil {
			return nil, err
		}
		one := PastRevision{Revision: c.Revision, CreatedAt: c.CreationTimestamp, content: content,
			Current: stored.IsCurrent(in.Template), Images: []string{}}
		for _, image := range imagesIn(content) {
			one.Images = append(one.Images, image.(string))
		}
		slices.Sort(one.Images)
		past = append(past, one)
	}
	slices.SortFunc(past, func(a, b PastRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	return past, nil
}

// UndoTo returns the way back to a revision; 0 is the one before that of the template. The error names what to do
// instead.
func (in UndoInput) UndoTo(number int64) (Undo, error) {
	name := in.Template.GetKind() + " " + in.Template.GetName()
	past, err := in.Past()
	if err != nil {
		return Undo{}, err
	}
	if _, obstacle := in.ReleaseOwner(); obstacle != "" {
		return Undo{}, fmt.Errorf("%s is not undone: %s", name, obstacle)
	}
	u := Undo{Images: []Change{}, Changes: []Change{}}
	var to *PastRevision
	for i := range past {
		p := &past[i]
		if p.Current {
			u.From = p.Revision
		}
		if to == nil && (number == 0 && !p.Current || number != 0 && p.Revision == number) {
			to = p
		}
	}
	switch {
	case to == nil && number == 0:
		return Undo{}, fmt.Errorf("the hub has stored no earlier revision of %s: apply the former template again", name)
	case to == nil:
		return Undo{}, fmt.Errorf("the hub has no revision %d of %s: `argosy rollout history` lists all", number, name)
	case to.Current:
		return Undo{}, fmt.Errorf("%s has revision %d already", name, number)
	}
	if fleet.CustomVersion(in.Template.Object) != "" {
		return Undo{}, fmt.Errorf("%s names versions of its sidecars: apply the former template with its version", name)
	}
	u.To = to.Revision
	u.Patch = []PatchOperation{{"test", "/metadata/generation", in.Template.GetGeneration()}}
	before, after := map[string]any{}, map[string]any{}
	for _, path := range fleet.HistoryPaths(in.Template) {
		key, pointer := strings.Join(path, "."), "/"+strings.Join(path, "/")
		is, will := fields.Value(in.Template.Object, path...), fields.Value(to.content.Object, path...)
		switch before[key], after[key] = is, will; {
		case will != nil:
			u.Patch = append(u.Patch, PatchOperation{"add", pointer, will})
		case is != nil:
			u.Patch = append(u.Patch, PatchOperation{Op: "remove", Path: pointer})
		}
	}
	slices.SortFunc(u.Patch[1:], func(a, b PatchOperation) int { return strings.Compare(a.Path, b.Path) })
	u.Images, u.Changes = splitImages(imagesIn(in.Template), imagesIn(to.content), fields.Changes(before, after))
	return u, nil
}

// ReleaseOwner returns why only a release may change the pods of the workload, with the command that goes back, and the
// release that does so now or did so last. why is empty if no release owns the workload.
func (in UndoInput) ReleaseOwner() (name, why string) {
	t, namespace := in.Template, in.Template.GetNamespace()
	var last *releasev1alpha1.Release
	for i := range in.Releases {
		r := &in.Releases[i]
		if !targets(r, ReferenceOf(t)) || IsRecord(r) {
			continue
		}
		if !r.Status.Phase.Ended() {
			return r.Name, fmt.Sprintf("release %s updates it: `argosy release rollback %s -n %s`", r.Name, r.Name, namespace)
		}
		if last == nil || older(last, r) {
			last = r
		}
	}
	target := Target{}
	if target.Binding = in.Binding; StrategyOf(t) == "" && (in.Binding == nil ||
		target.effective() == "" && target.plan() == nil) {
		return "", ""
	}
	kind := strings.ToLower(match.GroupKind(t.GetAPIVersion(), t.GetKind()).String())
	start := fmt.Sprintf("`argosy release start %s/%s -n %s --revision NAME`; `argosy get releaserevisions -n %s` lists them",
		kind, t.GetName(), namespace, namespace)
	if last != nil {
		name = last.Name
	}
	if last != nil && canReopen(&last.Status) {
		return name, fmt.Sprintf("its changes wait for releases: `argosy release rollback %s -n %s`, or %s", name, namespace,
			start)
	}
	return name, "its changes wait for releases: " + start
}
