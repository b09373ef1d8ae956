package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	core "github.com/argosy-io/argosy/internal/core/cluster/inventory"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func start(w *controllertest.Hub, namespace string) (stop func()) {
	return startWith(w, namespace, false)
}

func startWith(w *controllertest.Hub, namespace string, decisions bool) (stop func()) {
	return w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		return Setup(ctx, mgr, Options{Namespace: namespace, Decisions: decisions, Access: func(name string) core.Access {
			return core.Access{Server: "https://hub:7443/" + name}
		}})
	})
}

func cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func profile(namespace, name string) *multiclusterv1alpha1.ClusterProfile {
	return &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// healthy waits until the ClusterProfile of a cluster has a status of the condition ControlPlaneHealthy.
func healthy(w *controllertest.Hub, namespace, name string, want metav1.ConditionStatus) {
	w.Eventually(fmt.Sprintf("%s/%s is healthy: %s", namespace, name, want), func() string {
		p := profile(namespace, name)
		if !w.HasObject(p) {
			return "it is missing"
		}
		c := meta.FindStatusCondition(p.Status.Conditions, multiclusterv1alpha1.ConditionControlPlaneHealthy)
		if c == nil || c.Status != want {
			return fmt.Sprint(p.Status.Conditions)
		}
		return ""
	})
}

func absent(w *controllertest.Hub, p *multiclusterv1alpha1.ClusterProfile) {
	w.Eventually(p.Namespace+"/"+p.Name+" is gone", func() string {
		if w.HasObject(p) {
			return "it is there"
		}
		return ""
	})
}

func TestClustersAreInTheInventory(t *testing.T) { controllertest.Run(t, testInventory) }

func testInventory(t *testing.T) {
	w := controllertest.New(t)
	stop := start(w, "fleet")
	w.Make(cluster("eu"))
	healthy(w, "fleet", "eu", metav1.ConditionUnknown)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	if !w.HasObject(space) || space.Labels[multiclusterv1alpha1.ClusterSetLabel] != "argosy" ||
		space.Labels[multiclusterv1alpha1.ClusterSetKEPLabel] != "argosy" {
		t.Errorf("the namespace is %+v", space)
	}
	w.Ready("eu", metav1.ConditionTrue, "ClusterReady")
	healthy(w, "fleet", "eu", metav1.ConditionTrue)

	// What somebody changes or deletes is as before at once.
	controllertest.Change(w, profile("fleet", "eu"), func(p *multiclusterv1alpha1.ClusterProfile) {
		p.Spec.DisplayName, p.Labels = "mine", nil
	})
	w.Eventually("a change is undone", func() string {
		if p := profile("fleet", "eu"); !w.HasObject(p) || p.Spec.DisplayName != "eu" || len(p.Labels) == 0 {
			return fmt.Sprint(p)
		}
		return ""
	})
	w.Gone(profile("fleet", "eu"))
	healthy(w, "fleet", "eu", metav1.ConditionTrue)

	// Those of another hub or program stay as they are.
	w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}})
	for _, p := range []*multiclusterv1alpha1.ClusterProfile{profile("fleet", "us"), profile("theirs", "eu")} {
		p.Spec.ClusterManager.Name = "other"
		w.Make(p)
	}
	// A copy that another controller made.
	eu := profile("fleet", "eu")
	if !w.HasObject(eu) {
		t.Fatal("there is no ClusterProfile")
	}
	copied := profile("theirs", "copy")
	copied.Spec, copied.OwnerReferences = eu.Spec, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap",
		Name: "copy", UID: "1", Controller: new(true)}}
	w.Make(copied)
	// One that an administrator invents for no cluster goes.
	invented := profile("fleet", "none")
	invented.Spec = eu.Spec
	w.Make(invented)
	absent(w, invented)
	w.Make(cluster("us"))
	w.Eventually("the foreign ClusterProfile is named", func() string {
		for _, text := range w.Events() {
			if strings.Contains(text, `ClusterProfile fleet/us is of cluster manager "other": delete it`) {
				return ""
			}
		}
		return fmt.Sprint(w.Events())
	})

	// 2. Another namespace: the former ClusterProfiles of this hub go.
	w.Disconnected(stop)
	stop = start(w, "other")
	healthy(w, "other", "eu", metav1.ConditionTrue)
	healthy(w, "other", "us", metav1.ConditionUnknown)
	absent(w, profile("fleet", "eu"))

	// 3. None.
	w.Disconnected(stop)
	stop = start(w, "")
	absent(w, profile("other", "eu"))
	absent(w, profile("other", "us"))
	for _, p := range []*multiclusterv1alpha1.ClusterProfile{profile("fleet", "us"), profile("theirs", "eu")} {
		if !w.HasObject(p) || p.Spec.ClusterManager.Name != "other" {
			t.Errorf("ClusterProfile %s/%s of another program is %+v", p.Namespace, p.Name, p)
		}
	}
	if !w.HasObject(profile("theirs", "copy")) {
		t.Error("the copy of another controller is gone")
	}
	w.Disconnected(stop)
}

func decision(name string) *multiclusterv1alpha1.PlacementDecision {
	return &multiclusterv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// chosen waits until the PlacementDecision of the binding has these clusters.
func chosen(w *controllertest.Hub, clusters ...string) {
	w.Eventually(fmt.Sprintf("the decision is %v", clusters), func() string {
		d := decision("web-deployment-0")
		var got []string
		if w.HasObject(d) {
			for _, c := range d.Decisions {
				got = append(got, c.ClusterProfileRef.Namespace+"/"+c.ClusterProfileRef.Name)
			}
		}
		if strings.Join(got, " ") != strings.Join(clusters, " ") {
			return fmt.Sprint(got)
		}
		return ""
	})
}

func TestDecisionsAreInTheNamespaceOfTheWorkload(t *testing.T) { controllertest.Run(t, testDecisions) }

func testDecisions(t *testing.T) {
	w := controllertest.New(t)
	stop := startWith(w, "fleet", true)
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu"}}
	foreign := decision("db-deployment-0")
	w.Make(foreign)
	w.Make(b)
	chosen(w, "fleet/eu")
	move := func(clusters ...workv1alpha2.TargetCluster) {
		controllertest.Change(w, b, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = clusters })
	}

	// 1. It follows the binding with one write for each change, also to a cluster that sorts first. It stays while
	// nothing is chosen.
	w.Quiet()
	move(workv1alpha2.TargetCluster{Name: "asia"}, workv1alpha2.TargetCluster{Name: "eu"})
	chosen(w, "fleet/asia", "fleet/eu")
	move()
	if writes := w.Quiet(); fmt.Sprint(writes) != "[update resourcebindings shop/web-deployment "+
		"update placementdecisions shop/web-deployment-0 update resourcebindings shop/web-deployment]" {
		t.Errorf("written was %v", writes)
	}
	chosen(w, "fleet/asia", "fleet/eu")
	move(workv1alpha2.TargetCluster{Name: "us"})
	chosen(w, "fleet/us")

	// 2. Changes of others are undone.
	controllertest.Change(w, decision("web-deployment-0"), func(d *multiclusterv1alpha1.PlacementDecision) {
		d.Decisions = nil
	})
	chosen(w, "fleet/us")
	w.Gone(decision("web-deployment-0"))
	chosen(w, "fleet/us")

	// 3. A foreign one of the name of a binding stays, and an event names it. That of a former binding has no event.
	former := decision("api-deployment-0")
	former.OwnerReferences = []metav1.OwnerReference{{APIVersion: workv1alpha2.GroupVersion.String(),
		Kind: "ResourceBinding", Name: "api-deployment", UID: "former", Controller: new(true)}}
	w.Make(former)
	api := b.DeepCopy()
	api.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "api-deployment"}
	w.Make(api)
	db := b.DeepCopy()
	db.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "db-deployment"}
	w.Make(db)
	named := func(text string) bool {
		return slices.ContainsFunc(w.Events(), func(event string) bool { return strings.Contains(event, text) })
	}
	warning := "PlacementDecision shop/db-deployment-0 belongs to another program: delete it"
	w.Eventually("the foreign PlacementDecision is named", func() string {
		if !named(warning) {
			return fmt.Sprint(w.Events())
		}
		return ""
	})
	w.Quiet()
	if named("api-deployment-0") {
		t.Errorf("the events are %v", w.Events())
	}
	for _, name := range []string{"db-deployment-0", "api-deployment-0"} {
		w.Gone(decision(name))
		w.Eventually(name+" is the hub's", func() string {
			if d := decision(name); !w.HasObject(d) || !core.IsDecision(d) || len(d.Decisions) != 1 {
				return fmt.Sprint(d)
			}
			return ""
		})
	}
	foreign = decision("other-0")
	w.Make(foreign)

	// 4. Without the switch they go, and foreign ones stay.
	w.Disconnected(stop)
	stop = start(w, "fleet")
	chosen(w)
	if !w.HasObject(foreign) {
		t.Error("the foreign PlacementDecision is gone")
	}
	w.Disconnected(stop)
}
