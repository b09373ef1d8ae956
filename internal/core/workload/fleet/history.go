package fleet

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/names"
	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// Revision has the fields of a template that make its pods, or those that a SidecarSet injects. Users go back to it. A
// member knows only its own revisions of a SidecarSet. So a member that joins late needs an older revision first, if it
// has to inject that.
type Revision struct {
	// Name is a digest of the content. It is unique among the revisions of a template.
	Name string
	// Version is the customVersion, the name that the author gave; empty if none.
	Version string
	// Number orders revisions; the newest has the largest.
	Number int64
	// Data are the fields by their paths, as JSON; of a SidecarSet, by their names in the spec.
	Data []byte
}

// injected are the fields of a SidecarSet's spec that make up a revision.
var injected = []string{"containers", "initContainers", "volumes", "imagePullSecrets", "patchPodMetadata"}

// customVersionLabel has the customVersion in v1alpha1; in v1beta1 it is a field.
const customVersionLabel = "apps.kruise.io/sidecarset-custom-version"

// leastHistory is the minimum number of revisions that are kept.
const leastHistory = 2

// CustomVersion returns the version name that the author of a SidecarSet set; empty if none.
func CustomVersion(obj map[string]any) string {
	if strings.HasSuffix(text(obj, "apiVersion"), "/v1alpha1") {
		return text(obj, "metadata", "labels", customVersionLabel)
	}
	return text(obj, "spec", "customVersion")
}

// Revisions has the known revisions in the cluster of a Work, as JSON in wellknown.RevisionsAnnotation.
type Revisions struct {
	// Content is the Name of the Revision in the manifest. Overrides and API versions can change the manifest.
	Content string `json:"content,omitempty"`
	// Made maps names of recent revisions in the cluster to their Names on the hub: own=name, separated by commas.
	Made string `json:"made,omitempty"`
}

// KeepsHistory reports whether the hub stores revisions of the template: users go back to them. It stores those of a
// SidecarSet also without version names: when a user names a revision by its name in a member, the hub no longer has
// its content otherwise.
func KeepsHistory(template *unstructured.Unstructured) bool {
	gk := template.GroupVersionKind().GroupKind()
	return gk == sidecarSetKind || kind.Lookup(gk).Revisions
}

// HistoryNamespace is the namespace of the stored revisions of a template: its own, or that of the hub.
func HistoryNamespace(template *unstructured.Unstructured) string {
	return cmp.Or(template.GetNamespace(), names.System)
}

// StoredRevision reads a stored revision of a template.
func StoredRevision(template *unstructured.Unstructured, c *appsv1.ControllerRevision) Revision {
	return Revision{Name: strings.TrimPrefix(c.Name, RevisionPrefix(template)),
		Version: c.Annotations[wellknown.RevisionVersionAnnotation], Number: c.Revision, Data: c.Data.Raw}
}

// RevisionPrefix begins the names of the stored revisions of a template.
func RevisionPrefix(template *unstructured.Unstructured) string {
	return strings.ToLower(template.GetKind()) + "-" + string(template.GetUID()) + "-"
}

// IsCurrent reports whether a template has a revision now.
func (r Revision) IsCurrent(template *unstructured.Unstructured) bool {
	return revisionOf(template).Name == r.Name
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
	paths, kind := map[string][]string{}, template.GroupVersionKind().GroupKind()
	if kind == sidecarSetKind {
		for _, name := range injected {
			paths[name] = []string{"spec", name}
		}
		return paths
	}
	for _, path := range RevisionPaths(kind) {
		paths[strings.Join(path, ".")] = path
	}
	return paths
}

// Remember returns the revision of the template to store, nil for none, and the stored revisions to delete: those
// beyond revisionHistoryLimit (default 10, minimum 2). It never deletes the revision that the template injects, by its
// version or by a name in one of the Works.
func Remember(template *unstructured.Unstructured, works map[string]*workv1alpha1.Work,
	stored []Revision) (store *Revision, surplus []Revision) {
	kept := slices.Clone(stored)
	slices.SortFunc(kept, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Name, b.Name))
	})
	if r := revisionOf(template); string(r.Data) != "{}" {
		if len(kept) > 0 {
			r.Number = kept[0].Number
		}
		r.Number++
		if newest := slices.IndexFunc(kept, func(k Revision) bool { return k.Version == r.Version }); newest < 0 ||
			kept[newest].Name != r.Name {
			// The version returned to earlier containers: store it as the newest.
			kept = slices.DeleteFunc(kept, func(k Revision) bool {
				again := k.Name == r.Name
				if again {
					surplus = append(surplus, k)
				}
				return again
			})
			store = &r
			kept = slices.Insert(kept, 0, r)
		}
	}
	limit := int64(10)
	if n, set := whole(field(template.Object, "spec", "revisionHistoryLimit")); set {
		limit = max(n, leastHistory)
	}
	named, found, content := namedVersion(template.Object), false, ""
	if template.GroupVersionKind().GroupKind() == sidecarSetKind {
		content = contentNamed(template, works)
	}
	for i, k := range kept {
		wanted := k.Version == named && named != "" && !found
		found = found || wanted
		wanted = wanted || k.Name == content
		if int64(i) >= limit && !wanted {
			surplus = append(surplus, k)
		}
	}
	return store, surplus
}

// revisionOf returns the revision of a template, without a number. Its Version is empty if the author set no name.
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
	version := ""
	if template.GroupVersionKind().GroupKind() == sidecarSetKind {
		version = CustomVersion(template.Object)
	}
	h := fnv.New64a()
	// fnv never fails to write.
	_, _ = h.Write([]byte(version + "\x00"))
	_, _ = h.Write(raw)
	return Revision{Name: strconv.FormatUint(h.Sum64(), 36), Version: version, Data: raw}
}

// namedVersion returns the version that a SidecarSet injects into new pods. It is empty if the SidecarSet names none or
// uses another name.
func namedVersion(obj map[string]any) string {
	return text(obj, "spec", "injectionStrategy", "revision", "customVersion")
}

// historyOf returns the newest revision of a version; nil if none is stored.
func (f *fleet) historyOf(version string) *Revision {
	var newest *Revision
	for i := range f.History {
		if r := &f.History[i]; r.Version == version && (newest == nil || r.Number > newest.Number) {
			newest = r
		}
	}
	return newest
}

// contentNamed returns the revision that a template refers to by a cluster's name for it. It is empty if the template
// refers to none or these Works do not know the name.
func contentNamed(template *unstructured.Unstructured, works map[string]*workv1alpha1.Work) string {
	f := &fleet{Input: Input{Template: template}}
	for cluster, w := range works {
		// An unreadable Work is an error of the division.
		if m, err := observe(Member{Cluster: cluster, Work: w}); err == nil {
			f.members = append(f.members, m)
		}
	}
	slices.SortFunc(f.members, func(a, b *member) int { return strings.Compare(a.Cluster, b.Cluster) })
	return f.contentNamed()
}

// past returns the revision with that Name; nil if none is stored.
func (f *fleet) past(name string) *Revision {
	if i := slices.IndexFunc(f.History, func(r Revision) bool { return r.Name == name }); i >= 0 && name != "" {
		return &f.History[i]
	}
	return nil
}

// stageRevision makes each member inject the revision that the template names. A member rejects a revision that it
// never had, so it gets that revision first, without an update of running pods. When it reports the revision, it gets
// the template.
//
//	the template injects A and names B ──▶ B alone, paused ──the member reports B──▶ A, with the member's name of B
func (f *fleet) stageRevision() error {
	named, name, current := namedVersion(f.Template.Object), revisionName(f.Template.Object), revisionOf(f.Template)
	content := f.contentNamed()
	var unknown, lost, nameless []string
	for _, m := range f.members {
		if m.Base == nil {
			continue
		}
		mine := m.calls(name, content)
		var past *Revision
		drop := false
		switch {
		case !stagesRevision(f.Template.Object):
		case named != "" && m.hasRevision(named), mine != "":
		case named == current.Version && named != "", content == current.Name:
			drop = true // it makes what is named of what it gets
		case named != "":
			past = f.historyOf(named)
			if drop = past == nil && text(m.status, "latestRevision") == ""; past == nil {
				unknown = append(unknown, m.Cluster)
			}
		case content != "":
			past = f.past(content)
			if drop = past == nil && text(m.status, "latestRevision") == ""; past == nil {
				lost = append(lost, m.Cluster)
			}
		default:
			// The member may know the name itself, unless it has no revision at all.
			drop = text(m.status, "latestRevision") == ""
			if m.refused {
				nameless = append(nameless, m.Cluster)
			}
		}
		switch {
		case past != nil:
			if err := f.sendPast(m, past); err != nil {
				return err
			}
		case drop:
			f.put(m, withoutRevision(m.Base.Object), "spec", "injectionStrategy")
		case mine != "" && mine != name:
			f.put(m, mine, "spec", "injectionStrategy", "revision", "revisionName")
		}
		f.note(m, cmp.Or(past, &current), content, mine)
	}
	if len(nameless) > 0 {
		f.addCondition(RevisionMissing, "spec.injectionStrategy.revision names the revision %q, but its name in %s is unknown: each cluster names its own revisions, and the hub has not seen this name in any; "+
			"set a customVersion for each version, and refer to that", name, strings.Join(unique(nameless), ", "))
	}
	if len(lost) > 0 {
		f.addCondition(RevisionMissing, "spec.injectionStrategy.revision names the revision %q, but the hub has not stored what that injects, so it cannot be applied in %s; "+
			"apply the SidecarSet as it was then with a customVersion, refer to that version, and then continue from there",
			name, strings.Join(unique(lost), ", "))
	}
	if len(unknown) > 0 {
		f.addCondition(RevisionMissing, "spec.injectionStrategy.revision names the version %q, but the hub has no template of it, so it cannot be applied in %s; "+
			"apply the SidecarSet of that version with that name again, and then continue from there", named,
			strings.Join(unique(unknown), ", "))
	}
	return nil
}

// note records data for later decisions with the Work of m: its earlier versions, and its name for the revision that
// the template names. written is the version to inject now.
func (f *fleet) note(m *member, written *Revision, content, mine string) {
	name := revisionName(f.Template.Object)
	next := Revisions{Content: written.Name, Made: m.revisions.Made}
	if latest := m.latest(); latest != "" && (m.content() != written.Name || name != "" && m.content() == content) {
		next.Made = withName(next.Made, latest, m.content())
	}
	f.result.Revisions[m.Cluster] = words.JSON(next)
	if !versioned(f.Template.Object) {
		return // no revision depends on the members' reports
	}
	note := parseNote(f.result.Notes[m.Cluster])
	note.Versions = strings.Join(m.versionsBefore(written.Version), ",")
	if m.note != nil {
		note.Revisions = m.note.Revisions
	}
	if mine != "" {
		note.Revisions = withName(note.Revisions, name, mine)
	}
	// The next report of the member decides about it.
	f.result.Notes[m.Cluster] = note.String()
}

// revisionName returns the cluster's name of the revision that a SidecarSet injects. It is empty if the SidecarSet
// names none, or names a version.
func revisionName(obj map[string]any) string {
	return text(obj, "spec", "injectionStrategy", "revision", "revisionName")
}

// contentNamed returns the revision that the template names with a cluster's name for it; empty if it is unknown.
func (f *fleet) contentNamed() string {
	name := revisionName(f.Template.Object)
	if name == "" {
		return ""
	}
	for _, m := range f.members {
		if m.latest() == name {
			return m.content()
		}
	}
	for _, m := range f.members {
		if content := valueOf(m.revisions.Made, name); content != "" {
			return content
		}
	}
	// That cluster may have left. Others recorded their own name for the same revision.
	for _, m := range f.members {
		if m.note == nil {
			continue
		}
		if content := valueOf(m.revisions.Made, valueOf(m.note.Revisions, name)); content != "" {
			return content
		}
	}
	return ""
}

// calls returns the name in m of the revision that the template names and that has this content; empty if unknown.
func (m *member) calls(name, content string) string {
	if name == "" {
		return ""
	}
	if latest := m.latest(); latest != "" && m.content() == content {
		return latest
	}
	if content != "" {
		for _, pair := range slices.Backward(split(m.revisions.Made)) {
			if own, of, _ := strings.Cut(pair, "="); of == content {
				return own
			}
		}
	}
	if m.note == nil {
		return ""
	}
	return valueOf(m.note.Revisions, name)
}

// latest returns the member's name for the revision of its current Work, empty until it reports it.
func (m *member) latest() string {
	if m.before == nil || !m.fresh {
		return ""
	}
	return text(m.status, "latestRevision")
}

// content returns the Name of the revision in the Work of m; empty if there is no Work.
func (m *member) content() string {
	if m.revisions.Content == "" && m.before != nil {
		return revisionOf(m.before).Name
	}
	return m.revisions.Content
}

// valueOf returns the value of a key in comma-separated pairs key=value; empty if it is missing.
func valueOf(pairs, key string) string {
	for _, pair := range split(pairs) {
		if k, v, ok := strings.Cut(pair, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// namedRevisions is the maximum number of recorded names.
const namedRevisions = 10

// withName adds a pair as the newest of the recorded pairs.
func withName(pairs, name, value string) string {
	if valueOf(pairs, name) == value {
		return pairs
	}
	all := slices.DeleteFunc(split(pairs), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	all = append(all, name+"="+value)
	return strings.Join(all[max(0, len(all)-namedRevisions):], ",")
}

// sendPast sends the content of an earlier version to m. It changes no pod of m.
func (f *fleet) sendPast(m *member, past *Revision) error {
	var data map[string]any
	if err := json.Unmarshal(past.Data, &data); err != nil {
		return err
	}
	spec := maps.Clone(object(f.manifest(m).Object, "spec"))
	for _, name := range injected {
		delete(spec, name)
		if v, set := data[name]; set {
			spec[name] = v
		}
	}
	spec["injectionStrategy"] = withoutRevision(m.Base.Object)
	update := maps.Clone(object(spec, "updateStrategy"))
	if update == nil {
		update = map[string]any{}
	}
	update["paused"] = true
	spec["updateStrategy"] = update
	manifest := f.manifest(m).DeepCopy()
	labels := manifest.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	switch old := strings.HasSuffix(manifest.GetAPIVersion(), "/v1alpha1"); {
	case old && past.Version != "":
		labels[customVersionLabel] = past.Version
	case old:
		delete(labels, customVersionLabel)
	case past.Version != "":
		spec["customVersion"] = past.Version
	default:
		delete(spec, "customVersion")
	}
	manifest.SetLabels(labels)
	manifest.Object["spec"] = spec
	f.result.Manifests[m.Cluster] = manifest
	return nil
}

// withoutRevision returns the injectionStrategy of a SidecarSet that names no revision.
func withoutRevision(obj map[string]any) map[string]any {
	strategy := maps.Clone(object(obj, "spec", "injectionStrategy"))
	if strategy == nil {
		strategy = map[string]any{}
	}
	delete(strategy, "revision")
	return strategy
}

// hasRevision reports whether m has certainly created a revision of that version.
func (m *member) hasRevision(version string) bool {
	if m.before == nil {
		return false
	}
	return namedVersion(m.before.Object) == version || m.made(version) ||
		m.note != nil && slices.Contains(split(m.note.Versions), version)
}

// made reports whether m has that version and has reported it.
func (m *member) made(version string) bool {
	return m.before != nil && CustomVersion(m.before.Object) == version && m.fresh &&
		text(m.status, "latestRevision") != ""
}

// versionsBefore returns the recent versions of m without the version to write next.
func (m *member) versionsBefore(written string) []string {
	var had []string
	if m.note != nil {
		had = split(m.note.Versions)
	}
	if m.before == nil {
		return had
	}
	if was := CustomVersion(m.before.Object); was != "" && was != written && m.made(was) && !slices.Contains(had, was) {
		had = append(had, was)
	}
	return had[max(0, len(had)-10):]
}

// skew reports clusters that inject different containers than others. It compares what was sent and accepted, since
// members use different names for equal revisions.
func (f *fleet) skew() {
	var differ, behind []string
	current := false
	for _, m := range f.members {
		if m.Base == nil || m.Local == nil {
			continue
		}
		for _, path := range workloads[sidecarSetKind].revision {
			if !reflect.DeepEqual(field(m.Base.Object, path...), field(m.Local.Object, path...)) {
				differ = append(differ, m.Cluster)
			}
		}
		switch {
		case m.fresh:
			current = true
		case m.before != nil && m.status != nil && (m.refused || !m.Reachable):
			behind = append(behind, m.Cluster)
		}
	}
	if len(differ) > 0 {
		f.addCondition(RevisionSkew, "because of overrides, the sidecars injected in %s differ from other clusters",
			strings.Join(unique(differ), ", "))
		return
	}
	if current && len(behind) > 0 {
		f.addCondition(RevisionSkew, "%s may still inject the previous sidecars: according to its last reported status, it has not applied the change that other clusters have applied", strings.Join(unique(behind), ", "))
	}
}
