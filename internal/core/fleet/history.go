package fleet

import (
	"cmp"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Revision is what a SidecarSet injected under the name that its author gave that version. Members know only the versions
// that they had themselves, so that one that joins late has to be given the older one first that it shall inject.
type Revision struct {
	// Name is unique among the revisions of a template: of what it has.
	Name string
	// Version is the customVersion.
	Version string
	// Number orders revisions; the newest has the largest.
	Number int64
	// Data are the fields of the spec that are injected, as JSON.
	Data []byte
}

// injected are the fields of a SidecarSet's spec that a revision of it is.
var injected = []string{"containers", "initContainers", "volumes", "imagePullSecrets", "patchPodMetadata"}

// customVersionLabel has the customVersion in v1alpha1; in v1beta1 it is a field.
const customVersionLabel = "apps.kruise.io/sidecarset-custom-version"

// leastHistory is how many revisions are kept whatever the template says.
const leastHistory = 2

// customVersion is the name that the author of a SidecarSet gave this version of it, empty for none.
func customVersion(obj map[string]any) string {
	if strings.HasSuffix(text(obj, "apiVersion"), "/v1alpha1") {
		return text(obj, "metadata", "labels", customVersionLabel)
	}
	return text(obj, "spec", "customVersion")
}

// KeepsHistory says whether revisions of the template are to be kept on the hub: its versions have names.
func KeepsHistory(template *unstructured.Unstructured) bool {
	return template.GroupVersionKind().GroupKind() == sidecarSetKind && (customVersion(template.Object) != "" || stagesRevision(template.Object))
}

// Remember says which revision of the template is to be stored beside those that are, nil for none, and which are to be deleted:
// those beyond its revisionHistoryLimit, 10 by default and 2 at least, but never the one that it has injected.
func Remember(template *unstructured.Unstructured, stored []Revision) (store *Revision, surplus []Revision) {
	kept := slices.Clone(stored)
	slices.SortFunc(kept, func(a, b Revision) int { return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Name, b.Name)) })
	if r := revisionOf(template); r.Version != "" {
		if len(kept) > 0 {
			r.Number = kept[0].Number
		}
		r.Number++
		if newest := slices.IndexFunc(kept, func(k Revision) bool { return k.Version == r.Version }); newest < 0 || kept[newest].Name != r.Name {
			// A version that had these containers before, and others since, has them anew.
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
	named, found := namedVersion(template.Object), false
	for i, k := range kept {
		wanted := k.Version == named && named != "" && !found
		found = found || wanted
		if int64(i) >= limit && !wanted {
			surplus = append(surplus, k)
		}
	}
	return store, surplus
}

// revisionOf is the revision that a SidecarSet is, without a number; without a version if it has no name.
func revisionOf(template *unstructured.Unstructured) Revision {
	data := map[string]any{}
	for _, name := range injected {
		if v := field(template.Object, "spec", name); v != nil {
			data[name] = v
		}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // it was read from JSON
	}
	version := customVersion(template.Object)
	h := fnv.New64a()
	// fnv never fails to write.
	_, _ = h.Write([]byte(version + "\x00"))
	_, _ = h.Write(raw)
	return Revision{Name: strconv.FormatUint(h.Sum64(), 36), Version: version, Data: raw}
}

// namedVersion is the version that a SidecarSet has injected into new pods, empty if it does not say, or not by that name.
func namedVersion(obj map[string]any) string {
	return text(obj, "spec", "injectionStrategy", "revision", "customVersion")
}

// historyOf is the newest revision of that version, nil if none is stored.
func (f *fleet) historyOf(version string) *Revision {
	var newest *Revision
	for i := range f.History {
		if r := &f.History[i]; r.Version == version && (newest == nil || r.Number > newest.Number) {
			newest = r
		}
	}
	return newest
}

// stageRevision has each member inject the revision that the template names. A member refuses one that it has never had, and
// with it the whole object, so that it is given that version itself first, without touching pods that run; when it says that it has
// made a revision of it, it is given the template.
func (f *fleet) stageRevision() error {
	if !KeepsHistory(f.Template) {
		return nil
	}
	named, current := namedVersion(f.Template.Object), customVersion(f.Template.Object)
	own := f.ownRevisions()
	var unknown, nameless []string
	for _, m := range f.members {
		if m.Base == nil {
			continue
		}
		written := current
		if stagesRevision(f.Template.Object) && !m.hasRevision(named) {
			past := f.historyOf(named)
			switch {
			case past != nil && named != current:
				if err := f.sendPast(m, past); err != nil {
					return err
				}
				written = named
			case text(m.status, "latestRevision") == "" || named == current:
				f.put(m, withoutRevision(m.Base.Object), "spec", "injectionStrategy")
			}
			if past == nil && named != "" && named != current {
				unknown = append(unknown, m.Cluster)
			}
		}
		name := revisionName(f.Template.Object)
		if object(f.manifest(m).Object, "spec", "injectionStrategy", "revision") == nil {
			name = ""
		}
		switch mine := own[m.Cluster]; {
		case name == "":
		case mine == "" && m.refused:
			nameless = append(nameless, m.Cluster)
		case mine != "" && mine != name:
			f.put(m, mine, "spec", "injectionStrategy", "revision", "revisionName")
		}
		note := parseNote(f.result.Notes[m.Cluster])
		note.Versions = strings.Join(m.versionsBefore(written), ",")
		if m.note != nil {
			note.Revisions = m.note.Revisions
		}
		if mine := own[m.Cluster]; mine != "" {
			note.Revisions = withName(note.Revisions, revisionName(f.Template.Object), mine)
		}
		// What a member reports next decides about it.
		f.result.Notes[m.Cluster] = note.String()
	}
	if len(nameless) > 0 {
		f.tell(RevisionMissing, "spec.injectionStrategy.revision names the revision %q, and nobody knows what %s calls it: each cluster names its revisions by itself; "+
			"give versions a customVersion, and name that", revisionName(f.Template.Object), strings.Join(unique(nameless), ", "))
	}
	if len(unknown) > 0 {
		f.tell(RevisionMissing, "spec.injectionStrategy.revision names the version %q, of which the hub has no template, so that it cannot be brought to %s; "+
			"write the SidecarSet of that version once more, with that name, and then go on from it", named, strings.Join(unique(unknown), ", "))
	}
	return nil
}

// revisionName is the revision that a SidecarSet has injected into new pods, by the name that a cluster gave it; empty if it does not
// say, or by its version.
func revisionName(obj map[string]any) string {
	return text(obj, "spec", "injectionStrategy", "revision", "revisionName")
}

// ownRevisions is what each cluster calls the revision that the template names by a name of one of them, as far as that is known: what was
// seen before, or that a cluster that injects the same calls its latest one so.
func (f *fleet) ownRevisions() map[string]string {
	name := revisionName(f.Template.Object)
	if name == "" {
		return nil
	}
	own := map[string]string{}
	latest := func(m *member) string {
		if m.before == nil || !m.fresh {
			return ""
		}
		return text(m.status, "latestRevision")
	}
	var of *member
	for _, m := range f.members {
		if m.note != nil {
			for _, pair := range split(m.note.Revisions) {
				if key, mine, ok := strings.Cut(pair, "="); ok && key == name {
					own[m.Cluster] = mine
				}
			}
		}
		if latest(m) == name {
			of = m
		}
	}
	if of == nil {
		return own
	}
	content := revisionOf(of.before).Name
	for _, m := range f.members {
		if mine := latest(m); mine != "" && own[m.Cluster] == "" && revisionOf(m.before).Name == content {
			own[m.Cluster] = mine
		}
	}
	return own
}

// namedRevisions bounds how many names are remembered.
const namedRevisions = 10

// withName adds a cluster's own name of a revision to those remembered.
func withName(pairs, name, own string) string {
	all := slices.DeleteFunc(split(pairs), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	all = append(all, name+"="+own)
	return strings.Join(all[max(0, len(all)-namedRevisions):], ",")
}

// sendPast has m get what an earlier version injected, and no pod of it changed for that.
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
	if strings.HasSuffix(manifest.GetAPIVersion(), "/v1alpha1") {
		labels := manifest.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[customVersionLabel] = past.Version
		manifest.SetLabels(labels)
	} else {
		spec["customVersion"] = past.Version
	}
	manifest.Object["spec"] = spec
	f.result.Manifests[m.Cluster] = manifest
	return nil
}

// withoutRevision is the injectionStrategy of a SidecarSet that names no revision.
func withoutRevision(obj map[string]any) map[string]any {
	strategy := maps.Clone(object(obj, "spec", "injectionStrategy"))
	if strategy == nil {
		strategy = map[string]any{}
	}
	delete(strategy, "revision")
	return strategy
}

// hasRevision says whether m is sure to have made a revision of that version; of one that is named in another way, whether it has
// made any.
func (m *member) hasRevision(version string) bool {
	switch {
	case m.before == nil:
		return false
	case version == "":
		return text(m.status, "latestRevision") != ""
	}
	return namedVersion(m.before.Object) == version || m.made(version) ||
		m.note != nil && slices.Contains(split(m.note.Versions), version)
}

// made says whether m has that version now and has said so.
func (m *member) made(version string) bool {
	return m.before != nil && customVersion(m.before.Object) == version && m.fresh && text(m.status, "latestRevision") != ""
}

// versionsBefore are the versions that m has had besides the one that is written to it next, the last ones.
func (m *member) versionsBefore(written string) []string {
	var had []string
	if m.note != nil {
		had = split(m.note.Versions)
	}
	if m.before == nil {
		return had
	}
	if was := customVersion(m.before.Object); was != "" && was != written && m.made(was) && !slices.Contains(had, was) {
		had = append(had, was)
	}
	return had[max(0, len(had)-10):]
}

// skew tells where other containers are injected than elsewhere. By what was sent and taken: members name equal revisions
// differently.
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
		f.tell(RevisionSkew, "overrides have other sidecars injected in %s than elsewhere", strings.Join(unique(differ), ", "))
		return
	}
	if current && len(behind) > 0 {
		f.tell(RevisionSkew, "%s may still inject what was before: by the last word from there, the change has not been taken, which other clusters have", strings.Join(unique(behind), ", "))
	}
}
