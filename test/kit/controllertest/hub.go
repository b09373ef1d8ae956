// Package controllertest is a hub small enough for unit tests: an API server in memory with the hub's kinds, read and
// written through real clients and caches, and member clusters of the same make. What the controllers under test write
// is counted.
package controllertest

import (
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// Timeout is how long a test waits for a condition.
const Timeout = membertest.Timeout

// Kinds of templates and of the hub that are not in membertest.
var (
	ClusterRole = kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false)
	Deployment  = kind("apps", "v1", "Deployment", "deployments", true)
	CloneSet    = kind("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets", true)
	// StatefulSet is OpenKruise's.
	StatefulSet = kind("apps.kruise.io", "v1beta1", "StatefulSet", "statefulsets", true)
	// AppsStatefulSet is Kubernetes' own.
	AppsStatefulSet = kind("apps", "v1", "StatefulSet", "statefulsets", true)
	SidecarSet      = kind("apps.kruise.io", "v1beta1", "SidecarSet", "sidecarsets", false)
	// WorkloadSpread refers to a workload in its namespace.
	WorkloadSpread = kind("apps.kruise.io", "v1alpha1", "WorkloadSpread", "workloadspreads", true)
	// PersistentPodState does so, too; the budgets select pods.
	PersistentPodState   = kind("apps.kruise.io", "v1alpha1", "PersistentPodState", "persistentpodstates", true)
	PodUnavailableBudget = kind("policy.kruise.io", "v1alpha1", "PodUnavailableBudget", "podunavailablebudgets", true)
	PodDisruptionBudget  = kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true)
	// HorizontalPodAutoscaler and ScaledObject, of KEDA, name the workload that they scale.
	HorizontalPodAutoscaler = kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true)
	ScaledObject            = kind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects", true)

	Service       = kind("", "v1", "Service", "services", true)
	Secret        = kind("", "v1", "Secret", "secrets", true)
	ResourceQuota = kind("", "v1", "ResourceQuota", "resourcequotas", true)
	// Job and EndpointSlice are kinds of members alone.
	Job           = kind("batch", "v1", "Job", "jobs", true)
	EndpointSlice = kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true)
	// Definition is of members, too.
	Definition = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)

	// Works and Bindings are the hub's own.
	Works    = kind(workv1alpha1.GroupVersion.Group, "v1alpha1", "Work", "works", true)
	Bindings = kind(workv1alpha2.GroupVersion.Group, "v1alpha2", "ResourceBinding", "resourcebindings", true)

	own = []membertest.Kind{
		Works,
		Bindings,
		kind(workv1alpha2.GroupVersion.Group, "v1alpha2", "ClusterResourceBinding", "clusterresourcebindings", false),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "PropagationPolicy", "propagationpolicies", true),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "ClusterPropagationPolicy", "clusterpropagationpolicies", false),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "OverridePolicy", "overridepolicies", true),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "ClusterOverridePolicy", "clusteroverridepolicies", false),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "ClusterTaintPolicy", "clustertaintpolicies", false),
		kind(policyv1alpha1.GroupVersion.Group, "v1alpha1", "FederatedResourceQuota", "federatedresourcequotas", true),
		kind(clusterv1alpha1.GroupVersion.Group, "v1alpha1", "Cluster", "clusters", false),
		kind(configv1alpha1.GroupVersion.Group, "v1alpha1", "ResourceInterpreterCustomization",
			"resourceinterpretercustomizations", false),
		kind(configv1alpha1.GroupVersion.Group, "v1alpha1", "ResourceInterpreterWebhookConfiguration",
			"resourceinterpreterwebhookconfigurations", false),
		kind(configv1alpha1.GroupVersion.Group, "v1alpha1", "ReplicaSchedulingPolicy", "replicaschedulingpolicies", false),
		kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", false),
		kind(ocmv1.GroupVersion.Group, "v1", "ManifestWork", "manifestworks", true),
		kind(ocmworkv1alpha1.GroupVersion.Group, "v1alpha1", "ManifestWorkReplicaSet", "manifestworkreplicasets", true),
		kind(clusterv1.GroupVersion.Group, "v1", "ManagedCluster", "managedclusters", false),
		kind(setv1beta2.GroupVersion.Group, "v1beta2", "ManagedClusterSet", "managedclustersets", false),
		kind(setv1beta2.GroupVersion.Group, "v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings", true),
		kind(placementv1beta1.GroupVersion.Group, "v1beta1", "Placement", "placements", true),
		kind(placementv1beta1.GroupVersion.Group, "v1beta1", "PlacementDecision", "placementdecisions", true),
		kind(scorev1alpha1.GroupVersion.Group, "v1alpha1", "AddOnPlacementScore", "addonplacementscores", true),
		kind(addonv1beta1.GroupVersion.Group, "v1beta1", "ManagedClusterAddOn", "managedclusteraddons", true),
		kind(addonv1beta1.GroupVersion.Group, "v1beta1", "ClusterManagementAddOn", "clustermanagementaddons", false),
		kind(addonv1alpha1.GroupVersion.Group, "v1alpha1", "AddOnTemplate", "addontemplates", false),
		kind(addonv1alpha1.GroupVersion.Group, "v1alpha1", "AddOnDeploymentConfig", "addondeploymentconfigs", true),
		kind(appsv1alpha1.GroupVersion.Group, "v1alpha1", "WorkloadRebalancer", "workloadrebalancers", false),
		kind(autoscalingv1alpha1.GroupVersion.Group, "v1alpha1", "FederatedHPA", "federatedhpas", true),
		kind(autoscalingv1alpha1.GroupVersion.Group, "v1alpha1", "CronFederatedHPA", "cronfederatedhpas", true),
		kind(multiclusterv1alpha1.GroupVersion.Group, "v1alpha1", "ServiceExport", "serviceexports", true),
		kind(multiclusterv1alpha1.GroupVersion.Group, "v1alpha1", "ServiceImport", "serviceimports", true),
		kind(multiclusterv1alpha1.GroupVersion.Group, "v1alpha1", "ClusterProfile", "clusterprofiles", true),
		kind(multiclusterv1alpha1.GroupVersion.Group, "v1alpha1", "PlacementDecision", "placementdecisions", true),
		kind(networkingv1alpha1.GroupVersion.Group, "v1alpha1", "MultiClusterService", "multiclusterservices", true),
		kind(networkingv1alpha1.GroupVersion.Group, "v1alpha1", "MultiClusterIngress", "multiclusteringresses", true),
		kind(remedyv1alpha1.GroupVersion.Group, "v1alpha1", "Remedy", "remedies", false),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "Release", "releases", true),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "ReleaseStrategy", "releasestrategies", true),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "ReleaseCheck", "releasechecks", true),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "ReleaseApproval", "releaseapprovals", true),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "ReleaseRevision", "releaserevisions", true),
		kind(releasev1alpha1.GroupVersion.Group, "v1alpha1", "ReleaseGuard", "releaseguards", false),
		kind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false),
		membertest.Lease,
		kind(rbacv1.GroupName, "v1", "ClusterRoleBinding", "clusterrolebindings", false),
		kind(rbacv1.GroupName, "v1", "Role", "roles", true),
		kind(rbacv1.GroupName, "v1", "RoleBinding", "rolebindings", true),
		Definition,
		Service,
		Secret,
		ResourceQuota,
		kind("", "v1", "Event", "events", true),
		ClusterRole,
		Deployment,
		StatefulSet,
		AppsStatefulSet,
		CloneSet,
		SidecarSet,
		WorkloadSpread,
		PersistentPodState,
		PodUnavailableBudget,
		PodDisruptionBudget,
		HorizontalPodAutoscaler,
		ScaledObject,
		kind("apps", "v1", "ControllerRevision", "controllerrevisions", true),
	}
)

func kind(group, version, name, plural string, namespaced bool) membertest.Kind {
	return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name},
		Plural: plural, Namespaced: namespaced}
}

// Run runs a test in a bubble, see membertest.Run. Hubs and their members need one.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	membertest.Run(t, test)
}

// Hub is an API server with the kinds of a hub. Its client reads and writes the server itself, past all caches. A write
// by a client of Config fails the test if it is against the schemas of api/crds.
type Hub struct {
	client.Client
	Server *membertest.Server
	Config *rest.Config

	t       *testing.T
	counted int
	// invalid is what clients of Config wrote against the schemas of api/crds; see checkWrites. permitted are parts of its
	// messages that the test permits.
	invalidMu          sync.Mutex
	invalid, permitted []string
}

var ownDefinitions = sync.OnceValues(definition.Names)

// New returns a hub without clusters. It ends with the test.
func New(t *testing.T) *Hub {
	h := &Hub{t: t, Server: membertest.NewInMemory(t, own...)}
	h.Server.SeparateStatus(own...)
	h.Server.NeedNamespaces()
	// JSON, since the server speaks nothing else.
	h.Config = &rest.Config{Host: h.Server.URL, BearerToken: membertest.Token, QPS: -1, Dial: membertest.Dial,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	var err error
	if h.Client, err = client.NewWithWatch(h.Config, client.Options{Scheme: Scheme(), Mapper: mapper()}); err != nil {
		t.Fatal(err)
	}
	h.Config.Wrap(h.checkWrites)
	t.Cleanup(func() {
		h.invalidMu.Lock()
		defer h.invalidMu.Unlock()
		for _, what := range h.invalid {
			t.Error(what)
		}
	})
	own, err := ownDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		d := &unstructured.Unstructured{}
		d.SetGroupVersionKind(Definition.GroupVersionKind)
		d.SetName(name)
		h.Server.Put(d)
	}
	for _, ns := range []string{names.System, names.Clusters, metav1.NamespaceSystem, "default", "shop"} {
		h.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	return h
}

// Embed has the controllers that are run from now on share the server's process, as those of a hub do.
func (h *Hub) Embed() { h.Config.Transport = h.Server.Within(commit.AddStatus) }

// Scheme has the kinds of Kubernetes and of Argosy. Nobody may add any.
var Scheme = sync.OnceValue(newScheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme, clusterv1alpha1.AddToScheme, ocmv1.AddToScheme, ocmworkv1alpha1.AddToScheme,
		clusterv1.AddToScheme,
		setv1beta2.AddToScheme, placementv1beta1.AddToScheme, scorev1alpha1.AddToScheme,
		addonv1alpha1.AddToScheme, addonv1beta1.AddToScheme, configv1alpha1.AddToScheme,
		appsv1alpha1.AddToScheme, multiclusterv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme,
		autoscalingv1alpha1.AddToScheme, releasev1alpha1.AddToScheme, remedyv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range slices.Concat(own, []membertest.Kind{membertest.Node, membertest.Pod, membertest.ConfigMap,
		membertest.Namespace}) {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		m.AddSpecific(k.GroupVersionKind, k.GroupVersion().WithResource(k.Plural),
			k.GroupVersion().WithResource(strings.ToLower(k.Kind)), scope)
	}
	return m
}

// FieldIndexer adds indexes to the fake client that is being built.
func FieldIndexer(b *fake.ClientBuilder) client.FieldIndexer { return fieldIndexer{b} }

type fieldIndexer struct{ builder *fake.ClientBuilder }

func (i fieldIndexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, values)
	return nil
}

// Run runs the controllers that setup registers until the test ends, or until the function that is returned is called.
func (h *Hub) Run(setup func(ctx context.Context, mgr ctrl.Manager) error) (stop func()) {
	h.t.Helper()
	again := true
	mgr, err := ctrl.NewManager(h.Config, ctrl.Options{
		Scheme:     Scheme(),
		Controller: config.Controller{SkipNameValidation: &again},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{},
			&corev1.ConfigMap{}}}},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := setup(ctx, mgr); err != nil {
		cancel()
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		// A manager that is canceled while it starts spins until its caches are filled (runnableGroup.Start of
		// controller-runtime 0.24). The clock of a test stands still meanwhile, so they never are.
		select {
		case <-mgr.Elected():
		case err := <-ended:
			ended <- err
		}
		// A queue that is shut down while it hands out an item is stuck, see commit.QueueStuck, and a cache leaks a goroutine
		// for each event that it never took in.
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil && !commit.QueueStuck() {
			stacks := &strings.Builder{}
			_ = pprof.Lookup("goroutine").WriteTo(stacks, 1)
			h.t.Errorf("the controllers ended with %v; what still runs:\n%s", err, stacks)
		}
	}
	h.t.Cleanup(stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		h.t.Fatal("the caches never filled")
	}
	return stop
}

// Disconnected calls stop, which stops a whole hub, while nothing is under way and the API server is down. A cache of
// controller-runtime for metadata leaks a goroutine when it stops during a watch, because the last error of the watch
// is not read.
func (h *Hub) Disconnected(stop func()) {
	synctest.Wait()
	h.Server.Down(true)
	synctest.Wait()
	stop()
	h.Server.Down(false)
}

// Join creates a ready member cluster that serves the kinds of every membertest server and the given ones.
func (h *Hub) Join(name string, kinds ...membertest.Kind) *membertest.Server {
	h.t.Helper()
	s := membertest.NewInMemory(h.t, kinds...)
	s.NeedNamespaces()
	s.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	h.Make(s.Secret(name))
	h.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace(name)}})
	h.JoinAgain(name, s, kinds...)
	return s
}

// JoinAgain makes a server a member that has left. Its execution space is left to the controllers.
func (h *Hub) JoinAgain(name string, s *membertest.Server, kinds ...membertest.Kind) {
	h.t.Helper()
	c := s.Cluster(name)
	c.UID = ""
	h.Make(c)
	h.ClusterStatus(name, func(status *clusterv1alpha1.ClusterStatus) {
		status.APIEnablements = Serves(append(kinds, membertest.ConfigMap, membertest.Namespace)...)
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: metav1.ConditionTrue, Reason: "ClusterReady"})
		meta.SetStatusCondition(&status.Conditions,
			metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue,
				Reason: "Complete"})
	})
}

// Serves returns the API enablements of a cluster that serves the kinds.
func Serves(kinds ...membertest.Kind) []clusterv1alpha1.APIEnablement {
	var out []clusterv1alpha1.APIEnablement
	for _, k := range kinds {
		out = append(out, clusterv1alpha1.APIEnablement{GroupVersion: k.GroupVersion().String(),
			Resources: []clusterv1alpha1.APIResource{{Name: k.Plural, Kind: k.Kind}}})
	}
	return out
}

// ClusterStatus changes the status of a cluster, as its collector does.
func (h *Hub) ClusterStatus(name string, change func(*clusterv1alpha1.ClusterStatus)) {
	h.t.Helper()
	h.mustSucceed(retry.OnError(retry.DefaultBackoff, commit.Stale, func() error {
		c := &clusterv1alpha1.Cluster{}
		h.mustSucceed(h.Get(h.t.Context(), client.ObjectKey{Name: name}, c))
		change(&c.Status)
		if err := h.Status().Update(h.t.Context(), c); err != nil {
			return err
		}
		return nil
	}))
	synctest.Wait() // caches of two kinds may be behind each other, and what is written next may depend on the cluster
}

// Ready sets the condition Ready of a cluster.
func (h *Hub) Ready(name string, ready metav1.ConditionStatus, reason string) {
	h.t.Helper()
	h.ClusterStatus(name, func(status *clusterv1alpha1.ClusterStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: ready, Reason: reason})
	})
}

// Make creates an object.
func (h *Hub) Make(obj client.Object) {
	h.t.Helper()
	h.mustSucceed(h.Create(h.t.Context(), obj))
}

// Change reads an object, changes and writes it, as often as somebody else comes first.
func Change[T client.Object](h *Hub, obj T, change func(T)) {
	h.t.Helper()
	for {
		h.mustSucceed(h.Get(h.t.Context(), client.ObjectKeyFromObject(obj), obj))
		change(obj)
		err := h.Update(h.t.Context(), obj)
		if err == nil {
			synctest.Wait() // caches of two kinds may be behind each other
			return
		}
		if !strings.Contains(err.Error(), "has been modified") {
			h.t.Fatal(err)
		}
	}
}

// Gone deletes an object. It disappears when it has no finalizer.
func (h *Hub) Gone(obj client.Object) {
	h.t.Helper()
	h.mustSucceed(h.Delete(h.t.Context(), obj))
}

// HasObject reports whether the object is there, and reads it.
func (h *Hub) HasObject(obj client.Object) bool {
	h.t.Helper()
	err := h.Get(h.t.Context(), client.ObjectKeyFromObject(obj), obj)
	h.mustSucceed(client.IgnoreNotFound(err))
	return err == nil
}

func (h *Hub) mustSucceed(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Eventually waits until then finds nothing wrong, for Timeout at most.
func (h *Hub) Eventually(what string, then func() (wrong string)) {
	h.t.Helper()
	wrong := ""
	if !membertest.Becomes(func() bool { wrong = then(); return wrong == "" }) {
		h.t.Fatalf("%s: %s; written since: %v", what, wrong, h.Server.Writes()[h.counted:])
	}
}

// Advance moves the clock on, and returns when all that is due has happened.
func (h *Hub) Advance(d time.Duration) { membertest.Advance(d) }

// calm is longer than the delays of retries and batched writes of controllers.
const calm = 250 * time.Millisecond

// Quiet waits until nothing is written for the duration calm, and returns the writes since the last call, without
// events.
func (h *Hub) Quiet() []string {
	h.t.Helper()
	all := h.Server.Writes()
	for end := time.Now().Add(Timeout); ; {
		time.Sleep(calm)
		synctest.Wait()
		last := len(all)
		if all = h.Server.Writes(); len(all) == last {
			break
		}
		if time.Now().After(end) {
			h.t.Fatalf("it never gets quiet: %v", all[h.counted:])
		}
	}
	out := slices.DeleteFunc(slices.Clone(all[h.counted:]), func(w string) bool { return strings.Contains(w, " events ") })
	h.counted = len(all)
	return out
}

// Events returns the recorded events as "Reason: message", sorted by name.
func (h *Hub) Events() []string {
	h.t.Helper()
	var list corev1.EventList
	h.mustSucceed(h.List(h.t.Context(), &list))
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message))
	}
	return out
}
