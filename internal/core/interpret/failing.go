package interpret

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/fields"
)

// FailureSettle is how long an object may be without progress while its controller says that it fails. OpenKruise says
// so after every error: of an ordinary conflict that it retries at once as well as of a quota that stays.
const FailureSettle = 30 * time.Second

const (
	// failureSkew is how much a member's clock and the hub's may differ.
	failureSkew = 5 * time.Second
	// failureShown is how many characters of a controller's message are repeated.
	failureShown = 300
	// conflict is in the message of an API server that refuses a write which was made from an object that has changed
	// since.
	conflict = "the object has been modified"
)

// failureKinds are the conditions by which a controller says that it fails, by kind.
var failureKinds = map[schema.GroupKind][]string{
	{Group: "apps.kruise.io", Kind: "CloneSet"}:         {"FailedScale", "FailedUpdate"},
	{Group: "apps.kruise.io", Kind: "StatefulSet"}:      {"FailedCreatePod", "FailedUpdatePod"},
	{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: {"SubsetFailure"},
}

// failure is a condition by which a controller says that it fails.
type failure struct {
	kind, message string
	at            time.Time // when it was set
}

// failureNamed is the condition of that type, if it says that the controller of the object fails; nil otherwise.
func failureNamed(observed *unstructured.Unstructured, kind string) *failure {
	all, _ := fields.At(observed.Object, "status", "conditions").([]any)
	for _, c := range all {
		c, _ := c.(map[string]any)
		if fields.Text(c, "type") == kind && fields.Text(c, "status") == "True" {
			at, _ := time.Parse(time.RFC3339, fields.Text(c, "lastTransitionTime"))
			return &failure{kind, fields.Text(c, "message"), at}
		}
	}
	return nil
}

// failureOf is what the controller of an object says of its failing; nil if it says nothing that counts. fresh says
// whether the failure began after the object moved last.
//
// OpenKruise leaves such a condition True after the error is over, until another part of the status changes, and
// neither dates it anew nor replaces its message by that of the next error. So a failure to make pods counts while some
// are missing that wait for nothing else. Any other counts only if it is fresh, is no conflict, and somebody waits for
// the update.
func failureOf(observed *unstructured.Unstructured, fresh func(*failure) bool) *failure {
	lacks, waiting := lacksPods(observed), paused(fields.Object(observed.Object, "spec"))
	for _, kind := range failureKinds[observed.GroupVersionKind().GroupKind()] {
		f := failureNamed(observed, kind)
		if f != nil && (lacks && !updating[kind] || !waiting && !strings.Contains(f.message, conflict) && fresh(f)) {
			return f
		}
	}
	return nil
}

// updating are those of failureKinds that say nothing of pods that are missing.
var updating = map[string]bool{"FailedUpdate": true, "FailedUpdatePod": true}

// fails says whether the controller of an object says that it fails, be it of an error that is over.
func fails(observed *unstructured.Unstructured) bool {
	return slices.ContainsFunc(failureKinds[observed.GroupVersionKind().GroupKind()], func(kind string) bool {
		return failureNamed(observed, kind) != nil
	})
}

// lacksPods says whether an object has fewer pods than it shall have, though it does not wait for those that it has.
func lacksPods(observed *unstructured.Unstructured) bool {
	spec, status := fields.Object(observed.Object, "spec"), fields.Object(observed.Object, "status")
	pods := fields.Number(status, "replicas")
	if pods >= wantedPods(spec) {
		return false
	}
	return fields.Number(status, "readyReplicas") >= pods || !inTurn(observed.GetKind(), spec)
}

// inTurn says whether a workload makes pods only while enough of the others are ready, as a StatefulSet does.
func inTurn(kind string, spec map[string]any) bool {
	if strings.EqualFold(kind, "StatefulSet") && fields.Text(spec, "podManagementPolicy") != "Parallel" ||
		fields.At(spec, "scaleStrategy", "maxUnavailable") != nil {
		return true
	}
	for name := range fields.Object(spec, "template") {
		if of, ok := strings.CutSuffix(name, "Template"); ok &&
			inTurn(strings.TrimPrefix(of, "advanced"), fields.Object(spec, "template", name, "spec")) {
			return true
		}
	}
	return false
}

// wantedPods are spec.replicas; of a UnitedDeployment without, what its subsets ask for together.
func wantedPods(spec map[string]any) int64 {
	if n, ok := fields.Whole(spec["replicas"]); ok {
		return n
	}
	all, asked := int64(0), false
	subsets, _ := fields.At(spec, "topology", "subsets").([]any)
	for _, s := range subsets {
		s, _ := s.(map[string]any)
		if n, ok := fields.Whole(s["replicas"]); ok {
			all, asked = all+n, true
		}
	}
	if !asked {
		return 1
	}
	return all
}

// countsFrom is the time from which a failure of an object counts that has moved last at since. Clocks of members may
// be ahead.
func (f *failure) countsFrom(since, now time.Time) time.Time {
	if f.at.After(since) && !f.at.After(now) {
		return f.at
	}
	return since
}

// Repeated says of each condition that is True in a reported status whether the report before had it already, dated the
// same: what is left over of an error is told from a new one by that, whatever the clocks of members say.
func Repeated(was, is *runtime.RawExtension) map[string]bool {
	dated := func(raw *runtime.RawExtension) map[string]string {
		var status struct {
			Conditions []struct{ Type, Status, LastTransitionTime string }
		}
		out := map[string]string{}
		if raw == nil || json.Unmarshal(raw.Raw, &status) != nil {
			return out
		}
		for _, c := range status.Conditions {
			if c.Status == "True" {
				out[c.Type] = c.LastTransitionTime
			}
		}
		return out
	}
	before, repeated := dated(was), map[string]bool{}
	for kind, at := range dated(is) {
		then, had := before[kind]
		repeated[kind] = had && then == at
	}
	return repeated
}
