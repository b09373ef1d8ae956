package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/test/kit"
)

const ocmAPI = "work.open-cluster-management.io/v1"

// clusterNamespace is the hub's namespace of a member's ManifestWorks. It stays for all tests, and is sent to no
// member.
func clusterNamespace(t *testing.T, member string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member,
		Labels: map[string]string{"namespace.karmada.io/skip-auto-propagation": "true"}}}
	if err := fleet.Hub.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// manifestWork is one for m1; more is the rest of its spec.
func manifestWork(t *testing.T, name, more string, objects ...string) string {
	t.Helper()
	var all []string
	for _, text := range objects {
		all = append(all, asJSON(t, kit.Object(t, text)))
	}
	return fmt.Sprintf("{apiVersion: %s, kind: ManifestWork, metadata: {name: %s, namespace: m1}, spec: {workload: {manifests: [%s]}%s}}", ocmAPI, name, strings.Join(all, ", "), more)
}

// worked waits until conditions of a ManifestWork for m1 are as wanted, such as "Applied=True", and gives it.
func worked(t *testing.T, name string, want ...string) *ocmv1.ManifestWork {
	t.Helper()
	mw := &ocmv1.ManifestWork{}
	kit.Eventually(t, "ManifestWork "+name+" says "+strings.Join(want, ", "), func() string {
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: "m1", Name: name}, mw); err != nil {
			return err.Error()
		}
		for _, w := range want {
			kind, status, _ := strings.Cut(w, "=")
			if c := meta.FindStatusCondition(mw.Status.Conditions, kind); c == nil || string(c.Status) != status ||
				c.ObservedGeneration != mw.Generation {
				return fmt.Sprintf("%+v", mw.Status)
			}
		}
		return ""
	})
	return mw
}

// What users of Open Cluster Management have goes to the cluster that its namespace names, and what they watch comes
// back.
func TestAManifestWorkRunsACloneSetInItsCluster(t *testing.T) {
	t.Parallel()
	clusterNamespace(t, "m1")
	ns := "mw-" + fleet.Namespace(t) // made by the ManifestWork itself
	name := "shop-" + ns
	spec := fmt.Sprintf(`, manifestConfigs: [{resourceIdentifier: {group: apps.kruise.io, resource: clonesets, name: web, namespace: %s},
		feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: wanted, path: .spec.replicas}]}],
		conditionRules: [{condition: Progressing, type: CEL, celExpressions: ["object.?status.readyReplicas.orValue(0) < object.spec.replicas"]}]}]`, ns)
	fleet.Hub.Apply(t, manifestWork(t, name, spec, cloneSet(ns, "web", 2, "example.com/web:1", ""), namespaceYAML(ns, "")))

	mw := worked(t, name, "Applied=True", "Available=True", "Progressing=False")
	kit.Eventually(t, "m1 alone holds it", func() string {
		return lacks(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web", "m1")
	})
	feedback := func(mw *ocmv1.ManifestWork) string {
		var all []string
		for _, v := range mw.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			all = append(all, fmt.Sprintf("%s=%d", v.Name, *v.Value.Integer))
		}
		return strings.Join(all, " ")
	}
	kit.Eventually(t, "its counters come back", func() string {
		mw = worked(t, name)
		if got := feedback(mw); got != "ReadyReplicas=2 Replicas=2 AvailableReplicas=2 UpdatedReplicas=2 UpdatedReadyReplicas=2 wanted=2" {
			return got
		}
		return ""
	})
	if m := mw.Status.ResourceStatus.Manifests[0].ResourceMeta; m.Resource != "clonesets" || m.Ordinal != 0 ||
		m.Kind != "CloneSet" {
		t.Errorf("the first manifest is %+v", m)
	}

	// The Work shows whose it is, and who looks in the member sees it, too.
	if got := fleet.Members["m1"].Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns,
		"web").GetAnnotations()["argosy.io/manifest-work"]; got != name {
		t.Errorf("the member's object is of %q", got)
	}

	fleet.Hub.Change(t, ocmAPI, "ManifestWork", "m1", name, func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "workload", "manifests")
		_ = unstructured.SetNestedField(list[0].(map[string]any), int64(3), "spec", "replicas")
		_ = unstructured.SetNestedSlice(u.Object, list, "spec", "workload", "manifests")
	})
	kit.Eventually(t, "it is scaled", func() string {
		if got := feedback(worked(t, name, "Applied=True")); !strings.HasPrefix(got, "ReadyReplicas=3 Replicas=3") {
			return got
		}
		return ""
	})
	fleet.Hub.Remove(t, ocmAPI, "ManifestWork", "m1", name)
	kit.Eventually(t, "it is gone, from the cluster first", func() string {
		if fleet.Hub.Find(t, ocmAPI, "ManifestWork", "m1", name) != nil {
			return "it is there"
		}
		return ""
	})
	if u := fleet.Members["m1"].Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web"); u != nil &&
		u.GetDeletionTimestamp() == nil {
		t.Error("the ManifestWork is gone, and its CloneSet is not")
	}
}

// Whoever applies a field in the member keeps it from a ManifestWork that yields, and what is to be ignored stays as it
// is there.
func TestServerSideApplyOfAManifestWorkYields(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	clusterNamespace(t, "m1")
	ns := fleet.Namespace(t)
	kit.Eventually(t, "the namespace is in m1", func() string {
		return lacks(t, "v1", "Namespace", "", ns, "m1", "m2", "m3")
	})
	theirs := kit.Object(t, fmt.Sprintf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: %s}, data: {key: theirs}}", ns))
	if err := fleet.Members["m1"].Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs),
		client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	name := "yields-" + ns
	config := func(strategy string) string {
		return fmt.Sprintf(`, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: "*", namespace: %s}, updateStrategy: %s}]`, ns, strategy)
	}
	value := func(name string) string {
		return fmt.Sprint(kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, name), "data", "key"))
	}
	objects := []string{configMap(ns, "theirs", "ours"), configMap(ns, "free", "ours")}
	fleet.Hub.Apply(t, manifestWork(t, name, config("{type: ServerSideApply}"), objects...))
	mw := worked(t, name, "Applied=False", "Available=True")
	if c := meta.FindStatusCondition(mw.Status.ResourceStatus.Manifests[0].Conditions,
		"Applied"); !strings.Contains(c.Message, `conflict with "somebody"`) {
		t.Errorf("reported: %q", c.Message)
	}
	if got := value("theirs") + " " + value("free"); got != "theirs ours" {
		t.Errorf("the values are %s", got)
	}
	fleet.Hub.Apply(t, manifestWork(t, name,
		config("{type: ServerSideApply, serverSideApply: {force: true, ignoreFields: [{condition: OnSpokeChange, jsonPaths: [.data.key]}]}}"), objects...))
	worked(t, name, "Applied=True")
	fleet.Members["m1"].Change(t, "v1", "ConfigMap", ns, "free", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "changed there", "data", "key")
	})
	kit.Stays(t, "what is changed in the cluster stays", 2*time.Second, func() string {
		if got := value("free"); got != "changed there" {
			return got
		}
		return ""
	})
	fleet.Hub.Apply(t, manifestWork(t, name, config("{type: ServerSideApply, serverSideApply: {force: true}}"),
		objects...))
	kit.Eventually(t, "it is as the manifest has it", func() string {
		if got := value("theirs") + " " + value("free"); got != "ours ours" {
			return got
		}
		return ""
	})
}

func TestManifestWorkReportsUnsupportedFields(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	clusterNamespace(t, "m1")
	c, heard := listening(t, "")
	ns := fleet.Namespace(t)
	create := func(text string) error { return c.Create(t.Context(), kit.Object(t, text), client.DryRunAll) }
	refusedWith(t, create(manifestWork(t, "it",
		", executor: {subject: {type: ServiceAccount, serviceAccount: {name: a, namespace: b}}}", configMap(ns, "a", "1"))),
		"spec.executor: Forbidden: executors are not supported", "an executor")
	refusedWith(t, create(manifestWork(t, "it", "", configMap(ns, "a", "1"), configMap(ns, "a", "2"))),
		"spec.workload.manifests[1]: Duplicate value", "an object twice")
	heard.take()
	if err := create(strings.Replace(manifestWork(t, "it", "", configMap(ns, "a", "1")), "namespace: m1", "namespace: "+ns,
		1)); err != nil {
		t.Fatal(err)
	}
	if got := heard.take(); !strings.Contains(got, fmt.Sprintf("there is no cluster %q", ns)) {
		t.Errorf("warned is %q", got)
	}
}
