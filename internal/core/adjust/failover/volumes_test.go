package failover

import (
	"testing"
	"time"

	"github.com/argosy-io/argosy/api/wellknown"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestPersistentVolumesAreFoundInEveryKind(t *testing.T) {
	for text, want := range map[string]bool{
		"{kind: Deployment, spec: {template: {spec: {volumes: [{name: a, emptyDir: {}}]}}}}":                                                      false,
		"{kind: Deployment, spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: b}}]}}}}":                             true,
		"{kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: a}}]}}":                                                              true,
		"{kind: StatefulSet, spec: {volumeClaimTemplates: []}}":                                                                                   false,
		"{kind: UnitedDeployment, spec: {template: {statefulSetTemplate: {spec: {volumeClaimTemplates: [{metadata: {name: a}}]}}}}}":              true,
		"{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: b}}]}}}}}}":         true,
		"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {}}":                                                                                 true,
		"{apiVersion: v1, kind: ConfigMap, data: {persistentVolumeClaim: text}}":                                                                  false,
		"{kind: StatefulSet, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}, template: {spec: {containers: [{name: main}]}}}}": false,
		"{kind: Deployment, spec: {template: {spec: {volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: s}}}}]}}}}":   false,
		"{kind: Prometheus, spec: {storage: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1Gi}}}}}}}":                             true,
		"{kind: PostgresCluster, spec: {instances: [{dataVolumeClaimSpec: {accessModes: [ReadWriteOnce]}}]}}":                                     true,
		"{kind: Kafka, spec: {kafka: {storage: {type: jbod, volumes: [{id: 0, type: persistent-claim, size: 1Gi}]}}}}":                            true,
		"{kind: Cluster, spec: {instances: 3, storage: {size: 1Gi}, walStorage: {size: 1Gi}}}":                                                    true,
		"{kind: Cluster, spec: {volumes: {storageClassName: fast}}}":                                                                              true,
		"{kind: App, spec: {storage: memory, resources: {requests: {storage: 1Gi}}, storageClassName: ''}}":                                       false,
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got := FactsOf(nil, u, nil).Volumes; got != want {
			t.Errorf("%s has volumes: %t, want %t", text, got, want)
		}
	}
}

func TestPolicyAnnotationsAreRead(t *testing.T) {
	f := FactsOf(nil, nil, map[string]string{wellknown.MoveVolumesAnnotation: "true",
		wellknown.FailbackAfterAnnotation: "10m"})
	if !f.MoveVolumes || f.FailbackAfter != 10*time.Minute {
		t.Errorf("%+v", f)
	}
	if f := FactsOf(nil, nil, map[string]string{wellknown.MoveVolumesAnnotation: "yes",
		wellknown.FailbackAfterAnnotation: "-1s"}); f.MoveVolumes ||
		f.FailbackAfter != 0 {
		t.Errorf("%+v", f)
	}
}
