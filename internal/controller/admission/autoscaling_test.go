package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAFederatedHPAGetsTheDefaultsOfAHorizontalPodAutoscaler(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		const of = `scaleTargetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}`
		scaler := func(metadata, spec string) string {
			return `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: web, namespace: shop` +
				metadata + `}, spec: {` + spec + `}}`
		}
		u := h.create(scaler("", of+", maxReplicas: 3"))
		if lowest, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReplicas"); lowest != 1 {
			t.Errorf("minReplicas is %d", lowest)
		}
		metrics, _, _ := unstructured.NestedSlice(u.Object, "spec", "metrics")
		if percent, _, _ := unstructured.NestedInt64(metrics[0].(map[string]any), "resource", "target",
			"averageUtilization"); len(metrics) != 1 || percent != 80 {
			t.Errorf("the metrics are %v", metrics)
		}
		if up, _, _ := unstructured.NestedSlice(u.Object, "spec", "behavior", "scaleUp", "policies"); len(up) != 2 {
			t.Errorf("the policies of a scale up are %v", up)
		}
		if _, _, err := h.write("admin", u, u); err != nil {
			t.Errorf("the same again: %v", err)
		}

		for text, words := range map[string][]string{
			scaler("", of):               {"spec.maxReplicas: Required value"},
			scaler("", `maxReplicas: 3`): {"spec.scaleTargetRef"},
			scaler("", of+", minReplicas: 5, maxReplicas: 3"): {
				`FederatedHPA.autoscaling.karmada.io "web" is invalid: spec.maxReplicas`,
				"greater than or equal to the minimum, 5"},
			scaler(", annotations: {argosy.io/autoscaling-mode: Distribute}", of+
				", maxReplicas: 3"): {"argosy.io/autoscaling-mode", `"Central", "Distributed"`},
		} {
			h.refuses("admin", object(t, text), nil, words...)
		}
		h.create(scaler(", annotations: {argosy.io/autoscaling-mode: Distributed}", of+", maxReplicas: 3"))
	})
}

func TestCronFederatedHPAAcceptsGuideSpelling(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		cron := func(rules string) string {
			return `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {name: web, namespace: shop}, spec: {
			scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, rules: [` + rules + `]}}`
		}
		u := h.create(cron(`{name: up, schedule: "0 8 * * *", targetReplicas: 4}`))
		rules, _, _ := unstructured.NestedSlice(u.Object, "spec", "rules")
		if rule := rules[0].(map[string]any); rule["suspend"] != false || rule["successfulHistoryLimit"] != int64(3) ||
			rule["failedHistoryLimit"] != int64(3) {
			t.Errorf("the rule is stored as %v", rule)
		}
		for rule, words := range map[string][]string{
			`{name: up, schedule: "0 8 * *", targetReplicas: 4}`: {"spec.rules[0].schedule",
				"five fields"},
			`{name: up, schedule: "0 8 * * *"}`:                                                 {"spec.rules[0].targetReplicas: Required value"},
			`{name: "", schedule: "0 8 * * *", targetReplicas: 4}`:                              {"spec.rules[0].name"},
			`{name: ` + strings.Repeat("a", 33) + `, schedule: "0 8 * * *", targetReplicas: 4}`: {"spec.rules[0].name"},
			`{name: up, schedule: "0 8 * * *", targetReplicas: 4, successfulHistoryLimit: 0}`:   {"successfulHistoryLimit"},
			`{name: up, schedule: "0 8 * * *", targetReplicas: 4, failedHistoryLimit: 33}`:      {"failedHistoryLimit"},
		} {
			h.refuses("admin", object(t, cron(rule)), nil, words...)
		}
	})
}

func TestSecondAutoscalerOfAWorkloadIsWarnedOf(t *testing.T) {
	object := func(t *testing.T, kind, name, target string) *unstructured.Unstructured {
		return object(t, `{apiVersion: `+kind+`, metadata: {name: `+name+`, namespace: shop}, spec: {scaleTargetRef: {`+
			target+`}, maxReplicas: 3}}`)
	}
	const (
		hpa, keda = "autoscaling/v2, kind: HorizontalPodAutoscaler", "keda.sh/v1alpha1, kind: ScaledObject"
		fhpa      = "autoscaling.karmada.io/v1alpha1, kind: FederatedHPA"
		web       = "apiVersion: apps/v1, kind: Deployment, name: web"
	)
	for name, c := range map[string]struct {
		kind, name, target string
		is, isName, of     string // what is on the hub
		want               string
	}{
		"a FederatedHPA of a workload with an autoscaler": {fhpa, "load", web, hpa, "web", web,
			"HorizontalPodAutoscaler web scales Deployment web, too"},
		"an autoscaler of a workload with a FederatedHPA": {hpa, "web", web, fhpa, "load", web,
			"FederatedHPA load scales Deployment web, too"},
		"KEDA, of a workload with a FederatedHPA": {keda, "web", "name: web", fhpa, "load", web,
			"FederatedHPA load scales"},
		"a FederatedHPA of a workload of KEDA": {fhpa, "load", web, keda, "web", "name: web",
			"ScaledObject web scales"},
		"two autoscalers": {hpa, "web", web, hpa, "other", web,
			"HorizontalPodAutoscaler other scales"},
		"two FederatedHPAs": {fhpa, "load", web, fhpa, "other", web, "FederatedHPA other scales"},
		"one of another name": {hpa, "web", web, fhpa, "load", strings.Replace(web, "web", "api",
			1), ""},
		"one of another kind": {hpa, "web", web, fhpa, "load", strings.Replace(web, "Deployment",
			"StatefulSet", 1), ""},
		"one that names nothing": {keda, "web", "", keda, "other", "", ""},
		"a FederatedHPA, which names its kind itself": {fhpa, "load", web, keda, "web",
			"apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := newHub(t, object(t, c.is, c.isName, c.of))
				_, warnings, err := h.write("admin", object(t, c.kind, c.name, c.target), nil)
				if output := strings.Join(warnings, "; "); err != nil || (output == "") != (c.want == "") ||
					!strings.HasPrefix(output, c.want) {
					t.Errorf("warned is %q, %v, want %q", output, err, c.want)
				}
			})
		})
	}
}
