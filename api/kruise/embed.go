// Package kruise holds the kinds of OpenKruise as definitions of our own, one file per kind in the notation of
// api/definition: for the hub, where they are templates, and for simulated members.
// It contains schemas only.
package kruise

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

// Releases of OpenKruise that differ in the versions that they serve.
const (
	Release1_8  = "1.8"
	Release1_9  = "1.9"
	Release1_10 = "1.10"
)

// Member returns the definitions as a release of OpenKruise stores them in a member, fresh copies of one version for
// each kind: where a release serves two it converts by a webhook of its own. Their schemas carry no defaults: those are
// written by the member's own admission, and a template keeps only what its author set.
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

// Hub returns the definitions that a hub serves, fresh copies: every version of every kind, v1beta1 stored where there
// is one.
func Hub() ([]*apiextensionsv1.CustomResourceDefinition, error) { return definition.HubCRDs(Kinds()) }

// Stored returns the version of a kind that a release stores: the first that it knows.
func Stored(k definition.Kind, release string) string {
	for _, v := range k.Versions {
		if v.Since == "" || older(v.Since, release) {
			return v.Name
		}
	}
	return ""
}

// older reports whether since is not later than release. Of 1.8, 1.9 and 1.10, the longer text is the newer.
func older(since, release string) bool {
	return len(since) < len(release) || len(since) == len(release) && since <= release
}
