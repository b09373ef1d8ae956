package kruise

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	// As the API server decodes: whole numbers.
	data, err := u.MarshalJSON()
	if err != nil {
		if data, err = yaml.YAMLToJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

const cloneSetText = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: default, uid: "1"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}]
`

const statefulSetText = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main, image: "db:1"}]
`

func TestDefaultsFillUnsetFields(t *testing.T) {
	d := Defaulter{
		Template: func(p *corev1.PodTemplateSpec) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways },
		Claim:    func(*corev1.PersistentVolumeClaim) {},
	}
	for text, want := range map[string]map[string]any{
		strings.Replace(cloneSetText, "v1alpha1", "v1beta1", 1): {
			"replicas": int64(1), "updateStrategy.type": "RollingUpdate", "updateStrategy.rollingUpdate.partition": int64(0),
			"updateStrategy.rollingUpdate.podUpdatePolicy": "ReCreate", "updateStrategy.rollingUpdate.maxUnavailable": "20%",
		},
		sidecarSetText: {
			"revisionHistoryLimit": int64(10), "updateStrategy.type": "RollingUpdate", "updateStrategy.partition": int64(0),
			"updateStrategy.maxUnavailable": int64(1),
		},
		"apiVersion: apps.kruise.io/v1alpha1\nkind: BroadcastJob\nspec: {template: {}}": {
			"parallelism": int64(2147483647), "completionPolicy.type": "Always", "failurePolicy.type": "FailFast",
			"template.spec.restartPolicy": "Always",
		},
		"apiVersion: apps.kruise.io/v1beta1\nkind: UnitedDeployment\nspec: {template: {deploymentTemplate: {spec: {template: {}}}}}": {
			"revisionHistoryLimit": int64(10), "updateStrategy.type": "Manual",
			"template.deploymentTemplate.spec.template.spec.restartPolicy": "Always",
		},
		cloneSetText: {
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "template.spec.restartPolicy": "Always",
			"updateStrategy.type": "ReCreate", "updateStrategy.partition": int64(0), "updateStrategy.maxUnavailable": "20%",
			"updateStrategy.maxSurge": int64(0),
		},
		statefulSetText: {
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "template.spec.restartPolicy": "Always",
			"podManagementPolicy": "OrderedReady",
			"updateStrategy.type": "RollingUpdate", "updateStrategy.rollingUpdate.partition": int64(0),
			"updateStrategy.rollingUpdate.maxUnavailable":  int64(1),
			"updateStrategy.rollingUpdate.podUpdatePolicy": "ReCreate", "updateStrategy.rollingUpdate.minReadySeconds": int64(0),
			"persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
			"persistentVolumeClaimRetentionPolicy.whenScaled":  "Retain",
		},
	} {
		u := object(t, text)
		if err := d.Default(u); err != nil {
			t.Fatal(err)
		}
		for path, v := range want {
			got, _, err := unstructured.NestedFieldNoCopy(u.Object, append([]string{"spec"}, strings.Split(path, ".")...)...)
			if err != nil || got != v {
				t.Errorf("%s: %s is %v, %v, want %v", u.GetKind(), path, got, err, v)
			}
		}
		again := u.DeepCopy()
		if err := d.Default(again); err != nil {
			t.Fatal(err)
		}
		if a, b := again.Object["spec"], u.Object["spec"]; !equalJSON(t, a, b) {
			t.Errorf("%s: defaulting twice changes it: %v, before %v", u.GetKind(), a, b)
		}
	}
	zero := object(t, strings.Replace(cloneSetText, "spec:\n",
		"spec:\n  replicas: 0\n  updateStrategy: {maxUnavailable: 1}\n", 1))
	if err := d.Default(zero); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(zero.Object, "spec", "replicas"); n != 0 {
		t.Errorf("replicas 0 became %d", n)
	}
	if n, _, _ := unstructured.NestedInt64(zero.Object, "spec", "updateStrategy", "maxUnavailable"); n != 1 {
		t.Errorf("maxUnavailable 1 became %d", n)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err1 := yaml.Marshal(a)
	y, err2 := yaml.Marshal(b)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

const sidecarSetText = `
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: mesh}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - {name: log, image: "log:1"}
`
