package namespace

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub that sends its namespaces to the clusters m1 and m2. It has a namespace "shop".
type world struct {
	*controllertest.Hub
	t    *testing.T
	stop func()
}

func newWorld(t *testing.T, clusters ...string) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	for _, c := range clusters {
		w.Join(c)
	}
	w.run()
	return w
}

func (w *world) run() {
	w.stop = w.Run(func(_ context.Context, mgr ctrl.Manager) error { return Setup(mgr, Options{}) })
}

func (w *world) work(namespace, cluster string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{}
	work.Namespace, work.Name = names.ExecutionSpace(cluster), names.Work("Namespace", namespace, "")
	if !w.HasObject(work) {
		return nil
	}
	return work
}

// stage waits until the Work of a namespace has a label; "none" means no label and "absent" no Work.
func (w *world) stage(namespace, cluster, want string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%s in %s is %s", namespace, cluster, want), func() string {
		got := "absent"
		if work := w.work(namespace, cluster); work != nil && work.DeletionTimestamp == nil {
			m, err := execute.Manifest(work)
			if err != nil {
				return err.Error()
			}
			got = "none"
			if s := m.GetLabels()["stage"]; s != "" {
				got = s
			}
		}
		if got != want {
			return "it is " + got
		}
		return ""
	})
}

func shop() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
}

func TestEveryNamespaceButTheSystemsIsSentOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1", "m2")
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-own"}})
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "skipped",
			Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}}})
		for _, c := range []string{"m1", "m2"} {
			w.stage("shop", c, "none")
		}
		n := 0
		for _, s := range w.Quiet() {
			if strings.Contains(s, " works") {
				n++
			}
		}
		var works workv1alpha1.WorkList
		if err := w.List(t.Context(), &works); err != nil {
			t.Fatal(err)
		}
		if len(works.Items) != 2 || n != 2 {
			t.Errorf("there are %d works, %d writes; want one each for shop in m1 and m2", len(works.Items), n)
		}
		w.stop()
		w.run()
		if got := w.Quiet(); len(got) != 0 {
			t.Errorf("a restart wrote %v", got)
		}
	})
}

func TestNamespaceFollowsItsLabelsAndStaysIfSkippedLater(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1")
		ns := shop()
		controllertest.Change(w.Hub, ns, func(ns *corev1.Namespace) { ns.Labels = map[string]string{"stage": "dev"} })
		w.stage("shop", "m1", "dev")
		controllertest.Change(w.Hub, ns, func(ns *corev1.Namespace) {
			ns.Labels = map[string]string{"stage": "prod", policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}
		})
		w.Quiet()
		w.stage("shop", "m1", "dev")
	})
}

func TestDeletedNamespaceIsWithdrawn(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1", "m2")
		w.stage("shop", "m1", "none")
		w.stage("shop", "m2", "none")
		w.Gone(shop())
		w.stage("shop", "m1", "absent")
		w.stage("shop", "m2", "absent")
	})
}

func TestNamespaceDeletedDuringDowntimeIsWithdrawn(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1")
		w.stage("shop", "m1", "none")
		w.stop()
		w.Gone(shop())
		w.run()
		w.stage("shop", "m1", "absent")
	})
}

func TestClusterGetsNamespacesOnceItsExecutionSpaceExists(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1",
			Finalizers: []string{workv1alpha2.ClusterFinalizer}}})
		w.Quiet()
		w.stage("shop", "m1", "absent")
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("m1")}})
		w.stage("shop", "m1", "none")
	})
}

func TestNewClusterWithAnExecutionSpaceGetsNamespaces(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("m1")}})
		w.Quiet()
		w.stage("shop", "m1", "absent")
		w.Make(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1",
			Finalizers: []string{workv1alpha2.ClusterFinalizer}}})
		w.stage("shop", "m1", "none")
	})
}

func TestEditedWorkIsRestored(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1")
		w.stage("shop", "m1", "none")
		work := w.work("shop", "m1")
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
			work.Spec.Workload.Manifests[0].Raw = []byte(
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"stage":"hacked"}}}`)
		})
		w.stage("shop", "m1", "none")

		work = w.work("shop", "m1")
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) { work.Finalizers = nil })
		w.Eventually("it holds its object again", func() string {
			if work := w.work("shop", "m1"); len(work.Finalizers) == 0 {
				return "it has no finalizer"
			}
			return ""
		})
		before := w.work("shop", "m1")
		w.Gone(before)
		// the member is rid of it
		controllertest.Change(w.Hub, before, func(work *workv1alpha1.Work) { work.Finalizers = nil })
		w.stage("shop", "m1", "none")
	})
}

func TestAnOverrideOfNamespacesFollowsPolicyAndCluster(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1", "m2")
		p := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace"}}
		p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"stage": "prod"}}},
			Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
				{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"stage": "prod"}}}},
		}}
		w.Make(p)
		w.stage("shop", "m1", "none")
		m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		controllertest.Change(w.Hub, m1, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"stage": "prod"} })
		w.stage("shop", "m1", "prod")
		w.stage("shop", "m2", "none")
		controllertest.Change(w.Hub, p, func(p *policyv1alpha1.ClusterOverridePolicy) {
			p.Spec.ResourceSelectors[0].Kind = "ConfigMap"
		})
		w.stage("shop", "m1", "none")
	})
}

func TestNamespaceWithAPolicyBelongsToThePolicy(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, "m1")
		w.stage("shop", "m1", "none")
		work := w.work("shop", "m1")
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{workv1alpha2.ClusterResourceBindingNameAnnotation: "shop-namespace"}
			m, err := execute.Manifest(work)
			if err != nil {
				t.Fatal(err)
			}
			m.SetLabels(map[string]string{"stage": "policy"})
			if work.Spec.Workload.Manifests[0].Raw, err = m.MarshalJSON(); err != nil {
				t.Fatal(err)
			}
		})
		w.Quiet()
		w.stage("shop", "m1", "policy")
		ns := shop()
		controllertest.Change(w.Hub, ns, func(ns *corev1.Namespace) { ns.Labels = map[string]string{"stage": "dev"} })
		w.Quiet()
		w.stage("shop", "m1", "policy")

		w.Gone(work) // the policy wants it there no more
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) { work.Finalizers = nil })
		w.stage("shop", "m1", "dev")
	})
}
