package klusterlet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub with the controllers of this package. Tests write what a klusterlet writes, see ocm-and-peers 2.2.
type world struct {
	*controllertest.Hub
	t    *testing.T
	stop func()
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.start()
	return w
}

func (w *world) start() {
	w.t.Helper()
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		own, err := definition.Names()
		if err != nil {
			return err
		}
		definitions, err := definition.New(ctx, mgr.GetCache(), mgr.GetAPIReader(), own)
		if err != nil {
			return err
		}
		return Setup(mgr, Options{Definitions: definitions})
	})
	stop := w.stop
	w.t.Cleanup(func() { w.Disconnected(stop) })
}

func named(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{
		LeaseDurationSeconds: 60}}
}

// accept makes an administrator accept or deny a cluster.
func (w *world) accept(name string, accept bool) {
	w.t.Helper()
	controllertest.Change(w.Hub, named(name), func(mc *clusterv1.ManagedCluster) { mc.Spec.HubAcceptsClient = accept })
}

// report makes the klusterlet of a cluster report whether its API server is available.
func (w *world) report(name string, status metav1.ConditionStatus) {
	w.t.Helper()
	mc := named(name)
	if !w.HasObject(mc) {
		w.t.Fatalf("there is no ManagedCluster %s", name)
	}
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterAvailable, Status: status,
		Reason: clusterv1.ReasonAvailable})
	if err := w.Status().Update(w.t.Context(), mc); err != nil {
		w.t.Fatal(err)
	}
}

// renew makes the klusterlet of a cluster renew its Lease.
func (w *world) renew(name string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: clusterv1.LeaseName}}
	controllertest.Change(w.Hub, lease, func(l *coordinationv1.Lease) {
		now := metav1.NowMicro()
		l.Spec.RenewTime = &now
	})
}

// expect waits until a ManagedCluster and its Cluster look as wanted: "Available Unknown; taints a; Ready Unknown".
func (w *world) expect(name, want string) {
	w.t.Helper()
	w.Eventually(name+" is "+want, func() string {
		if got := w.look(name); got != want {
			return got
		}
		return ""
	})
}

func (w *world) look(name string) string {
	mc, c := named(name), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !w.HasObject(mc) {
		return "gone"
	}
	status := func(conditions []metav1.Condition, kind string) string {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
			return string(condition.Status)
		}
		return "-"
	}
	var taints []string
	for _, t := range mc.Spec.Taints {
		taints = append(taints, t.Key[strings.LastIndex(t.Key, "/")+1:])
	}
	ready := "no Cluster"
	if w.HasObject(c) {
		ready = "Ready " + status(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	}
	return fmt.Sprintf("Accepted %s; Available %s; %s; %s", status(mc.Status.Conditions, clusterv1.HubAccepted),
		status(mc.Status.Conditions, clusterv1.ClusterAvailable), strings.Join(taints, ","), ready)
}

// rights returns which roles and bindings of a cluster exist.
func (w *world) rights(name string) (all []string) {
	w.t.Helper()
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&rbacv1.RoleBindingList{}} {
		if err := w.List(w.t.Context(), list, client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			w.t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			text := strings.TrimPrefix(obj.(client.Object).GetName(), "open-cluster-management:managedcluster:")
			switch of := obj.(type) {
			case *rbacv1.ClusterRole:
				text = fmt.Sprintf("role %s (%d rules)", text, len(of.Rules))
			case *rbacv1.RoleBinding:
				text += " in " + of.Namespace
			}
			all = append(all, text)
			return nil
		})
	}
	slices.Sort(all)
	return all
}

func TestKlusterletIsAcceptedHeardLostAndFoundAgain(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mc := named("eu")
		mc.Labels = map[string]string{"region": "eu", clusterv1.AddonLabelPrefix + "x": "available"}
		mc.Spec.Taints = []clusterv1.Taint{{Key: "dedicated", Value: "db", Effect: clusterv1.NoSelectIfNew}}
		w.Make(mc)
		w.Quiet()
		if got := w.look("eu"); got != "Accepted -; Available -; dedicated; no Cluster" || len(w.rights("eu")) > 0 {
			t.Fatalf("before it is accepted: %s, %v", got, w.rights("eu"))
		}
		w.accept("eu", true)
		w.expect("eu", "Accepted True; Available -; dedicated,unreachable; Ready Unknown")
		if !w.HasObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}) || len(w.rights("eu")) != 4 {
			t.Errorf("after it was accepted: %v", w.rights("eu"))
		}
		w.report("eu", metav1.ConditionTrue)
		w.expect("eu", "Accepted True; Available True; dedicated; Ready True")
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		w.HasObject(c)
		if c.Labels["region"] != "eu" || len(c.Labels) != 1 || c.Spec.SyncMode != clusterv1alpha1.Pull || !core.Manages(c) ||
			len(c.Spec.Taints) != 1 || c.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule {
			t.Errorf("the Cluster is %v, %v, %+v", c.Labels, c.Annotations, c.Spec)
		}

		// The clock of the hub alone counts.
		w.renew("eu")
		w.Advance(299 * time.Second)
		w.expect("eu", "Accepted True; Available True; dedicated; Ready True")
		w.Advance(2 * time.Second)
		w.expect("eu", "Accepted True; Available Unknown; dedicated,unreachable; Ready Unknown")
		w.renew("eu")
		w.report("eu", metav1.ConditionFalse)
		w.expect("eu", "Accepted True; Available False; dedicated,unavailable; Ready False")
		w.report("eu", metav1.ConditionTrue)
		w.expect("eu", "Accepted True; Available True; dedicated; Ready True")

		// A hub that was away for an hour does not take the fleet for lost.
		w.Disconnected(w.stop)
		w.Advance(time.Hour)
		w.start()
		w.Advance(4 * time.Minute)
		w.expect("eu", "Accepted True; Available True; dedicated; Ready True")
		w.Advance(2 * time.Minute)
		w.expect("eu", "Accepted True; Available Unknown; dedicated,unreachable; Ready Unknown")
	})
}

func TestRightsFollowAcceptanceAndDenial(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(named("eu"))
		w.accept("eu", true)
		w.expect("eu", "Accepted True; Available -; unreachable; Ready Unknown")
		all := w.rights("eu")

		// What others change or delete is set back.
		controllertest.Change(w.Hub, core.GrantsOf("eu", true).ClusterRole, func(r *rbacv1.ClusterRole) {
			r.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		})
		w.Gone(core.GrantsOf("eu", true).Registration)
		w.Eventually("the rights are set back", func() string {
			if got := w.rights("eu"); !slices.Equal(got, all) {
				return fmt.Sprint(got)
			}
			return ""
		})

		// A denied cluster with ManifestWorks keeps the right to clean up after them.
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "web"}}
		w.Make(mw)
		w.accept("eu", false)
		w.Eventually("the right to the Lease ends", func() string {
			if got := strings.Join(w.rights("eu"), "; "); strings.Contains(got, "registration in eu") ||
				!strings.Contains(got, "work in eu") {
				return got
			}
			return ""
		})
		w.Gone(mw)
		w.expect("eu", "Accepted False; Available -; unreachable; Ready False")
		if got := w.rights("eu"); len(got) != 2 {
			t.Errorf("a denied cluster without ManifestWorks has %v", got)
		}
	})
}

func TestDeletedClusterIsCleanedUpInOrder(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(named("eu"))
		w.accept("eu", true)
		w.report("eu", metav1.ConditionTrue)
		w.expect("eu", "Accepted True; Available True; ; Ready True")
		prior := func(priority, name string) *ocmv1.ManifestWork {
			mw := newWork("eu", name)
			if priority != "" {
				mw.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotation: priority}
			}
			w.Make(mw)
			return mw
		}
		first, last := prior("", "first"), prior("7", "last")
		addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "x",
			Finalizers: []string{"example.com/x"}}}
		w.Make(addon)
		w.Gone(named("eu"))
		leaving := func(obj client.Object) bool { return w.HasObject(obj) && obj.GetDeletionTimestamp() != nil }
		free := func(obj client.Object) {
			t.Helper()
			w.HasObject(obj)
			obj.SetFinalizers(nil)
			if err := w.Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			w.Advance(6 * time.Second)
		}
		w.Advance(6 * time.Second)
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		if !leaving(addon) || leaving(first) || w.HasObject(c) {
			t.Fatal("add-ons come first, after the Cluster is gone")
		}
		free(addon)
		w.Advance(6 * time.Second)
		if !leaving(first) || leaving(last) {
			t.Fatal("the ManifestWork without a priority comes first")
		}
		mc := named("eu")
		w.HasObject(mc)
		if c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterDeleting); c == nil ||
			c.Message != "The resource manifestworks is remaning, the remaining count is 2, the finalizer pending count is 1" {
			t.Errorf("the condition is %+v", c)
		}
		free(first)
		if len(w.rights("eu")) == 0 {
			t.Error("the klusterlet lost its rights before it cleaned up")
		}

		// Its klusterlet is silent for ever. A user gives up what it has.
		w.Advance(10 * time.Minute)
		if !w.HasObject(last) {
			t.Fatal("a ManifestWork was given up without a request")
		}
		controllertest.Change(w.Hub, named("eu"), func(mc *clusterv1.ManagedCluster) {
			metav1.SetMetaDataAnnotation(&mc.ObjectMeta, wellknown.ForceRemovalAnnotation, "true")
		})
		w.Advance(20 * time.Second)
		w.expect("eu", "gone")
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		if w.HasObject(last) || len(w.rights("eu")) > 0 || !w.HasObject(space) {
			t.Errorf("what is left: %v", w.rights("eu"))
		}
	})
}

func TestClusterOfKarmadaIsAManagedCluster(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Join("push")
		w.expect("push", "Accepted True; Available True; ; Ready True")
		mc := named("push")
		w.HasObject(mc)
		if !core.Derived(mc) || len(mc.Finalizers) > 0 || len(w.rights("push")) > 0 {
			t.Errorf("the hub writes %v, %v, and grants %v", mc.Annotations, mc.Finalizers, w.rights("push"))
		}
		controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "push"}},
			func(c *clusterv1alpha1.Cluster) {
				c.Labels = map[string]string{"tier": "gold", clusterv1.ClusterSetLabel: "secret"}
				c.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
			})
		w.Ready("push", metav1.ConditionUnknown, clusterv1alpha1.ReasonClusterStatusUnknown)
		w.expect("push", "Accepted True; Available Unknown; dedicated,unreachable; Ready Unknown")
		w.HasObject(mc)
		if mc.Labels["tier"] != "gold" || mc.Labels[clusterv1.ClusterSetLabel] == "secret" {
			t.Errorf("the labels are %v: a label of a Cluster must not join a set", mc.Labels)
		}
		w.Quiet()
		if more := w.Quiet(); len(more) > 0 {
			t.Errorf("the hub never rests: %v", more)
		}
		w.Gone(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "push"}})
		w.expect("push", "gone")
	})
}

// newWork returns a ManifestWork that its klusterlet cleans up.
func newWork(cluster, name string) *ocmv1.ManifestWork {
	return &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name,
		Finalizers: []string{ocmv1.ManifestWorkFinalizer}}}
}

func TestOnlyAnAcceptedClusterIsCleanedUp(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu"}})
		mw := newWork("eu", "of-a-push-cluster-that-left")
		w.Make(mw)
		w.Make(named("eu"))
		w.Quiet()
		w.Gone(named("eu"))
		w.expect("eu", "gone")
		if !w.HasObject(mw) || mw.DeletionTimestamp != nil {
			t.Error("a ManagedCluster that was never accepted took ManifestWorks along")
		}
	})
}

func TestDenialDoesNotDependOnWhatAKlusterletWrites(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(named("eu"))
		w.accept("eu", true)
		w.expect("eu", "Accepted True; Available -; unreachable; Ready Unknown")
		mc := named("eu")
		w.Disconnected(w.stop)
		w.HasObject(mc)
		mc.Status.Conditions = nil
		if err := w.Status().Update(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		w.accept("eu", false)
		w.start()
		w.Eventually("it is denied", func() string {
			if got := w.rights("eu"); len(got) != 2 {
				return fmt.Sprint(got)
			}
			return ""
		})

		// The rights of an earlier cluster of the name end although the new one was never accepted.
		w.Disconnected(w.stop)
		w.HasObject(mc)
		mc.Finalizers = nil
		if err := w.Update(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		grants := core.GrantsOf("eu", true)
		w.Make(grants.Registration)
		w.start()
		w.Eventually("the leftover goes", func() string {
			if w.HasObject(grants.Registration) {
				return "it is there"
			}
			return ""
		})
	})
}

func TestPushJoinTakesANameThatIsNotAccepted(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mc := named("eu")
		mc.Finalizers = []string{clusterv1.RightsFinalizer, clusterv1.CleanupFinalizer}
		w.Make(mc)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eu"}})
		mw := newWork("eu", "web")
		w.Make(mw)
		w.Join("eu")
		w.Eventually("the hub writes the ManagedCluster", func() string {
			if w.HasObject(mc); !core.Derived(mc) || len(mc.Finalizers) > 0 || len(w.rights("eu")) > 0 {
				return fmt.Sprint(mc.Annotations, mc.Finalizers, w.rights("eu"))
			}
			return ""
		})
		if !w.HasObject(mw) || mw.DeletionTimestamp != nil {
			t.Error("the ManifestWorks of the Cluster were deleted")
		}
		w.Gone(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}})
		w.expect("eu", "gone")
	})
}

func TestNothingIsDeletedWithTheDefinition(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(named("eu"))
		w.accept("eu", true)
		w.report("eu", metav1.ConditionTrue)
		w.expect("eu", "Accepted True; Available True; ; Ready True")
		mw := newWork("eu", "web")
		w.Make(mw)
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(controllertest.Definition.GroupVersionKind)
		crd.SetName(definition.ManagedClusters)
		if err := w.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		w.Gone(named("eu"))
		w.expect("eu", "gone")
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		w.Eventually("the Cluster is unknown", func() string {
			if !w.HasObject(c) || c.DeletionTimestamp != nil {
				return "it is deleted"
			}
			if !meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady,
				metav1.ConditionUnknown) {
				return fmt.Sprintf("%+v", c.Status.Conditions)
			}
			return ""
		})
		if !w.HasObject(mw) || mw.DeletionTimestamp != nil {
			t.Error("a ManifestWork was deleted")
		}
	})
}

func TestSetsAreKeptCountedAndBound(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(named("eu"))
		set := func(name string) *setv1beta2.ManagedClusterSet {
			return &setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		message := func(name, want string) {
			t.Helper()
			w.Eventually("the set "+name, func() string {
				s := set(name)
				if !w.HasObject(s) {
					return "it does not exist"
				}
				if c := meta.FindStatusCondition(s.Status.Conditions, setv1beta2.ClusterSetEmpty); c == nil || c.Message != want {
					return fmt.Sprintf("%+v", c)
				}
				return ""
			})
		}
		w.Advance(time.Second)
		message("global", "1 ManagedClusters selected")
		message("default", "No ManagedCluster selected")
		controllertest.Change(w.Hub, named("eu"), func(mc *clusterv1.ManagedCluster) {
			mc.Labels = map[string]string{clusterv1.ClusterSetLabel: "default"}
		})
		message("default", "1 ManagedClusters selected")

		controllertest.Change(w.Hub, set("global"), func(s *setv1beta2.ManagedClusterSet) {
			s.Spec.ClusterSelector.LabelSelector = nil
			s.Spec.ManagedNamespaces = []setv1beta2.ManagedNamespace{{Name: "shared"}}
		})
		message("global", "No ManagedCluster selected")
		w.Gone(set("default"))
		w.Advance(11 * time.Second)
		message("global", "1 ManagedClusters selected")
		message("default", "1 ManagedClusters selected")
		w.Eventually("the namespace is required", func() string {
			mc := named("eu")
			w.HasObject(mc)
			if n := mc.Status.ManagedNamespaces; len(n) != 1 || n[0].Name != "shared" || n[0].ClusterSet != "global" {
				return fmt.Sprintf("%+v", n)
			}
			return ""
		})
		controllertest.Change(w.Hub, set("global"), func(s *setv1beta2.ManagedClusterSet) {
			s.Annotations = map[string]string{clusterv1.AutoUpdateAnnotation: "false"}
			s.Spec.ClusterSelector.LabelSelector = nil
		})
		w.Advance(time.Minute)
		message("global", "No ManagedCluster selected")

		bound := func(name string) *setv1beta2.ManagedClusterSetBinding {
			return &setv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec: setv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name}}
		}
		w.Make(bound("gold"))
		for _, want := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue} {
			w.Eventually("Bound is "+string(want), func() string {
				b := bound("gold")
				w.HasObject(b)
				if !meta.IsStatusConditionPresentAndEqual(b.Status.Conditions, setv1beta2.Bound, want) {
					return fmt.Sprintf("%+v", b.Status.Conditions)
				}
				return ""
			})
			if want == metav1.ConditionFalse {
				w.Make(set("gold"))
			}
		}
	})
}

// The klusterlet cleans up after the ManifestWork that asks for kinds, if it responds: its record of it would stay for
// an hour, and `clusteradm unjoin` refuses while there is one.
func TestKlusterletCleansUpAfterTheQuestionForKinds(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		for status, waits := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: true, metav1.ConditionUnknown: false,
			metav1.ConditionFalse: false} {
			w := newWorld(t)
			w.Make(named("eu"))
			w.accept("eu", true)
			w.report("eu", status)
			asks := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: core.KindsWork}}
			w.Eventually("the hub asks for kinds", func() string {
				if !w.HasObject(asks) {
					return "it does not"
				}
				return ""
			})
			controllertest.Change(w.Hub, asks, func(mw *ocmv1.ManifestWork) {
				mw.Finalizers = append(mw.Finalizers, ocmv1.ManifestWorkFinalizer)
			})
			w.Gone(named("eu"))
			w.Advance(5 * time.Second)
			if has := w.HasObject(asks); has != waits {
				t.Errorf("Available is %s: the ManifestWork is there after 5 s: %t", status, has)
			}
			w.Advance(6 * time.Second)
			if w.HasObject(asks) {
				t.Errorf("Available is %s: the hub waits for longer", status)
			}
			w.Disconnected(w.stop)
		}
	})
}
