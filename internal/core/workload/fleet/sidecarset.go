package fleet

import (
	"maps"
	"strings"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// customVersionLabel has the customVersion in v1alpha1; in v1beta1 it is a field.
const customVersionLabel = "apps.kruise.io/sidecarset-custom-version"

// CustomVersion returns the version name that the author of a SidecarSet set; empty if none.
func CustomVersion(obj map[string]any) string {
	if strings.HasSuffix(text(obj, "apiVersion"), "/v1alpha1") {
		return text(obj, "metadata", "labels", customVersionLabel)
	}
	return text(obj, "spec", "customVersion")
}

// sidecarSet divides the rollout, if that was asked for, and reports clusters that inject other sidecars.
func (f *fleet) sidecarSet() error {
	if f.options.scope == "Fleet" {
		if err := f.rollOut(workload{kind.Facts(f.Template)}, nil); err != nil {
			return err
		}
	}
	if !versioned(f.Template.Object) && f.options.scope != "Fleet" {
		return nil
	}
	f.nameRevision()
	f.skew()
	return nil
}

// versioned reports whether a SidecarSet gives its versions names, or names a revision to inject.
func versioned(obj map[string]any) bool { return CustomVersion(obj) != "" || namesRevision(obj) }

// namesRevision reports whether a SidecarSet names the revision to inject.
func namesRevision(obj map[string]any) bool {
	return len(object(obj, "spec", "injectionStrategy", "revision")) > 0
}

// namedVersion returns the version that a SidecarSet injects into new pods. It is empty if the SidecarSet names none or
// uses another name.
func namedVersion(obj map[string]any) string {
	return text(obj, "spec", "injectionStrategy", "revision", "customVersion")
}

// nameRevision handles the revision that a SidecarSet names. A member rejects the name of a revision that it never had.
// So a SidecarSet that names its own version is sent without the name until the member has created that version. Other
// rejections have a condition, such as that of a cluster that joined after the revision.
func (f *fleet) nameRevision() {
	if !versioned(f.Template.Object) {
		return
	}
	named := namedVersion(f.Template.Object)
	own := named != "" && named == CustomVersion(f.Template.Object)
	var missing []string
	for _, m := range f.members {
		if m.Base == nil {
			continue
		}
		if own && !m.hasVersion(named) {
			strategy := maps.Clone(object(m.Base.Object, "spec", "injectionStrategy"))
			delete(strategy, "revision")
			f.put(m, strategy, "spec", "injectionStrategy")
		} else if m.before != nil && namesRevision(m.before.Object) && rejects(m.Work) {
			missing = append(missing, m.Cluster)
		}
		// The next report of the member decides about it.
		f.result.Notes[m.Cluster] = parseNote(f.result.Notes[m.Cluster]).String()
	}
	if len(missing) > 0 {
		f.addCondition(RevisionMissing, "spec.injectionStrategy.revision names a revision, and %s does not accept the SidecarSet: a cluster knows only the revisions that it had, by names of its own; "+
			"refer to a customVersion, and in a cluster that never had it, remove the revision with an override policy",
			strings.Join(unique(missing), ", "))
	}
}

// hasVersion reports whether m has certainly created a revision of that version.
func (m *member) hasVersion(version string) bool {
	return m.before != nil && (namedVersion(m.before.Object) == version && !refuses(m.Work) ||
		CustomVersion(m.before.Object) == version && m.fresh && text(m.status, "latestRevision") != "")
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
		if !samePods(m.Base, m.Local) {
			differ = append(differ, m.Cluster)
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
