package validate

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
)

// MultiClusterIngress validates a MultiClusterIngress by the rules of an Ingress.
func MultiClusterIngress(i *networkingv1alpha1.MultiClusterIngress) field.ErrorList {
	var errs field.ErrorList
	spec, path := &i.Spec.IngressSpec, field.NewPath("spec")
	errs = append(errs, valid(field.NewPath("metadata", "name"), i.Name, validation.IsDNS1123Subdomain)...)
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(path, "", "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.IngressClassName != nil {
		errs = append(errs, valid(path.Child("ingressClassName"), *spec.IngressClassName,
			validation.IsDNS1123Subdomain)...)
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, ingressBackend(spec.DefaultBackend, path.Child("defaultBackend"))...)
	}
	for n, tls := range spec.TLS {
		for h, host := range tls.Hosts {
			errs = append(errs, ingressHost(host, path.Child("tls").Index(n).Child("hosts").Index(h))...)
		}
		if tls.SecretName != "" {
			errs = append(errs, valid(path.Child("tls").Index(n).Child("secretName"), tls.SecretName,
				validation.IsDNS1123Subdomain)...)
		}
	}
	for n, rule := range spec.Rules {
		at := path.Child("rules").Index(n)
		if rule.Host != "" {
			errs = append(errs, ingressHost(rule.Host, at.Child("host"))...)
		}
		if rule.HTTP == nil {
			continue
		}
		if len(rule.HTTP.Paths) == 0 {
			errs = append(errs, field.Required(at.Child("http", "paths"), ""))
		}
		for p := range rule.HTTP.Paths {
			errs = append(errs, ingressPath(&rule.HTTP.Paths[p], at.Child("http", "paths").Index(p))...)
		}
	}
	return errs
}

// ingressHost validates a DNS name, or one with an asterisk as the first label.
func ingressHost(host string, path *field.Path) field.ErrorList {
	if len(validation.IsValidIP(field.NewPath("host"), host)) == 0 {
		return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
	}
	msgs := validation.IsDNS1123Subdomain(host)
	if strings.Contains(host, "*") {
		msgs = validation.IsWildcardDNS1123Subdomain(host)
	}
	if len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path, host, strings.Join(msgs, "; "))}
	}
	return nil
}

// notInPaths are substrings that would change the meaning of a URL path.
var notInPaths = []string{"//", "/./", "/../", "%2f", "%2F"}

func ingressPath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.PathType == nil:
		errs = append(errs, field.Required(path.Child("pathType"), "pathType must be specified"))
	case *p.PathType == networkingv1.PathTypeExact, *p.PathType == networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must be an absolute path"))
			break
		}
		for _, part := range notInPaths {
			if strings.Contains(p.Path, part) {
				errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must not contain '"+part+"'"))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				errs = append(errs, field.Invalid(path.Child("path"), p.Path, "cannot end with '"+end+"'"))
			}
		}
	case *p.PathType == networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must be an absolute path"))
		}
	default:
		errs = append(errs, supported(path.Child("pathType"), *p.PathType, networkingv1.PathTypeExact,
			networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)...)
	}
	return append(errs, ingressBackend(&p.Backend, path.Child("backend"))...)
}

func ingressBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		at := path.Child("resource")
		return append(required(at.Child("kind"), b.Resource.Kind, "kind is required"),
			required(at.Child("name"), b.Resource.Name, "name is required")...)
	case b.Service == nil:
		return field.ErrorList{field.Required(path, "a service or a resource backend is required")}
	}
	service := path.Child("service")
	errs := serviceName(b.Service.Name, service.Child("name"))
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(service.Child("port"), port.Name, "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, valid(service.Child("port", "name"), port.Name, validation.IsValidPortName)...)
	case port.Number != 0:
		errs = append(errs, valid(service.Child("port", "number"), int(port.Number), validation.IsValidPortNum)...)
	default:
		errs = append(errs, field.Required(service.Child("port"), "port name or number is required"))
	}
	return errs
}
