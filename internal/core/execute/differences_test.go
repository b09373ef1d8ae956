package execute

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestDifferencesListAllDriftedFields(t *testing.T) {
	read := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	const head = "{apiVersion: apps/v1, kind: Deployment, metadata: "
	for name, c := range map[string]struct{ desired, observed, want string }{
		"what the member defaults is none": {
			head + "{name: a}, spec: {paused: false, template: {spec: {containers: [{name: c, image: x}]}}}}",
			head + "{name: a, uid: u}, spec: {replicas: 1, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: side, image: s}, {name: c, image: x}]}}}, status: {replicas: 1}}",
			"",
		},
		"each field by itself": {
			head + "{name: a, labels: {x: '1', z: '2'}}, spec: {replicas: 3, template: {spec: {containers: [{name: c, image: x, args: [a, b]}, {name: new}]}}}}",
			head + "{name: a, labels: {x: '0'}}, spec: {replicas: 2, template: {spec: {containers: [{name: c, image: w, args: [a]}]}}}}",
			"metadata.labels.x 0→1, metadata.labels.z <nil>→2, spec.replicas 2→3, spec.template.spec.containers.0.args [a]→[a b], " +
				"spec.template.spec.containers.0.image w→x, spec.template.spec.containers.1 <nil>→map[name:new]",
		},
		"quantities by value": {
			head + "{name: a}, spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: 0.5, memory: 1Gi}}}]}}}}",
			head + "{name: a}, spec: {template: {spec: {containers: [{name: c, resources: {limits: {cpu: 500m, memory: 2Gi}}}]}}}}",
			"spec.template.spec.containers.0.resources.limits.memory 2Gi→1Gi",
		},
		"plain strings of a Secret are data": {
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}",
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired, observed := read(c.desired), read(c.observed)
			var output []string
			for _, d := range Differences(desired, observed) {
				output = append(output, fmt.Sprintf("%s %v→%v", d.Path, d.Have, d.Want))
			}
			got := strings.Join(output, ", ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, differs := difference(desired, observed); differs != (got != "") {
				t.Errorf("Plan says %v", differs)
			}
		})
	}
}
