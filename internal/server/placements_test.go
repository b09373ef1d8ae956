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
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
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
	var seen client.Client // what the controller has seen
	runControllers(t, h.Config(), func(_ context.Context, mgr ctrl.Manager) error {
		seen = mgr.GetClient()
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
	kit.Eventually(t, "the controller has seen the clusters and their set", func() string {
		for _, obj := range []client.Object{
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "whole-a"}},
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "whole-b"}},
			&setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "whole"}},
			&setv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "whole"}},
		} {
			if err := seen.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return err.Error()
			}
		}
		return ""
	})
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
	patch := func(in dynamic.ResourceInterface, name, change string) {
		t.Helper()
		if _, err := in.Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(placements, "all", `{"spec": {"decisionStrategy": {"groupStrategy": {"decisionGroups": [{"groupName": "first",
		"groupClusterSelector": {"labelSelector": {"matchLabels": {"first": "yes"}}}}]}}}}`)
	patch(clusters, "whole-b", `{"metadata": {"labels": {"first": "yes"}}}`)
	list("a decision for each group", "all-decision-1: whole-b", "all-decision-2: whole-a", "none-decision-1: ")

	shown := map[string]string{}
	for shown["all-decision-1"] != "first: whole-b" || shown["all-decision-2"] != ": whole-a" {
		var e apiwatch.Event
		select {
		case e = <-watch.ResultChan():
		case <-time.After(time.Minute):
			t.Fatalf("last shown: %q", shown)
		}
		d, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch ended: %v", e.Object)
		}
		is := d.GetLabels()["cluster.open-cluster-management.io/decision-group-name"] + ": " + listed(d)
		if shown[d.GetName()] = is; d.GetName() == "none-decision-1" && is != ": " || d.GetName() != "none-decision-1" &&
			!slices.Contains([]string{": whole-a", ": whole-b", ": whole-a whole-b", "first: whole-b"}, is) {
			t.Errorf("the server showed %s %s %q", e.Type, d.GetName(), is)
		}
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
