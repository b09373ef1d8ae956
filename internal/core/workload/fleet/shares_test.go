package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// hub is a template in clusters c1, c2 … whose Works stand as they were decided last.
type hub struct {
	t        testing.TB
	in       Input
	messages []string
	writes   int
	// recheck is when to look again at the latest.
	recheck time.Duration
}

func newHub(t testing.TB, template string, replicas ...int64) *hub {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	u.SetGeneration(1)
	h := &hub{t: t, in: Input{Template: u, Divided: true}}
	for i, r := range replicas {
		h.in.Members = append(h.in.Members, Member{Cluster: "c" + strconv.Itoa(i+1), Replicas: r, Reachable: true})
	}
	return h
}

// edit sets a field of the template.
func (h *hub) edit(value any, path ...string) {
	h.t.Helper()
	h.in.Template = h.in.Template.DeepCopy()
	if err := unstructured.SetNestedField(h.in.Template.Object, value, path...); err != nil {
		h.t.Fatal(err)
	}
	h.in.Template.SetGeneration(h.in.Template.GetGeneration() + 1)
}

// look decides and writes.
func (h *hub) look() {
	h.t.Helper()
	for i := range h.in.Members {
		m := &h.in.Members[i]
		m.Base = h.in.Template.DeepCopy()
		if h.in.Divided {
			if err := unstructured.SetNestedField(m.Base.Object, m.Replicas, "spec", "replicas"); err != nil {
				h.t.Fatal(err)
			}
		}
		m.Local = m.Base
	}
	result, err := Shares(h.in)
	if err != nil {
		h.t.Fatal(err)
	}
	h.messages = nil
	for _, c := range result.Conditions {
		h.messages = append(h.messages, c.Type+": "+c.Message)
	}
	h.in.Record, h.in.Progress, h.in.Approved, h.recheck = result.Record, result.Progress, result.Approved,
		result.RecheckAfter
	for i := range h.in.Members {
		m := &h.in.Members[i]
		if slices.Contains(result.Waiting, m.Cluster) {
			if m.Work != nil {
				h.t.Fatalf("%s has a work, and is to wait for one", m.Cluster)
			}
			continue
		}
		manifest := result.Manifests[m.Cluster]
		if manifest == nil {
			manifest = m.Base
		}
		manifest = manifest.DeepCopy()
		annotations := map[string]string{workv1alpha2.TemplateGenerationAnnotation: strconv.FormatInt(
			h.in.Template.GetGeneration(), 10)}
		if sent, ok := manifest.GetAnnotations()[wellknown.SentPodsToDeleteAnnotation]; ok {
			annotations[wellknown.SentPodsToDeleteAnnotation] = sent
		}
		if slices.Contains(result.PodsKept, m.Cluster) {
			h.keepPods(m.Work, manifest, annotations)
		}
		manifest.SetAnnotations(annotations)
		raw, err := json.Marshal(manifest.Object)
		if err != nil {
			h.t.Fatal(err)
		}
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1,
			Annotations: map[string]string{wellknown.FleetAnnotation: result.Notes[m.Cluster]}}}
		work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
		if m.Work != nil {
			if string(m.Work.Spec.Workload.Manifests[0].Raw) == string(raw) &&
				m.Work.Annotations[wellknown.FleetAnnotation] == work.Annotations[wellknown.FleetAnnotation] {
				continue
			}
			work.Generation, work.Status = m.Work.Generation+1, m.Work.Status
		}
		m.Work = work
		h.writes++
	}
}

// keepPods gives a manifest the pods of the Work that stands, which count as the generation that they are from.
func (h *hub) keepPods(standing *workv1alpha1.Work, manifest *unstructured.Unstructured,
	annotations map[string]string) {
	h.t.Helper()
	before := &unstructured.Unstructured{}
	if err := before.UnmarshalJSON(standing.Spec.Workload.Manifests[0].Raw); err != nil {
		h.t.Fatal(err)
	}
	for _, path := range RevisionPaths(manifest.GroupVersionKind().GroupKind()) {
		if err := unstructured.SetNestedField(manifest.Object, field(before.Object, path...), path...); err != nil {
			h.t.Fatal(err)
		}
	}
	annotations[workv1alpha2.TemplateGenerationAnnotation] =
		before.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation]
}

// silent is the word of a member that says nothing.
const silent = "-"

// report is the status of the members, in YAML, each fresh.
func (h *hub) report(statuses ...string) {
	h.t.Helper()
	for i, text := range statuses {
		m := &h.in.Members[i]
		if text == silent {
			continue
		}
		if m.Work == nil {
			h.t.Fatalf("%s cannot report: it has no work", m.Cluster)
		}
		var status map[string]any
		if err := yaml.Unmarshal([]byte("{"+text+"}"), &status); err != nil {
			h.t.Fatal(err)
		}
		status["resourceTemplateGeneration"] = h.in.Template.GetGeneration()
		raw, err := json.Marshal(status)
		if err != nil {
			h.t.Fatal(err)
		}
		work := m.Work.DeepCopy()
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			ObservedGeneration: work.Generation}}
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
			Status: &runtime.RawExtension{Raw: raw}}}
		m.Work = work
	}
}

// fieldValues returns a field of each cluster's manifest.
func (h *hub) fieldValues(path ...string) string {
	h.t.Helper()
	var all []string
	for _, m := range h.in.Members {
		if m.Work == nil {
			continue
		}
		var manifest map[string]any
		if err := json.Unmarshal(m.Work.Spec.Workload.Manifests[0].Raw, &manifest); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(field(manifest, path...)))
	}
	return strings.Join(all, " ")
}

// expect looks until nothing changes, and compares fields: "path=values".
func (h *hub) expect(when string, fields ...string) {
	h.t.Helper()
	h.look()
	for _, f := range fields {
		path, want, _ := strings.Cut(f, "=")
		if got := h.fieldValues(strings.Split(path, ".")...); got != want {
			h.t.Errorf("%s, %s is %s, want %s", when, path, got, want)
		}
	}
	before := h.writes
	if h.look(); h.writes != before {
		h.t.Errorf("%s, looking again writes", when)
	}
}

// expectConditions fails unless the conditions of the last pass contain what; with "", unless there are none.
func (h *hub) expectConditions(when, what string) {
	h.t.Helper()
	if all := strings.Join(h.messages, "; "); (what == "") != (all == "") || !strings.Contains(all, what) {
		h.t.Errorf("%s, reported: %q, want %q in it", when, all, what)
	}
}

const fleetWide = "metadata: {name: x, annotations: {argosy.io/rollout-scope: Fleet}}"

func TestADisruptionBudgetMeansTheFleet(t *testing.T) {
	h := newHub(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, "+fleetWide+", spec: {minAvailable: 7}}", 0, 0, 0)
	h.in.Divided = false
	h.expect("while nobody has counted", "spec.minAvailable=7 7 7")
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 4")
	h.expect("when all have", "spec.minAvailable=2 2 3")
	h.expectConditions("with room to spare", "")
	h.report("expectedPods: 3", "expectedPods: 4", "expectedPods: 3")
	h.expect("when all pods of c3 would be kept", "spec.minAvailable=2 3 3")
	h.report("expectedPods: 3", "expectedPods: 4", "expectedPods: 3")
	h.expect("when c2 keeps one more", "spec.minAvailable=2 3 2")
	h.expectConditions("when each cluster allows a disruption", "")
	h.report("expectedPods: 4", "expectedPods: 4", "expectedPods: 3")
	h.expect("when a pod is added", "spec.minAvailable=2 3 2")
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 1")
	h.look()
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 1")
	h.expect("when only 7 pods are left", "spec.minAvailable=3 3 1")
	h.expectConditions("when only 7 pods are left", "BudgetBlocksEviction")
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 4")
	h.look()
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 4")
	h.expect("when they are back", "spec.minAvailable=2 2 3")
	h.edit(int64(12), "spec", "minAvailable")
	h.expect("when too much is asked", "spec.minAvailable=3 3 4")
	h.expectConditions("when too much is asked", "BudgetExceedsPods")
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 3")
	h.edit("50%", "spec", "minAvailable")
	h.expect("half of nine", "spec.minAvailable=2 2 1")
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 3")

	h.report("expectedPods: 1", "expectedPods: 3", "expectedPods: 5")
	h.expect("pods that move are kept where they are before they are given up where they were", "spec.minAvailable=2 2 2")
	h.report("expectedPods: 1", "expectedPods: 3", silent)
	h.expect("as long as that is not seen", "spec.minAvailable=2 2 2")
	h.report(silent, silent, "expectedPods: 5")
	h.expect("then they are given up", "spec.minAvailable=1 2 2")
}

func TestAnUnavailableBudgetMeansTheFleet(t *testing.T) {
	h := newHub(t, "{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, "+fleetWide+
		", spec: {maxUnavailable: \"20%\"}}", 0, 0, 0)
	h.in.Divided = false
	h.expect("while nobody has counted", "spec.maxUnavailable=0 0 0")
	h.report("totalReplicas: 3", "totalReplicas: 3", "totalReplicas: 3")
	h.expect("when all have", "spec.maxUnavailable=1 1 0")
	h.edit("20", "spec", "maxUnavailable")
	if _, err := Shares(h.in); err == nil || !strings.Contains(err.Error(), "spec.maxUnavailable") {
		t.Errorf("a number as text gives %v", err)
	}
}

func TestASpreadsMostReplicasMeanTheFleet(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, "+fleetWide+
		", spec: {subsets: [{name: a, maxReplicas: 8}, {name: b}]}}", 0, 0)
	h.in.Divided = false
	h.expect("evenly at first", "spec.subsets=[map[maxReplicas:4 name:a] map[name:b]] [map[maxReplicas:4 name:a] map[name:b]]")
	h.report("subsetStatuses: [{name: a, replicas: 2}, {name: b, replicas: 10}]",
		"subsetStatuses: [{name: a, replicas: 2}]")
	h.expect("by the pods that there are",
		"spec.subsets=[map[maxReplicas:7 name:a] map[name:b]] [map[maxReplicas:1 name:a] map[name:b]]")
}

func TestASpreadIsDividedByTheReplicasOfItsWorkload(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, "+fleetWide+
		", spec: {targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: shop}, subsets: [{name: a, maxReplicas: 4}, {name: b}]}}", 0, 0)
	h.in.Divided = false
	if gk, name, ok := TargetOf(h.in.Template); !ok || gk != cloneSetKind || name != "shop" {
		t.Errorf("it is about %s %s (%v)", gk, name, ok)
	}
	const most = "spec.subsets="
	h.expect("evenly while the workload is nowhere", most+
		"[map[maxReplicas:2 name:a] map[name:b]] [map[maxReplicas:2 name:a] map[name:b]]")
	h.in.Target = map[string]int64{"c1": 9, "c2": 3}
	h.expect("then by its replicas", most+
		"[map[maxReplicas:3 name:a] map[name:b]] [map[maxReplicas:1 name:a] map[name:b]]")
	h.report("subsetStatuses: [{name: a, replicas: 0}, {name: b, replicas: 1}]",
		"subsetStatuses: [{name: a, replicas: 9}]")
	h.expect("whatever runs just now", most+
		"[map[maxReplicas:3 name:a] map[name:b]] [map[maxReplicas:1 name:a] map[name:b]]")
	h.in.Target = map[string]int64{"c1": 12}
	h.expect("none where there is none", most+
		"[map[maxReplicas:4 name:a] map[name:b]] [map[maxReplicas:0 name:a] map[name:b]]")
}

func TestTheParallelismOfAJobMeansTheFleet(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, "+fleetWide+", spec: {parallelism: 2}}", 0,
		0, 0)
	h.in.Divided = false
	h.expect("at first", "spec.parallelism=1 1 1", "spec.paused=<nil> <nil> true")
	h.report("desired: 3, active: 1, succeeded: 1", "desired: 3, active: 1, succeeded: 0",
		"desired: 3, active: 0, succeeded: 0")
	h.expect("on the way", "spec.parallelism=1 1 1", "spec.paused=<nil> <nil> true")
	h.report("desired: 3, active: 0, succeeded: 3", "desired: 3, active: 1, succeeded: 1",
		"desired: 3, active: 0, succeeded: 0")
	h.expect("when the first has ended", "spec.parallelism=1 1 1", "spec.paused=<nil> <nil> false")
	h.report("desired: 3, active: 0, succeeded: 3", "desired: 3, active: 0, succeeded: 3",
		"desired: 3, active: 1, succeeded: 1")
	h.expect("when one is left", "spec.parallelism=1 1 2", "spec.paused=<nil> <nil> false")

	h = newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, "+fleetWide+", spec: {parallelism: 5}}", 0, 0)
	h.in.Divided = false
	h.expect("at first", "spec.parallelism=3 2")
	h.report("desired: 10, active: 3", "desired: 2, active: 2")
	h.expect("by nodes", "spec.parallelism=3 2")
	h.report("desired: 10, active: 3, succeeded: 1", "desired: 2, succeeded: 2")
	h.expect("when the small one has ended", "spec.parallelism=5 2")

	// Pulling cannot be paused: where there is not one for each, clusters get it one after the other.
	h = newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, "+fleetWide+", spec: {parallelism: 2}}", 0, 0,
		0)
	h.in.Divided = false
	h.expect("two at first", "spec.parallelism=1 1")
	h.report("desired: 3, active: 0", "desired: 3, active: 1, succeeded: 1")
	h.expect("while they are at it, or about to be", "spec.parallelism=1 1")
	h.report("desired: 3, active: 1, succeeded: 1", "desired: 3, succeeded: 3")
	h.expect("when one has ended", "spec.parallelism=1 1 1")
	h.report("desired: 3, succeeded: 3", "desired: 3, succeeded: 2, failed: 1", "desired: 3, active: 1")
	h.expect("when one is left", "spec.parallelism=1 1 2")
}

// An ImageListPullJob counts images and not nodes, so that what it was given it has until it has ended.
func TestTheParallelismOfAListOfImagesMeansTheFleet(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, "+fleetWide+
		", spec: {images: [a, b], parallelism: 5}}", 0, 0)
	h.in.Divided = false
	h.expect("evenly at first", "spec.parallelism=3 2")
	h.report("desired: 2, active: 2", "desired: 2, active: 1, completed: 1, succeeded: 1")
	h.expect("on the way", "spec.parallelism=3 2")
	h.report("desired: 2, active: 1", "desired: 2, completed: 2, succeeded: 1")
	h.expect("when one has ended", "spec.parallelism=5 2")
	h.edit(int64(2), "spec", "parallelism")
	h.expect("when less is allowed", "spec.parallelism=2 2")

	h = newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, "+fleetWide+
		", spec: {images: [a, b], parallelism: 1}}", 0, 0, 0)
	h.in.Divided = false
	h.expect("one at first", "spec.parallelism=1")
	h.report("desired: 2, completed: 1, succeeded: 1")
	h.expect("while it is at it", "spec.parallelism=1")
	h.report("desired: 2, succeeded: 1, failedImageStatuses: [{name: b}]")
	h.expect("when it has tried both", "spec.parallelism=1 1")
	h.report(silent, `completionTime: "2026-01-01T00:00:00Z", desired: 2, completed: 2, succeeded: 2`)
	h.expect("when the second has ended", "spec.parallelism=1 1 1")
}

func TestPodsToDeleteGoToTheirClusters(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 6, scaleStrategy: {podsToDelete: [x-a, x-b, x-c, x-d]}}}", 3, 3)
	asked, err := PodsAskedFor(h.in.Template, nil)
	if err != nil || fmt.Sprint(asked) != "[x-a x-b x-c x-d]" {
		t.Errorf("asked for are %v (%v)", asked, err)
	}
	h.in.Pods = map[string][]string{"x-a": {"c2"}, "x-b": {"c1"}, "x-c": {}, "x-d": {"c1", "c2"}}
	h.expect("at first", "spec.scaleStrategy.podsToDelete=[x-b] [x-a]")
	h.expectConditions("of one that is nowhere and one that is twice",
		"x-c not found in any responding cluster; x-d found in several clusters")

	// They stay in the Works when they are gone, until the template changes; then they are neither sent nor missed.
	h.in.Pods = nil
	h.expect("when they are gone", "spec.scaleStrategy.podsToDelete=[x-b] [x-a]")
	h.edit([]any{"x-a", "x-b"}, "spec", "scaleStrategy", "podsToDelete")
	h.expect("for another template", "spec.scaleStrategy.podsToDelete=[] []")
	h.expectConditions("of those that are gone", "")
	h.in.Pods = map[string][]string{"x-a": {}, "x-b": {}}
	h.edit("1", "metadata", "annotations", "any")
	h.expect("for another one", "spec.scaleStrategy.podsToDelete=[] []")
	h.expectConditions("of those that are gone", "")
	works := map[string]*workv1alpha1.Work{"c1": h.in.Members[0].Work, "c2": h.in.Members[1].Work}
	if asked, err := PodsAskedFor(h.in.Template, works); err != nil || len(asked) > 0 {
		t.Errorf("asked for again are %v (%v)", asked, err)
	}
	h.in.Pods = map[string][]string{"x-n": {}}
	h.edit([]any{"x-n"}, "spec", "scaleStrategy", "podsToDelete")
	h.expect("of one that never was", "spec.scaleStrategy.podsToDelete=[] []")
	works = map[string]*workv1alpha1.Work{"c1": h.in.Members[0].Work, "c2": h.in.Members[1].Work}
	if asked, err := PodsAskedFor(h.in.Template, works); err != nil || len(asked) > 0 {
		t.Errorf("looked for again are %v (%v)", asked, err)
	}
	h.in.Pods = nil
	h.look()
	h.expectConditions("of one that never was", "x-n not found in any")
	h.edit([]any{}, "spec", "scaleStrategy", "podsToDelete")
	h.look()
	h.expectConditions("without names", "")

	// A copied CloneSet has them routed as well.
	h = newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {updateStrategy: {partition: 50%}, scaleStrategy: {podsToDelete: [x-a]}}}", 3, 3)
	h.in.Divided, h.in.Pods = false, map[string][]string{"x-a": {"c2"}}
	h.expect("copied", "spec.scaleStrategy.podsToDelete=[] [x-a]", "spec.updateStrategy.partition=50% 50%")
}

func TestSidecarSetRollsOutOverClusters(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, "+fleetWide+`, spec: {containers: [{name: s, image: "s:1"}],
		injectionStrategy: {revision: {customVersion: v1, policy: Always}}, updateStrategy: {partition: "90%"}}}`, 0, 0, 0)
	h.in.Divided = false
	h.edit("v1", "metadata", "labels", customVersionLabel)
	h.expect("at first", "spec.injectionStrategy=map[] map[] map[]")
	status := "matchedPods: 3, readyPods: 3, latestRevision: r1, updatedPods: %[1]d, updatedReadyPods: %[1]d"
	h.report(fmt.Sprintf(status, 3), fmt.Sprintf(status, 3), fmt.Sprintf(status, 3))
	h.look()
	if got := h.fieldValues("spec", "injectionStrategy", "revision", "customVersion"); got != "v1 v1 v1" {
		t.Errorf("then the revisions are %s", got)
	}
	h.report(fmt.Sprintf(status, 3), fmt.Sprintf(status, 3), fmt.Sprintf(status, 3))
	h.edit([]any{map[string]any{"name": "s", "image": "s:2"}}, "spec", "containers")
	h.expect("a canary", "spec.updateStrategy.partition=2 100% 100%")
	h.report(fmt.Sprintf(status, 1), fmt.Sprintf(status, 0), fmt.Sprintf(status, 0))
	h.edit(int64(0), "spec", "updateStrategy", "partition")
	h.report(fmt.Sprintf(status, 1), fmt.Sprintf(status, 0), fmt.Sprintf(status, 0))
	h.expect("all, one at a time", "spec.updateStrategy.partition=0 100% 100%", "spec.updateStrategy.maxUnavailable=1 1 1")
}

func TestDaemonSetIsDividedOnlyOnRequest(t *testing.T) {
	template := "{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, %s, spec: {template: {a: 1}, updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}}"
	h := newHub(t, fmt.Sprintf(template, fleetWide), 0, 0, 0)
	h.in.Divided = false
	h.look()
	status := "desiredNumberScheduled: 3, currentNumberScheduled: 3, numberAvailable: 3, updatedNumberScheduled: %d"
	h.report(fmt.Sprintf(status, 3), fmt.Sprintf(status, 3), fmt.Sprintf(status, 3))
	h.expect("at rest", "spec.updateStrategy.rollingUpdate.partition=0 0 0")
	h.edit(int64(2), "spec", "template", "a")
	h.expect("two clusters begin", "spec.updateStrategy.rollingUpdate.partition=0 0 100%",
		"spec.updateStrategy.rollingUpdate.maxUnavailable=1 1 1")
	h.report(fmt.Sprintf(status, 3), fmt.Sprintf(status, 1), fmt.Sprintf(status, 0))
	h.expect("one is done", "spec.updateStrategy.rollingUpdate.partition=0 0 0")

	if concerns, err := Concerns(newHub(t, fmt.Sprintf(template, "metadata: {name: x}")).in.Template, false); concerns ||
		err != nil {
		t.Errorf("it concerns without being asked to (%v)", err)
	}
}

const plainCloneSet = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x, annotations: {}}, spec: {template: {a: 1}, updateStrategy: {rollingUpdate: {maxUnavailable: 9}}}}"

// up returns a report of n pods, all up, of which so many are new.
func up(n, updated int64) string {
	return fmt.Sprintf("replicas: %[1]d, availableReplicas: %[1]d, readyReplicas: %[1]d, updatedReplicas: %[2]d, updatedAvailableReplicas: %[2]d", n, updated)
}

const partitions = "spec.updateStrategy.rollingUpdate.partition="

func TestRolloutPausesBetweenStages(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 4)
	h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit(`[{"percent": 10}, {"percent": 30, "pause": true}, {"clusters": ["c3"]}, {"percent": 100}]`, "metadata",
		"annotations", wellknown.RolloutStagesAnnotation)
	h.look()
	h.report(up(3, 3), up(3, 3), up(4, 4))
	h.edit(int64(2), "spec", "template", "a")
	h.expect("a tenth", partitions+"3 3 3")
	h.report(up(3, 0), up(3, 0), up(4, 1))
	h.expect("three tenths", partitions+"2 2 3")
	h.report(up(3, 1), up(3, 1), up(4, 1))
	h.expect("it pauses", partitions+"2 2 3")
	h.edit("2", "metadata", "annotations", wellknown.RolloutStageAnnotation)
	h.look()
	h.report(up(3, 1), up(3, 1), up(4, 1))
	h.expect("the whole of c3", partitions+"2 2 0")
	h.report(up(3, 1), up(3, 1), up(4, 4))
	h.expect("all", partitions+"0 0 0")
}

func TestAnOrderedRolloutFillsOneClusterAfterTheOther(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.edit("Ordered", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit("c2", "metadata", "annotations", wellknown.RolloutClustersAnnotation)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.edit(int64(5), "spec", "updateStrategy", "rollingUpdate", "partition")
	h.expect("c2 first", partitions+"2 0 3")
}

func TestPartitionFollowsReplicasAndUserChanges(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.edit(int64(5), "spec", "updateStrategy", "rollingUpdate", "partition")
	h.expect("four are new", partitions+"1 2 2")
	h.report(up(3, 2), up(3, 1), up(3, 1))
	// A cluster leaves, and what was new there is made up for; then one joins.
	h.in.Members = h.in.Members[:2]
	h.in.Members[1].Replicas, h.in.Members[0].Replicas = 4, 5
	h.expect("without c3", partitions+"3 2")
	h.report(up(5, 2), up(4, 2))
	h.in.Members[0].Replicas, h.in.Members[1].Replicas = 3, 3
	h.in.Members = append(h.in.Members, Member{Cluster: "c4", Replicas: 3, Reachable: true})
	h.expect("with c4", partitions+"1 1 3")
	h.report(up(3, 2), up(3, 2), up(3, 3))

	h.edit(int64(8), "spec", "updateStrategy", "rollingUpdate", "partition")
	h.report(up(3, 2), up(3, 2), up(3, 3))
	h.expect("raised", partitions+"2 3 3")
	h.report(up(3, 2), up(3, 2), up(3, 3))
	h.expect("and it stays raised", partitions+"2 3 3")
	h.expectConditions("raised", "PartitionRaisedNoRollback")
}

func TestBrokenRolloutStopsEverywhere(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	broken := "replicas: 3, availableReplicas: 2, readyReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 0"
	h.report(broken, up(3, 1), up(3, 0))
	h.in.Members[0].Work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	h.expect("what is new stays", partitions+"2 2 3")
	h.expectConditions("halted", "FleetHalted: the rollout is halted in all clusters because the new revision is unhealthy in c1")
	h.report(broken, up(3, 1), up(3, 0))
	h.in.Members[0].Work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	h.expect("and still", partitions+"2 2 3")
	h.edit("false", "metadata", "annotations", wellknown.AutoHaltAnnotation)
	h.look()
	h.report(broken, up(3, 1), up(3, 0))
	h.in.Members[0].Work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	h.expect("regardless", partitions+"0 0 0")
	h.expectConditions("regardless", "")
}

func TestRollbackFindsTheRemainingOldPods(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.edit("90%", "spec", "updateStrategy", "rollingUpdate", "partition")
	h.expect("a canary", partitions+"2 3 3")
	h.report(up(3, 1), up(3, 0), up(3, 0))
	// Back to the template before: all but the canary are of it.
	h.edit(int64(1), "spec", "template", "a")
	h.look()
	h.report(up(3, 2), up(3, 3), up(3, 3))
	h.expect("eight are of it at once", partitions+"1 0 0")
}

func TestScaleUpTakesTurnsWithASmallBudget(t *testing.T) {
	const limit = "spec.scaleStrategy.maxUnavailable="
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.edit(int64(2), "spec", "scaleStrategy", "maxUnavailable")
	h.expect("at first", limit+"2 0 0")
	h.report(up(3, 3), up(0, 0), up(0, 0))
	h.expect("then the next", limit+"2 2 0")
	h.report(up(3, 3), up(3, 3), up(0, 0))
	h.expect("then the last", limit+"2 2 2")
	h.edit(int64(4), "spec", "scaleStrategy", "maxUnavailable")
	h.expect("one for each", limit+"2 1 1")
}

func TestSurgeIsDividedAsWell(t *testing.T) {
	const surges = "spec.updateStrategy.rollingUpdate.maxSurge="
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.edit(int64(0), "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	h.edit(int64(2), "spec", "updateStrategy", "rollingUpdate", "maxSurge")
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.expect("two clusters begin", partitions+"0 0 3", surges+"1 1 1",
		"spec.updateStrategy.rollingUpdate.maxUnavailable=0 0 0")
	h.report(up(3, 3), up(4, 1), up(3, 0))
	h.expect("one is done", partitions+"0 0 0", surges+"1 1 1")
}

func TestAStatefulSetScalesUpByAtLeastOneInEachCluster(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x}, spec: {podManagementPolicy: Parallel, template: {a: 1}, scaleStrategy: {maxUnavailable: 4}}}", 6, 1, 3)
	h.expect("a number", "spec.scaleStrategy.maxUnavailable=3 1 1")
	h.edit("25%", "spec", "scaleStrategy", "maxUnavailable")
	h.expect("a quarter of ten, rounded down, and one where there would be none",
		"spec.scaleStrategy.maxUnavailable=1 1 1")
}

func TestStatusWithoutUpdatedPodsIsReported(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3)
	h.look()
	h.report(up(3, 3), "replicas: 3")
	h.look()
	h.expectConditions("without counters", "StatusIncomplete: the status reported from c2 has no updatedReplicas")
}

func TestEphemeralJobIsDividedByMatchingPods(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, "+fleetWide+
		", spec: {replicas: 5, parallelism: 2}}", 0, 0, 0)
	h.in.Divided = false
	h.expect("evenly at first", "spec.replicas=2 2 1", "spec.parallelism=1 1 1", "spec.paused=<nil> <nil> true")
	h.report("match: 8", "match: 1", "match: 1")
	h.expect("by the pods that there are, as far as it has not begun", "spec.replicas=3 1 1", "spec.parallelism=1 1 1",
		"spec.paused=<nil> true true")
	h.report("match: 8", "match: 1", "match: 1")
	h.expect("when the second is seen to be paused", "spec.replicas=3 1 1", "spec.parallelism=2 1 1",
		"spec.paused=<nil> true true")
	h.report("match: 8, running: 1, succeeded: 2", "match: 1", "match: 1")
	h.expect("when it nears its end in one, another begins", "spec.replicas=3 1 1", "spec.parallelism=1 1 1",
		"spec.paused=<nil> false true")
	h.report("match: 8, succeeded: 3", "match: 1, running: 1", "match: 1")
	h.expect("when it has ended there, the last begins", "spec.parallelism=1 1 1", "spec.paused=<nil> false false")
	h.report("match: 1, succeeded: 3", "match: 1, succeeded: 1", "match: 3, succeeded: 1")
	h.expect("what ran stays", "spec.replicas=3 1 1")

	few := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, "+fleetWide+", spec: {replicas: 1}}", 0, 0)
	few.in.Divided = false
	few.expect("one pod is in one cluster", "spec.replicas=1")
	few.edit("x", "spec", "replicas")
	if _, err := Shares(few.in); err == nil || !strings.Contains(err.Error(), "spec.replicas: x is not a number of pods") {
		t.Errorf("replicas that are none give %v", err)
	}
}
