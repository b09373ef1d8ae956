package placement

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub with clusters c1, c2 and c3 in the set prod, which is bound in the namespace shop.
type world struct {
	*controllertest.Hub
	t *testing.T
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.Embed()
	for _, name := range []string{"c1", "c2", "c3"} {
		w.Make(cluster(name))
	}
	w.Make(&setv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
	w.Make(bound())
	w.Run(func(_ context.Context, mgr ctrl.Manager) error {
		return Setup(mgr, Options{Gather: 100 * time.Millisecond})
	})
	return w
}

func cluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{clusterv1.ClusterSetLabel: "prod"}}}
}

func bound() *setv1beta2.ManagedClusterSetBinding {
	return &setv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prod"},
		Spec: setv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "prod"}}
}

func decided(clusters ...string) (s placementv1beta1.PlacementDecisionStatus) {
	for _, name := range clusters {
		s.Decisions = append(s.Decisions, placementv1beta1.ClusterDecision{ClusterName: name})
	}
	return s
}

func placement(name string, number int32) *placementv1beta1.Placement {
	p := &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if number > 0 {
		p.Spec.NumberOfClusters = &number
	}
	return p
}

// chooses waits until the PlacementDecisions of the namespace are "NAME: cluster cluster" each, and the Placement has a
// reason.
func (w *world) chooses(name, reason string, want ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%s is %s with %q", name, reason, want), func() string {
		p := placement(name, 0)
		w.HasObject(p)
		got := w.decisions()
		if c := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.PlacementSatisfied); c == nil ||
			c.Reason != reason || !slices.Equal(got, want) {
			return fmt.Sprintf("%+v, %q", p.Status.Conditions, got)
		}
		return ""
	})
}

func (w *world) decisions() (all []string) {
	var list placementv1beta1.PlacementDecisionList
	if err := w.List(w.t.Context(), &list, client.InNamespace("shop")); err != nil {
		w.t.Fatal(err)
	}
	for _, d := range list.Items {
		var names []string
		for _, of := range d.Status.Decisions {
			names = append(names, of.ClusterName)
		}
		all = append(all, d.Name+": "+strings.Join(names, " "))
	}
	slices.Sort(all)
	return all
}

// decide writes the clusters of a PlacementDecision of another owner.
func (w *world) decide(d *placementv1beta1.PlacementDecision, clusters ...string) {
	w.t.Helper()
	d.Status = decided(clusters...)
	if err := w.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

// wrote returns the writes since the last call.
func (w *world) wrote() []string {
	w.t.Helper()
	all := w.Quiet()
	slices.Sort(all)
	return all
}

func (w *world) expectWrites(step string, want ...string) {
	w.t.Helper()
	if got := w.wrote(); !slices.Equal(got, want) {
		w.t.Errorf("%s: written %q, want %q", step, got, want)
	}
}

const all, some = placementv1beta1.ReasonAllScheduled, placementv1beta1.ReasonNotAllScheduled

func TestPlacementFollowsClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.wrote()
		w.Make(placement("p", 2))
		w.chooses("p", all, "p-decision-1: c1 c2")
		// The decision has its clusters from its first moment on.
		w.expectWrites("a new Placement", "create placementdecisions shop/p-decision-1", "create placements shop/p",
			"update placements/status shop/p")

		controllertest.Change(w.Hub, cluster("c1"), func(mc *clusterv1.ManagedCluster) {
			mc.Spec.Taints = []clusterv1.Taint{{Key: clusterv1.TaintUnreachable, Effect: clusterv1.NoSelect,
				TimeAdded: metav1.Now()}}
		})
		w.chooses("p", all, "p-decision-1: c2 c3")
		w.expectWrites("a lost cluster", "update managedclusters c1", "update placementdecisions/status shop/p-decision-1")

		if err := w.Delete(t.Context(), cluster("c2")); err != nil {
			t.Fatal(err)
		}
		w.chooses("p", some, "p-decision-1: c3")
		w.wrote()

		controllertest.Change(w.Hub, cluster("c3"), func(mc *clusterv1.ManagedCluster) {
			mc.Annotations = map[string]string{"a": "b"}
		})
		w.expectWrites("a change that matters to no choice", "update managedclusters c3")

		if err := w.Delete(t.Context(), bound()); err != nil {
			t.Fatal(err)
		}
		w.chooses("p", placementv1beta1.ReasonNoBindings, "p-decision-1: ")
		w.Make(bound())
		w.chooses("p", some, "p-decision-1: c3")
		if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool {
			return e == "Placement DecisionUpdate: Decision p-decision-1 is updated with placement p in namespace shop"
		}) {
			t.Errorf("recorded: %q", got)
		}
	})
}

func TestPlacementThatIsNotValidKeepsItsClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(placement("p", 2))
		w.chooses("p", all, "p-decision-1: c1 c2")
		expressions := func(text ...string) func(p *placementv1beta1.Placement) {
			return func(p *placementv1beta1.Placement) {
				p.Spec.Predicates = []placementv1beta1.ClusterPredicate{{RequiredClusterSelector: placementv1beta1.ClusterSelector{
					CelSelector: placementv1beta1.ClusterCelSelector{CelExpressions: text}}}}
			}
		}
		w.wrote()
		controllertest.Change(w.Hub, placement("p", 2), expressions("managedCluster.name =="))
		w.chooses("p", some, "p-decision-1: c1 c2")
		w.expectWrites("a mistake", "update placements shop/p", "update placements/status shop/p")
		controllertest.Change(w.Hub, placement("p", 2), expressions("managedCluster.metadata.name == 'c3'"))
		w.chooses("p", some, "p-decision-1: c3")
	})
}

func TestPlacementsBalanceClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(placement("p", 1))
		w.chooses("p", all, "p-decision-1: c1")
		w.Make(placement("q", 1))
		w.chooses("q", all, "p-decision-1: c1", "q-decision-1: c2")
	})
}

func TestGroupsAreObjectsOfTheirOwn(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := placement("p", 0)
		p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.Type = 0
		p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.IntVal = 1
		w.Make(p)
		w.chooses("p", all, "p-decision-1: c1", "p-decision-2: c2", "p-decision-3: c3")
		w.wrote()
		controllertest.Change(w.Hub, placement("p", 0), func(p *placementv1beta1.Placement) {
			p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.IntVal = 2
		})
		w.chooses("p", all, "p-decision-1: c1 c2", "p-decision-2: c3")
		got := w.Quiet()
		// Each cluster is in an object at each moment: the first one gains before the second one changes, and the third one
		// goes last.
		if want := []string{"update placements shop/p", "update placementdecisions/status shop/p-decision-1",
			"update placementdecisions/status shop/p-decision-2", "delete placementdecisions shop/p-decision-3",
			"update placements/status shop/p"}; !slices.Equal(got, want) {
			t.Errorf("written %q, want %q", got, want)
		}

		// A new group label and new clusters come in one write.
		controllertest.Change(w.Hub, placement("p", 0), func(p *placementv1beta1.Placement) {
			p.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []placementv1beta1.DecisionGroup{{GroupName: "late",
				ClusterSelector: placementv1beta1.GroupClusterSelector{LabelSelector: metav1.LabelSelector{
					MatchLabels: map[string]string{"late": "yes"}}}}}
		})
		w.wrote()
		controllertest.Change(w.Hub, cluster("c3"), func(mc *clusterv1.ManagedCluster) { mc.Labels["late"] = "yes" })
		w.chooses("p", all, "p-decision-1: c3", "p-decision-2: c1 c2")
		w.expectWrites("a named group, an exchange", "update managedclusters c3",
			"update placementdecisions shop/p-decision-1",
			"update placementdecisions/status shop/p-decision-2", "update placementdecisions/status shop/p-decision-2",
			"update placements/status shop/p")
	})
}

func TestScoresOfAddOnsAreFollowed(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := placement("p", 1)
		p.Spec.PrioritizerPolicy = placementv1beta1.PrioritizerPolicy{Mode: placementv1beta1.Exact,
			Configurations: []placementv1beta1.PrioritizerConfig{{Weight: 1, ScoreCoordinate: &placementv1beta1.ScoreCoordinate{
				Type: placementv1beta1.ScoreAddOn, AddOn: &placementv1beta1.AddOnScore{ResourceName: "usage", ScoreName: "gpu"}}}}}
		w.Make(p)
		w.chooses("p", all, "p-decision-1: c1")
		w.score("c2", 10, time.Now().Add(time.Hour))
		w.chooses("p", all, "p-decision-1: c2")
		w.score("c2", -10, time.Now().Add(time.Hour))
		w.chooses("p", all, "p-decision-1: c1")
		w.score("c2", 10, time.Now().Add(time.Minute))
		w.chooses("p", all, "p-decision-1: c2")
		w.Advance(58 * time.Second)
		if got := w.decisions(); got[0] != "p-decision-1: c2" {
			t.Errorf("before the score expired: %q", got)
		}
		w.Advance(3 * time.Second)
		w.chooses("p", all, "p-decision-1: c1")
		if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool {
			return strings.HasSuffix(e, "in namespace shop: AddOnPlacementScores c2/usage expired")
		}) {
			t.Errorf("recorded: %q", got)
		}
	})
}

func TestAllocatableResourcesAreFollowed(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := placement("p", 1)
		p.Spec.PrioritizerPolicy = placementv1beta1.PrioritizerPolicy{Mode: placementv1beta1.Exact,
			Configurations: []placementv1beta1.PrioritizerConfig{{Weight: 1, ScoreCoordinate: &placementv1beta1.ScoreCoordinate{
				BuiltIn: placementv1beta1.ResourceAllocatableMemory}}}}
		w.Make(p)
		w.chooses("p", all, "p-decision-1: c1")
		mc := cluster("c3")
		w.HasObject(mc)
		mc.Status.Allocatable = clusterv1.ResourceList{"memory": resource.MustParse("8Gi")}
		mc.Status.Capacity = mc.Status.Allocatable
		if err := w.Status().Update(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		w.chooses("p", all, "p-decision-1: c3")
	})
}

func TestTolerationEnds(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p, seconds := placement("p", 1), int64(60)
		p.Spec.Tolerations = []placementv1beta1.Toleration{{Key: "k", Operator: placementv1beta1.TolerationExists,
			TolerationSeconds: &seconds}}
		w.Make(p)
		w.chooses("p", all, "p-decision-1: c1")
		controllertest.Change(w.Hub, cluster("c1"), func(mc *clusterv1.ManagedCluster) {
			mc.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.NoSelect, TimeAdded: metav1.Now()}}
		})
		w.Advance(58 * time.Second)
		if got := w.decisions(); got[0] != "p-decision-1: c1" {
			t.Errorf("before the toleration ended: %q", got)
		}
		w.Advance(3 * time.Second)
		w.chooses("p", all, "p-decision-1: c2")
	})
}

// Another scheduler may write the decisions of a Placement with the annotation, and other objects may have their names.
func TestDecisionsOfOthersStay(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := placement("p", 1)
		p.Annotations = map[string]string{placementv1beta1.SchedulingDisabledAnnotation: "true"}
		w.Make(p)
		foreign := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q-decision-1",
			Labels: map[string]string{placementv1beta1.PlacementLabel: "q"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy",
				Name: "q",
				UID:  "u", Controller: new(true)}}}}
		w.Make(foreign)
		w.decide(foreign, "c3")
		w.Make(placement("q", 1))
		unrelated := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "r-decision-1"}}
		w.Make(unrelated)
		w.Make(placement("r", 1))
		// That of a former Placement of the name is taken over with its clusters.
		former := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s-decision-1",
			Labels: map[string]string{placementv1beta1.PlacementLabel: "s"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "Placement",
				Name: "s", UID: "former", Controller: new(true)}}}}
		w.Make(former)
		w.decide(former, "c2")
		w.Make(placement("s", 1))
		// Balance counts no decisions of policies: q-decision-1 has c3.
		now := []string{"q-decision-1: c3", "r-decision-1: ", "s-decision-1: c2"}
		w.chooses("s", all, now...)
		w.chooses("q", some, now...)
		w.chooses("r", some, now...)
		q := placement("q", 0)
		w.HasObject(q)
		if c := meta.FindStatusCondition(q.Status.Conditions, placementv1beta1.PlacementSatisfied); c.Message !=
			"PlacementDecision shop/q-decision-1 belongs to PropagationPolicy q: delete the PlacementDecision, or use another name" {
			t.Errorf("q: %s", c.Message)
		}
		w.HasObject(former)
		s := placement("s", 0)
		w.HasObject(s)
		if !metav1.IsControlledBy(former, s) {
			t.Errorf("the decision belongs to %v", former.OwnerReferences)
		}

		for _, obj := range []client.Object{foreign, unrelated} {
			if err := w.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		controllertest.Change(w.Hub, placement("p", 1), func(p *placementv1beta1.Placement) { p.Annotations = nil })
		w.Eventually("all have their decisions", func() string {
			if got := w.decisions(); len(got) != 4 || slices.ContainsFunc(got,
				func(d string) bool { return strings.HasSuffix(d, ": ") }) {
				return fmt.Sprint(got)
			}
			return ""
		})
	})
}

func TestPoliciesPublishTheirClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{wellknown.PlacementDecisionAnnotation: "fleet"}}}
		binding := func(name string, clusters ...string) *workv1alpha2.ResourceBinding {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
				Name: name}
			propagate.Claim(b, p)
			for _, c := range clusters {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
			}
			return b
		}
		published := func(want ...string) {
			t.Helper()
			w.Eventually(fmt.Sprintf("%q is published", want), func() string {
				if got := w.decisions(); !slices.Equal(got, want) {
					return fmt.Sprintf("%q", got)
				}
				return ""
			})
		}
		w.Make(binding("a", "c1"))
		w.Make(binding("b", "c2"))
		w.wrote()
		w.Make(p)
		published("fleet-decision-1: c1 c2")
		w.expectWrites("a new policy", "create placementdecisions shop/fleet-decision-1",
			"create propagationpolicies shop/web")

		controllertest.Change(w.Hub, binding("b"), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "c3"}}
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "c2"}}
		})
		published("fleet-decision-1: c1 c2 c3")
		controllertest.Change(w.Hub, binding("b"),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
		published("fleet-decision-1: c1 c3")
		if err := w.Delete(t.Context(), binding("a")); err != nil {
			t.Fatal(err)
		}
		published("fleet-decision-1: c3")

		// Another policy takes the workload, and gives it back. A published list is never empty.
		taker := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "taker",
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id2"},
			Annotations: map[string]string{wellknown.PlacementDecisionAnnotation: "taken"}}}
		w.Make(binding("c", "c1"))
		w.Make(taker)
		published("fleet-decision-1: c1 c3")
		controllertest.Change(w.Hub, binding("c"), func(b *workv1alpha2.ResourceBinding) { propagate.Claim(b, taker) })
		published("fleet-decision-1: c3", "taken-decision-1: c1")
		controllertest.Change(w.Hub, binding("c"), func(b *workv1alpha2.ResourceBinding) { propagate.Claim(b, p) })
		published("fleet-decision-1: c1 c3", "taken-decision-1: c1")
		for _, gone := range []client.Object{taker, binding("c")} {
			if err := w.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
		}
		taken := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "taken-decision-1"}}
		if err := w.Delete(t.Context(), taken); err != nil { // as the garbage collector does
			t.Fatal(err)
		}
		published("fleet-decision-1: c3")

		// A mistake withdraws nothing, a Placement keeps its decisions, another name replaces the first.
		as := func(name string) {
			controllertest.Change(w.Hub, p, func(p *policyv1alpha1.PropagationPolicy) {
				p.Annotations[wellknown.PlacementDecisionAnnotation] = name
			})
		}
		as("Not a name")
		w.Make(placement("p", 1))
		w.chooses("p", all, "fleet-decision-1: c3", "p-decision-1: c1")
		as("p")
		w.Eventually("the policy cannot have the name of a Placement", func() string {
			if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool {
				return strings.Contains(e, EventPublishFailed+": PlacementDecision shop/p-decision-1 belongs to Placement p")
			}) {
				return fmt.Sprintf("%q", got)
			}
			return ""
		})
		published("fleet-decision-1: c3", "p-decision-1: c1")
		as("other")
		published("other-decision-1: c3", "p-decision-1: c1")
		controllertest.Change(w.Hub, p, func(p *policyv1alpha1.PropagationPolicy) { p.Annotations = nil })
		published("p-decision-1: c1")
	})
}

func TestClusterPoliciesPublishInANamespace(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "web",
			Labels:      map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{wellknown.PlacementDecisionAnnotation: "shop/fleet"}}}
		w.Make(p)
		for _, name := range []string{"of-a", "of-b", "of-c"} {
			w.Make(cluster(name))
		}
		controllertest.Change(w.Hub, cluster("of-c"), func(mc *clusterv1.ManagedCluster) { mc.Labels = nil })
		for _, b := range []workv1alpha2.Binding{
			&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}},
			&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}} {
			propagate.Claim(b, p)
			b.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "of-" + b.GetName()}, {Name: "of-c"}}
			if b.GetNamespace() != "" {
				w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.GetNamespace()}})
			}
			w.Make(b)
		}
		published := func(want ...string) {
			t.Helper()
			w.Eventually(fmt.Sprintf("%q is published", want), func() string {
				if got := w.decisions(); !slices.Equal(got, want) {
					return fmt.Sprintf("%q", got)
				}
				return ""
			})
		}
		published("fleet-decision-1: of-a of-b")
		// A namespace gets only what is bound in it.
		controllertest.Change(w.Hub, cluster("of-a"), func(mc *clusterv1.ManagedCluster) { mc.Labels = nil })
		published("fleet-decision-1: of-b")
		controllertest.Change(w.Hub, cluster("of-c"), func(mc *clusterv1.ManagedCluster) { mc.Labels = cluster("").Labels })
		published("fleet-decision-1: of-b of-c")
		if err := w.Delete(t.Context(), bound()); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the policy says what is missing", func() string {
			if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool {
				return strings.Contains(e,
					EventPublishFailed+": no ManagedClusterSet with one of the clusters of-a, of-b, of-c is bound in "+
						"namespace shop")
			}) {
				return fmt.Sprintf("%q", got)
			}
			return ""
		})
		published("fleet-decision-1: of-b of-c")

		// Another name withdraws the first list, also while there is no new one.
		for _, b := range []client.Object{
			&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}},
			&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}} {
			if err := w.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		controllertest.Change(w.Hub, p, func(p *policyv1alpha1.ClusterPropagationPolicy) {
			p.Annotations[wellknown.PlacementDecisionAnnotation] = "shop/renamed"
		})
		published()
	})
}

func TestAClusterIsInADecisionAtEachMoment(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []string
		want          string
	}{
		"new":                                 {[]string{"", ""}, []string{"a", "b"}, "0:a 1:b"},
		"forward":                             {[]string{"a b", "c"}, []string{"a", "b c"}, "1:b,c 0:a"},
		"back":                                {[]string{"a", "b c"}, []string{"a b", "c"}, "0:a,b 1:c"},
		"through three objects":               {[]string{"a", "b", "c"}, []string{"x", "a", "b"}, "2:b 1:a 0:x"},
		"through three, the last is new":      {[]string{"a b", "c d", ""}, []string{"x a", "b c", "d"}, "2:d 1:b,c 0:x,a"},
		"an exchange, and one that waits":     {[]string{"a", "b c", "d"}, []string{"b", "a", "c d"}, "2:c,d 1:a,b 0:b 1:a"},
		"an exchange, and one that leaves":    {[]string{"x y", "a", "b"}, []string{"y", "b x", "a"}, "2:a,b 1:b,x 0:y 2:a"},
		"a circle":                            {[]string{"a", "b", "c"}, []string{"b", "c", "a"}, "1:c,b 2:a 0:b 1:c"},
		"one that leaves the Placement first": {[]string{"a b", "c"}, []string{"b", "c"}, "0:b 1:c"},
	} {
		was, wanted := objects(c.before), objects(c.after)
		var got []string
		for _, w := range order(was, dereferenced(wanted)) {
			got = append(got, fmt.Sprintf("%d:%s", w.index, strings.Join(names(w.PlacementDecisionStatus), ",")))
		}
		if out := strings.Join(got, " "); out != c.want {
			t.Errorf("%s: %s, want %s", name, out, c.want)
		}
		checkOrder(t, was, wanted)
	}
	random := rand.New(rand.NewSource(1))
	for range 2000 {
		before, after := make([]string, 1+random.Intn(5)), make([]string, 1+random.Intn(5))
		for i := range 8 {
			before[random.Intn(len(before))] += fmt.Sprintf(" c%d", i)
			after[random.Intn(len(after))] += fmt.Sprintf(" c%d", i)
		}
		for len(before) < len(after) {
			before = append(before, "")
		}
		checkOrder(t, objects(before[:len(after)]), objects(after))
	}
}

// checkOrder checks that no cluster of before and after leaves all objects, and that all are as wanted at the end.
func checkOrder(t *testing.T, was, wanted []*placementv1beta1.PlacementDecision) {
	t.Helper()
	writes, now := order(was, dereferenced(wanted)), make([][]string, len(wanted))
	for i, d := range was {
		if d != nil {
			now[i] = names(d.Status)
		}
	}
	listed := func(name string) bool {
		return slices.ContainsFunc(now, func(of []string) bool { return slices.Contains(of, name) })
	}
	var stay []string
	for _, d := range wanted {
		for _, name := range names(d.Status) {
			if listed(name) {
				stay = append(stay, name)
			}
		}
	}
	for _, w := range writes {
		now[w.index] = names(w.PlacementDecisionStatus)
		for _, name := range stay {
			if !listed(name) {
				t.Errorf("%s is in no object", name)
			}
		}
	}
	for i, d := range wanted {
		if !slices.Equal(now[i], names(d.Status)) {
			t.Errorf("object %d has %q at the end, want %q", i, now[i], names(d.Status))
		}
	}
}

// objects returns a PlacementDecision for each list of clusters; nil for an empty one.
func objects(clusters []string) []*placementv1beta1.PlacementDecision {
	all := make([]*placementv1beta1.PlacementDecision, len(clusters))
	for i, of := range clusters {
		if of != "" {
			all[i] = &placementv1beta1.PlacementDecision{Status: decided(strings.Fields(of)...)}
		}
	}
	return all
}

func dereferenced(all []*placementv1beta1.PlacementDecision) []placementv1beta1.PlacementDecision {
	out := make([]placementv1beta1.PlacementDecision, len(all))
	for i, d := range all {
		if d == nil {
			all[i] = &placementv1beta1.PlacementDecision{}
		}
		out[i] = *all[i]
	}
	return out
}

func names(s placementv1beta1.PlacementDecisionStatus) (all []string) {
	for _, of := range s.Decisions {
		all = append(all, of.ClusterName)
	}
	return all
}

// expressing makes a predicate of expressions.
func expressing(p *placementv1beta1.Placement, expressions ...string) *placementv1beta1.Placement {
	p.Spec.Predicates = []placementv1beta1.ClusterPredicate{{RequiredClusterSelector: placementv1beta1.ClusterSelector{
		CelSelector: placementv1beta1.ClusterCelSelector{CelExpressions: expressions}}}}
	return p
}

func TestExpressionsFollowWhatTheyRead(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(expressing(placement("p", 0), "managedCluster.metadata.annotations['use'] == 'yes'"))
		w.Make(expressing(placement("q", 0), "managedCluster.scores('usage').exists(s, s.value > 5)"))
		w.Make(expressing(placement("r", 0), "managedCluster.status.conditions.exists(c, c.type == 'Ready')"))
		empty := []string{"p-decision-1: ", "q-decision-1: ", "r-decision-1: "}
		w.chooses("p", placementv1beta1.ReasonNoMatch, empty...)
		w.chooses("q", placementv1beta1.ReasonNoMatch, empty...)
		w.chooses("r", placementv1beta1.ReasonNoMatch, empty...)

		controllertest.Change(w.Hub, cluster("c2"), func(mc *clusterv1.ManagedCluster) {
			mc.Annotations = map[string]string{"use": "yes"}
		})
		w.chooses("p", all, "p-decision-1: c2", "q-decision-1: ", "r-decision-1: ")
		w.score("c3", 6, time.Now().Add(time.Hour))
		w.chooses("q", all, "p-decision-1: c2", "q-decision-1: c3", "r-decision-1: ")
		mc := cluster("c1")
		w.HasObject(mc)
		meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue,
			Reason: "r"})
		if err := w.Status().Update(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		w.chooses("r", all, "p-decision-1: c2", "q-decision-1: c3", "r-decision-1: c1")
	})
}

// score writes the AddOnPlacementScore usage of a cluster.
func (w *world) score(cluster string, value int32, until time.Time) {
	w.t.Helper()
	ctx := w.t.Context()
	s := &scorev1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "usage"}}
	if w.Get(ctx, client.ObjectKeyFromObject(s), s) != nil {
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
		w.Make(s)
	}
	s.Status = scorev1alpha1.AddOnPlacementScoreStatus{ValidUntil: &metav1.Time{Time: until},
		Scores: []scorev1alpha1.AddOnPlacementScoreItem{{Name: "gpu", Value: value}}}
	if err := w.Status().Update(ctx, s); err != nil {
		w.t.Fatal(err)
	}
}

// A choice that cannot be written must not say that it is.
func TestStatusOfAPlacementIsThatOfItsDecisions(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(placement("p", 1))
		w.chooses("p", all, "p-decision-1: c1")
		w.Make(&placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foreign",
			Labels: map[string]string{placementv1beta1.PlacementLabel: "p"}}})
		controllertest.Change(w.Hub, placement("p", 1),
			func(p *placementv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(3)) })
		w.chooses("p", some, "foreign: ", "p-decision-1: c1")
		p := placement("p", 0)
		w.HasObject(p)
		if p.Status.NumberOfSelectedClusters != 1 || p.Status.DecisionGroups[0].ClustersCount != 1 {
			t.Errorf("%+v", p.Status)
		}
	})
}

func TestDecisionsAreRepaired(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(placement("p", 1))
		w.chooses("p", all, "p-decision-1: c1")
		d := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p-decision-1"}}
		// Without labels, the next cause repairs it: an event of it names no Placement.
		controllertest.Change(w.Hub, d, func(d *placementv1beta1.PlacementDecision) { d.Labels = nil })
		controllertest.Change(w.Hub, placement("p", 1),
			func(p *placementv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(2)) })
		w.chooses("p", all, "p-decision-1: c1 c2")
		w.HasObject(d)
		if d.Labels[placementv1beta1.PlacementLabel] != "p" {
			t.Errorf("labels %v", d.Labels)
		}
		w.decide(d, "c3")
		w.chooses("p", all, "p-decision-1: c1 c3") // Steady prefers what is chosen
	})
}

func TestAPlacementWithALongNameSaysSo(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(placement(strings.Repeat("a", 64), 1))
		w.chooses(strings.Repeat("a", 64), placementv1beta1.ReasonNoMatch)
	})
}

func TestLargeGroupsHaveSeveralObjects(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 120 {
			w.Make(cluster(fmt.Sprintf("d%03d", i)))
		}
		w.Make(placement("p", 0))
		w.Eventually("123 clusters are in two objects", func() string {
			got := w.decisions()
			if len(got) != 2 || len(strings.Fields(got[0])) != 101 || len(strings.Fields(got[1])) != 24 {
				return fmt.Sprint(got)
			}
			return ""
		})
	})
}
