// Package admission checks writes inside the API server: it normalises, defaults and validates our own kinds, claims
// new templates for their policy in the same write, and protects labelled objects. core/admission/dialect,
// core/admission/validate and core/propagate decide; this package calls them. It writes nothing else, so dry-run
// works.
package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// The plugins' names, as --disable-admission-plugins and the metrics of the API server know them.
const (
	ObjectsPlugin    = "ArgosyObjects"
	ClaimPlugin      = "ArgosyClaim"
	ProtectionPlugin = "ArgosyDeletionProtection"
	AgentsPlugin     = "ArgosyAgents"
)

// Plugin is an admission plugin under its name. New is called for each of the API servers that make up a
// kube-apiserver.
type Plugin struct {
	Name string
	New  func() (admission.Interface, error)
}

// Options of the plugins.
type Options struct {
	// ForbidOverwrite rejects requests of users to overwrite objects in members that the hub does not manage.
	ForbidOverwrite bool
	// QuotasOff enforces no FederatedResourceQuota.
	QuotasOff bool
	// NoExecuteTaintPolicies permits ClusterTaintPolicies with NoExecute taints.
	NoExecuteTaintPolicies bool
	// Tolerations are added to policies that do not set how long to tolerate clusters that are not ready or unreachable;
	// nil adds none.
	Tolerations *membership.TolerationDefaults
	// Scheme returns the kinds that controllers read; nil refuses no status that they cannot read.
	Scheme func() (*runtime.Scheme, error)
}

// Plugins returns all plugins in their order. They share an index of policies. It uses the dynamic client that the
// first plugin gets, and ends with that server.
func Plugins(o Options) []Plugin {
	index := newIndex()
	return []Plugin{
		{ObjectsPlugin, func() (admission.Interface, error) { return newObjects(index, o), nil }},
		{ClaimPlugin, func() (admission.Interface, error) { return newClaim(index), nil }},
		{ProtectionPlugin, func() (admission.Interface, error) { return newProtection(), nil }},
		{AgentsPlugin, func() (admission.Interface, error) { return newAgents(), nil }},
	}
}

// Names returns the names of the plugins in the order in which they run.
func Names() []string { return []string{ObjectsPlugin, ClaimPlugin, ProtectionPlugin, AgentsPlugin} }

// reader is the part of a plugin that reads objects of the hub.
type reader struct {
	plugin string
	client dynamic.Interface
}

func (r *reader) SetDynamicClient(c dynamic.Interface) { r.client = c }

func (r *reader) ValidateInitialization() error {
	if r.client == nil {
		return fmt.Errorf("%s needs a client", r.plugin)
	}
	return nil
}
