package interpretcli

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

const deployment = `
object:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop, generation: 2}
  spec: {replicas: 3}
cases:
`

func TestCaseReportsDifference(t *testing.T) {
	for name, c := range map[string]struct{ cases, want string }{
		"a change that is made": {`
- name: x
  operation: ReviseReplica
  desiredReplica: 1
  wantChange: {spec: {replicas: 1}}`, ""},
		"a change that is not made": {`
- name: x
  operation: ReviseReplica
  desiredReplica: 1
  wantChange: {spec: {replicas: 2}}`, "(-want +got)\n@@ -7,6 +7,6 @@\n   \"namespace\": \"shop\"\n  },\n  \"spec\": {\n-  \"replicas\": 2\n+  \"replicas\": 1\n  }\n }\n"},
		"half of a health": {`
- name: x
  operation: InterpretHealth
  observed: {status: {observedGeneration: 1}}
  want: {health: Progressing}`, ""},
		"another health": {`
- name: x
  operation: InterpretHealth
  observed: {status: {observedGeneration: 1}}
  want: {healthy: true}`, "(-want +got)\n@@ -1,3 +1,3 @@\n {\n- \"healthy\": true\n+ \"healthy\": false\n }\n"},
		"an error that was wanted": {`
- name: x
  operation: InterpretReplica
  desired: {spec: {replicas: many}}
  wantError: is not an integer`, ""},
		"an error that was not wanted": {`
- name: x
  operation: InterpretReplica
  desired: {spec: {replicas: many}}
  want: {replica: 3}`, "error: spec.replicas: many is not an integer"},
		"another error": {`
- name: x
  operation: InterpretReplica
  desired: {spec: {replicas: many}}
  wantError: no such thing`, `the error is "spec.replicas: many is not an integer", want one with "no such thing"`},
		"no error": {`
- name: x
  operation: InterpretHealth
  wantError: is not an integer`, "no error, want one with \"is not an integer\"; the result was:\nhealth: Progressing\nhealthy: false\n"},
		"an operation that nobody answers": {`
- name: x
  operation: InterpretComponent
  want: []`, "error: no interpreter implements this operation for the kind"},
		"null takes a field away": {`
- name: x
  operation: InterpretReplica
  desired: {spec: {replicas: null}}
  want: {replica: 1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parseCases([]byte(deployment + c.cases))
			if err != nil {
				t.Fatal(err)
			}
			results, err := f.run(context.Background(), builtin.Tier())
			if err != nil || len(results) != 1 {
				t.Fatalf("%d results of one case, %v", len(results), err)
			}
			if diff := cmp.Diff(c.want, results[0].Failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidFileIsRejected(t *testing.T) {
	for cases, want := range map[string]string{
		"":                               "it contains no cases",
		"- operation: InterpretHealth":   "case 1 has no name",
		"- {name: x, operation: Retain}": `case 1, "x": set exactly one of want, wantChange and wantError`,
		"- {name: x, operation: Retain, want: {}, wantError: y}":                               "set exactly one of",
		"- {name: x, operation: Heal, want: {}}":                                               `operation "Heal" is not known; there is Retain, InterpretReplica`,
		"- {name: x, operation: ReviseReplica, want: {}}":                                      "ReviseReplica needs desiredReplica",
		"- {name: x, operation: InterpretHealth, wantChange: {}}":                              "use want",
		"- {name: x, operation: InterpretHealth, want: {}, wanted: {}}":                        "wanted",
		"- {name: x, operation: InterpretHealth, want: {}, desired: {kind: null}}":             "no apiVersion or no kind",
		"- {name: x, operation: InterpretHealth, want: {}, desired: {a: 1}, observed: {a: 1}}": "set desired or observed, not both",
	} {
		_, err := parseCases([]byte(deployment + cases))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want one with %q", cases, err, want)
		}
	}
}
