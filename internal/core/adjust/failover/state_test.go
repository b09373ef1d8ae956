package failover

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestStateIsReadFromTheLastStatus(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Status: workv1alpha2.ResourceBindingStatus{
		AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{"job":{"id":"x1"},"n":7,"list":[1,2],"long":"` +
				strings.Repeat("x", 64) + `","empty":""}`)}},
			{ClusterName: "b"},
		}}}
	for path, want := range map[string]string{
		"{.job.id}": "x1", "{.n}": "7", "{.job.id}-{.n}": "x1-7", "{.list[1]}": "2", "{.list[-1]}": "2",
		"{.job['id']}": "x1", "{$.n}": "7",
		"{.nothing}": "!matches nothing", "{.empty}": "!matches nothing", "{.job}": "!not valid as a label",
		"{.long}":    "!not valid as a label",
		"{.list[9]}": "!matches nothing",
	} {
		rules := &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "state",
			JSONPath: path}}}
		labels, warnings := preserved(rules, b, "a")
		if warning, bad := strings.CutPrefix(want, "!"); bad {
			if len(labels) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], warning) {
				t.Errorf("%s gives %v, %q", path, labels, warnings)
			}
		} else if labels["state"] != want || len(warnings) > 0 {
			t.Errorf("%s gives %v, %q", path, labels, warnings)
		}
		for _, cluster := range []string{"b", "c"} {
			if labels, warnings := preserved(rules, b, cluster); len(labels) > 0 || len(warnings) != 1 {
				t.Errorf("without a status, %s gives %v, %q", path, labels, warnings)
			}
		}
	}
	for _, path := range []string{"{.a", ".a", "{.a[}", strings.Repeat("x", 2000), strings.Repeat("{.a}", 9)} {
		if _, err := ParsePath(path); err == nil {
			t.Errorf("%q is taken for a path", path)
		}
	}
}

func TestStatePathsHaveOnlyFieldsAndIndexes(t *testing.T) {
	status := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	for _, path := range []string{
		"{range .a[*]}{range .a[*]}{.b}{end}{end}", strings.Repeat("{range $..*}", 8), "{range .a}", "{.b}{end}",
		"{..}", "{..b}", "{.a..b}", "{.a['.b']}", "{.*}", "{.a[*]}", "{.a[*].b}", "{.a[:]}", "{.a[]}", "{.a[0:1]}",
		"{.a[0:]}", "{.a[0:1:1]}", "{.a[::1]}",
		"{.a" + strings.Repeat("[0,0,0,0]", 20) + "}", "{['a','a']}", "{.a[?(@.b=='c')].b}", "{.a[?(@.b)]}", `{"c"}`, "{1}",
		"{true}", "{a}",
	} {
		if _, err := ParsePath(path); err == nil {
			t.Errorf("%q is taken for a path", path)
		}
		if value, err := valueAt(path, status); err == nil {
			t.Errorf("%q of a stored policy gives %q", path, value)
		}
	}
}
