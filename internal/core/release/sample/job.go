package sample

import (
	"cmp"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// OfJob judges the Job of a Work; nil if there is no Work yet.
func OfJob(w *workv1alpha1.Work) Sample {
	if w == nil {
		return Sample{Outcome: Wait, Message: "the Job is not created yet"}
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); c != nil && c.Status == "False" {
		return Failure("the Job is not applied: " + text.Cut(c.Message, longestText))
	}
	var status batchv1.JobStatus
	if len(w.Status.ManifestStatuses) > 0 && w.Status.ManifestStatuses[0].Status != nil {
		if err := json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &status); err != nil {
			return Failure(fmt.Sprintf("read the status of the Job: %v", err))
		}
	}
	for _, c := range status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return Sample{Outcome: Pass, Message: "the Job is complete"}
		case c.Type == batchv1.JobFailed:
			return Sample{Outcome: Fail, Message: "the Job has failed: " + text.Cut(cmp.Or(c.Message, c.Reason), longestText)}
		}
	}
	return Sample{Outcome: Wait, Message: "the Job runs"}
}
