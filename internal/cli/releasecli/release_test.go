package releasecli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

const releaseTemplate = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop, uid: u-1, annotations: {argosy.io/release-strategy: one-two-seven}}
spec:
  replicas: 20
  updateStrategy: {maxUnavailable: "50%"}
  template: {spec: {containers: [{name: main, image: "web:1"}]}}
`

const releaseStrategy = `
apiVersion: release.argosy.io/v1alpha1
kind: ReleaseStrategy
metadata: {name: one-two-seven, namespace: shop}
spec:
  stages:
  - {name: one, to: {weight: 1}, soak: 5m}
  - {name: two, to: {weight: 2}, before: [{name: sign}]}
  - {name: seven, to: {weight: 7}, after: [{name: look, approval: {count: 2}}]}
`

// releaseHub is a hub in memory with a CloneSet of web:2 whose clusters have web:1.
type releaseHub struct {
	*releases
	t      *testing.T
	shown  *bytes.Buffer
	denied string // kind that the user may not read
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func newReleaseHub(t *testing.T, objects ...client.Object) *releaseHub {
	t.Helper()
	h := &releaseHub{t: t, shown: &bytes.Buffer{}}
	template := &unstructured.Unstructured{}
	decode(t, releaseTemplate, &template.Object)
	strategy := &releasev1alpha1.ReleaseStrategy{}
	decode(t, releaseStrategy, strategy)
	gvk := template.GroupVersionKind()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion(), {Version: "v1"}})
	mapper.Add(gvk, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)

	binding := &workv1alpha2.ResourceBinding{}
	binding.Namespace, binding.Name = "shop", names.Binding(gvk.Kind, "web")
	binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: gvk.Kind,
		Namespace: "shop", Name: "web"}
	binding.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	binding.Spec.Replicas = 20
	objects = append(objects, strategy, binding)
	for _, cluster := range []string{"eu", "us"} {
		binding.Spec.Clusters = append(binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster, Replicas: 10})
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
		raw, err := template.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
			Name: names.WorkFor(binding.Name, gvk.GroupKind(), "web", "shop")}}
		work.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
		work.Spec.Workload.Manifests[0].Raw = raw
		objects = append(objects, work)
	}
	changed := template.DeepCopy()
	if err := unstructured.SetNestedSlice(changed.Object, []any{map[string]any{"name": "main", "image": "web:2"}}, "spec",
		"template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	for _, old := range []*unstructured.Unstructured{template, changed} {
		revision := release.NewRevision(old, nil)
		objects = append(objects, revision)
	}
	objects = append(objects, changed)

	s := hubcli.Scheme
	forbidden := func(obj any) error {
		if h.denied != "" && strings.Contains(strings.ToLower(typeName(obj)), h.denied) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: h.denied}, "", errors.New("no"))
		}
		return nil
	}
	hub := fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&releasev1alpha1.Release{}).
		WithIndex(&workv1alpha1.Work{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if err := forbidden(obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := forbidden(list); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	h.releases = &releases{client: hub, mapper: mapper, namespace: "shop", out: h.shown,
		now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }}
	return h
}

func typeName(obj any) string {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		return strings.ToLower(obj.GetKind()) + "s"
	case *workv1alpha1.WorkList:
		return "works"
	case *policyv1alpha1.OverridePolicyList, *policyv1alpha1.ClusterOverridePolicyList:
		return "overridepolicies"
	case *metav1.PartialObjectMetadataList:
		return strings.ToLower(obj.Kind)
	case *releasev1alpha1.ReleaseRevision:
		return "releaserevisions"
	case *releasev1alpha1.ReleaseGuardList:
		return "releaseguards"
	case *autoscalingv1alpha1.FederatedHPAList:
		return "federatedhpas"
	case *workv1alpha2.ResourceBinding:
		return "resourcebindings"
	}
	return ""
}

// failing is the status of a release whose first stage has failed.
const failing = `
phase: Paused
reason: PausedByFailure
stage: one
conditions:
- type: Progressing
  status: "False"
  reason: PausedByFailure
  message: stage one has failed
  lastTransitionTime: "2026-01-01T11:00:00Z"
stages:
- name: one
  phase: Failed
  attempt: 3
  clusterNames: [eu, us]
  clusters: [{name: eu, workload: web, replicas: 10, target: 1, new: 1, phase: Failed, message: ImagePullBackOff}]
`

// withRevisions names the revisions of the hub in a release.
func (h *releaseHub) withRevisions(rel *releasev1alpha1.Release) *releasev1alpha1.Release {
	h.t.Helper()
	plan, err := h.reader().Plan(h.t.Context(), h.drafted(&draft{}))
	if err != nil {
		h.t.Fatal(err)
	}
	strategy := &releasev1alpha1.ReleaseStrategy{}
	decode(h.t, releaseStrategy, strategy)
	rel.Status.Strategy = &strategy.Spec
	rel.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: plan.Targets[0].From,
		To: plan.Targets[0].To}}
	return rel
}

func (h *releaseHub) drafted(d *draft) *releasev1alpha1.Release {
	h.t.Helper()
	rel, err := d.release(h.t.Context(), h.releases, "clonesets", "web")
	if err != nil {
		h.t.Fatal(err)
	}
	return rel
}

// create stores a release with its status.
func (h *releaseHub) create(rel *releasev1alpha1.Release) {
	h.t.Helper()
	status := rel.Status
	if err := h.client.Create(h.t.Context(), rel); err != nil {
		h.t.Fatal(err)
	}
	rel.Status = status
	if err := h.client.Status().Update(h.t.Context(), rel); err != nil {
		h.t.Fatal(err)
	}
}

func (h *releaseHub) expect(texts ...string) {
	h.t.Helper()
	got := strings.Join(strings.Fields(h.shown.String()), " ")
	for _, want := range texts {
		if !strings.Contains(got, want) {
			h.t.Errorf("%q is not in what is printed:\n%s", want, h.shown)
		}
	}
}

func TestReleasePlanShowsEachClusterOfEachStage(t *testing.T) {
	h := newReleaseHub(t)
	plan, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := printPlan(h.shown, plan); err != nil {
		t.Fatal(err)
	}
	h.expect("Stage 1 of 3: one CLUSTER REPLICAS NEW BEFORE NEW AFTER eu 10 0 1 us 10 0 1 "+
		"2 new pods, which must stay available for 5m0s",
		"Stage 2 of 3: two Before it starts: sign CLUSTER REPLICAS NEW BEFORE NEW AFTER eu 10 1 3 us 10 1 3 4 new pods",
		"eu 10 3 10 us 10 3 10 14 new pods, then look (2 approvals)")
	var again release.ReleasePlan
	raw, err := json.Marshal(plan)
	if err != nil || json.Unmarshal(raw, &again) != nil || again.Hash == "" || len(again.Steps) < 6 ||
		again.Stages[2].Clusters[1].New != 10 {
		t.Errorf("as JSON, the plan is %s, %v", raw, err)
	}
}

func TestReleasePlanNamesTheAutoscalersThatItFreezes(t *testing.T) {
	scaler := func(name, workload string) *autoscalingv1alpha1.FederatedHPA {
		f := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1beta1",
			Kind: "CloneSet", Name: workload}
		return f
	}
	h := newReleaseHub(t, scaler("by-load", "web"), scaler("other", "db"))
	notes := func() string {
		t.Helper()
		plan, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plan.Notes, "; ")
	}
	if got := notes(); got != "" {
		t.Errorf("with autoscaling: Follow, the notes are %q", got)
	}
	s := &releasev1alpha1.ReleaseStrategy{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "one-two-seven"}, s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Autoscaling = releasev1alpha1.AutoscalingFreeze
	if err := h.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := notes(); got != "autoscaling: Freeze: FederatedHPA by-load does not scale CloneSet web during a stage" {
		t.Errorf("with autoscaling: Freeze, the notes are %q", got)
	}
	h.denied = "federatedhpas"
	if got := notes(); got != "you may not list FederatedHPAs: which of them the release freezes is not known" {
		t.Errorf("without the right to list FederatedHPAs, the notes are %q", got)
	}
}

func TestReleasePlanIsTheSameWithoutTheRightToReadWorks(t *testing.T) {
	h := newReleaseHub(t)
	want, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
	if err != nil {
		t.Fatal(err)
	}
	h.denied = "works"
	got, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
	if err != nil || got.Hash != want.Hash || got.Targets[0].From != "" || len(got.Notes) != 2 ||
		!strings.Contains(got.Notes[1], "may not list Works") {
		t.Errorf("without Works, the plan is %+v, %v; want that of %+v and a note", got, err, want)
	}
}

func TestReleasePlanHasTheVersionsOfConfigMaps(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
		Data: map[string]string{"value": "1"}}
	h := newReleaseHub(t, settings)
	write := func(obj client.Object) {
		t.Helper()
		if err := h.client.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	strategy, binding := &releasev1alpha1.ReleaseStrategy{}, &workv1alpha2.ResourceBinding{}
	for name, obj := range map[string]client.Object{"one-two-seven": strategy, "web-cloneset": binding} {
		if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, obj); err != nil {
			t.Fatal(err)
		}
	}
	strategy.Spec.Config, binding.Spec.PropagateDeps = releasev1alpha1.ConfigVersioned, true
	write(strategy)
	write(binding)
	web, err := h.reader().Template(t.Context(), h.drafted(&draft{}).Spec.Targets[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(web.Object, []any{map[string]any{"name": "c",
		"configMap": map[string]any{"name": "settings"}}}, "spec", "template", "spec", "volumes"); err != nil {
		t.Fatal(err)
	}
	write(web)
	revisions := map[string]bool{}
	for _, value := range []string{"1", "2"} {
		settings.Data["value"] = value
		write(settings)
		p, err := h.reader().Plan(t.Context(), h.drafted(&draft{}))
		if err != nil || len(p.Notes) > 0 {
			t.Fatalf("the plan is %+v, %v", p, err)
		}
		revisions[p.Targets[0].To] = true
	}
	if len(revisions) != 2 {
		t.Errorf("a change of the ConfigMap does not change the revision %v", revisions)
	}
	h.denied = "configmaps"
	if p, err := h.reader().Plan(t.Context(), h.drafted(&draft{})); err != nil || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "may not read the ConfigMaps") {
		t.Errorf("without the right to read ConfigMaps, the plan is %+v, %v", p, err)
	}
}

func TestReleasePlanNamesAVersionThatWasDeleted(t *testing.T) {
	h := newReleaseHub(t)
	binding := &workv1alpha2.ResourceBinding{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-cloneset"}, binding); err != nil {
		t.Fatal(err)
	}
	binding.Spec.PropagateDeps = true
	if err := h.client.Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	old := &releasev1alpha1.ReleaseRevision{}
	decode(t, `{metadata: {name: cloneset-web-old, namespace: shop}, spec: {hash: a, podsHash: b,
		target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, config: [{kind: ConfigMap, name: web,
		hash: aaaaaaaa}], pods: [{path: spec.template, value: {spec: {containers: [{name: main,
		envFrom: [{configMapRef: {name: web-aaaaaaaa}}]}]}}}]}}`, old)
	if err := h.client.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	plan := func() (*release.ReleasePlan, error) {
		return h.reader().Plan(t.Context(), h.drafted(&draft{revision: old.Name}))
	}
	if _, err := plan(); err == nil || !strings.Contains(err.Error(), "ConfigMapNotFound") ||
		!strings.Contains(err.Error(), "read ConfigMap web-aaaaaaaa, which was deleted") {
		t.Errorf("without the version, the error is %v", err)
	}
	h.denied = "configmaps"
	if p, err := plan(); err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "may not read ConfigMaps") {
		t.Errorf("without the right to read it, the plan is %+v, %v", p, err)
	}
	h.denied = ""
	version := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-aaaaaaaa"}}
	if err := h.client.Create(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if p, err := plan(); err != nil || len(p.Notes) > 0 {
		t.Errorf("with the version, the plan is %+v, %v", p, err)
	}
}

func TestReleasePlanNamesWhyTheHubWouldRefuse(t *testing.T) {
	h := newReleaseHub(t)
	for want, d := range map[string]*draft{
		"RevisionNotFound": {revision: "cloneset-web-none"},
		"StrategyNotFound": {strategy: "none"},
	} {
		if _, err := h.reader().Plan(t.Context(), h.drafted(d)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	template, err := h.reader().Template(t.Context(), h.drafted(&draft{}).Spec.Targets[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(template.Object, []any{map[string]any{"name": "main", "image": "web:1"}}, "spec",
		"template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	if err := h.client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	if _, err := h.reader().Plan(t.Context(), h.drafted(&draft{})); err == nil ||
		!strings.Contains(err.Error(), "SameRevision") {
		t.Errorf("for the pods that clusters have, the error is %v", err)
	}
	if _, err := (&draft{}).release(t.Context(), h.releases, "clonesets", "none"); err == nil ||
		!strings.Contains(err.Error(), `no CloneSet "none"`) {
		t.Errorf("for a workload that does not exist, the error is %v", err)
	}
}

func TestReleaseStartCreatesARelease(t *testing.T) {
	h := newReleaseHub(t)
	d := &draft{supersede: "Replace", change: releasev1alpha1.ReleaseChange{URL: "https://ci.example.com/1",
		Commit: "3f2c", Ticket: "T-1", Reason: "faster"}}
	if err := h.start(t.Context(), d, "clonesets", "web", false, 0); err != nil {
		t.Fatal(err)
	}
	var all releasev1alpha1.ReleaseList
	if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("there are %d releases, %v", len(all.Items), err)
	}
	got := all.Items[0]
	if !strings.HasPrefix(got.Name, "web-") || got.Spec.StrategyRef == nil ||
		got.Spec.StrategyRef.Name != "one-two-seven" || got.Spec.Supersede != releasev1alpha1.SupersedeReplace ||
		got.Spec.Targets[0].To.Current == nil || *got.Spec.Change != d.change {
		t.Errorf("the release is %+v", got)
	}
	h.expect("release " + got.Name + " is created")
}

func TestReleaseStartReadsAStrategyFromAFile(t *testing.T) {
	h := newReleaseHub(t)
	file := filepath.Join(t.TempDir(), "strategy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(releaseStrategy)
	rel := h.drafted(&draft{file: file, revision: "cloneset-web-1"})
	if rel.Spec.Strategy == nil || len(rel.Spec.Strategy.Stages) != 3 || rel.Spec.StrategyRef != nil ||
		rel.Spec.Targets[0].To.Revision != "cloneset-web-1" || rel.Spec.Targets[0].To.Current != nil {
		t.Errorf("the release is %+v", rel.Spec)
	}
	for text, want := range map[string]string{
		strings.Replace(releaseStrategy, "soak:", "soaks:", 1):           "soaks",
		strings.Replace(releaseStrategy, "ReleaseStrategy", "Secret", 1): "want one ReleaseStrategy",
	} {
		write(text)
		if _, err := (&draft{file: file}).release(t.Context(), h.releases, "clonesets", "web"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestReleaseStartNeedsAStrategy(t *testing.T) {
	h := newReleaseHub(t)
	template, err := h.reader().Template(t.Context(), clitest.Started("{}").Spec.Targets[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	template.SetAnnotations(nil)
	if err := h.client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	err = h.start(t.Context(), &draft{}, "clonesets", "web", false, 0)
	if err == nil || !strings.Contains(err.Error(), "--strategy or -f") {
		t.Errorf("the error is %v", err)
	}
}

// The hub would accept the release and then refuse it, so that the command had succeeded.
func TestReleaseStartRefusesNamesThatDoNotExist(t *testing.T) {
	for want, d := range map[string]*draft{
		`there is no ReleaseStrategy "nosuch" in namespace "shop"; there are: one-two-seven`: {strategy: "nosuch"},
		`there is no ReleaseRevision "nosuch" in namespace "shop"; there are: `:              {revision: "nosuch"},
	} {
		h := newReleaseHub(t)
		err := h.start(t.Context(), d, "clonesets", "web", false, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
		var all releasev1alpha1.ReleaseList
		if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
			t.Errorf("there are %d releases, %v", len(all.Items), err)
		}
		h.denied = "releasestrategylist"
		if d.strategy != "" && h.start(t.Context(), d, "clonesets", "web", false, 0) != nil {
			t.Error("a user who may not list strategies cannot start a release")
		}
	}
}

// updated is a stage that has updated pods.
const updated = `stages: [{name: one, phase: Done, attempt: 1, startedAt: "2026-01-01T00:00:00Z",
	endedAt: "2026-01-01T00:10:00Z"}]`

// failedRollback is the status of a release whose rollback has failed.
const failedRollback = `{phase: Failed, rollback: {reason: PodsFailed, startedAt: "2026-01-01T00:00:00Z"}, ` + updated + `}`

func TestReleaseWatchHasAnExitCodeForEachOutcome(t *testing.T) {
	for phase, want := range map[string]int{"Succeeded": 0, "Failed": 1, "Aborted": 1, "Superseded": 1, "RolledBack": 2} {
		h := newReleaseHub(t)
		h.create(clitest.Started("observedGeneration: 1\nphase: " + phase))
		if got := codeOf(h.watch(t.Context(), "r1", 0)); got != want {
			t.Errorf("%s: the exit code is %d, want %d", phase, got, want)
		}
	}
	h := newReleaseHub(t)
	rel := clitest.Started("observedGeneration: 1\nphase: Succeeded")
	rel.Spec.State = releasev1alpha1.StateRollback
	h.create(rel)
	if err := h.watch(t.Context(), "r1", 0); codeOf(err) != 1 || !strings.Contains(err.Error(), "was not rolled back") {
		t.Errorf("for a rollback that was refused, the error is %v", err)
	}
	h = newReleaseHub(t)
	rel = clitest.Started("{observedGeneration: 1, phase: Succeeded, conditions: [{type: Progressing, status: \"False\", " +
		"reason: NotRolledBack, message: release r2 has followed, lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}")
	rel.Spec.State = releasev1alpha1.StateRollback
	h.create(rel)
	if err := h.watch(t.Context(), "r1", 0); codeOf(err) != 1 ||
		!strings.Contains(err.Error(), "cannot be rolled back: release r2 has followed") {
		t.Errorf("for a rollback that was refused with a reason, the error is %v", err)
	}
}

func codeOf(err error) int {
	var exit hubcli.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return -1
}

func TestReleaseWatchPrintsUntilTheEnd(t *testing.T) {
	h := newReleaseHub(t)
	rel := clitest.Started(clitest.Gated)
	h.create(rel)
	shown := make(chan struct{}, 8)
	h.out = writerFunc(func(p []byte) (int, error) {
		n, err := h.shown.Write(p)
		if strings.Contains(string(p), "approval") {
			shown <- struct{}{}
		}
		return n, err
	})
	ended := make(chan error, 1)
	go func() { ended <- h.watch(t.Context(), "r1", 0) }()
	<-shown
	rel.Status.Phase = releasev1alpha1.ReleaseSucceeded
	rel.Status.Journal = append(rel.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: 3,
		At: metav1.NewTime(h.now()), Type: releasev1alpha1.JournalPhase, Reason: "Completed"})
	if err := h.client.Status().Update(t.Context(), rel); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	h.expect("2026-01-01T11:30:00Z Stage one Done it waits for approval: gates sign of stage two; next: " +
		"`argosy release approve r1 -n shop` 2026-01-01T12:00:00Z Phase Succeeded (Completed) it has succeeded")
	if n := strings.Count(h.shown.String(), "Stage one Done"); n != 1 {
		t.Errorf("an entry of the journal is printed %d times", n)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestReleaseWatchTimesOutWithCodeThree(t *testing.T) {
	h := newReleaseHub(t)
	h.create(clitest.Started(clitest.Gated))
	err := h.watch(t.Context(), "r1", time.Millisecond)
	if codeOf(err) != 3 || !strings.Contains(err.Error(), "has not ended within 1ms") {
		t.Errorf("the error is %v", err)
	}
}

func TestReleaseStatusShowsTheLastValueOfACheck(t *testing.T) {
	h := newReleaseHub(t)
	r := clitest.Started(strings.NewReplacer("WaitingForApproval", "CheckInconclusive",
		"name: sign, position: Before, phase: Waiting,",
		"name: errors, position: Before, phase: Waiting, check: {name: error-rate, attempt: 2, key: k, "+
			`verdict: Inconclusive, failed: 1, value: "0.97", control: "0.5", message: no number},`).Replace(clitest.Gated))
	if err := printRelease(h.shown, r, h.now()); err != nil {
		t.Fatal(err)
	}
	h.expect("errors: Waiting (Inconclusive, 1 failed, last 0.97, control 0.5: no number) for 30m",
		"It waits for checks that have no result: errors of stage two (Inconclusive, 1 failed, last 0.97",
		"argosy release skip r1 -n shop --reason TEXT")
	if waiting := release.WaitingGates(r); len(waiting) > 0 {
		t.Errorf("a user can approve %+v", waiting)
	}
}

func TestReleaseStatusNamesJobsOfTheHub(t *testing.T) {
	h := newReleaseHub(t)
	r := clitest.Started(clitest.Gated)
	r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerTemplate, Revision: "rev"}
	if err := printRelease(h.shown, r, h.now()); err != nil {
		t.Fatal(err)
	}
	h.expect("The hub started it, because the workload has changed.")
}

func TestReleaseViewReplacesItsOutputOnATerminal(t *testing.T) {
	var out bytes.Buffer
	v := &releaseView{out: &out, live: true, now: time.Now}
	for range 2 {
		if err := v.show(clitest.Started(clitest.Gated)); err != nil {
			t.Fatal(err)
		}
	}
	var once bytes.Buffer
	if err := printRelease(&once, clitest.Started(clitest.Gated), time.Now()); err != nil {
		t.Fatal(err)
	}
	up := fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(once.String(), "\n"))
	first, second, replaced := strings.Cut(out.String(), up)
	if !replaced || first != second {
		t.Errorf("it writes %q", out.String())
	}
}

func TestReleaseStatusShowsStagesAndTheNextCommand(t *testing.T) {
	h := newReleaseHub(t)
	if err := printRelease(h.shown, clitest.Started(clitest.Gated), h.now()); err != nil {
		t.Fatal(err)
	}
	h.expect("Release shop/r1: Running (WaitingForApproval), 2/20 pods are new",
		"STAGE PHASE CLUSTERS PODS GATES REASON", "one Done 2/2 2/2 <none> <none>",
		"two Gated <none> <none> sign: Waiting for 30m WaitingForApproval",
		"It waits for approval: gates sign of stage two. Next: `argosy release approve r1 -n shop`")
	h.shown.Reset()
	back := clitest.Started(clitest.Gated)
	back.Status.Phase, back.Status.Progress = releasev1alpha1.ReleaseRollingBack, "18/20"
	back.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{Reason: releasev1alpha1.ReasonUserRequest}
	if err := printRelease(h.shown, back, h.now()); err != nil {
		t.Fatal(err)
	}
	h.expect("18/20 pods have the former revision")
	h.shown.Reset()
	if err := printRelease(h.shown, clitest.Started(failing), h.now()); err != nil {
		t.Fatal(err)
	}
	h.expect("STAGE CLUSTER TARGET NEW AVAILABLE PHASE MESSAGE one eu web 1/1 0 Failed ImagePullBackOff",
		"retry r1 -n shop --reason TEXT")
}

func TestReleaseApprovalIsForTheDisplayedRevisionAndAttempt(t *testing.T) {
	h := newReleaseHub(t)
	h.create(h.withRevisions(clitest.Started(clitest.Gated)))
	h.answers = strings.NewReader("y\n")
	if err := h.decide(t.Context(), "r1", &verdict{verdict: releasev1alpha1.VerdictApprove, comment: "good"}); err != nil {
		t.Fatal(err)
	}
	h.expect("An approval starts stage: two Before it starts: sign CLUSTER REPLICAS NEW BEFORE NEW AFTER eu 10 1 3",
		"An approval starts stage: seven", "image of main: web:1 → web:2",
		"Approve gate sign of stage two (attempt 2) for revision abc?")
	var all releasev1alpha1.ReleaseApprovalList
	if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("there are %d approvals, %v", len(all.Items), err)
	}
	want := releasev1alpha1.ReleaseApprovalSpec{Release: "r1", ReleaseUID: "uid-r1", Revision: "abc", Stage: "two",
		Position: releasev1alpha1.GateBefore, Gate: "sign", Attempt: 2, Verdict: releasev1alpha1.VerdictApprove,
		Comment: "good"}
	if got := all.Items[0].Spec; got != want {
		t.Errorf("the approval is %+v, want %+v", got, want)
	}
}

func TestReleaseApprovalIsRefused(t *testing.T) {
	approve := releasev1alpha1.VerdictApprove
	for name, c := range map[string]struct {
		status, answer string
		v              verdict
		want           string
	}{
		"without a terminal and --yes": {clitest.Gated, "", verdict{verdict: approve}, "add --yes"},
		"by another answer":            {clitest.Gated, "n\n", verdict{verdict: approve}, "nothing was changed"},
		"at another gate":              {clitest.Gated, "y\n", verdict{verdict: approve, gate: "look"}, "it waits at sign"},
		"where nothing waits":          {failing, "y\n", verdict{verdict: approve}, "waits at no gate"},
		"at one of several": {strings.Replace(clitest.Gated, "gates: [",
			"gates: [{name: b, position: Before, phase: Waiting}, ", 1),
			"y\n", verdict{verdict: approve}, "choose one with --gate"},
	} {
		h := newReleaseHub(t)
		h.create(clitest.Started(c.status))
		if c.answer != "" {
			h.answers = strings.NewReader(c.answer)
		}
		err := h.decide(t.Context(), "r1", &c.v)
		var all releasev1alpha1.ReleaseApprovalList
		if listed := h.client.List(t.Context(), &all); listed != nil || len(all.Items) > 0 {
			t.Errorf("%s: there are %d approvals, %v", name, len(all.Items), listed)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}

func TestReleaseRejectionNeedsNoTerminalWithYes(t *testing.T) {
	h := newReleaseHub(t)
	h.create(clitest.Started(clitest.Gated))
	h.denied = "releaserevisions"
	h.yes = true
	if err := h.decide(t.Context(), "r1", &verdict{verdict: releasev1alpha1.VerdictReject, gate: "sign"}); err != nil {
		t.Fatal(err)
	}
	var all releasev1alpha1.ReleaseApprovalList
	if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) != 1 ||
		all.Items[0].Spec.Verdict != releasev1alpha1.VerdictReject {
		t.Errorf("the approvals are %+v, %v", all.Items, err)
	}
	h.expect("gate sign of stage two is rejected by you")
}

func TestReleaseVerbsSetTheState(t *testing.T) {
	for name, c := range map[string]struct {
		verb        string
		status      string
		state, want releasev1alpha1.ReleaseState
		prints      string
	}{
		"pause":                      {releasev1alpha1.VerbPause, clitest.Gated, "Run", "Pause", "will be paused"},
		"pause twice":                {releasev1alpha1.VerbPause, clitest.Gated, "Pause", "Pause", "already paused"},
		"pause a rollback":           {releasev1alpha1.VerbPause, "phase: RollingBack", "Run", "Run", "cannot be paused"},
		"resume":                     {releasev1alpha1.VerbResume, "phase: Paused", "Pause", "Run", "will be resumed"},
		"resume what runs":           {releasev1alpha1.VerbResume, clitest.Gated, "Run", "Run", "is not paused"},
		"resume a failed stage":      {releasev1alpha1.VerbResume, failing, "Run", "Run", "release retry r1"},
		"resume with a failed stage": {releasev1alpha1.VerbResume, failing, "Pause", "Run", "stage one has failed"},
		"abort":                      {releasev1alpha1.VerbAbort, clitest.Gated, "Run", "Abort", "pods stay as they are"},
		"abort what has ended":       {releasev1alpha1.VerbAbort, "phase: RolledBack", "Run", "Run", "has ended"},
		"roll back":                  {releasev1alpha1.VerbRollback, clitest.Gated, "Run", "Rollback", "will be rolled back"},
		"roll back after success": {releasev1alpha1.VerbRollback, "{phase: Succeeded, " + updated + "}", "Run", "Rollback",
			"will be rolled back"},
		"roll back an aborted one": {releasev1alpha1.VerbRollback, "{phase: Aborted, " + updated + "}", "Abort", "Rollback",
			"will be rolled back"},
		"roll back without pods": {releasev1alpha1.VerbRollback, "phase: Aborted", "Abort", "Abort",
			"it has updated no pods"},
		"roll back what is asked for": {releasev1alpha1.VerbRollback, "{phase: Succeeded, " + updated + "}", "Rollback",
			"Rollback", "requested already"},
		"roll back after a failed rollback": {releasev1alpha1.VerbRollback, failedRollback, "Run", "Rollback",
			"will be rolled back"},
		"roll back again": {releasev1alpha1.VerbRollback, failedRollback, "Rollback", "Rollback",
			"will be rolled back"},
		"roll back a refused one": {releasev1alpha1.VerbRollback, "phase: Failed", "Run", "Run", "has ended"},
		"roll back twice":         {releasev1alpha1.VerbRollback, "phase: RollingBack", "Rollback", "Rollback", "already"},
		"roll back what was":      {releasev1alpha1.VerbRollback, "phase: RolledBack", "Run", "Run", "has ended"},
	} {
		h := newReleaseHub(t)
		rel := clitest.Started(c.status)
		rel.Spec.State = c.state
		h.create(rel)
		h.yes = true
		err := h.setState(t.Context(), "r1", c.verb, "because")
		printed := h.shown.String()
		if err != nil {
			printed += err.Error()
		}
		got, getErr := h.get(t.Context(), "r1")
		if getErr != nil {
			t.Fatal(getErr)
		}
		reason := got.Annotations[releasev1alpha1.ReleaseReasonAnnotation]
		written := c.state != c.want || name == "roll back again"
		if got.Spec.State != c.want || !strings.Contains(printed, c.prints) || (reason == "because") != written {
			t.Errorf("%s: the state is %s with reason %q, and it prints %q; want %s and %q", name, got.Spec.State, reason,
				printed, c.want, c.prints)
		}
	}
}

func TestReleaseVerbsAskAsApproveDoes(t *testing.T) {
	for verb, want := range map[string]struct{ status, question string }{
		releasev1alpha1.VerbPause:    {clitest.Gated, "It will be paused. Continue?"},
		releasev1alpha1.VerbResume:   {"phase: Paused", "It will be resumed. Continue?"},
		releasev1alpha1.VerbAbort:    {clitest.Gated, "It will be aborted: pods stay as they are. Continue?"},
		releasev1alpha1.VerbRollback: {clitest.Gated, "It will be rolled back. Continue?"},
	} {
		for name, c := range map[string]struct {
			yes     bool
			answer  io.Reader
			written bool
			err     string
		}{
			"no terminal":         {err: verb + " asks for confirmation, and there is no terminal: add --yes"},
			"no terminal, --yes":  {yes: true, written: true},
			"a user says no":      {answer: strings.NewReader("n\n"), err: "nothing was changed"},
			"a user says nothing": {answer: strings.NewReader(""), err: "nothing was changed"},
			"a user says yes":     {answer: strings.NewReader("y\n"), written: true},
		} {
			h := newReleaseHub(t)
			rel := clitest.Started(want.status)
			if verb == releasev1alpha1.VerbResume {
				rel.Spec.State = releasev1alpha1.StatePause
			}
			h.create(rel)
			before := rel.Spec.State
			h.yes, h.answers = c.yes, c.answer
			err := h.setState(t.Context(), "r1", verb, "")
			got, getErr := h.get(t.Context(), "r1")
			if getErr != nil || (got.Spec.State != before) != c.written || (err == nil) != (c.err == "") ||
				err != nil && err.Error() != c.err {
				t.Errorf("%s, %s: the state is %s, %v %v", verb, name, got.Spec.State, err, getErr)
			}
			if c.answer != nil {
				h.expect("Release shop/r1: "+string(release.PhaseOf(rel)), want.question)
			}
		}
	}
}

func TestWhatIsApprovedIsShownToPrograms(t *testing.T) {
	h := newReleaseHub(t)
	h.create(h.withRevisions(clitest.Started(clitest.Gated)))
	approve := func(yes bool) (e release.Evidence, approvals int) {
		h.yes = yes
		h.shown.Reset()
		h.out = h.shown
		if err := h.decide(t.Context(), "r1", &verdict{verdict: releasev1alpha1.VerdictApprove, output: "json"}); err != nil {
			t.Fatal(err)
		}
		var all releasev1alpha1.ReleaseApprovalList
		if err := errors.Join(json.Unmarshal(h.shown.Bytes(), &e), h.client.List(t.Context(), &all)); err != nil {
			t.Fatalf("%v: %s", err, h.shown)
		}
		return e, len(all.Items)
	}
	e, n := approve(false)
	if n != 0 || e.Gate != "sign" || e.Attempt != 2 || len(e.Starts) != 2 || len(e.Steps) == 0 ||
		fmt.Sprint(e.Targets[0].Images) != "[{main web:1 web:2}]" || len(e.Targets[0].Changes) != 0 {
		t.Errorf("without --yes, there are %d approvals of %+v", n, e)
	}
	if _, n = approve(true); n != 1 {
		t.Errorf("with --yes, there are %d approvals", n)
	}
}

func TestRollbackNamesTheConfigurationThatItDoesNotBringBack(t *testing.T) {
	h := newReleaseHub(t)
	before := &releasev1alpha1.ReleaseRevision{}
	decode(t, `{metadata: {name: cloneset-web-old, namespace: shop}, spec: {hash: a, podsHash: b,
		target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, pods: [{path: spec.template,
		value: {spec: {containers: [{name: main, envFrom: [{configMapRef: {name: web}}, {secretRef: {name: key}}]}]}}}]}}`,
		before)
	if err := h.client.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	h.binds("cloneset-web-new")
	rel := clitest.Started("{phase: Succeeded, targets: [{name: web, from: cloneset-web-old, to: cloneset-web-new}, {name: api," +
		" from: cloneset-api-gone, to: cloneset-api-new}], " + updated + "}")
	h.create(rel)
	h.yes = true
	if err := h.setState(t.Context(), "r1", releasev1alpha1.VerbRollback, ""); err != nil {
		t.Fatal(err)
	}
	h.expect("not part of a revision, and not brought back: ConfigMap web, Secret key")
}

func TestRollbackNamesOnlyTheVersionsThatWereDeleted(t *testing.T) {
	h := newReleaseHub(t)
	before := &releasev1alpha1.ReleaseRevision{}
	decode(t, `{metadata: {name: cloneset-web-old, namespace: shop}, spec: {hash: a, podsHash: b,
		target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, config: [{kind: ConfigMap, name: web,
		hash: aaaaaaaa}, {kind: ConfigMap, name: shop, hash: bbbbbbbb}], pods: [{path: spec.template,
		value: {spec: {containers: [{name: main, envFrom: [{configMapRef: {name: web-aaaaaaaa}},
		{configMapRef: {name: shop-bbbbbbbb}}]}]}}}]}}`, before)
	kept := &corev1.ConfigMap{}
	kept.Namespace, kept.Name = "shop", "web-aaaaaaaa"
	for _, obj := range []client.Object{before, kept} {
		if err := h.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	h.binds("cloneset-web-new")
	h.create(clitest.Started("{phase: Running, targets: [{name: web, from: cloneset-web-old, to: cloneset-web-new}]}"))
	h.yes = true
	if err := h.setState(t.Context(), "r1", releasev1alpha1.VerbRollback, ""); err != nil {
		t.Fatal(err)
	}
	h.expect("not part of a revision, and not brought back: ConfigMap shop-bbbbbbbb (deleted)")
	if strings.Contains(h.shown.String(), "web-aaaaaaaa") {
		t.Errorf("a version that comes back is named:\n%s", h.shown)
	}
}

func TestSupersededReleaseIsNotRolledBack(t *testing.T) {
	h := newReleaseHub(t)
	h.create(clitest.Started("{phase: Succeeded, endedAt: \"2026-01-01T11:00:00Z\", " + updated + "}"))
	next := clitest.Started("{phase: Running, startedAt: \"2026-01-01T11:30:00Z\"}")
	next.Name = "r2"
	h.create(next)
	h.yes = true
	err := h.setState(t.Context(), "r1", releasev1alpha1.VerbRollback, "")
	if err == nil || !strings.Contains(err.Error(), "release r2 of CloneSet web") {
		t.Errorf("the error is %v", err)
	}
}

// binds sets the revision that the binding of the workload names.
func (h *releaseHub) binds(revision string) {
	h.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "shop", Name: names.Binding("CloneSet", "web")},
		b); err != nil {
		h.t.Fatal(err)
	}
	b.Annotations = map[string]string{fleet.EffectiveRevisionAnnotation: revision}
	if err := h.client.Update(h.t.Context(), b); err != nil {
		h.t.Fatal(err)
	}
}

// The hub would not do it, so the command does not promise it. Who may not read the workload asks the hub.
func TestARollbackThatTheHubRefusesIsNotRequested(t *testing.T) {
	status := func(target string) string { return "{phase: Succeeded, targets: [" + target + "], " + updated + "}" }
	for name, c := range map[string]struct{ status, binds, denied, want string }{
		"possible": {status("{name: web, from: a, to: b}"), "b", "", ""},
		"an unknown revision before": {status("{name: web, to: b}"), "b", "",
			"the revision of target web before it is not known"},
		"another revision in clusters": {status("{name: web, from: a, to: b}"), "c", "",
			"clusters have another revision of target web now"},
		"another workload":       {status("{name: web, from: a, to: b, uid: u-0}"), "b", "", "was deleted and created again"},
		"an unreadable workload": {status("{name: web, from: a, to: b, uid: u-0}"), "c", "resourcebindings", ""},
	} {
		h := newReleaseHub(t)
		h.create(clitest.Started(c.status))
		h.binds(c.binds)
		h.denied = c.denied
		h.yes = true
		err := h.setState(t.Context(), "r1", releasev1alpha1.VerbRollback, "")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
		h.denied = ""
		got, err := h.get(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		if asked := got.Spec.State == releasev1alpha1.StateRollback; asked != (c.want == "") {
			t.Errorf("%s: the state is %s", name, got.Spec.State)
		}
	}
}

func TestReleaseStagesAreRetriedAndSkippedInTheirAttempt(t *testing.T) {
	retry, skip := releasev1alpha1.RetryAnnotation, releasev1alpha1.SkipStageAnnotation
	for name, c := range map[string]struct {
		verb, annotation, status, reason, want, prints string
	}{
		"retry":                  {"retry", retry, failing, "fixed", "one@3", "stage one (attempt 3) will be started again"},
		"skip":                   {"skip", skip, clitest.Gated, "urgent", "two@2", "stage two (attempt 2) will be skipped"},
		"retry what has not":     {"retry", retry, clitest.Gated, "x", "", "has not failed"},
		"skip without a reason":  {"skip", skip, clitest.Gated, " ", "", "--reason is empty"},
		"skip before the start":  {"skip", skip, "phase: Queued", "x", "", "no stage is under way"},
		"skip what has ended":    {"skip", skip, "phase: Succeeded", "x", "", "no stage is under way"},
		"retry during a rolback": {"retry", retry, "phase: RollingBack", "x", "", "no stage is under way"},
	} {
		h := newReleaseHub(t)
		h.create(clitest.Started(c.status))
		err := h.stage(t.Context(), "r1", c.verb, c.reason)
		printed := h.shown.String()
		if err != nil {
			printed += err.Error()
		}
		got, getErr := h.get(t.Context(), "r1")
		if getErr != nil {
			t.Fatal(getErr)
		}
		if got.Annotations[c.annotation] != c.want || !strings.Contains(printed, c.prints) ||
			c.want != "" && got.Annotations[releasev1alpha1.ReleaseReasonAnnotation] != c.reason {
			t.Errorf("%s: the annotations are %v, and it prints %q; want %q and %q", name, got.Annotations, printed, c.want,
				c.prints)
		}
	}
}

func TestReleaseDiffNamesTheChangesOfEachTarget(t *testing.T) {
	h := newReleaseHub(t)
	h.create(h.withRevisions(clitest.Started(clitest.Gated)))
	rel, err := h.get(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.reader().Changes(t.Context(), rel)
	if err != nil {
		t.Fatal(err)
	}
	printDiff(h.shown, all)
	h.expect("image of main: web:1 → web:2")
	if _, err := h.reader().Changes(t.Context(), clitest.Started("{}")); err == nil ||
		!strings.Contains(err.Error(), "not accepted") {
		t.Errorf("for a release that is not accepted, the error is %v", err)
	}
}

func TestErrorNamesTheMissingRelease(t *testing.T) {
	h := newReleaseHub(t)
	if _, err := h.get(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), `no release "none"`) {
		t.Errorf("the error is %v", err)
	}
}
