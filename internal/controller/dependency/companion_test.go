package dependency

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// about returns an object that refers to a Deployment.
func about(kind, name, target string) *unstructured.Unstructured {
	u := object(kind, "shop", name)
	u.Object["spec"] = map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"name": target}}
	return u
}

// rewrite updates a template.
func (h *hub) rewrite(u *unstructured.Unstructured) {
	h.t.Helper()
	_, err := h.templates.Resource(resources[u.GetKind()]).Namespace(u.GetNamespace()).Update(context.Background(), u,
		metav1.UpdateOptions{})
	h.mustSucceed(err)
}

var spread = types.NamespacedName{Namespace: "shop", Name: "spread-workloadspread"}

func TestCompanionFollowsWorkload(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		web, db := h.workload("Deployment", "shop", "web", "eu", "us"), h.workload("Deployment", "shop", "db", "asia")
		h.create(about("WorkloadSpread", "spread", "web"))
		if w := h.settle(); !slices.Equal(w, []string{"update " + web.Name, "create " + spread.Name}) {
			t.Errorf("it wrote %v, want the record on the workload's binding and the attached one", w)
		}
		if by := h.get(spread).BindingSpec().RequiredBy; len(by) != 1 || by[0].Name != web.Name || len(by[0].Clusters) != 2 {
			t.Errorf("it follows %+v", by)
		}
		if w := h.settle(); len(w) != 0 {
			t.Errorf("and again: %v", w)
		}

		was, moved := about("WorkloadSpread", "spread", "web"), about("WorkloadSpread", "spread", "db")
		woken := map[types.NamespacedName]bool{}
		h.r.objectChanged(func(r reconcile.Request) { woken[r.NamespacedName] = true })(was, moved)
		if !woken[web] || !woken[db] || len(woken) != 2 {
			t.Errorf("it moves from the one to the other, and %v look", woken)
		}
		if at := h.r.leaders.followedBy(object("ConfigMap", "shop", "web")); len(at) > 0 {
			t.Errorf("a ConfigMap points at %v", at)
		}

		h.mustSucceed(h.client.Delete(context.Background(), h.get(web)))
		h.settle()
		if !h.going(spread) {
			t.Error("the workload is gone, and it stays")
		}
		if at := h.r.leaders.followedBy(was); len(at) > 0 {
			t.Errorf("the workload is gone, and %v lead", at)
		}
	})
}

// After a restart companions stay although the cache does not have them yet.
func TestCompanionsStayAfterRestart(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		web := h.workload("Deployment", "shop", "web", "eu")
		h.create(about("WorkloadSpread", "spread", "web"))
		h.settle()
		h.restart(template.New(h.templates, served())) // which reads nothing into memory
		h.writes = nil
		res, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web})
		if err != nil || len(h.writes) > 0 || h.going(spread) {
			t.Errorf("it wrote %v: %v", h.writes, err)
		}
		if res.RequeueAfter == 0 {
			t.Error("the binding is not requeued until the cache is complete")
		}
	})
}

func TestCompanionCreatedByMembersIsReportedOnce(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.workload("Deployment", "shop", "web", "eu")
		h.create(about("PersistentPodState", "web", "web"))
		state := types.NamespacedName{Namespace: "shop", Name: "web-persistentpodstate"}
		h.settle()
		if h.going(state) {
			t.Fatal("it is not propagated with")
		}
		u := object("Deployment", "shop", "web")
		u.SetAnnotations(map[string]string{kind.AutoGenerateAnnotation: "true"})
		h.rewrite(u)
		h.settle()
		h.settle()
		if !h.going(state) {
			t.Error("members make one, and it is sent, too")
		}
		if n := len(h.recorder.Events); n != 1 {
			t.Fatalf("%d events, want one", n)
		}
		if e := <-h.recorder.Events; !strings.Contains(e, "MadeByMembers") || !strings.Contains(e, "Deployment web") ||
			!strings.Contains(e, kind.AutoGenerateAnnotation) {
			t.Errorf("events are %q", e)
		}
		if b := h.get(types.NamespacedName{Namespace: "shop",
			Name: "web-deployment"}); b.GetAnnotations()[workv1alpha2.DependenciesAnnotation] != "" {
			t.Errorf("it is recorded still: %v", b.GetAnnotations())
		}
	})
}
