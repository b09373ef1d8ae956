// Package argo holds definitions of the kinds of Argo Workflows and Argo Rollouts, one file per kind in the notation of
// api/definition. It contains schemas only.
package argo

import (
	"embed"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/argosy-io/argosy/api/definition"
)

//go:embed *.yaml
var files embed.FS

// Kinds returns the kinds of the files, in their order, read once. Do not change them.
var Kinds = sync.OnceValues(func() ([]definition.Kind, error) { return definition.Read(files) })

// CRDs returns copies of the definitions, the same for the hub and for members. Those of Argo Workflows have no status
// subresource, as in Argo: a client that sends an object without status removes the status.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return definition.HubCRDs(Kinds()) }
