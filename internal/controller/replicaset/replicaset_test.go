package replicaset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub with Placements in the namespace shop, whose decisions the test writes, and the set web.
type world struct {
	*controllertest.Hub
	t *testing.T
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.Embed()
	stop := w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		own, err := definition.Names()
		if err != nil {
			return err
		}
		definitions, err := definition.New(ctx, mgr.GetCache(), mgr.GetAPIReader(), own)
		if err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Definitions: definitions, Gather: 100 * time.Millisecond})
	})
	t.Cleanup(func() { w.Disconnected(stop) })
	for _, name := range []string{"c1", "c2", "c3"} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mc.Spec.HubAcceptsClient = true
		w.Make(mc)
	}
	return w
}

// choose makes a Placement choose the clusters of groups, each in a PlacementDecision.
func (w *world) choose(name string, groups ...string) {
	w.t.Helper()
	p := &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(p), p); apierrors.IsNotFound(err) {
		w.Make(p)
	}
	p.Status = placementv1beta1.PlacementStatus{}
	for i, clusters := range groups {
		d := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: fmt.Sprintf("%s-decision-%d", name, i+1), Labels: map[string]string{
				placementv1beta1.PlacementLabel: name, placementv1beta1.DecisionGroupIndexLabel: fmt.Sprint(i),
				placementv1beta1.DecisionGroupNameLabel: ""}, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p, placementv1beta1.GroupVersion.WithKind("Placement"))}}}
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(d), d); apierrors.IsNotFound(err) {
			w.Make(d)
		}
		d.Status = placementv1beta1.PlacementDecisionStatus{}
		for _, cluster := range strings.Fields(clusters) {
			d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: cluster})
			p.Status.NumberOfSelectedClusters++
		}
		p.Status.DecisionGroups = append(p.Status.DecisionGroups, placementv1beta1.DecisionGroupStatus{
			DecisionGroupIndex: int32(i)})
		if err := w.Status().Update(w.t.Context(), d); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

func template(data string) ocmv1.ManifestWorkSpec {
	return ocmv1.ManifestWorkSpec{Workload: ocmv1.ManifestsTemplate{Manifests: []ocmv1.Manifest{{
		RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":` +
			`{"name":"c","namespace":"default"},"data":{"is":"` + data + `"}}`)}}}}}
}

func newSet(placements ...string) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
		Labels: map[string]string{"team": "a"}}}
	set.Spec.ManifestWorkTemplate = template("1")
	for _, name := range placements {
		set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{Name: name})
	}
	return set
}

// works returns the ManifestWorks as "CLUSTER of PLACEMENT: DATA", sorted.
func (w *world) works() (all []string) {
	w.t.Helper()
	var list ocmv1.ManifestWorkList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, mw := range list.Items {
		_, data, _ := strings.Cut(string(mw.Spec.Workload.Manifests[0].Raw), `{"is":"`)
		data, _, _ = strings.Cut(data, `"`)
		text := fmt.Sprintf("%s of %s: %s", mw.Namespace, mw.Labels[workv1alpha1.PlacementLabel], data)
		if mw.DeletionTimestamp != nil {
			text += " (going)"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// shows waits until there are these ManifestWorks, and the set has conditions with reasons, as "TYPE=REASON".
func (w *world) shows(reasons string, want ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%q with %s", want, reasons), func() string {
		set := newSet()
		w.HasObject(set)
		got := []string{}
		for _, kind := range []string{workv1alpha1.PlacementVerified, workv1alpha1.PlacementRolledOut,
			workv1alpha1.ManifestworkApplied} {
			if c := meta.FindStatusCondition(set.Status.Conditions, kind); c != nil {
				got = append(got, c.Reason)
			}
		}
		if works := w.works(); !slices.Equal(works, want) || strings.Join(got, " ") != reasons {
			return fmt.Sprintf("%q, %+v", works, set.Status.Conditions)
		}
		return ""
	})
}

// report writes conditions of the ManifestWork of a cluster, as its agent does: "Applied Available Progressing=False".
func (w *world) report(cluster, conditions string) {
	w.t.Helper()
	var list ocmv1.ManifestWorkList
	if err := w.List(w.t.Context(), &list, client.InNamespace(cluster)); err != nil || len(list.Items) != 1 {
		w.t.Fatalf("%d ManifestWorks of %s: %v", len(list.Items), cluster, err)
	}
	mw := &list.Items[0]
	for _, text := range strings.Fields(conditions) {
		kind, status, told := strings.Cut(text, "=")
		if !told {
			status = "True"
		}
		meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status),
			Reason: "Reported", ObservedGeneration: mw.Generation, LastTransitionTime: metav1.Now()})
	}
	if err := w.Status().Update(w.t.Context(), mw); err != nil {
		w.t.Fatal(err)
	}
}

const (
	found   = "AsExpected Progressing NotAsExpected"
	missing = "PlacementDecisionNotFound Progressing NotAsExpected"
)

func TestReplicaSetFollowsItsPlacements(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("p", "c1", "c2")
		w.choose("q", "c2")
		w.Quiet()
		w.Make(newSet("p", "q"))
		w.shows(found, "c1 of p: 1", "c2 of p: 1", "c2 of q: 1")
		names := map[string]string{}
		w.expectSettled("a new set", "create manifestworkreplicasets shop/web", "create manifestworks c1/",
			"create manifestworks c2/", "create manifestworks c2/", "create namespaces c1", "create namespaces c2",
			"update manifestworkreplicasets shop/web", "update manifestworkreplicasets/status shop/web")
		var list ocmv1.ManifestWorkList
		if err := w.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, mw := range list.Items {
			if want := map[string]string{"team": "a", workv1alpha1.ReplicaSetLabel: "shop.web",
				workv1alpha1.PlacementLabel: mw.Labels[workv1alpha1.PlacementLabel]}; !maps.Equal(mw.Labels, want) {
				t.Errorf("%s/%s has the labels %v", mw.Namespace, mw.Name, mw.Labels)
			}
			names[mw.Namespace+mw.Labels[workv1alpha1.PlacementLabel]] = mw.Name
		}

		controllertest.Change(w.Hub, newSet(), func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.ManifestWorkTemplate = template("2")
		})
		w.shows(found, "c1 of p: 2", "c2 of p: 2", "c2 of q: 2")
		w.expectSettled("a change", "update manifestworkreplicasets shop/web",
			"update manifestworkreplicasets/status shop/web", "update manifestworks c1/", "update manifestworks c2/",
			"update manifestworks c2/")
		if err := w.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, mw := range list.Items {
			if want := names[mw.Namespace+mw.Labels[workv1alpha1.PlacementLabel]]; mw.Name != want {
				t.Errorf("%s is now %s", want, mw.Name)
			}
		}

		// Somebody deletes what the set wrote, changes it, or removes its labels.
		if err := w.Delete(t.Context(), &list.Items[0]); err != nil {
			t.Fatal(err)
		}
		controllertest.Change(w.Hub, &list.Items[1], func(mw *ocmv1.ManifestWork) { mw.Spec = template("theirs") })
		controllertest.Change(w.Hub, &list.Items[2], func(mw *ocmv1.ManifestWork) { delete(mw.Labels, "team") })
		w.expectSettled("what others changed", "create manifestworks c1/", "delete manifestworks c1/",
			"update manifestworks c2/", "update manifestworks c2/", "update manifestworks c2/", "update manifestworks c2/")
		w.shows(found, "c1 of p: 2", "c2 of p: 2", "c2 of q: 2")

		// A PlacementDecision that is missing for a moment takes nothing away.
		gone := &placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p-decision-1"}}
		if err := w.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		w.Quiet()
		w.shows(found, "c1 of p: 2", "c2 of p: 2", "c2 of q: 2")
		w.choose("p", "c1", "c2")
		w.choose("p", "c1", "c3")
		w.shows(found, "c1 of p: 2", "c2 of q: 2", "c3 of p: 2")

		// So does a Placement that is deleted.
		if err := w.Delete(t.Context(), &placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		w.shows(missing, "c1 of p: 2", "c2 of q: 2", "c3 of p: 2")
		w.Make(&placementv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "again"}})
		w.Quiet()
		w.shows(found, "c1 of p: 2", "c2 of q: 2", "c3 of p: 2")
		controllertest.Change(w.Hub, newSet(), func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.PlacementRefs = newSet("q").Spec.PlacementRefs
		})
		w.shows(found, "c2 of q: 2")
		w.choose("q", "")
		w.shows("PlacementDecisionEmpty Complete PlacementDecisionEmpty")
	})
}

// expectSettled is expectWrites for names of ManifestWorks, which end with a hash.
func (w *world) expectSettled(step string, want ...string) {
	w.t.Helper()
	var got []string
	for _, text := range w.Quiet() {
		if before, _, is := strings.Cut(text, "/web-"); is && strings.Contains(before, "manifestworks ") {
			text = before + "/"
		}
		got = append(got, text)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: written %q, want %q", step, got, want)
	}
}

func TestReplicaSetRollsOutInOrder(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("p", "c1 c2 c3")
		set := newSet("p")
		set.Spec.PlacementRefs[0].RolloutStrategy = scorev1alpha1.RolloutStrategy{Type: scorev1alpha1.RolloutProgressive,
			Progressive: &scorev1alpha1.RolloutProgressiveConfig{RolloutConfig: scorev1alpha1.RolloutConfig{
				MinSuccessTime: "5m", ProgressDeadline: "10m"}}}
		set.Spec.PlacementRefs[0].RolloutStrategy.Progressive.MaxConcurrency.IntVal = 1
		w.Make(set)
		w.shows(found, "c1 of p: 1")
		w.report("c1", "Applied Available Progressing")
		w.shows("AsExpected Progressing Processing", "c1 of p: 1")
		w.report("c1", "Progressing=False")
		w.shows("AsExpected Progressing AsExpected", "c1 of p: 1")
		w.Advance(5*time.Minute - 2*time.Second)
		w.shows("AsExpected Progressing AsExpected", "c1 of p: 1")
		w.Advance(3 * time.Second)
		w.shows(found, "c1 of p: 1", "c2 of p: 1")
		w.report("c2", "Applied Available Progressing Degraded")
		w.Quiet()
		w.shows(found, "c1 of p: 1", "c2 of p: 1")
		w.HasObject(set)
		c := meta.FindStatusCondition(set.Status.Conditions, workv1alpha1.PlacementRolledOut)
		if want := "1 of 3 clusters succeeded; Placement p: maxFailures tolerates 0 failures, and these clusters failed: " +
			"c2"; c.Message != want {
			t.Errorf("PlacementRolledOut says %q", c.Message)
		}
		w.report("c2", "Degraded=False Progressing=False")
		w.Advance(6 * time.Minute)
		w.shows(found, "c1 of p: 1", "c2 of p: 1", "c3 of p: 1")
		w.report("c3", "Applied Available Progressing=False")
		w.shows("AsExpected Complete AsExpected", "c1 of p: 1", "c2 of p: 1", "c3 of p: 1")

		// A change begins at the first cluster again.
		controllertest.Change(w.Hub, newSet(), func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.ManifestWorkTemplate = template("2")
		})
		w.shows(found, "c1 of p: 2", "c2 of p: 1", "c3 of p: 1")
	})
}

func TestReplicaSetGoesWithItsManifestWorks(t *testing.T) {
	for _, policy := range []workv1alpha1.CascadeDeletionPolicy{workv1alpha1.CascadeBackground,
		workv1alpha1.CascadeForeground} {
		t.Run(string(policy), func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				w.choose("p", "c1")
				set := newSet("p")
				set.Spec.CascadeDeletionPolicy = policy
				w.Make(set)
				w.shows(found, "c1 of p: 1")
				var list ocmv1.ManifestWorkList
				if err := w.List(t.Context(), &list); err != nil {
					t.Fatal(err)
				}
				mw := &list.Items[0]
				controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
					mw.Finalizers = []string{ocmv1.ManifestWorkFinalizer}
				})
				w.Quiet()
				if err := w.Delete(t.Context(), set); err != nil {
					t.Fatal(err)
				}
				w.Quiet()
				if got := w.works(); !slices.Equal(got, []string{"c1 of p: 1 (going)"}) {
					t.Errorf("the ManifestWorks are %q", got)
				}
				err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set)
				if gone := apierrors.IsNotFound(err); gone != (policy == workv1alpha1.CascadeBackground) {
					t.Errorf("while the ManifestWork goes: %v", err)
				}
				controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) { mw.Finalizers = nil })
				w.Eventually("both are gone", func() string {
					if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
						return fmt.Sprint(err)
					}
					return ""
				})
			})
		})
	}
}

// Nobody asked for the deletion of the ManifestWorks.
func TestManifestWorksStayWhenTheDefinitionGoes(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("p", "c1")
		set := newSet("p")
		w.Make(set)
		w.shows(found, "c1 of p: 1")
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(controllertest.Definition.GroupVersionKind)
		crd.SetName(definition.ManifestWorkReplicaSets)
		if err := w.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		w.Gone(set)
		if got := w.works(); !slices.Equal(got, []string{"c1 of p: 1"}) {
			t.Errorf("the ManifestWorks are %q", got)
		}
	})
}

func TestManifestWorksOfOthersStay(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.choose("p", "c1 c2")
		w.Make(newSet("p"))
		w.shows(found, "c1 of p: 1", "c2 of p: 1")
		var list ocmv1.ManifestWorkList
		if err := w.List(t.Context(), &list, client.InNamespace("c1")); err != nil {
			t.Fatal(err)
		}
		controllertest.Change(w.Hub, &list.Items[0], func(mw *ocmv1.ManifestWork) {
			mw.Labels, mw.Spec = map[string]string{workv1alpha1.PlacementLabel: "of another"}, template("theirs")
		})
		controllertest.Change(w.Hub, newSet(), func(set *workv1alpha1.ManifestWorkReplicaSet) {
			set.Spec.ManifestWorkTemplate = template("2")
		})
		w.shows(found, "c1 of of another: theirs", "c2 of p: 2")
		set := newSet()
		w.HasObject(set)
		if c := meta.FindStatusCondition(set.Status.Conditions,
			workv1alpha1.ManifestworkApplied); !strings.Contains(c.Message,
			"write ManifestWork c1/"+list.Items[0].Name+": it exists, and is not of this ManifestWorkReplicaSet: rename or "+
				"delete it") {
			t.Errorf("ManifestworkApplied says %q", c.Message)
		}
	})
}
