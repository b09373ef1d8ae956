package interpret

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// CleansUpField in a reported status is true if the member deletes the object by itself when it has finished, though
// the hub did not ask for it: by a default of its own, as EphemeralJob has one, or of its Workflow controller.
const CleansUpField = "deletedWhenFinished"

// RunOfField in the reported status of what runs once is the UID of the template that the object was made from: a
// template of the same name that comes later wants a run of its own.
const RunOfField = "runOf"

// WithRun is the status that is reported of a member's object, with these fields if it is one that runs once; it may
// change the one given. One that its member cleans up has a status though it says nothing yet: it may finish before
// anybody looks again.
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

// OfRun says whether a reported status is of an object of that template, as far as it says.
func OfRun(status map[string]any, template string) bool {
	of, _ := status[RunOfField].(string)
	return of == "" || template == "" || of == template
}

// once is a kind that runs once: whoever makes its object anew runs it again.
type once struct {
	// over says whether it has finished, by its status as it is or as it was reported.
	over func(status map[string]any) bool
	// ttl is where the seconds stand for which it is kept afterwards; of a Workflow they depend on how it ended.
	ttl []string
	// standard is the ttl in force when none is set; negative is for ever.
	standard int64
	// ended is the field of the status with the time of its end.
	ended string
	// swept says that the hub's own API server cleans up templates of the kind.
	swept bool
}

var onces = func() map[schema.GroupKind]once {
	text := func(status map[string]any, path ...string) string {
		s, _ := at(status, path).(string)
		return s
	}
	reached := func(path []string, phases ...string) func(map[string]any) bool {
		return func(status map[string]any) bool { return slices.Contains(phases, text(status, path...)) }
	}
	conditioned := func(types ...string) func(map[string]any) bool {
		return func(status map[string]any) bool {
			conditions, _ := status["conditions"].([]any)
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["status"] == "True" && slices.Contains(types, text(condition, "type"))
			})
		}
	}
	completed := func(status map[string]any) bool { return text(status, "completionTime") != "" }
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

		// Of these the member's own deadlines stay in force, as in Karmada; they are not run again either.
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

// KeepsStatus says whether objects of the kind have their status among their own fields, with no subresource for it,
// and a controller writes it: then the hub may write it on a template as well. Of other such kinds it is what users
// write.
func KeepsStatus(kind schema.GroupKind) bool { return workflows[kind] }

// Finished says whether an object of the kind runs once and is over, by its status, as it is or as it was reported. It
// runs no more; made anew it would run again.
func Finished(kind schema.GroupKind, status map[string]any) bool {
	o, ok := onces[kind]
	return ok && o.over(status)
}

// RunsOnce says whether objects of the kind run once, so that one made anew runs again.
func RunsOnce(kind schema.GroupKind) bool {
	_, ok := onces[kind]
	return ok
}

// CleansUp says whether a member's object will be deleted there when it has finished.
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
	return o.ttl != nil && at(observed.Object, o.ttl) != nil
}

// Expiry is when a template that has finished has lived its ttl; ok is false while it has not finished, if it has none,
// or if the hub's API server sees to it.
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
	switch ttl := at(template.Object, o.ttl).(type) {
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
