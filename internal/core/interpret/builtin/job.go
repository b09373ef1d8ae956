package builtin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

func job() *interpret.Hooks {
	return &interpret.Hooks{
		Replicas:  jobReplicas,
		Revise:    reviseJob,
		Retain:    retainJob,
		Reflect:   reflectFields("active", "succeeded", "failed", "startTime", "completionTime", "conditions"),
		Health:    jobHealth,
		Aggregate: aggregateJob,
	}
}

// jobHealth goes by the conditions, and by whether a pod is ready while it runs: failed pods count only when the Job
// gives up.
func jobHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	ready, told := whole(field(status, "ready"))
	switch {
	case isTrue(status, "Failed"), isTrue(status, "FailureTarget"):
		return interpret.Degraded, nil
	case isTrue(status, "Complete"), isTrue(status, "SuccessCriteriaMet"):
		return interpret.Healthy, nil
	case yes(observed.Object, "spec", "suspend"):
		return interpret.Suspended, nil
	case number(status, "active") > 0 && (ready > 0 || !told):
		return interpret.Healthy, nil
	}
	return interpret.Progressing, nil
}

// jobReplicas are the pods that run at a time: spec.parallelism, and never more than are to complete.
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

// reviseJob sets spec.parallelism; completions are divided where all clusters are known, in core/dispatch.
func reviseJob(_ context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	return withField(obj, int64(replicas), "spec", "parallelism")
}

// retainJob keeps the selector and the pod labels that the member's API server generated: both are immutable.
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

// aggregateJob adds up the pods and says Complete when every cluster is, Failed when all have finished and one failed;
// FailureTarget announces the latter while others still run. The API server guards a Job's status and the order follows
// from it: a finished Job has no active pods and never changes, its counters never fall, its startTime stays, Complete
// needs SuccessCriteriaMet and completionTime, Failed needs FailureTarget.
func aggregateJob(_ context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	rs, err := reports(items)
	if err != nil {
		return nil, err
	}
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
	say := func(kind, reason, message, at string) {
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
		if len(failed) == 0 { // it failed in a cluster that it has left
			message = conditionText(was, "FailureTarget", "message")
		}
		say("FailureTarget", "JobFailed", message, earliest(failedAt...))
		if over && start != "" {
			say("Failed", "JobFailed", message, latest(append(failedAt, completedAt...)...))
		}
	case over:
		at := latest(append(completedAt, start)...)
		if at == "" {
			break // a finished Job has times; one without is no report of a finished Job
		}
		if start == "" {
			status["startTime"] = at
		}
		status["completionTime"] = at
		say("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", at)
		say("Complete", "Completed", "Job completed", at)
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	return settledNative(template, status), nil
}
