package release

import (
	"fmt"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// CheckRight is a right that the author of a ReleaseCheck needs, because the check makes the hub do as much.
type CheckRight struct {
	Verb, Group, Version, Resource, Subresource string
	// Name of the object; empty for all.
	Name string
	// Cluster is true if the resource has no namespace; otherwise it is in the namespace of the check.
	Cluster bool
	// For is the field that needs it.
	For string
}

// String describes the right, such as `get secrets "webhook"`.
func (r CheckRight) String() string {
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Group != "" {
		what += "." + r.Group
	}
	switch {
	case r.Name != "":
		return fmt.Sprintf("%s %s %q", r.Verb, what, r.Name)
	case r.Verb == "get":
		return fmt.Sprintf("%s all %s", r.Verb, what)
	}
	return r.Verb + " " + what
}

// RightsForCheck returns the rights that the author of a check needs: to get the Secret that the hub sends, to reach
// the members whose Services the hub asks, and to run Jobs in them.
func RightsForCheck(s *releasev1alpha1.ReleaseCheckSpec) []CheckRight {
	var rights []CheckRight
	secret := func(ref *releasev1alpha1.ReleaseSecretReference, path string) {
		if ref != nil {
			rights = append(rights, CheckRight{Verb: "get", Version: "v1", Resource: "secrets", Name: ref.Name, For: path})
		}
	}
	server := func(p *releasev1alpha1.PrometheusServer, path string) {
		secret(p.SecretRef, path+".secretRef")
		if p.Member == nil {
			return
		}
		names := p.Member.Clusters
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			rights = append(rights, CheckRight{Verb: "get", Group: "cluster.karmada.io", Version: "v1alpha1",
				Resource: "clusters", Subresource: "proxy", Name: name, Cluster: true, For: path + ".member"})
		}
	}
	if s.Prometheus != nil {
		server(&s.Prometheus.PrometheusServer, "spec.prometheus")
	}
	if s.SLO != nil {
		server(&s.SLO.PrometheusServer, "spec.slo")
	}
	if s.Webhook != nil {
		secret(s.Webhook.SecretRef, "spec.webhook.secretRef")
	}
	if s.Job != nil {
		rights = append(rights,
			CheckRight{Verb: "create", Group: "batch", Version: "v1", Resource: "jobs", For: "spec.job"},
			CheckRight{Verb: "create", Group: "policy.karmada.io", Version: "v1alpha1", Resource: "propagationpolicies",
				For: "spec.job"})
	}
	return rights
}
