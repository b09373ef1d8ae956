package failover

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

// Facts are the facts about the template and the policy of a binding that a plan depends on.
type Facts struct {
	// Volumes is true if the template uses persistent volumes; MoveVolumes if it may move nevertheless.
	Volumes, MoveVolumes bool
	// Paused is true if spec.paused of the template is true: a new copy would start no pods.
	Paused bool
	// OwnScale is true if each member decides how many replicas it runs.
	OwnScale bool
	// RunEnded is true if the template runs once and has ended, so that it needs no cluster.
	RunEnded bool
	// FailbackAfter is the stabilization window of a failback; 0 is no failback.
	FailbackAfter time.Duration
}

// FactsOf reads the template of a binding and the annotations of its policy. A nil template has no volumes.
func FactsOf(b workv1alpha2.Binding, template *unstructured.Unstructured, policy map[string]string) Facts {
	f := Facts{MoveVolumes: policy[wellknown.MoveVolumesAnnotation] == "true"}
	if after, err := time.ParseDuration(policy[wellknown.FailbackAfterAnnotation]); err == nil && after > 0 {
		f.FailbackAfter = after
	}
	if template != nil {
		f.Volumes, f.OwnScale = hasVolumes(template), deschedule.ScaledByMembers(template)
		f.RunEnded = dispatch.RunEndOf(b, template) != ""
		f.Paused, _, _ = unstructured.NestedBool(template.Object, "spec", "paused")
	}
	return f
}

// hasVolumes reports whether a template is a persistent volume or a claim, has claim templates, or mounts a claim.
func hasVolumes(template *unstructured.Unstructured) bool {
	switch template.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}:
		return true
	}
	return hasClaims(template.Object["spec"])
}

// hasClaims looks for volumes that mount a claim, for claim templates, and for the storage of kinds of operators,
// wherever a kind keeps them. Claims of generic ephemeral volumes hold no data that outlives their pod.
func hasClaims(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key != "ephemeral" && (isClaim(key, value) || hasClaims(value)) {
				return true
			}
		}
		return v["type"] == "persistent-claim"
	case []any:
		return slices.ContainsFunc(v, hasClaims)
	}
	return false
}

// isClaim reports whether a field asks for persistent storage. Operators name such fields volumeClaimTemplate,
// dataVolumeClaimSpec, storageClassName, or storage with a size.
func isClaim(key string, value any) bool {
	list, isList := value.([]any)
	storage, _ := value.(map[string]any)
	switch {
	case value == nil || value == "" || isList && len(list) == 0:
		return false
	case key == "persistentVolumeClaim", key == "storageClassName", key == "storageClass",
		strings.Contains(key, "olumeClaimTemplate"), strings.Contains(key, "olumeClaimSpec"):
		return true
	}
	return strings.HasSuffix(strings.ToLower(key), "storage") && storage["size"] != nil
}
