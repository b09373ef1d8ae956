package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/membertest"
	"github.com/argosy-io/argosy/internal/scope"
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

func TestAgentActsInAClusterWhereTheHubDoesNot(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
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
		o := Options{Cluster: "p1", Member: config, StatusFrequency: 10 * time.Second, Workers: 2, WorkDeletions: 10,
			dial: membertest.Dial, alone: true}
		start(t, h, func(ctx context.Context) error {
			mgr, err := newManager(h.Config, o)
			if err == nil {
				err = compose(ctx, mgr, tenure.Self{}, o, true)
			}
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		})
		h.Eventually("the cluster is ready", func() string {
			c := &clusterv1alpha1.Cluster{}
			if err := h.Get(t.Context(), client.ObjectKey{Name: "p1"}, c); err != nil {
				return err.Error()
			}
			if !meta.IsStatusConditionTrue(c.Status.Conditions, "Ready") || c.Status.KubernetesVersion == "" {
				return fmt.Sprintf("its status is %+v", c.Status)
			}
			return ""
		})
		policy := scope.Propagations.New("shop")
		policy.SetName("everywhere")
		policy.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "some-id"})
		policy.SetFinalizers([]string{policyv1alpha1.PropagationPolicyFinalizer})
		policy.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1",
			Kind: "ConfigMap"}}
		h.Make(policy)
		template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"a": "b"}}
		propagate.Claim(template, policy)
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
		if err := h.Delete(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		// The garbage collector of a real hub deletes the binding.
		if err := h.Delete(t.Context(), &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "settings-configmap"}}); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		h.Eventually("the ConfigMap is deleted", func() string {
			if s.Object(membertest.ConfigMap, "shop", "settings") != nil {
				return "it is there"
			}
			return ""
		})
	})
}
