package argo

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The kinds that the runner reads; it writes the first.
var (
	WorkflowKind         = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}
	WorkflowTemplateKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1",
		Kind: "WorkflowTemplate"}
	ClusterWorkflowTemplateKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1",
		Kind: "ClusterWorkflowTemplate"}
)

// Phase is how far a workflow or a node is.
type Phase string

// The phases of workflows and nodes; Skipped and Omitted are of nodes alone.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Errored   Phase = "Error"
	Skipped   Phase = "Skipped"
	Omitted   Phase = "Omitted"
)

// Over reports whether nothing more happens.
func (p Phase) Over() bool { return p != "" && p != Pending && p != Running }

func (p Phase) bad() bool { return p == Failed || p == Errored }

// Labels, annotations and values of Argo.
const (
	phaseLabel     = "workflows.argoproj.io/phase"
	completedLabel = "workflows.argoproj.io/completed"
	workflowLabel  = "workflows.argoproj.io/workflow"
	nodeIDNote     = "workflows.argoproj.io/node-id"
	nodeNameNote   = "workflows.argoproj.io/node-name"

	typePod       = "Pod"
	typeSteps     = "Steps"
	typeGroup     = "StepGroup"
	typeDAG       = "DAG"
	typeTaskGroup = "TaskGroup"
	typeRetry     = "Retry"
	typeSkipped   = "Skipped"
	typeSuspend   = "Suspend"

	terminate = "Terminate"
)

// Workflow is the part of a Workflow that the runner acts on.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec is also what a WorkflowTemplate has.
type Spec struct {
	Entrypoint            string                         `json:"entrypoint,omitempty"`
	Templates             []Template                     `json:"templates,omitempty"`
	Arguments             Arguments                      `json:"arguments"`
	Suspend               *bool                          `json:"suspend,omitempty"`
	Shutdown              string                         `json:"shutdown,omitempty"`
	Parallelism           *int64                         `json:"parallelism,omitempty"`
	ServiceAccountName    string                         `json:"serviceAccountName,omitempty"`
	Volumes               []corev1.Volume                `json:"volumes,omitempty"`
	VolumeClaimTemplates  []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	NodeSelector          map[string]string              `json:"nodeSelector,omitempty"`
	Affinity              *corev1.Affinity               `json:"affinity,omitempty"`
	Tolerations           []corev1.Toleration            `json:"tolerations,omitempty"`
	ImagePullSecrets      []corev1.LocalObjectReference  `json:"imagePullSecrets,omitempty"`
	PodMetadata           *Metadata                      `json:"podMetadata,omitempty"`
	PodPriorityClassName  string                         `json:"podPriorityClassName,omitempty"`
	OnExit                string                         `json:"onExit,omitempty"`
	ActiveDeadlineSeconds *int64                         `json:"activeDeadlineSeconds,omitempty"`
	TTLStrategy           *TTLStrategy                   `json:"ttlStrategy,omitempty"`
	WorkflowTemplateRef   *TemplateRef                   `json:"workflowTemplateRef,omitempty"`
}

// TTLStrategy is how many seconds a workflow stays after it is over; the more particular field wins.
type TTLStrategy struct {
	SecondsAfterCompletion *int32 `json:"secondsAfterCompletion,omitempty"`
	SecondsAfterSuccess    *int32 `json:"secondsAfterSuccess,omitempty"`
	SecondsAfterFailure    *int32 `json:"secondsAfterFailure,omitempty"`
}

// TemplateRef names a WorkflowTemplate, and for a step the template in it.
type TemplateRef struct {
	Name         string `json:"name,omitempty"`
	Template     string `json:"template,omitempty"`
	ClusterScope bool   `json:"clusterScope,omitempty"`
}

// Metadata is what pods get.
type Metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Arguments are handed to a template; of inputs, they say what it takes.
type Arguments struct {
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Parameter is a name with a value or, of inputs, a default.
type Parameter struct {
	Name    string `json:"name"`
	Value   *Text  `json:"value,omitempty"`
	Default *Text  `json:"default,omitempty"`
}

// Text is a string that may also be written as a number or a boolean.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = strings.TrimSpace(string(data))
	}
	*t = Text(s)
	return nil
}

// Template is one kind of step.
type Template struct {
	Name               string              `json:"name,omitempty"`
	Inputs             Arguments           `json:"inputs"`
	Metadata           Metadata            `json:"metadata"`
	Container          *corev1.Container   `json:"container,omitempty"`
	Script             *Script             `json:"script,omitempty"`
	Steps              [][]Step            `json:"steps,omitempty"`
	DAG                *DAG                `json:"dag,omitempty"`
	Suspend            *SuspendTemplate    `json:"suspend,omitempty"`
	InitContainers     []corev1.Container  `json:"initContainers,omitempty"`
	Sidecars           []corev1.Container  `json:"sidecars,omitempty"`
	Volumes            []corev1.Volume     `json:"volumes,omitempty"`
	NodeSelector       map[string]string   `json:"nodeSelector,omitempty"`
	Affinity           *corev1.Affinity    `json:"affinity,omitempty"`
	Tolerations        []corev1.Toleration `json:"tolerations,omitempty"`
	ServiceAccountName string              `json:"serviceAccountName,omitempty"`
	RetryStrategy      *struct {
		Limit *intstr.IntOrString `json:"limit,omitempty"`
	} `json:"retryStrategy,omitempty"`
	Parallelism *int64 `json:"parallelism,omitempty"`
}

// Script is a container with a source, which the simulation does not run.
type Script struct {
	corev1.Container `json:",inline"`
	Source           string `json:"source,omitempty"`
}

// SuspendTemplate waits for somebody to resume it, or for its time to pass.
type SuspendTemplate struct {
	Duration Text `json:"duration,omitempty"`
}

// DAG are tasks in the order of their dependencies.
type DAG struct {
	Tasks    []Step `json:"tasks,omitempty"`
	FailFast *bool  `json:"failFast,omitempty"`
}

// Step is one step of a group or, with dependencies, one task of a DAG.
type Step struct {
	Name        string           `json:"name,omitempty"`
	Template    string           `json:"template,omitempty"`
	TemplateRef *TemplateRef     `json:"templateRef,omitempty"`
	Inline      *json.RawMessage `json:"inline,omitempty"`
	Arguments   Arguments        `json:"arguments"`
	WithItems   []any            `json:"withItems,omitempty"`
	When        string           `json:"when,omitempty"`
	ContinueOn  struct {
		Error  bool `json:"error,omitempty"`
		Failed bool `json:"failed,omitempty"`
	} `json:"continueOn"`
	Dependencies []string `json:"dependencies,omitempty"`
	Depends      string   `json:"depends,omitempty"`
}

// tolerates reports whether what comes after the step goes on although it ended so.
func (s *Step) tolerates(p Phase) bool {
	return p == Failed && s.ContinueOn.Failed || p == Errored && s.ContinueOn.Error
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
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Message string                 `json:"message,omitempty"`
}

// Node is one step that was begun, or what several steps are part of.
type Node struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	DisplayName  string       `json:"displayName"`
	Type         string       `json:"type"`
	TemplateName string       `json:"templateName,omitempty"`
	TemplateRef  *TemplateRef `json:"templateRef,omitempty"`
	// TemplateScope is the object whose templates a node's template calls: "local/" and the workflow, or another.
	TemplateScope string       `json:"templateScope,omitempty"`
	Phase         Phase        `json:"phase,omitempty"`
	BoundaryID    string       `json:"boundaryID,omitempty"`
	Message       string       `json:"message,omitempty"`
	StartedAt     *metav1.Time `json:"startedAt,omitempty"`
	FinishedAt    *metav1.Time `json:"finishedAt,omitempty"`
	Progress      string       `json:"progress,omitempty"`
	// Inputs are the parameters that the node was given.
	Inputs *Arguments `json:"inputs,omitempty"`
	// Children are the nodes that come after this one; of one that contains others, those that begin it.
	Children []string `json:"children,omitempty"`
	// OutboundNodes are the nodes that end one that contains others: what comes after it is their child.
	OutboundNodes []string `json:"outboundNodes,omitempty"`
	HostNodeName  string   `json:"hostNodeName,omitempty"`
}
