package propagate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// shop is a hub with only this controller, with workloads that need half a CPU each.
type shop struct {
	*controllertest.Hub
	t         *testing.T
	templates *template.Store
	stop      func()
}

func newShop(t *testing.T) *shop {
	s := &shop{Hub: controllertest.New(t), t: t}
	s.run()
	return s
}

func (s *shop) run() {
	s.stop = s.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		s.templates = template.New(dynamic.NewForConfigOrDie(s.Config), discovery.NewDiscoveryClientForConfigOrDie(s.Config))
		if err := mgr.Add(s.templates); err != nil {
			return err
		}
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Templates: s.templates, Interpreter: interpret.New(builtin.Tier()), Concurrency: 2})
	})
}

// everywhere makes a policy for a kind.
func (s *shop) everywhere(namespace, apiVersion, kind string) {
	s.t.Helper()
	p := scope.Propagations.New(namespace)
	p.SetName(strings.ToLower(kind) + "s")
	label := policyv1alpha1.PropagationPolicyPermanentIDLabel
	if namespace == "" {
		label = policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	}
	p.SetLabels(map[string]string{label: "id of " + kind})
	p.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}
	p.PropagationSpec().SchedulerName = policyv1alpha1.DefaultSchedulerName
	s.Make(p)
}

func (s *shop) workload(namespace, name, app string) {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2),
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": app}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "main",
				"resources": map[string]any{"requests": map[string]any{"cpu": "500m"}}}}}}}}}
	u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	s.Make(u)
}

func sidecarSet(name, app, cpu string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": app}},
		"containers": []any{map[string]any{"name": name,
			"resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}}}}
	u.SetGroupVersionKind(controllertest.SidecarSet.GroupVersionKind)
	u.SetName(name)
	return u
}

// needs waits until replicas of the workloads need so much CPU, and checks that nothing else is written than what is
// named.
func (s *shop) needs(when string, cpu map[string]string, writes ...string) {
	s.t.Helper()
	s.Eventually(when, func() string {
		for name, want := range cpu {
			namespace, name, _ := strings.Cut(name, "/")
			b := &workv1alpha2.ResourceBinding{}
			if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name + "-deployment"}, b); err != nil {
				return err.Error()
			}
			want, who, _ := strings.Cut(want, " with ")
			if got := b.Spec.ReplicaRequirements.ResourceRequest[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want)) != 0 ||
				b.Annotations[wellknown.SidecarsAnnotation] != who {
				return fmt.Sprintf("a replica of %s needs %s with %q, want %s with %q", name, &got,
					b.Annotations[wellknown.SidecarsAnnotation], want, who)
			}
		}
		return ""
	})
	var got []string
	for _, w := range s.Quiet() {
		if strings.HasPrefix(w, "update resourcebindings ") || strings.HasPrefix(w, "create resourcebindings ") {
			got = append(got, w)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, writes) {
		s.t.Errorf("%s: written to bindings %v, want %v", when, got, writes)
	}
}

func TestSidecarsCountInReplicaRequirements(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		s := newShop(t)
		s.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}})
		for _, namespace := range []string{"shop", "bank"} {
			s.everywhere(namespace, "apps/v1", "Deployment")
		}
		s.workload("shop", "web", "web")
		s.workload("shop", "api", "api")
		s.workload("bank", "web", "web")
		s.needs("without SidecarSets", map[string]string{"shop/web": "500m", "shop/api": "500m", "bank/web": "500m"},
			"create resourcebindings bank/web-deployment", "create resourcebindings shop/api-deployment",
			"create resourcebindings shop/web-deployment")
		if s.templates.Wanted(dependency.SidecarSetKind) {
			t.Error("SidecarSets are watched though nobody selects any")
		}

		logs := sidecarSet("logs", "web", "100m")
		s.Make(logs)
		s.needs("of one that goes nowhere", map[string]string{"shop/web": "500m"})
		s.everywhere("", "apps.kruise.io/v1beta1", "SidecarSet")
		s.needs("of one that is sent", map[string]string{"shop/web": "600m with logs", "bank/web": "600m with logs",
			"shop/api": "500m"},
			"update resourcebindings bank/web-deployment", "update resourcebindings shop/web-deployment")
		s.workload("shop", "new", "web")
		s.needs("of a new workload", map[string]string{"shop/new": "600m with logs"},
			"create resourcebindings shop/new-deployment")

		s.stop()
		s.run()
		s.needs("after a restart", map[string]string{"shop/web": "600m with logs", "shop/api": "500m"})

		set := func(change func(spec map[string]any)) {
			controllertest.Change(s.Hub, logs, func(u *unstructured.Unstructured) { change(u.Object["spec"].(map[string]any)) })
		}
		container := func(field string, value any) {
			set(func(spec map[string]any) { spec["containers"].([]any)[0].(map[string]any)[field] = value })
		}
		container("image", "2")
		s.needs("with another image", map[string]string{"shop/web": "600m with logs"})
		container("resources", map[string]any{"requests": map[string]any{"cpu": "200m"}})
		s.needs("that request more", map[string]string{"shop/web": "700m with logs", "bank/web": "700m with logs",
			"shop/new": "700m with logs"},
			"update resourcebindings bank/web-deployment", "update resourcebindings shop/new-deployment",
			"update resourcebindings shop/web-deployment")

		set(func(spec map[string]any) {
			spec["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"team": "money"}}
		})
		s.needs("of namespaces that are labelled",
			map[string]string{"shop/web": "500m", "bank/web": "500m", "shop/new": "500m"},
			"update resourcebindings bank/web-deployment", "update resourcebindings shop/new-deployment",
			"update resourcebindings shop/web-deployment")
		controllertest.Change(s.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
			func(ns *corev1.Namespace) {
				ns.Labels = map[string]string{"team": "money"}
			})
		s.needs("when one is", map[string]string{"bank/web": "700m with logs", "shop/web": "500m"},
			"update resourcebindings bank/web-deployment")

		set(func(spec map[string]any) { delete(spec, "namespaceSelector") })
		s.needs("of all", map[string]string{"shop/web": "700m with logs"},
			"update resourcebindings shop/new-deployment", "update resourcebindings shop/web-deployment")
		set(func(spec map[string]any) {
			spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "api"}}
		})
		s.needs("that move to other pods", map[string]string{"shop/web": "500m", "bank/web": "500m", "shop/new": "500m",
			"shop/api": "700m with logs"},
			"update resourcebindings bank/web-deployment", "update resourcebindings shop/api-deployment",
			"update resourcebindings shop/new-deployment", "update resourcebindings shop/web-deployment")
		s.Gone(logs)
		s.needs("that are gone", map[string]string{"shop/api": "500m"}, "update resourcebindings shop/api-deployment")
	})
}

// A hub that no longer serves SidecarSets, or not yet, keeps the counted overhead, and no binding waits.
func TestUnservedSidecarSetsBlockNoWorkload(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
		w.SetNamespace("shop")
		look := func(when string, r *reconciler, err error, unread bool) {
			t.Helper()
			m := propagate.Meaning{Replicas: 1}
			if got := r.count(t.Context(), w, &m); got != err || m.SidecarsUnread != unread {
				t.Errorf("%s: %v, unread is %v; want %v, %v", when, got, m.SidecarsUnread, err, unread)
			}
		}
		h := newHub(t)
		look("while nobody wants them", h.r, nil, false)
		h.r.Templates.Want(dependency.SidecarSetKind) // as a policy that selects them does
		synctest.Wait()
		look("where they are not served", h.r, nil, true)

		asleep := &reconciler{Options: Options{Templates: template.New(h.templates, nil)}}
		asleep.Templates.Want(dependency.SidecarSetKind)
		look("before they are in memory", asleep, errSidecarsUnread, false)
		asleep.sidecars.waiting = time.Now().Add(-sidecarTimeout)
		look("when they never come to be", asleep, nil, true)
	})
}
