package leave

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestPreviewCountsDeletedAndKeptObjects(t *testing.T) {
	work := func(manifest string, preserved bool) workv1alpha1.Work {
		w := workv1alpha1.Work{}
		w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
		w.Spec.Workload.Manifests[0].Raw = []byte(manifest)
		w.Spec.PreserveResourcesOnDeletion = &preserved
		return w
	}
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`
	const set = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","namespace":"shop"},"spec":{"replicas":2,
"persistentVolumeClaimRetentionPolicy":{"whenDeleted":%q},"volumeClaimTemplates":[{"metadata":{"name":"data"}}]}}`
	works := []workv1alpha1.Work{
		work(deployment, false), work(deployment, false), work(deployment, true),
		work(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"}}`, false),
		work(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`, false),
		work(`not a manifest`, false),
	}
	for _, tc := range []struct {
		story   string
		works   []workv1alpha1.Work
		keep    bool
		ready   metav1.ConditionStatus
		deletes bool
		want    []string
	}{
		{"what is not preserved goes", works, false, metav1.ConditionTrue, true, []string{
			"deleted in cluster m1: 2 Deployment.apps, 1 PersistentVolumeClaim",
			"deleted with its data: PersistentVolumeClaim shop/data",
			"deleted if empty, otherwise kept in the cluster: namespaces shop",
			"kept in the cluster: 1 Deployment.apps"}},
		{"a workload takes its volumes along that it made so", []workv1alpha1.Work{work(fmt.Sprintf(set, "Delete"), false)},
			false, metav1.ConditionTrue, true, []string{
				"deleted in cluster m1: 1 StatefulSet.apps",
				"deleted with its data: PersistentVolumeClaim shop/data-db-0",
				"deleted with its data: PersistentVolumeClaim shop/data-db-1"}},
		{"a definition goes if nothing of its kind is left", []workv1alpha1.Work{
			work(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trains.example.com"}}`, false),
			work(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.example.com"}}`, false)}, false, metav1.ConditionTrue, true, []string{
			"deleted if no objects of the kind remain, otherwise kept in the cluster: CustomResourceDefinitions boats.example.com, trains.example.com"}},
		{"and no others", []workv1alpha1.Work{work(fmt.Sprintf(set, "Retain"), false)}, false, metav1.ConditionTrue, true,
			[]string{"deleted in cluster m1: 1 StatefulSet.apps"}},
		{"a cluster that does not answer keeps all", works, false, metav1.ConditionUnknown, false,
			[]string{"kept in the cluster: 3 Deployment.apps, 1 Namespace, 1 PersistentVolumeClaim"}},
		{"kept, nothing does", works, true, metav1.ConditionTrue, false,
			[]string{"kept in the cluster: 3 Deployment.apps, 1 Namespace, 1 PersistentVolumeClaim"}},
		{"nothing was sent", nil, false, metav1.ConditionTrue, false, nil},
	} {
		c := &clusterv1alpha1.Cluster{}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: tc.ready})
		if tc.keep {
			c.Annotations = map[string]string{wellknown.KeepWorkloadsAnnotation: "true"}
		}
		l := Preview(c, tc.works)
		if got := l.Lines("m1"); !slices.Equal(got, tc.want) || l.Deletes() != tc.deletes {
			t.Errorf("%s: deletes %v, lines\n%s\nwant\n%s", tc.story, l.Deletes(), strings.Join(got, "\n"),
				strings.Join(tc.want, "\n"))
		}
	}
}
