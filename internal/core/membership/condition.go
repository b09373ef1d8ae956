// Package membership judges a member cluster: its conditions and taints, what it serves, what it has and what is taken
// of it. What was seen and when are arguments; asking the member, waiting and writing are left to the controller.
package membership

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// KeepWorkloadsAnnotation on a Cluster, with the value "true", has what the hub sent there stay when the cluster
// leaves: it is released instead of deleted. Only who may delete Clusters may write it.
const KeepWorkloadsAnnotation = "argosy.io/keep-workloads"

// KeepsWorkloads says whether what the hub sent to a cluster stays there when the cluster leaves.
func KeepsWorkloads(c *clusterv1alpha1.Cluster) bool {
	return c.Annotations[KeepWorkloadsAnnotation] == "true"
}

// Thresholds are how long new answers of a member must last before the condition Ready follows them.
type Thresholds struct {
	// Success is for a member that answers well again, Failure for one that ceased to.
	Success, Failure time.Duration
}

// Probe is the result of a request to a member's health endpoint. Either Err says why there was no answer, or Code and
// Body are the answer.
type Probe struct {
	Err string
	// Slow says that the member did not answer in time. It may be overloaded, or suspended.
	Slow bool
	// Untrusted says that the hub does not trust the certificate of the member's API server.
	Untrusted bool
	Code      int
	Body      string
}

// SetUntrusted sets the condition CertificateUntrusted, or removes it from a cluster whose certificate is trusted.
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

// Untrusted returns whether a cluster is not ready because the hub does not trust its certificate.
func Untrusted(c *clusterv1alpha1.Cluster) bool {
	return c != nil &&
		meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCertificateUntrusted)
}

// Seen is the condition Ready that the probe alone would give. Its text tells what happened and what to do,
// and is the same for the same trouble, so that a member that stays down costs no writes.
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

// Uncollected is the condition Ready of a member about which nothing can be learned: its credentials are unusable,
// or it is healthy but does not tell its version.
func Uncollected(why string) metav1.Condition {
	return notReady(clusterv1alpha1.ReasonStatusCollectionFailed, why)
}

// Held is the condition Ready of a member that another hub holds, or another process of this one; why says which and
// what to do.
func Held(why string) metav1.Condition {
	return notReady(clusterv1alpha1.ReasonHeldByAnotherHub, why)
}

// HeldByAnother says whether a cluster is known to be another hub's, so that this one writes nothing there.
func HeldByAnother(c *clusterv1alpha1.Cluster) bool {
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

// failedChecks are the lines of a health answer that name what is wrong, joined.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failed = append(failed, check)
		}
	}
	return strings.Join(failed, "; ")
}

// Streak is since when a member's answers have been of one status. The zero value has seen none.
type Streak struct {
	Status metav1.ConditionStatus
	Since  time.Time
}

// Next is the streak after one more answer.
func (s Streak) Next(status metav1.ConditionStatus, now time.Time) Streak {
	if s.Status == status {
		return s
	}
	return Streak{Status: status, Since: now}
}

// Ready is the condition after the answer seen, whose status streak has counted already. The first answer holds at
// once, another status only when it lasted for its threshold, but for whose the member is: recheck is then how long
// that still takes, zero when nothing is pending.
func Ready(current *metav1.Condition, seen metav1.Condition, streak Streak, t Thresholds,
	now time.Time) (ready metav1.Condition, recheck time.Duration) {
	// Whose a member is does not waver: it counts at once, both ways.
	held := seen.Reason == clusterv1alpha1.ReasonHeldByAnotherHub || current != nil &&
		current.Reason == clusterv1alpha1.ReasonHeldByAnotherHub
	if current != nil && current.Status != seen.Status && current.Status != metav1.ConditionUnknown && !held {
		threshold := t.Failure
		if seen.Status == metav1.ConditionTrue {
			threshold = t.Success
		}
		if left := streak.Since.Add(threshold).Sub(now); left > 0 {
			return *current, left
		}
	}
	return since(current, seen, now), 0
}

// Readiness is the condition of a cluster that says whether it answers; nil while nobody has asked it, and for one that
// is not there.
func Readiness(c *clusterv1alpha1.Cluster) *metav1.Condition {
	if c == nil {
		return nil
	}
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// IsReady says whether a cluster is known to answer.
func IsReady(c *clusterv1alpha1.Cluster) bool {
	ready := Readiness(c)
	return ready != nil && ready.Status == metav1.ConditionTrue
}

// Silent says whether a cluster was decided not to answer, so that nothing is known of it now: its condition Ready says
// so, or it is not there. One that nobody has asked yet is neither silent nor ready.
func Silent(c *clusterv1alpha1.Cluster) bool { return c == nil || Readiness(c) != nil && !IsReady(c) }

// since is the condition with the time at which its status began.
func since(current *metav1.Condition, c metav1.Condition, now time.Time) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	if current != nil {
		c.ObservedGeneration = current.ObservedGeneration
		if current.Status == c.Status {
			c.LastTransitionTime = current.LastTransitionTime
		}
	}
	return c
}
