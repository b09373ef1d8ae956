package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/placement"
	"github.com/argosy-io/argosy/internal/controller/replicaset"
	"github.com/argosy-io/argosy/test/kit"
)

var replicaSets = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1alpha1",
	Resource: "manifestworkreplicasets"}

// transport calls a function for each request.
type transport struct {
	http.RoundTripper
	sent func(*http.Request)
}

func (s transport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent(r)
	return s.RoundTripper.RoundTrip(r)
}

// The server changes what it stores, for example by defaults. A ManifestWork is still equal to its template then.
func TestReplicaSetsWriteEachManifestWorkOnce(t *testing.T) {
	h := useSharedHub(t)
	admin := newPerson(t, h.adminConfig)
	const ns, cluster = "sets-once", "sets-once-a"
	if _, err := admin.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var writes []string
	counting := rest.CopyConfig(h.Config())
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{next, func(r *http.Request) {
			if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/manifestworks") {
				mu.Lock()
				defer mu.Unlock()
				writes = append(writes, r.Method)
			}
		}}
	})
	runControllers(t, counting, func(ctx context.Context, mgr ctrl.Manager) error {
		if err := placement.Setup(mgr, placement.Options{}); err != nil {
			return err
		}
		return replicaset.Setup(ctx, mgr, replicaset.Options{})
	})
	clusters, group := admin.Resource(managedClusters), "{apiVersion: cluster.open-cluster-management.io/v1"
	create(t, clusters, group+`, kind: ManagedCluster, metadata: {name: `+cluster+`, labels: {
		cluster.open-cluster-management.io/clusterset: sets-once}}, spec: {hubAcceptsClient: true}}`)
	defer func() { _ = clusters.Delete(context.Background(), cluster, metav1.DeleteOptions{}) }()
	sets := schema.GroupVersionResource{Group: managedClusters.Group, Version: "v1beta2", Resource: "managedclustersets"}
	create(t, admin.Resource(sets), group+"beta2, kind: ManagedClusterSet, metadata: {name: sets-once}}")
	sets.Resource = "managedclustersetbindings"
	create(t, admin.Resource(sets).Namespace(ns), group+
		"beta2, kind: ManagedClusterSetBinding, metadata: {name: sets-once}, spec: {clusterSet: sets-once}}")
	sets.Version, sets.Resource = "v1beta1", "placements"
	create(t, admin.Resource(sets).Namespace(ns), group+"beta1, kind: Placement, metadata: {name: all}, spec: {}}")
	own := admin.Resource(replicaSets).Namespace(ns)
	// Defaults, numbers, an empty object and null, in no order.
	create(t, own, `{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, metadata: {name: web},
		spec: {placementRefs: [{name: all}], manifestWorkTemplate: {deleteOption: {}, workload: {manifests: [
		{kind: Thing, spec: {z: 1.50, a: {}, n: null, big: 9007199254740993}, metadata: {name: a, creationTimestamp: null},
		apiVersion: example.com/v1}]}, manifestConfigs: [{resourceIdentifier: {resource: things, name: a}, updateStrategy: {}}]}}}`)
	var mw *unstructured.Unstructured
	status := func(what, want string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			set, err := own.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			list, err := admin.Resource(manifestWorks).Namespace(cluster).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				return "there is no ManifestWork"
			}
			mw = &list.Items[0]
			got := "no condition"
			conditions, _ := kit.Field(set, "status", "conditions").([]any)
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "ManifestworkApplied" {
					got = c["reason"].(string)
				}
			}
			if got != want {
				return got
			}
			return ""
		})
	}
	status("the ManifestWork is written", "NotAsExpected")
	conditions := []any{}
	for _, kind := range []string{"Applied", "Available"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": "Reported", "message": "",
			"observedGeneration": mw.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z"})
	}
	if err := admin.patch(admin.Resource(manifestWorks).Namespace(cluster), mw.GetName(), map[string]any{
		"status": map[string]any{"conditions": conditions}}, "status"); err != nil {
		t.Fatal(err)
	}
	status("its report is followed", "AsExpected")
	mu.Lock()
	defer mu.Unlock()
	for _, method := range writes {
		if method != http.MethodPost { // the first one may lack the namespace
			t.Errorf("written %q", writes)
		}
	}
}

// Whoever may write a status could otherwise end the reading of a kind for the whole hub.
func TestAStatusThatNoClientCanReadIsNotStored(t *testing.T) {
	h := useSharedHub(t)
	admin, hub := newPerson(t, h.adminConfig), newPerson(t, h.Config())
	const ns = "unread"
	if _, err := admin.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, admin.Resource(replicaSets).Namespace(ns), `{apiVersion: work.open-cluster-management.io/v1alpha1,
		kind: ManifestWorkReplicaSet, metadata: {name: it}, spec: {placementRefs: [{name: p}], manifestWorkTemplate: {workload: {
		manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]}}}}`)
	write := func(by person) error {
		return by.patch(by.Resource(replicaSets).Namespace(ns), "it",
			map[string]any{"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Applied", "status": "True", "reason": "Reported", "message": "",
					"lastTransitionTime": "2026-01-01t00:00:00z"}}}}, "status")
	}
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(h.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := write(admin); err == nil || !strings.Contains(err.Error(), "parsing time") {
		t.Errorf("the write of a user: %v", err)
	}
	list := &ocmworkv1alpha1.ManifestWorkReplicaSetList{}
	if err := c.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Error(err)
	}
	if err := write(hub); err != nil { // whose writes are not judged: the schema accepts it
		t.Fatal(err)
	}
	if err := c.List(t.Context(), list, client.InNamespace(ns)); err == nil {
		t.Error("a client reads what should not be readable: this check is not needed")
	}
	if err := hub.patch(hub.Resource(replicaSets).Namespace(ns), "it", map[string]any{"status": nil},
		"status"); err != nil {
		t.Error(err)
	}
}
