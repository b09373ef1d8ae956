package e2e

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

func TestATypoDeepInAWorkloadOfOpenKruiseIsRefused(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	united := func(version, template string) string {
		return `{apiVersion: apps.kruise.io/` + version + `, kind: UnitedDeployment, metadata: {name: u, namespace: ` + ns +
			`}, spec: {selector: {matchLabels: {a: b}}, template: {` + template + `}}}`
	}
	inner := func(fields string) string {
		return `{metadata: {labels: {a: b}}, spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: []}}, ` +
			fields + `}}`
	}
	sidecars := func(container string) string {
		return `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: ` + ns +
			`}, spec: {selector: {matchLabels: {a: b}}, containers: [{name: c, image: i, ` + container + `}]}}`
	}
	for text, want := range map[string]string{
		united("v1alpha1", "cloneSetTemplate: "+
			inner(`updateStrategy: {type: InPlaceIfPossible, partition: 10%}`)): "",
		united("v1alpha1", "cloneSetTemplate: "+
			inner(`updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}`)): "",
		united("v1beta1", "cloneSetTemplate: "+
			inner(`updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}`)): "",
		united("v1beta1", "cloneSetTemplate: "+
			inner(`updateStrategy: {partition: 1}`)): `unknown field "spec.template.cloneSetTemplate.` +
			`spec.updateStrategy.partition"`,
		united("v1alpha1", "cloneSetTemplate: "+
			inner(`updateStrateyg: {type: ReCreate}`)): `unknown field "spec.template.cloneSetTemplate.spec.updateStrateyg"`,
		united("v1alpha1", "cloneSetTemplate: "+
			inner(`updateStrategy: {type: Recreate}`)): `Unsupported value: "Recreate"`,
		united("v1alpha1", "advancedStatefulSetTemplate: "+
			inner(`reserveOrdinals: [1, 3-5]`)): "",
		united("v1beta1", "advancedStatefulSetTemplate: "+
			inner(`updateStrategy: {rollingUpdate: {podUpdatePolcy: InPlaceOnly}}`)): `unknown field "spec.template.advancedStatefulSetTemplate.spec.updateStrategy.rollingUpdate.podUpdatePolcy"`,
		united("v1beta1", "statefulSetTemplate: "+
			inner(`updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}`)): `unknown field "spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate.podUpdatePolicy"`,
		united("v1beta1", "deploymentTemplate: "+
			inner(`strategy: {rollingUpdate: {maxSurge: 1}}`)): "",
		united("v1beta1", "deploymentTemplate: "+
			inner(`updateStrategy: {rollingUpdate: {maxSurge: 1}}`)): `unknown field "spec.template.` +
			`deploymentTemplate.spec.updateStrategy"`,
		united("v1beta1", "deploymentTemplate: {spec: {template: {spec: {containers: []}}}}"): "spec.template." +
			"deploymentTemplate.spec.selector: Required value",
		sidecars(`resources: {limits: {cpu: 1, memory: 1Gi}}, readinessProbe: {httpGet: {port: http}}, podInjectPolicy: BeforeAppContainer`): "",
		sidecars(`resource: {limits: {cpu: 1}}`): `unknown field "spec.containers[0].resource"`,
		sidecars(`readinessProbe: {httpGet: {ports: http}}`): `unknown field "spec.containers[0].` +
			`readinessProbe.httpGet.ports"`,
		sidecars(`transferEnv: [{sourceContainer: main}]`): `unknown field "spec.containers[0].` +
			`transferEnv[0].sourceContainer"`,
		sidecars(`upgradeStrategy: {upgradeType: HotUpdate}`): `Unsupported value: "HotUpdate"`,
	} {
		err := fleet.Hub.Create(t.Context(), kit.Object(t, text), strict, client.DryRunAll)
		if want != "" {
			refusedWith(t, err, want, text)
		} else if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
