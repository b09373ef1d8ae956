package dispatch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
)

const copiedToThree = `
replicas: 9
clusters: [{name: eu}, {name: us}, {name: ap}]
`

// runs compares the images in the Works of eu, us and ap, and the stage that follows from the Works.
func (s *story) runs(when, images, stage string) {
	s.t.Helper()
	s.look()
	before := s.writes
	if s.look(); s.writes != before {
		s.t.Errorf("%s, looking again writes %d Works", when, s.writes-before)
	}
	var got []string
	var works []workv1alpha1.Work
	for _, cluster := range []string{"eu", "us", "ap"} {
		w := s.in.Existing[cluster]
		works = append(works, *w)
		containers, _, err := unstructured.NestedSlice(manifest(s.t, w).Object, "spec", "template", "spec", "containers")
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(fmt.Sprint(containers[0].(map[string]any)["image"]), "nginx:"))
	}
	if strings.Join(got, " ") != images {
		s.t.Errorf("%s, the images are %v, want %s", when, got, images)
	}
	at, ok := dispatch.StageOf(s.in.Binding, s.in.Template, works, func(cluster string) bool {
		return membership.KnownNotReady(s.in.Clusters[cluster])
	})
	if !ok || at.String() != stage {
		s.t.Errorf("%s, it is at %q (%v), want %q", when, at, ok, stage)
	}
}

// annotate sets an annotation of the template, which is no new generation.
func (s *story) annotate(key, value string) {
	s.t.Helper()
	generation := s.in.Template.GetGeneration()
	s.edit(value, "metadata", "annotations", key)
	s.in.Template.SetGeneration(generation)
}

// allNew reports that all pods in the cluster are new and available.
func (s *story) allNew(cluster string) {
	s.t.Helper()
	n := number(s.t, manifest(s.t, s.in.Existing[cluster]), "spec", "replicas")
	s.report(cluster, n, n)
}

func TestStagesOfWholeClusters(t *testing.T) {
	deployment := strings.NewReplacer("apps.kruise.io/v1alpha1", "apps/v1", "CloneSet", "Deployment").Replace(clones)
	native := strings.NewReplacer("apps.kruise.io/v1alpha1", "apps/v1", "CloneSet", "StatefulSet").Replace(clones)
	for name, c := range map[string]struct{ template, spec string }{
		"duplicated Deployment":  {deployment, copiedToThree},
		"duplicated StatefulSet": {native, copiedToThree},
		"duplicated CloneSet":    {clones, copiedToThree},
		"divided Deployment": {deployment,
			strings.Replace(threeEach, "kind: CloneSet", "kind: Deployment", 1)},
		"divided CloneSet, each cluster for itself": {strings.Replace(clones, "generation: 1",
			`generation: 1, annotations: {argosy.io/rollout-scope: Cluster}`, 1), threeEach},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, c.template, c.spec)
			s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
			s.annotate(wellknown.RolloutClustersAnnotation, "ap")
			s.annotate(wellknown.RolloutStagesAnnotation,
				`[{"clusters": ["us"], "pause": true}, {"percent": 60}, {"percent": 100}]`)
			s.runs("at first, everywhere at once", "1 1 1", "stage 3 of 3 is in progress")
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.allNew(cluster)
			}
			s.runs("at rest", "1 1 1", "all 3 stages are complete")

			s.image("nginx:2")
			s.runs("the first cluster", "1 2 1", "stage 1 of 3 is in progress")
			s.allNew("us")
			s.runs("it pauses", "1 2 1", "stage 1 of 3 is complete and waits for an approval")
			s.edit("blue", "metadata", "labels", "color")
			if got := s.fieldValues("metadata", "labels", "color"); strings.Contains(got, "blue") {
				t.Fatal("the label was sent before anybody looked")
			}
			s.look()
			if got := s.fieldValues("metadata", "labels", "color"); got != "blue blue blue" {
				t.Errorf("all other changes are applied: the labels are %s", got)
			}
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.allNew(cluster)
			}
			s.annotate(wellknown.RolloutStageAnnotation, "1")
			s.runs("60 % of three clusters are two", "1 2 2", "stage 2 of 3 is in progress")
			s.allNew("ap")
			s.runs("all clusters", "2 2 2", "stage 3 of 3 is in progress")
			s.allNew("eu")
			s.runs("at the end", "2 2 2", "all 3 stages are complete")

			s.image("nginx:3")
			s.runs("the approval was for the revision before", "2 3 2", "stage 1 of 3 is in progress")
			s.allNew("us")
			s.runs("it pauses again", "2 3 2", "stage 1 of 3 is complete and waits for an approval")
		})
	}
}

func TestStageOfWholeClustersWaitsForLostClusterUnlessIgnored(t *testing.T) {
	for policy, images := range map[string]string{"CountAsDown": "1 2 1", "Ignore": "2 2 1"} {
		s := begin(t, clones, copiedToThree)
		s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
		s.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["us"]}, {"clusters": ["eu"]}, {"percent": 100}]`)
		s.annotate(wellknown.UnreachableClustersAnnotation, policy)
		s.look()
		for _, cluster := range []string{"eu", "us", "ap"} {
			s.report(cluster, 3, 3)
		}
		s.in.Clusters["us"].Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
			Status: metav1.ConditionUnknown, Reason: "r"}}
		s.image("nginx:2")
		stage := map[string]string{"CountAsDown": "stage 1 of 3 is in progress",
			"Ignore": "stage 2 of 3 is in progress"}[policy]
		s.runs(policy, images, stage)
	}
}

func TestStagesDoNotProceedWhileAllClustersAreLost(t *testing.T) {
	s := begin(t, clones, copiedToThree)
	s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
	s.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["us"]}, {"clusters": ["eu"]}, {"percent": 100}]`)
	s.annotate(wellknown.UnreachableClustersAnnotation, "Ignore")
	s.look()
	for _, cluster := range []string{"eu", "us", "ap"} {
		s.allNew(cluster)
		s.in.Clusters[cluster].Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
			Status: metav1.ConditionUnknown, Reason: "r"}}
	}
	s.image("nginx:2")
	s.runs("all clusters are lost", "1 2 1", "stage 1 of 3 is in progress")
	s.in.Clusters["ap"].Status.Conditions = nil
	s.runs("one responds again, and the others are ignored", "2 2 2", "stage 3 of 3 is in progress")
}

func TestPauseOfTemplateDoesNotCompleteStagesOfWholeClusters(t *testing.T) {
	group := func(kind string) string {
		return strings.NewReplacer("apps.kruise.io/v1alpha1", "apps/v1", "CloneSet", kind).Replace(clones)
	}
	advanced := strings.NewReplacer("v1alpha1", "v1beta1", "CloneSet", "StatefulSet").Replace(clones)
	for name, template := range map[string]string{
		"Deployment": group("Deployment"), "CloneSet": clones, "Advanced StatefulSet": advanced,
		"Argo Rollout": strings.NewReplacer("apps.kruise.io", "argoproj.io", "CloneSet", "Rollout").Replace(clones),
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, template, copiedToThree)
			s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
			s.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["us"]}, {"clusters": ["eu"]}, {"percent": 100}]`)
			s.look()
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.report(cluster, 9, 9)
			}
			s.runs("at rest", "1 1 1", "all 3 stages are complete")
			path := rollout.PausePath(s.in.Template)
			s.edit(true, path...)
			s.look()
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.report(cluster, 9, 9)
			}
			s.runs("paused without old pods", "1 1 1", "all 3 stages are complete")

			s.image("nginx:2")
			s.look()
			s.report("us", 0, 9) // the member reports Suspended, which is Healthy for the hub
			s.runs("paused before its pods are new", "1 2 1", "stage 1 of 3 is in progress")
			s.edit(false, path...)
			s.look()
			for _, cluster := range []string{"eu", "us", "ap"} {
				s.report(cluster, 9, 9)
			}
			s.runs("resumed", "2 2 1", "stage 2 of 3 is in progress")
		})
	}
}

func TestPauseInUnitedDeploymentDoesNotCompleteStages(t *testing.T) {
	for paused, images := range map[bool]string{true: "[nginx:2 nginx:1 nginx:1]", false: "[nginx:2 nginx:2 nginx:1]"} {
		s := begin(t, `
apiVersion: apps.kruise.io/v1alpha1
kind: UnitedDeployment
metadata: {name: web, namespace: shop, uid: u-3, generation: 1}
spec:
  replicas: 9
  template: {deploymentTemplate: {spec: {template: {spec: {containers: [{name: main, image: "nginx:1"}]}}}}}
`, copiedToThree)
		at := []string{"spec", "template", "deploymentTemplate", "spec"}
		s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
		s.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["us"]}, {"clusters": ["eu"]}, {"percent": 100}]`)
		s.look()
		s.edit(paused, append(slices.Clone(at), "paused")...)
		s.edit([]any{map[string]any{"name": "main", "image": "nginx:2"}},
			append(slices.Clone(at), "template", "spec", "containers")...)
		s.look()
		s.report("us", map[bool]int64{true: 0, false: 9}[paused], 9)
		s.look()
		var got []any
		for _, cluster := range []string{"us", "eu", "ap"} {
			containers, _, err := unstructured.NestedSlice(manifest(t, s.in.Existing[cluster]).Object,
				append(slices.Clone(at), "template", "spec", "containers")...)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, containers[0].(map[string]any)["image"])
		}
		if fmt.Sprint(got) != images {
			t.Errorf("paused %t: the images in us, eu and ap are %v, want %s", paused, got, images)
		}
	}
}

func TestStagesOfArgoRollouts(t *testing.T) {
	template := strings.NewReplacer("apps.kruise.io", "argoproj.io", "CloneSet", "Rollout").Replace(clones)
	for name, c := range map[string]struct {
		observed any // observedGeneration in the status
		phase    string
		updated  int64
		images   string
	}{
		"complete":                      {"2", "Healthy", 9, "2 2 1"},
		"complete, generation a number": {int64(2), "Healthy", 9, "2 2 1"},
		"an earlier generation":         {"1", "Healthy", 9, "1 2 1"},
		"paused by a step":              {"2", "Paused", 1, "1 2 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, template, copiedToThree)
			s.annotate(wellknown.RolloutOrderAnnotation, "Stages")
			s.annotate(wellknown.RolloutStagesAnnotation, `[{"clusters": ["us"]}, {"clusters": ["eu"]}, {"percent": 100}]`)
			s.look()
			s.image("nginx:2")
			s.look()
			s.report("us", c.updated, 9)
			w := s.in.Existing["us"]
			status := map[string]any{"generation": w.Generation, "observedGeneration": c.observed, "phase": c.phase,
				"replicas": 9, "availableReplicas": 9, "updatedReplicas": c.updated}
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			w.Status.ManifestStatuses[0].Status.Raw = raw
			stage := "stage 1 of 3 is in progress"
			if c.images == "2 2 1" {
				stage = "stage 2 of 3 is in progress"
			}
			s.runs(name, c.images, stage)
		})
	}
}

func TestRunOnceTemplatesHaveNoStages(t *testing.T) {
	for _, kind := range []string{"Job", "Pod"} {
		in := input(t, strings.NewReplacer("apps.kruise.io/v1alpha1", "batch/v1", "CloneSet", kind).Replace(clones),
			copiedToThree)
		in.Template.SetAnnotations(map[string]string{wellknown.RolloutOrderAnnotation: "Stages",
			wellknown.RolloutStagesAnnotation: `[{"clusters": ["us"]}]`})
		if concerns, err := fleet.Concerns(in.Template, false); concerns || err != nil {
			t.Errorf("a %s has stages (%v)", kind, err)
		}
		d := dispatch.Decide(t.Context(), in, interpret.New(builtin.Tier()))
		if len(d.Conditions) != 1 || d.Conditions[0].Type != fleet.StagesIgnored {
			t.Errorf("the stages of a %s are ignored with the conditions %v", kind, d.Conditions)
		}
	}
}
