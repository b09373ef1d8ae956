package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReleaseCheck judges the stages of releases by what a Prometheus, a webhook or a Job answers, or by an error budget.
// Gates of type Check name it, in releases of its namespace. A change counts from the next sample on.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=releasechecks,scope=Namespaced,shortName=rck
// +kubebuilder:printcolumn:JSONPath=`.spec.prometheus.condition`,name=`CONDITION`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.webhook.url`,name=`WEBHOOK`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.job.where`,name=`JOB`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.slo.objective`,name=`OBJECTIVE`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type ReleaseCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked, and how the answers are judged.
	// +required
	Spec ReleaseCheckSpec `json:"spec"`
}

// ReleaseCheckList is a list of ReleaseChecks.
// +kubebuilder:object:root=true
type ReleaseCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseCheck `json:"items"`
}

// ReleaseCheckSpec is what a check asks, and how it judges the answers. It has exactly one of prometheus, webhook,
// job and slo.
// +kubebuilder:validation:ExactlyOneOf=prometheus;webhook;job;slo
type ReleaseCheckSpec struct {
	// Prometheus asks a Prometheus, or a server with its HTTP API.
	// +optional
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`

	// Webhook asks an HTTP server for a verdict.
	// +optional
	Webhook *WebhookCheck `json:"webhook,omitempty"`

	// Job runs a Job in clusters of the stage. The check passes when the Job is complete.
	// +optional
	Job *JobCheck `json:"job,omitempty"`

	// SLO asks a Prometheus how much of an error budget is left. Gates and ReleaseGuards can use it.
	// +optional
	SLO *SLOCheck `json:"slo,omitempty"`

	// Interval is the time between two samples.
	// +kubebuilder:default="30s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// InitialDelay is the time from the start of the gate to the first sample, so that the data is about the stage.
	// Default: 0.
	// +optional
	InitialDelay *metav1.Duration `json:"initialDelay,omitempty"`

	// Report lets the gate open with each verdict: the check is judged, recorded and shown, and stops no release. The gate
	// also opens if it times out, or if the check is inconclusive or gets no answer. Use it to try a check.
	// +optional
	Report bool `json:"report,omitempty"`

	// Count is how many samples must pass. Only for prometheus and slo.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	// +optional
	Count int32 `json:"count,omitempty"`

	// FailureLimit is how many samples may fail before the check fails. Only for prometheus and slo.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// InconclusiveLimit is how many samples in a row may be without data, or errors, before the check is inconclusive.
	// Such a sample neither passes nor fails. OnInconclusive of the gate decides the reaction.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=4
	// +optional
	InconclusiveLimit *int32 `json:"inconclusiveLimit,omitempty"`
}

// PrometheusCheck is a query and a condition. Queries can contain {{release}}, {{namespace}}, {{name}} (the workload),
// {{revision}}, {{stage}}, {{environment}}, {{clusters}} (those of the stage, as a regular expression such as m1|m2),
// {{cluster}}, and {{args.NAME}}, an argument of the gate. Variables are in quotes. An argument may also be outside
// quotes if its value is a number or a duration, such as 0.5 or 5m. A query with {{cluster}} is asked once for each
// cluster of the stage.
// +kubebuilder:validation:ExactlyOneOf=url;member
type PrometheusCheck struct {
	PrometheusServer `json:",inline"`

	// Query in PromQL. Its result is a number, or a vector: then the condition must be true for each of its elements.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`

	// MinSamples is the minimal amount of data behind the result. With less, the sample counts as no data.
	// +optional
	MinSamples *MinSamples `json:"minSamples,omitempty"`

	// Control is a query for a number to compare with, at the same time, such as the error rate of clusters with the
	// former revision.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Control string `json:"control,omitempty"`

	// Condition in CEL that is true for a good result, such as "result > 0.98" or "result <= control * 1.5". It has the
	// numbers result and control, and the text cluster. In arithmetic and with ==, numbers are written as 2.0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Condition string `json:"condition"`
}

// PrometheusServer is a server with the HTTP API of Prometheus.
type PrometheusServer struct {
	// URL of the server, such as https://prometheus.example.com:9090. The hub appends /api/v1/query. The hub does not
	// call addresses of its own machine, unless its administrator permits that.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// Member is a Service in each cluster of the stage. It is asked through the API server of the cluster.
	// +optional
	Member *MemberService `json:"member,omitempty"`

	// SecretRef names a Secret with the key token, or username and password, for the URL. The key ca.crt has the
	// certificates to trust instead of those of the system.
	// +optional
	SecretRef *ReleaseSecretReference `json:"secretRef,omitempty"`
}

// SLOCheck is a service level objective: the share of events, such as requests, that must be good. The other events
// are its error budget. The sample passes if enough of the budget is left, and it is not spent too fast. Queries can
// have the variables of PrometheusCheck, and {{window}}.
// +kubebuilder:validation:ExactlyOneOf=url;member
type SLOCheck struct {
	PrometheusServer `json:",inline"`

	// Objective is which percentage of events must be good, such as 99.9. It is less than 100.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,2}(\.[0-9]{1,6})?$`
	// +required
	Objective string `json:"objective"`

	// Window is the time that the budget is for, such as 30d: a number with m, h, d or w.
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,5}[mhdw]$`
	// +kubebuilder:default="30d"
	// +optional
	Window string `json:"window,omitempty"`

	// Good is a query in PromQL for the number of good events in {{window}}, such as
	// sum(increase(requests_total{code!~"5.."}[{{window}}])). The elements of a vector are added up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Good string `json:"good"`

	// Total is a query like Good for the number of all events.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Total string `json:"total"`

	// MinBudgetLeft is which percentage of the budget must be left. Default: 0, so that more is not spent than there is;
	// not checked if only maxBurnRate is set. ReleaseGuards have a limit of their own.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MinBudgetLeft *int32 `json:"minBudgetLeft,omitempty"`

	// MaxBurnRate is how fast the budget may be spent in burnRateWindow. A rate of 1 spends exactly the budget in the
	// whole window. Such as 14.4. Default: not checked.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,6})?$`
	// +optional
	MaxBurnRate string `json:"maxBurnRate,omitempty"`

	// BurnRateWindow is the time that maxBurnRate is measured in.
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,5}[mhdw]$`
	// +kubebuilder:default="5m"
	// +optional
	BurnRateWindow string `json:"burnRateWindow,omitempty"`
}

// MinSamples is the minimal amount of data behind the result of a query, such as a number of requests.
type MinSamples struct {
	// Query in PromQL for the number. The elements of a vector are added up; without elements, the number is 0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`

	// Number is the minimum.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int64 `json:"number"`
}

// MemberService is a Service in member clusters.
type MemberService struct {
	// Namespace of the Service.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// Service is its name.
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Service string `json:"service"`

	// Port of the Service: its name or number.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=15
	// +required
	Port string `json:"port"`

	// Scheme of the port.
	// +kubebuilder:validation:Enum=http;https
	// +kubebuilder:default=http
	// +optional
	Scheme string `json:"scheme,omitempty"`

	// Clusters in which the Service may be asked. Default: all clusters. Whoever writes the check needs the right to get
	// clusters/proxy of each of them; without a list, of all clusters.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Clusters []string `json:"clusters,omitempty"`
}

// ReleaseSecretReference names a Secret in the namespace of the check.
type ReleaseSecretReference struct {
	// Name of the Secret. Whoever writes the check needs the right to get it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// WebhookCheck is a server that judges a stage. The hub sends a POST request with the release, stage, gate, revision,
// attempt and clusters as JSON. The header Idempotency-Key is the same in all requests of one attempt. The server
// answers 200 with {"verdict": "Pass"}, Fail, Inconclusive or Wait, and optionally a message and retryAfter ("1m").
// Other answers: 2xx without a verdict is Pass, 4xx is Fail, and all else is an error.
type WebhookCheck struct {
	// URL of the server. The hub does not call addresses of its own machine, unless its administrator permits that.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	URL string `json:"url"`

	// SecretRef names a Secret whose key hmac-key signs requests: the header X-Argosy-Signature is sha256=HEX, the
	// HMAC-SHA256 of the body. The key token is sent as a bearer token. The key ca.crt has the certificates to trust
	// instead of those of the system.
	// +optional
	SecretRef *ReleaseSecretReference `json:"secretRef,omitempty"`

	// Timeout of a request, at most 30s.
	// +kubebuilder:default="10s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// JobCheck is a Job that runs in clusters of the stage, in the namespace of the release. The hub deletes it when the
// gate has closed, and a Job that failed after another hour. A retried stage runs another Job.
type JobCheck struct {
	// Spec of the Job, of batch/v1. Whoever writes the check needs the right to create Jobs and PropagationPolicies in
	// the namespace.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Spec runtime.RawExtension `json:"spec"`

	// Where the Job runs. EachCluster: in each cluster of the stage. OneCluster: in the first one that answers.
	// +kubebuilder:validation:Enum=EachCluster;OneCluster
	// +kubebuilder:default=EachCluster
	// +optional
	Where JobPlace `json:"where,omitempty"`
}

// JobPlace is where the Job of a check runs.
type JobPlace string

// The places of Jobs.
const (
	JobInEachCluster JobPlace = "EachCluster"
	JobInOneCluster  JobPlace = "OneCluster"
)

// ReleaseCheckReference names a ReleaseCheck in the namespace of the release.
type ReleaseCheckReference struct {
	// Name of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// Args are the values of {{args.NAME}} in the queries of the check. Webhooks get them too.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Args map[string]CheckArgument `json:"args,omitempty"`
}

// CheckArgument is the value of an argument.
// +kubebuilder:validation:MaxLength=253
type CheckArgument string

// GateCheck is a gate that a ReleaseCheck opens.
const GateCheck ReleaseGateType = "Check"

// InconclusiveAction is what happens at a gate whose check is inconclusive.
type InconclusiveAction string

// The actions about a check that is inconclusive.
const (
	InconclusiveWait  InconclusiveAction = "Wait"
	InconclusivePause InconclusiveAction = "Pause"
	InconclusiveFail  InconclusiveAction = "Fail"
	InconclusivePass  InconclusiveAction = "Pass"
)

// CheckVerdict is what the samples of a check mean.
type CheckVerdict string

// The verdicts. Pass and Fail are final. Inconclusive means that there is no data, and Error that there is no answer:
// the check goes on, and another sample can still pass or fail.
const (
	CheckPass         CheckVerdict = "Pass"
	CheckFail         CheckVerdict = "Fail"
	CheckInconclusive CheckVerdict = "Inconclusive"
	CheckError        CheckVerdict = "Error"
)

// ReleaseCheckStatus is the state of the check of a gate. It is written when the verdict changes and when a sample
// fails, so its numbers can be behind.
type ReleaseCheckStatus struct {
	// Name of the ReleaseCheck.
	Name string `json:"name"`

	// Attempt of the stage, and Key, which is the hash of the release, its revision, stage, attempt and gate. The verdict
	// counts for them alone. Webhooks get the key, and the names of Jobs contain it. Both are written before the first
	// sample.
	Attempt int32  `json:"attempt"`
	Key     string `json:"key"`

	// Verdict is empty while the samples so far decide nothing.
	// +optional
	Verdict CheckVerdict `json:"verdict,omitempty"`

	// Report is true if the check only reports: the gate opens with each verdict.
	// +optional
	Report bool `json:"report,omitempty"`

	// Passed and Failed are the numbers of such samples. Unclear is the number of samples without data, and of errors,
	// since the last other one.
	// +optional
	Passed int32 `json:"passed,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// +optional
	Unclear int32 `json:"unclear,omitempty"`

	// Value of the last sample, and Control, the number that it was compared with.
	// +optional
	Value string `json:"value,omitempty"`
	// +optional
	Control string `json:"control,omitempty"`

	// Message of the last sample.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`

	// SampledAt is when the last sample was taken, and NextAt when the next one is due.
	// +optional
	SampledAt *metav1.Time `json:"sampledAt,omitempty"`
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`
}

// The reasons of ReleaseChecks.
const (
	// ReasonCheckNotFound: a ReleaseCheck that the strategy names does not exist.
	//
	//reference:reason Accepted of Release
	ReasonCheckNotFound = "CheckNotFound"
	// ReasonCheckInconclusive: a check has no data.
	//
	//reference:reason Progressing of Release
	ReasonCheckInconclusive = "CheckInconclusive"
	// ReasonCheckUnavailable: a check gets no answer, or it cannot ask.
	//
	//reference:reason Progressing of Release
	ReasonCheckUnavailable = "CheckUnavailable"
	// ReasonCheckFailed: a check has failed.
	//
	//reference:reason Healthy of Release
	ReasonCheckFailed = "CheckFailed"
)
