package fleet

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var sidecarSetKind = schema.GroupKind{Group: kruise, Kind: "SidecarSet"}

// sidecarSet holds an injected revision back from members that cannot have it yet, and divides the rollout if that was asked for.
func (f *fleet) sidecarSet() error {
	if f.options.scope == "Fleet" {
		if err := f.rollOut(workloads[sidecarSetKind], nil); err != nil {
			return err
		}
	}
	f.stageRevision()
	f.skew()
	return nil
}

// stagesRevision says whether a SidecarSet names the revision to inject.
func stagesRevision(obj map[string]any) bool {
	return len(object(obj, "spec", "injectionStrategy", "revision")) > 0
}

// stageRevision leaves the revision to inject out where the member has not made one yet: it refuses a revision that it does not
// have, and with it the whole object. The member makes it when it has the object, and says so.
func (f *fleet) stageRevision() {
	if !stagesRevision(f.Template.Object) {
		return
	}
	for _, m := range f.members {
		if m.Base == nil || text(m.status, "latestRevision") != "" {
			continue
		}
		strategy := map[string]any{}
		for key, value := range object(m.Base.Object, "spec", "injectionStrategy") {
			if key != "revision" {
				strategy[key] = value
			}
		}
		f.put(m, strategy, "spec", "injectionStrategy")
	}
	// What a member reports next decides about it.
	for _, m := range f.members {
		if m.Base != nil && f.result.Notes[m.Cluster] == "" {
			f.result.Notes[m.Cluster] = Note{}.String()
		}
	}
}

// skew tells where other containers are injected than the template says. By what was sent: members name equal revisions
// differently.
func (f *fleet) skew() {
	var differ []string
	for _, m := range f.members {
		if m.Base == nil || m.Local == nil {
			continue
		}
		for _, path := range workloads[sidecarSetKind].revision {
			if !reflect.DeepEqual(field(m.Base.Object, path...), field(m.Local.Object, path...)) {
				differ = append(differ, m.Cluster)
			}
		}
	}
	if len(differ) > 0 {
		f.tell(RevisionSkew, "overrides have other sidecars injected in %s than elsewhere", strings.Join(unique(differ), ", "))
	}
}
