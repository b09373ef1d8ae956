package inventory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	core "github.com/argosy-io/argosy/internal/core/cluster/inventory"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func start(w *controllertest.Hub, namespace string) (stop func()) {
	return w.Run(func(_ context.Context, mgr ctrl.Manager) error {
		return Setup(mgr, Options{Namespace: namespace, Access: func(name string) core.Access {
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
