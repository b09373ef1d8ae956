package fleet

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// remember stores what Remember says, and forgets what it says.
func (h *hub) remember() {
	h.t.Helper()
	works := map[string]*workv1alpha1.Work{}
	for _, m := range h.in.Members {
		if m.Work != nil {
			works[m.Cluster] = m.Work
		}
	}
	store, surplus := Remember(h.in.Template, works, h.in.History)
	for _, s := range surplus {
		for i, r := range h.in.History {
			if r.Name == s.Name {
				h.in.History = append(h.in.History[:i:i], h.in.History[i+1:]...)
				break
			}
		}
	}
	if store != nil {
		h.in.History = append(h.in.History, *store)
	}
	if again, more := Remember(h.in.Template, works, h.in.History); again != nil || len(more) > 0 {
		h.t.Fatalf("once more, %v is stored and %v forgotten", again, more)
	}
}

// inject makes the SidecarSet one of a version, with its image.
func (h *hub) inject(version, image string) {
	h.t.Helper()
	h.edit([]any{map[string]any{"name": "s", "image": image}}, "spec", "containers")
	if strings.HasSuffix(h.in.Template.GetAPIVersion(), "v1alpha1") {
		h.edit(version, "metadata", "labels", customVersionLabel)
	} else {
		h.edit(version, "spec", "customVersion")
	}
}

// images are what the Works inject, with the version they name, if any.
func (h *hub) images() string {
	h.t.Helper()
	var all []string
	for i, m := range h.in.Members {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(m.Work.Spec.Workload.Manifests[0].Raw); err != nil {
			h.t.Fatal(err)
		}
		c, _ := list(u.Object, "spec", "containers")[0].(map[string]any)
		all = append(all, fmt.Sprintf("%s=%s", h.in.Members[i].Cluster, text(c, "image")))
		if named := namedVersion(u.Object); named != "" {
			all[i] += "(" + named + ")"
		}
	}
	return strings.Join(all, " ")
}

func (h *hub) injects(when, want string) {
	h.t.Helper()
	h.remember()
	h.expect(when)
	if got := h.images(); got != want {
		h.t.Errorf("%s, injected is %s, want %s", when, got, want)
	}
}

const made = "latestRevision: x"

func TestJoiningClusterGetsVersionBeforeItsName(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			h := newHub(t, "{apiVersion: apps.kruise.io/"+version+
				`, kind: SidecarSet, metadata: {name: x, labels: {a: b}}, spec: {containers: []}}`, 0)
			h.in.Divided = false
			h.inject("v1", "s:1")
			h.injects("at first", "c1=s:1")
			h.report(made)
			h.inject("v2", "s:2")
			h.edit("v1", "spec", "injectionStrategy", "revision", "customVersion")
			h.injects("a member that has had it gets its name at once", "c1=s:2(v1)")
			h.report(made)

			h.in.Members = append(h.in.Members, Member{Cluster: "c2", Reachable: true})
			h.injects("one that joins is given it first", "c1=s:2(v1) c2=s:1")
			if got := h.fieldValues("spec", "updateStrategy", "paused"); got != "<nil> true" {
				t.Errorf("running pods are left alone: paused is %s", got)
			}
			h.report(made, "")
			h.injects("until it has made a revision of it", "c1=s:2(v1) c2=s:1")
			h.report(made, made)
			h.injects("then it gets the name", "c1=s:2(v1) c2=s:2(v1)")
			if got := h.fieldValues("spec", "updateStrategy", "paused"); got != "<nil> <nil>" {
				t.Errorf("then paused is %s", got)
			}
			h.report(made, made)
			h.expectConditions("when all is well", "")

			// Years later both know all that they had.
			h.inject("v3", "s:3")
			h.injects("on to the next", "c1=s:3(v1) c2=s:3(v1)")
			h.report(made, made)
			h.edit("v2", "spec", "injectionStrategy", "revision", "customVersion")
			h.injects("one in between", "c1=s:3(v2) c2=s:3(v2)")

			h.edit("v9", "spec", "injectionStrategy", "revision", "customVersion")
			h.remember()
			h.look()
			h.expectConditions("of one that never was",
				`RevisionMissing: spec.injectionStrategy.revision names the version "v9"`)
		})
	}
}

func TestNewRevisionIsNamedOnceMembersCreatedIt(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: []}}",
		0, 0)
	h.in.Divided = false
	h.inject("v1", "s:1")
	h.injects("at first", "c1=s:1 c2=s:1")
	h.report(made, made)
	h.inject("v2", "s:2")
	h.edit("v2", "spec", "injectionStrategy", "revision", "customVersion")
	h.injects("without its name", "c1=s:2 c2=s:2")
	h.report(made)
	h.injects("in the one that has it", "c1=s:2(v2) c2=s:2")
}

func TestRevisionHistoryLimit(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {revisionHistoryLimit: 0, containers: []}}")
	versions := func() (all []string) {
		for _, r := range h.in.History {
			all = append(all, fmt.Sprintf("%s/%d", r.Version, r.Number))
		}
		return all
	}
	h.remember()
	if got := fmt.Sprint(versions()); !KeepsHistory(h.in.Template) || got != "[/1]" {
		t.Errorf("without names, kept are %s", got)
	}
	h.inject("v1", "s:1")
	h.remember()
	h.edit("v1", "spec", "injectionStrategy", "revision", "customVersion")
	for n := 2; n < 6; n++ {
		h.inject(fmt.Sprintf("v%d", n), fmt.Sprintf("s:%d", n))
		h.remember()
	}
	if got := fmt.Sprint(versions()); got != "[v1/2 v4/5 v5/6]" {
		t.Errorf("kept are %s, want the last two and the one that is injected", got)
	}
	// A version whose author changed it and then reverted the change.
	h.inject("v5", "s:6")
	h.remember()
	h.inject("v5", "s:5")
	h.remember()
	if got := fmt.Sprint(versions()); got != "[v1/2 v5/7 v5/8]" {
		t.Errorf("kept are %s", got)
	}
}

func TestClustersWithOldSidecarsAreReported(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {customVersion: v1, containers: []}}", 0, 0)
	h.in.Divided = false
	h.look()
	h.report(made, made)
	h.look()
	h.expectConditions("at rest", "")
	h.inject("v2", "s:2")
	h.look()
	h.expectConditions("on the way", "")
	h.report(made)
	h.in.Members[1].Reachable = false
	h.look()
	h.expectConditions("of a cluster that does not answer", "RevisionSkew: c2 may still inject the previous sidecars")
	h.in.Members[1].Reachable = true
	h.look()
	h.expectConditions("when it answers", "")
	work := h.in.Members[1].Work.DeepCopy()
	work.Status.Conditions[0].Status = "False"
	h.in.Members[1].Work = work
	h.look()
	h.expectConditions("of a cluster that refuses", "RevisionSkew: c2 may")
}

// Members name their revisions by what they make of them, so that a name of one may mean nothing to another.
func TestRevisionIsTranslatedToTheNameInEachCluster(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: [{name: s, image: s:1}], injectionStrategy: {revision: {policy: Always}}}}", 0, 0)
	h.in.Divided = false
	const named = "spec.injectionStrategy.revision.revisionName"
	h.expect("at first", named+"=<nil> <nil>")
	h.report("latestRevision: x-a", "latestRevision: x-b")
	h.edit("x-a", "spec", "injectionStrategy", "revision", "revisionName")
	h.expect("with the name that one gave", named+"=x-a x-b")
	h.report("latestRevision: x-a", "latestRevision: x-b")
	h.expect("when they have taken it", named+"=x-a x-b")

	h.edit([]any{map[string]any{"name": "s", "image": "s:2"}}, "spec", "containers")
	h.expect("when there is another since", named+"=x-a x-b")
	h.report("latestRevision: x-c", "latestRevision: x-d")
	h.expect("which they have made", named+"=x-a x-b")
	h.edit("x-d", "spec", "injectionStrategy", "revision", "revisionName")
	h.expect("on to that", named+"=x-c x-d")
	h.expectConditions("all the while", "")

	h.report("latestRevision: x-c", "latestRevision: x-d")
	h.in.Members = append(h.in.Members, Member{Cluster: "c3", Reachable: true})
	h.expect("in a cluster that has none", named+"=x-c x-d <nil>")
	h.report(silent, silent, "latestRevision: x-e")
	h.expect("when it has made the one that is named", named+"=x-c x-d x-e")
	h.report(silent, silent, "latestRevision: x-e")

	h.edit("x-a", "spec", "injectionStrategy", "revision", "revisionName")
	h.report("latestRevision: x-c", "latestRevision: x-d", "latestRevision: x-e")
	h.expect("back to what it never had", named+"=x-a x-b x-a")
	work := h.in.Members[2].Work.DeepCopy()
	work.Status.Conditions[0].Status = "False"
	h.in.Members[2].Work = work
	h.look()
	h.expectConditions("when that is refused", `RevisionMissing: spec.injectionStrategy.revision names the revision "x-a", but the hub has not stored what that injects, so it cannot be applied in c3`)

	h.edit("x-z", "spec", "injectionStrategy", "revision", "revisionName")
	h.expect("on to one that nobody has named", named+"=x-z x-z x-z")
	work = h.in.Members[0].Work.DeepCopy()
	work.Status.Conditions[0].Status = "False"
	h.in.Members[0].Work = work
	h.look()
	h.expectConditions("when that is refused", `RevisionMissing: spec.injectionStrategy.revision names the revision "x-z", but its name in c1, c3 is unknown`)
}

// expectImages compares each cluster's image and revision name.
func (h *hub) expectImages(when, want string) {
	h.t.Helper()
	h.remember()
	h.expect(when)
	names := strings.Fields(h.fieldValues("spec", "injectionStrategy", "revision", "revisionName"))
	var all []string
	for i, image := range strings.Fields(h.images()) {
		all = append(all, image+"("+names[i]+")")
	}
	if got := strings.Join(all, " "); got != want {
		h.t.Errorf("%s, injected is %s, want %s", when, got, want)
	}
}

// A revision has another name in each cluster, and none in one that was not there: what it injects is the same.
func TestJoiningClusterGetsRevisionNamedByAnotherCluster(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		h := newHub(t, "{apiVersion: apps.kruise.io/"+version+
			", kind: SidecarSet, metadata: {name: x, labels: {a: b}}, spec: {revisionHistoryLimit: 0, containers: []}}", 0, 0)
		h.in.Divided = false
		image := func(image string) {
			h.edit([]any{map[string]any{"name": "s", "image": image}}, "spec", "containers")
		}
		image("s:1")
		h.expectImages("at first", "c1=s:1(<nil>) c2=s:1(<nil>)")
		if h.in.Members[0].Work.Annotations[wellknown.FleetAnnotation] != "" {
			t.Error("while nobody waits for it, what a member says wakes the others")
		}
		h.report("latestRevision: x-a", "latestRevision: x-b")
		for n := 2; n < 5; n++ {
			image(fmt.Sprintf("s:%d", n))
			h.expectImages("then another", fmt.Sprintf("c1=s:%d(<nil>) c2=s:%d(<nil>)", n, n))
			h.report(fmt.Sprintf("latestRevision: x-a%d", n), fmt.Sprintf("latestRevision: x-b%d", n))
		}
		image("s:5")
		h.edit("x-b4", "spec", "injectionStrategy", "revision", "revisionName")
		h.expectImages("back to the one before by the name of the second", "c1=s:5(x-a4) c2=s:5(x-b4)")
		h.report("latestRevision: x-a5", "latestRevision: x-b5")
		for n := 6; n < 10; n++ {
			image(fmt.Sprintf("s:%d", n))
			h.expectImages("and on", fmt.Sprintf("c1=s:%d(x-a4) c2=s:%d(x-b4)", n, n))
			h.report(fmt.Sprintf("latestRevision: x-a%d", n), fmt.Sprintf("latestRevision: x-b%d", n))
		}

		// The one that gave the name leaves, and one comes that calls it in its own way.
		h.in.Members = append(h.in.Members[:1:1], Member{Cluster: "c3", Reachable: true})
		h.expectImages("one that joins is given it first", "c1=s:9(x-a4) c3=s:4(<nil>)")
		if got := h.fieldValues("spec", "updateStrategy", "paused"); got != "<nil> true" {
			t.Errorf("running pods are left alone: paused is %s", got)
		}
		h.report(silent, "")
		h.expectImages("until it has made a revision of it", "c1=s:9(x-a4) c3=s:4(<nil>)")
		h.report(silent, "latestRevision: x-c1")
		h.expectImages("then it is told as it calls it", "c1=s:9(x-a4) c3=s:9(x-c1)")
		h.report(silent, "latestRevision: x-c2")
		h.expectImages("and so it stays", "c1=s:9(x-a4) c3=s:9(x-c1)")
		h.expectConditions("all the while", "")
		if got := len(h.in.History); got != leastHistory+1 {
			t.Errorf("%d revisions are kept, want the last %d and the one that is named", got, leastHistory)
		}

		h.edit("x-a2", "spec", "injectionStrategy", "revision", "revisionName")
		h.expectImages("of one that is stored no more, who has had it has it", "c1=s:9(x-a2) c3=s:9(x-a2)")
		h.expectConditions("and who has not, cannot",
			`RevisionMissing: spec.injectionStrategy.revision names the revision "x-a2", but the hub has not stored what that injects, so it cannot be applied in c3; apply the SidecarSet as it was then`)
	}
}
