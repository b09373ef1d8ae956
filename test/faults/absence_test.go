package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/test/kit"
)

// remove deletes an object of the hub that is protected: without a word, which is refused, and with it. It returns the
// UID of the object.
func remove(t *testing.T, obj client.Object, name string) string {
	t.Helper()
	obj.SetName(name)
	if err := fleet.Hub.Delete(t.Context(), obj); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), name) {
		t.Fatalf("delete %s: %v, want it to be forbidden", name, err)
	}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	obj.SetAnnotations(map[string]string{wellknown.ConfirmDeletionAnnotation: name})
	if err := fleet.Hub.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatalf("confirm the deletion of %s: %v", name, err)
	}
	if err := fleet.Hub.Delete(t.Context(), obj); err != nil {
		t.Fatalf("delete %s, confirmed: %v", name, err)
	}
	return string(obj.GetUID())
}

// back waits until another object of that name is there, and not going.
func back(t *testing.T, obj client.Object, name, was string) {
	t.Helper()
	kit.Eventually(t, name+" is back", func() string {
		err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, obj)
		switch {
		case err != nil:
			return err.Error()
		case string(obj.GetUID()) == was:
			return "it is the old one"
		case obj.GetDeletionTimestamp() != nil:
			return "it is going"
		}
		return ""
	})
}

func crd() *metav1.PartialObjectMetadata {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(definition.GVK)
	return d
}

// One Work is a user's word: its object goes, and both are made again.
func TestAUserDeletesOneWork(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	ns := w.namespace()
	w.create("ConfigMap", ns)
	kit.Eventually(t, "everything converges", w.wrong)
	kit.Eventually(t, "no others are deleted that it would be one of", noneKept)
	before := w.look("f1")
	if len(before) != 1 {
		t.Fatalf("f1 holds %v", before)
	}
	for key := range before {
		name := strings.TrimPrefix(key, "ConfigMap "+ns+"/")
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("f1"),
			Name: names.Work("ConfigMap", name, ns)}}
		if err := fleet.Hub.Delete(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "the object is made anew", func() string {
			if now := w.look("f1"); len(now) != 1 || now[key].uid == before[key].uid {
				return fmt.Sprintf("f1 holds %v, and held %v", now, before)
			}
			return ""
		})
	}
	kit.Eventually(t, "everything converges", w.wrong)
}

// What is gone is no order to delete: whatever of the hub's own somebody takes away, no object leaves a member.
func TestLostHubObjectsDeleteNothingInMembers(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	w.work(w.namespace(), 40)
	kit.Eventually(t, "everything converges", w.wrong)
	witnesses := []*witness{w.witness("f1"), w.witness("f2")}
	// What follows templates has a binding of its own, that no policy holds: here of one in each cluster. Those are of
	// groups, so that their bindings are made before anybody says where they go.
	ns := w.namespace()
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: follows, namespace: %s}`, ns))
	places := []struct{ leader, cluster string }{{"leads", "f1"}, {"leads-too", "f2"}}
	for _, at := range places {
		fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %[2]s, namespace: %[1]s}
spec: {propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[2]s}], placement: {clusterAffinity: {clusterNames: [%[3]s]}, workloadAffinity: {affinity: {groupByLabelKey: app}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: c, image: "example.com/c:1", envFrom: [{configMapRef: {name: follows}}]}]}`, ns, at.leader, at.cluster))
	}
	followers := func() string {
		var uids []string
		for _, at := range places {
			uid := "absent"
			if u := fleet.Members[at.cluster].Find(t, "v1", "ConfigMap", ns, "follows"); u != nil {
				uid = string(u.GetUID())
			}
			if u := fleet.Members[at.cluster].Find(t, "apps/v1", "Deployment", ns, at.leader); u != nil {
				uid += " of " + string(u.GetUID())
			}
			uids = append(uids, at.cluster+" "+uid)
		}
		return strings.Join(uids, ", ")
	}
	kit.Eventually(t, "the followers are there", func() string {
		if seen := followers(); strings.Contains(seen, "absent") || strings.Count(seen, " of ") != len(places) {
			return seen
		}
		return ""
	})
	was := followers()
	// attached is whether the follower has a binding that stands, and its Works.
	attached := func() string {
		b, work := &workv1alpha2.ResourceBinding{}, &workv1alpha1.Work{}
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "follows-configmap"}, b); err != nil ||
			b.DeletionTimestamp != nil || len(b.Spec.RequiredBy) != len(places) {
			return fmt.Sprintf("%v, its binding is required by %v", err, b.Spec.RequiredBy)
		}
		for _, at := range places {
			key := client.ObjectKey{Namespace: names.ExecutionSpace(at.cluster), Name: names.Work("ConfigMap", "follows", ns)}
			if err := fleet.Hub.Get(t.Context(), key, work); err != nil || work.DeletionTimestamp != nil {
				return fmt.Sprintf("%v, its Work for %s", err, at.cluster)
			}
		}
		return ""
	}

	for _, tc := range []struct {
		story string
		do    func(t *testing.T)
	}{
		{"the definition of Works", func(t *testing.T) {
			back(t, crd(), definition.Works,
				remove(t, crd(), definition.Works))
		}},
		{"the definition of bindings", func(t *testing.T) {
			back(t, crd(), definition.ResourceBindings, remove(t, crd(), definition.ResourceBindings))
		}},
		{"the definition of bindings of cluster-scoped templates", func(t *testing.T) {
			back(t, crd(), definition.ClusterResourceBindings, remove(t, crd(), definition.ClusterResourceBindings))
		}},
		{"an execution space", func(t *testing.T) {
			space := names.ExecutionSpace("f1")
			back(t, &corev1.Namespace{}, space, remove(t, &corev1.Namespace{}, space))
		}},
		{"all Works of a cluster", func(t *testing.T) { removeWorks(t, "f1") }},
		{"all Works, and the hub is killed meanwhile", func(t *testing.T) {
			removeWorks(t, "f1")
			removeWorks(t, "f2")
			fleet.Lab.Hub.Kill()
			if err := start(startTimeout); err != nil {
				t.Fatal(err)
			}
		}},
		{"the binding of what follows others", func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "follows-configmap"}}
			if err := fleet.Hub.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}},
		{"all bindings", func(t *testing.T) {
			for _, all := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
				o := []client.DeleteAllOfOption{}
				if _, namespaced := all.(*workv1alpha2.ResourceBinding); namespaced {
					var spaces corev1.NamespaceList
					if err := fleet.Hub.List(t.Context(), &spaces); err != nil {
						t.Fatal(err)
					}
					for _, ns := range spaces.Items {
						if err := fleet.Hub.DeleteAllOf(t.Context(), all, client.InNamespace(ns.Name)); err != nil {
							t.Fatal(err)
						}
					}
					continue
				}
				if err := fleet.Hub.DeleteAllOf(t.Context(), all, o...); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		if !t.Run(tc.story, func(t *testing.T) {
			tc.do(t)
			kit.Eventually(t, "everything converges", w.wrong)
			kit.Eventually(t, "the follower has all it needs", attached)
			if now := followers(); now != was {
				t.Errorf("the followers are %s; they were %s", now, was)
			}
			for _, seen := range witnesses {
				if wrong := seen.testimony(w); wrong != "" {
					t.Error(wrong)
				}
			}
		}) {
			return
		}
	}

	// An event reports it.
	kit.Eventually(t, "the cluster says so", func() string {
		c := &clusterv1alpha1.Cluster{}
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: "f1"}, c); err != nil {
			return err.Error()
		}
		if meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionWorksKept) == nil {
			return fmt.Sprint(c.Status.Conditions)
		}
		return ""
	})
	kit.Eventually(t, "an event says so", func() string {
		if len(fleet.Hub.Messages(t, "Cluster", "", "f1", "WorksKept")) == 0 {
			return "none does"
		}
		return ""
	})

	// And what users mean is done: they delete all templates.
	_, second, _ := strings.Cut(was, ", ")
	for _, gone := range []struct{ leader, leaves string }{{"leads", "f1 absent, " + second},
		{"leads-too", "f1 absent, f2 absent"}} {
		fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, gone.leader)
		kit.Eventually(t, "a follower goes with what it follows", func() string {
			if now := followers(); now != gone.leaves {
				return now
			}
			return ""
		})
	}
	w.clear()
	kit.Eventually(t, "all that users deleted is gone", func() string {
		for _, member := range members {
			if objs, err := w.objects(context.Background(), fleet.Members[member]); err != nil || len(objs) > 0 {
				return fmt.Sprintf("%d objects are left in %s (%v)", len(objs), member, err)
			}
		}
		return ""
	})
}

// noneKept is whether no cluster reports many recent deletions of Works.
func noneKept() string {
	var clusters clusterv1alpha1.ClusterList
	if err := fleet.Hub.List(context.Background(), &clusters); err != nil {
		return err.Error()
	}
	for _, c := range clusters.Items {
		if meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionWorksKept) {
			return fmt.Sprint(c.Name, ": ", meta.FindStatusCondition(c.Status.Conditions,
				clusterv1alpha1.ClusterConditionWorksKept).Message)
		}
	}
	return ""
}

func removeWorks(t *testing.T, cluster string) {
	t.Helper()
	if err := fleet.Hub.DeleteAllOf(t.Context(), &workv1alpha1.Work{},
		client.InNamespace(names.ExecutionSpace(cluster))); err != nil {
		t.Fatal(err)
	}
}

// What users wrote may go with its definition: what was made of it in members stays, and goes when they write it again
// and delete it.
func TestObjectsDeletedWithTheirDefinitionStayInMembers(t *testing.T) {
	kit.Long(t)
	w := newWorld(t)
	ns := w.namespace()
	fleet.Hub.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: f1, labels: {namespace.karmada.io/skip-auto-propagation: \"true\"}}}")
	t.Cleanup(func() {
		_ = fleet.Hub.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "f1"}})
	})
	for _, tc := range []struct {
		definition, apiVersion, kind, namespace, name string
		objects                                       string // with a policy, if it needs one
		needs                                         string
	}{
		{definition.ManifestWorks, "work.open-cluster-management.io/v1", "ManifestWork", "f1", "of-a-manifestwork", fmt.Sprintf(`
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: of-a-manifestwork, namespace: f1}
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: of-a-manifestwork, namespace: %s}}]}}`, ns), ""},
		{definition.EnclosedManifests, "release.argosy.io/v1alpha1", "EnclosedManifest", "", "of-an-enclosed-one", fmt.Sprintf(`
apiVersion: release.argosy.io/v1alpha1
kind: EnclosedManifest
metadata: {name: of-an-enclosed-one}
spec: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: of-an-enclosed-one, namespace: %s}}}`, ns), `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: of-an-enclosed-one}
spec: {resourceSelectors: [{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest, name: of-an-enclosed-one}], placement: {clusterAffinity: {clusterNames: [f1]}}}`},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			if tc.needs != "" {
				fleet.Hub.Apply(t, tc.needs)
				t.Cleanup(func() {
					p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: tc.name}}
					if err := fleet.Hub.Delete(context.WithoutCancel(t.Context()), p); err != nil {
						t.Error(err)
					}
				})
			}
			fleet.Hub.Apply(t, tc.objects)
			uid := func() string {
				if u := fleet.Members["f1"].Find(t, "v1", "ConfigMap", ns, tc.name); u != nil {
					return string(u.GetUID())
				}
				return ""
			}
			kit.Eventually(t, "it is in the member", func() string {
				if uid() == "" {
					return "not yet"
				}
				return ""
			})
			was := uid()
			back(t, crd(), tc.definition, remove(t, crd(), tc.definition))
			kit.Eventually(t, "its object is gone from the hub, and the kind is served", func() string {
				all := &metav1.PartialObjectMetadataList{}
				all.SetGroupVersionKind(schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind+"List"))
				if err := fleet.Hub.List(t.Context(), all, client.InNamespace(tc.namespace)); err != nil {
					return err.Error()
				}
				if len(all.Items) > 0 {
					return "it is there"
				}
				return ""
			})
			kit.Eventually(t, "its Works are gone", func() string {
				var works workv1alpha1.WorkList
				if err := fleet.Hub.List(t.Context(), &works, client.InNamespace(names.ExecutionSpace("f1"))); err != nil {
					return err.Error()
				}
				for i := range works.Items {
					if m, err := execute.Manifest(&works.Items[i]); err == nil && m.GetName() == tc.name &&
						works.Items[i].DeletionTimestamp != nil {
						return works.Items[i].Name
					}
				}
				return ""
			})
			if now := uid(); now != was {
				t.Fatalf("what it had made in the member is %q, and was %q", now, was)
			}

			fleet.Hub.Apply(t, tc.objects)
			kit.Eventually(t, "it has a Work again", func() string {
				var works workv1alpha1.WorkList
				if err := fleet.Hub.List(t.Context(), &works, client.InNamespace(names.ExecutionSpace("f1"))); err != nil {
					return err.Error()
				}
				for i := range works.Items {
					w := &works.Items[i]
					if m, err := execute.Manifest(w); err == nil && m.GetName() == tc.name && w.DeletionTimestamp == nil &&
						meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
						return ""
					}
				}
				return "not yet"
			})
			if now := uid(); now != was {
				t.Fatalf("made again, it has %q in the member, and had %q", now, was)
			}
			fleet.Hub.Remove(t, tc.apiVersion, tc.kind, tc.namespace, tc.name)
			kit.Eventually(t, "a user deletes it, and it goes", func() string {
				if uid() != "" {
					return "it is there"
				}
				return ""
			})
		})
	}
}
