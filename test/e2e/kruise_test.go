package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/object/names"
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

// On the hub, a workload has the defaults that the webhooks of members set, in each version. Members then have nothing
// to add that the hub would write again.
func TestWorkloadsOfOpenKruiseHaveTheirDefaultsOnTheHub(t *testing.T) {
	kit.Long(t)
	kruiseServed(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p", "{resourceSelectors: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}, "+
		"{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet}], placement: "+placedOn("m1", "m2")+"}"))
	for _, c := range []struct {
		version, kind, name string
		path                []string
		want                any
	}{
		{"v1alpha1", "CloneSet", "a", []string{"maxUnavailable"}, "20%"},
		{"v1beta1", "CloneSet", "b", []string{"rollingUpdate", "partition"}, int64(0)},
		{"v1beta1", "StatefulSet", "c", []string{"rollingUpdate", "podUpdatePolicy"}, "ReCreate"},
	} {
		apiVersion := "apps.kruise.io/" + c.version
		fleet.Hub.Apply(t, "{apiVersion: "+apiVersion+", kind: "+c.kind+", metadata: {namespace: "+ns+", name: "+c.name+
			"}, spec: {selector: {matchLabels: {app: "+c.name+"}}, template: {metadata: {labels: {app: "+c.name+
			"}}, spec: {containers: [{name: c, image: c}]}}}}")
		template := fleet.Hub.Find(t, apiVersion, c.kind, ns, c.name)
		if got := kit.Field(template, append([]string{"spec", "updateStrategy"}, c.path...)...); got != c.want {
			t.Errorf("%s %s has on the hub %v, want %v", c.version, c.kind, got, c.want)
		}
		kit.Eventually(t, c.kind+" runs", func() string {
			return applied(t, ns, names.Binding(c.kind, c.name), "m1", "m2")
		})
		// The next write of the hub changes no field of the member's object.
		served := "apps.kruise.io/" + map[string]string{"CloneSet": "v1alpha1", "StatefulSet": "v1beta1"}[c.kind]
		inM1 := func(field ...string) any { return inMember(t, "m1", served, c.kind, ns, c.name, field...) }
		generation := inM1("metadata", "generation")
		fleet.Hub.Change(t, apiVersion, c.kind, ns, c.name, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"team": "shop"})
		})
		kit.Eventually(t, "the label is in m1", func() string {
			if got := inM1("metadata", "labels", "team"); got != "shop" {
				return fmt.Sprint(got)
			}
			return ""
		})
		if now := inM1("metadata", "generation"); now != generation {
			t.Errorf("%s %s: the object in m1 has generation %v after %v", c.version, c.kind, now, generation)
		}
	}
}
