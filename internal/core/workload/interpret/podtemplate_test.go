package interpret

import (
	"strings"
	"testing"
)

func TestPodTemplatesAndContainersOfAllKinds(t *testing.T) {
	const spec = `{initContainers: [{name: setup}], containers: [{name: app}, {name: log}]}`
	for _, c := range []struct {
		name, object          string
		templates, containers string
	}{
		{
			"a Pod is its own template",
			`{apiVersion: v1, kind: Pod, spec: ` + spec + `}`,
			"<self>",
			"init spec/initContainers/0, spec/containers/0, spec/containers/1",
		},
		{
			"a CronJob keeps it in the Job's",
			`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: ` + spec + `}}}}}`,
			"spec/jobTemplate/spec/template",
			"init spec/jobTemplate/spec/template/spec/initContainers/0, spec/jobTemplate/spec/template/spec/containers/0, spec/jobTemplate/spec/template/spec/containers/1",
		},
		{
			"a CloneSet like a Deployment, in every version",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {template: {spec: {containers: [{name: app}]}}}}`,
			"spec/template",
			"spec/template/spec/containers/0",
		},
		{
			"a StatefulSet of OpenKruise is not mistaken for that of Kubernetes, and found as well",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: StatefulSet, spec: {template: {spec: {containers: [{name: app}]}}}}`,
			"spec/template",
			"spec/template/spec/containers/0",
		},
		{
			"an AdvancedCronJob of the template that it has",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, spec: {template: {broadcastJobTemplate: {spec: {template: {spec: {containers: [{name: app}]}}}}}}}`,
			"spec/template/broadcastJobTemplate/spec/template",
			"spec/template/broadcastJobTemplate/spec/template/spec/containers/0",
		},
		{
			"a UnitedDeployment of the template that it has",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: {template: {advancedStatefulSetTemplate: {spec: {template: {spec: {containers: [{name: app}]}}}}}}}`,
			"spec/template/advancedStatefulSetTemplate/spec/template",
			"spec/template/advancedStatefulSetTemplate/spec/template/spec/containers/0",
		},
		{
			"a SidecarSet has containers and no pod template",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, spec: ` + spec + `}`,
			"",
			"init spec/initContainers/0, spec/containers/0, spec/containers/1",
		},
		{
			"a Workflow has them in its templates, of four sorts",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [
				{name: a, container: {image: x}, sidecars: [{name: proxy}]},
				{name: b, script: {image: y}, initContainers: [{name: setup}]},
				{name: c, containerSet: {containers: [{name: main}]}},
				{name: d, dag: {tasks: []}}]}}`,
			"",
			"init spec/templates/1/initContainers/0, spec/templates/0/container, spec/templates/1/script, spec/templates/2/containerSet/containers/0, spec/templates/0/sidecars/0",
		},
		{
			"a Workflow has some in the midst of its steps and tasks",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [
				{name: a, steps: [[{name: x, inline: {container: {image: x}}}, {name: y, template: b}]]},
				{name: b, dag: {tasks: [{name: z, inline: {script: {image: y}}}]}}]}}`,
			"",
			"spec/templates/0/steps/0/0/inline/container, spec/templates/1/dag/tasks/0/inline/script",
		},
		{
			"an EphemeralJob has containers for pods that run already",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, spec: {template: {ephemeralContainers: [{name: shell}]}}}`,
			"",
			"spec/template/ephemeralContainers/0",
		},
		{
			"a CronWorkflow keeps a Workflow",
			`{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {workflowSpec: {templates: [{container: {image: x}}]}}}`,
			"",
			"spec/workflowSpec/templates/0/container",
		},
		{
			"a Rollout that refers to a Deployment has none of its own",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {workloadRef: {name: x}}}`,
			"", "",
		},
		{"a ConfigMap has none", `{apiVersion: v1, kind: ConfigMap}`, "", ""},
		{"a malformed Deployment has none", `{apiVersion: apps/v1, kind: Deployment, spec: {template: [oops]}}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, c.object)
			var templates, containers []string
			for _, path := range PodTemplates(obj) {
				name := strings.Join(path, "/")
				if name == "" {
					name = "<self>"
				}
				templates = append(templates, name)
			}
			for _, found := range Containers(obj) {
				name := strings.Join(found.Path, "/")
				if found.Init {
					name = "init " + name
				}
				containers = append(containers, name)
			}
			if got := strings.Join(templates, ", "); got != c.templates {
				t.Errorf("templates: got %s, want %s", got, c.templates)
			}
			if got := strings.Join(containers, ", "); got != c.containers {
				t.Errorf("containers: got %s\nwant %s", got, c.containers)
			}
		})
	}
}

func TestImagesOutsideContainers(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, spec: {image: "app:1"}}`, "spec/image"},
		{`{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, spec: {images: [a, b]}}`,
			"spec/images/0 spec/images/1"},
		{`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, spec: {template: {imageListPullJobTemplate: {spec: {images: [a]}}}}}`, "spec/template/imageListPullJobTemplate/spec/images/0"},
		{`{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, spec: {images: {}}}`, ""},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{image: a}]}}`, ""},
	} {
		var got []string
		for _, path := range Images(read(t, c.object)) {
			got = append(got, strings.Join(path, "/"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %s, want %s", c.object, s, c.want)
		}
	}
}
