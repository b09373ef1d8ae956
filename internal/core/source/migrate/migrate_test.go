package migrate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// web returns a CloneSet as it runs in a cluster.
func web(t *testing.T, replicas int, image, level string) *unstructured.Unstructured {
	t.Helper()
	return coretest.Object(t, fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: shop, uid: u, resourceVersion: "9", generation: 3, labels: {app: web}, annotations: {note: hi}}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 20%%, partition: 0}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: %q, env: [{name: LEVEL, value: %q}]}
      - {name: log, image: "eu.example.com/log:1"}
status: {observedGeneration: 3, replicas: %[1]d, updatedReplicas: %[1]d, readyReplicas: %[1]d, updateRevision: web-1}
`, replicas, image, level))
}

func copies(lives ...*unstructured.Unstructured) (all []migrate.Copy) {
	for i, live := range lives {
		all = append(all, migrate.Copy{Cluster: fmt.Sprintf("m%d", i+1), Live: live})
	}
	return all
}

func join(t *testing.T, base *unstructured.Unstructured, divides bool, all ...migrate.Copy) migrate.Joined {
	t.Helper()
	joined, err := migrate.Join(all, base, divides)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// rendered returns what would change in each cluster if the hub sent what Join made.
func rendered(t *testing.T, joined migrate.Joined, all []migrate.Copy) map[string]adopt.Report {
	t.Helper()
	i := interpret.New(tiers.Below()...)
	template := joined.Template.DeepCopy()
	template.SetUID("hub")
	r := &migrate.Record{}
	var targets []adopt.Target
	for _, c := range all {
		r.Set(c.Cluster, migrate.Cluster{State: migrate.Shadow, Replicas: joined.Replicas[c.Cluster]})
		targets = append(targets, adopt.Target{Replicas: int32(joined.Replicas[c.Cluster]),
			Cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Cluster}}})
	}
	p := migrate.NewPolicy(template, r)
	works, err := adopt.Works(t.Context(), template, p, targets,
		[]policyv1alpha1.Override{migrate.NewOverrides(template, joined.Rules)}, i)
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]adopt.Report{}
	for _, c := range all {
		if !execute.Suspended(works[c.Cluster]) {
			t.Errorf("the Work of %s is not suspended", c.Cluster)
		}
		desired, err := adopt.Desired(t.Context(), works[c.Cluster], c.Live, i)
		if err != nil {
			t.Fatal(err)
		}
		reports[c.Cluster] = adopt.Compare(c.Live, desired, false)
	}
	return reports
}

// One template and the overrides give each cluster exactly what it runs: replicas, images, environment, partition and
// budget (M3, M5).
func TestJoinedTemplateChangesNoCluster(t *testing.T) {
	more := web(t, 2, "us.example.com/web:1", "debug")
	if err := unstructured.SetNestedMap(more.Object, map[string]any{"paused": false, "maxUnavailable": int64(1)}, "spec",
		"updateStrategy"); err != nil {
		t.Fatal(err)
	}
	more.SetLabels(map[string]string{"app": "web", "zone/name": "us"})
	more.SetAnnotations(nil)
	for name, lives := range map[string][]*unstructured.Unstructured{
		"the same in all": {web(t, 3, "eu.example.com/web:1", "info"), web(t, 5, "eu.example.com/web:1", "info")},
		"an image and an environment": {web(t, 3, "eu.example.com/web:1", "info"), web(t, 5, "eu.example.com/web:2", "info"),
			web(t, 1, "eu.example.com/web:1", "debug")},
		"fields, labels and annotations": {web(t, 3, "eu.example.com/web:1", "info"), more},
		"a Service": {
			coretest.Object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: a}, ports: [{port: 80}]}}`),
			coretest.Object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: b}, ports: [{port: 80}, {port: 81}]}}`)},
		"Services with addresses": {
			coretest.Object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort,
				clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], selector: {app: a}, ports: [{port: 80, nodePort: 30001}]}}`),
			coretest.Object(t, `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort,
				clusterIP: 10.9.0.7, clusterIPs: [10.9.0.7], selector: {app: a}, ports: [{port: 80, nodePort: 30002}]}}`)},
		"a StatefulSet with claims": {claimed(t, 2, "1Gi"), claimed(t, 3, "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			all := copies(lives...)
			divides := fields.Value(lives[0].Object, "spec", "replicas") != nil
			joined := join(t, nil, divides, all...)
			var sum int64
			for _, live := range lives {
				sum += fields.Number(live.Object, "spec", "replicas")
			}
			if got := fields.Number(joined.Template.Object, "spec", "replicas"); got != sum {
				t.Errorf("the template has %d replicas, want %d", got, sum)
			}
			for cluster, r := range rendered(t, joined, all) {
				if len(r.Differences)+len(r.Disturbs) > 0 {
					t.Errorf("%s would change: %+v", cluster, r)
				}
			}
		})
	}
}

func claimed(t *testing.T, replicas int, storage string) *unstructured.Unstructured {
	t.Helper()
	return coretest.Object(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: %d
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "db:1"}]}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {resources: {requests: {storage: %s}}}, status: {phase: Pending}}
`, replicas, storage))
}

// A registry of a cluster's own is one rule, so that a later image of the template reaches all clusters.
func TestRegistryOfClusterIsImageOverride(t *testing.T) {
	us := web(t, 5, "us.example.com/web:1", "info")
	fields.Objects(us.Object, "spec", "template", "spec", "containers")[1]["image"] = "us.example.com/log:1"
	all := copies(web(t, 3, "eu.example.com/web:1", "info"), us)
	joined := join(t, nil, true, all...)
	want := []policyv1alpha1.RuleWithCluster{{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}},
		Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
			Component: policyv1alpha1.Registry, Operator: policyv1alpha1.OverriderOpReplace, Value: "us.example.com"}}},
	}}
	if diff := cmp.Diff(want, joined.Rules); diff != "" {
		t.Error(diff)
	}
	if r := rendered(t, joined, all)["m2"]; len(r.Differences) > 0 {
		t.Errorf("m2 would change: %+v", r)
	}
}

func TestMostCommonContentIsTheTemplate(t *testing.T) {
	joined := join(t, nil, true, copies(web(t, 1, "x:1", "debug"), web(t, 1, "x:1", "info"), web(t, 1, "x:1", "info"))...)
	if len(joined.Rules) != 1 || joined.Rules[0].TargetCluster.ClusterNames[0] != "m1" {
		t.Errorf("the rules are %+v, want one for m1", joined.Rules)
	}
	if got := joined.Template.GetAnnotations()[wellknown.RolloutScopeAnnotation]; got != "Cluster" {
		t.Errorf("the rollout scope is %q, so the hub would divide partition and budget", got)
	}
}

// A cluster that joins later gets a rule. The template, which the hub writes in others, stays.
func TestJoinKeepsTemplateOfHub(t *testing.T) {
	base := join(t, nil, true, copies(web(t, 3, "x:1", "info"))...).Template
	annotations := base.GetAnnotations()
	annotations["argosy.io/release-strategy"] = "gray"
	annotations["propagationpolicy.karmada.io/name"] = "web"
	base.SetAnnotations(annotations)
	joined := join(t, base, true, migrate.Copy{Cluster: "m2", Live: web(t, 2, "x:2", "info")})
	if joined.Template != base || len(joined.Rules) != 1 || len(joined.Rules[0].Overriders.AnnotationsOverrider) > 0 ||
		len(joined.Rules[0].Overriders.Plaintext) != 1 {
		t.Errorf("the rules are %+v", joined.Rules)
	}
}

func TestIncompatibleObjectsAreRefused(t *testing.T) {
	other := web(t, 2, "x:1", "info")
	if err := unstructured.SetNestedField(other.Object, "other", "spec", "selector", "matchLabels", "app"); err != nil {
		t.Fatal(err)
	}
	for want, all := range map[string][]migrate.Copy{
		"spec.selector differs":             copies(web(t, 3, "x:1", "info"), other),
		"spec.volumeClaimTemplates differs": copies(claimed(t, 1, "1Gi"), claimed(t, 1, "2Gi")),
		`no replicas in cluster "m2"`:       copies(web(t, 3, "x:1", "info"), web(t, 0, "x:1", "info")),
		"no cluster":                        nil,
		"the Secret of cluster": copies(
			coretest.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {key: YQ==}}"),
			coretest.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {key: Yg==}}")),
	} {
		divides := len(all) > 0 && all[0].Live.GetKind() != "Secret"
		if _, err := migrate.Join(all, nil, divides); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestConflicts(t *testing.T) {
	change := func(f func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := web(t, 3, "x:1", "info")
		f(u)
		return u
	}
	annotated := func(key, value string) *unstructured.Unstructured {
		return change(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{key: value}) })
	}
	set := func(value any, path ...string) *unstructured.Unstructured {
		return change(func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) })
	}
	now := time.Unix(1_800_000_000, 0).UTC()
	wrote := func(entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		return change(func(u *unstructured.Unstructured) { u.SetManagedFields(entries) })
	}
	entry := func(manager string, ago time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
			Time: new(metav1.NewTime(now.Add(-ago)))}
	}
	const day = 24 * time.Hour
	status, undated := entry("web-operator", day), entry("web-operator", 0)
	status.Subresource, undated.Time = "status", nil
	scaled := entry("cron-scaler", day)
	scaled.Subresource = "scale"
	helm := wrote(entry("helm", day))
	helm.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web"})
	hub := change(func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"karmada.io/managed": "true"})
		u.SetAnnotations(map[string]string{"work.karmada.io/namespace": "karmada-es-x", "work.karmada.io/name": "w"})
	})
	for name, tc := range map[string]struct {
		live         *unstructured.Unstructured
		ours         bool
		acknowledged []string
		want         string // empty for none
	}{
		"nothing":           {live: web(t, 3, "x:1", "info")},
		"Helm":              {live: annotated("meta.helm.sh/release-name", "web"), want: "Helm manages it"},
		"Helm acknowledged": {live: annotated("meta.helm.sh/release-name", "web"), acknowledged: []string{"Helm"}},
		"Argo CD":           {live: annotated("argocd.argoproj.io/tracking-id", "x"), want: "Argo CD manages it"},
		"Argo CD with another acknowledged": {live: annotated("argocd.argoproj.io/tracking-id", "x"),
			acknowledged: []string{"Helm"}, want: "acknowledge ArgoCD"},
		"Flux": {live: annotated("kustomize.toolkit.fluxcd.io/name", "x"), want: "Flux manages it"},
		"an operator": {live: wrote(entry("web-operator", 7*day)), want: fmt.Sprintf(
			"%q wrote it at 2027-01-08T08:00:00Z and would overwrite", "web-operator")},
		"an operator that wrote 7 days ago":        {live: wrote(entry("web-operator", 7*day+time.Second))},
		"an operator whose clock is ahead":         {live: wrote(entry("web-operator", -day)), want: "web-operator"},
		"an operator that wrote without a time":    {live: wrote(undated)},
		"an operator that wrote the status":        {live: wrote(status)},
		"an operator that wrote status and object": {live: wrote(status, entry("web-operator", day)), want: "web-operator"},
		"one that scales it":                       {live: wrote(scaled), want: "cron-scaler"},
		"an operator that is acknowledged": {live: wrote(entry("web-operator", day)),
			acknowledged: []string{"web-operator"}},
		"one of two operators is acknowledged": {live: wrote(entry("web-operator", day), entry("other", day)),
			acknowledged: []string{"web-operator"}, want: `acknowledge "other"`},
		"one without a name":                      {live: wrote(entry("", day)), want: `acknowledge "unknown"`},
		"one without a name that is acknowledged": {live: wrote(entry("", day)), acknowledged: []string{"unknown"}},
		"KEDA":       {live: wrote(entry("keda", 0))},
		"kubectl":    {live: wrote(entry("kubectl-edit", time.Hour), entry("kubectl", 0))},
		"no kubectl": {live: wrote(entry("kubectlish", time.Hour)), want: "kubectlish"},
		"the hub":    {live: wrote(entry("argosy", 0), entry("argosy-released", 0))},
		"no controller": {live: wrote(entry("kube-controller-manager", 0), entry("kubelet", 0),
			entry("before-first-apply", 0))},
		"Flux without its labels": {live: wrote(entry("kustomize-controller", 2*day)),
			want: "Flux manages it (last write at 2027-01-13T08:00:00Z)"},
		"Flux without its labels acknowledged": {live: wrote(entry("kustomize-controller", 2*day)),
			acknowledged: []string{"Flux"}},
		"Helm wrote":          {live: helm, want: "Helm manages it (meta.helm.sh/release-name, last write at 2027-01-14T08:00:00Z)"},
		"Helm wrote and left": {live: helm, acknowledged: []string{"Helm"}},
		"another hub":         {live: hub, want: "belongs to the work karmada-es-x/w"},
		"our own Work":        {live: hub, ours: true},
		"paused":              {live: set(true, "spec", "paused"), want: "paused"},
		"paused CloneSet":     {live: set(true, "spec", "updateStrategy", "paused"), want: "paused"},
		"rollout":             {live: set(int64(1), "status", "updatedReplicas"), want: "a rollout is in progress"},
		"rollout without updated replicas": {live: change(func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "updatedReplicas")
		}), want: "a rollout is in progress"},
		"two revisions": {live: set("web-0", "status", "currentRevision"), want: "a rollout is in progress"},
		"not observed":  {live: set(int64(2), "status", "observedGeneration"), want: "not processed"},
		"deleted": {live: change(func(u *unstructured.Unstructured) {
			u.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
		}), want: "being deleted"},
	} {
		got := fmt.Sprint(migrate.Conflicts("m1", tc.live, tc.ours, tc.acknowledged, now))
		if tc.want == "" && got != "[]" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %q", name, got, tc.want)
		}
	}
}

// A plan has each writer once, with its last write, also one that is no conflict.
func TestRecentWriters(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	u := web(t, 3, "x:1", "info")
	var entries []metav1.ManagedFieldsEntry
	for i, manager := range []string{"kubectl", "web-operator", "argosy", "kubectl", "web-operator"} {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager,
			Time: new(metav1.NewTime(now.Add(time.Duration(i-10) * time.Hour)))})
	}
	u.SetManagedFields(entries)
	want := []migrate.Writer{{Manager: "kubectl", LastWrite: metav1.NewTime(now.Add(-7 * time.Hour))},
		{Manager: "web-operator", LastWrite: metav1.NewTime(now.Add(-6 * time.Hour))}}
	if diff := cmp.Diff(want, migrate.Writers(u, now)); diff != "" {
		t.Error(diff)
	}
}

// The marks of another tool are its own: the template does not have them, so the hub neither sets nor removes them.
func TestTemplateHasNoMarksOfOtherTools(t *testing.T) {
	live := web(t, 3, "x:1", "info")
	live.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web"})
	live.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm", "app": "web"})
	all := copies(live)
	joined := join(t, nil, true, all...)
	if got := joined.Template.GetLabels(); len(got) != 1 {
		t.Errorf("labels are %v", got)
	}
	if got := joined.Template.GetAnnotations(); got["meta.helm.sh/release-name"] != "" {
		t.Errorf("annotations are %v", got)
	}
	if r := rendered(t, joined, all)["m1"]; len(r.Differences) > 0 {
		t.Errorf("it would change: %+v", r)
	}
}

// Only the Work of a template leads back to it.
func TestTemplateOfWork(t *testing.T) {
	template := web(t, 3, "x:1", "info")
	template.SetUID("hub")
	policy := adopt.Policy(template, "p", "m1")
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	works, err := adopt.Works(t.Context(), template, policy, []adopt.Target{{Cluster: cluster, Replicas: 3}}, nil,
		interpret.New(tiers.Below()...))
	if err != nil {
		t.Fatal(err)
	}
	if u := migrate.TemplateOf(works["m1"]); u == nil || u.GetKind() != "CloneSet" || u.GetName() != "web" {
		t.Errorf("the template of %s is %v", works["m1"].Name, u)
	}
	for whose, change := range map[string]func(*workv1alpha1.Work){
		"a ManifestWork": func(w *workv1alpha1.Work) { w.Annotations[wellknown.ManifestWorkAnnotation] = "a" },
		"a user":         func(w *workv1alpha1.Work) { w.Annotations = nil },
		"another template": func(w *workv1alpha1.Work) {
			w.Annotations["resourcebinding.karmada.io/name"] = "other-cloneset"
			w.Name = "other-5c9d7b"
		},
		"another namespace": func(w *workv1alpha1.Work) { w.Annotations["resourcebinding.karmada.io/namespace"] = "other" },
		"nobody":            func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil },
	} {
		work := works["m1"].DeepCopy()
		change(work)
		if u := migrate.TemplateOf(work); u != nil {
			t.Errorf("the Work of %s has the template %v", whose, u)
		}
	}
}

// The policy suspends what the hub may not write, and its weights are the replicas of the clusters.
func TestPolicyFollowsRecord(t *testing.T) {
	template := web(t, 10, "x:1", "info")
	r := &migrate.Record{}
	r.Set("eu", migrate.Cluster{State: migrate.Own, Replicas: 3})
	r.Set("us", migrate.Cluster{State: migrate.Shadow, Replicas: 5})
	r.Set("asia", migrate.Cluster{State: migrate.Verifying, Replicas: 2})
	p := migrate.NewPolicy(template, r)
	check := func(wantPlaced, wantSuspended string) {
		t.Helper()
		spec := p.PropagationSpec()
		var placed []string
		for _, w := range spec.Placement.ReplicaScheduling.WeightPreference.StaticWeightList {
			placed = append(placed, fmt.Sprintf("%s=%d", w.TargetCluster.ClusterNames[0], w.Weight))
		}
		suspended := "none"
		switch s := spec.Suspension; {
		case s == nil:
		case s.Dispatching != nil && *s.Dispatching:
			suspended = "all"
		default:
			suspended = strings.Join(s.DispatchingOnClusters.ClusterNames, " ")
		}
		if got := strings.Join(placed, " "); got != wantPlaced || suspended != wantSuspended {
			t.Errorf("placed in %s with %s suspended, want %s with %s", got, suspended, wantPlaced, wantSuspended)
		}
		if !*spec.PreserveResourcesOnDeletion || spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
			t.Error("objects of the members would not stay, or not be taken over")
		}
		back, err := migrate.RecordOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Error(diff)
		}
	}
	check("asia=2 eu=3 us=5", "us")

	r.Changing = true
	r.Set("eu", migrate.Cluster{State: migrate.Leaving, Replicas: 3})
	if err := migrate.Place(p, r); err != nil {
		t.Fatal(err)
	}
	migrate.Store(p, r)
	check("asia=2 us=5", "all")

	r.Changing = false
	r.Remove("eu")
	r.Set("us", migrate.Cluster{State: migrate.Own, Replicas: 5})
	migrate.Store(p, r)
	check("asia=2 us=5", "none")

	p.PropagationSpec().Placement.ClusterAffinity.ClusterNames = nil
	if err := migrate.Place(p, r); err == nil {
		t.Error("a placement that users changed was overwritten")
	}
}

// Each change that a migration must not make is noticed; those that an autoscaler makes are not.
func TestSnapshotNoticesChanges(t *testing.T) {
	pod := func(uid, node string, restarts int) unstructured.Unstructured {
		return *coretest.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, uid: %[1]s}, spec: {nodeName: %[2]s},
			status: {containerStatuses: [{name: main, containerID: c-%[1]s, restartCount: %[3]d}]}}`, uid, node, restarts))
	}
	live := web(t, 2, "x:1", "info")
	pods := []unstructured.Unstructured{pod("a", "n1", 0), pod("b", "n2", 1)}
	managed := live.DeepCopy()
	managed.SetLabels(map[string]string{"karmada.io/managed": "true"})
	scaled := live.DeepCopy()
	_ = unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas")
	_ = unstructured.SetNestedField(scaled.Object, int64(3), "status", "readyReplicas")
	revised := live.DeepCopy()
	_ = unstructured.SetNestedField(revised.Object, "web-2", "status", "updateRevision")
	unready := live.DeepCopy()
	_ = unstructured.SetNestedField(unready.Object, int64(1), "status", "readyReplicas")
	more := append(slices.Clone(pods), pod("c", "n1", 0))
	for name, tc := range map[string]struct {
		live   *unstructured.Unstructured
		pods   []unstructured.Unstructured
		scaled bool
		want   string // empty for no change
	}{
		"labels":              {managed, pods, false, ""},
		"order of pods":       {live, []unstructured.Unstructured{pods[1], pods[0]}, false, ""},
		"replicas":            {scaled, pods, false, "its spec changed"},
		"a revision":          {revised, pods, false, "its revision changed from web-1 to web-2"},
		"a restart":           {live, []unstructured.Unstructured{pods[0], pod("b", "n2", 2)}, false, "1 pods restarted"},
		"another node":        {live, []unstructured.Unstructured{pod("a", "n3", 0), pods[1]}, false, "1 pods restarted"},
		"a pod less":          {live, pods[:1], false, "1 pods are gone (UID b)"},
		"a pod more":          {live, more, false, "1 pods are new (UID c)"},
		"readiness":           {unready, pods, false, "1 replicas are ready, 2 were before"},
		"an autoscaler":       {scaled, more, true, ""},
		"a restart with both": {scaled, []unstructured.Unstructured{pods[0], pod("b", "n2", 2)}, true, "1 pods restarted"},
	} {
		before := migrate.Take(live, pods, tc.scaled)
		got := strings.Join(before.Changes(migrate.Take(tc.live, tc.pods, tc.scaled)), "; ")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		n       int
		weights []int64
		want    []int
	}{
		{10, []int64{1, 2, 7}, []int{1, 2, 2, 3, 3, 3, 3, 3, 3, 3}},
		{3, []int64{1, 2, 7}, []int{1, 3, 3}},
		{1, []int64{1, 2, 7}, []int{1}},
		{2, nil, []int{1, 1}},
		{0, []int64{1}, []int{}},
	} {
		if got := migrate.Batches(tc.n, tc.weights); !slices.Equal(got, tc.want) {
			t.Errorf("%d by %v: %v, want %v", tc.n, tc.weights, got, tc.want)
		}
	}
}

func TestRulesOfManagedClustersStay(t *testing.T) {
	rule := func(cluster, image string) policyv1alpha1.RuleWithCluster {
		return policyv1alpha1.RuleWithCluster{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
			Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Value: image}}}}
	}
	got := migrate.KeepRules([]policyv1alpha1.RuleWithCluster{rule("eu", "1"), rule("us", "1")},
		[]policyv1alpha1.RuleWithCluster{rule("us", "2"), rule("eu", "2")}, []string{"eu"})
	if diff := cmp.Diff([]policyv1alpha1.RuleWithCluster{rule("eu", "1"), rule("us", "2")}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWorkShowsTheStateOfItsCluster(t *testing.T) {
	for want, change := range map[migrate.State]func(w *workv1alpha1.Work){
		migrate.Own:    func(*workv1alpha1.Work) {},
		migrate.Shadow: func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) },
		migrate.Leaving: func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching = new(true)
			w.Annotations = map[string]string{wellknown.LeavingAnnotation: "true"}
		},
	} {
		w := &workv1alpha1.Work{}
		change(w)
		if got := migrate.StateOf(w); got != want {
			t.Errorf("a Work with %v and %+v is in %s, want %s", w.Annotations, w.Spec, got, want)
		}
	}
	now := metav1.Now()
	if got := migrate.StateOf(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}); got !=
		migrate.Leaving {
		t.Errorf("a Work that is being deleted is in %s", got)
	}
}
