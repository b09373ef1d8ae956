package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// running is a job in members, each of which runs at the parallelism that it last read.
type running struct {
	*hub
	nodes, active, done []int64
	// allowed is what each member goes by, and seen the generation of the Work that said it.
	allowed, seen []int64
}

// look has member i take up what its Work says.
func (r *running) takeUp(i int) {
	w := r.in.Members[i].Work
	if w == nil {
		return
	}
	var manifest map[string]any
	if err := json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest); err != nil {
		r.t.Fatal(err)
	}
	r.allowed[i], r.seen[i] = number(manifest, "spec", "parallelism"), w.Generation
	if field(manifest, "spec", "paused") == true {
		r.allowed[i] = 0
	}
}

// sendReport sets the status of member i as its controllers would.
func (r *running) sendReport(i int) {
	m := &r.in.Members[i]
	if m.Work == nil || r.seen[i] == 0 {
		return
	}
	status := map[string]any{"desired": r.nodes[i], "active": r.active[i], "succeeded": r.done[i]}
	if r.in.Template.GetKind() == "ImageListPullJob" { // of one image
		status = map[string]any{"desired": 1, "active": 1}
		if r.done[i] == r.nodes[i] {
			status = map[string]any{"desired": 1, "completed": 1, "succeeded": 1}
		}
	}
	raw, err := json.Marshal(status)
	if err != nil {
		r.t.Fatal(err)
	}
	w := m.Work.DeepCopy()
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		ObservedGeneration: r.seen[i]}}
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: raw}}}
	m.Work = w
}

// Whatever happens and whenever it is seen, no more run at once than the fleet may, and all have run in the end.
func TestAJobKeepsToTheParallelismOfTheFleetAndEnds(t *testing.T) {
	rounds := int64(60)
	if testing.Short() {
		rounds /= 3
	}
	for _, kind := range []string{"BroadcastJob", "ImagePullJob", "ImageListPullJob"} {
		for seed := range rounds {
			random := rand.New(rand.NewSource(seed))
			n := 2 + random.Intn(4)
			most := 1 + random.Int63n(6)
			r := &running{hub: newHub(t, fmt.Sprintf(
				"{apiVersion: apps.kruise.io/v1beta1, kind: %s, %s, spec: {parallelism: %d}}", kind, fleetWide, most),
				make([]int64, n)...),
				nodes: make([]int64, n), active: make([]int64, n), done: make([]int64, n), allowed: make([]int64, n),
				seen: make([]int64, n)}
			r.in.Divided = false
			for i := range r.nodes {
				r.nodes[i] = random.Int63n(8)
			}
			step := func(i, what int) {
				switch what {
				case 0:
					r.look()
				case 1:
					r.takeUp(i)
				case 2:
					r.sendReport(i)
				case 3:
					if r.active[i] > 0 {
						r.active[i]--
						r.done[i]++
					}
				default:
					if r.active[i] < r.allowed[i] && r.done[i]+r.active[i] < r.nodes[i] {
						r.active[i]++
					}
				}
				if all := sum(r.active); all > most {
					t.Fatalf("%s, seed %d: %v run where %d may; members go by %v", kind, seed, r.active, most, r.allowed)
				}
			}
			for range 400 {
				step(random.Intn(n), random.Intn(6))
			}
			for range 15 * n { // and then in order
				for what := range 6 {
					for i := range n {
						step(i, what)
					}
				}
			}
			if fmt.Sprint(r.done) != fmt.Sprint(r.nodes) {
				t.Fatalf("%s, seed %d: %v of %v have run, with a parallelism of %d; granted %s", kind, seed, r.done, r.nodes, most,
					r.fieldValues("spec", "parallelism"))
			}
		}
	}
}
