// Package argo simulates the Argo Workflows controller in a member cluster: it runs the steps of Workflows as pods, one
// after the other as their templates say, and writes phase, progress and nodes into the object itself, as the real one
// does: a Workflow has no status subresource, so a client that sends one without its status restarts it.
//
// What happens next is a pure function of the Workflow, its templates and its pods (run.go); controller.go carries it
// out.
//
// Simulated: container and script templates (the pod runs the main container alone, under its own name main), steps,
// dag, suspend; withItems, when, depends, continueOn, retryStrategy.limit; parameters with values, of the workflow, of
// inputs and of items; references to WorkflowTemplates and ClusterWorkflowTemplates; parallelism, suspend, shutdown,
// onExit, activeDeadlineSeconds of the workflow, ttlStrategy, volumeClaimTemplates. Nodes are a graph as Argo's clients
// draw it, and compressed where the workflow is larger than 1 MiB. A step whose pod carries the annotation
// sim.argosy.io/exit-code fails with it; sim.argosy.io/runs-for says how long a step takes.
//
// Not simulated: outputs and artifacts, scripts' results, nodes in a database, containerSet, resource, data, http and
// plugin templates (such a step ends in Error and says so), hooks, synchronization, memoization, podGC, CronWorkflows.
package argo
