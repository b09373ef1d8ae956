package dependency

import (
	"slices"
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestOnlyDifferentSettingsConflict(t *testing.T) {
	const (
		resolution = "ConflictResolution conflicted (Overwrite vs Abort)"
		preserve   = "PreserveResourcesOnDeletion conflicted (true vs false)"
	)
	ask := func(r policyv1alpha1.ConflictResolution, keep *bool) workv1alpha2.Binding {
		b := independent("a", "m1")
		b.Spec.ConflictResolution, b.Spec.PreserveResourcesOnDeletion = r, keep
		return b
	}
	yes, no := true, false
	plain, overwrite, keep := ask("", nil), ask(policyv1alpha1.ConflictOverwrite, nil),
		ask(policyv1alpha1.ConflictAbort, &yes)
	for _, c := range []struct {
		name      string
		requiring []workv1alpha2.Binding
		want      []string
	}{
		{"one policy", []workv1alpha2.Binding{overwrite}, nil},
		{"unset is Abort and false", []workv1alpha2.Binding{plain, ask(policyv1alpha1.ConflictAbort, &no)}, nil},
		{"the same", []workv1alpha2.Binding{overwrite, overwrite}, nil},
		{"one overwrites", []workv1alpha2.Binding{plain, overwrite}, []string{resolution}},
		{"one preserves", []workv1alpha2.Binding{plain, keep}, []string{preserve}},
		{"both differ", []workv1alpha2.Binding{overwrite, keep}, []string{resolution, preserve}},
	} {
		attached := attach(t, plain.(*workv1alpha2.ResourceBinding), nil)
		for _, b := range c.requiring {
			attached = attach(t, b.(*workv1alpha2.ResourceBinding), attached)
		}
		if got := Conflicts(attached, c.requiring); !slices.Equal(got, c.want) {
			t.Errorf("%s: the conflicts are %q, want %q", c.name, got, c.want)
		}
		if c.want != nil && slices.ContainsFunc(c.requiring, func(b workv1alpha2.Binding) bool {
			return !MayConflict(b, attached)
		}) {
			t.Errorf("%s: a conflict is not looked for", c.name)
		}
	}
	if MayConflict(plain, attach(t, plain.(*workv1alpha2.ResourceBinding), nil)) {
		t.Error("plain settings may conflict")
	}
}
