package release

import (
	"encoding/json"
	"fmt"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Change is a field that two revisions have otherwise, in the workload or in an override policy.
type Change = fields.Change

// Changes are the differences of two revisions of a workload: its pods and its overrides. Without a former revision,
// all is new and there are none.
func Changes(from, to *releasev1alpha1.ReleaseRevision) ([]Change, error) {
	if from == nil || to == nil {
		return nil, nil
	}
	before, err := contents(from)
	if err != nil {
		return nil, err
	}
	after, err := contents(to)
	if err != nil {
		return nil, err
	}
	return fields.Changes(before, after), nil
}

// contents are the fields of a revision, by what they are in.
func contents(r *releasev1alpha1.ReleaseRevision) (map[string]any, error) {
	all := map[string]any{}
	add := func(path string, raw []byte) error {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("read %s of ReleaseRevision %s: %w", path, r.Name, err)
		}
		all[path] = value
		return nil
	}
	for _, f := range r.Spec.Pods {
		if f.Value == nil {
			continue
		}
		if err := add(f.Path, f.Value.Raw); err != nil {
			return nil, err
		}
	}
	for _, o := range r.Spec.Overrides {
		if err := add(o.Kind+" "+o.Name, o.Spec.Raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}
