package klusterlet

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

func TestObjectsAreDeletedByPriority(t *testing.T) {
	// An object is "name=priority", or "name" without a priority; ! marks one that is being deleted.
	for story, tc := range map[string]struct{ objects, want string }{
		"none":                            {"", ""},
		"no priorities":                   {"a b", "a b"},
		"the lowest first":                {"a=2 b=1 c=1 d=100", "b c"},
		"numbers, not texts":              {"a=10 b=9", "b"},
		"the highest alone":               {"a=100", "a"},
		"none is 0":                       {"a=1 b c=0", "b c"},
		"an empty one is 0":               {"a=1 b=", "b"},
		"a text is 0":                     {"a=1 b=first", "b"},
		"a fraction is 0":                 {"a=1 b=0.5", "b"},
		"a negative one is 0":             {"a=0 b=-1", "a b"},
		"one that is too high is 0":       {"a=1 b=101", "b"},
		"one that overflows is 0":         {"a=1 b=99999999999999999999", "b"},
		"the next waits for the lowest":   {"!a=1 b=2", "!a"},
		"all of the lowest":               {"!a=1 b=1 c=2", "!a b"},
		"the next when the lowest is out": {"b=2 c=3", "b"},
	} {
		var objects []*corev1.ConfigMap
		for text := range strings.FieldsSeq(tc.objects) {
			name, priority, has := strings.Cut(text, "=")
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if has {
				o.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotation: priority}
			}
			if strings.HasPrefix(name, "!") {
				o.DeletionTimestamp = &metav1.Time{Time: now}
			}
			objects = append(objects, o)
		}
		var got []string
		for _, o := range NextDeletions(objects) {
			got = append(got, o.Name)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", story, got, tc.want)
		}
	}
}

func TestDeletionHasTheTextsThatToolsKnow(t *testing.T) {
	for story, tc := range map[string]struct {
		remaining, pending int
		failed             error
		want               string
	}{
		"objects remain": {3, 2, nil, "Deleting False ResourceRemaining: The resource manifestworks is remaning, " +
			"the remaining count is 3, the finalizer pending count is 2"},
		"nothing remains": {0, 0, nil, "Deleting True NoResource: No cleaned resource in cluster ns."},
		"it failed": {3, 2, errors.New("no answer"),
			`Deleting False DeletingError: delete the manifestworks of cluster "eu": no answer`},
		"it cannot be read": {0, 0, errors.New("no answer"),
			`Deleting False DeletingError: delete the manifestworks of cluster "eu": no answer`},
	} {
		if got := line(Deletion("manifestworks", tc.remaining, tc.pending, "eu", tc.failed, now)); got != tc.want {
			t.Errorf("%s: %s, want %s", story, got, tc.want)
		}
	}
}
