package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReleaseCheck judges stages of releases by Prometheus, a webhook, a Job or an error budget. Gates of type Check name
// it, in releases of its namespace. A change of it applies from the next sample on.
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

	// Spec has the source of the check, and the rules for its verdict.
	Spec ReleaseCheckSpec `json:"spec"`
}

// ReleaseCheckList is a list of ReleaseChecks.
// +kubebuilder:object:root=true
type ReleaseCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReleaseCheck `json:"items"`
}

// ReleaseCheckSpec has the source of a check, and the rules for its verdict. Set one of prometheus, webhook, job and
// slo.
// +kubebuilder:validation:ExactlyOneOf=prometheus;webhook;job;slo
type ReleaseCheckSpec struct {
	// Prometheus queries a Prometheus, or a server with its HTTP API.
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`

	// Webhook requests a verdict from an HTTP server.
	Webhook *WebhookCheck `json:"webhook,omitempty"`

	// Job runs a Job in clusters of the stage. The check passes when the Job is complete.
	Job *JobCheck `json:"job,omitempty"`

	// SLO queries a Prometheus for the rest of an error budget. Gates and ReleaseGuards can use it.
	SLO *SLOCheck `json:"slo,omitempty"`

	// Interval is the time between two samples. Default: 30s.
	// +kubebuilder:default="30s"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// InitialDelay is the time from the start of the gate to the first sample, so that it is about the stage. Default: 0s.
	InitialDelay *metav1.Duration `json:"initialDelay,omitempty"`

	// Report opens the gate with each verdict: the check is evaluated, recorded and shown, and stops no release. The gate
	// also opens if it times out, or if the check is inconclusive or gets no answer. Default: false.
	Report bool `json:"report,omitempty"`

	// Count is the number of samples that must pass. Only for prometheus and slo. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	Count int32 `json:"count,omitempty"`

	// FailureLimit is the number of samples that may fail before the check fails. Only for prometheus and slo. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// InconclusiveLimit is the number of consecutive samples without data, or with errors, that are permitted before the
	// check is inconclusive. Such samples neither pass nor fail. The gate has the reaction in onInconclusive. Default: 4.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=4
	InconclusiveLimit *int32 `json:"inconclusiveLimit,omitempty"`
}

// PrometheusCheck is a query and a condition. Queries can contain {{release}}, {{namespace}}, {{name}} (the workload),
// {{revision}}, {{stage}}, {{environment}}, {{clusters}} (those of the stage, as a regular expression such as m1|m2),
// {{cluster}}, and {{args.NAME}}, an argument of the gate. Variables are in quotes. An argument may be outside quotes
// if its value is a number or a duration, such as 0.5 or 5m. A query with {{cluster}} is sent for each cluster.
// +kubebuilder:validation:ExactlyOneOf=url;member
type PrometheusCheck struct {
	PrometheusServer `json:",inline"`

	// Query in PromQL. The result is a number or a vector. The condition must be true for each element of a vector.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// MinSamples is the minimal amount of data behind the result. With less, the sample has no data. Default: none.
	MinSamples *MinSamples `json:"minSamples,omitempty"`

	// Control is a query for a number to compare the result with, at the same time, such as the error rate of clusters
	// with the former revision.
	// +kubebuilder:validation:MaxLength=4096
	Control string `json:"control,omitempty"`

	// Condition is a CEL expression that is true for a good result, such as "result > 0.98" or "result <= control * 1.5".
	// The variables are the numbers result and control, and the text cluster. In arithmetic and with ==, write 2.0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Condition string `json:"condition"`
}

// PrometheusServer is a server with the HTTP API of Prometheus.
type PrometheusServer struct {
	// URL of the server, such as https://prometheus.example.com:9090. The hub appends /api/v1/query. The hub does not
	// call addresses of its own machine, unless its administrator permits that.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// Member is a Service in each cluster of the stage. The hub reaches it through the API server of the cluster.
	Member *MemberService `json:"member,omitempty"`

	// SecretRef names a Secret with the key token, or username and password, for the URL. The key ca.crt has the
	// certificates to trust instead of those of the system.
	SecretRef *ReleaseSecretReference `json:"secretRef,omitempty"`
}

// SLOCheck is a service level objective: the share of events, such as requests, that must be good. The other events are
// its error budget. A sample passes if enough of the budget is left, and it is not spent too fast. Queries can have the
// variables of PrometheusCheck, and {{window}}.
// +kubebuilder:validation:ExactlyOneOf=url;member
type SLOCheck struct {
	PrometheusServer `json:",inline"`

	// Objective is the percentage of events that must be good, less than 100, such as 99.9.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,2}(\.[0-9]{1,6})?$`
	Objective string `json:"objective"`

	// Window is the period of the budget: a number with m, h, d or w. Default: 30d.
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,5}[mhdw]$`
	// +kubebuilder:default="30d"
	Window string `json:"window,omitempty"`

	// Good is a query in PromQL for the number of good events in {{window}}, such as
	// sum(increase(requests_total{code!~"5.."}[{{window}}])). The elements of a vector are added up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Good string `json:"good"`

	// Total is a query in PromQL for the number of all events in {{window}}. The elements of a vector are added up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Total string `json:"total"`

	// MinBudgetLeft is the percentage of the budget that must be left. Default: 0, the budget must not be exceeded; not
	// checked if only maxBurnRate is set. ReleaseGuards have a limit of their own.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinBudgetLeft *int32 `json:"minBudgetLeft,omitempty"`

	// MaxBurnRate is the largest burn rate in burnRateWindow, such as 14.4. A rate of 1 spends exactly the budget in the
	// whole window. Default: not checked.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,6})?$`
	MaxBurnRate string `json:"maxBurnRate,omitempty"`

	// BurnRateWindow is the period in which maxBurnRate is measured. Default: 5m.
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,5}[mhdw]$`
	// +kubebuilder:default="5m"
	BurnRateWindow string `json:"burnRateWindow,omitempty"`
}

// MinSamples is the minimal amount of data behind the result of a query, such as a number of requests.
type MinSamples struct {
	// Query in PromQL for the number. The elements of a vector are added up; without elements, the number is 0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// Number is the minimum.
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
}

// MemberService is a Service in member clusters.
type MemberService struct {
	// Namespace of the Service.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Service is the name of the Service.
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Service string `json:"service"`

	// Port is the name or number of the port of the Service.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port"`

	// Scheme of the port: http or https. Default: http.
	// +kubebuilder:validation:Enum=http;https
	// +kubebuilder:default=http
	Scheme string `json:"scheme,omitempty"`

	// Clusters in which the Service may be requested. Default: all clusters. The author of the check needs the permission
	// to get clusters/proxy of each of them; without a list, of all clusters.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`
}

// ReleaseSecretReference names a Secret in the namespace of the check.
type ReleaseSecretReference struct {
	// Name of the Secret. The author of the check needs the permission to get it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WebhookCheck is a server that judges a stage. The hub sends a POST request with the release, stage, gate, revision,
// attempt and clusters as JSON. The header Idempotency-Key is the same in all requests of one attempt. The server
// answers 200 with {"verdict": "Pass"}, Fail, Inconclusive or Wait, and optionally a message and retryAfter ("1m").
// Other answers: 2xx without a verdict is Pass, 4xx is Fail, and all others are errors.
type WebhookCheck struct {
	// URL of the server. The hub does not call addresses of its own machine, unless its administrator permits that.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// SecretRef names a Secret whose key hmac-key signs requests: the header X-Argosy-Signature is sha256=HEX, the
	// HMAC-SHA256 of the body. The key token is sent as a bearer token. The key ca.crt has the certificates to trust
	// instead of those of the system.
	SecretRef *ReleaseSecretReference `json:"secretRef,omitempty"`

	// Timeout of a request, at most 30s. Default: 10s.
	// +kubebuilder:default="10s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// JobCheck is a Job that runs in clusters of the stage, in the namespace of the release. The hub deletes it when the
// gate has closed. A failed Job is deleted after another hour. A retried stage runs another Job.
type JobCheck struct {
	// Spec of the Job, of batch/v1. The author of the check needs the permission to create Jobs and PropagationPolicies.
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec"`

	// Where selects the clusters of the Job. EachCluster: each cluster of the stage. OneCluster: the first one that
	// responds. Default: EachCluster.
	// +kubebuilder:validation:Enum=EachCluster;OneCluster
	// +kubebuilder:default=EachCluster
	Where JobPlace `json:"where,omitempty"`
}

// JobPlace is EachCluster or OneCluster.
type JobPlace string

const (
	JobInEachCluster JobPlace = "EachCluster"
	JobInOneCluster  JobPlace = "OneCluster"
)

// ReleaseCheckReference names a ReleaseCheck in the namespace of the release.
type ReleaseCheckReference struct {
	// Name of the ReleaseCheck.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Args are the values of {{args.NAME}} in the queries of the check. Webhooks get them too.
	// +kubebuilder:validation:MaxProperties=16
	Args map[string]CheckArgument `json:"args,omitempty"`
}

// CheckArgument is the value of an argument.
// +kubebuilder:validation:MaxLength=253
type CheckArgument string

// GateCheck is a gate that a ReleaseCheck opens.
const GateCheck ReleaseGateType = "Check"

// InconclusiveAction is the reaction of a gate to an inconclusive check.
type InconclusiveAction string

const (
	InconclusiveWait  InconclusiveAction = "Wait"
	InconclusivePause InconclusiveAction = "Pause"
	InconclusiveFail  InconclusiveAction = "Fail"
	InconclusivePass  InconclusiveAction = "Pass"
)

// CheckVerdict is the verdict of a check after its samples so far.
type CheckVerdict string

// The verdicts. Pass and Fail are final. Inconclusive: there is no data. Error: there is no answer. After these, the
// check continues, and another sample can still pass or fail.
const (
	CheckPass         CheckVerdict = "Pass"
	CheckFail         CheckVerdict = "Fail"
	CheckInconclusive CheckVerdict = "Inconclusive"
	CheckError        CheckVerdict = "Error"
)

// ReleaseCheckStatus is the state of the check of a gate. The hub writes it when the verdict changes and when a sample
// fails, so its numbers can be out of date.
type ReleaseCheckStatus struct {
	// Name of the ReleaseCheck.
	Name string `json:"name"`

	// Attempt of the stage. The verdict is valid only for this attempt.
	Attempt int32 `json:"attempt"`
	// Key is the hash of the release, revision, stage, attempt and gate. Webhooks get it, and names of Jobs contain it.
	Key string `json:"key"`

	// Verdict of the check. Empty while the samples decide nothing.
	Verdict CheckVerdict `json:"verdict,omitempty"`

	// Report is true if the check only reports: the gate opens with each verdict.
	Report bool `json:"report,omitempty"`

	// Passed is the number of samples that passed.
	Passed int32 `json:"passed,omitempty"`
	// Failed is the number of samples that failed.
	Failed int32 `json:"failed,omitempty"`
	// Unclear is the number of consecutive last samples without data, or with errors.
	Unclear int32 `json:"unclear,omitempty"`

	// Value is the result of the last sample.
	Value string `json:"value,omitempty"`
	// Control is the number that the last result was compared with.
	Control string `json:"control,omitempty"`

	// Message of the last sample.
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// SampledAt is the time of the last sample.
	SampledAt *metav1.Time `json:"sampledAt,omitempty"`
	// NextAt is the time of the next sample.
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
	// ReasonCheckUnavailable: a check gets no answer, or cannot send its request.
	//
	//reference:reason Progressing of Release
	ReasonCheckUnavailable = "CheckUnavailable"
	// ReasonCheckFailed: a check has failed.
	//
	//reference:reason Healthy of Release
	ReasonCheckFailed = "CheckFailed"
)
