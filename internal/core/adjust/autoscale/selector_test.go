package autoscale

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSelector(t *testing.T) {
	for object, want := range map[string]string{
		`{spec: {selector: {matchLabels: {app: web}}}}`:                                      "app=web",
		`{spec: {selector: {matchExpressions: [{key: app, operator: In, values: [a, b]}]}}}`: "app in (a,b)",
		`{status: {labelSelector: app=web}}`:                                                 "app=web",
		`{status: {selector: "app=web,tier=front"}}`:                                         "app=web,tier=front",
		`{spec: {selector: {matchLabels: {}}}, metadata: {name: w}, kind: Thing}`: "error: neither spec.selector " +
			"nor the status of Thing w",
		`{spec: {selector: {matchExpressions: [{key: app, operator: Near}]}}, metadata: {name: w}, kind: Th}`: "error: spec.selector of Th w",
		`{status: {selector: "=="}, metadata: {name: w}, kind: Thing}`:                                        "error: status of Thing w",
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
			t.Fatal(err)
		}
		got, err := Selector(u)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, want)) {
			t.Errorf("%s selects %q, want %q", object, got, want)
		}
	}
}
