package interpret

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// not report that. A condition that may be of an error that is over counts only if the workload lacks pods.
func Refusal(gk schema.GroupKind, status map[string]any, lacks bool) string {
	failures := kind.Lookup(gk).Failures
	if failures == nil {
		failures = []kind.Failure{kind.ReplicaFailure}
	}
	for _, f := range failures {
		if is := failureNamed(status, f.Type); is != nil && !f.Updating && (f.Current || lacks) {
			return is.message
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
func failureNamed(status map[string]any, kind string) *failure {
	for _, c := range fields.Objects(status, "conditions") {
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
	for _, of := range kind.Facts(observed).Failures {
		f := failureNamed(fields.Object(observed.Object, "status"), of.Type)
		if f != nil && (lacks && !of.Updating || !of.Current && !waiting && !strings.Contains(f.message, conflict) &&
			fresh(f)) {
			return f
		}
	}
	return nil
}

// fails reports whether a controller reports a failure, even if the error may be over.
func fails(observed *unstructured.Unstructured) bool {
	return slices.ContainsFunc(kind.Facts(observed).Failures, func(f kind.Failure) bool {
		return failureNamed(fields.Object(observed.Object, "status"), f.Type) != nil
	})
}

// lacksPods reports whether an object has too few pods and does not wait for existing ones to become ready.
func lacksPods(observed *unstructured.Unstructured) bool {
	spec, status := fields.Object(observed.Object, "spec"), fields.Object(observed.Object, "status")
	pods := fields.Number(status, "replicas")
	if pods >= wantedPods(spec) {
		return false
	}
	return fields.Number(status, "readyReplicas") >= pods || !inTurn(kind.Facts(observed).Pods.InTurn, spec)
}

// inTurn reports whether a workload creates pods only while enough others are ready, like a StatefulSet.
func inTurn(ordered bool, spec map[string]any) bool {
	if ordered && fields.Text(spec, "podManagementPolicy") != "Parallel" ||
		fields.Value(spec, "scaleStrategy", "maxUnavailable") != nil {
		return true
	}
	for name := range fields.Object(spec, "template") {
		if strings.HasSuffix(name, "Template") && inTurn(strings.HasSuffix(strings.ToLower(name), "statefulsettemplate"),
			fields.Object(spec, "template", name, "spec")) {
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
