package dependency

import (
	"testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

func TestFormerLabelIsReplaced(t *testing.T) {
	former := names.FormerDependedByLabel(workv1alpha2.DependedByLabelPrefix, "ns", "web-deployment")
	present := names.DependedByLabel(workv1alpha2.DependedByLabelPrefix, "ns", "web-deployment")
	web := independent("web-deployment", "m1")
	old := attach(t, web, nil)
	labels := old.GetLabels()
	labels[former] = labels[present]
	delete(labels, present)
	old.SetLabels(labels)
	if !RequiredBy(old, keyOf(web)) {
		t.Fatal("it is not known by whom it is required")
	}
	again := attach(t, web, old)
	if got := again.GetLabels(); got[present] == "" || got[former] != "" {
		t.Errorf("attached again it has the labels %v", got)
	}
	if b, remove := Detach(keyOf(web), old); !remove || b.GetLabels()[former] != "" ||
		len(b.BindingSpec().RequiredBy) > 0 {
		t.Errorf("detached it has the labels %v, and is removed: %t", b.GetLabels(), remove)
	}
}
