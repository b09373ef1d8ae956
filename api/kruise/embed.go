// Package kruise holds definitions of the kinds of OpenKruise, one file per kind in the notation of api/definition, for
// the hub and for simulated members. It contains schemas only.
package kruise

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

// Releases of OpenKruise that differ in the versions that they serve.
const (
	Release1_8  = "1.8"
	Release1_9  = "1.9"
	Release1_10 = "1.10"
)

// Member returns copies of the definitions that a release of OpenKruise stores in a member, with one version of each
// kind: OpenKruise converts others by a webhook. The schemas have no defaults. The admission of the member sets them,
// and a template keeps only the fields that its author set.
func Member(release string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := Kinds()
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(kinds))
	for _, k := range kinds {
		crds = append(crds, k.Member(Stored(k, release)))
	}
	return crds, nil
}

// Hub returns copies of the definitions that a hub serves: all versions, with v1beta1 stored if it exists.
func Hub() ([]*apiextensionsv1.CustomResourceDefinition, error) { return definition.HubCRDs(Kinds()) }

// Stored returns the version of a kind that a release stores: the first that it serves.
func Stored(k definition.Kind, release string) string {
	for _, v := range k.Versions {
		if v.Since == "" || older(v.Since, release) {
			return v.Name
		}
	}
	return ""
}

// older reports whether since is not later than release. Of 1.8, 1.9 and 1.10, the longer text is the later release.
func older(since, release string) bool {
	return len(since) < len(release) || len(since) == len(release) && since <= release
}
