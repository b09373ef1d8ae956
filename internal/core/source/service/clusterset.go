package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/mcs"
)

// ClusterSetOwner is the kind of the owner of a Service that clusters export themselves, without a policy of the hub.
const ClusterSetOwner = "ClusterSet"

// Consumer is a cluster that gets a Service which clusters export themselves.
type Consumer struct {
	// APIVersion is that of ServiceImports there; empty if the cluster serves none.
	APIVersion string
	// Derived is the derived Service there; nil if there is none, or if it is not known.
	Derived *mcs.Service
}

// ClusterSet returns the exchange of a Service that clusters export themselves. standing are the existing Works of its
// owner, and one export is valid. A consumer gets the ServiceImport once the derived Service has its addresses. stuck
// are the consumers, sorted, whose derived Service is headless and should not be, or the reverse: they keep the former
// ServiceImport, since Kubernetes does not change the type.
func ClusterSet(owner Owner, exports []mcs.Export, merged mcs.Merged, consumers map[string]Consumer,
	standing []*workv1alpha1.Work) (x Exchange, stuck []string, err error) {
	common := &multiclusterv1alpha1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name, Labels: merged.Labels,
			Annotations: merged.Annotations}, Spec: *merged.Spec}
	x = Import(common, merged.Exporters, slices.Collect(maps.Keys(consumers)))
	x.Owner = owner
	exports = slices.SortedFunc(slices.Values(exports), func(a, b mcs.Export) int {
		return strings.Compare(a.Cluster, b.Cluster)
	})
	text, err := json.Marshal(exports)
	if err != nil {
		return x, nil, fmt.Errorf("write the exports of Service %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	x.importNotes = map[string]string{wellknown.ServiceExportsAnnotation: string(text)}
	x.imports = map[string]*multiclusterv1alpha1.ServiceImport{}
	before := standingImports(standing)
	for cluster, c := range consumers {
		i := before[cluster]
		if c.Derived != nil && c.Derived.ImportType != merged.Spec.Type {
			stuck = append(stuck, cluster)
		} else {
			i = importOf(common, c, i)
		}
		if i != nil {
			x.imports[cluster] = i
		}
	}
	slices.Sort(stuck)
	return x, stuck, nil
}

// importOf returns the ServiceImport of a consumer; nil while its addresses are not known. before is the former one, or
// nil: its addresses stay until others are known.
func importOf(common *multiclusterv1alpha1.ServiceImport, c Consumer,
	before *multiclusterv1alpha1.ServiceImport) *multiclusterv1alpha1.ServiceImport {
	i := common.DeepCopy()
	i.APIVersion, i.Kind = c.APIVersion, multiclusterv1alpha1.ServiceImportKind.Kind
	if before != nil && i.APIVersion == "" {
		i.APIVersion = before.APIVersion
	}
	switch {
	case i.APIVersion == "":
		return nil
	case i.Spec.Type == multiclusterv1alpha1.Headless:
	case c.Derived != nil && len(c.Derived.ClusterIPs) > 0:
		i.Spec.IPs, i.Spec.IPFamilies = c.Derived.ClusterIPs, c.Derived.Families
	case before == nil || before.Spec.Type == multiclusterv1alpha1.Headless:
		return before
	default:
		i.Spec.IPs, i.Spec.IPFamilies = before.Spec.IPs, before.Spec.IPFamilies
	}
	return i
}

// standingImports returns the ServiceImports in Works, by cluster.
func standingImports(standing []*workv1alpha1.Work) map[string]*multiclusterv1alpha1.ServiceImport {
	all := map[string]*multiclusterv1alpha1.ServiceImport{}
	for _, w := range standing {
		cluster, err := names.ClusterOf(w.Namespace)
		if err != nil || w.Annotations[wellknown.ServiceExportsAnnotation] == "" || w.DeletionTimestamp != nil ||
			len(w.Spec.Workload.Manifests) != 1 {
			continue
		}
		i := &multiclusterv1alpha1.ServiceImport{}
		if json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, i) != nil {
			continue // invalid content, which is rewritten
		}
		all[cluster] = &multiclusterv1alpha1.ServiceImport{TypeMeta: i.TypeMeta, Spec: i.Spec,
			ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name, Labels: i.Labels, Annotations: i.Annotations}}
	}
	return all
}

// Recalled returns the exports from which the hub made the ServiceImports in Works, by cluster.
func Recalled(standing []*workv1alpha1.Work) map[string]mcs.Export {
	all := map[string]mcs.Export{}
	for _, w := range standing {
		var exports []mcs.Export
		if w.DeletionTimestamp == nil && json.Unmarshal([]byte(w.Annotations[wellknown.ServiceExportsAnnotation]),
			&exports) == nil {
			for _, e := range exports {
				all[e.Cluster] = e
			}
		}
	}
	return all
}

// Imported returns the clusters whose Works of the owner are standing.
func Imported(standing []*workv1alpha1.Work) map[string]bool {
	all := map[string]bool{}
	for _, w := range standing {
		if cluster, err := names.ClusterOf(w.Namespace); err == nil && w.DeletionTimestamp == nil {
			all[cluster] = true
		}
	}
	return all
}
