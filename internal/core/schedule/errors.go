package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var (
	errNoPlacement = errors.New("the binding has no placement")
	errNoClusters  = errors.New("no clusters available to schedule")
	// errWeightless keeps the current placement, so that a typing error deletes nothing.
	errWeightless = &SpreadError{
		Text: errNoClusters.Error(),
		Hint: "no staticWeightList rule matches any cluster: correct its targetCluster, or remove the weights to divide equally",
	}
)

// Rejection is a cluster that may not take a binding.
type Rejection struct {
	// Cluster is its name.
	Cluster string
	Cause
	// Remedy is a change that lets the cluster pass the filter, as "tolerate …".
	Remedy string
	// Pending means that the reason may disappear, because the discovery of the cluster's API is incomplete.
	Pending bool
	// Unreported means that the cluster, which is new, has not reported its API at all. It implies Pending.
	Unreported bool
}

// Rejections are sorted by cluster.
type Rejections []Rejection

// String counts the clusters by reason: "2 cluster(s) did not have the API resource, 1 …".
func (r Rejections) String() string {
	counts := map[Cause]int{}
	for i := range r {
		counts[r[i].Cause]++
	}
	texts := make([]string, 0, len(counts))
	for cause, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, cause.Text()))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// FitError means that no cluster is feasible for the binding. Its clusters are removed. Only a change of the fleet or
// of the binding helps, not a retry.
type FitError struct {
	// Clusters is the size of the fleet.
	Clusters int
	// Rejections are the reasons per cluster.
	Rejections Rejections
	// mismatch is the part of the affinity that no cluster matches; empty if one does.
	mismatch string
}

// Error returns the message of the condition.
func (e *FitError) Error() string {
	if e.Clusters == 0 {
		return "0/0 clusters are available: " + errNoClusters.Error() + "."
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, e.Rejections)
}

// AwaitsCluster reports whether err is about a binding that may fit as soon as a new cluster reports its API.
func AwaitsCluster(err error) bool {
	var unfit *FitError
	return errors.As(err, &unfit) && slices.ContainsFunc(unfit.Rejections, func(r Rejection) bool { return r.Unreported })
}

// RunEndedError means that a template that runs once has run and needs no cluster. Reason is that of the condition.
type RunEndedError struct{ Reason, Message string }

// Error is Message.
func (e *RunEndedError) Error() string { return e.Message }

// RunEnded reports whether err means that no cluster is needed.
func RunEnded(err error) bool {
	var ended *RunEndedError
	return errors.As(err, &ended)
}

// UnschedulableError means that the feasible clusters do not have enough capacity. Nothing is moved; more capacity
// helps.
type UnschedulableError struct {
	// Available is the free capacity in replicas; Wanted are the replicas to add.
	Available, Wanted int64
	// Apart is how the anti-affinity of the pods limits the capacity; empty if it does not.
	Apart string
	// Limit names what limits the capacity in clusters, as the caller knows it; empty if it does not.
	Limit string
}

// Error returns the message of the condition.
func (e *UnschedulableError) Error() string {
	return fmt.Sprintf("Clusters available replicas %d are not enough to schedule.", e.Available)
}

// QuotaError means that a quota of the namespace does not permit the placement. Nothing is moved.
type QuotaError struct{ Err error }

func (e *QuotaError) Error() string { return e.Err.Error() }
func (e *QuotaError) Unwrap() error { return e.Err }

// SpreadError means that no choice of the feasible clusters satisfies the spread constraints or weights. Nothing is
// moved; only a change of the fleet or of the placement helps.
type SpreadError struct {
	// Text is the message of Karmada, Hint what to change.
	Text, Hint string
}

// Error is Text.
func (e *SpreadError) Error() string { return e.Text }

// Help is Hint.
func (e *SpreadError) Help() string { return e.Hint }

// Help returns what would make more clusters feasible. It is about the clusters that passed the most filters.
func (e *FitError) Help() string {
	if e.Clusters == 0 {
		return "join a member cluster"
	}
	remedies := map[string][]string{}
	var order []string
	for _, r := range e.Rejections {
		if r.Remedy == "" {
			continue
		}
		if remedies[r.Remedy] == nil {
			order = append(order, r.Remedy)
		}
		remedies[r.Remedy] = append(remedies[r.Remedy], r.Cluster)
	}
	switch {
	case len(order) > 0:
	case e.mismatch != "":
		return e.mismatch
	default:
		return "correct the names, labels and fields in clusterAffinity, or add them to a cluster"
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(remedies[b]) - len(remedies[a]) })
	texts := make([]string, 0, 3)
	for _, remedy := range order[:min(len(order), 3)] {
		texts = append(texts, fmt.Sprintf("for %s: %s", listed(remedies[remedy]), remedy))
	}
	return strings.Join(texts, "; ")
}

// termsError is the first term's failure, where there are several: nothing helps but what helps one of them.
type termsError struct {
	error
	help []string
}

// Unwrap returns the first term's failure.
func (e *termsError) Unwrap() error { return e.error }

// Help returns what to change, per affinity term.
func (e *termsError) Help() string {
	return "satisfy one of the affinities: " + strings.Join(e.help, "; or ")
}

// Help returns how much capacity is missing.
func (e *UnschedulableError) Help() string {
	help := fmt.Sprintf("%d are required: free capacity for %d more, select more clusters in the policy, or request fewer replicas", e.Wanted, e.Wanted-e.Available)
	if e.Apart != "" {
		help += "; a cluster has room for " + e.Apart
	}
	if e.Limit != "" {
		help += "; " + e.Limit
	}
	return help
}

// Help returns what to change so that a run that ended with err succeeds; empty if unknown.
func Help(err error) string {
	var helpful interface{ Help() string }
	if errors.As(err, &helpful) {
		return helpful.Help()
	}
	return ""
}

// Condition returns the condition Scheduled for the error of a run, or nil: the message of Karmada, and then what to
// change. The caller sets times and generation.
func Condition(err error) metav1.Condition {
	c := metav1.Condition{
		Type:    workv1alpha2.Scheduled,
		Status:  metav1.ConditionTrue,
		Reason:  workv1alpha2.ReasonSuccess,
		Message: workv1alpha2.MessageScheduled,
	}
	if err == nil {
		return c
	}
	var unfit *FitError
	var unschedulable *UnschedulableError
	var part *PartError
	var ended *RunEndedError
	var exceeded *QuotaError
	c.Status, c.Message, c.Reason = metav1.ConditionFalse, err.Error(), workv1alpha2.ReasonSchedulerError
	if help := Help(err); help != "" {
		c.Message = strings.TrimSuffix(c.Message, ".") + ". To fit: " + help + "."
	}
	switch {
	case errors.As(err, &ended):
		c.Status, c.Reason = metav1.ConditionTrue, ended.Reason
	case errors.As(err, &unfit), errors.As(err, &part):
		c.Reason = workv1alpha2.ReasonNoClusterFit
	case errors.As(err, &unschedulable):
		c.Reason = workv1alpha2.ReasonUnschedulable
	case errors.As(err, &exceeded):
		c.Reason = workv1alpha2.ReasonQuotaExceeded
	}
	return c
}
