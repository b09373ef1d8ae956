package ocm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub with the controllers of ManifestWorks and Works, and a member m1.
type world struct {
	*controllertest.Hub
	t  *testing.T
	m1 *membertest.Server
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t}
	w.m1 = w.join("m1")
	w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		members := member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		if err := mgr.Add(members); err != nil {
			return err
		}
		if err := execute.Setup(ctx, mgr, execute.Options{Members: members, Interpreter: interpret.New(builtin.Tier()),
			Workers: 2}); err != nil {
			return err
		}
		return Setup(ctx, mgr, Options{Members: members, Look: 50 * time.Millisecond, FirstWindow: time.Minute})
	})
	return w
}

// join creates a member with the namespace shop.
func (w *world) join(name string) *membertest.Server {
	m := w.Join(name, controllertest.CloneSet)
	m.SeparateStatus(controllertest.CloneSet)
	m.Put(namespace("shop"))
	return m
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// make creates a ManifestWork for m1 from YAML. The first line of options may have more of the spec.
func (w *world) make(name, spec string, objects ...string) *ocmv1.ManifestWork {
	w.t.Helper()
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "m1", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &mw.Spec); err != nil {
		w.t.Fatal(err)
	}
	mw.Spec.Workload.Manifests = manifests(w.t, objects...)
	w.Make(mw)
	return mw
}

func manifests(t *testing.T, objects ...string) (out []ocmv1.Manifest) {
	t.Helper()
	for _, text := range objects {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ocmv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return out
}

func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop}, data: {value: %q}}", name,
		value)
}

const cloneSet = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: {replicas: 3}}`

// holds waits until m1 has a ConfigMap with the value, or none if it is empty.
func (w *world) expectContent(name, value string) {
	w.t.Helper()
	w.Eventually("m1 holds "+name, func() string {
		got := ""
		if u := w.m1.Object(membertest.ConfigMap, "shop", name); u != nil {
			got, _, _ = unstructured.NestedString(u.Object, "data", "value")
		}
		if got != value {
			return fmt.Sprintf("it has %q, want %q", got, value)
		}
		return ""
	})
}

// expectCondition waits for a condition of a ManifestWork's generation, such as "True AppliedManifestWorkComplete".
func (w *world) expectCondition(mw *ocmv1.ManifestWork, kind, want string) {
	w.t.Helper()
	w.Eventually(mw.Name+" has "+kind+" "+want, func() string {
		if !w.HasObject(mw) {
			return "it is gone"
		}
		c := meta.FindStatusCondition(mw.Status.Conditions, kind)
		if c == nil || !strings.Contains(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message), want) ||
			c.ObservedGeneration != mw.Generation {
			return fmt.Sprintf("%+v", mw.Status)
		}
		return ""
	})
}

// expectManifestCondition waits until a condition of a manifest is as wanted.
func (w *world) expectManifestCondition(mw *ocmv1.ManifestWork, ordinal int, kind, want string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("manifest %d of %s has %s %s", ordinal, mw.Name, kind, want), func() string {
		if !w.HasObject(mw) || len(mw.Status.ResourceStatus.Manifests) <= ordinal {
			return "no status"
		}
		c := meta.FindStatusCondition(mw.Status.ResourceStatus.Manifests[ordinal].Conditions, kind)
		if c == nil || !strings.Contains(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message), want) {
			return fmt.Sprintf("%+v", mw.Status.ResourceStatus.Manifests[ordinal])
		}
		return ""
	})
}

func (w *world) gone(mw *ocmv1.ManifestWork) {
	w.t.Helper()
	w.Eventually(mw.Name+" is gone", func() string {
		if w.HasObject(mw) {
			return fmt.Sprintf("%+v", mw)
		}
		return ""
	})
}

// works returns the Works of m1 as the names of their objects.
func (w *world) works() (all []string) {
	var list workv1alpha1.WorkList
	if err := w.List(w.t.Context(), &list, client.InNamespace(names.ExecutionSpace("m1"))); err != nil {
		w.t.Fatal(err)
	}
	for _, work := range list.Items {
		all = append(all, work.Name[:strings.LastIndex(work.Name, "-")])
	}
	slices.Sort(all)
	return all
}

func TestManifestWorkIsAppliedInItsCluster(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("settings", "", configMap("a", "1"), configMap("b", "1"))
		w.expectContent("a", "1")
		w.expectContent("b", "1")
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete Apply manifest work complete")
		w.expectCondition(mw, "Available", "True ResourcesAvailable")
		w.expectManifestCondition(mw, 1, "Applied", "True AppliedManifestComplete Apply manifest complete")
		if got, want := mw.Status.ResourceStatus.Manifests[1].ResourceMeta,
			(ocmv1.ManifestResourceMeta{Ordinal: 1, Version: "v1", Kind: "ConfigMap",
				Resource: "configmaps", Namespace: "shop", Name: "b"}); got != want {
			t.Errorf("the second manifest is %+v, want %+v", got, want)
		}
		if !slices.Contains(mw.Finalizers, "cluster.open-cluster-management.io/manifest-work-cleanup") {
			t.Errorf("its finalizers are %v", mw.Finalizers)
		}

		count := map[string]int{}
		for _, line := range w.Quiet() {
			verb, rest, _ := strings.Cut(line, " ")
			resource, _, _ := strings.Cut(rest, " ")
			if !strings.HasPrefix(line, "create namespaces") && !strings.HasPrefix(line, "create secrets") &&
				!strings.Contains(line, "clusters") {
				count[verb+" "+resource]++
			}
		}
		// The finalizer is a write where no admission has set it.
		if want := map[string]int{"create manifestworks": 1, "update manifestworks": 1, "create works": 2,
			"update works/status": 2, "update manifestworks/status": 1}; !maps.Equal(count, want) {
			t.Errorf("written: %v, want %v", count, want)
		}

		// What is said again is not written again.
		controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Workload.Manifests = manifests(t, configMap("a", "2"), configMap("b", "1"))
		})
		w.expectContent("a", "2")
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		if got := strings.Join(w.Quiet(), "\n"); strings.Count(got, "update works m1") > 1 ||
			strings.Count(got, "manifestworks/status") > 1 {
			t.Errorf("one manifest changed, and this was written:\n%s", got)
		}

		// One that is taken out of it goes.
		controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Workload.Manifests = manifests(t,
				configMap("a", "2"))
		})
		w.expectContent("b", "")
		w.expectCondition(mw, "Available", "True ResourcesAvailable")
		if len(mw.Status.ResourceStatus.Manifests) != 1 {
			t.Errorf("its status is %+v", mw.Status.ResourceStatus)
		}
		w.Gone(mw)
		w.gone(mw)
		w.expectContent("a", "")
	})
}

func TestUnconnectedAgentIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
			func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull })
		mw := w.make("settings", "", configMap("a", "1"))
		w.Eventually("the agent applies the Work", func() string {
			var list workv1alpha1.WorkList
			if err := w.List(t.Context(), &list, client.InNamespace(names.ExecutionSpace("m1"))); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 {
				return fmt.Sprintf("there are %d", len(list.Items))
			}
			work := &list.Items[0]
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied,
				Status: metav1.ConditionTrue, Reason: "AppliedSuccessful", ObservedGeneration: work.Generation})
			if err := w.Status().Update(t.Context(), work); err != nil {
				return err.Error()
			}
			return ""
		})
		w.expectManifestCondition(mw, 0, "Available",
			`Unknown FetchingResourceFailed Failed to fetch resource: cluster "m1" is in Pull mode, and its agent is not connected`)
		w.expectContent("a", "") // The hub itself changes nothing.
	})
}

func TestNamespaceIsAppliedFirst(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("all", "", strings.ReplaceAll(configMap("a", "1"), "shop", "other"),
			"{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		if w.m1.Object(membertest.ConfigMap, "other", "a") == nil {
			t.Error("it is not there")
		}
		var list workv1alpha1.WorkList
		if err := w.List(t.Context(), &list, client.InNamespace(names.ExecutionSpace("m1"))); err != nil {
			t.Fatal(err)
		}
		if events := w.Events(); len(events) > 0 {
			t.Errorf("events %v", events)
		}
	})
}

func TestRejectedObjectIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("bad", "", strings.ReplaceAll(configMap("a", "1"), "shop", "nowhere"), configMap("b", "1"))
		w.expectCondition(mw, "Applied", "False AppliedManifestWorkFailed Failed to apply manifest work")
		w.expectManifestCondition(mw, 0, "Applied",
			"False AppliedManifestFailed Failed to apply manifest: create ConfigMap nowhere/a in cluster \"m1\"")
		w.expectContent("b", "1")
		w.expectManifestCondition(mw, 1, "Applied", "True AppliedManifestComplete")
		w.expectCondition(mw, "Available", "False ResourcesNotAvailable 1 of 2")
		w.m1.Put(namespace("nowhere"))
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		w.expectCondition(mw, "Available", "True ResourcesAvailable")
	})
}

// One Work that can never be written does not hide the status of the others.
func TestUnwritableWorkIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/works") {
				return false
			}
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err != nil || !bytes.Contains(body, []byte(`"name":"bad-`)) {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is too large","reason":"RequestEntityTooLarge","code":413}`))
			return true
		})
		mw := w.make("it", "", configMap("bad", "1"), configMap("a", "1"))
		w.expectManifestCondition(mw, 0, "Applied",
			"False AppliedManifestFailed Failed to apply manifest: write the work bad-")
		w.expectManifestCondition(mw, 0, "Applied", "it is too large")
		w.expectManifestCondition(mw, 1, "Applied", "True AppliedManifestComplete")
		w.expectCondition(mw, "Applied", "False AppliedManifestWorkFailed")
		w.expectContent("a", "1")
		w.Server.Behave(nil)
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
	})
}

func TestWorkWithoutAnnotationIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		name := names.WorkOfManifestWork("it", "", "ConfigMap", "a", "shop")
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"), Name: name}}
		work.Spec.SuspendDispatching = new(true)
		work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: manifests(t,
			configMap("a", "0"))[0].RawExtension}}
		w.Make(work)
		mw := w.make("it", "", configMap("a", "1"))
		w.expectManifestCondition(mw, 0, "Applied", "write the work "+name+
			`: it exists already with "" as its annotation argosy.io/manifest-work, not "it"`)
		controllertest.Change(w.Hub, work, func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{wellknown.ManifestWorkAnnotation: "it"}
		})
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		w.expectContent("a", "1")
	})
}

// A tenant finds a namespace in which the Work of an object has any given short name.
func TestWorkOfATemplateBlocksNoManifestWork(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		theirs := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
			Name: names.WorkOfManifestWork("it", "", "ConfigMap", "a", "shop")}}
		theirs.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: manifests(t,
			configMap("theirs", "0"))[0].RawExtension}}
		w.Make(theirs)
		mw := w.make("it", "", configMap("a", "1"), configMap("b", "1"))
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		w.expectContent("a", "1")
		controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Workload.Manifests = manifests(t, configMap("a", "2"))
		})
		w.expectContent("a", "2")
		if !slices.Contains(w.works(), theirs.Name) { // works cuts the longer hash
			t.Errorf("the Works are %v, want one with a longer name: this test shows nothing", w.works())
		}
		if err := w.Delete(t.Context(), mw); err != nil {
			t.Fatal(err)
		}
		w.gone(mw)
		if w.m1.Object(membertest.ConfigMap, "shop", "a") != nil || !w.HasObject(theirs) {
			t.Error("want the object of the ManifestWork gone, and the Work of the template left alone")
		}
	})
}

func TestFeedbackIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("web", `manifestConfigs:
- resourceIdentifier: {group: apps.kruise.io, resource: clonesets, name: "w*", namespace: shop}
  feedbackRules:
  - {type: WellKnownStatus}
  - {type: JSONPaths, jsonPaths: [{name: wanted, path: .spec.replicas}, {name: revision, path: .status.updateRevision}]}
  conditionRules:
  - {condition: Progressing, type: CEL, celExpressions: ["object.?status.readyReplicas.orValue(0) < object.spec.replicas"], messageExpression: "string(object.?status.readyReplicas.orValue(0)) + ' ready'"}
`, cloneSet)
		w.expectCondition(mw, "Available", "True")
		w.expectCondition(mw, "Progressing", "True ConditionRulesAggregated 0 ready")
		u := w.m1.Object(controllertest.CloneSet, "shop", "web")
		u.Object["status"] = map[string]any{"replicas": int64(3), "readyReplicas": int64(3), "availableReplicas": int64(2),
			"updateRevision": "web-1"}
		w.m1.Put(u)
		w.expectCondition(mw, "Progressing", "False ConditionRulesAggregated 3 ready")
		w.expectManifestCondition(mw, 0, "StatusFeedbackSynced", "True StatusFeedbackSynced")
		var got []string
		for _, v := range mw.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			text, err := json.Marshal(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v.Name+" "+string(text))
		}
		want := []string{`ReadyReplicas {"type":"Integer","integer":3}`, `Replicas {"type":"Integer","integer":3}`,
			`AvailableReplicas {"type":"Integer","integer":2}`,
			`wanted {"type":"Integer","integer":3}`, `revision {"type":"String","string":"web-1"}`}
		if !slices.Equal(got, want) {
			t.Errorf("fed back: %q\nwant %q", got, want)
		}
	})
}

func TestDeleteOptions(t *testing.T) {
	for name, c := range map[string]struct {
		option string
		stays  string
	}{
		"none":       {"", ""},
		"foreground": {"deleteOption: {propagationPolicy: Foreground}", ""},
		"orphan":     {"deleteOption: {propagationPolicy: Orphan}", "a b"},
		"selectively": {"deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: " +
			"[{resource: configmaps, namespace: shop, name: b}]}}", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				mw := w.make("it", c.option, configMap("a", "1"), configMap("b", "1"))
				w.expectCondition(mw, "Applied", "True")
				w.Gone(mw)
				w.gone(mw)
				var stay []string
				for _, name := range []string{"a", "b"} {
					if u := w.m1.Object(membertest.ConfigMap, "shop", name); u != nil {
						stay = append(stay, name)
						for key := range u.GetAnnotations() {
							t.Errorf("%s keeps the annotation %s", name, key)
						}
					}
				}
				if got := strings.Join(stay, " "); got != c.stays {
					t.Errorf("%q stay, want %q", got, c.stays)
				}
				if works := w.works(); len(works) > 0 {
					t.Errorf("there are still works of %v", works)
				}
			})
		})
	}
}

func TestManifestWorkWaitsForCluster(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "m9"}})
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "m9", Name: "early"}}
		mw.Spec.Workload.Manifests = manifests(t, configMap("a", "1"))
		w.Make(mw)
		w.expectCondition(mw, "Applied", `False AppliedManifestWorkFailed there is no cluster "m9", which the namespace refers to; the objects are applied when it joins`)
		w.Quiet()
		w.join("m8")
		for _, line := range w.Quiet() {
			if strings.Contains(line, "manifestworks") {
				t.Errorf("another cluster joined, and this was written: %s", line)
			}
		}
		m9 := w.join("m9")
		w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
		if m9.Object(membertest.ConfigMap, "shop", "a") == nil {
			t.Error("the cluster that joined has not got it")
		}

		// When it leaves, nothing is known any more.
		w.Gone(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m9"}})
		w.expectCondition(mw, "Applied", `False AppliedManifestWorkFailed there is no cluster "m9"`)
		if meta.FindStatusCondition(mw.Status.Conditions, "Available") != nil || len(mw.Status.ResourceStatus.Manifests) > 0 {
			t.Errorf("the status is %+v after the cluster has left", mw.Status)
		}
		w.Gone(mw)
		w.gone(mw)
	})
}

// policyWork creates the Work that a policy would have for ConfigMap a.
func (w *world) policyWork(value string) *workv1alpha1.Work {
	w.t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"),
		Name:        names.Work("ConfigMap", "a", "shop"),
		Finalizers:  []string{workv1alpha2.ExecutionFinalizer},
		Annotations: map[string]string{workv1alpha2.ConflictResolutionAnnotation: "overwrite"}}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: manifests(w.t,
		configMap("a", value))[0].RawExtension}}
	w.Make(work)
	return work
}

// stays waits until the Work owns ConfigMap a, and fails if the object with the uid is deleted.
func (w *world) stays(uid types.UID, work string) {
	w.t.Helper()
	w.Eventually("it is of the work "+work, func() string {
		u := w.m1.Object(membertest.ConfigMap, "shop", "a")
		if u == nil || u.GetUID() != uid {
			w.t.Fatal("it was deleted")
		}
		if got := u.GetAnnotations()[workv1alpha2.WorkNameAnnotation]; got != work {
			return "it is of " + got
		}
		return ""
	})
}

func TestObjectOfPolicySurvivesManifestWork(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("it", "", configMap("a", "1"))
		w.expectCondition(mw, "Applied", "True")
		uid := w.m1.Object(membertest.ConfigMap, "shop", "a").GetUID()
		work := w.policyWork("1")
		w.Eventually("the policy's work is refused", func() string {
			if w.HasObject(work); meta.IsStatusConditionFalse(work.Status.Conditions, "Applied") {
				return ""
			}
			return fmt.Sprint(work.Status.Conditions)
		})
		w.Gone(mw)
		w.gone(mw)
		w.stays(uid, work.Name)
	})
}

func TestObjectOfManifestWorkSurvivesPolicy(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		work := w.policyWork("1")
		w.expectContent("a", "1")
		uid := w.m1.Object(membertest.ConfigMap, "shop", "a").GetUID()
		mw := w.make("it", "", configMap("a", "1"))
		w.expectManifestCondition(mw, 0, "Applied",
			"True AppliedManifestComplete Apply manifest complete: the object matches the manifest, and is managed by the work "+
				work.Name)
		w.Gone(work)
		w.stays(uid, w.workOf(mw).Name)
		w.Gone(mw)
		w.gone(mw)
		w.expectContent("a", "")
	})
}

// workOf returns the only Work of a ManifestWork.
func (w *world) workOf(mw *ocmv1.ManifestWork) *workv1alpha1.Work {
	w.t.Helper()
	var list workv1alpha1.WorkList
	if err := w.List(w.t.Context(), &list, client.InNamespace(names.ExecutionSpace("m1"))); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Annotations[wellknown.ManifestWorkAnnotation] == mw.Name {
			return &list.Items[i]
		}
	}
	w.t.Fatal(mw.Name + " has no work")
	return nil
}

func TestConflictWithPolicyIsReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		work := w.policyWork("of the policy")
		w.expectContent("a", "of the policy")

		other := w.make("other", "", configMap("a", "of the work"))
		w.expectManifestCondition(other, 0, "Applied",
			"False AppliedManifestFailed Failed to apply manifest: resource(kind=ConfigMap, shop/a) in the cluster m1 belongs to the work karmada-es-m1/"+work.Name)
		// A ManifestWork with an equal manifest counts as applied.
		same := w.make("same", "", configMap("a", "of the policy"))
		w.expectManifestCondition(same, 0, "Applied",
			"True AppliedManifestComplete Apply manifest complete: the object matches the manifest, and is managed by the work "+
				work.Name)
		for _, mw := range []*ocmv1.ManifestWork{other, same} {
			w.Gone(mw)
			w.gone(mw)
		}
		w.expectContent("a", "of the policy")
	})
}

func TestObjectOfTwoManifestWorksSurvivesOne(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.make("first", "", configMap("a", "1"))
		w.expectCondition(first, "Applied", "True")
		second := w.make("second", "", configMap("a", "1"))
		w.expectManifestCondition(second, 0, "Applied", "True AppliedManifestComplete")
		w.Gone(first)
		w.gone(first)
		w.Eventually("the second has it", func() string {
			u := w.m1.Object(membertest.ConfigMap, "shop", "a")
			if u == nil {
				t.Fatal("it was deleted")
			}
			if got := u.GetAnnotations()[wellknown.ManifestWorkAnnotation]; got != "second" {
				return "it is of " + got
			}
			return ""
		})
		w.Gone(second)
		w.gone(second)
		w.expectContent("a", "")
	})
}

func TestUpdateStrategies(t *testing.T) {
	config := func(strategy string) string {
		return "manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, updateStrategy: " +
			strategy + "}]"
	}
	// there is an object that somebody has made in the member.
	there := func(w *world) {
		w.m1.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
			Data:       map[string]string{"value": "there"}})
	}
	t.Run("Update takes over what is there", func(t *testing.T) {
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			there(w)
			mw := w.make("it", "", configMap("a", "1"))
			w.expectContent("a", "1")
			w.expectCondition(mw, "Applied", "True")
		})
	})
	t.Run("CreateOnly makes what is absent, and changes nothing later", func(t *testing.T) {
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			mw := w.make("it", config("{type: CreateOnly}"), configMap("a", "1"))
			w.expectCondition(mw, "Applied", "True")
			controllertest.Change(w.Hub, mw,
				func(mw *ocmv1.ManifestWork) { mw.Spec.Workload.Manifests = manifests(t, configMap("a", "2")) })
			w.expectCondition(mw, "Applied", "True")
			w.expectContent("a", "1")
			w.Gone(mw)
			w.gone(mw)
			w.expectContent("a", "")
		})
	})
	t.Run("CreateOnly leaves what is there", func(t *testing.T) {
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			there(w)
			mw := w.make("it", config("{type: CreateOnly}"), configMap("a", "1"))
			w.expectCondition(mw, "Applied", "True")
			w.expectCondition(mw, "Available", "True")
			w.Gone(mw)
			w.gone(mw)
			w.expectContent("a", "there")
		})
	})
	t.Run("ReadOnly writes nothing and reports the object", func(t *testing.T) {
		controllertest.Run(t, func(t *testing.T) {
			w := newWorld(t)
			mw := w.make("it", strings.TrimSuffix(config("{type: ReadOnly}"), "}]")+
				", feedbackRules: [{type: JSONPaths, jsonPaths: [{name: value, path: .data.value}]}]}]", configMap("a", "1"))
			w.expectManifestCondition(mw, 0, "Applied",
				"False AppliedManifestFailed Failed to apply manifest: there is no ConfigMap shop/a in the cluster, and its update strategy is ReadOnly")
			w.expectContent("a", "")
			there(w)
			w.expectCondition(mw, "Applied", "True")
			w.expectCondition(mw, "Available", "True")
			if v := mw.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values; len(v) != 1 || *v[0].Value.String != "there" {
				t.Errorf("fed back: %+v", v)
			}
			w.Gone(mw)
			w.gone(mw)
			w.expectContent("a", "there")
		})
	})
}

func TestReadOnlyKeepsObject(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("it", "", configMap("a", "1"))
		w.expectCondition(mw, "Applied", "True")
		controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
			mw.Spec.ManifestConfigs = []ocmv1.ManifestConfigOption{{ResourceIdentifier: ocmv1.ResourceIdentifier{
				Resource: "configmaps", Name: "a", Namespace: "shop"},
				UpdateStrategy: &ocmv1.UpdateStrategy{Type: ocmv1.UpdateStrategyReadOnly}}}
		})
		w.Eventually("its work is gone", func() string { return strings.Join(w.works(), " ") })
		w.expectCondition(mw, "Available", "True")
		w.expectContent("a", "1")

		// Nor what an executor asks for that the hub does not know: somebody may have written it past admission.
		kept := w.make("kept", "", configMap("b", "1"))
		w.expectCondition(kept, "Applied", "True")
		controllertest.Change(w.Hub, kept, func(mw *ocmv1.ManifestWork) {
			mw.Spec.Executor = &ocmv1.ManifestWorkExecutor{Subject: ocmv1.ManifestWorkExecutorSubject{Type: "ServiceAccount"}}
		})
		w.expectManifestCondition(kept, 0, "Applied",
			"False AppliedManifestFailed Failed to apply manifest: spec.executor is not supported")
		w.expectManifestCondition(kept, 0, "Available", "True")
		w.expectContent("b", "1")
	})
}

func TestCompleteManifestWorkIsDeletedAfterTTL(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("job", `deleteOption: {propagationPolicy: Foreground, ttlSecondsAfterFinished: 0}
manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a, namespace: shop}, conditionRules: [{condition: Complete, type: CEL, celExpressions: ["object.data.value == 'done'"]}]}]`,
			configMap("a", "done"))
		w.gone(mw)
		w.expectContent("a", "")
	})
}

func TestCompleteManifestWorkOfAKlusterletIsDeletedAfterTTL(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "k1"}})
		w.Make(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "k1"}})
		mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "k1", Name: "job",
			Finalizers: []string{ocmv1.ManifestWorkFinalizer}}}
		mw.Spec.DeleteOption = &ocmv1.DeleteOption{TTLSecondsAfterFinished: new(int64(60))}
		w.Make(mw)
		reports := func(status metav1.ConditionStatus) {
			t.Helper()
			if !w.HasObject(mw) {
				t.Fatal("there is no ManifestWork")
			}
			meta.SetStatusCondition(&mw.Status.Conditions, metav1.Condition{Type: ocmv1.Complete, Status: status,
				Reason: "ConditionRulesAggregated", ObservedGeneration: mw.Generation})
			if err := w.Status().Update(t.Context(), mw); err != nil {
				t.Fatal(err)
			}
		}
		reports(metav1.ConditionFalse)
		time.Sleep(2 * time.Minute)
		reports(metav1.ConditionTrue)
		time.Sleep(55 * time.Second)
		if !w.HasObject(mw) || mw.DeletionTimestamp != nil {
			t.Error("it is deleted before its TTL")
		}
		time.Sleep(10 * time.Second)
		if !w.HasObject(mw) || mw.DeletionTimestamp == nil {
			t.Error("it is not deleted after its TTL")
		}
	})
}

func TestCompleteChangeIsApplied(t *testing.T) {
	rule := func(expression string) []ocmv1.ManifestConfigOption {
		return []ocmv1.ManifestConfigOption{{ResourceIdentifier: ocmv1.ResourceIdentifier{Resource: "configmaps", Name: "a",
			Namespace: "shop"},
			ConditionRules: []ocmv1.ConditionRule{{Condition: "Complete", Type: ocmv1.RuleCEL,
				CelExpressions: []string{expression}}}}}
	}
	for name, next := range map[string][]ocmv1.ManifestConfigOption{"the rule goes": nil,
		"the rule changed": rule("object.data.value == 'over'")} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t)
				mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "m1", Name: "it"}}
				mw.Spec.Workload.Manifests, mw.Spec.ManifestConfigs = manifests(t, configMap("a", "1")),
					rule("object.data.value == '1'")
				w.Make(mw)
				w.expectCondition(mw, "Complete", "True")
				controllertest.Change(w.Hub, mw, func(mw *ocmv1.ManifestWork) {
					mw.Spec.Workload.Manifests, mw.Spec.ManifestConfigs = manifests(t, configMap("a", "2")), next
				})
				w.expectCondition(mw, "Applied", "True AppliedManifestWorkComplete")
				if u := w.m1.Object(membertest.ConfigMap, "shop", "a"); u.Object["data"].(map[string]any)["value"] != "2" {
					t.Errorf("it is reported as applied, but the member has %v", u.Object["data"])
				}
			})
		})
	}
}

// The plural names of a cluster are known after its discovery.
func TestOptionsWaitForTheKindsOfTheCluster(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		var serves []clusterv1alpha1.APIEnablement
		set := func(to []clusterv1alpha1.APIEnablement) {
			t.Helper()
			if !w.HasObject(m1) {
				t.Fatal("there is no m1")
			}
			serves, m1.Status.APIEnablements = m1.Status.APIEnablements, to
			if err := w.Status().Update(t.Context(), m1); err != nil {
				t.Fatal(err)
			}
		}
		set(nil)
		w.Quiet()
		mw := w.make("it", "", configMap("a", "1"))
		w.Quiet()
		if works := w.works(); len(works) > 0 {
			t.Errorf("there are works of %v", works)
		}
		set(serves)
		w.expectCondition(mw, "Applied", "True")
	})
}

func TestUnreachableClusterBlocksDeletionWithReason(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		mw := w.make("it", "", configMap("a", "1"))
		w.expectCondition(mw, "Applied", "True")
		w.Ready("m1", metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable)
		w.Quiet() // who takes the objects away sees it too
		w.Gone(mw)
		w.expectCondition(mw, "Deleting",
			`True WorkDeleting The objects in the cluster are deleted or released before the ManifestWork is deleted: cluster "m1" is not ready`)
		w.expectContent("a", "1")
		w.Ready("m1", metav1.ConditionTrue, "ClusterReady")
		w.gone(mw)
		w.expectContent("a", "")
	})
}
