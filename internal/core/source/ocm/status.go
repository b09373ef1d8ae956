package ocm

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Seen is what is known about an object of a ManifestWork.
type Seen struct {
	// Work is the Work of the object; nil if there is none.
	Work *workv1alpha1.Work
	// Err is why there is no Work.
	Err error
	// Object is the object in the cluster; nil if it does not exist or could not be read. Unread is the error of reading.
	Object *unstructured.Unstructured
	Unread error
}

// Foreign reports whether the object exists but is not the Work's, so that it is not watched.
func (s Seen) Foreign() bool {
	return s.Object != nil && (s.Work == nil || !execute.Owns(s.Work, s.Object))
}

// Status returns the status of a ManifestWork. seen has one entry per item, in order. Objects without a result keep
// their previous status. p may be nil.
func Status(mw *ocmv1.ManifestWork, items []Item, seen []Seen, p *Programs, now time.Time) ocmv1.ManifestWorkStatus {
	status := *mw.Status.DeepCopy()
	at := stamp{mw.Generation, metav1.NewTime(now)}
	status.ResourceStatus.Manifests = make([]ocmv1.ManifestCondition, len(items))
	var spent uint64
	for i, item := range items {
		status.ResourceStatus.Manifests[i] = manifest(before(mw, item), item, seen[i], p, &spent, at)
	}
	manifests := status.ResourceStatus.Manifests

	// 1. Applied, from all objects with a result.
	switch all := conditions(manifests, ocmv1.Applied, mw.Generation); {
	case contains(all, metav1.ConditionFalse):
		at.set(&status.Conditions, ocmv1.Applied, metav1.ConditionFalse, ocmv1.ReasonWorkApplyFailed,
			ocmv1.MessageWorkApplyFailed)
	case len(all) == len(manifests):
		at.set(&status.Conditions, ocmv1.Applied, metav1.ConditionTrue, ocmv1.ReasonWorkApplied, ocmv1.MessageWorkApplied)
	}

	// 2. Available, unless rules decide it.
	ruled := map[string]bool{}
	for _, item := range items {
		for _, rule := range item.rules {
			ruled[rule.Condition] = true
		}
	}
	if all := conditions(manifests, ocmv1.Available, mw.Generation); len(all) == len(manifests) &&
		!ruled[ocmv1.Available] {
		absent, unknown := count(all, metav1.ConditionFalse), count(all, metav1.ConditionUnknown)
		switch {
		case absent > 0:
			at.set(&status.Conditions, ocmv1.Available, metav1.ConditionFalse, ocmv1.ReasonResourcesNotAvailable,
				fmt.Sprintf("%d of %d resources are not available", absent, len(all)))
		case unknown > 0:
			at.set(&status.Conditions, ocmv1.Available, metav1.ConditionUnknown, ocmv1.ReasonResourcesStatusUnknown,
				fmt.Sprintf("%d of %d resources have unknown status", unknown, len(all)))
		default:
			at.set(&status.Conditions, ocmv1.Available, metav1.ConditionTrue, ocmv1.ReasonResourcesAvailable,
				"All resources are available")
		}
	}

	// 3. The conditions of rules.
	for _, kind := range slices.Sorted(maps.Keys(ruled)) {
		all := conditions(manifests, kind, mw.Generation)
		if len(all) == 0 {
			delete(ruled, kind)
			continue
		}
		is := aggregate(kind, all)
		if open := incomplete(items, manifests, mw.Generation); kind == ocmv1.Complete && is.Status == metav1.ConditionTrue &&
			open > 0 {
			is.Status, is.Message = metav1.ConditionFalse,
				fmt.Sprintf("%d of %d manifests are complete, the status of the others is unknown", len(all), len(all)+open)
		}
		at.set(&status.Conditions, kind, is.Status, ocmv1.ReasonRulesAggregated, is.Message)
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Reason == ocmv1.ReasonRulesAggregated && !ruled[c.Type]
	})
	return status
}

// incomplete returns the number of objects with a rule for Complete that has no result yet.
func incomplete(items []Item, manifests []ocmv1.ManifestCondition, generation int64) (n int) {
	for i, item := range items {
		judged := meta.FindStatusCondition(manifests[i].Conditions, ocmv1.Complete)
		if item.completes() && (judged == nil || judged.ObservedGeneration != generation) {
			n++
		}
	}
	return n
}

// Unanswered reports whether some objects have no result for this generation, and none has failed.
func Unanswered(mw *ocmv1.ManifestWork) bool {
	all := conditions(mw.Status.ResourceStatus.Manifests, ocmv1.Applied, mw.Generation)
	return len(all) < len(mw.Status.ResourceStatus.Manifests) && !contains(all, metav1.ConditionFalse)
}

// before returns the previous status of the item.
func before(mw *ocmv1.ManifestWork, item Item) ocmv1.ManifestCondition {
	for _, m := range mw.Status.ResourceStatus.Manifests {
		if sameResource(m.ResourceMeta, item.Meta) {
			return *m.DeepCopy()
		}
	}
	return ocmv1.ManifestCondition{}
}

// manifest returns the status of one object.
func manifest(m ocmv1.ManifestCondition, item Item, seen Seen, p *Programs, spent *uint64,
	at stamp) ocmv1.ManifestCondition {
	m.ResourceMeta = item.Meta
	if m.Conditions == nil {
		m.Conditions = []metav1.Condition{}
	}
	m.Conditions = slices.DeleteFunc(m.Conditions, func(c metav1.Condition) bool {
		return c.Type != ocmv1.Applied && c.Type != ocmv1.Available && c.Type != ocmv1.StatusFeedbackSynced &&
			!slices.ContainsFunc(item.rules, func(r ocmv1.ConditionRule) bool { return r.Condition == c.Type })
	})
	answered, why := applied(item, seen)
	switch {
	case !answered:
		return m
	case why != nil && why.matches:
		at.set(&m.Conditions, ocmv1.Applied, metav1.ConditionTrue, ocmv1.ReasonManifestApplied, ocmv1.MessageManifestApplied+
			": "+why.text)
	case why != nil:
		at.set(&m.Conditions, ocmv1.Applied, metav1.ConditionFalse, ocmv1.ReasonManifestApplyFailed,
			ocmv1.MessageManifestNotApply+why.text)
	default:
		at.set(&m.Conditions, ocmv1.Applied, metav1.ConditionTrue, ocmv1.ReasonManifestApplied, ocmv1.MessageManifestApplied)
	}
	switch {
	case seen.Unread != nil:
		at.set(&m.Conditions, ocmv1.Available, metav1.ConditionUnknown, ocmv1.ReasonFetchingFailed,
			"Failed to fetch resource: "+seen.Unread.Error())
		return m
	case seen.Object == nil:
		at.set(&m.Conditions, ocmv1.Available, metav1.ConditionFalse, ocmv1.ReasonResourceNotAvailable,
			"Resource is not available")
		m.StatusFeedbacks = ocmv1.StatusFeedbackResult{}
		return m
	}
	var ruled []metav1.Condition
	for _, rule := range item.rules {
		if c := p.Evaluate(rule, seen.Object, spent); c != nil {
			ruled = append(ruled, *c)
		}
	}
	if meta.FindStatusCondition(ruled, ocmv1.Available) == nil { // setting it twice would change its transition time
		at.set(&m.Conditions, ocmv1.Available, metav1.ConditionTrue, ocmv1.ReasonResourceAvailable, "Resource is available")
	}
	for _, c := range ruled {
		at.set(&m.Conditions, c.Type, c.Status, c.Reason, c.Message)
	}

	values, err := Feedback(item.feedback, seen.Object)
	m.StatusFeedbacks = ocmv1.StatusFeedbackResult{Values: values}
	switch {
	case err != nil:
		at.set(&m.Conditions, ocmv1.StatusFeedbackSynced, metav1.ConditionFalse, ocmv1.ReasonFeedbackFailed,
			"Sync status feedback failed with error "+err.Error())
	case len(item.feedback) == 0:
		at.set(&m.Conditions, ocmv1.StatusFeedbackSynced, metav1.ConditionTrue, ocmv1.ReasonNoFeedback, "")
	default:
		at.set(&m.Conditions, ocmv1.StatusFeedbackSynced, metav1.ConditionTrue, ocmv1.ReasonFeedbackSynced, "")
	}
	return m
}

// reason is why an object is not applied by its Work. matches is true if another Work owns the object and it matches
// the manifest.
type reason struct {
	text    string
	matches bool
}

// applied reports whether the result of applying the object is known, with the reason if it was not applied.
func applied(item Item, seen Seen) (answered bool, why *reason) {
	switch {
	case item.Err != nil:
		return true, &reason{text: item.Err.Error()}
	case seen.Err != nil:
		return true, &reason{text: seen.Err.Error()}
	case !item.Writes() && seen.Object != nil:
		return true, nil
	case !item.Writes() && seen.Unread != nil:
		return true, &reason{text: seen.Unread.Error()}
	case !item.Writes():
		return true, &reason{text: fmt.Sprintf("there is no %s in the cluster, and its update strategy is ReadOnly",
			text.Object(item.Meta.Kind, item.Meta.Namespace, item.Meta.Name))}
	case seen.Work == nil:
		return false, nil
	}
	switch is := meta.FindStatusCondition(seen.Work.Status.Conditions, workv1alpha1.WorkApplied); {
	case is == nil:
		return false, nil
	case is.Status == metav1.ConditionTrue:
		return is.ObservedGeneration == seen.Work.Generation, nil
	default:
		if other := otherOwner(seen); other != "" && asWanted(item, seen) {
			return true, &reason{text: "the object matches the manifest, and is managed by the work " + other, matches: true}
		}
		// After a restore keep the message of Applied, which contains advice.
		if failure := execute.FailureOf(seen.Work); failure != nil && failure.Reason != workv1alpha1.ReasonRestored {
			return true, &reason{text: failureText(item, failure)}
		}
		return true, &reason{text: is.Message}
	}
}

// NotApplied returns the message of the condition Applied of an object whose Work has this failure.
func NotApplied(item Item, failure *metav1.Condition) string {
	return ocmv1.MessageManifestNotApply + failureText(item, failure)
}

func failureText(item Item, failure *metav1.Condition) string {
	if failure.Reason == workv1alpha1.ReasonNamespaceMissing {
		return fmt.Sprintf("%s; create namespace %s in the cluster, or add it to the manifests", failure.Message,
			item.Meta.Namespace)
	}
	return failure.Message
}

// otherOwner returns another Work of the same cluster that owns the object; empty if none.
func otherOwner(s Seen) string {
	if s.Object == nil || s.Object.GetLabels()[workv1alpha2.ManagedLabel] != "true" {
		return ""
	}
	work := execute.MarkedWork(s.Object)
	if work.Namespace != s.Work.Namespace || work.Name == s.Work.Name {
		return ""
	}
	return work.Name
}

// asWanted reports whether the object matches the manifest, whoever owns it.
func asWanted(item Item, seen Seen) bool {
	m, err := execute.Manifest(seen.Work)
	if err != nil {
		return false
	}
	m.SetLabels(item.Object.GetLabels())
	m.SetAnnotations(item.Object.GetAnnotations())
	return len(execute.Differences(m, seen.Object)) == 0
}

// Waits returns the status of a ManifestWork whose cluster has not joined. It does not list the joined clusters, which
// would change the message with each join, and drops the status from a cluster that has left.
func Waits(mw *ocmv1.ManifestWork, now time.Time) ocmv1.ManifestWorkStatus {
	status := ocmv1.ManifestWorkStatus{Conditions: slices.DeleteFunc(mw.Status.DeepCopy().Conditions,
		func(c metav1.Condition) bool {
			return c.Type == ocmv1.Available || c.Reason == ocmv1.ReasonRulesAggregated
		})}
	at := stamp{mw.Generation, metav1.NewTime(now)}
	at.set(&status.Conditions, ocmv1.Applied, metav1.ConditionFalse, ocmv1.ReasonWorkApplyFailed,
		fmt.Sprintf("there is no cluster %q, which the namespace refers to; the objects are applied when it joins",
			mw.Namespace))
	return status
}

// Leaves returns the status of a ManifestWork that is being deleted. why is what blocks the deletion, or empty.
func Leaves(mw *ocmv1.ManifestWork, why string, now time.Time) ocmv1.ManifestWorkStatus {
	status := *mw.Status.DeepCopy()
	message := "The objects in the cluster are deleted or released before the ManifestWork is deleted"
	if why != "" {
		message += ": " + why
	}
	stamp{mw.Generation, metav1.NewTime(now)}.set(&status.Conditions, ocmv1.Deleting, metav1.ConditionTrue,
		ocmv1.ReasonWorkDeleting, message)
	return status
}

// Remaining returns how long a complete ManifestWork is kept; false if it has no TTL, or belongs to a
// ManifestWorkReplicaSet, which would create it again.
func Remaining(mw *ocmv1.ManifestWork, now time.Time) (time.Duration, bool) {
	option := mw.Spec.DeleteOption
	complete := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Complete)
	if _, owned := mw.Labels[ocmworkv1alpha1.ReplicaSetLabel]; owned || mw.DeletionTimestamp != nil {
		return 0, false
	}
	if option == nil || option.TTLSecondsAfterFinished == nil || complete == nil ||
		complete.Status != metav1.ConditionTrue || complete.ObservedGeneration != mw.Generation {
		return 0, false
	}
	const most = int64(math.MaxInt64 / time.Second)
	seconds := min(max(*option.TTLSecondsAfterFinished, 0), most)
	return complete.LastTransitionTime.Add(time.Duration(seconds) * time.Second).Sub(now), true
}

// stamp sets conditions with a generation and the time of changes.
type stamp struct {
	generation int64
	now        metav1.Time
}

func (s stamp) set(all *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(all, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message:            text.Message(message),
		ObservedGeneration: s.generation, LastTransitionTime: s.now})
}

// conditions returns the conditions of a type in the manifests for the generation.
func conditions(manifests []ocmv1.ManifestCondition, kind string, generation int64) []metav1.Condition {
	var all []metav1.Condition
	for _, m := range manifests {
		if c := meta.FindStatusCondition(m.Conditions, kind); c != nil && c.ObservedGeneration == generation {
			all = append(all, *c)
		}
	}
	return all
}

func count(all []metav1.Condition, status metav1.ConditionStatus) (n int) {
	for _, c := range all {
		if c.Status == status {
			n++
		}
	}
	return n
}

func contains(all []metav1.Condition, status metav1.ConditionStatus) bool {
	return count(all, status) > 0
}

// aggregate combines the conditions of manifests: the worst status, but True for Progressing if any is True.
func aggregate(kind string, all []metav1.Condition) metav1.Condition {
	order := []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue}
	if kind == ocmv1.Progressing {
		slices.Reverse(order)
	}
	message := all[0].Message
	if len(all) > 1 {
		message = fmt.Sprintf("Aggregated from %d manifest conditions", len(all))
	}
	for _, status := range order {
		if contains(all, status) {
			return metav1.Condition{Status: status, Message: message}
		}
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Message: message}
}
