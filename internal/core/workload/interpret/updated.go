package interpret

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Fields that the hub adds to a reflected status: the generation of the member's object, the generation of the template
// from which it was created and, while its pods are not those of that template, the ReleaseRevision that they are from.
// On the hub observedGeneration is meaningful only with the first two. The last one is the generation of the template
// that the counters are about, while the controller has not observed the object.
const (
	GenerationField         = "generation"
	TemplateGenerationField = "resourceTemplateGeneration"
	FormerRevisionField     = "formerRevision"
	CountedGenerationField  = "countedTemplateGeneration"
)

// WithOrigin adds to a reflected status what it is about.
func WithOrigin(status map[string]any, observed *unstructured.Unstructured) map[string]any {
	status[GenerationField] = observed.GetGeneration()
	annotations := observed.GetAnnotations()
	// Without a valid annotation it is unknown whether the member is up to date.
	if n, err := strconv.ParseInt(annotations[workv1alpha2.TemplateGenerationAnnotation], 10, 64); err == nil {
		status[TemplateGenerationField] = n
	}
	if name := annotations[wellknown.FormerRevisionAnnotation]; name != "" {
		status[FormerRevisionField] = name
	}
	return status
}

// KeepCounted adds to a reflected status which generation of the template its counters are about, if its controller has
// not observed the object: that of the last report. A stage of a release changes the partition alone, and the pods that
// were updated before it still are.
func KeepCounted(status, last map[string]any) {
	if n, ok := counted(last); ok && !observed(status) &&
		fields.Text(status, FormerRevisionField) == fields.Text(last, FormerRevisionField) {
		status[CountedGenerationField] = n
	}
}

// counted returns the generation of the template that the counters of a status are about; false if it is unknown.
func counted(status map[string]any) (int64, bool) {
	if observed(status) {
		return fields.Whole(status[TemplateGenerationField])
	}
	return fields.Whole(status[CountedGenerationField])
}

// CountsUpdated reports whether the updated pods in a status have the pods of this generation of the template. They do
// not if the cluster has an older generation, if a release keeps another revision there, or if its controller has not
// observed the object and was at an older generation before.
func CountsUpdated(status map[string]any, generation int64) bool {
	if fields.Text(status, FormerRevisionField) != "" {
		return false
	}
	n, known := counted(status)
	return Current(status, generation) || known && n >= generation
}

// Current reports whether a status is of an object that was made from this generation of the template, and that its
// controller has observed.
func Current(status map[string]any, generation int64) bool {
	of, reports := fields.Whole(status[TemplateGenerationField])
	return observed(status) && (!reports || of >= generation)
}

// CountsManifest reports whether the updated pods in a status have the pods of the manifest of a Work. Its replicas and
// its partition may be others.
func CountsManifest(status map[string]any, manifest *unstructured.Unstructured) bool {
	of, reports := fields.Whole(status[TemplateGenerationField])
	annotations := manifest.GetAnnotations()
	return observed(status) && (!reports ||
		strconv.FormatInt(of, 10) == annotations[workv1alpha2.TemplateGenerationAnnotation] &&
			fields.Text(status, FormerRevisionField) == annotations[wellknown.FormerRevisionAnnotation])
}

// observed reports whether the controller has observed the generation of the object that a status is about. It is true
// if the status does not tell.
func observed(status map[string]any) bool {
	seen, ok := ObservedGeneration(status)
	return !ok || seen >= fields.Number(status, GenerationField)
}

// ObservedGeneration returns the observed generation in a status. Argo Rollouts write it as text, and old versions of
// them a hash, which is none.
func ObservedGeneration(status map[string]any) (n int64, ok bool) {
	if n, err := strconv.ParseInt(fields.Text(status, "observedGeneration"), 10, 64); err == nil {
		return n, true
	}
	return fields.Whole(status["observedGeneration"])
}

// Pods are the numbers of pods that a cluster reports of a workload. Updated ones have the latest pods of the object in
// the cluster, of whatever revision: see CountsUpdated and CountsManifest.
type Pods struct{ All, Updated, Ready, Available int64 }

// PodsOf reads the numbers in a status. ok is false for a kind that does not count updated pods.
func PodsOf(gk schema.GroupKind, status map[string]any) (p Pods, ok bool) {
	c, known := kind.Lookup(gk).Counters, true
	if c.Updated == "" {
		c = kind.OfReplicas
		_, known = fields.Whole(status[c.Updated])
	}
	return Pods{fields.Number(status, c.All), fields.Number(status, c.Updated), fields.Number(status, c.Ready),
		fields.Number(status, c.Available)}, known
}
