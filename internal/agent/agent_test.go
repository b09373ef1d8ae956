package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// start runs what start runs until the test ends.
func start(t *testing.T, h *controllertest.Hub, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		h.Disconnected(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
}

// newPullCluster returns a hub with the cluster p1 in Pull mode, and how the agent reaches p1.
func newPullCluster(t *testing.T) (*controllertest.Hub, *membertest.Server, *rest.Config) {
	t.Helper()
	h := controllertest.New(t)
	h.Embed()
	s := membertest.NewInMemory(t)
	s.NeedNamespaces()
	for _, ns := range []string{"default", "kube-system"} {
		s.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	cluster := s.Cluster("p1")
	cluster.UID, cluster.Spec.SyncMode = "", clusterv1alpha1.Pull
	config, err := member.Config(cluster, s.Secret("p1"))
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = membertest.Dial
	// The hub has the credentials, and does not use them.
	h.Make(s.Secret("p1"))
	h.Make(cluster)
	return h, s, config
}

// startAgent runs the agent of p1, which reaches the hub by a configuration, and waits until the cluster is ready.
func startAgent(t *testing.T, h *controllertest.Hub, hub, member *rest.Config) {
	t.Helper()
	runAgent(t, h, hub, member, tenure.Self{})
	isReady(t, h, metav1.ConditionTrue)
}

// runAgent runs the agent of p1 for a hub with an identity.
func runAgent(t *testing.T, h *controllertest.Hub, hub, member *rest.Config, self tenure.Self) {
	t.Helper()
	o := Options{Cluster: "p1", Member: member, StatusFrequency: 10 * time.Second, Workers: 2, WorkDeletions: 10,
		dial: membertest.Dial, Alone: true}
	start(t, h, func(ctx context.Context) error {
		mgr, err := newManager(hub, o)
		if err == nil {
			err = compose(ctx, mgr, self, o, true)
		}
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

// isReady waits until the condition Ready of p1 has a status.
func isReady(t *testing.T, h *controllertest.Hub, status metav1.ConditionStatus) {
	t.Helper()
	h.Eventually("the cluster is Ready="+string(status), func() string {
		c := &clusterv1alpha1.Cluster{}
		if err := h.Get(t.Context(), client.ObjectKey{Name: "p1"}, c); err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, "Ready", status) || c.Status.KubernetesVersion == "" {
			return fmt.Sprintf("its status is %+v", c.Status)
		}
		return ""
	})
}

// policyOf returns a policy that sends ConfigMaps to all clusters.
func policyOf() policyv1alpha1.Propagation {
	policy := scope.Propagations.New("shop")
	policy.SetName("everywhere")
	policy.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "some-id"})
	policy.SetFinalizers([]string{policyv1alpha1.PropagationPolicyFinalizer})
	policy.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	return policy
}

// deleteTemplate deletes a ConfigMap and, as the garbage collector of a real hub does, its binding.
func deleteTemplate(t *testing.T, h *controllertest.Hub, template *corev1.ConfigMap) {
	t.Helper()
	for _, obj := range []client.Object{template, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: template.Namespace, Name: template.Name + "-configmap"}}} {
		if err := h.Delete(t.Context(), obj); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestAgentActsInAClusterWhereTheHubDoesNot(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, s, config := newPullCluster(t)
		start(t, h, func(ctx context.Context) error {
			return controller.Run(ctx, controller.Options{Config: h.Config, DialMember: membertest.Dial})
		})

		// 1. Without an agent, nothing happens in the cluster. The hub grants the agent its permissions.
		h.Eventually("the agent has permissions", func() string {
			role := &rbacv1.ClusterRole{}
			err := h.Get(t.Context(), client.ObjectKey{Name: "system:karmada:p1:agent"}, role)
			if err != nil || len(role.OwnerReferences) != 1 || role.OwnerReferences[0].Name != "p1" {
				return fmt.Sprintf("%v %+v", err, role)
			}
			return ""
		})
		membertest.Advance(2 * time.Minute)
		h.Eventually("the hub misses the agent", func() string {
			c := &clusterv1alpha1.Cluster{}
			if err := h.Get(t.Context(), client.ObjectKey{Name: "p1"}, c); err != nil {
				return err.Error()
			}
			ready := meta.FindStatusCondition(c.Status.Conditions, "Ready")
			if ready == nil || ready.Reason != clusterv1alpha1.ReasonClusterStatusNeverUpdated {
				return fmt.Sprintf("Ready is %+v", ready)
			}
			return ""
		})
		if asked := s.Requests("/"); len(asked) > 0 {
			t.Fatalf("the hub sent requests to the cluster: %q", asked)
		}

		// 2. The agent reports the cluster, and applies what policies place there.
		startAgent(t, h, h.Config, config)
		h.Make(policyOf())
		template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"a": "b"}}
		propagate.Claim(template, policyOf())
		h.Make(template)
		h.Eventually("the ConfigMap is applied, and the binding has the result", func() string {
			b := &workv1alpha2.ResourceBinding{}
			err := h.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "settings-configmap"}, b)
			if err != nil || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) ||
				s.Object(membertest.ConfigMap, "shop", "settings") == nil {
				return fmt.Sprintf("%v %+v", err, b.Status)
			}
			return ""
		})

		// 3. A deletion on the hub is carried out.
		deleteTemplate(t, h, template)
		h.Eventually("the ConfigMap is deleted", func() string {
			if s.Object(membertest.ConfigMap, "shop", "settings") != nil {
				return "it is there"
			}
			return ""
		})
	})
}

func TestAgentFollowsTheRulesOfPushClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, s, config := newPullCluster(t)
		s.Put(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
					corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}}})
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "p1"}}
		controllertest.Change(h, cluster, func(c *clusterv1alpha1.Cluster) {
			grade := func(n uint, from, to string) clusterv1alpha1.ResourceModel {
				return clusterv1alpha1.ResourceModel{Grade: n, Ranges: []clusterv1alpha1.ResourceModelRange{
					{Name: corev1.ResourceCPU, Min: resource.MustParse(from), Max: resource.MustParse(to)}}}
			}
			c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{grade(0, "0", "4"), grade(1, "4", "1000")}
		})
		start(t, h, func(ctx context.Context) error {
			return controller.Run(ctx, controller.Options{Config: h.Config, DialMember: membertest.Dial})
		})
		startAgent(t, h, h.Config, config)

		// 1. The agent reports the node by the resource models of the cluster.
		h.Eventually("the node is reported", func() string {
			h.HasObject(cluster)
			if summary := cluster.Status.ResourceSummary; summary == nil || len(summary.AllocatableModelings) != 2 ||
				summary.AllocatableModelings[0].Count != 0 || summary.AllocatableModelings[1].Count != 1 {
				return fmt.Sprintf("the summary is %+v", summary)
			}
			return ""
		})

		// 2. It creates namespaces, and keeps what the policy preserves.
		policy := policyOf()
		policy.PropagationSpec().PreserveResourcesOnDeletion = ptr.To(true)
		h.Make(policy)
		template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"a": "b"}}
		propagate.Claim(template, policy)
		h.Make(template)
		managed := func() string {
			u := s.Object(membertest.ConfigMap, "shop", "settings")
			if u == nil {
				return "gone"
			}
			return fmt.Sprintf("managed=%q", u.GetLabels()[workv1alpha2.ManagedLabel])
		}
		becomes := func(want string) {
			t.Helper()
			h.Eventually("the ConfigMap is "+want, func() string {
				if got := managed(); got != want {
					return got
				}
				return ""
			})
		}
		becomes(`managed="true"`)
		if s.Object(membertest.Namespace, "", "shop") == nil {
			t.Error("the namespace is missing")
		}
		deleteTemplate(t, h, template)
		becomes(`managed=""`)
	})
}

func TestAgentChangesNothingInAClusterOfAnotherHub(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, s, config := newPullCluster(t)
		s.Serve(membertest.Lease)
		s.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: tenure.Namespace}})
		owner := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
		tenure.Stamp{Hub: "other", Address: "https://other", Run: "1", Since: time.Now(),
			Renewed: time.Now().Add(time.Hour)}.Write(owner)
		s.Put(owner)
		start(t, h, func(ctx context.Context) error {
			return controller.Run(ctx, controller.Options{Config: h.Config, DialMember: membertest.Dial})
		})
		h.Make(policyOf())
		template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"a": "b"}}
		propagate.Claim(template, policyOf())
		h.Make(template)
		runAgent(t, h, h.Config, config, tenure.Self{Hub: "this", Address: "https://this", Run: run})
		h.Eventually("the cluster reports its owner", func() string {
			c := &clusterv1alpha1.Cluster{}
			if err := h.Get(t.Context(), client.ObjectKey{Name: "p1"}, c); err != nil {
				return err.Error()
			}
			ready := meta.FindStatusCondition(c.Status.Conditions, "Ready")
			if ready == nil || ready.Status == metav1.ConditionTrue || !strings.Contains(ready.Message, "https://other") {
				return fmt.Sprintf("Ready is %+v", ready)
			}
			return ""
		})
		membertest.Advance(time.Minute)
		if writes := s.Writes(); len(writes) > 0 {
			t.Errorf("the agent made the writes %q", writes)
		}
	})
}

func TestAgentThatWasCutOffForAnHourCatchesUp(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, s, config := newPullCluster(t)
		start(t, h, func(ctx context.Context) error {
			return controller.Run(ctx, controller.Options{Config: h.Config, DialMember: membertest.Dial})
		})
		cut, hub := atomic.Bool{}, rest.CopyConfig(h.Config)
		hub.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if cut.Load() {
					return nil, errors.New("the network is down")
				}
				return next.RoundTrip(r)
			})
		})
		startAgent(t, h, hub, config)
		h.Make(policyOf())
		make := func(name string) *corev1.ConfigMap {
			template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Data: map[string]string{"a": "b"}}
			propagate.Claim(template, policyOf())
			h.Make(template)
			return template
		}
		value := func(name string) string {
			u := s.Object(membertest.ConfigMap, "shop", name)
			if u == nil {
				return "none"
			}
			a, _, _ := unstructured.NestedString(u.Object, "data", "a")
			return a
		}
		become := func(want map[string]string) {
			t.Helper()
			h.Eventually(fmt.Sprintf("the cluster has %v", want), func() string {
				for name, data := range want {
					if got := value(name); got != data {
						return fmt.Sprintf("%s is %q", name, got)
					}
				}
				return ""
			})
		}
		make("kept")
		changed, deleted := make("changed"), make("deleted")
		become(map[string]string{"kept": "b", "changed": "b", "deleted": "b"})
		configMaps := func(writes []string) (found []string) {
			for _, w := range writes {
				if strings.Contains(w, "configmaps") {
					found = append(found, w)
				}
			}
			slices.Sort(found)
			return slices.Compact(found) // An apply that is repeated changes nothing.
		}

		// 1. While the agent is cut off, everything in the cluster stays.
		cut.Store(true)
		h.Server.BreakWatches()
		before := len(s.Writes())
		controllertest.Change(h, changed, func(c *corev1.ConfigMap) { c.Data["a"] = "c" })
		make("added")
		deleteTemplate(t, h, deleted)
		membertest.Advance(time.Hour)
		isReady(t, h, metav1.ConditionUnknown)
		if writes := configMaps(s.Writes()[before:]); len(writes) > 0 {
			t.Errorf("while the agent was cut off, there were the writes %q", writes)
		}

		// 2. Afterwards, it makes the changes of the hub and nothing else.
		cut.Store(false)
		isReady(t, h, metav1.ConditionTrue)
		become(map[string]string{"kept": "b", "changed": "c", "deleted": "none", "added": "b"})
		membertest.Advance(time.Minute)
		if writes := configMaps(s.Writes()[before:]); len(writes) != 3 || !strings.HasPrefix(writes[0], "create ") ||
			!strings.HasSuffix(writes[0], "shop/added") || !strings.HasPrefix(writes[1], "delete ") ||
			!strings.HasSuffix(writes[1], "shop/deleted") || !strings.HasSuffix(writes[2], "shop/changed") {
			t.Errorf("the agent made the writes %q", writes)
		}
	})
}
