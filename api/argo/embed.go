// Package argo holds the kinds of Argo Workflows and Argo Rollouts as definitions of our own, one file per kind in the
// notation of api/definition. It says what may be written; what it means is decided elsewhere.
package argo

import (
	"embed"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/argosy-io/argosy/api/definition"
)

//go:embed *.yaml
var files embed.FS

// Kinds are what the files say, in their order, read once. They are not to be changed.
var Kinds = sync.OnceValues(func() ([]definition.Kind, error) { return definition.Read(files) })

// CRDs are the definitions, fresh copies, the same for the hub and for members. Those of Argo Workflows have no status
// subresource, as Argo's own: who sends one without its status takes it away.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return definition.HubCRDs(Kinds()) }
