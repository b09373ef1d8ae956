package quota

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// OwnerOf returns the quota of a Work; ok is false if it has none. A Work that the binding of a template has taken over
// has none any more.
func OwnerOf(work *workv1alpha1.Work) (namespace, name string, ok bool) {
	namespace, name = work.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel],
		work.Labels[policyv1alpha1.FederatedResourceQuotaNameLabel]
	return namespace, name,
		namespace != "" && name != "" && work.Annotations[workv1alpha2.ResourceBindingNameAnnotation] == ""
}

// Works returns the Works with the ResourceQuotas that a quota assigns to clusters, and those of standing, the existing
// ones of the quota, to delete. here reports whether a cluster is in the fleet. If a cluster has several assignments,
// the first counts.
func Works(q *policyv1alpha1.FederatedResourceQuota, standing []*workv1alpha1.Work, here func(cluster string) bool,
	newID func() string) (want, gone []*workv1alpha1.Work, err error) {
	assigned := map[string]bool{} // by execution space
	for _, a := range q.Spec.StaticAssignments {
		space := names.ExecutionSpace(a.ClusterName)
		if assigned[space] {
			continue
		}
		assigned[space] = true
		if !here(a.ClusterName) {
			continue
		}
		hard := map[string]any{}
		for name, limit := range a.Hard {
			hard[string(name)] = limit.String()
		}
		manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hard": hard}}}
		manifest.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuota"))
		manifest.SetNamespace(q.Namespace)
		manifest.SetName(q.Name)
		name, id := names.Work(manifest.GetKind(), q.Name, q.Namespace), ""
		if i := slices.IndexFunc(standing, func(w *workv1alpha1.Work) bool { return w.Namespace == space }); i >= 0 {
			name, id = standing[i].Name, standing[i].Labels[workv1alpha2.WorkPermanentIDLabel]
		}
		if id == "" {
			id = newID()
		}
		w := execute.NewWork(a.ClusterName, name, id)
		w.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel] = q.Namespace
		w.Labels[policyv1alpha1.FederatedResourceQuotaNameLabel] = q.Name
		if err := execute.Seal(w, manifest); err != nil {
			return nil, nil, err
		}
		want = append(want, w)
	}
	for _, w := range standing {
		if !assigned[w.Namespace] {
			gone = append(gone, w)
		}
	}
	return want, gone, nil
}

// Status returns the status of a quota. used is what all bindings of its namespace use, works are its existing Works.
func Status(q *policyv1alpha1.FederatedResourceQuota, used corev1.ResourceList,
	works []*workv1alpha1.Work) policyv1alpha1.FederatedResourceQuotaStatus {
	s := policyv1alpha1.FederatedResourceQuotaStatus{Overall: q.Spec.Overall.DeepCopy(),
		OverallUsed: corev1.ResourceList{}}
	for name := range q.Spec.Overall {
		if sum, counts := used[name]; counts {
			s.OverallUsed[name] = sum
		}
	}
	for _, w := range works {
		cluster, err := names.ClusterOf(w.Namespace)
		if err != nil || w.DeletionTimestamp != nil || len(w.Status.ManifestStatuses) == 0 ||
			w.Status.ManifestStatuses[0].Status == nil ||
			!meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
			continue
		}
		reported := policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster}
		if json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &reported.ResourceQuotaStatus) == nil {
			s.AggregatedStatus = append(s.AggregatedStatus, reported)
		}
	}
	slices.SortFunc(s.AggregatedStatus, func(a, b policyv1alpha1.ClusterQuotaStatus) int {
		return strings.Compare(a.ClusterName, b.ClusterName)
	})
	return s
}
