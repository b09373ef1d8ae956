package validate

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// contextVersion is the version of ResourceInterpreterContext that we send.
const contextVersion = "v1alpha1"

// interpreterOperations are the operations of rules.
var interpreterOperations = func() []configv1alpha1.InterpreterOperation {
	all := []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationAll}
	for _, o := range script.Operations {
		all = append(all, o.Operation)
	}
	return all
}()

// WebhookConfiguration validates the registration of interpreter webhooks.
func WebhookConfiguration(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range c.Webhooks {
		w, path := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validation.IsFullyQualifiedName(path.Child("name"), w.Name)...)
		if seen[w.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), w.Name))
		}
		seen[w.Name] = true
		errs = append(errs, clientConfig(&w.ClientConfig, path.Child("clientConfig"))...)
		for j := range w.Rules {
			errs = append(errs, webhookRule(&w.Rules[j], path.Child("rules").Index(j))...)
		}
		versions := path.Child("interpreterContextVersions")
		for j, v := range w.InterpreterContextVersions {
			errs = append(errs, valid(versions.Index(j), v, validation.IsDNS1035Label)...)
			if slices.Index(w.InterpreterContextVersions, v) != j {
				errs = append(errs, field.Duplicate(versions.Index(j), v))
			}
		}
		if !slices.Contains(w.InterpreterContextVersions, contextVersion) {
			errs = append(errs, field.Invalid(versions, strings.Join(w.InterpreterContextVersions, ","),
				fmt.Sprintf("must include at least one of %s", contextVersion)))
		}
	}
	return errs
}

func clientConfig(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		at := path.Child("url")
		u, err := url.Parse(*c.URL)
		if err != nil {
			return field.ErrorList{field.Invalid(at, *c.URL, fmt.Sprintf("url must be a valid URL: %v", err))}
		}
		if u.Scheme != "https" {
			return field.ErrorList{field.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme")}
		}
		return endpoint(*c.URL, at)
	}
	var errs field.ErrorList
	service, at := c.Service, path.Child("service")
	errs = append(errs, required(at.Child("name"), service.Name, "service name is required")...)
	errs = append(errs, required(at.Child("namespace"), service.Namespace, "service namespace is required")...)
	if p := service.Port; p != nil {
		errs = append(errs, valid(at.Child("port"), int(*p), validation.IsValidPortNum)...)
	}
	if p := service.Path; p != nil && !strings.HasPrefix(*p, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), *p, "must start with a '/'"))
	}
	return errs
}

func webhookRule(r *configv1alpha1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
		errs = append(errs, supported(path.Child("operations").Index(i), o, interpreterOperations...)...)
	}
	errs = append(errs, wildcard(operations, path.Child("operations"))...)
	errs = append(errs, wildcard(r.APIGroups, path.Child("apiGroups"))...)
	errs = append(errs, wildcard(r.APIVersions, path.Child("apiVersions"))...)
	return append(errs, wildcard(r.Kinds, path.Child("kinds"))...)
}

// wildcard rejects an empty list, and a list with * and other entries.
func wildcard(list []string, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		return field.ErrorList{field.Invalid(path, strings.Join(list, ","),
			"if '*' is present, must not specify other values")}
	}
	return nil
}
