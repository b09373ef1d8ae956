package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestChangedPullSecretsAreWarnedAbout(t *testing.T) {
	job := func(kind, spec string) *unstructured.Unstructured {
		return workload(t, `{apiVersion: apps.kruise.io/v1beta1, kind: `+kind+
			`, metadata: {name: w, namespace: default}, spec: {`+spec+`}}`)
	}
	for name, c := range map[string]struct {
		kind, spec, old string // old is empty for a new object
		want            bool
	}{
		"others":                  {"ImagePullJob", "pullSecrets: [b]", "pullSecrets: [a]", true},
		"secrets that come later": {"ImageListPullJob", "pullSecrets: [b]", "images: [a]", true},
		"secrets that go":         {"ImageListPullJob", "images: [a]", "pullSecrets: [b]", true},
		"another image":           {"ImagePullJob", "image: b, pullSecrets: [a]", "image: a, pullSecrets: [a]", false},
		"a new object":            {"ImagePullJob", "pullSecrets: [a]", "", false},
		"another kind":            {"CloneSet", "pullSecrets: [b]", "pullSecrets: [a]", false},
	} {
		var old *unstructured.Unstructured
		if c.old != "" {
			old = job(c.kind, c.old)
		}
		advice := PullSecretsAdvice(job(c.kind, c.spec), old)
		if warned := len(advice) == 1 && strings.Contains(advice[0], "delete and recreate"); warned != c.want {
			t.Errorf("%s: advised %q", name, advice)
		}
	}
}
