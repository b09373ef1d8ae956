package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/argosy-io/argosy/internal/controller/placement"
	"github.com/argosy-io/argosy/test/kit"
)

// Argo CD deletes the Applications of a decision without clusters, and panics at a status without the list
// (gitops-and-import.md section 1). So each state of a decision that the server shows must be whole.
func TestDecisionsAreWholeFromTheirFirstMoment(t *testing.T) {
	h := useSharedHub(t)
	admin := newPerson(t, h.adminConfig)
	group := func(version, plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: version, Resource: plural}
	}
	const ns = "whole-decisions"
	if _, err := admin.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	placements, decisions := admin.Resource(group("v1beta1", "placements")).Namespace(ns),
		admin.Resource(group("v1beta1", "placementdecisions")).Namespace(ns)
	clusters := admin.Resource(managedClusters)
	watch, err := decisions.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	runControllers(t, h.Config(), func(_ context.Context, mgr ctrl.Manager) error {
		return placement.Setup(mgr, placement.Options{})
	})
	for _, name := range []string{"whole-a", "whole-b"} {
		create(t, clusters, `{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster,
			metadata: {name: `+name+`, labels: {cluster.open-cluster-management.io/clusterset: whole}}, spec: {hubAcceptsClient: false}}`)
		defer func() { _ = clusters.Delete(context.Background(), name, metav1.DeleteOptions{}) }()
	}
	create(t, admin.Resource(group("v1beta2", "managedclustersets")), `{apiVersion: cluster.open-cluster-management.io/v1beta2,
		kind: ManagedClusterSet, metadata: {name: whole}}`)
	create(t, admin.Resource(group("v1beta2", "managedclustersetbindings")).Namespace(ns), `{
		apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: whole},
		spec: {clusterSet: whole}}`)
	const kind = "{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, "
	create(t, placements, kind+`metadata: {name: all}, spec: {}}`)
	create(t, placements, kind+`metadata: {name: none}, spec: {clusterSets: [absent]}}`)
	list := func(what string, want ...string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			all, err := decisions.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			var got []string
			for i := range all.Items {
				got = append(got, all.Items[i].GetName()+": "+listed(&all.Items[i]))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	list("both decisions", "all-decision-1: whole-a whole-b", "none-decision-1: ")
	grouped := kit.Object(t, kind+`metadata: {name: all}, spec: {decisionStrategy: {groupStrategy: {
		decisionGroups: [{groupName: first, groupClusterSelector: {labelSelector: {matchLabels: {first: "yes"}}}}]}}}}`)
	is, err := placements.Get(t.Context(), "all", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	is.Object["spec"] = grouped.Object["spec"]
	if _, err := placements.Update(t.Context(), is, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := clusters.Get(t.Context(), "whole-b", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := b.GetLabels()
	labels["first"] = "yes"
	b.SetLabels(labels)
	if _, err := clusters.Update(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	list("a decision for each group", "all-decision-1: whole-b", "all-decision-2: whole-a", "none-decision-1: ")

	var shown []string
	for len(shown) < 4 {
		var e apiwatch.Event
		select {
		case e = <-watch.ResultChan():
		case <-time.After(time.Minute):
			t.Fatalf("only shown: %q", shown)
		}
		d, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch ended: %v", e.Object)
		}
		shown = append(shown, fmt.Sprintf("%s %s[%s]: %s", e.Type, d.GetName(),
			d.GetLabels()["cluster.open-cluster-management.io/decision-group-name"], listed(d)))
	}
	slices.Sort(shown[:2])
	if want := []string{"ADDED all-decision-1[]: whole-a whole-b", "ADDED none-decision-1[]: ",
		"ADDED all-decision-2[]: whole-a", "MODIFIED all-decision-1[first]: whole-b"}; !slices.Equal(shown, want) {
		t.Errorf("the server showed %q\nwant %q", shown, want)
	}
}

func create(t *testing.T, in dynamic.ResourceInterface, text string) {
	t.Helper()
	if _, err := in.Create(t.Context(), kit.Object(t, text), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// listed returns the clusters of a PlacementDecision.
func listed(d *unstructured.Unstructured) string {
	all, found, err := unstructured.NestedSlice(d.Object, "status", "decisions")
	if !found || err != nil {
		return "without a list"
	}
	var names []string
	for _, of := range all {
		names = append(names, of.(map[string]any)["clusterName"].(string))
	}
	return strings.Join(names, " ")
}
