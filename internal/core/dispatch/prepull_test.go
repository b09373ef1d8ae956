package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

// pulling is a story whose clusters pull images first; all but ap serve ImagePullJobs.
type pulling struct {
	*story
	last dispatch.Decision
}

func beginPulling(t *testing.T) *pulling {
	t.Helper()
	s := &pulling{story: begin(t, clones, threeEach)}
	s.in.Now = time.Unix(1_800_000_000, 0)
	for _, name := range []string{"eu", "us"} {
		s.in.Clusters[name].Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps.kruise.io/v1alpha1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "ImagePullJob"}}}}
	}
	s.edit("80%", "metadata", "annotations", wellknown.PrePullAnnotation)
	s.step()
	s.expectImages("at first, where nothing runs", "nginx:1 nginx:1 nginx:1", "")
	return s
}

// step decides once, and writes as the controller does.
func (s *pulling) step() {
	s.t.Helper()
	s.last = dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	if s.last.Err != nil {
		s.t.Fatal(s.last.Err)
	}
	for _, r := range s.last.Results {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
		if was := s.in.Existing[r.Cluster]; was == nil || dispatch.Differs(was, r.Work) {
			s.in.Existing[r.Cluster] = r.Work
			s.writes++
		}
	}
	standing := map[string][]*workv1alpha1.Work{}
	for _, w := range s.last.Pulls {
		cluster, err := names.ClusterOf(w.Namespace)
		if err != nil {
			s.t.Fatal(err)
		}
		if i := slices.IndexFunc(s.in.Pulls[cluster], func(is *workv1alpha1.Work) bool { return is.Name == w.Name }); i >= 0 {
			w = s.in.Pulls[cluster][i]
		} else {
			w.CreationTimestamp = metav1.NewTime(s.in.Now)
			s.writes++
		}
		standing[cluster] = append(standing[cluster], w)
	}
	s.in.Pulls = standing
}

// rest steps until nothing changes.
func (s *pulling) rest() {
	s.t.Helper()
	for range 5 {
		s.step()
	}
	before := s.writes
	if s.step(); s.writes != before {
		s.t.Error("looking again writes")
	}
}

// sendReport sets the status of the pull in a cluster.
func (s *pulling) sendReport(cluster, status string) {
	s.t.Helper()
	for _, w := range s.in.Pulls[cluster] {
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
	}
}

func (s *pulling) expectImages(when, images, pulls string) {
	s.t.Helper()
	s.rest()
	var got, pulled []string
	for _, cluster := range []string{"eu", "us", "ap"} {
		containers, _, err := unstructured.NestedSlice(manifest(s.t, s.in.Existing[cluster]).Object, "spec", "template",
			"spec", "containers")
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, fmt.Sprint(containers[0].(map[string]any)["image"]))
		for _, w := range s.in.Pulls[cluster] {
			image, _, _ := unstructured.NestedString(manifest(s.t, w).Object, "spec", "image")
			pulled = append(pulled, cluster+":"+image)
		}
	}
	if strings.Join(got, " ") != images || strings.Join(pulled, " ") != pulls {
		s.t.Errorf("%s, pods are of %v, want %s; pulled is %v, want %s", when, got, images, pulled, pulls)
	}
}

func TestNewPodsComeOnceTheirImageIsPulled(t *testing.T) {
	s := beginPulling(t)
	s.image("nginx:2")
	s.expectImages("while nobody has it", "nginx:1 nginx:1 nginx:2", "eu:nginx:2 us:nginx:2")
	if len(s.last.Pulling) != 2 || !strings.HasPrefix(s.last.Pulling[0],
		`cluster "eu": it is pulling nginx:2; new pods are created when 80% of its nodes have it, or at 2027-01-15T08:10:00Z`) {
		t.Errorf("reported: %q", s.last.Pulling)
	}
	if s.last.RecheckAfter != 10*time.Minute {
		t.Errorf("it is looked at again in %s", s.last.RecheckAfter)
	}
	s.sendReport("eu", `{"desired": 10, "active": 3, "succeeded": 7}`)
	s.sendReport("us", `{"desired": 0}`)
	s.expectImages("on seven of ten nodes, and where nodes are not counted yet", "nginx:1 nginx:1 nginx:2",
		"eu:nginx:2 us:nginx:2")
	s.sendReport("eu", `{"desired": 10, "active": 2, "succeeded": 8}`)
	s.expectImages("on eight", "nginx:2 nginx:1 nginx:2", "us:nginx:2")

	s.in.Now = s.in.Now.Add(10 * time.Minute)
	s.expectImages("when that has taken too long", "nginx:2 nginx:2 nginx:2", "")
	if len(s.last.Pulling) > 0 {
		t.Errorf("reported: %q", s.last.Pulling)
	}

	// Another image while one is pulled, and back again.
	s.image("nginx:3")
	s.rest()
	s.image("nginx:4")
	s.expectImages("with another image", "nginx:2 nginx:2 nginx:4", "eu:nginx:4 us:nginx:4")
	s.image("nginx:2")
	s.expectImages("with the one that they have", "nginx:2 nginx:2 nginx:2", "")
	s.image("nginx:5")
	s.rest()
	s.edit(nil, "metadata", "annotations", wellknown.PrePullAnnotation)
	s.expectImages("when it is not asked for any more", "nginx:5 nginx:5 nginx:5", "")
}

// Replicas and the like do not wait for images, and what waits is no newer than it is.
func TestTemplateWithoutImageDoesNotWait(t *testing.T) {
	s := beginPulling(t)
	s.image("nginx:2")
	s.rest()
	before := manifest(t, s.in.Existing["eu"]).GetAnnotations()["resourcetemplate.karmada.io/generation"]
	s.edit(int64(12), "spec", "replicas")
	spec := s.in.Binding.BindingSpec()
	spec.Replicas = 12
	for i := range spec.Clusters {
		spec.Clusters[i].Replicas = 4
	}
	s.expectImages("with more replicas", "nginx:1 nginx:1 nginx:2", "eu:nginx:2 us:nginx:2")
	m := manifest(t, s.in.Existing["eu"])
	if n := number(t, m, "spec", "replicas"); n != 4 ||
		m.GetAnnotations()["resourcetemplate.karmada.io/generation"] != before {
		t.Errorf("eu has %d replicas, of generation %s", n, m.GetAnnotations()["resourcetemplate.karmada.io/generation"])
	}
}

func TestRejectedPullDelaysNoRollout(t *testing.T) {
	s := beginPulling(t)
	s.image("nginx:2")
	s.rest()
	for _, w := range s.in.Pulls["eu"] {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse,
			Message: "feature-gate ImagePullJobGate is not enabled"}}
	}
	s.expectImages("where the gate is off", "nginx:2 nginx:1 nginx:2", "us:nginx:2")
}

func TestPullUsesNodesAndSecretsOfPods(t *testing.T) {
	s := beginPulling(t)
	s.edit("2m", "metadata", "annotations", wellknown.PrePullTimeoutAnnotation)
	s.edit(map[string]any{"nodeSelector": map[string]any{"disk": "ssd"},
		"imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"containers":       []any{map[string]any{"name": "main", "image": "nginx:1"}},
		"initContainers":   []any{map[string]any{"name": "init", "image": "init:1"}}}, "spec", "template", "spec")
	s.rest()
	m := manifest(t, s.in.Pulls["us"][0])
	spec := m.Object["spec"]
	if got, want := fmt.Sprint(spec), "map[completionPolicy:map[activeDeadlineSeconds:120 type:Always] image:init:1 parallelism:10 pullSecrets:[registry] selector:map[matchLabels:map[disk:ssd]]]"; got != want || m.GetNamespace() != "shop" || m.GetAPIVersion() != "apps.kruise.io/v1alpha1" {
		t.Errorf("pulled is by %s in %s, %s, want %s", m.GetAPIVersion(), m.GetNamespace(), got, want)
	}
	for key, value := range map[string]string{wellknown.PrePullAnnotation: "5",
		wellknown.PrePullTimeoutAnnotation: "soon"} {
		s := beginPulling(t)
		s.edit(value, "metadata", "annotations", key)
		if d := dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier())); d.Err == nil ||
			!strings.Contains(d.Err.Error(), key) {
			t.Errorf("%s: %s gives %v", key, value, d.Err)
		}
	}
}
