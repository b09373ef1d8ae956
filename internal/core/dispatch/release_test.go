package dispatch_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/test/kit/coretest"
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

// A new workload has versions in its baseline. Otherwise its first release would replace all pods.
func TestOnlyABaselineWithoutWorksHasVersions(t *testing.T) {
	settings := coretest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a: b}}")
	version := release.VersionOf(settings)
	taken := coretest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop}, data: {a: b}}")
	taken.SetName(version)
	starts := func(configMaps ...*unstructured.Unstructured) *story {
		s := begin(t, clones, threeEach)
		s.edit([]any{map[string]any{"name": "c", "configMap": map[string]any{"name": "settings"}}},
			"spec", "template", "spec", "volumes")
		s.in.ConfigMaps = release.ConfigMaps{}
		for _, c := range configMaps {
			s.in.ConfigMaps[c.GetName()] = c
		}
		return s
	}
	reads := func(s *story) string {
		return fields.Text(fields.Objects(manifest(t, s.in.Existing["eu"]).Object, "spec", "template", "spec", "volumes")[0],
			"configMap", "name")
	}

	s := starts(settings)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	d := s.decide()
	if len(d.ConfigMaps) != 1 || d.ConfigMaps[0].GetName() != version || reads(s) != version || s.awaits() != "" {
		t.Errorf("pods of a new workload read %s, and %d versions are made", reads(s), len(d.ConfigMaps))
	}

	s = starts(settings)
	s.decide()
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	if d := s.decide(); len(d.ConfigMaps) > 0 || d.Baseline == nil || reads(s) != "settings" || s.awaits() != "" {
		t.Errorf("pods that exist read %s, and %d versions are made", reads(s), len(d.ConfigMaps))
	}

	s = starts(settings, taken)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	d = dispatch.Decide(context.Background(), s.in, interpret.New(builtin.Tier()))
	if d.Err == nil || !strings.Contains(d.Err.Error(), version) || len(d.Results) > 0 || d.RecheckAfter == 0 {
		t.Errorf("with a ConfigMap in the way, the decision is %+v", d)
	}

	// Pods keep what they read if a version is deleted by force.
	s = starts(settings)
	s.annotate(releasev1alpha1.ReleaseStrategyAnnotation, gray)
	s.decide()
	missing := func(d dispatch.Decision) string {
		for _, c := range d.Conditions {
			if c.Type == fleet.ConfigMapMissing {
				return c.Message
			}
		}
		return ""
	}
	if d = s.decide(); len(d.ConfigMaps) != 1 || d.ConfigMaps[0].GetName() != version || missing(d) != "" {
		t.Errorf("without the version, %d versions are made, and it reports %q", len(d.ConfigMaps), missing(d))
	}
	s.in.ConfigMaps[version] = d.ConfigMaps[0]
	if d = s.decide(); len(d.ConfigMaps) > 0 || missing(d) != "" {
		t.Errorf("with the version, %d versions are made, and it reports %q", len(d.ConfigMaps), missing(d))
	}
	s.in.ConfigMaps[version] = taken
	if d = s.decide(); len(d.ConfigMaps) > 0 || !strings.Contains(missing(d), "shop/"+version) || reads(s) != version {
		t.Errorf("with another ConfigMap of its name, %d versions are made, and it reports %q", len(d.ConfigMaps), missing(d))
	}
	s.in.ConfigMaps = release.ConfigMaps{}
	if d = s.decide(); len(d.ConfigMaps) > 0 || !strings.Contains(missing(d), "shop/"+version) || reads(s) != version {
		t.Errorf("without the content, %d versions are made, and it reports %q", len(d.ConfigMaps), missing(d))
	}
}
