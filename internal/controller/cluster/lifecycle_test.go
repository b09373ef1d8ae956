package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/member"
)

// life is a lifecycle with its hub and its events.
type life struct {
	*lifecycle
	t      *testing.T
	output *record.FakeRecorder
}

func newLife(t *testing.T, objs ...client.Object) *life {
	c := hub(objs...)
	output := record.NewFakeRecorder(100)
	return &life{&lifecycle{client: c, members: member.New(member.Options{Clusters: c, Secrets: c}),
		events: commit.Events{EventRecorder: output}, clock: clock.RealClock{}}, t, output}
}

func (l *life) reconcile() {
	l.t.Helper()
	if _, err := l.Reconcile(context.Background(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) exists(obj client.Object, namespace, name string) bool {
	l.t.Helper()
	err := l.client.Get(l.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func (l *life) wantEvent(reason string) {
	l.t.Helper()
	select {
	case e := <-l.output.Events:
		if !strings.Contains(e, " "+reason+" ") {
			l.t.Errorf("said %q, want %s", e, reason)
		}
	default:
		l.t.Errorf("said nothing, want %s", reason)
	}
}

func (l *life) wantSilence() {
	l.t.Helper()
	select {
	case e := <-l.output.Events:
		l.t.Errorf("said %q again", e)
	default:
	}
}

func cluster(status metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	if status != "" {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status}}
	}
	return c
}

func TestNewClusterGetsFinalizerAndNamespaceOnce(t *testing.T) {
	l := newLife(t, cluster(""))
	l.reconcile()
	c, space := &clusterv1alpha1.Cluster{}, &corev1.Namespace{}
	if !l.exists(c, "", "m1") || len(c.Finalizers) != 1 || c.Finalizers[0] != "karmada.io/cluster-controller" {
		t.Errorf("finalizers are %v", c.Finalizers)
	}
	if !l.exists(space, "", "karmada-es-m1") || space.Labels["karmada.io/system"] != "true" {
		t.Errorf("execution space is %v", space)
	}
	l.wantEvent("CreateExecutionSpaceSucceed")
	version := c.ResourceVersion
	l.reconcile()
	l.exists(c, "", "m1")
	if c.ResourceVersion != version {
		t.Error("a second look wrote the cluster")
	}
	l.wantSilence()

	// A space that somebody deleted comes back.
	if err := l.client.Delete(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	if !l.exists(space, "", "karmada-es-m1") {
		t.Error("a deleted execution space did not come back")
	}
}

func TestTaintsAreWrittenOnceWithEvent(t *testing.T) {
	l := newLife(t, cluster(metav1.ConditionFalse),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1",
			Labels: map[string]string{"karmada.io/system": "true"}}})
	l.reconcile()
	c := &clusterv1alpha1.Cluster{}
	if !l.exists(c, "", "m1") || len(c.Spec.Taints) != 2 || c.Spec.Taints[0].Key != "cluster.karmada.io/not-ready" {
		t.Fatalf("taints are %v", c.Spec.Taints)
	}
	l.wantEvent("TaintClusterSucceed")
	l.reconcile()
	l.wantSilence()
}

// The agent of a Cluster that is gone could create another one for as long as it has permissions.
func TestPermissionsOfAgentEndBeforeItsCluster(t *testing.T) {
	for _, mode := range []clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Pull, clusterv1alpha1.Push} {
		c := cluster(metav1.ConditionFalse)
		c.Spec.SyncMode = mode
		c.Finalizers, c.DeletionTimestamp = []string{workv1alpha2.ClusterFinalizer}, new(metav1.Now())
		grants := pull.GrantsOf("m1")
		l := newLife(t, append([]client.Object{c}, objectsOf(grants)...)...)
		working, broken := l.client, errors.New("the hub is overloaded")
		l.client = interceptor.NewClient(working.(client.WithWatch), interceptor.Funcs{Delete: func(ctx context.Context,
			c client.WithWatch, obj client.Object, opts ...client.DeleteOption,
		) error {
			if _, is := obj.(*rbacv1.RoleBinding); is {
				return broken
			}
			return c.Delete(ctx, obj, opts...)
		}})
		if _, err := l.leave(t.Context(), c); !errors.Is(err, broken) || !l.exists(c, "", "m1") {
			t.Errorf("%s: the Cluster leaves although a permission is left: %v", mode, err)
		}
		l.client = working
		l.reconcile()
		for _, obj := range objectsOf(grants) {
			if l.exists(obj, obj.GetNamespace(), obj.GetName()) {
				t.Errorf("%s: %T %s is left", mode, obj, obj.GetName())
			}
		}
		if l.exists(c, "", "m1") {
			t.Errorf("%s: the Cluster is left", mode)
		}
	}
}

func objectsOf(grants pull.Grants) (objects []client.Object) {
	for _, obj := range grants.Objects() {
		objects = append(objects, obj)
	}
	return objects
}

func TestClusterLeavesInOrder(t *testing.T) {
	for _, tc := range []struct {
		story string
		ready metav1.ConditionStatus
	}{
		{"the member answers: its objects are deleted there first", metav1.ConditionTrue},
		{"the member is away: its Works are let go", metav1.ConditionFalse},
		{"nothing was ever heard of the member", ""},
	} {
		t.Run(tc.story, func(t *testing.T) {
			c := cluster(tc.ready)
			now := metav1.Now()
			c.Finalizers, c.DeletionTimestamp = []string{workv1alpha2.ClusterFinalizer}, &now
			binding := &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-deployment"},
				Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}},
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web-x",
				Finalizers: []string{workv1alpha2.ExecutionFinalizer}}}
			other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m2", Name: "web-x",
				Finalizers: []string{workv1alpha2.ExecutionFinalizer}}}
			l := newLife(t, c, binding, work, other, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}})

			l.reconcile()
			if !l.exists(work, "karmada-es-m1", "web-x") || work.DeletionTimestamp != nil {
				t.Fatal("a Work went while a binding still targets the cluster")
			}
			if woken := l.leavers(t.Context(), binding); len(woken) != 1 || woken[0].Name != "m1" {
				t.Errorf("a change of a binding wakes %v, want m1", woken)
			}
			binding.Spec.Clusters = binding.Spec.Clusters[1:]
			if err := l.client.Update(t.Context(), binding); err != nil {
				t.Fatal(err)
			}

			l.reconcile()
			if tc.ready == metav1.ConditionTrue {
				if !l.exists(work, "karmada-es-m1", "web-x") || work.DeletionTimestamp == nil {
					t.Fatal("the Work of a member that answers must be under deletion, not gone")
				}
				if !l.exists(&corev1.Namespace{}, "", "karmada-es-m1") {
					t.Fatal("the execution space went before its Works")
				}
				if woken := l.leaverOfWork(t.Context(), work); len(woken) != 1 {
					t.Error("the end of its last Work does not wake the cluster")
				}
				work.Finalizers = nil // what the execution controller does when the object is gone
				if err := l.client.Update(t.Context(), work); err != nil {
					t.Fatal(err)
				}
				l.reconcile()
			}
			if l.exists(work, "karmada-es-m1", "web-x") {
				t.Error("a Work is left")
			}
			l.wantEvent("RemoveExecutionSpaceSucceed")
			l.reconcile() // the namespace is gone
			if l.exists(c, "", "m1") {
				t.Errorf("the cluster is left with finalizers %v", c.Finalizers)
			}
			if !l.exists(other, "karmada-es-m2", "web-x") || other.DeletionTimestamp != nil {
				t.Error("another cluster's Work was touched")
			}
			l.reconcile()
			if woken := l.leavers(t.Context(), binding); len(woken) != 0 {
				t.Errorf("after the cluster left, bindings still wake %v", woken)
			}
		})
	}
}
