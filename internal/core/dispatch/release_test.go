package dispatch_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

// decide decides, and stores what the controller would: the baseline, the annotations of the binding and the Works.
func (s *story) decide() dispatch.Decision {
	s.t.Helper()
	d := dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	if d.Err != nil {
		s.t.Fatal(d.Err)
	}
	if d.Baseline != nil {
		s.in.Revisions = map[string]*releasev1alpha1.ReleaseRevision{d.Baseline.Name: d.Baseline}
	}
	s.in.Binding.SetAnnotations(d.Annotations(s.in.Binding.GetAnnotations()))
	existing := map[string]*workv1alpha1.Work{}
	for _, r := range d.Results {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
		existing[r.Cluster] = r.Work
	}
	s.in.Existing = existing
	return d
}

// images are those of each Work, by cluster.
func (s *story) images(clusters ...string) string {
	s.t.Helper()
	var all []string
	for _, c := range clusters {
		image := "none"
		if w := s.in.Existing[c]; w != nil {
			image = fields.Text(fields.Objects(manifest(s.t, w).Object, "spec", "template", "spec", "containers")[0], "image")
		}
		all = append(all, image)
	}
	return strings.Join(all, " ")
}

const gray = "gray"

func TestJoinedClusterGetsThePodsOfOthersBeforeARelease(t *testing.T) {
	s := begin(t, clones, strings.Replace(threeEach, ", {name: ap, replicas: 3}]", "]", 1))
	s.decide()
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	s.image("nginx:2")
	s.decide()
	spec := s.in.Binding.BindingSpec()
	spec.Clusters = append(spec.Clusters, spec.Clusters[0])
	spec.Clusters[2].Name = "ap"
	s.decide()
	if got := s.images("eu", "us", "ap"); got != "nginx:1 nginx:1 nginx:1" {
		t.Errorf("before a release, clusters have %s", got)
	}
	spec.Clusters = spec.Clusters[2:]
	s.in.Existing = nil
	s.decide()
	if got := s.images("ap"); got != "nginx:1" {
		t.Errorf("the only cluster, which is new, has %s", got)
	}
}

func TestChangeTogetherWithTheStrategyWaits(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.decide()
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.image("nginx:2")
	s.decide()
	s.decide()
	if got := s.images("eu", "us", "ap"); got != "nginx:1 nginx:1 nginx:1" {
		t.Errorf("clusters have %s", got)
	}
}

// With an override in each cluster, the pods before the change are not known: nothing is sent rather than the change.
func TestUnknownBaselineKeepsPods(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `{overrideRules: [{overriders: {imageOverrider:
		[{component: Registry, operator: add, value: mirror}]}}]}`)}
	s.decide()
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.image("nginx:2")
	if d := s.decide(); d.Baseline != nil {
		t.Errorf("the baseline is %v", d.Baseline.Spec.Images)
	}
	s.decide()
	if got := s.images("eu", "us", "ap"); got != "mirror/nginx:1 mirror/nginx:1 mirror/nginx:1" {
		t.Errorf("clusters have %s", got)
	}
}

func (s *story) awaits() string {
	s.t.Helper()
	d := s.decide()
	for _, c := range d.Conditions {
		if c.Type == fleet.ChangeAwaitsRelease {
			return c.Message
		}
	}
	return ""
}

func TestWaitingChangeIsReported(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	if got := s.awaits(); got != "" {
		t.Errorf("before a change, it reports %q", got)
	}
	s.image("nginx:2")
	if got := s.awaits(); !strings.Contains(got, "argosy release start cloneset/web -n shop") {
		t.Errorf("after a change, it reports %q", got)
	}
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, "")
	if got := s.awaits(); !strings.Contains(got, "without the annotation") {
		t.Errorf("without the strategy, it reports %q", got)
	}
	if got := s.images("eu", "us", "ap"); got != "nginx:1 nginx:1 nginx:1" {
		t.Errorf("without the strategy, clusters have %s", got)
	}
}

func TestTemplateIsUsedWithoutStrategyAndWaitingChange(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	s.image("nginx:2")
	s.decide()
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, "")
	s.image("nginx:1")
	s.decide()
	if name, ok := s.in.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation]; ok {
		t.Errorf("the binding still names %s", name)
	}
	s.image("nginx:3")
	s.decide()
	if got := s.images("eu", "us", "ap"); got == "nginx:1 nginx:1 nginx:1" {
		t.Errorf("a later change is not sent: clusters have %s", got)
	}
}

func TestClusterNewerThanTheRevisionGetsCurrentOverrides(t *testing.T) {
	s := begin(t, clones, threeEach)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	for _, r := range s.in.Revisions {
		r.CreationTimestamp = metav1.Unix(100, 0)
	}
	joined := s.in.Clusters["ap"].DeepCopy()
	joined.CreationTimestamp = metav1.Unix(200, 0)
	s.in.Clusters["ap"] = joined
	s.in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `{overrideRules: [{overriders: {imageOverrider:
		[{component: Registry, operator: add, value: mirror}]}}]}`)}
	s.decide()
	s.decide()
	if got := s.images("eu", "us", "ap"); got != "nginx:1 nginx:1 mirror/nginx:1" {
		t.Errorf("clusters have %s", got)
	}
}

func TestJoinedClusterGetsTheFrozenRulesForIt(t *testing.T) {
	registry := func(mirror string) []policyv1alpha1.Override {
		return []policyv1alpha1.Override{clusterOverride(t, `{overrideRules: [{overriders: {imageOverrider:
			[{component: Registry, operator: add, value: `+mirror+`}]}}]}`)}
	}
	s := begin(t, clones, threeEach)
	s.in.Overrides = registry("old")
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	for _, r := range s.in.Revisions {
		r.CreationTimestamp = metav1.Unix(100, 0)
	}
	joined := s.in.Clusters["ap"].DeepCopy()
	joined.CreationTimestamp = metav1.Unix(200, 0)
	s.in.Clusters["ap"] = joined
	s.in.Overrides = registry("new")
	s.decide()
	s.decide()
	if got := s.images("eu", "us", "ap"); got != "old/nginx:1 old/nginx:1 old/nginx:1" {
		t.Errorf("clusters have %s", got)
	}
}
