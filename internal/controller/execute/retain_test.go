package execute

import (
	"testing"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/interpret/jsonpath"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

// A field that a customization leaves to members by path is the member's, until the template says something else there.
func TestAFieldLeftToTheMemberByPathIsKeptUntilTheTemplateChangesIt(t *testing.T) {
	t.Parallel()
	rules := &configv1alpha1.CustomizationRules{Retention: &configv1alpha1.RetentionRule{JSONPaths: []string{".data.value"}}}
	w := newWorld(t, Options{Interpreter: interpret.New(interpret.Kinds{membertest.ConfigMap.GroupKind(): jsonpath.Hooks(rules)})})
	u := manifest(membertest.ConfigMap, "shop", "template's")
	work := w.work(u)
	w.applied(work)
	w.holds(u, "template's")
	recorded := func() string {
		obj := w.m1.Object(membertest.ConfigMap, "shop", "c")
		if obj == nil {
			return ""
		}
		return obj.GetAnnotations()[jsonpath.RetainedAnnotation]
	}
	w.Eventually("what was applied is recorded", func() string {
		if recorded() == "" {
			return "not yet"
		}
		return ""
	})
	w.Quiet()

	theirs := w.m1.Object(membertest.ConfigMap, "shop", "c")
	theirs.Object["data"].(map[string]any)["value"] = "member's"
	w.m1.Put(theirs)
	other := u.DeepCopy()
	other.SetLabels(map[string]string{"changed": "elsewhere"})
	w.set(work, other)
	w.Eventually("another change of the template goes out", func() string {
		if w.m1.Object(membertest.ConfigMap, "shop", "c").GetLabels()["changed"] == "" {
			return "not yet"
		}
		return ""
	})
	w.holds(u, "member's")

	before := recorded()
	next := manifest(membertest.ConfigMap, "shop", "template's new")
	w.set(work, next)
	w.holds(u, "template's new")
	if recorded() == before {
		t.Error("the record of what was applied did not move")
	}
}
