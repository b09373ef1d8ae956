package core_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	names "github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// made is what an object was made from: the generation of the template, and the former revision that it keeps.
type made struct {
	generation string
	former     string
}

// The template has generation 2. A cluster has ten replicas.
func TestOnlyPodsOfTheNewRevisionCountAsUpdated(t *testing.T) {
	old, kept, current := made{"1", ""}, made{"2", "r1"}, made{"2", ""}
	phases := map[string]struct {
		// The member's object was made from has, and its Work says wants.
		has, wants made
		// The object has generation 5; applied is the generation of the Work that was applied, of two.
		observed, applied int64
		// The status counts all and updated pods of the object.
		all, updated int64
		// template is how many have the pods of the template, release how many have those of the Work.
		template, release int64
	}{
		"the change is not dispatched":            {old, old, 5, 2, 10, 10, 0, 10},
		"the change waits for a release":          {kept, kept, 5, 2, 10, 10, 0, 10},
		"the member has not got the change":       {old, current, 5, 1, 10, 10, 0, 0},
		"the member has not got the release":      {kept, current, 5, 1, 10, 10, 0, 0},
		"the cluster was lost before the release": {kept, current, 5, 1, 10, 7, 0, 0},
		"its controller has not observed it":      {current, current, 4, 2, 10, 10, 0, 0},
		"a partition keeps nine pods":             {current, current, 5, 2, 10, 1, 1, 1},
		"two pods surge":                          {current, current, 5, 2, 12, 2, 2, 2},
		"the release is paused, or was aborted":   {current, current, 5, 2, 10, 3, 3, 3},
		"the partition was written since":         {current, current, 5, 1, 10, 3, 3, 3},
		"the cluster was lost during the release": {current, current, 5, 1, 10, 4, 4, 4},
		"the release is complete":                 {current, current, 5, 2, 10, 10, 10, 10},
		"pods of a scale-down are left":           {current, current, 5, 2, 14, 14, 14, 10},
		"a rollback was written":                  {current, kept, 5, 1, 10, 3, 3, 0},
		"a rollback has begun":                    {kept, kept, 5, 2, 10, 8, 0, 8},
		"the rollback is complete":                {kept, kept, 5, 2, 10, 10, 0, 10},
	}
	replicas := [2]string{"replicas", "updatedReplicas"}
	daemons := [2]string{"desiredNumberScheduled", "updatedNumberScheduled"}
	ready := []string{"readyReplicas", "availableReplicas", "updatedReadyReplicas", "updatedAvailableReplicas",
		"numberReady", "numberAvailable", "currentNumberScheduled", "readyPods", "updatedReadyPods"}
	for _, kind := range []struct {
		apiVersion, kind string
		counters         [2]string
		plan             string
	}{
		{"apps/v1", "Deployment", replicas, fleet.UnitCluster},
		{"apps/v1", "StatefulSet", replicas, fleet.UnitCluster},
		{"apps/v1", "DaemonSet", daemons, fleet.UnitCluster},
		{"argoproj.io/v1alpha1", "Rollout", replicas, fleet.UnitCluster},
		{"apps.kruise.io/v1alpha1", "CloneSet", replicas, fleet.UnitPods},
		{"apps.kruise.io/v1alpha1", "CloneSet", replicas, fleet.UnitCluster},
		{"apps.kruise.io/v1beta1", "StatefulSet", replicas, fleet.UnitPods},
		{"apps.kruise.io/v1alpha1", "DaemonSet", daemons, fleet.UnitCluster},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment", replicas, fleet.UnitCluster},
		{"apps.kruise.io/v1alpha1", "SidecarSet", [2]string{"matchedPods", "updatedPods"}, ""},
	} {
		for name, phase := range phases {
			t.Run(kind.kind+" "+kind.plan+"/"+name, func(t *testing.T) {
				meaning := interpret.New(builtin.Tier())
				object := func(of made) *unstructured.Unstructured {
					u := coretest.Object(t, "{apiVersion: v1, kind: Any, metadata: {name: web, namespace: shop}, spec: {replicas: 10, "+
						"template: {spec: {containers: [{name: web, image: web}]}}}}")
					if kind.kind == "DaemonSet" {
						unstructured.RemoveNestedField(u.Object, "spec", "replicas")
					}
					u.SetAPIVersion(kind.apiVersion)
					u.SetKind(kind.kind)
					u.SetAnnotations(map[string]string{workv1alpha2.TemplateGenerationAnnotation: of.generation})
					if of.former != "" {
						u.SetAnnotations(map[string]string{workv1alpha2.TemplateGenerationAnnotation: of.generation,
							names.FormerRevisionAnnotation: of.former})
					}
					return u
				}
				// 1. The member's object, and what the hub reads of it.
				member := object(phase.has)
				member.SetGeneration(5)
				status := map[string]any{"observedGeneration": phase.observed, kind.counters[0]: phase.all,
					kind.counters[1]: phase.updated, "currentRevision": "web-1", "updateRevision": "web-1"}
				if kind.kind == "Rollout" {
					status["observedGeneration"] = strconv.FormatInt(phase.observed, 10)
				}
				for _, counter := range ready {
					status[counter] = phase.all
				}
				for _, counter := range []string{"updatedReadyReplicas", "updatedAvailableReplicas", "updatedReadyPods"} {
					status[counter] = phase.updated
				}
				member.Object["status"] = status
				reflected, err := meaning.Reflect(context.Background(), member)
				if err != nil {
					t.Fatal(err)
				}
				encoded, err := json.Marshal(reflected)
				if err != nil {
					t.Fatal(err)
				}
				raw := &runtime.RawExtension{Raw: encoded}
				// 2. The template's status, which kubectl and dashboards show.
				template := object(made{})
				template.SetGeneration(2)
				folded, err := meaning.Aggregate(context.Background(), template, []workv1alpha2.AggregatedStatusItem{
					{ClusterName: "eu", Status: raw}})
				if err != nil {
					t.Fatal(err)
				}
				if n := number(folded, "status", kind.counters[1]); n != phase.template {
					t.Errorf("the template has %d updated pods, want %d", n, phase.template)
				}
				if phase.has == kept && fields.Text(folded.Object, "status", "updateRevision") == "web-1" {
					t.Error("kubectl takes the rollout for finished, because both revisions are those of the cluster")
				}
				// 3. The progress of the release of what the Work says.
				if kind.plan == "" {
					return // it cannot be released
				}
				manifest, err := object(phase.wants).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2,
					Annotations: map[string]string{fleet.EffectiveRevisionAnnotation: "r"}}}
				work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: manifest}}}
				work.Status = workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied,
					Status: metav1.ConditionTrue, ObservedGeneration: phase.applied}},
					ManifestStatuses: []workv1alpha1.ManifestStatus{{Status: raw}}}
				progress, err := fleet.ProgressOf(fleet.Input{Template: template, Divided: kind.plan == fleet.UnitPods,
					Plan: &fleet.Plan{Revision: "r", Unit: kind.plan, At: 1, Stages: []fleet.PlanStage{{Name: "all",
						Clusters: []string{"eu"}, Part: [2]int64{1, 1}, WholeClusters: kind.plan == fleet.UnitCluster}}},
					Members: []fleet.Member{{Cluster: "eu", Replicas: 10, Reachable: true, Work: work}}})
				if err != nil {
					t.Fatal(err)
				}
				want := phase.release
				if kind.counters == daemons && phase.all > 12 {
					want = phase.all // nodes decide how many there are
				}
				if progress[0].New != want {
					t.Errorf("the release has %d new pods, want %d", progress[0].New, want)
				}
			})
		}
	}
}
