package interpret

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// CleansUpField in a reported status is true if the member deletes the finished object by its own default, although the
// hub did not request it, as for EphemeralJobs or by a setting of the Workflow controller.
const CleansUpField = "deletedWhenFinished"

// RunOfField in the reported status of a kind that runs once is the UID of the template from which the object was
// created. A later template of the same name needs its own run.
const RunOfField = "runOf"

// WithRun adds these fields to the reported status of a kind that runs once. It may modify its argument. An object that
// its member deletes gets a status even if it has none yet, because it may finish before the next look.
func WithRun(status map[string]any, observed *unstructured.Unstructured) map[string]any {
	_, ok := onces[observed.GroupVersionKind().GroupKind()]
	if !ok || status == nil && !CleansUp(observed) {
		return status
	}
	if status == nil {
		status = map[string]any{}
	}
	if uid := observed.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation]; uid != "" {
		status[RunOfField] = uid
	}
	if CleansUp(observed) {
		status[CleansUpField] = true
	}
	return status
}

// OfRun reports whether a status is of an object from that template. It is true if the status does not name its
// template.
func OfRun(status map[string]any, template string) bool {
	of, _ := status[RunOfField].(string)
	return of == "" || template == "" || of == template
}

// once describes a kind that runs once: recreating an object runs it again.
type once struct {
	// over reports whether it has finished, by its current or reported status.
	over func(status map[string]any) bool
	// ttl are the paths of the TTL seconds. For a Workflow they depend on its result.
	ttl []string
	// standard is the TTL if none is set; negative means never.
	standard int64
	// ended is the status field with the end time.
	ended string
	// swept is true if the hub's API server deletes finished templates of the kind.
	swept bool
}

var onces = func() map[schema.GroupKind]once {
	reached := func(path []string, phases ...string) func(map[string]any) bool {
		return func(status map[string]any) bool { return slices.Contains(phases, fields.Text(status, path...)) }
	}
	conditioned := func(types ...string) func(map[string]any) bool {
		return func(status map[string]any) bool {
			return slices.ContainsFunc(fields.Objects(status, "conditions"), func(c map[string]any) bool {
				return c["status"] == "True" && slices.Contains(types, fields.Text(c, "type"))
			})
		}
	}
	completed := func(status map[string]any) bool { return fields.Text(status, "completionTime") != "" }
	either := func(a, b func(map[string]any) bool) func(map[string]any) bool {
		return func(status map[string]any) bool { return a(status) || b(status) }
	}

	phase := []string{"phase"}
	job := conditioned("Complete", "Failed")
	training := once{over: conditioned("Succeeded", "Failed"), standard: -1}
	pulled := once{over: completed, ttl: []string{"spec", "completionPolicy", "ttlSecondsAfterFinished"}, standard: -1,
		ended: "completionTime"}
	return map[schema.GroupKind]once{
		{Group: "batch", Kind: "Job"}: {over: job, ttl: []string{"spec", "ttlSecondsAfterFinished"}, standard: -1,
			swept: true},

		{Group: "apps.kruise.io", Kind: "BroadcastJob"}: {
			over: either(job, reached(phase, "completed", "failed")),
			ttl:  pulled.ttl, standard: -1, ended: "completionTime",
		},
		{Group: "apps.kruise.io", Kind: "ImagePullJob"}:     pulled,
		{Group: "apps.kruise.io", Kind: "ImageListPullJob"}: pulled,
		{Group: "apps.kruise.io", Kind: "ContainerRecreateRequest"}: {
			over: either(completed, reached(phase, "Succeeded", "Failed", "Completed")),
			ttl:  []string{"spec", "ttlSecondsAfterFinished"}, standard: -1, ended: "completionTime",
		},
		{Group: "apps.kruise.io", Kind: "EphemeralJob"}: {
			over: either(completed, reached(phase, "Succeeded", "Failed")),
			ttl:  []string{"spec", "ttlSecondsAfterFinished"}, standard: 1800, ended: "completionTime",
		},
		{Group: "argoproj.io", Kind: "Workflow"}: {
			over: reached(phase, "Succeeded", "Failed", "Error"),
			ttl:  []string{"spec", "ttlStrategy"}, standard: -1, ended: "finishedAt",
		},

		// For these kinds the member's deadlines apply, as in Karmada. They are not run again either.
		{Group: "batch.volcano.sh", Kind: "Job"}: {over: reached([]string{"state", "phase"}, "Completed",
			"Failed", "Terminated"), standard: -1},
		{Group: "kubeflow.org", Kind: "PyTorchJob"}: training,
		{Group: "kubeflow.org", Kind: "TFJob"}:      training,
		{Group: "kubeflow.org", Kind: "MPIJob"}:     training,
		{Group: "ray.io", Kind: "RayJob"}: {over: reached([]string{"jobDeploymentStatus"}, "Complete",
			"Failed"), standard: -1},
		{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}: {over: reached([]string{"applicationState", "state"},
			"COMPLETED", "FAILED"), standard: -1},
	}
}()

// KeepsStatus reports whether the kind has no status subresource and a controller writes its status, so that the hub
// may write the status of a template. For other kinds without a subresource users write it.
func KeepsStatus(kind schema.GroupKind) bool { return workflows[kind] }

// Finished reports whether an object of a kind that runs once has finished, by its current or reported status.
// Recreating it would run it again.
func Finished(kind schema.GroupKind, status map[string]any) bool {
	o, ok := onces[kind]
	return ok && o.over(status)
}

// RunsOnce reports whether objects of the kind run once, so that recreating one runs it again.
func RunsOnce(kind schema.GroupKind) bool {
	_, ok := onces[kind]
	return ok
}

// CleansUp reports whether the member deletes the object after it has finished.
func CleansUp(observed *unstructured.Unstructured) bool {
	if observed == nil {
		return false
	}
	o, ok := onces[observed.GroupVersionKind().GroupKind()]
	if !ok {
		return false
	}
	if o.standard >= 0 {
		return true
	}
	return o.ttl != nil && fields.Value(observed.Object, o.ttl...) != nil
}

// Expiry returns the time at which the TTL of a finished template ends. ok is false if it has not finished, has no TTL,
// or if the API server deletes it.
func Expiry(template *unstructured.Unstructured) (when time.Time, ok bool) {
	o, ok := onces[template.GroupVersionKind().GroupKind()]
	status, _ := template.Object["status"].(map[string]any)
	if !ok || o.swept || o.ended == "" || !o.over(status) {
		return time.Time{}, false
	}
	end, _ := status[o.ended].(string)
	ended, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return time.Time{}, false
	}
	seconds := o.standard
	switch ttl := fields.Value(template.Object, o.ttl...).(type) {
	case int64:
		seconds = ttl
	case float64:
		seconds = int64(ttl)
	case map[string]any:
		how := "secondsAfterFailure"
		if status["phase"] == "Succeeded" {
			how = "secondsAfterSuccess"
		}
		for _, key := range []string{how, "secondsAfterCompletion"} {
			if n, ok := ttl[key].(int64); ok {
				seconds = n
				break
			}
		}
	}
	if seconds < 0 {
		return time.Time{}, false
	}
	return ended.Add(time.Duration(seconds) * time.Second), true
}
