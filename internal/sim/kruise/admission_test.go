package kruise

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestInvalidObjectsAreRefusedAsByTheRealManager(t *testing.T) {
	pods := map[string]*corev1.Pod{
		"ours": {ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "1",
			Controller: new(true)}}}},
		"theirs": {ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "2",
			Controller: new(true)}}}},
		"going": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}},
	}
	getPod := func(_, name string) (*corev1.Pod, error) {
		if p := pods[name]; p != nil {
			return p, nil
		}
		return nil, errors.New("pods \"" + name + "\" not found")
	}
	find := Finder{
		Pod: getPod,
		SidecarRevision: func(_, version, _ string) error {
			if version == "here" {
				return nil
			}
			return errors.New("not here")
		},
		SidecarSets: func() ([]unstructured.Unstructured, error) {
			other := object(t, strings.Replace(sidecarSetText, "name: log", "name: taken", 1))
			other.SetName("other")
			return []unstructured.Unstructured{*other}, nil
		},
	}
	newer := func(text string) string { return strings.Replace(text, "v1alpha1", "v1beta1", 1) }
	spec := func(text, with string) string { return strings.Replace(text, "spec:\n", "spec:\n"+with, 1) }
	for _, tt := range []struct {
		name, text, old, want string
	}{
		{"a plain CloneSet passes", cloneSetText, "", ""},
		{"a plain StatefulSet passes", statefulSetText, "", ""},
		{"a plain CloneSet of v1beta1 passes", newer(cloneSetText), "", ""},
		{"the update type of v1alpha1", newer(spec(cloneSetText, "  updateStrategy: {type: InPlaceIfPossible}\n")), "",
			"spec.updateStrategy.type: Invalid value: \"InPlaceIfPossible\": must be 'RollingUpdate' or 'OnDelete'"},
		{"no budget in v1beta1", newer(spec(cloneSetText,
			"  updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 0}}\n")), "",
			"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"0\": maxUnavailable and maxSurge should not both be less than 1"},
		{"a pod to delete that is nowhere, in v1beta1",
			newer(spec(cloneSetText, "  scaleStrategy: {podsToDelete: [gone]}\n")), "", ""},
		{"a pod to delete that is named twice, in v1beta1",
			newer(spec(cloneSetText, "  scaleStrategy: {podsToDelete: [gone, gone]}\n")), "", "Duplicate value"},
		{"a plain SidecarSet passes", sidecarSetText, "", ""},
		{"a SidecarSet for everything", strings.Replace(sidecarSetText, "{matchLabels: {app: web}}", "{}", 1), "",
			"no selector defined for SidecarSet"},
		{"a SidecarSet of nothing", sidecarSetText[:strings.Index(sidecarSetText, "  containers:")], "",
			"no initContainer or container defined"},
		{"a revision that is there", spec(sidecarSetText, "  injectionStrategy: {revision: {customVersion: here}}\n"), "",
			""},
		{"a revision of another cluster",
			spec(sidecarSetText, "  injectionStrategy: {revision: {customVersion: elsewhere}}\n"), "",
			"spec.injectionStrategy.revision: Invalid value: \"elsewhere\": Cannot find specific ControllerRevision, err: not here"},
		{"a container that another has", strings.Replace(sidecarSetText, "name: log", "name: taken", 1), "",
			"is in conflict with sidecarset other"},
		{"such a container for other pods", strings.Replace(strings.Replace(sidecarSetText, "name: log", "name: taken", 1),
			"app: web", "app: shop", 1), "", ""},
		{"no budget at all", spec(cloneSetText, "  updateStrategy: {maxUnavailable: 0, maxSurge: 0}\n"), "",
			"maxUnavailable and maxSurge should not both be less than 1"},
		{"a percentage that rounds to none", spec(cloneSetText, "  updateStrategy: {maxUnavailable: 0%}\n"), "",
			"maxUnavailable and maxSurge should not both be less than 1"},
		{"no budget, but no pods either", spec(cloneSetText, "  replicas: 0\n  updateStrategy: {maxUnavailable: 0}\n"), "",
			""},
		{"a number as text", spec(cloneSetText, "  updateStrategy: {partition: \"5\"}\n"), "", "partition"},
		{"the update type of v1beta1", spec(cloneSetText, "  updateStrategy: {type: RollingUpdate}\n"), "",
			"must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'"},
		{"a deadline too early", spec(cloneSetText, "  minReadySeconds: 10\n  progressDeadlineSeconds: 10\n"), "",
			"must be greater than minReadySeconds"},
		{"an own pod to delete", spec(cloneSetText, "  scaleStrategy: {podsToDelete: [ours]}\n"), "", ""},
		{"a pod to delete that is nowhere", spec(cloneSetText, "  scaleStrategy: {podsToDelete: [gone]}\n"), "",
			"find pod gone failed"},
		{"a pod to delete that was named before", spec(cloneSetText, "  scaleStrategy: {podsToDelete: [gone]}\n"),
			spec(cloneSetText, "  scaleStrategy: {podsToDelete: [gone]}\n"), ""},
		{"a pod to delete that is terminating", spec(cloneSetText, "  scaleStrategy: {podsToDelete: [going]}\n"), "",
			"already terminating"},
		{"a pod to delete of another", spec(cloneSetText, "  scaleStrategy: {podsToDelete: [theirs]}\n"), "",
			"owner is not this CloneSet"},
		{"another selector", strings.ReplaceAll(cloneSetText, "app: web", "app: shop"), cloneSetText,
			"updates to cloneset spec for fields other than"},
		{"a selector that misses the template", strings.Replace(cloneSetText, "app: web", "app: shop", 1), "",
			"`selector` does not match template `labels`"},
		{"an image in place without the gate",
			spec(statefulSetText, "  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}\n"), "",
			"must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceIfPossible"},
		{"several down in order", spec(statefulSetText, "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}\n"), "",
			"can only work with Parallel PodManagementPolicyType"},
		{"several down in parallel", spec(statefulSetText,
			"  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}\n"), "", ""},
		{"another service", spec(statefulSetText, "  serviceName: other\n"), statefulSetText,
			"updates to statefulset spec for fields other than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var old *unstructured.Unstructured
			if tt.old != "" {
				old = object(t, tt.old)
			}
			got := Validate(object(t, tt.text), old, find).ToAggregate()
			switch {
			case tt.want == "" && got != nil:
				t.Errorf("refused: %v", got)
			case tt.want != "" && (got == nil || !strings.Contains(got.Error(), tt.want)):
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
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
