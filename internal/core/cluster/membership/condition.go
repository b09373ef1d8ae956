// Package membership decides conditions, taints, kinds and resources of a member cluster. It does no I/O: observations
// and times are arguments.
package membership

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
)

// KeepsWorkloads reports whether the hub's objects stay in the member when the cluster leaves.
func KeepsWorkloads(c *clusterv1alpha1.Cluster) bool {
	return c.Annotations[wellknown.KeepWorkloadsAnnotation] == "true"
}

// Thresholds are how long a changed result must last before the condition Ready changes.
type Thresholds struct {
	// Success is for recovery, Failure for the loss of a member.
	Success, Failure time.Duration
}

// Probe is the result of a request to the health endpoint: either Err, or Code and Body.
type Probe struct {
	Err string
	// Slow is true if the member did not answer in time. It may be overloaded or suspended.
	Slow bool
	// Untrusted is true if the hub does not trust the certificate of the member's API server.
	Untrusted bool
	Code      int
	Body      string
}

// SetUntrusted sets the condition CertificateUntrusted, or removes it from a cluster with a trusted certificate.
func SetUntrusted(conditions *[]metav1.Condition, untrusted bool, now time.Time) {
	if !untrusted {
		meta.RemoveStatusCondition(conditions, clusterv1alpha1.ClusterConditionCertificateUntrusted)
		return
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:   clusterv1alpha1.ClusterConditionCertificateUntrusted,
		Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonCertificateUntrusted,
		Message: "the hub does not trust the certificate at spec.apiEndpoint: join the cluster again, " +
			"or correct caBundle in the secret of spec.secretRef",
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
}

// Untrusted reports whether a cluster is not ready because the hub does not trust its certificate.
func Untrusted(c *clusterv1alpha1.Cluster) bool {
	return c != nil &&
		meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCertificateUntrusted)
}

// Seen returns the condition Ready from this probe alone. The message says what happened and what to do. It is the same
// for the same cause, so that a lasting outage causes no writes.
func Seen(p Probe) metav1.Condition {
	switch {
	case p.Slow:
		return notReady(clusterv1alpha1.ReasonClusterNotReachable,
			"cluster is not responding: "+NoAnswer+"; check that its API server is not overloaded or suspended, "+
				"and that spec.apiEndpoint and spec.proxyURL lead to it")
	case p.Err != "":
		return notReady(clusterv1alpha1.ReasonClusterNotReachable,
			"cluster is not reachable: "+p.Err+
				"; check that its API server is running and reachable at spec.apiEndpoint, through spec.proxyURL if it is set")
	case p.Code == http.StatusOK:
		return metav1.Condition{
			Type:    clusterv1alpha1.ClusterConditionReady,
			Status:  metav1.ConditionTrue,
			Reason:  clusterv1alpha1.ReasonClusterReady,
			Message: "cluster is healthy and ready to accept workloads",
		}
	case p.Code == http.StatusUnauthorized || p.Code == http.StatusForbidden:
		return notReady(clusterv1alpha1.ReasonClusterNotReady, fmt.Sprintf(
			"cluster is reachable but rejects the credentials (%d %s); join it again, or set valid credentials in the secret of spec.secretRef",
			p.Code, http.StatusText(p.Code)))
	default:
		message := fmt.Sprintf("cluster is reachable but health endpoint responded without ok (%d)", p.Code)
		if failed := failedChecks(p.Body); failed != "" {
			message += ": " + failed
		}
		return notReady(clusterv1alpha1.ReasonClusterNotReady, message)
	}
}

// Uncollected returns the condition Ready of a member without data: its credentials are unusable, or it is healthy but
// does not report its version.
func Uncollected(why string) metav1.Condition {
	return notReady(clusterv1alpha1.ReasonStatusCollectionFailed, why)
}

// NotOwner returns the condition Ready of a member that another hub or another process of this hub owns. why names the
// owner and what to do.
func NotOwner(why string) metav1.Condition {
	return notReady(clusterv1alpha1.ReasonHeldByAnotherHub, why)
}

// ManagedByAnother reports whether another hub is known to own the cluster, so that this hub must not write there.
func ManagedByAnother(c *clusterv1alpha1.Cluster) bool {
	ready := Readiness(c)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == clusterv1alpha1.ReasonHeldByAnotherHub
}

func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    clusterv1alpha1.ClusterConditionReady,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: message,
	}
}

// failedChecks returns the failed checks of a health response, joined.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failed = append(failed, check)
		}
	}
	return strings.Join(failed, "; ")
}

// Streak is the time since when results have had the same status. The zero value has no result.
type Streak struct {
	Status metav1.ConditionStatus
	Since  time.Time
}

// Next returns the streak after one more result.
func (s Streak) Next(status metav1.ConditionStatus, now time.Time) Streak {
	if s.Status == status {
		return s
	}
	return Streak{Status: status, Since: now}
}

// Ready returns the new condition after the result seen, which streak includes. The first result counts at once. A
// different status counts only after its threshold; recheck is the remaining time, or zero. A change of ownership
// counts at once.
func Ready(current *metav1.Condition, seen metav1.Condition, streak Streak, t Thresholds,
	now time.Time) (ready metav1.Condition, recheck time.Duration) {
	// Ownership has no threshold.
	ownership := seen.Reason == clusterv1alpha1.ReasonHeldByAnotherHub || current != nil &&
		current.Reason == clusterv1alpha1.ReasonHeldByAnotherHub
	if current != nil && current.Status != seen.Status && current.Status != metav1.ConditionUnknown && !ownership {
		threshold := t.Failure
		if seen.Status == metav1.ConditionTrue {
			threshold = t.Success
		}
		if left := streak.Since.Add(threshold).Sub(now); left > 0 {
			return *current, left
		}
	}
	return withTransitionTime(current, seen, now), 0
}

// Readiness returns the condition Ready; nil before the first probe and for a nil cluster.
func Readiness(c *clusterv1alpha1.Cluster) *metav1.Condition {
	if c == nil {
		return nil
	}
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// IsReady reports whether the condition Ready is true: the hub can act in the cluster, and gets its reports.
func IsReady(c *clusterv1alpha1.Cluster) bool {
	ready := Readiness(c)
	return ready != nil && ready.Status == metav1.ConditionTrue
}

// KnownNotReady reports whether the cluster is not ready or does not exist, so that the last reports are out of date.
// It says nothing about the workloads there, see LostSince. A cluster before its first probe is neither ready nor known
// to be not ready.
func KnownNotReady(c *clusterv1alpha1.Cluster) bool {
	return c == nil || Readiness(c) != nil && !IsReady(c)
}

// withTransitionTime returns the condition with the time of the last status change.
func withTransitionTime(current *metav1.Condition, c metav1.Condition, now time.Time) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	if current != nil {
		c.ObservedGeneration = current.ObservedGeneration
		if current.Status == c.Status {
			c.LastTransitionTime = current.LastTransitionTime
		}
	}
	return c
}
