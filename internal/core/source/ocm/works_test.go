package ocm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// manifestWork returns a ManifestWork for cluster eu with the spec.
func manifestWork(t *testing.T, spec string) *ocmv1.ManifestWork {
	t.Helper()
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "it", Generation: 2, UID: "mw-uid"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &mw.Spec); err != nil {
		t.Fatal(err)
	}
	return mw
}

var object = coretest.Object

// eu serves CloneSets in one version, and a kind with an irregular plural.
func eu() *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps.kruise.io/v1beta1",
			Resources: []clusterv1alpha1.APIResource{{Name: "clonesets", Kind: "CloneSet"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		{GroupVersion: "example.com/v1", Resources: []clusterv1alpha1.APIResource{{Name: "geese", Kind: "Goose"}}},
	}
	return c
}

func decide(mw *ocmv1.ManifestWork, existing ...*workv1alpha1.Work) Decision {
	return Decide(input(mw, existing...))
}

func input(mw *ocmv1.ManifestWork, existing ...*workv1alpha1.Work) Input {
	in := Input{ManifestWork: mw, Items: Items(mw, eu()), Cluster: eu(), Existing: map[string]*workv1alpha1.Work{},
		NewID: func() string { return "id" }, Convert: kruise.ForMember}
	for _, w := range existing {
		in.Existing[w.Name] = w
	}
	return in
}

func TestDeletedWorkIsNotWithdrawnAgain(t *testing.T) {
	mw := manifestWork(t, `workload: {manifests: [`+config+`, `+other+`]}`)
	works := decide(mw).Works
	works[0].DeletionTimestamp = &metav1.Time{}
	mw.DeletionTimestamp = &metav1.Time{}
	if got := decide(mw, works...).Withdrawn; len(got) != 1 || got[0] != works[1] {
		t.Errorf("withdrawn: %v", got)
	}
}

const (
	config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {k: v}}"
	other  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}"
)

func kinds(works []*workv1alpha1.Work) string {
	var all []string
	for _, w := range works {
		m, err := execute.Manifest(w)
		if err != nil {
			return err.Error()
		}
		all = append(all, m.GetKind())
	}
	return strings.Join(all, " ")
}

func TestEachObjectHasAWork(t *testing.T) {
	d := decide(manifestWork(t, `workload: {manifests: [`+config+`, `+other+`]}`))
	if len(d.Works) != 2 || len(d.Errs) > 0 {
		t.Fatalf("%+v", d)
	}
	w := d.Works[0]
	m, err := execute.Manifest(w)
	if err != nil {
		t.Fatal(err)
	}
	if w.Namespace != "karmada-es-eu" || !strings.HasPrefix(w.Name, "a-") ||
		w.Annotations["argosy.io/manifest-work"] != "it" || !execute.Owns(w, m) ||
		m.GetAnnotations()["argosy.io/manifest-work"] != "it" ||
		w.Annotations["work.karmada.io/conflict-resolution"] != "overwrite" {
		t.Errorf("the work is %+v", w)
	}
	if again := decide(manifestWork(t, `workload: {manifests: [`+config+`, `+other+`]}`),
		d.Works...); again.Works[0].Labels["work.karmada.io/permanent-id"] != "id" || len(again.Withdrawn) > 0 {
		t.Errorf("decided again: %+v", again)
	}
}

func TestWorkNamesOfManifestWorksAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for _, mw := range []string{"a", "b", "a-b"} {
		for _, m := range []ocmv1.ManifestResourceMeta{{Kind: "ConfigMap", Name: "a", Namespace: "shop"},
			{Kind: "ConfigMap", Name: "a"}, {Kind: "Secret", Name: "a", Namespace: "shop"},
			{Group: "apps", Kind: "StatefulSet", Name: "a", Namespace: "shop"},
			{Group: "apps.kruise.io", Kind: "StatefulSet", Name: "a", Namespace: "shop"}} {
			name, is := Item{Meta: m}.WorkName(mw, nil), fmt.Sprint(mw, m)
			if before, twice := seen[name]; twice {
				t.Errorf("%s is the work of %s and of %s", name, before, is)
			}
			seen[name] = is
		}
	}
}

func TestSecondObjectWithSameWorkNameIsRejected(t *testing.T) {
	d := decide(manifestWork(t, `workload: {manifests: [`+config+`, `+strings.Replace(config, "v1", "v2", 1)+`]}`))
	if len(d.Works) != 1 || d.Errs[0] != nil || d.Errs[1] == nil ||
		!strings.Contains(d.Errs[1].Error(), "spec.workload.manifests[0]") {
		t.Errorf("%+v", d)
	}
}

func TestObjectsAreAppliedInOrder(t *testing.T) {
	mw := manifestWork(t, `workload: {manifests: [
		{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: w, namespace: shop}},
		{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: shop}},
		`+config+`,
		{apiVersion: v1, kind: Namespace, metadata: {name: shop}}]}`)
	// The namespace first, and alone.
	d := decide(mw)
	if got := kinds(d.Works); got != "Namespace" {
		t.Fatalf("first go %s", got)
	}
	ns := d.Works[0]
	if got := kinds(decide(mw, ns).Works); got != "Namespace" {
		t.Errorf("before it has answered there go %s", got)
	}
	// Whatever it answers: one that fails stops no other.
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		answered := ns.DeepCopy()
		meta.SetStatusCondition(&answered.Status.Conditions, metav1.Condition{Type: "Applied", Status: status, Reason: "r"})
		if got := kinds(decide(mw, answered).Works); got != "Namespace ConfigMap Deployment CloneSet" {
			t.Errorf("then go %s", got)
		}
	}
}

func TestObjectIsConvertedToServedVersion(t *testing.T) {
	d := decide(manifestWork(t, `workload: {manifests: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: w, namespace: shop}, spec: {replicas: 2}}]}`))
	m, err := execute.Manifest(d.Works[0])
	if err != nil || m.GetAPIVersion() != "apps.kruise.io/v1beta1" {
		t.Errorf("sent is %v, %v", m, err)
	}
}

func TestExecutorIsRejected(t *testing.T) {
	d := decide(manifestWork(t, `{workload: {manifests: [`+config+`]}, executor: {subject: {type: ServiceAccount}}}`))
	if len(d.Works) > 0 || d.Errs[0] == nil || !strings.Contains(d.Errs[0].Error(), "spec.executor is not supported") {
		t.Errorf("%+v", d)
	}
}

func TestRemovedObjectIsWithdrawn(t *testing.T) {
	both := `workload: {manifests: [` + config + `, ` + other + `]}`
	for name, c := range map[string]struct {
		spec string
		// others are objects of another ManifestWork of the cluster.
		others string
		// standing is the object of a policy's Work with the name for a. gone means that this Work is being deleted.
		standing string
		gone     bool
		end      bool
		want     map[string]bool // whether the object stays, of each Work that goes
	}{
		"nothing is said": {spec: `workload: {manifests: [` + other + `]}`, want: map[string]bool{"a": false}},
		"all are orphaned": {spec: `{workload: {manifests: [` + other +
			`]}, deleteOption: {propagationPolicy: Orphan}}`, want: map[string]bool{"a": true}},
		"one is only read": {spec: `{` + both +
			`, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, updateStrategy: {type: ReadOnly}}]}`, want: map[string]bool{"a": true}},
		"an executor comes": {spec: `{workload: {manifests: [` + other + `, ` + config +
			`]}, executor: {subject: {type: ServiceAccount}}}`, want: map[string]bool{}},
		"the end": {spec: both, end: true, want: map[string]bool{"a": false, "b": false}},
		"the end of orphans": {spec: `{` + both + `, deleteOption: {propagationPolicy: Orphan}}`, end: true,
			want: map[string]bool{"a": true, "b": true}},
		"the end of one orphan": {spec: `{` + both +
			`, deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [{resource: configmaps, name: b, namespace: shop}]}}}`, end: true, want: map[string]bool{"a": false, "b": true}},
		"a rule about another resource": {spec: `{` + both +
			`, deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [{resource: secrets, name: b, namespace: shop}]}}}`, end: true, want: map[string]bool{"a": false, "b": false}},
		"another ManifestWork has one": {spec: both, others: config, end: true,
			want: map[string]bool{"a": true, "b": false}},
		"one moved to another": {spec: `workload: {manifests: [` + other + `]}`, others: config,
			want: map[string]bool{"a": true}},
		"a policy has one": {spec: both, standing: config, end: true,
			want: map[string]bool{"a": true, "b": false}},
		"one is a policy's, too": {spec: `workload: {manifests: [` + other + `]}`, standing: config,
			want: map[string]bool{"a": true}},
		"a policy lets it go, too": {spec: both, standing: config, gone: true, end: true,
			want: map[string]bool{"a": false, "b": false}},
		"a policy has another group's": {spec: both,
			standing: `{apiVersion: example.com/v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`, end: true,
			want: map[string]bool{"a": false, "b": false}},
	} {
		t.Run(name, func(t *testing.T) {
			first := decide(manifestWork(t, both))
			mw := manifestWork(t, c.spec)
			if c.end {
				mw.DeletionTimestamp = &metav1.Time{}
			}
			var others []ocmv1.ManifestWork
			if c.others != "" {
				o := manifestWork(t, `workload: {manifests: [`+c.others+`]}`)
				o.Name = "another"
				others = []ocmv1.ManifestWork{*mw, *o}
			}
			in := input(mw, first.Works...)
			in.Others = others
			if c.standing != "" {
				raw, err := yaml.YAMLToJSON([]byte(c.standing))
				if err != nil {
					t.Fatal(err)
				}
				w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: Ordinary(first.Works[0])[0]}}
				w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
				if c.gone {
					w.DeletionTimestamp = &metav1.Time{}
				}
				in.Standing = map[string]*workv1alpha1.Work{w.Name: w}
			}
			got := map[string]bool{}
			for _, w := range Decide(in).Withdrawn {
				got[w.Name[:1]] = w.Spec.PreserveResourcesOnDeletion != nil && *w.Spec.PreserveResourcesOnDeletion
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("withdrawn: %v, want %v", got, c.want)
			}
			for _, w := range first.Works {
				if w.Spec.PreserveResourcesOnDeletion != nil {
					t.Error("a work that stands was changed")
				}
			}
		})
	}
}

func TestCompleteObjectIsNotChanged(t *testing.T) {
	mw := manifestWork(t, `workload: {manifests: [`+config+`]}`)
	first := decide(mw).Works[0]
	mw.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(mw.Spec.Workload.Manifests[0].Raw), `"v"`, `"w"`))
	if got := decide(mw, first).Works[0]; string(got.Spec.Workload.Manifests[0].Raw) == string(
		first.Spec.Workload.Manifests[0].Raw) {
		t.Error("before it is complete the change is not sent")
	}
	mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{{ResourceMeta: Items(mw, eu())[0].Meta,
		Conditions: []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}}}
	if got := decide(mw, first).Works[0]; got != first {
		t.Errorf("complete, it is changed to %s", got.Spec.Workload.Manifests[0].Raw)
	}
}

func TestUpdateStrategiesAreStoredOnWork(t *testing.T) {
	for strategy, want := range map[string]map[string]string{
		"{type: Update}":          {},
		"{type: CreateOnly}":      {"argosy.io/update-strategy": "CreateOnly"},
		"{type: ServerSideApply}": {"argosy.io/update-strategy": "ServerSideApply"},
		"{type: ServerSideApply, serverSideApply: {force: true}}": {},
		"{type: ServerSideApply, serverSideApply: {force: true, ignoreFields: [{condition: OnSpokePresent, jsonPaths: [.data.k]}]}}": {
			"argosy.io/ignored-fields": `[{"condition":"OnSpokePresent","jsonPaths":[".data.k"]}]`},
	} {
		mw := manifestWork(t, `{workload: {manifests: [`+config+
			`]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: "*", namespace: s*p}, updateStrategy: `+
			strategy+`}]}`)
		got := maps.Clone(decide(mw).Works[0].Annotations)
		maps.DeleteFunc(got, func(key, _ string) bool {
			return key != "argosy.io/update-strategy" && key != "argosy.io/ignored-fields"
		})
		if !maps.Equal(got, want) {
			t.Errorf("%s is %v, want %v", strategy, got, want)
		}
	}
	read := manifestWork(t, `{workload: {manifests: [`+config+
		`]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, updateStrategy: {type: ReadOnly}}]}`)
	if d := decide(read); len(d.Works) > 0 || len(d.Errs) > 0 {
		t.Errorf("ReadOnly makes %+v", d)
	}
}

func TestFirstOptionWins(t *testing.T) {
	mw := manifestWork(t, `{workload: {manifests: [{apiVersion: example.com/v1, kind: Goose, metadata: {name: grey}}]}, manifestConfigs: [
		{resourceIdentifier: {group: example.com, resource: gooses, name: grey}, updateStrategy: {type: ReadOnly}},
		{resourceIdentifier: {group: example.com, resource: geese, name: g*y}, feedbackRules: [{type: WellKnownStatus}]},
		{resourceIdentifier: {group: example.com, resource: geese, name: grey}, updateStrategy: {type: CreateOnly}, feedbackRules: [{type: JSONPaths}]},
		{resourceIdentifier: {group: example.com, resource: geese, name: "*"}, updateStrategy: {type: ReadOnly}, conditionRules: [{condition: Complete, type: WellKnownConditions}]}]}`)
	item := Items(mw, eu())[0]
	if got := item.updates().Type; got != ocmv1.UpdateStrategyCreateOnly {
		t.Errorf("it is kept by %s", got)
	}
	if got := item.feedback; len(got) != 1 || got[0].Type != ocmv1.FeedbackWellKnownStatus {
		t.Errorf("its feedback is %v", got)
	}
	if got := item.rules; len(got) != 1 {
		t.Errorf("its rules are %v", got)
	}
}

func TestPluralsAreGuessedWithoutDiscovery(t *testing.T) {
	for kind, want := range map[string]string{"Gateway": "gateways", "NetworkPolicy": "networkpolicies",
		"Ingress": "ingresses", "Job": "jobs"} {
		if got := plural(schema.GroupVersionKind{Group: "example.com", Kind: kind}, nil); got != want {
			t.Errorf("%s is guessed %s, want %s", kind, got, want)
		}
	}
}

func TestPatternStarMatchesAnyText(t *testing.T) {
	for pattern, texts := range map[string][2][]string{
		"a":     {{"a"}, {"", "ab", "ba"}},
		"*":     {{"", "a"}, nil},
		"a*":    {{"a", "ab"}, {"ba"}},
		"*a":    {{"a", "ba"}, {"ab"}},
		"a*b*c": {{"abc", "axbxc", "abbc"}, {"ab", "acb", "bc"}},
		"aa*a":  {{"aaa", "aaxa"}, {"aa"}},
		"":      {{""}, {"a"}},
	} {
		for _, text := range slices.Concat(texts[0], texts[1]) {
			if got, want := matches(pattern, text), slices.Contains(texts[0], text); got != want {
				t.Errorf("%q matches %q: %t, want %t", pattern, text, got, want)
			}
		}
	}
}

func TestIgnoredFieldsKeepMemberValues(t *testing.T) {
	for name, c := range map[string]struct {
		ignore   string
		observed string // .spec of the member's
		want     string // .spec that is applied
	}{
		"a path": {"[{condition: OnSpokePresent, jsonPaths: [.spec.replicas]}]", "{replicas: 7, paused: true}",
			"map[paused:false replicas:7]"},
		"a pointer": {"[{condition: OnSpokePresent, jsonPointers: [/spec/replicas]}]", "{replicas: 7}",
			"map[paused:false replicas:7]"},
		"a path of jq": {`[{condition: OnSpokePresent, jqPathExpressions: [.spec.replicas]}]`, "{replicas: 7}",
			"map[paused:false replicas:7]"},
		"one that is absent": {"[{condition: OnSpokePresent, jsonPaths: [.spec.paused]}]", "{replicas: 7}",
			"map[replicas:3]"},
		"one that is changed": {"[{condition: OnSpokeChange, jsonPaths: [.spec.replicas]}]", "{replicas: 7}",
			"map[paused:false replicas:7]"},
	} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		raw, err := yaml.YAMLToJSON([]byte(c.ignore))
		if err != nil {
			t.Fatal(err)
		}
		w.Annotations[wellknown.IgnoredFieldsAnnotation] = string(raw)
		desired := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3, paused: false}}`)
		got, err := Leave(w, desired, object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: `+
			c.observed+`}`))
		if err != nil || fmt.Sprint(got.Object["spec"]) != c.want {
			t.Errorf("%s: applied is %v, %v, want %s", name, got, err, c.want)
		}
	}
	for _, bad := range []ocmv1.IgnoreField{{JSONPointers: []string{"spec"}}, {JSONPaths: []string{"spec.replicas"}},
		{JQPathExpressions: []string{".spec | keys"}}} {
		if _, err := Ignored(bad); err == nil {
			t.Errorf("%+v is taken for a field", bad)
		}
	}
}
