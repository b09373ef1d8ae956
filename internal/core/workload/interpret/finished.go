package interpret

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
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
	if !RunsOnce(observed.GroupVersionKind().GroupKind()) || status == nil && !CleansUp(observed) {
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

// KeepsStatus reports whether the kind has no status subresource and a controller writes its status, so that the hub
// may write the status of a template. For other kinds without a subresource users write it.
func KeepsStatus(gk schema.GroupKind) bool { return kind.Lookup(gk).StatusIsShared }

// Finished reports whether an object of a kind that runs once has finished, by its current or reported status.
// Recreating it would run it again.
func Finished(gk schema.GroupKind, status map[string]any) bool {
	once := kind.Lookup(gk).Once
	return once != nil && once.Over(status)
}

// EndOfRun returns the part of a status that says how an object of a kind that runs once has finished; nil if it has
// not.
func EndOfRun(gk schema.GroupKind, status map[string]any) map[string]any {
	if once := kind.Lookup(gk).Once; once != nil {
		return once.End(status)
	}
	return nil
}

// RunsOnce reports whether objects of the kind run once, so that recreating one runs it again.
func RunsOnce(gk schema.GroupKind) bool { return kind.Lookup(gk).Once != nil }

// CleansUp reports whether the member deletes the object after it has finished.
func CleansUp(observed *unstructured.Unstructured) bool {
	if observed == nil {
		return false
	}
	once := kind.Facts(observed).Once
	return once != nil && (once.Standard >= 0 || once.TTL != nil && fields.Value(observed.Object, once.TTL...) != nil)
}

// Expiry returns the time at which the TTL of a finished template ends. ok is false if it has not finished, has no TTL,
// or if the API server deletes it.
func Expiry(template *unstructured.Unstructured) (when time.Time, ok bool) {
	once := kind.Facts(template).Once
	status, _ := template.Object["status"].(map[string]any)
	if once == nil || once.Swept || once.Ended == "" || !once.Over(status) {
		return time.Time{}, false
	}
	end, _ := status[once.Ended].(string)
	ended, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return time.Time{}, false
	}
	seconds := once.Standard
	switch ttl := fields.Value(template.Object, once.TTL...).(type) {
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
