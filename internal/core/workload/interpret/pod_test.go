package interpret

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestRequirementsMatchScheduler(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{
			"containers add up",
			`{containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 200m}}}]}`,
			`{namespace: ns, resourceRequest: {cpu: 300m, memory: 1Gi}}`,
		},
		{
			"init containers run one after the other, so only the largest counts, and only if it is larger than all that follow",
			`{initContainers: [{resources: {requests: {cpu: "1"}}}, {resources: {requests: {memory: 1Mi}}}], containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}]}`,
			`{namespace: ns, resourceRequest: {cpu: "1", memory: 1Gi}}`,
		},
		{
			"a restartable init container stays, so it adds to the containers",
			`{initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 50m}}}], containers: [{resources: {requests: {cpu: 100m}}}]}`,
			`{namespace: ns, resourceRequest: {cpu: 150m}}`,
		},
		{
			"overhead is on top",
			`{overhead: {cpu: 10m}, containers: [{resources: {requests: {cpu: 100m}}}]}`,
			`{namespace: ns, resourceRequest: {cpu: 110m}}`,
		},
		{
			"what is limited and not requested is requested in full",
			`{containers: [{resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "1"}}}]}`,
			`{namespace: ns, resourceRequest: {cpu: "1", memory: 1Gi}}`,
		},
		{
			"nodes are claimed by selector, tolerations and required affinity, not by preferences",
			`{priorityClassName: high, nodeSelector: {disk: ssd}, tolerations: [{key: gpu, operator: Exists}],
			  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}],
			    requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}}`,
			`{namespace: ns, priorityClassName: high, nodeClaim: {nodeSelector: {disk: ssd}, tolerations: [{key: gpu, operator: Exists}],
			  hardNodeAffinity: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}`,
		},
		{
			"a pod that asks for nothing is a workload all the same",
			`{containers: [{image: x}]}`,
			`{namespace: ns}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, `{apiVersion: v1, kind: Pod, spec: `+c.spec+`}`)
			template, err := PodTemplate(obj, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := PodRequirements(template, "ns")
			var want workv1alpha2.ReplicaRequirements
			if err := yaml.UnmarshalStrict([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(got, &want) {
				g, _ := yaml.Marshal(got)
				t.Errorf("got\n%swant\n%s", g, c.want)
			}
		})
	}
}

func TestMalformedPodTemplateIsAnError(t *testing.T) {
	obj := read(t, `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: nothing}}}}`)
	if _, err := PodTemplate(obj, PodTemplates(obj)[0]); err == nil || !strings.Contains(err.Error(), "spec.template") {
		t.Errorf("got %v, want an error that names the place", err)
	}
}

func TestEveryReferenceOfAPodIsADependency(t *testing.T) {
	obj := read(t, `{apiVersion: v1, kind: Pod, spec: {
		serviceAccountName: bot,
		imagePullSecrets: [{name: pull}, {name: pull}],
		initContainers: [{env: [{valueFrom: {secretKeyRef: {name: init-secret, key: k}}}]}],
		containers: [{
			env: [{name: plain, value: x}, {valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {valueFrom: {configMapKeyRef: {name: env, key: k}}}],
			envFrom: [{configMapRef: {name: envfrom}}, {secretRef: {name: envfrom}}]}],
		volumes: [
			{name: a, configMap: {name: volume}}, {name: b, secret: {secretName: volume}}, {name: c, persistentVolumeClaim: {claimName: data}},
			{name: d, projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {serviceAccountToken: {path: t}}]}},
			{name: e, csi: {driver: x, nodePublishSecretRef: {name: csi}}}, {name: f, cephfs: {monitors: [], secretRef: {name: cephfs}}},
			{name: g, rbd: {monitors: [], image: i, secretRef: {name: rbd}}}, {name: h, iscsi: {targetPortal: t, iqn: i, lun: 0, secretRef: {name: iscsi}}},
			{name: i, flexVolume: {driver: x, secretRef: {name: flex}}}, {name: j, scaleIO: {gateway: g, system: s, secretRef: {name: scaleio}}},
			{name: k, storageos: {secretRef: {name: storageos}}}, {name: l, azureFile: {secretName: azure, shareName: s}}, {name: m, emptyDir: {}}, {name: o, csi: {driver: x}}]}}`)
	template, err := PodTemplate(obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range PodDependencies(template, "ns") {
		if d.APIVersion != "v1" || d.Namespace != "ns" {
			t.Errorf("%v: want v1 in the namespace ns", d)
		}
		got = append(got, fmt.Sprintf("%s/%s", d.Kind, d.Name))
	}
	want := "ConfigMap/env ConfigMap/envfrom ConfigMap/projected ConfigMap/volume PersistentVolumeClaim/data " +
		"Secret/azure Secret/cephfs Secret/csi Secret/envfrom Secret/flex Secret/init-secret Secret/iscsi Secret/projected Secret/pull Secret/rbd " +
		"Secret/scaleio Secret/storageos Secret/volume ServiceAccount/bot"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestPodSpec(t *testing.T) {
	// The selector and the namespace of a SidecarSet are no fields of a pod; nodeSelector would be, and is not meant.
	obj := read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, spec: {namespace: shop, selector: {matchLabels: {app: x}}, nodeSelector: [odd],
		containers: [{name: log, podInjectPolicy: BeforeAppContainer, envFrom: [{configMapRef: {name: log}}]}], volumes: [{name: s, secret: {secretName: key}}]}}`)
	paths := PodSpecs(obj)
	if len(paths) != 1 || len(PodTemplates(obj)) != 0 {
		t.Fatalf("bare at %v, templates at %v", paths, PodTemplates(obj))
	}
	part, err := PodSpec(obj, paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if deps := PodDependencies(part, "shop"); len(deps) != 2 || deps[0].Name != "log" || deps[1].Name != "key" {
		t.Errorf("got %v", deps)
	}
	if _, err := PodSpec(read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, spec: {containers: none}}`),
		[]string{"spec"}); err == nil || !strings.Contains(err.Error(), `"spec"`) {
		t.Errorf("got %v, want an error that names the place", err)
	}
}

func TestDefaultServiceAccountIsNoDependency(t *testing.T) {
	obj := read(t, `{apiVersion: v1, kind: Pod, spec: {serviceAccountName: default}}`)
	template, err := PodTemplate(obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	if deps := PodDependencies(template, "ns"); len(deps) != 0 {
		t.Errorf("got %v", deps)
	}
}
