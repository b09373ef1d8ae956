package interpret

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// FailureSettle is how long an object may be without progress while its controller reports a failure. OpenKruise
// reports every error: retried conflicts as well as an exceeded quota.
const FailureSettle = 30 * time.Second

const (
	// failureSkew is the tolerated difference between the clocks of member and hub.
	failureSkew = 5 * time.Second
	// failureShown limits the controller's message in bytes. It may be of any size, and it
	// goes into a condition of each Work.
	failureShown = 300
	// conflict is part of the API server's message for a write with an outdated resourceVersion.
	conflict = "the object has been modified"
)

// Refusal returns why the controller of a workload cannot create pods, by the conditions of a status; empty if it does
// not report that. Controllers of OpenKruise may report an error that is over: theirs count only if the workload lacks
// pods.
func Refusal(status map[string]any, lacks bool) string {
	for _, c := range fields.Objects(status, "conditions") {
		condition := fields.Text(c, "type")
		if fields.Text(c, "status") == "True" && (condition == kind.ReplicaFailure || lacks &&
			slices.Contains([]string{"FailedScale", "FailedCreatePod", "SubsetFailure"}, condition)) {
			return fields.Text(c, "message")
		}
	}
	return ""
}

// failure is a condition with which a controller reports a failure.
type failure struct {
	kind, message string
	at            time.Time // when it was set
}

// failureNamed returns the condition of the type if it reports a failure; otherwise nil.
func failureNamed(observed *unstructured.Unstructured, kind string) *failure {
	for _, c := range fields.Objects(observed.Object, "status", "conditions") {
		if fields.Text(c, "type") == kind && fields.Text(c, "status") == "True" {
			at, _ := time.Parse(time.RFC3339, fields.Text(c, "lastTransitionTime"))
			return &failure{kind, fields.Text(c, "message"), at}
		}
	}
	return nil
}

// failureOf returns the failure that the controller of an object reports; nil if there is none that counts. fresh
// reports whether a failure began after the last progress.
//
// OpenKruise keeps such a condition True after the error until another part of the status changes, and does not update
// its time or message for the next error. So a failure to create pods counts while pods are missing that wait for
// nothing else. Any other failure counts only if it is fresh, is no conflict, and an update is pending.
func failureOf(observed *unstructured.Unstructured, fresh func(*failure) bool) *failure {
	lacks, waiting := lacksPods(observed), paused(fields.Object(observed.Object, "spec"))
	for _, condition := range failuresOf(observed) {
		f := failureNamed(observed, condition)
		if f != nil && (lacks && !updating[condition] || condition != kind.ReplicaFailure && !waiting &&
			!strings.Contains(f.message, conflict) && fresh(f)) {
			return f
		}
	}
	return nil
}

// failuresOf returns the types of conditions with which the controller of an object reports failures.
func failuresOf(observed *unstructured.Unstructured) []string {
	return kind.Lookup(observed.GroupVersionKind().GroupKind()).Failures
}

// updating are the failures that are not about missing pods.
var updating = map[string]bool{"FailedUpdate": true, "FailedUpdatePod": true}

// fails reports whether a controller reports a failure, even if the error may be over.
func fails(observed *unstructured.Unstructured) bool {
	return slices.ContainsFunc(failuresOf(observed), func(kind string) bool {
		return failureNamed(observed, kind) != nil
	})
}

// lacksPods reports whether an object has too few pods and does not wait for existing ones to become ready.
func lacksPods(observed *unstructured.Unstructured) bool {
	spec, status := fields.Object(observed.Object, "spec"), fields.Object(observed.Object, "status")
	pods := fields.Number(status, "replicas")
	if pods >= wantedPods(spec) {
		return false
	}
	return fields.Number(status, "readyReplicas") >= pods || !inTurn(observed.GetKind(), spec)
}

// inTurn reports whether a workload creates pods only while enough others are ready, like a StatefulSet.
func inTurn(kind string, spec map[string]any) bool {
	if strings.EqualFold(kind, "StatefulSet") && fields.Text(spec, "podManagementPolicy") != "Parallel" ||
		fields.Value(spec, "scaleStrategy", "maxUnavailable") != nil {
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

// wantedPods returns spec.replicas, or the sum over the subsets of a UnitedDeployment.
func wantedPods(spec map[string]any) int64 {
	if n, ok := fields.Whole(spec["replicas"]); ok {
		return n
	}
	all, asked := int64(0), false
	for _, s := range fields.Objects(spec, "topology", "subsets") {
		if n, ok := fields.Whole(s["replicas"]); ok {
			all, asked = all+n, true
		}
	}
	if !asked {
		return 1
	}
	return all
}

// countsFrom returns the time from which a failure of an object counts, given its last progress. Clocks of members may
// be ahead.
func (f *failure) countsFrom(since, now time.Time) time.Time {
	if f.at.After(since) && !f.at.After(now) {
		return f.at
	}
	return since
}

// Repeated reports, for each True condition of a status, whether the previous status had it with the same time. This
// distinguishes old failures from new ones independently of the member's clock.
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
