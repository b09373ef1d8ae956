package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// moving is a fleet with a namespace and a ConfigMap in it, each with a policy of its own, in m1.
type moving struct {
	*controllertest.Hub
	t                *testing.T
	members          map[string]*membertest.Server
	nsPolicy, policy policyv1alpha1.Propagation
	ns               *corev1.Namespace
	settings         *corev1.ConfigMap
}

func newMoving(t *testing.T) *moving {
	w := &moving{t: t}
	w.Hub, w.members = fleet(t)
	w.nsPolicy, w.policy = policy("", "v1", "Namespace"), policy("moves", "v1", "ConfigMap")
	w.nsPolicy.PropagationSpec().ResourceSelectors[0].Name = "moves"
	w.policy.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "another-id"
	for _, p := range []policyv1alpha1.Propagation{w.nsPolicy, w.policy} {
		p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
	}
	w.makeNamespace()
	w.Make(w.policy)
	w.settings = claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "moves", Name: "settings"},
		Data: map[string]string{"version": "one"}}, w.policy)
	w.Make(w.settings)
	w.expect("settings", "m1")
	w.Quiet()
	return w
}

func (w *moving) makeNamespace() {
	w.ns = claimed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "moves",
		Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}}}, w.nsPolicy)
	if !w.HasObject(w.nsPolicy) {
		w.Make(w.nsPolicy)
	}
	w.Make(w.ns)
}

func (w *moving) move(p policyv1alpha1.Propagation, clusters ...string) {
	w.t.Helper()
	controllertest.Change(w.Hub, p, func(p policyv1alpha1.Propagation) {
		p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	})
}

// expect waits until exactly these members have the ConfigMap, or the namespace.
func (w *moving) expect(what string, clusters ...string) {
	w.t.Helper()
	w.Eventually(what+" is in "+fmt.Sprint(clusters), func() string {
		var in []string
		for _, name := range []string{"m1", "m2", "m3"} {
			if what == "settings" && w.members[name].Object(membertest.ConfigMap, "moves", what) != nil ||
				what == "moves" && w.members[name].Object(membertest.Namespace, "", what) != nil {
				in = append(in, name)
			}
		}
		if !slices.Equal(in, clusters) {
			return "it is in " + fmt.Sprint(in)
		}
		return ""
	})
}

func (w *moving) work() *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
		Name: names.Work("Namespace", "moves", "")}}
	if !w.HasObject(work) {
		return nil
	}
	return work
}

func TestNamespaceThatMovesLeavesTheMember(t *testing.T) {
	for story, between := range map[string]time.Duration{"at once": 0, "an hour later": time.Hour} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newMoving(t)
				w.move(w.nsPolicy, "m2")
				w.expect("moves", "m1", "m2")
				w.Advance(between)
				w.move(w.policy, "m2")
				w.expect("settings", "m2")
				w.expect("moves", "m2")
			})
		})
	}
}

func TestNamespacesOfTheHubLeaveAClusterThatIsRemoved(t *testing.T) {
	for round := range 4 { // the order of events differs
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				h, members := fleet(t)
				p := policy("shop", "v1", "ConfigMap")
				h.Make(p)
				h.Make(claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}, p))
				h.Eventually("m1 has the ConfigMap", func() string {
					if members["m1"].Object(membertest.ConfigMap, "shop", "settings") == nil {
						return "it has none"
					}
					return ""
				})
				h.Quiet()
				h.Gone(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
				h.Quiet()
				if ns := members["m1"].Object(membertest.Namespace, "", "shop"); ns != nil {
					t.Errorf("the namespace is there with %v %v", ns.GetLabels(), ns.GetAnnotations())
				}
			})
		})
	}
}

func TestNamespaceThatIsCreatedAgainElsewhereLeavesTheMember(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newMoving(t)
		w.Gone(w.ns)
		w.Eventually("the Work of the namespace waits", func() string {
			if work := w.work(); work == nil || work.DeletionTimestamp == nil {
				return "it does not"
			}
			return ""
		})
		w.move(w.nsPolicy, "m2")
		w.makeNamespace()
		w.expect("moves", "m1", "m2")
		w.move(w.policy, "m2")
		w.expect("settings", "m2")
		w.expect("moves", "m2")
	})
}

func TestNamespaceWithObjectsOfOthersStaysInTheMember(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newMoving(t)
		w.members["m1"].Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "moves", Name: "theirs"}})
		w.move(w.nsPolicy, "m2")
		w.move(w.policy, "m2")
		w.expect("settings", "m2")
		w.Eventually("the Work is gone", func() string {
			if w.work() != nil {
				return "it is there"
			}
			return ""
		})
		w.expect("moves", "m1", "m2")
		if w.members["m1"].Object(membertest.ConfigMap, "moves", "theirs") == nil {
			t.Error("the object of others is gone")
		}
	})
}

// The Work of a namespace that waits for its objects must not keep a later one from its place.
func TestNamespaceThatReturnsIsSentAgain(t *testing.T) {
	for story, tc := range map[string]struct{ leaves, returns func(*moving) }{
		"its policy comes back": {
			func(w *moving) { w.move(w.nsPolicy, "m2") },
			func(w *moving) { w.move(w.nsPolicy, "m1") },
		},
		"the hub sends all namespaces": {
			func(w *moving) { w.move(w.nsPolicy, "m2") },
			func(w *moving) {
				controllertest.Change(w.Hub, w.ns, func(ns *corev1.Namespace) {
					delete(ns.Labels, policyv1alpha1.NamespaceSkipAutoPropagationLabel)
				})
			},
		},
		"it was deleted and created again": {
			func(w *moving) { w.Gone(w.ns) },
			func(w *moving) { w.makeNamespace() },
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newMoving(t)
				uid := w.members["m1"].Object(membertest.Namespace, "", "moves").GetUID()
				tc.leaves(w)
				w.Eventually("the Work of the namespace waits", func() string {
					if work := w.work(); work == nil || work.DeletionTimestamp == nil {
						return "it does not"
					}
					return ""
				})
				w.Advance(time.Minute)
				tc.returns(w)
				w.Eventually("the namespace has a Work", func() string {
					if work := w.work(); work == nil || work.DeletionTimestamp != nil ||
						len(work.Status.Conditions) == 0 {
						return "it has none"
					}
					return ""
				})
				if ns := w.members["m1"].Object(membertest.Namespace, "", "moves"); ns == nil || ns.GetUID() != uid {
					t.Error("the namespace was not kept")
				}
				w.expect("settings", "m1")
			})
		})
	}
}

// The hub's own namespace is Terminating while the bindings in it go.
func TestNamespaceDeletedOnTheHubLeavesTheMember(t *testing.T) {
	for story, label := range map[string]map[string]string{
		"placed by its policy alone": {policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"},
		"sent to all clusters, too":  nil,
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newMoving(t)
				controllertest.Change(w.Hub, w.ns, func(ns *corev1.Namespace) {
					ns.Labels, ns.Finalizers = label, []string{"example.com/kubernetes"}
				})
				w.Quiet()
				w.Gone(w.ns)
				w.Quiet()
				w.Gone(w.settings)
				w.expect("settings")
				controllertest.Change(w.Hub, w.ns, func(ns *corev1.Namespace) { ns.Finalizers = nil })
				w.expect("moves")
			})
		})
	}
}
