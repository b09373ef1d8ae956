package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release/sample"
)

const (
	shortestSampleInterval = time.Second
	longestWebhookTimeout  = 30 * time.Second
	onlyForPrometheusCheck = "is for prometheus and slo: a webhook and a Job answer once, with a verdict"
)

// ReleaseCheck validates the spec of a ReleaseCheck. It does not check whether its author may use what it names.
func ReleaseCheck(s *releasev1alpha1.ReleaseCheckSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Interval != nil && s.Interval.Duration < shortestSampleInterval {
		errs = append(errs, field.Invalid(path.Child("interval"), s.Interval.Duration.String(),
			fmt.Sprintf("must be at least %s", shortestSampleInterval)))
	}
	if d := s.InitialDelay; d != nil && d.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("initialDelay"), d.Duration.String(), "must not be negative"))
	}
	if s.InitialDelay != nil && s.Job != nil {
		errs = append(errs, field.Forbidden(path.Child("initialDelay"),
			"is not for job: a Job can wait by itself"))
	}
	if s.Prometheus == nil && s.SLO == nil && s.Count > 1 {
		errs = append(errs, field.Invalid(path.Child("count"), s.Count, onlyForPrometheusCheck))
	}
	if s.Prometheus == nil && s.SLO == nil && s.FailureLimit > 0 {
		errs = append(errs, field.Invalid(path.Child("failureLimit"), s.FailureLimit, onlyForPrometheusCheck))
	}
	switch {
	case s.Prometheus != nil:
		errs = append(errs, prometheusCheck(s.Prometheus, path.Child("prometheus"))...)
	case s.SLO != nil:
		errs = append(errs, sloCheck(s.SLO, path.Child("slo"))...)
	case s.Webhook != nil:
		at := path.Child("webhook")
		errs = append(errs, checkURL(s.Webhook.URL, true, at.Child("url"))...)
		if d := s.Webhook.Timeout; d != nil && (d.Duration <= 0 || d.Duration > longestWebhookTimeout) {
			errs = append(errs, field.Invalid(at.Child("timeout"), d.Duration.String(),
				fmt.Sprintf("must be more than 0 and at most %s", longestWebhookTimeout)))
		}
	case s.Job != nil:
		errs = append(errs, jobCheck(s.Job, path.Child("job"))...)
	}
	return errs
}

func prometheusCheck(p *releasev1alpha1.PrometheusCheck, path *field.Path) field.ErrorList {
	errs := prometheusServer(&p.PrometheusServer, path)
	errs = append(errs, query(p.Query, path.Child("query"))...)
	errs = append(errs, query(p.Control, path.Child("control"))...)
	if p.MinSamples != nil {
		at := path.Child("minSamples", "query")
		errs = append(errs, query(p.MinSamples.Query, at)...)
		if sample.PerCluster(p.MinSamples.Query) && p.Member == nil && !sample.PerCluster(p.Query, p.Control) {
			errs = append(errs, field.Invalid(at, p.MinSamples.Query,
				"has {{cluster}}, and the query has not: use {{clusters}} for all clusters of the stage"))
		}
	}
	if _, err := sample.NewCondition(p.Condition, p.Control != ""); err != nil {
		errs = append(errs, field.Invalid(path.Child("condition"), p.Condition, err.Error()))
	}
	return errs
}

// prometheusServer validates the server of a check.
func prometheusServer(p *releasev1alpha1.PrometheusServer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.URL != "" {
		errs = append(errs, checkURL(p.URL, false, path.Child("url"))...)
	}
	if p.Member != nil && p.SecretRef != nil {
		errs = append(errs, field.Forbidden(path.Child("secretRef"), "is for url: a Service in a member gets no credentials"))
	}
	return errs
}

// query validates the variables of a query. literals are variables that it may have beside those of all queries, also
// outside quotes.
func query(text string, path *field.Path, literals ...string) field.ErrorList {
	names := slices.Concat(sample.VariableNames, literals)
	if unknown := sample.Unknown(text, names); unknown != "" {
		return field.ErrorList{field.NotSupported(path, "{{"+unknown+"}}", append(names, sample.ArgumentPrefix+"NAME"))}
	}
	if name := sample.Unquoted(text, literals...); name != "" {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf(
			"has {{%s}} outside quotes: only an argument may be there, as a number or a duration", name))}
	}
	return nil
}

// sloCheck validates an SLO.
func sloCheck(s *releasev1alpha1.SLOCheck, path *field.Path) field.ErrorList {
	errs := prometheusServer(&s.PrometheusServer, path)
	if _, err := sample.ParseObjective(s.Objective); err != nil {
		errs = append(errs, field.Invalid(path.Child("objective"), s.Objective, err.Error()))
	}
	for _, t := range []struct {
		at   *field.Path
		text string
	}{{path.Child("good"), s.Good}, {path.Child("total"), s.Total}} {
		errs = append(errs, query(t.text, t.at, sample.WindowVariable)...)
		if !slices.Contains(sample.Names(t.text), sample.WindowVariable) {
			errs = append(errs, field.Invalid(t.at, t.text,
				"must have {{window}}: the hub asks for the window of the budget and for that of the burn rate"))
		}
	}
	return errs
}

// checkURL validates an address that the hub calls. query is whether the address may have a query.
func checkURL(text string, query bool, path *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, text, "must be a URL")}
	case u.Scheme != "http" && u.Scheme != "https":
		return field.ErrorList{field.Invalid(path, text, "must begin with https:// or http://")}
	case u.Hostname() == "":
		return field.ErrorList{field.Invalid(path, text, "must have a host")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(path, u.Redacted(), "must not have a user: name a Secret in secretRef")}
	case u.Fragment != "":
		return field.ErrorList{field.Invalid(path, text, "must not have a fragment")}
	case !query && u.RawQuery != "":
		return field.ErrorList{field.Invalid(path, text, "must not have a query: the hub appends /api/v1/query")}
	}
	return nil
}

// jobCheck validates the Job of a check as far as its members do not.
func jobCheck(j *releasev1alpha1.JobCheck, path *field.Path) field.ErrorList {
	at := path.Child("spec")
	var spec batchv1.JobSpec
	decoder := json.NewDecoder(bytes.NewReader(j.Spec.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return field.ErrorList{field.Invalid(at, "", "must be the spec of a Job of batch/v1: "+err.Error())}
	}
	var errs field.ErrorList
	if len(spec.Template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("template", "spec", "containers"), "a Job runs a container"))
	}
	errs = append(errs, supported(at.Child("template", "spec", "restartPolicy"), spec.Template.Spec.RestartPolicy,
		corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)...)
	if spec.TTLSecondsAfterFinished != nil {
		errs = append(errs, field.Forbidden(at.Child("ttlSecondsAfterFinished"),
			"the hub deletes the Job; if its cluster deleted it first, the hub would run it again"))
	}
	if spec.Selector != nil || spec.ManualSelector != nil {
		errs = append(errs, field.Forbidden(at.Child("selector"), "the cluster sets the selector of a Job"))
	}
	return errs
}

// gateType compares the type of a gate with what is set in it.
func gateType(g releasev1alpha1.ReleaseGate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch check := g.Type == releasev1alpha1.GateCheck; {
	case check && g.CheckRef == nil:
		errs = append(errs, field.Required(path.Child("checkRef"), "a gate of type Check names a ReleaseCheck"))
	case check && g.Approval != nil:
		errs = append(errs, field.Forbidden(path.Child("approval"), "is for a gate of type Approval: use a gate for each"))
	case !check && g.CheckRef != nil:
		errs = append(errs, field.Forbidden(path.Child("checkRef"), "is for a gate of type Check"))
	case !check && g.OnInconclusive != "":
		errs = append(errs, field.Forbidden(path.Child("onInconclusive"), "is for a gate of type Check"))
	}
	return errs
}
