package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// There is a row for each rejection that follows from the template alone.
func TestTemplatesRejectedByMembersAreWarnedAbout(t *testing.T) {
	const pods = `selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}`
	obj := func(apiVersion, kind, spec string) string {
		return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {name: w, namespace: default}, spec: {` +
			spec + `}}`
	}
	alpha := func(kind, spec string) string { return obj("apps.kruise.io/v1alpha1", kind, spec) }
	beta := func(kind, spec string) string { return obj("apps.kruise.io/v1beta1", kind, spec) }
	rolling := func(fields string) string { return pods + `, updateStrategy: {rollingUpdate: {` + fields + `}}` }
	united := func(spec string) string {
		return `replicas: 4, selector: {matchLabels: {app: a}}, template: {cloneSetTemplate: {metadata: {labels: {app: a}}, spec: {}}}, ` + spec
	}
	budget := func(spec string) string { return obj("policy.kruise.io/v1beta1", "PodUnavailableBudget", spec) }
	for name, c := range map[string]struct {
		obj, old string
		want     string // a part of the only advice, empty for none
	}{
		"a CloneSet that is right": {beta("CloneSet",
			rolling(`partition: "0.5%", maxUnavailable: 0, maxSurge: 1`)), "", ""},
		"a CloneSet that may update nothing": {beta("CloneSet", rolling("maxUnavailable: 0, maxSurge: 0")), "",
			"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: no pod can be updated, because maxSurge is 0 too: members reject it, unless"},
		"one in v1alpha1": {alpha("CloneSet", pods+", updateStrategy: {maxUnavailable: 0}"),
			"", "spec.updateStrategy.maxUnavailable: Invalid value: 0: no pod can be updated"},
		"one whose surge rounds its maxUnavailable down": {alpha("CloneSet", pods+
			`, updateStrategy: {maxUnavailable: "20%", maxSurge: 0}`), "", ""},
		"one of no replicas": {beta("CloneSet", "replicas: 0, "+rolling("maxUnavailable: 0")), "",
			""},
		"a number as a text": {beta("CloneSet", rolling(`partition: "5"`)), "",
			`spec.updateStrategy.rollingUpdate.partition: Invalid value: "5": "5" is neither a whole number nor a percentage: members reject it`},
		"a deadline that is over before pods are ready": {beta("CloneSet", pods+
			", minReadySeconds: 10, progressDeadlineSeconds: 10"), "",
			"spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"},
		"pods that are not selected": {beta("CloneSet",
			"selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: a}}}"), "",
			"spec.selector does not select these labels"},
		"a selector of nothing": {beta("CloneSet",
			"selector: {}, template: {metadata: {labels: {app: a}}}"), "", "selects all pods"},
		"another selector": {beta("CloneSet", pods),
			beta("CloneSet", strings.Replace(pods, "app: a", "app: a, b: c", 1)), "spec.selector: Forbidden: cannot be changed"},

		"a StatefulSet that is right": {beta("StatefulSet",
			rolling("maxUnavailable: 1, podUpdatePolicy: ReCreate")), "", ""},
		"pods in place without a gate": {beta("StatefulSet", rolling("podUpdatePolicy: InPlaceOnly")), "",
			"spec.template.spec.readinessGates: Required value: podUpdatePolicy InPlaceOnly requires the readiness gate InPlaceUpdateReady"},
		"pods in place with it": {beta("StatefulSet",
			strings.Replace(rolling("podUpdatePolicy: InPlaceOnly"), "containers:",
				"readinessGates: [{conditionType: InPlaceUpdateReady}], containers:", 1)), "", ""},
		"several at a time in order": {beta("StatefulSet", rolling("maxUnavailable: 2")), "",
			"must be 1 unless podManagementPolicy is Parallel"},
		"several at a time": {beta("StatefulSet", "podManagementPolicy: Parallel, "+
			rolling("maxUnavailable: 2")), "", ""},
		"another Service": {beta("StatefulSet", "serviceName: b, "+pods),
			beta("StatefulSet", "serviceName: a, "+pods), "spec.serviceName: Forbidden: cannot be changed"},
		"a claim of another name": {beta("StatefulSet", "volumeClaimTemplates: [{metadata: {name: b}}], "+pods),
			beta("StatefulSet", "volumeClaimTemplates: [{metadata: {name: a}}], "+pods),
			"spec.volumeClaimTemplates: Forbidden: the names cannot be changed"},
		"a DaemonSet that is right": {beta("DaemonSet", rolling("maxSurge: 1")), "", ""},
		"a DaemonSet that may update nothing": {beta("DaemonSet", rolling("maxUnavailable: 0")), "",
			"no pod can be updated"},
		"a DaemonSet with both": {beta("DaemonSet", rolling("maxUnavailable: 1, maxSurge: 1")), "",
			"must be 0 unless maxUnavailable is 0"},
		"a DaemonSet that surges in place": {beta("DaemonSet",
			rolling("maxSurge: 1, rollingUpdateType: InPlaceIfPossible")), "",
			"must be 0 if rollingUpdateType is InPlaceIfPossible"},
		"a DaemonSet's selector": {beta("DaemonSet", pods),
			beta("DaemonSet", strings.Replace(pods, "app: a", "app: a, b: c", 1)),
			"spec.selector: Forbidden: cannot be changed"},
		"a UnitedDeployment that is right": {beta("UnitedDeployment",
			united("topology: {subsets: [{name: a, replicas: 3}, {name: b}]}")), "", ""},
		"halves, which are divided": {beta("UnitedDeployment",
			united(`topology: {subsets: [{name: a, replicas: "50%"}, {name: b, replicas: "50%"}]}`)), "", ""},
		"subsets that are more": {beta("UnitedDeployment",
			united("topology: {subsets: [{name: a, replicas: 3}, {name: b, replicas: 3}]}")), "",
			"the replicas of all subsets are set and add up to 6, but spec.replicas is 4"},
		"one subset that is more": {beta("UnitedDeployment",
			united("topology: {subsets: [{name: a, replicas: 5}, {name: b}]}")), "", "add up to 5, more than spec.replicas, 4"},
		"no subset to take the rest": {beta("UnitedDeployment",
			united("topology: {subsets: [{name: a, maxReplicas: 5}]}")), "", "must not have maxReplicas"},
		"a subset with a number and a range": {beta("UnitedDeployment",
			united("topology: {subsets: [{name: a, replicas: 2, minReplicas: 1}, {name: b}]}")), "", `subset "a" has replicas`},
		"no workload": {beta("UnitedDeployment",
			"replicas: 1, selector: {matchLabels: {app: a}}, template: {}"), "",
			"exactly one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, deploymentTemplate must be set"},
		"a SidecarSet that is right": {beta("SidecarSet",
			"selector: {matchLabels: {a: b}}, containers: [{name: c}]"), "", ""},
		"a SidecarSet for all": {beta("SidecarSet", "selector: {}, containers: [{name: c}]"), "",
			"selects all pods"},
		"a SidecarSet of nothing": {beta("SidecarSet", "selector: {matchLabels: {a: b}}"), "",
			"has no containers and no initContainers"},
		"a native sidecar that is updated": {beta("SidecarSet",
			"selector: {matchLabels: {a: b}}, initContainers: [{name: c, restartPolicy: Always}]"), "", "NotUpdate"},
		"a cron job that is right": {beta("AdvancedCronJob",
			`schedule: "0 * * * *", template: {jobTemplate: {spec: {a: 1}}}`),
			beta("AdvancedCronJob", `schedule: "1 * * * *", template: {jobTemplate: {spec: {a: 1}}}`), ""},
		"a cron job with another image": {beta("AdvancedCronJob", "template: {jobTemplate: {spec: {a: 1}}}"),
			beta("AdvancedCronJob", "template: {jobTemplate: {spec: {a: 2}}}"),
			"spec.template.jobTemplate: Forbidden: cannot be changed"},
		"a cron job of two": {beta("AdvancedCronJob",
			"template: {jobTemplate: {}, broadcastJobTemplate: {}}"), "", "exactly one of jobTemplate"},
		"a spread that is right": {beta("WorkloadSpread",
			`targetRef: {kind: CloneSet}, subsets: [{name: a, maxReplicas: "30%"}, {name: b}]`), "", ""},
		"a spread of numbers and percentages": {beta("WorkloadSpread",
			`targetRef: {kind: CloneSet}, subsets: [{name: a, maxReplicas: 3}, {name: b, maxReplicas: "50%"}]`), "",
			"maxReplicas must be a number in all subsets"},
		"a spread of less than all": {beta("WorkloadSpread",
			`targetRef: {kind: CloneSet}, subsets: [{name: a, maxReplicas: "30%"}, {name: b, maxReplicas: "50%"}]`), "",
			"add up to 80%"},
		"a spread of a StatefulSet by percent": {beta("WorkloadSpread",
			`targetRef: {kind: StatefulSet}, subsets: [{name: a, maxReplicas: "30%"}, {name: b}]`), "", "must be a number"},
		"a spread of another workload": {beta("WorkloadSpread", `targetRef: {kind: CloneSet, name: b}`),
			beta("WorkloadSpread", `targetRef: {kind: CloneSet, name: a}`), "spec.targetRef: Forbidden: cannot be changed"},
		"a budget that is right": {budget("selector: {}, minAvailable: 1"), "", ""},
		"a budget of two kinds of pods": {budget("selector: {}, targetRef: {}, minAvailable: 1"), "",
			"exactly one of selector and targetRef"},
		"a budget of two numbers": {budget("selector: {}, maxUnavailable: 1, minAvailable: 1"), "",
			"exactly one of maxUnavailable and minAvailable"},
		"a budget of other pods": {budget("selector: {a: 1}, minAvailable: 1"),
			budget("selector: {a: 2}, minAvailable: 1"), "spec.selector: Forbidden: cannot be changed"},
		"a request that changes": {beta("ContainerRecreateRequest", "podName: b"),
			beta("ContainerRecreateRequest", "podName: a"), "spec: Forbidden: cannot be changed"},
		"the secrets of a pull": {beta("ImagePullJob", "pullSecrets: [b]"),
			beta("ImagePullJob", "pullSecrets: [a]"),
			"spec.pullSecrets: Forbidden: cannot be changed: members that have the object reject this change and keep the original pullSecrets"},
		"secrets that come later": {beta("ImageListPullJob", "pullSecrets: [b]"),
			beta("ImageListPullJob", "images: [a]"), "delete and recreate"},
		"secrets that go": {beta("ImageListPullJob", "images: [a]"),
			beta("ImageListPullJob", "pullSecrets: [b]"), "delete and recreate"},
		"a pull of another image": {beta("ImagePullJob", "image: b, pullSecrets: [a]"),
			beta("ImagePullJob", "image: a, pullSecrets: [a]"), ""},
		"a kind of which nothing is known here": {obj("apps/v1", "Deployment", "selector: {}"), "", ""},
	} {
		u := workload(t, c.obj)
		var old *unstructured.Unstructured
		if c.old != "" {
			old = workload(t, c.old)
		}
		advice := MemberAdvice(u, old)
		switch {
		case c.want == "" && len(advice) > 0:
			t.Errorf("%s: advised %q", name, advice)
		case c.want != "" && (len(advice) != 1 || !strings.Contains(advice[0], c.want) ||
			!strings.Contains(advice[0], "reject")):
			t.Errorf("%s: advised %q, want one with %q", name, advice, c.want)
		}
	}
}
