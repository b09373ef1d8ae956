package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

var withStandard = interpret.New(Tier(), Standard(Tier()))

func custom(t testing.TB, generation int, status string) *unstructured.Unstructured {
	t.Helper()
	if status != "" {
		status = ", status: {" + status + "}"
	}
	return read(t, fmt.Sprintf(`{apiVersion: certs.example.com/v1, kind: Certificate, metadata: {name: c, generation: %d,
		annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {host: a}%s}`, generation, status))
}

func TestHealthOfUnknownKindsIsThatOfTheirConditions(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   interpret.Health
	}{
		"no status yet": {"", interpret.Healthy},
		"no conditions": {`phase: Bound`, interpret.Healthy},
		"ready":         {`conditions: [{type: Ready, status: "True"}]`, interpret.Healthy},
		"an event of an earlier generation": {
			`conditions: [{type: Ready, status: "True", observedGeneration: 7},
				{type: Issuing, status: "False", observedGeneration: 6}]`, interpret.Healthy},
		"not ready":             {`conditions: [{type: Ready, status: "False"}]`, interpret.Unknown},
		"not known to be ready": {`conditions: [{type: Ready, status: Unknown}]`, interpret.Unknown},
		"not available":         {`conditions: [{type: Available, status: "False"}]`, interpret.Unknown},
		"ready and not synced": {
			`conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False"}]`, interpret.Unknown},
		"ready and reconciling": {
			`conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]`, interpret.Unknown},
		"not ready and stalled": {
			`conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True"}]`, interpret.Degraded},
		"no longer stalled": {
			`conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "False"}]`, interpret.Healthy},
		"its deadline passed": {
			`conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]`, interpret.Degraded},
		"progressing as a Deployment": {
			`conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True"}]`, interpret.Healthy},
		"a condition of its own": {`conditions: [{type: Paused, status: "False"}]`, interpret.Healthy},
		"not observed": {
			`observedGeneration: 6, conditions: [{type: Ready, status: "True"}]`, interpret.Unknown},
		"observed": {
			`observedGeneration: 7, conditions: [{type: Ready, status: "True"}]`, interpret.Healthy},
		"a condition not observed": {
			`conditions: [{type: Ready, status: "True", observedGeneration: 6}]`, interpret.Unknown},
		"conditions of another form":  {`conditions: {ready: true}`, interpret.Healthy},
		"conditions without a status": {`conditions: [{type: Ready}]`, interpret.Healthy},
		"a status of another form":    {`conditions: [Ready]`, interpret.Healthy},
	} {
		if got, err := withStandard.Health(t.Context(), custom(t, 7, c.status)); got != c.want || err != nil {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}

func TestConditionsOfUnknownKindsReachTheTemplate(t *testing.T) {
	// origin is what reflection adds: the member has generation 7 of template generation 3.
	const origin = `generation: 7, resourceTemplateGeneration: 3`
	ready := func(status string) string {
		return `conditions: [{type: Ready, status: "` + status + `", reason: R` + status + `, message: says ` + status +
			`, lastTransitionTime: "2026-01-0` + map[string]string{"True": "1", "False": "2"}[status] + `T00:00:00Z"}]`
	}
	for name, c := range map[string]struct {
		status  string
		reports []string
		want    string
	}{
		"one cluster is copied": {"", []string{"notAfter: tomorrow, " + ready("True")}, ready("True")},
		"other fields of the template stay": {"notAfter: today", []string{"notAfter: tomorrow, " + ready("True")},
			"notAfter: today, " + ready("True")},
		"False in one of two": {"", []string{ready("True"), ready("False")},
			`conditions: [{type: Ready, status: "False", reason: RFalse, message: 'm2: says False', lastTransitionTime: "2026-01-02T00:00:00Z"}]`},
		"True in both": {"", []string{ready("True"), ready("True")},
			`conditions: [{type: Ready, status: "True", reason: RTrue, message: 'm1: says True; m2: says True', lastTransitionTime: "2026-01-01T00:00:00Z"}]`},
		"not reported by one of two": {"", []string{ready("True"), ""},
			`conditions: [{type: Ready, status: Unknown, reason: NotReported, message: 'm2: the cluster has not reported it yet', lastTransitionTime: "2026-01-01T00:00:00Z"}]`},
		"stalled in one, not reported by the other": {"",
			[]string{`conditions: [{type: Stalled, status: "True", message: broken}]`, "phase: x"},
			`conditions: [{type: Stalled, status: "True", message: 'm1: broken'}]`},
		"not stalled in one, not reported by the other": {"",
			[]string{`conditions: [{type: Stalled, status: "False", message: broken}]`, "phase: x"},
			`conditions: [{type: Stalled, status: "False", message: 'm1: broken'}]`},
		"observed": {"",
			[]string{origin + `, observedGeneration: 7, conditions: [{type: Ready, status: "True", observedGeneration: 7}]`},
			`observedGeneration: 3, conditions: [{type: Ready, status: "True", observedGeneration: 3}]`},
		"not observed by a controller": {"",
			[]string{origin + `, observedGeneration: 6, conditions: [{type: Ready, status: "True", observedGeneration: 7}]`},
			`observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 2}]`},
		"a condition that is older": {"",
			[]string{origin + `, conditions: [{type: Ready, status: "True", observedGeneration: 6}]`},
			`conditions: [{type: Ready, status: "True", observedGeneration: 2}]`},
		"an older template in the cluster": {"observedGeneration: 2",
			[]string{`generation: 7, resourceTemplateGeneration: 2, observedGeneration: 7, ` + ready("True")},
			"observedGeneration: 2, " + ready("True")},
		"no cluster reports conditions": {ready("True"), []string{"phase: x"}, ready("True")},
		"no cluster has it":             {ready("True"), nil, ready("True")},
		"a type that no cluster reports": {`conditions: [{type: Issuing, status: "True"}]`, []string{ready("True")},
			`conditions: [{type: Issuing, status: "True"}, ` + ready("True")[len("conditions: ["):]},
		"a type of a controller on the hub, after that of clusters": {
			ready("False")[:len(ready("False"))-1] + `, {type: Own, status: "True", x: 1}]`, []string{ready("True")},
			`conditions: [{type: Own, status: "True", x: 1}, ` + ready("True")[len("conditions: ["):]},
		"conditions of another form":     {"", []string{`conditions: [{type: Warned, message: old}]`}, ""},
		"conditions that are an object":  {"", []string{`conditions: {Ready: true}`}, ""},
		"a report without a status":      {"", []string{""}, ""},
		"the status that a user reports": {`phase: x`, []string{"phase: y"}, "phase: x"},
	} {
		t.Run(name, func(t *testing.T) {
			interpreter = withStandard
			t.Cleanup(func() { interpreter = interpret.New(Tier()) })
			template := custom(t, 3, c.status)
			var reports []string
			for _, r := range c.reports {
				if r != "" {
					r = "{" + r + "}"
				}
				reports = append(reports, r)
			}
			want := map[string]any{}
			if c.want != "" {
				want = tree(t, "{"+c.want+"}")
			}
			if got := aggregated(t, template, items(t, reports...)); show(got) != show(want) && len(got)+len(want) > 0 {
				t.Errorf("got\n%swant\n%s", show(got), show(want))
			}
		})
	}
}

// One cluster must not be able to make the API server refuse the status of a template, for all clusters.
func TestConditionsOfAClusterAlwaysFitTheirSchema(t *testing.T) {
	interpreter = withStandard
	t.Cleanup(func() { interpreter = interpret.New(Tier()) })
	const good = `{type: Ready, status: "True", reason: Issued, message: up, lastTransitionTime: "2026-01-01T00:00:00Z", ` +
		`observedGeneration: 1}`
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`{type: A%d, status: "True", reason: R, message: m, `+
			`lastTransitionTime: "2026-01-01T00:00:00Z"}`, i))
	}
	long := strings.Repeat("x", 40000)
	for name, bad := range map[string]string{
		"a long message":            `{type: Ready, status: "False", reason: R, message: ` + long + `}`,
		"a status that is none":     `{type: Ready, status: Maybe, reason: R, message: m}`,
		"a bad time":                `{type: Ready, status: "False", reason: R, message: m, lastTransitionTime: yesterday}`,
		"a time of another form":    `{type: Ready, status: "False", reason: R, lastTransitionTime: "2026-01-01T00:00:00,5Z"}`,
		"a time that is a number":   `{type: Ready, status: "False", reason: R, message: m, lastTransitionTime: 5}`,
		"no reason, message, time":  `{type: Ready, status: "False"}`,
		"a bad reason":              `{type: Ready, status: "False", reason: "not so", message: m}`,
		"a long reason":             `{type: Ready, status: "False", reason: ` + long + `, message: m}`,
		"numbers":                   `{type: Ready, status: "False", reason: 1, message: 2, observedGeneration: -3}`,
		"other fields":              `{type: Ready, status: "False", other: 1, severity: {x: y}}`,
		"a bad type":                `{type: "a b", status: "True", reason: R, message: m}`,
		"a long type":               `{type: ` + long + `, status: "True"}`,
		"no type":                   `{status: "True"}`,
		"an own type, without more": `{type: Own, status: "True"}`,
		"many types":                strings.Join(many, ", "),
		"no condition":              `5`,
	} {
		for _, reports := range [][]string{{"{conditions: [" + good + ", " + bad + "]}"},
			{"{conditions: [" + good + "]}", "{conditions: [" + bad + "]}"},
			{"{conditions: [" + bad + "]}", "{conditions: [" + good + "]}", "{conditions: [" + good + "]}"}} {
			template := custom(t, 3, "")
			template.SetCreationTimestamp(metav1.Unix(1_700_000_000, 0))
			got := aggregated(t, template, items(t, reports...))
			var of struct{ Conditions []metav1.Condition }
			raw, err := json.Marshal(got)
			if err == nil {
				d := json.NewDecoder(bytes.NewReader(raw))
				d.DisallowUnknownFields()
				err = d.Decode(&of)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			seen := map[string]bool{}
			for _, c := range of.Conditions {
				for _, e := range validation.ValidateCondition(c, fieldpath.NewPath("status")) {
					t.Errorf("%s of %d: %v", name, len(reports), e)
				}
				if c.Status != "True" && c.Status != "False" && c.Status != "Unknown" {
					t.Errorf("%s: status %s", name, c.Status)
				}
				seen[c.Type] = true
			}
			// Of many types, those that the most clusters report are kept.
			if !seen["Ready"] && (len(reports) == 3 || name != "many types") || len(of.Conditions) > 32 {
				t.Errorf("%s: %d conditions, Ready %v", name, len(of.Conditions), seen["Ready"])
			}
		}
	}
}

// A controller on the hub that sets a condition of its own and the hub end with the same status.
func TestAControllerOnTheHubKeepsItsConditions(t *testing.T) {
	reports := items(t, `{conditions: [{type: Ready, status: "True"}, {type: Synced, status: "True"}]}`)
	template := custom(t, 3, `conditions: [{type: Issuing, status: "False"}]`)
	writes := 0
	for range 5 {
		next, err := withStandard.Aggregate(t.Context(), template, reports)
		if err != nil {
			t.Fatal(err)
		}
		if show(next.Object["status"]) != show(template.Object["status"]) {
			writes++
		}
		template = next.DeepCopy()
		conditions, own := list(object(template.Object, "status"), "conditions"), false
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Issuing" {
				own = true
				if c["status"] != "True" {
					c["status"] = "True"
					writes++
				}
			}
		}
		if !own || len(conditions) != 3 {
			t.Fatalf("conditions are %s", show(conditions))
		}
	}
	if writes != 2 {
		t.Errorf("%d writes, want one of each", writes)
	}
}

func TestReportsOfUnknownKindsHaveTheirGenerations(t *testing.T) {
	for status, want := range map[string]string{
		`phase: x`:                                           `{phase: x}`,
		`observedGeneration: 7, phase: x`:                    `{observedGeneration: 7, phase: x}`,
		`conditions: [{type: Ready}]`:                        `{conditions: [{type: Ready}]}`,
		`observedGeneration: 7, conditions: [{type: Ready}]`: `{observedGeneration: 7, conditions: [{type: Ready}], generation: 7, resourceTemplateGeneration: 3}`,
		`conditions: [{type: Ready, observedGeneration: 7}]`: `{conditions: [{type: Ready, observedGeneration: 7}], generation: 7, resourceTemplateGeneration: 3}`,
	} {
		got, err := withStandard.Reflect(t.Context(), custom(t, 7, status))
		if err != nil || show(got) != show(tree(t, want)) {
			t.Errorf("%s is reported as\n%s(%v), want\n%s", status, show(got), err, want)
		}
	}
}

// The hub itself, or a tier that knows the kind, decides about these.
func TestConditionsOfKnownKindsAreNotGuessed(t *testing.T) {
	tier := Standard(Tier())
	guessed := func(gk schema.GroupKind) bool {
		return tier.Find(gk.WithVersion("v1"), configv1alpha1.InterpreterOperationInterpretHealth).Evaluate != nil
	}
	for _, gk := range []schema.GroupKind{{Kind: "ConfigMap"}, {Group: "apps", Kind: "ControllerRevision"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Kind: "APIService"},
		{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}, {Group: "release.argosy.io", Kind: "Release"},
		{Group: "networking.karmada.io", Kind: "MultiClusterService"},
		{Group: "multicluster.x-k8s.io", Kind: "ServiceExport"},
		{Group: "apps.kruise.io", Kind: "CloneSet"}, {Group: "argoproj.io", Kind: "Workflow"},
		{Group: "apps.kruise.io", Kind: "ImagePullJob"}} {
		if guessed(gk) {
			t.Errorf("%s is guessed", gk)
		}
	}
	for _, gk := range []schema.GroupKind{{Group: "cert-manager.io", Kind: "Certificate"},
		{Group: "gateway.networking.k8s.io", Kind: "Gateway"}, {Group: "cluster.x-k8s.io", Kind: "Machine"}} {
		if !guessed(gk) {
			t.Errorf("%s is not interpreted", gk)
		}
	}
}
