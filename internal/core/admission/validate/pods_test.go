package validate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var workload = coretest.Object

// web is a pod template with much in it that is right.
const web = `{metadata: {labels: {app: web}, creationTimestamp: null}, spec: {
	containers: [{name: c, image: "nginx:1", ports: [{containerPort: 80, name: http}], env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
		resources: {requests: {cpu: 1, memory: 64Mi, example.com/gpu: "1"}}, readinessProbe: {httpGet: {port: http, path: /}, periodSeconds: 3.0},
		volumeMounts: [{name: v, mountPath: /v}], securityContext: {runAsUser: 1}}],
	initContainers: [{name: i, image: b, restartPolicy: Always}], nodeSelector: {a: b}, tolerations: [{operator: Exists}],
	affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}},
	volumes: [{name: v, emptyDir: {}}, {name: s, secret: {secretName: s, items: [{key: k, path: p}]}}]}}`

// wrong is a pod template with a field that is none, and a value of another type.
const wrong = `{spec: {containers: [{name: c, imagePullPolcy: Always}], volumes: {name: v}}}`

func TestMistakesInSchemalessFieldsAreReported(t *testing.T) {
	kruise := func(kind, spec string) string {
		return fmt.Sprintf("{apiVersion: apps.kruise.io/v1beta1, kind: %s, metadata: {name: x}, spec: {%s}}", kind, spec)
	}
	workflow := func(spec string) string {
		return fmt.Sprintf("{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, spec: {%s}}", spec)
	}
	at := func(place string) []string {
		return []string{
			place + ".spec.volumes: is an object and must be a list: members reject it",
			`unknown field "` + place + `.spec.containers[0].imagePullPolcy": members drop it or reject the object; did you mean imagePullPolicy?`,
		}
	}
	for name, c := range map[string]struct {
		obj  string
		want []string
	}{
		"a CloneSet that is right": {kruise("CloneSet", "template: "+web+
			", volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]"), nil},
		"a CloneSet":              {kruise("CloneSet", "template: "+wrong), at("spec.template")},
		"an Advanced StatefulSet": {kruise("StatefulSet", "template: "+wrong), at("spec.template")},
		"an Advanced DaemonSet":   {kruise("DaemonSet", "template: "+wrong), at("spec.template")},
		"a BroadcastJob":          {kruise("BroadcastJob", "template: "+wrong), at("spec.template")},
		"a CronJob of Jobs": {kruise("AdvancedCronJob", "template: {jobTemplate: {spec: {template: "+wrong+"}}}"),
			at("spec.template.jobTemplate.spec.template")},
		"a CronJob of BroadcastJobs": {kruise("AdvancedCronJob", "template: {broadcastJobTemplate: {spec: {template: "+wrong+
			"}}}"), at("spec.template.broadcastJobTemplate.spec.template")},
		"a UnitedDeployment": {kruise("UnitedDeployment", "template: {deploymentTemplate: {spec: {template: "+wrong+
			"}}}"), at("spec.template.deploymentTemplate.spec.template")},
		"a Rollout of Argo": {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: x}, spec: {template: " +
			wrong + "}}", at("spec.template")},
		"claims": {kruise("UnitedDeployment",
			"template: {cloneSetTemplate: {spec: {volumeClaimTemplates: [{spec: {acessModes: []}}]}}}"),
			[]string{`unknown field "spec.template.cloneSetTemplate.spec.volumeClaimTemplates[0].spec.acessModes": members drop it or reject the object; did you mean accessModes?`}},
		"expressions of sidecars": {kruise("SidecarSet",
			"containers: [{name: s, resourcesPolicy: {resourcesExpr: {requests: {cpu: 'avg(cpu)'}}}}]"), []string{
			`spec.containers[0].resourcesPolicy: the expression of requests.cpu: "avg(cpu)": "avg" is neither a function nor the resource; placements use the requests of the container itself`}},
		"ephemeral containers": {kruise("EphemeralJob",
			"template: {ephemeralContainers: [{name: e, targetContainerNmae: c, image: 7}]}"), []string{
			"spec.template.ephemeralContainers[0].image: is 7 and must be a string: members reject it",
			`unknown field "spec.template.ephemeralContainers[0].targetContainerNmae": members drop it or reject the object; did you mean targetContainerName?`}},
		"types within": {kruise("CloneSet",
			`template: {spec: {terminationGracePeriodSeconds: 1.5, hostNetwork: "true", containers: [{ports: [{containerPort: "80"}], args: [1]}]}}`), []string{
			"spec.template.spec.containers[0].args[0]: is 1 and must be a string: members reject it",
			`spec.template.spec.containers[0].ports[0].containerPort: is the string "80" and must be a whole number: members reject it`,
			`spec.template.spec.hostNetwork: is the string "true" and must be true or false: members reject it`,
			"spec.template.spec.terminationGracePeriodSeconds: is 1.5 and must be a whole number: members reject it"}},
		"a Workflow that is right": {workflow(`entrypoint: a, arguments: {parameters: [{name: n, value: 3}]}, volumes: [{name: v, emptyDir: {}}], templates: [
			{name: a, inputs: {parameters: [{name: x}]}, steps: [[{name: s, template: b, withItems: [1], inline: {container: {image: i}}}]]},
			{name: b, dag: {tasks: [{name: t, depends: "u.Succeeded", template: c}]}}, {name: c, script: {image: i, source: "echo"}, sidecars: [{name: s, image: i, mirrorVolumeMounts: true}]},
			{name: d, containerSet: {containers: [{name: x, image: i, dependencies: [y]}]}}, {name: e, suspend: {}}, {name: f, resource: {action: create, manifest: m}}]`), nil},
		"a Workflow": {workflow(`templates: [{name: a, contaner: {}, container: {imagePullPolcy: x}, steps: [[{inline: {script: {comand: []}}}]]}], affinity: {podAfinity: {}}`), []string{
			`unknown field "spec.affinity.podAfinity": members drop it or reject the object; did you mean podAffinity?`,
			`unknown field "spec.templates[0].container.imagePullPolcy": members drop it or reject the object; did you mean imagePullPolicy?`,
			`unknown field "spec.templates[0].contaner": members drop it or reject the object; did you mean container?`,
			`unknown field "spec.templates[0].steps[0][0].inline.script.comand": members drop it or reject the object; did you mean command?`}},
		"a CronWorkflow":       {`{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: x}, spec: {workflowSpec: {templates: [{qqqqqqqqq: 1}]}}}`, []string{`unknown field "spec.workflowSpec.templates[0].qqqqqqqqq": members drop it or reject the object`}},
		"what is no workload":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {spec: x}}", nil},
		"shapes that are none": {kruise("CloneSet", "template: [1], volumeClaimTemplates: {a: b}"), nil},
	} {
		obj := workload(t, c.obj)
		before := obj.DeepCopy()
		if diff := cmp.Diff(c.want, PodAdvice(obj)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Errorf("%s: it was changed:\n%s", name, diff)
		}
	}
}

func TestManyMistakesAreSummarized(t *testing.T) {
	fields := ""
	for i := range 30 {
		fields += fmt.Sprintf("zzz%02dzzz: 1, ", i)
	}
	advice := PodAdvice(workload(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {template: {spec: {"+fields+"}}}}"))
	if len(advice) != podAdviceLimit+1 || advice[podAdviceLimit] != "and 20 more like these" {
		t.Errorf("reported: %d things, the last of which is %q", len(advice), advice[len(advice)-1])
	}
}

// PodAdvice checks every kind that the interpreter knows pods of.
func TestEveryPodTemplateIsLookedAt(t *testing.T) {
	known := podFields()
	if known.template == nil ||
		known.template.Properties["spec"].Properties["containers"].Items.Properties["image"] == nil {
		t.Fatal("the fields of pods are not known")
	}
	for kind, parts := range known.parts {
		for _, p := range parts {
			if p.fields == nil || p.fields.Type == "" {
				t.Errorf("%s: nothing is known of %v", kind, p.path)
			}
		}
	}
	for k := range kind.List() {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetGroupVersionKind(k.WithVersion("v1"))
		for _, path := range k.Pods.Templates {
			if len(path) == 0 {
				continue // a Pod, which the API server knows
			}
			if err := unstructured.SetNestedField(obj.Object, map[string]any{"sepc": map[string]any{}}, path...); err != nil {
				t.Fatal(err)
			}
			if len(PodAdvice(obj)) == 0 {
				t.Errorf("%s: a template at %v is not looked at", k, path)
			}
		}
	}
	set := workload(t, `{apiVersion: game.kruise.io/v1alpha1, kind: GameServerSet, metadata: {name: x}, spec: {
		gameServerTemplate: {metadata: {}, reclaimPolicy: Delete, volumeClaimTemplates: [{metadata: {name: v}}]}}}`)
	if advice := PodAdvice(set); len(advice) > 0 {
		t.Errorf("fields of a GameServerSet's template are taken for mistakes: %v", advice)
	}
}

func BenchmarkPodAdvice(b *testing.B) {
	obj := workload(b, "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {template: "+web+
		"}}")
	PodAdvice(obj)
	b.ReportAllocs()
	for b.Loop() {
		if len(PodAdvice(obj)) > 0 {
			b.Fatal("advice")
		}
	}
}
