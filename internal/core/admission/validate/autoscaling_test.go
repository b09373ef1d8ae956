package validate

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
)

func TestFederatedHPA(t *testing.T) {
	const of = `scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, `
	metric := func(m string) string { return `{` + of + `maxReplicas: 3, metrics: [` + m + `]}` }
	behavior := func(b string) string { return `{` + of + `maxReplicas: 3, behavior: ` + b + `}` }
	for _, c := range []refusal{
		{"the shortest", `{` + of + `maxReplicas: 3}`, nil},
		{"all of it", `{` + of + `minReplicas: 2, maxReplicas: 9, metrics: [
			{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}},
			{type: ContainerResource, containerResource: {name: memory, container: app, target: {type: AverageValue, averageValue: 1Gi}}},
			{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}},
			{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: web}, metric: {name: hits}, target: {type: Value, value: 1k}}}],
			behavior: {scaleUp: {selectPolicy: Disabled}, scaleDown: {stabilizationWindowSeconds: 3600, tolerance: "0.05", policies: [{type: Pods, value: 1, periodSeconds: 1800}]}}}`, nil},
		{"nothing named", `{maxReplicas: 3}`,
			[]string{"spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value"}},
		{"no version", `{scaleTargetRef: {apiVersion: a/b/c, kind: CloneSet, name: web}, maxReplicas: 3}`,
			[]string{"spec.scaleTargetRef.apiVersion", "such as v1 or apps/v1"}},
		{"itself", `{scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: web}, maxReplicas: 3}`, []string{"a FederatedHPA scales a workload"}},
		{"a binding", `{scaleTargetRef: {apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, name: web}, maxReplicas: 3}`, []string{"specify the workload itself"}},
		{"down to nothing", `{` + of + `minReplicas: 0, maxReplicas: 3}`, []string{"spec.minReplicas", "must be 1 or more"}},
		{"no maximum", `{` + of + `maxReplicas: 0}`, []string{"spec.maxReplicas", "must be 1 or more"}},
		{"the wrong way round", `{` + of + `minReplicas: 4, maxReplicas: 3}`,
			[]string{"spec.maxReplicas", "greater than or equal to the minimum, 4"}},
		{"an external metric", metric(`{type: External, external: {metric: {name: m}, target: {type: Value, value: 1}}}`),
			[]string{`spec.metrics[0].type: Unsupported value: "External"`}},
		{"a type without its field", metric(`{type: Resource}`),
			[]string{"spec.metrics[0].type", "only the field of that name"}},
		{"two fields", metric(`{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1}}}`), []string{"only the field of that name must be set"}},
		{"a resource without a target", metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization}}}`),
			[]string{"spec.metrics[0].resource.target: Required value"}},
		{"two targets", metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1, averageValue: 1}}}`), []string{"may not be set when averageUtilization is set"}},
		{"nothing to use", metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}}`), []string{"must be 1 or more, in percent"}},
		{"pods by value", metric(`{type: Pods, pods: {metric: {name: m}, target: {type: Value, value: 1}}}`),
			[]string{"spec.metrics[0].pods.target.averageValue: Required value"}},
		{"an object by nothing", metric(`{type: Object, object: {describedObject: {kind: Ingress, name: web}, metric: {name: m}, target: {type: Value}}}`), []string{"must set either value or averageValue"}},
		{"names that lead elsewhere", metric(
			`{type: Object, object: {describedObject: {kind: Ingress, name: ..}, metric: {name: ../../bank/metrics/m}, target: {type: Value, value: 1}}}`),
			[]string{"spec.metrics[0].object.describedObject.name", "may not be '..'", "spec.metrics[0].object.metric.name",
				"may not contain '/'"}},
		{"a metric of pods that leads elsewhere",
			metric(`{type: Pods, pods: {metric: {name: a%2Fb}, target: {type: AverageValue, averageValue: 1}}}`),
			[]string{"spec.metrics[0].pods.metric.name", "may not contain '%'"}},
		{"a quantity of none", metric(`{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 0}}}`), []string{"must be greater than 0"}},
		{"a long window", behavior(`{scaleDown: {stabilizationWindowSeconds: 3601, policies: [{type: Pods, value: 1, periodSeconds: 1}]}}`), []string{"must be from 0 to 3600"}},
		{"a policy of nothing", behavior(`{scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 1}]}}`),
			[]string{"spec.behavior.scaleUp.policies[0].value"}},
		{"a long period", behavior(`{scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}}`),
			[]string{"must be from 1 to 1800"}},
		{"a policy by another name", behavior(
			`{scaleUp: {selectPolicy: Fastest, policies: [{type: Nodes, value: 1, periodSeconds: 1}]}}`),
			[]string{"selectPolicy: Unsupported value", `type: Unsupported value: "Nodes"`}},
	} {
		f := &autoscalingv1alpha1.FederatedHPA{}
		parse(t, c.spec, &f.Spec)
		DefaultFederatedHPA(f)
		check(t, c.name, FederatedHPA(f), c.want)
	}
	f := &autoscalingv1alpha1.FederatedHPA{}
	parse(t, `{`+of+`maxReplicas: 3}`, &f.Spec)
	f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: "distributed"}
	check(t, "a mode misspelt", FederatedHPA(f), []string{"metadata.annotations[argosy.io/autoscaling-mode]",
		`Unsupported value: "distributed": supported values: "Central", "Distributed"`})
}

func TestFederatedHPADefaultsAreThoseOfAHorizontalPodAutoscaler(t *testing.T) {
	f := &autoscalingv1alpha1.FederatedHPA{}
	parse(t, `{maxReplicas: 3, behavior: {scaleDown: {selectPolicy: Min}}}`, &f.Spec)
	DefaultFederatedHPA(f)
	once := f.DeepCopy()
	DefaultFederatedHPA(once)
	m, up, down := f.Spec.Metrics[0].Resource, f.Spec.Behavior.ScaleUp, f.Spec.Behavior.ScaleDown
	if *f.Spec.MinReplicas != 1 || m.Name != "cpu" || *m.Target.AverageUtilization != 80 ||
		*up.StabilizationWindowSeconds != 0 || *up.SelectPolicy != autoscalingv2.MaxChangePolicySelect ||
		len(up.Policies) != 2 || down.StabilizationWindowSeconds != nil ||
		*down.SelectPolicy != autoscalingv2.MinChangePolicySelect || len(down.Policies) != 1 {
		t.Errorf("the defaults are %+v", f.Spec)
	}
	if len(once.Spec.Behavior.ScaleUp.Policies) != 2 {
		t.Errorf("twice, they are %+v", once.Spec)
	}
}

func TestCronFederatedHPA(t *testing.T) {
	of := func(rule string) string {
		return `{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, rules: [` + rule + `]}`
	}
	bounds := func(rule string) string {
		return `{scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: web}, rules: [` +
			rule + `]}`
	}
	for _, c := range []refusal{
		{"a workload", of(`{name: up, schedule: "0 8 * * 1-5", targetReplicas: 9, timeZone: Europe/Berlin}, {name: down, schedule: "@daily", targetReplicas: 0}`), nil},
		{"bounds", bounds(`{name: up, schedule: "0 8 * * *", targetMinReplicas: 4, targetMaxReplicas: 9}, {name: down, schedule: "0 18 * * *", targetMinReplicas: 1}`), nil},
		{"the same name twice", of(`{name: up, schedule: "0 8 * * *", targetReplicas: 9}, {name: up, schedule: "0 9 * * *", targetReplicas: 9}`), []string{`spec.rules[1].name: Duplicate value: "up"`}},
		{"no schedule", of(`{name: up, schedule: daily, targetReplicas: 9}`),
			[]string{"spec.rules[0].schedule", "five fields as in crontab"}},
		{"no time zone", of(`{name: up, schedule: "0 8 * * *", targetReplicas: 9, timeZone: Cologne}`),
			[]string{"spec.rules[0].timeZone", "is not a time zone such as Europe/Berlin"}},
		{"an empty time zone", of(`{name: up, schedule: "0 8 * * *", targetReplicas: 9, timeZone: ""}`),
			[]string{"spec.rules[0].timeZone", "must not be empty"}},
		{"no replicas", of(`{name: up, schedule: "0 8 * * *", targetMinReplicas: 1}`),
			[]string{"spec.rules[0].targetReplicas: Required value"}},
		{"fewer than none", of(`{name: up, schedule: "0 8 * * *", targetReplicas: -1}`), []string{"must be 0 or more"}},
		{"no bounds", bounds(`{name: up, schedule: "0 8 * * *", targetReplicas: 3}`),
			[]string{"spec.rules[0].targetMinReplicas: Required value"}},
		{"bounds the wrong way round", bounds(
			`{name: up, schedule: "0 8 * * *", targetMinReplicas: 3, targetMaxReplicas: 2}`),
			[]string{"spec.rules[0].targetMaxReplicas"}},
		{"another kind of the group", `{scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, name: web}, rules: []}`, []string{"only a FederatedHPA"}},
	} {
		cron := &autoscalingv1alpha1.CronFederatedHPA{}
		parse(t, c.spec, &cron.Spec)
		check(t, c.name, CronFederatedHPA(cron), c.want)
	}
}
