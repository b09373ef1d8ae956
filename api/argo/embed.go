// Package argo holds the kinds of Argo Workflows and Argo Rollouts as definitions of our own, one file per kind in the
// notation of api/definition. It contains schemas only.
package argo

import (
	"embed"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/argosy-io/argosy/api/definition"
)

//go:embed *.yaml
var files embed.FS

// Kinds are the kinds of the files, in their order, read once. Do not change them.
var Kinds = sync.OnceValues(func() ([]definition.Kind, error) { return definition.Read(files) })

// CRDs returns the definitions, fresh copies, the same for the hub and for members. Those of Argo Workflows have no
// status subresource, as Argo's own: a client that sends one without its status removes the status.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return definition.HubCRDs(Kinds()) }
