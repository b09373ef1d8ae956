package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// clones returns a hub with a CloneSet of six over m1 and m2, one of which may be down.
func clones(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.CloneSet}
	for _, cluster := range []string{"m1", "m2"} {
		w.Join(cluster, controllertest.CloneSet)
	}
	w.template = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(6), "template": map[string]any{"image": "1"},
		"updateStrategy": map[string]any{"maxUnavailable": int64(1)}}}}
	w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
	w.template.SetNamespace("shop")
	w.template.SetName("c")
	w.Make(w.template)
	w.pods = found{"m1": {"c-a"}, "m2": {"c-b"}}
	w.run()
	w.letWorksGo()
	return w
}

// divide makes the binding that gives each cluster three.
func (w *world) divide() {
	w.bind("id")
	w.change(func(b workv1alpha2.Binding) {
		spec := b.BindingSpec()
		spec.Replicas = 6
		spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}
		spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 3}}
	})
}

// edit changes the template, and its binding as the propagate controller does.
func (w *world) edit(value any, path ...string) {
	w.t.Helper()
	controllertest.Change(w.Hub, w.template.DeepCopy(), func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			w.t.Fatal(err)
		}
	})
	w.Eventually("the change is seen", func() string {
		u, _, err := w.options.Templates.Get(w.t.Context(), w.kind.GroupKind(), w.template.GetNamespace(), "c")
		if err != nil {
			return err.Error()
		}
		if v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); !reflect.DeepEqual(v, value) {
			return fmt.Sprintf("%v is %v", path, v)
		}
		return ""
	})
	w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Resource.ResourceVersion += "+" })
}

// manifest returns the one of a cluster's Work, nil without one.
func (w *world) manifest(cluster string) *unstructured.Unstructured {
	w.t.Helper()
	work := w.work(cluster)
	if work == nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &u.Object); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// keep are how many pods stay old in m1 and m2.
func (w *world) keep(what, want string) {
	w.t.Helper()
	w.Eventually(what, func() string {
		var got []string
		for _, cluster := range []string{"m1", "m2"} {
			u := w.manifest(cluster)
			if u == nil {
				return cluster + " has no work"
			}
			v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "updateStrategy", "partition")
			image, _, _ := unstructured.NestedString(u.Object, "spec", "template", "image")
			got = append(got, fmt.Sprintf("%v of %s", v, image))
		}
		if text := strings.Join(got, ", "); text != want {
			return "partitions are " + text + ", want " + want
		}
		return ""
	})
}

// report is a member's word that so many of its pods are of the Work's template, and that all three are up.
func (w *world) report(cluster string, updated int64) {
	w.t.Helper()
	made := w.manifest(cluster).GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]
	raw := fmt.Sprintf(`{"resourceTemplateGeneration":%s,"replicas":3,"availableReplicas":3,"readyReplicas":3,"updatedReplicas":%d,"updatedReadyReplicas":%[2]d,"updatedAvailableReplicas":%[2]d}`, made, updated)

	work := w.work(cluster)
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "r",
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.Now()}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: []byte(raw)}}}
	if err := w.Status().Update(w.t.Context(), work); err != nil {
		w.t.Fatal(err)
	}
}

func TestRolloutContinuesAfterMemberReport(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		w.divide()
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		w.report("m1", 3)
		w.report("m2", 3)
		if writes := works(w.Quiet()); len(writes) > 4 {
			t.Errorf("two Works and two statuses were written as %q", writes)
		}

		w.edit("2", "spec", "template", "image")
		w.keep("m1 begins, and m2 waits", "0 of 2, 3 of 2")
		w.Quiet()
		w.report("m1", 1)
		w.report("m2", 0)
		if writes := works(w.Quiet()); len(writes) != 2 {
			t.Errorf("on the way, written is %q, want the two statuses", writes)
		}
		w.stop() // what is known is in the Works
		w.run()
		w.report("m1", 3)
		w.keep("it is m2's turn", "0 of 2, 0 of 2")
		if writes := works(w.Quiet()); len(writes) != 2 {
			t.Errorf("when m1 is done, written is %q, want its status and the Work of m2", writes)
		}
	})
}

func TestLostClusterPausesRollout(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		w.divide()
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		w.report("m1", 3)
		w.report("m2", 3)
		w.Ready("m2", metav1.ConditionUnknown, "Lost")
		w.Quiet()
		w.edit("2", "spec", "template", "image")
		w.keep("nothing begins", "3 of 2, 3 of 2")
		w.Ready("m2", metav1.ConditionTrue, "Back")
		w.keep("then m1 does", "0 of 2, 3 of 2")
	})
}

func TestStalledRolloutIsReportedWithoutEvent(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		w.divide()
		w.edit(int64(1), "spec", "progressDeadlineSeconds")
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		w.report("m1", 3)
		w.report("m2", 3)
		w.Quiet()
		w.edit("2", "spec", "template", "image")
		w.keep("m1 begins", "0 of 2, 3 of 2")
		w.Eventually("the binding and the template have an event", func() string {
			events := w.eventsWith(fleet.ProgressDeadlineExceeded)
			if len(events) != 2 || !strings.Contains(events[0], "0 of 6 new pods") {
				return fmt.Sprintf("the events are %q", events)
			}
			return ""
		})
		w.report("m1", 3)
		w.keep("m2 goes on", "0 of 2, 0 of 2")
		w.report("m2", 3)
		w.Eventually("the clock is gone when it is done", func() string {
			b := &workv1alpha2.ResourceBinding{}
			if err := w.Get(t.Context(), w.key(), b); err != nil {
				return err.Error()
			}
			return b.Annotations[wellknown.RolloutProgressAnnotation]
		})
	})
}

func TestIndivisibleTemplateReportsReasonOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		w.divide()
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		w.edit("Random", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
		w.edit("2", "spec", "template", "image")
		w.Eventually("its users get an event", func() string {
			warnings := w.eventsWith(workv1alpha2.EventSyncWorkFailed)
			if len(warnings) != 2 || !strings.Contains(warnings[0], wellknown.RolloutOrderAnnotation) {
				return fmt.Sprintf("reported: %q, want it of the template and of its binding", warnings)
			}
			return ""
		})
		w.Quiet()
		w.keep("nothing is written", "0 of 1, 0 of 1")
		if warnings := w.eventsWith(workv1alpha2.EventSyncWorkFailed); len(warnings) != 2 {
			t.Errorf("reported: %q", warnings)
		}
	})
}

func TestPodToDeleteIsSentToItsClusterOnly(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		w.divide()
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		w.edit([]any{"c-b", "c-z"}, "spec", "scaleStrategy", "podsToDelete")
		w.Eventually("m2 is to delete it", func() string {
			var got []string
			for _, cluster := range []string{"m1", "m2"} {
				names, _, _ := unstructured.NestedStringSlice(w.manifest(cluster).Object, "spec", "scaleStrategy", "podsToDelete")
				got = append(got, fmt.Sprint(names))
			}
			if text := strings.Join(got, " "); text != "[] [c-b]" {
				return "the names are " + text
			}
			return ""
		})
		w.Eventually("missing pods are reported", func() string {
			if warnings := w.eventsWith(fleet.PodNotFound); len(warnings) != 2 ||
				!strings.Contains(warnings[0], "c-z not found in any") {
				return fmt.Sprintf("reported: %q", warnings)
			}
			return ""
		})
		condition := func() *metav1.Condition {
			b := &workv1alpha2.ResourceBinding{}
			if err := w.Get(t.Context(), w.key(), b); err != nil {
				t.Fatal(err)
			}
			return meta.FindStatusCondition(b.Status.Conditions, fleet.PodNotFound)
		}
		if c := condition(); c == nil || c.Status != metav1.ConditionTrue ||
			!strings.Contains(c.Message, "c-z not found in any") {
			t.Errorf("the binding says %+v", c)
		}
		w.edit([]any{"c-b"}, "spec", "scaleStrategy", "podsToDelete")
		w.Eventually("it is said no more", func() string {
			if c := condition(); c != nil {
				return fmt.Sprintf("the binding says %+v", c)
			}
			return ""
		})
	})
}

// Names of pods that are gone are of no use, and a member that gets them for the first time refuses them.
func TestPodsToDeleteAreClearedOnceAllAreGone(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := clones(t)
		var mu sync.Mutex
		pods := found{"m1": {"c-a"}, "m2": {"c-b"}}
		w.stop()
		w.pods = asks(func(cluster, pod string) bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(pods[cluster], pod)
		})
		w.run()
		w.divide()
		w.keep("it is brought to both", "0 of 1, 0 of 1")
		path := []string{"spec", "scaleStrategy", "podsToDelete"}
		lists := func(when string, want string, templates int) {
			t.Helper()
			names := func(u *unstructured.Unstructured) string {
				all, set, _ := unstructured.NestedStringSlice(u.Object, path...)
				if !set {
					return "-"
				}
				return strings.Join(all, ",")
			}
			w.Eventually(when, func() string {
				u := w.template.DeepCopy()
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
					return err.Error()
				}
				if got := names(u) + " " + names(w.manifest("m1")) + " " + names(w.manifest("m2")); got != want {
					return "the lists of the template and its Works are " + got + ", want " + want
				}
				return ""
			})
			wrote := slices.DeleteFunc(w.Quiet(), func(write string) bool { return !strings.Contains(write, " clonesets") })
			if len(wrote) != templates {
				t.Errorf("%s, the template is written as %q, want %d", when, wrote, templates)
			}
		}
		w.Quiet()
		w.edit([]any{"c-a", "c-b", "c-z"}, path...)
		lists("each is told of its own", "c-a,c-b,c-z c-a c-b", 1)
		w.report("m1", 3)
		w.report("m2", 3)
		lists("while they are there", "c-a,c-b,c-z c-a c-b", 0)
		mu.Lock()
		pods["m1"] = nil
		mu.Unlock()
		w.report("m1", 2)
		lists("when one is gone", "c-a,c-b,c-z c-a c-b", 0)
		mu.Lock()
		pods["m2"] = nil
		mu.Unlock()
		w.report("m2", 2)
		// The propagate controller sets it on the binding; this test does it itself.
		w.Eventually("all are gone", func() string {
			u := w.template.DeepCopy()
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				return err.Error()
			}
			if names, _, _ := unstructured.NestedStringSlice(u.Object, path...); !slices.Equal(names, []string{"c-z"}) {
				return fmt.Sprintf("the template names %q, want the one that never was", names)
			}
			return ""
		})
		wrote := slices.DeleteFunc(w.Quiet(), func(write string) bool { return !strings.Contains(write, " clonesets") })
		if len(wrote) != 1 {
			t.Errorf("for that the template is written as %q", wrote)
		}

		w.edit([]any{"c-a", "c-b"}, path...)
		lists("who names them again is not fought", "c-a,c-b  ", 1)
		w.report("m1", 3)
		w.report("m2", 3)
		lists("however often they are looked at", "c-a,c-b  ", 0)
	})
}

// found are pods, by cluster.
type found map[string][]string

func (f found) Owned(_ context.Context, cluster, _, pod, _, _ string) (bool, error) {
	return slices.Contains(f[cluster], pod), nil
}

// asks reports whether a cluster has a pod.
type asks func(cluster, pod string) bool

func (a asks) Owned(_ context.Context, cluster, _, pod, _, _ string) (bool, error) {
	return a(cluster, pod), nil
}

// works returns the writes to Works.
func works(writes []string) []string {
	return slices.DeleteFunc(writes, func(w string) bool { return !strings.Contains(w, " works") })
}
