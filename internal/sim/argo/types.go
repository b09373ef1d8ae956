package argo

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var version = schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}

// WorkflowKind is the kind that runs.
var WorkflowKind = version.WithKind("Workflow")

// Phase is how far a workflow or a node is.
type Phase string

// The phases of workflows and nodes.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Errored   Phase = "Error"
)

// Over reports whether nothing more happens.
func (p Phase) Over() bool { return p == Succeeded || p.bad() }

func (p Phase) bad() bool { return p == Failed || p == Errored }

// Labels, annotations and values of Argo.
const (
	phaseLabel     = "workflows.argoproj.io/phase"
	completedLabel = "workflows.argoproj.io/completed"
	workflowLabel  = "workflows.argoproj.io/workflow"
	nodeIDNote     = "workflows.argoproj.io/node-id"
	nodeNameNote   = "workflows.argoproj.io/node-name"

	typePod     = "Pod"
	typeSteps   = "Steps"
	typeGroup   = "StepGroup"
	typeSkipped = "Skipped"
)

// Workflow is the part of a Workflow that the runner acts on, without its spec.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            Status `json:"status"`
}

// Spec is what runs of a Workflow. Of the fields of pods, it has those of all steps.
type Spec struct {
	corev1.PodSpec `json:",inline"`
	Entrypoint     string     `json:"entrypoint,omitempty"`
	Templates      []Template `json:"templates,omitempty"`
	Suspend        bool       `json:"suspend,omitempty"`
}

// Template is one kind of step: a container, or steps.
type Template struct {
	Name      string            `json:"name,omitempty"`
	Metadata  metav1.ObjectMeta `json:"metadata"`
	Container *corev1.Container `json:"container,omitempty"`
	Steps     [][]Step          `json:"steps,omitempty"`
	// Types of templates that do not run.
	ContainerSet, DAG, Data, HTTP, Plugin, Resource, Script, Suspend any
}

// Step is one step of a group.
type Step struct {
	Name      string `json:"name,omitempty"`
	Template  string `json:"template,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
}

// ignored are fields of specs and templates without effect: containers run no program, so nothing reads what the first
// ones say, and no step takes long or fails by chance. The hub deletes a workflow after its time.
var ignored = []string{"arguments", "inputs", "outputs", "archiveLogs", "archiveLocation", "artifactGC",
	"artifactRepositoryRef", "metrics", "activeDeadlineSeconds", "daemon", "executor", "memoize", "parallelism", "podGC",
	"podDisruptionBudget", "podMetadata", "podPriorityClassName", "podSpecPatch", "priority", "retryStrategy",
	"synchronization", "templateDefaults", "timeout", "ttlStrategy", "workflowMetadata"}

// readSpec reads a spec. The error names a field that does not run.
func readSpec(object map[string]any) (*Spec, error) {
	object = runtime.DeepCopyJSON(object)
	templates, _ := object["templates"].([]any)
	for _, o := range append(templates, object) {
		if fields, ok := o.(map[string]any); ok {
			for _, name := range ignored {
				delete(fields, name)
			}
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	spec := &Spec{}
	if err := d.Decode(spec); err != nil {
		return nil, fmt.Errorf("the simulator does not run this workflow: %w", err)
	}
	return spec, nil
}

// Status is what the runner writes; what others put beside it stays.
type Status struct {
	Phase      Phase           `json:"phase,omitempty"`
	StartedAt  *metav1.Time    `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time    `json:"finishedAt,omitempty"`
	Progress   string          `json:"progress,omitempty"`
	Message    string          `json:"message,omitempty"`
	Nodes      map[string]Node `json:"nodes,omitempty"`
	Conditions []Condition     `json:"conditions,omitempty"`
}

// Condition is a condition of a Workflow; it has no time.
type Condition struct {
	Type   string                 `json:"type"`
	Status metav1.ConditionStatus `json:"status"`
}

// Node is one step that was begun, or what several steps are part of.
type Node struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	DisplayName  string `json:"displayName"`
	Type         string `json:"type"`
	TemplateName string `json:"templateName,omitempty"`
	// TemplateScope is the object whose templates a node's template calls: "local/" and the workflow.
	TemplateScope string       `json:"templateScope,omitempty"`
	Phase         Phase        `json:"phase,omitempty"`
	BoundaryID    string       `json:"boundaryID,omitempty"`
	Message       string       `json:"message,omitempty"`
	StartedAt     *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt    *metav1.Time `json:"finishedAt,omitempty"`
	Progress      string       `json:"progress,omitempty"`
	// Children are the nodes that come after this one; of one that contains others, those that begin it.
	Children []string `json:"children,omitempty"`
	// OutboundNodes are the nodes that end one that contains others: what comes after it is their child.
	OutboundNodes []string `json:"outboundNodes,omitempty"`
	HostNodeName  string   `json:"hostNodeName,omitempty"`
}
