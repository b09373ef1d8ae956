package kind

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Scaler describes a kind whose objects set the replicas of the workloads that they refer to.
type Scaler struct {
	// Version is the one in which its objects are read.
	Version string
	// Min and Max are the paths of the bounds, DefaultMin and DefaultMax their values where an object has none.
	Min, Max               []string
	DefaultMin, DefaultMax int64
	// PausedAt is the annotation with the replicas that an object keeps instead of scaling; empty if there is none.
	PausedAt string
}

// Autoscalers set the replicas in members.
var (
	_ = Register(Kind{GroupKind: groupKind("autoscaling", "HorizontalPodAutoscaler"), Divides: DividesBounds,
		Refers: &References{Paths: scaleTargetRef},
		Scaler: &Scaler{Version: "v2", Min: []string{"spec", "minReplicas"}, Max: []string{"spec", "maxReplicas"},
			DefaultMin: 1}})
	// The operator of KEDA makes a HorizontalPodAutoscaler for each of these.
	_ = Register(Kind{GroupKind: groupKind("keda.sh", "ScaledObject"), Divides: DividesBounds,
		Refers: &References{Paths: scaleTargetRef, Default: groupKind(apps, "Deployment")},
		Scaler: &Scaler{Version: "v1alpha1", Min: []string{"spec", "minReplicaCount"},
			Max: []string{"spec", "maxReplicaCount"}, DefaultMax: 100, PausedAt: "autoscaling.keda.sh/paused-replicas"}})

	// A FederatedHPA acts on the hub.
	_ = Register(Kind{GroupKind: groupKind("autoscaling.karmada.io", "FederatedHPA"),
		Refers: &References{Paths: scaleTargetRef}})

	scaleTargetRef = [][]string{{"spec", "scaleTargetRef"}}
)

// Scalers returns the kinds that scale workloads, sorted, in the versions in which their objects are read.
func Scalers() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, gk := range Select(func(k *Kind) bool { return k.Scaler != nil }) {
		kinds = append(kinds, gk.WithVersion(Lookup(gk).Scaler.Version))
	}
	return kinds
}

// Target returns the workload that an object of the kind names; ok is false if it names none.
func (k *Kind) Target(object map[string]any) (workload schema.GroupKind, name string, ok bool) {
	for _, path := range k.WorkloadPaths() {
		ref := fields.Object(object, path...)
		if ref == nil {
			continue
		}
		workload.Group = k.Refers.Default.Group
		if text := fields.Text(ref, "apiVersion"); text != "" {
			gv, err := schema.ParseGroupVersion(text)
			if err != nil {
				return schema.GroupKind{}, "", false
			}
			workload.Group = gv.Group
		}
		workload.Kind, name = cmp.Or(fields.Text(ref, "kind"), k.Refers.Default.Kind), fields.Text(ref, "name")
		return workload, name, workload.Kind != "" && name != ""
	}
	return workload, "", false
}
