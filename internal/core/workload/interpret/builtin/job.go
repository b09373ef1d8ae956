package builtin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func job() *interpret.Hooks {
	return &interpret.Hooks{
		Replicas:  jobReplicas,
		Revise:    reviseJob,
		Retain:    retainJob,
		Reflect:   reflectFields("active", "succeeded", "failed", "startTime", "completionTime", "conditions"),
		Health:    judged(jobHealth),
		Aggregate: ofReports(aggregateJob),
	}
}

// jobHealth uses the conditions, and whether a pod is ready while the Job runs. Failed pods count only after the Job
// has failed.
func jobHealth(obj, status map[string]any) interpret.Health {
	ready, ok := whole(field(status, "ready"))
	switch {
	case isTrue(status, "Failed"), isTrue(status, "FailureTarget"):
		return interpret.Degraded
	case isTrue(status, "Complete"), isTrue(status, "SuccessCriteriaMet"):
		return interpret.Healthy
	case yes(obj, "spec", "suspend"):
		return interpret.Suspended
	case number(status, "active") > 0 && (ready > 0 || !ok):
		return interpret.Healthy
	}
	return interpret.Progressing
}

// jobReplicas returns the pods that run in parallel: spec.parallelism, but at most the completions.
func jobReplicas(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	parallelism, err := specNumber(obj, 1, "parallelism")
	if err != nil {
		return 0, nil, err
	}
	completions, err := specNumber(obj, parallelism, "completions")
	if err != nil {
		return 0, nil, err
	}
	req, err := interpret.Requirements(obj)
	return int32(min(parallelism, completions)), req, err
}

// reviseJob sets spec.parallelism. core/dispatch divides completions, where all clusters are known.
func reviseJob(_ context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	return withField(obj, int64(replicas), "spec", "parallelism")
}

// retainJob keeps the selector and pod labels that the member's API server generated. Both are immutable.
func retainJob(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired.DeepCopy()
	for _, path := range [][]string{{"spec", "selector"}, {"spec", "template", "metadata", "labels"}} {
		if v := object(observed.Object, path...); v != nil {
			if err := unstructured.SetNestedMap(retained.Object, v, path...); err != nil {
				return nil, err
			}
		}
	}
	return retained, nil
}

// aggregateJob adds up the pods. The Job is Complete if all clusters are, and Failed if all have finished and one
// failed; FailureTarget announces that while others run.
//
// The API server validates a Job's status: a finished Job has no active pods and never changes, counters never fall,
// startTime stays, Complete needs SuccessCriteriaMet and completionTime, Failed needs FailureTarget.
func aggregateJob(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
	was := object(template.Object, "status")
	if isTrue(was, "Complete") || isTrue(was, "Failed") {
		return template, nil
	}

	var failed []string
	var failedAt, completedAt []string
	finished := 0
	for _, r := range rs {
		switch {
		case isTrue(r.status, "Failed"):
			failed = append(failed, r.cluster)
			failedAt = append(failedAt, conditionText(r.status, "Failed", "lastTransitionTime"))
			finished++
		case isTrue(r.status, "Complete"):
			completedAt = append(completedAt, conditionText(r.status, "Complete", "lastTransitionTime"),
				text(r.status, "completionTime"))
			finished++
		}
	}

	status := sums(rs, "active", "succeeded", "failed")
	for _, counter := range []string{"succeeded", "failed"} {
		status[counter] = max(number(status, counter), number(was, counter))
	}
	start := text(was, "startTime")
	if start == "" {
		start = earliest(textsOf(rs, "startTime")...)
	}
	setText(status, "startTime", start)

	doomed := len(failed) > 0 || isTrue(was, "FailureTarget")
	over := len(rs) > 0 && finished == len(rs) && number(status, "active") == 0
	var conditions []any
	add := func(kind, reason, message, at string) {
		for _, c := range objects(was, "conditions") {
			if text(c, "type") == kind {
				conditions = append(conditions, runtime.DeepCopyJSONValue(c))
				return
			}
		}
		c := map[string]any{"type": kind, "status": "True", "reason": reason, "message": message}
		setText(c, "lastProbeTime", at)
		setText(c, "lastTransitionTime", at)
		conditions = append(conditions, c)
	}
	switch {
	case doomed:
		message := "Job executed failed in member clusters " + strings.Join(failed, ",")
		if len(failed) == 0 { // the failed cluster is no longer assigned
			message = conditionText(was, "FailureTarget", "message")
		}
		add("FailureTarget", "JobFailed", message, earliest(failedAt...))
		if over && start != "" {
			add("Failed", "JobFailed", message, latest(append(failedAt, completedAt...)...))
		}
	case over:
		at := latest(append(completedAt, start)...)
		if at == "" {
			break // a finished Job has these times; wait for a complete report
		}
		if start == "" {
			status["startTime"] = at
		}
		status["completionTime"] = at
		add("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", at)
		add("Complete", "Completed", "Job completed", at)
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	return settledNative(template, status), nil
}
