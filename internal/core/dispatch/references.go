package dispatch

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
)

// references returns the paths at which a kind refers to its workload, in any of its versions.
func references(gk schema.GroupKind) [][]string {
	if k := kind.Lookup(gk); k.Scaler != nil {
		return k.WorkloadPaths()
	}
	return companion.References(gk)
}

// referring returns m with a reference to its workload in a version that c serves, because members look up the given
// version. m is not changed. A version that was sent before stays while it is served, because most of these references
// are immutable. A reference to a kind that c does not serve is unchanged.
func (in Input) referring(m *unstructured.Unstructured, c *clusterv1alpha1.Cluster) *unstructured.Unstructured {
	copied := false
	for _, path := range references(m.GroupVersionKind().GroupKind()) {
		ref, _, _ := unstructured.NestedMap(m.Object, path...)
		gv, kind := refers(ref)
		if gv.Group == "" || kind == "" {
			continue
		}
		version := version(gv, kind, c, sentReference(in.Existing[c.Name], path))
		if version == gv.String() {
			continue
		}
		if !copied {
			m, copied = m.DeepCopy(), true
		}
		// The path is one of maps, or there were no reference.
		_ = unstructured.SetNestedField(m.Object, version, append(path[:len(path):len(path)], "apiVersion")...)
	}
	return m
}

// version returns the version in which a reference to a kind is sent to a member. The author wrote gv; sent is the
// reference in the current Work.
func version(gv schema.GroupVersion, kind string, c *clusterv1alpha1.Cluster, sent map[string]any) string {
	if before, sentKind := refers(sent); sentKind == kind && before.Group == gv.Group &&
		c.Status.Serves(before.String(), kind) {
		return before.String()
	}
	if c.Status.Serves(gv.String(), kind) {
		return gv.String()
	}
	for _, e := range c.Status.APIEnablements {
		if strings.HasPrefix(e.GroupVersion, gv.Group+"/") && c.Status.Serves(e.GroupVersion, kind) {
			return e.GroupVersion
		}
	}
	return gv.String()
}

// refers returns the kind that a reference names; zero if it does not.
func refers(ref map[string]any) (schema.GroupVersion, string) {
	apiVersion, _ := ref["apiVersion"].(string)
	kind, _ := ref["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersion{}, ""
	}
	return gv, kind
}

// sentReference returns the object at the path in the manifest of a Work, which may be nil; nil if there is none.
func sentReference(w *workv1alpha1.Work, path []string) map[string]any {
	if w == nil {
		return nil
	}
	sent, err := execute.Manifest(w)
	if err != nil {
		return nil
	}
	ref, _, _ := unstructured.NestedMap(sent.Object, path...)
	return ref
}
