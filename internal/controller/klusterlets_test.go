package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// workAgent is the work agent of a klusterlet, as ocm-hub.md section 10 and ocm-api.md sections 1.4, 1.5 describe it.
// test/peers has the same story with the real one.
type workAgent struct {
	*controllertest.Hub
	t       *testing.T
	objects map[string]*unstructured.Unstructured
	// owners are the ManifestWorks whose AppliedManifestWork owns an object.
	owners map[string]map[string]bool
	// carried is the generation of each ManifestWork that it has carried out.
	carried map[string]int64
	created int
	// broken makes it fail to write.
	broken bool
	// blind makes it not know the kind of ConfigMaps.
	blind bool
}

func keyOf(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

// sync does one pass over the ManifestWorks of the cluster edge.
func (a *workAgent) sync() {
	a.t.Helper()
	var all ocmv1.ManifestWorkList
	if err := a.List(a.t.Context(), &all, client.InNamespace("edge")); err != nil {
		a.t.Fatal(err)
	}
	for i := range all.Items {
		mw := &all.Items[i]
		switch {
		case mw.DeletionTimestamp != nil:
			// Section 10: a resource is deleted only if the AppliedManifestWork is among its owners.
			for key, owners := range a.owners {
				if owners[mw.Name] {
					if delete(owners, mw.Name); len(owners) == 0 {
						delete(a.objects, key)
					}
				}
			}
			controllerutil.RemoveFinalizer(mw, ocmv1.ManifestWorkFinalizer)
			a.update(mw)
		case controllerutil.AddFinalizer(mw, ocmv1.ManifestWorkFinalizer):
			a.update(mw) // section 10: it does nothing before its finalizer is stored
		default:
			a.apply(mw)
		}
	}
}

func (a *workAgent) update(mw *ocmv1.ManifestWork) {
	if err := a.Update(a.t.Context(), mw); client.IgnoreNotFound(err) != nil {
		a.t.Log(err) // it tries again
	}
}

func (a *workAgent) apply(mw *ocmv1.ManifestWork) {
	before := mw.Status.DeepCopy()
	mw.Status.ResourceStatus.Manifests = nil
	for i, manifest := range mw.Spec.Workload.Manifests {
		sent := &unstructured.Unstructured{}
		if err := json.Unmarshal(manifest.Raw, &sent.Object); err != nil {
			a.t.Fatal(err)
		}
		option, key := mw.Spec.ManifestConfigs[0], keyOf(sent)
		live, strategy := a.objects[key], option.UpdateStrategy.Type
		orphans := mw.Spec.DeleteOption != nil && mw.Spec.DeleteOption.PropagationPolicy == ocmv1.DeleteOrphan
		failed := a.broken && strategy != ocmv1.UpdateStrategyReadOnly
		if strategy != ocmv1.UpdateStrategyReadOnly && !failed { // section 1.4: nothing is written
			if live == nil {
				live = sent.DeepCopy()
				a.created++
				live.SetUID(types.UID(fmt.Sprint("uid-", a.created)))
				live.SetGeneration(1)
			} else if strategy == ocmv1.UpdateStrategyServerSideApply && a.carried[mw.Name] != mw.Generation {
				// Section 10: it applies again on a change of the spec, and on a resync after minutes. Annotations of others stay.
				was := live
				live = sent.DeepCopy()
				live.SetUID(was.GetUID())
				annotations := was.GetAnnotations()
				maps.Copy(annotations, sent.GetAnnotations())
				live.SetAnnotations(annotations)
			}
			a.objects[key] = live
			if a.owners[key] == nil {
				a.owners[key] = map[string]bool{}
			}
			a.owners[key][mw.Name] = true
			if orphans {
				delete(a.owners[key], mw.Name)
			}
		}
		condition := ocmv1.ManifestCondition{ResourceMeta: ocmv1.ManifestResourceMeta{Ordinal: int32(i),
			Kind: sent.GetKind(), Name: sent.GetName()}, Conditions: []metav1.Condition{
			{Type: ocmv1.Applied, Status: metav1.ConditionTrue, ObservedGeneration: mw.Generation,
				Reason: ocmv1.ReasonManifestApplied, Message: "Apply manifest complete"},
			{Type: ocmv1.Available, Status: metav1.ConditionFalse, Reason: ocmv1.ReasonResourceNotAvailable}}}
		if failed {
			condition.Conditions[0].Status, condition.Conditions[0].Message = metav1.ConditionFalse, "denied"
		}
		if live != nil {
			condition.Conditions[1].Status = metav1.ConditionTrue
			condition.StatusFeedbacks.Values, _ = ocm.Feedback(option.FeedbackRules, live)
		}
		if a.blind && sent.GetKind() == "ConfigMap" {
			condition.Conditions[0].Status, condition.Conditions[0].Message = metav1.ConditionFalse, "no such kind"
			condition.Conditions[1].Status, condition.StatusFeedbacks.Values = metav1.ConditionUnknown, nil
		}
		mw.Status.ResourceStatus.Manifests = append(mw.Status.ResourceStatus.Manifests, condition)
	}
	a.carried[mw.Name] = mw.Generation
	meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: ocmv1.Applied, Status: metav1.ConditionTrue,
		ObservedGeneration: mw.Generation, Reason: ocmv1.ReasonWorkApplied})
	meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: ocmv1.Available, Status: metav1.ConditionTrue,
		ObservedGeneration: mw.Generation, Reason: ocmv1.ReasonResourcesAvailable})
	for i := range mw.Status.ResourceStatus.Manifests { // dates are no changes
		for j := range mw.Status.ResourceStatus.Manifests[i].Conditions {
			mw.Status.ResourceStatus.Manifests[i].Conditions[j].LastTransitionTime = metav1.NewTime(time.Unix(0, 0))
		}
	}
	if !equality.Semantic.DeepEqual(before, &mw.Status) {
		if err := a.Status().Update(a.t.Context(), mw); client.IgnoreNotFound(err) != nil {
			a.t.Log(err)
		}
	}
}

// await lets the agent and the hub work until then returns an empty text.
func (a *workAgent) await(what string, then func() string) {
	a.t.Helper()
	wrong := ""
	for range 40 {
		a.sync()
		a.Advance(time.Second)
		if wrong = then(); wrong == "" {
			return
		}
	}
	a.t.Fatalf("%s: %s", what, wrong)
}

// rests lets both work for a while.
func (a *workAgent) rests() {
	for range 5 {
		a.sync()
		a.Advance(2 * time.Second)
	}
}

// newWorkAgent returns a hub with the accepted cluster edge, whose klusterlet runs.
func newWorkAgent(t *testing.T) (*workAgent, map[string]*membertest.Server) {
	h, members := fleetWith(t, Options{}, controllertest.Deployment)
	a := &workAgent{Hub: h, t: t, objects: map[string]*unstructured.Unstructured{}, owners: map[string]map[string]bool{},
		carried: map[string]int64{}}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1.ManagedClusterSpec{
		HubAcceptsClient: true, LeaseDurationSeconds: 100_000}}
	h.Make(mc)
	controllertest.Change(h, mc, func(*clusterv1.ManagedCluster) {})
	mc.Status.Version.Kubernetes = "v1.34.0"
	mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterAvailable,
		Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAvailable, LastTransitionTime: metav1.Now()})
	h.HasObject(mc)
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterAvailable,
		Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAvailable})
	if err := h.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	a.await("the cluster has the namespace of the hub", func() string {
		if a.objects["Namespace shop"] == nil {
			return fmt.Sprint(slices.Sorted(maps.Keys(a.objects)))
		}
		return ""
	})
	return a, members
}

func (a *workAgent) workOf(kind, name string) *workv1alpha1.Work {
	var all workv1alpha1.WorkList
	if err := a.List(a.t.Context(), &all, client.InNamespace("karmada-es-edge")); err != nil {
		a.t.Fatal(err)
	}
	for i := range all.Items {
		text := string(all.Items[i].Spec.Workload.Manifests[0].Raw)
		if strings.Contains(text, `"kind":"`+kind+`"`) && strings.Contains(text, `"name":"`+name+`"`) {
			return &all.Items[i]
		}
	}
	return nil
}

func (a *workAgent) applied(kind, name string) string {
	w := a.workOf(kind, name)
	if w == nil {
		return "no Work"
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); c != nil {
		return string(c.Status) + " " + c.Message
	}
	return "no status"
}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "shop", "name": name}, "data": map[string]any{"a": "b"}}}
}

func TestWorksReachAKlusterlet(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		a, members := newWorkAgent(t)
		foreign := configMap("foreign")
		foreign.SetUID("theirs")
		a.objects[keyOf(foreign)] = foreign
		p := policy("shop", "v1", "ConfigMap")
		a.Make(p)
		for _, name := range []string{"settings", "foreign"} {
			a.Make(claimed(configMap(name), p))
		}

		// 1. The object arrives as in other members, and is reported.
		a.await("it is applied", func() string {
			if got := a.applied("ConfigMap", "settings"); !strings.HasPrefix(got, "True") {
				return got
			}
			if members["m1"].Object(membertest.ConfigMap, "shop", "settings") == nil {
				return "not in m1"
			}
			return ""
		})

		// 2. An object of somebody else stays as it is, and a ManifestWork about it deletes nothing when it goes.
		a.await("the conflict is reported", func() string {
			if got := a.applied("ConfigMap", "foreign"); !strings.Contains(got, "already exists in the cluster") {
				return got
			}
			return ""
		})
		foreign.SetAnnotations(map[string]string{wellknown.HandsOffAnnotation: "true"})
		a.await("that nobody may touch it is reported, too", func() string {
			conditions := a.workOf("ConfigMap", "foreign").Status.Conditions
			if !meta.IsStatusConditionTrue(conditions, workv1alpha1.WorkHandsOff) {
				return fmt.Sprint(conditions)
			}
			return ""
		})
		foreign.SetAnnotations(nil)
		a.rests()
		a.mustDelete(configMap("foreign"))
		a.await("its Work is gone", func() string {
			if a.workOf("ConfigMap", "foreign") != nil {
				return "it is there"
			}
			return ""
		})
		if got := a.objects[keyOf(foreign)]; got == nil || got.GetUID() != "theirs" || len(got.GetLabels()) > 0 {
			t.Errorf("the foreign object is %v", got)
		}

		// 3. Nothing is written while nothing changes.
		a.rests()
		a.Hub.Quiet()
		a.rests()
		if wrote := a.Hub.Quiet(); len(wrote) > 0 {
			t.Errorf("without a change: %v", wrote)
		}

		// 4. A ManifestWork that a user changes is written again; a deleted template takes its object along.
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "edge",
			Name: ocm.RenderedName(a.workOf("ConfigMap", "settings").Name)}}
		controllertest.Change(a.Hub, mw, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(mw.Spec.Workload.Manifests[0].Raw),
				`"a":"b"`, `"a":"other"`, 1))
		})
		a.await("it is as the Work", func() string {
			if a.HasObject(mw); !strings.Contains(string(mw.Spec.Workload.Manifests[0].Raw), `"a":"b"`) {
				return string(mw.Spec.Workload.Manifests[0].Raw)
			}
			return ""
		})

		// 5. What the klusterlet refuses is reported, and a correction is sent although it knows nothing of the object.
		a.blind = true
		change := func(value string) {
			controllertest.Change(a.Hub, configMap("settings"), func(u *unstructured.Unstructured) {
				u.Object["data"] = map[string]any{"a": value}
			})
		}
		change("wrong")
		a.await("the refusal is reported", func() string {
			got := a.applied("ConfigMap", "settings")
			if !strings.Contains(got, `klusterlet of cluster "edge" reports: no such kind`) {
				return got
			}
			return ""
		})
		change("right")
		a.await("the correction is sent", func() string {
			if a.HasObject(mw); !strings.Contains(string(mw.Spec.Workload.Manifests[0].Raw), `"a":"right"`) {
				return string(mw.Spec.Workload.Manifests[0].Raw)
			}
			return ""
		})
		a.blind = false
		a.await("it is applied", func() string {
			if got := a.applied("ConfigMap", "settings"); !strings.HasPrefix(got, "True") {
				return got
			}
			return ""
		})
		a.mustDelete(configMap("settings"))
		a.await("the object and the Work are gone", func() string {
			if a.objects["ConfigMap settings"] != nil || a.workOf("ConfigMap", "settings") != nil || a.HasObject(mw) {
				return "not yet"
			}
			return ""
		})
	})
}

func (a *workAgent) mustDelete(obj client.Object) {
	a.t.Helper()
	if err := a.Delete(a.t.Context(), obj); err != nil {
		a.t.Fatal(err)
	}
}

// preserve makes a policy keep what it sent, and waits until the cluster has that.
func (a *workAgent) preserve(p policyv1alpha1.Propagation) {
	controllertest.Change(a.Hub, p, func(p policyv1alpha1.Propagation) {
		p.PropagationSpec().PreserveResourcesOnDeletion = new(true)
	})
	a.rests()
}

// What must stay in the cluster stays, for whatever reason, when its Work goes.
func TestWhatAKlusterletMustKeepStays(t *testing.T) {
	for name, keep := range map[string]func(a *workAgent, p policyv1alpha1.Propagation){
		"preserved": func(a *workAgent, p policyv1alpha1.Propagation) {
			a.preserve(p)
			a.mustDelete(configMap("settings"))
		},
		"hands off": func(a *workAgent, _ policyv1alpha1.Propagation) {
			live := a.objects["ConfigMap settings"]
			live.SetAnnotations(maps.Collect(func(yield func(string, string) bool) {
				for key, value := range live.GetAnnotations() {
					yield(key, value)
				}
				yield(wellknown.HandsOffAnnotation, "true")
			}))
			live.Object["data"] = map[string]any{"a": "by hand"}
			a.rests()
			a.mustDelete(configMap("settings"))
		},
		"a namespace": func(a *workAgent, p policyv1alpha1.Propagation) {
			a.preserve(p)
			a.mustDelete(configMap("settings"))
			a.mustDelete(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": "shop"}}})
		},
		"the cluster leaves and keeps its workloads": func(a *workAgent, _ policyv1alpha1.Propagation) {
			controllertest.Change(a.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}},
				func(c *clusterv1alpha1.Cluster) {
					c.Annotations[wellknown.KeepWorkloadsAnnotation] = "true"
				})
			a.mustDelete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}})
		},
		"it is somebody else's now": func(a *workAgent, _ policyv1alpha1.Propagation) {
			a.objects["ConfigMap settings"].SetLabels(nil)
			a.objects["ConfigMap settings"].SetAnnotations(map[string]string{})
			a.rests()
			a.mustDelete(configMap("settings"))
		},
		"preserved, and the klusterlet cannot give it up at first": func(a *workAgent, p policyv1alpha1.Propagation) {
			a.preserve(p)
			a.broken = true
			a.mustDelete(configMap("settings"))
			a.rests()
			a.broken = false
			a.carried = map[string]int64{}
		},
		"the cluster leaves while it is silent, and preserves": func(a *workAgent, p policyv1alpha1.Propagation) {
			a.preserve(p)
			mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
			a.HasObject(mc)
			meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterAvailable,
				Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonLeaseStopped})
			if err := a.Status().Update(a.t.Context(), mc); err != nil {
				a.t.Fatal(err)
			}
			a.Advance(3 * time.Second)
			a.mustDelete(mc)
			a.Advance(20 * time.Second) // the agent is away
		},
		"deleted by somebody while the hub did not run": func(a *workAgent, _ policyv1alpha1.Propagation) {
			// A Work that is deleted with its execution space.
			a.mustDelete(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": "karmada-es-edge"}}})
			a.mustDelete(a.workOf("ConfigMap", "settings"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				a, _ := newWorkAgent(t)
				p := policy("shop", "v1", "ConfigMap")
				a.Make(p)
				a.Make(claimed(configMap("settings"), p))
				a.await("it is applied", func() string {
					if got := a.applied("ConfigMap", "settings"); !strings.HasPrefix(got, "True") {
						return got
					}
					return ""
				})
				uid, object := a.workOf("ConfigMap", "settings").UID, a.objects["ConfigMap settings"].GetUID()
				space := a.objects["Namespace shop"].GetUID()
				keep(a, p)
				a.await("the Work is gone", func() string {
					if w := a.workOf("ConfigMap", "settings"); w != nil && w.UID == uid && name != "hands off" {
						return fmt.Sprint(w.Finalizers, w.DeletionTimestamp)
					}
					return ""
				})
				a.rests()
				if a.objects["ConfigMap settings"] == nil || a.objects["ConfigMap settings"].GetUID() != object {
					t.Fatal("the object was deleted in the cluster")
				}
				if a.objects["Namespace shop"] == nil || a.objects["Namespace shop"].GetUID() != space {
					t.Fatal("the namespace was deleted in the cluster")
				}
				data := fmt.Sprint(a.objects["ConfigMap settings"].Object["data"])
				if name == "hands off" && data != "map[a:by hand]" {
					t.Errorf("with hands off, it was changed to %v", data)
				}
			})
		})
	}
}
