package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// workName is how tools compute the name of a Work, from what they know of it: written again here, not taken from our
// own code.
func workName(kind, name, namespace string) string {
	name = strings.ToLower(strings.ReplaceAll(name, ":", "."))
	of := namespace + "-" + name + "-" + strings.ToLower(kind)
	if namespace == "" {
		of = name + "-" + strings.ToLower(kind)
	}
	h := fnv.New32a()
	h.Write([]byte(of))
	return name + "-" + rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

func TestKarmadaToolsFindTemplatesAndWorks(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1, m2]}}"))
	role := "system:tools-" + ns
	fleet.Hub.Apply(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: `+ns+`}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "`+role+`"}]
  placement: {clusterAffinity: {clusterNames: [m1, m2]}}`)
	for _, scope := range []struct {
		template, apiVersion, kind, namespace, name, binding string
		prefix, policy                                       string
	}{
		{deployment(ns, "web", 1, "example.com/web:1"), "apps/v1", "Deployment", ns, "web", "web-deployment",
			"resourcebinding", "propagationpolicy"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "` + role + `"}}`,
			"rbac.authorization.k8s.io/v1", "ClusterRole", "", role, strings.ReplaceAll(role, ":", ".") + "-clusterrole",
			"clusterresourcebinding", "clusterpropagationpolicy"},
	} {
		t.Run(scope.kind, func(t *testing.T) {
			fleet.Hub.Apply(t, scope.template)
			kit.Eventually(t, "members hold it", func() string {
				return lacks(t, scope.apiVersion, scope.kind, scope.namespace, scope.name, "m1", "m2")
			})
			template := fleet.Hub.Find(t, scope.apiVersion, scope.kind, scope.namespace, scope.name)

			// A dashboard lists bindings and looks for the owner.
			var owned []unstructured.Unstructured
			var bindings unstructured.UnstructuredList
			bindings.SetAPIVersion("work.karmada.io/v1alpha2")
			bindings.SetKind("ResourceBindingList")
			if scope.namespace == "" {
				bindings.SetKind("ClusterResourceBindingList")
			}
			if err := fleet.Hub.List(t.Context(), &bindings, client.InNamespace(scope.namespace)); err != nil {
				t.Fatal(err)
			}
			for _, b := range bindings.Items {
				if slices.ContainsFunc(b.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
					return o.UID == template.GetUID()
				}) {
					owned = append(owned, b)
				}
			}
			if len(owned) != 1 || owned[0].GetName() != scope.binding || !*owned[0].GetOwnerReferences()[0].Controller ||
				!*owned[0].GetOwnerReferences()[0].BlockOwnerDeletion {
				t.Fatalf("the template owns %v", owned)
			}
			b := owned[0]
			id := b.GetLabels()[scope.prefix+".karmada.io/permanent-id"]
			policyID := template.GetLabels()[scope.policy+".karmada.io/permanent-id"]
			if id == "" || policyID == "" || b.GetLabels()[scope.policy+".karmada.io/permanent-id"] != policyID ||
				b.GetAnnotations()[scope.policy+".karmada.io/name"] == "" {
				t.Errorf("the binding's labels are %v, annotations %v", b.GetLabels(), b.GetAnnotations())
			}

			// It finds Works by the binding's name in an annotation, or by its id in a label; others compute the name.
			for _, find := range []client.ListOption{client.MatchingLabels{scope.prefix + ".karmada.io/permanent-id": id},
				client.InNamespace("")} {
				var works workv1alpha1.WorkList
				if err := fleet.Hub.List(t.Context(), &works, find); err != nil {
					t.Fatal(err)
				}
				var found []string
				for _, w := range works.Items {
					if w.Annotations[scope.prefix+".karmada.io/name"] == scope.binding &&
						w.Annotations["resourcebinding.karmada.io/namespace"] == scope.namespace {
						found = append(found, w.Namespace+"/"+w.Name)
					}
				}
				slices.Sort(found)
				name := workName(scope.kind, scope.name, scope.namespace)
				if want := []string{"karmada-es-m1/" + name, "karmada-es-m2/" + name}; !slices.Equal(found, want) {
					t.Errorf("its Works are %v, want %v", found, want)
				}
			}

			// And back from the member.
			in := fleet.Members["m1"].Find(t, scope.apiVersion, scope.kind, scope.namespace, scope.name)
			notes, marks := in.GetAnnotations(), in.GetLabels()
			work := &workv1alpha1.Work{}
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: notes["work.karmada.io/namespace"],
				Name: notes["work.karmada.io/name"]}, work); err != nil {
				t.Fatal(err)
			}
			if marks["karmada.io/managed"] != "true" ||
				marks["work.karmada.io/permanent-id"] != work.Labels["work.karmada.io/permanent-id"] ||
				marks[scope.prefix+".karmada.io/permanent-id"] != id || notes[scope.prefix+".karmada.io/name"] != scope.binding ||
				notes["resourcetemplate.karmada.io/uid"] != string(template.GetUID()) {
				t.Errorf("the member's object is marked %v, %v", marks, notes)
			}
			if len(work.Spec.Workload.Manifests) != 1 {
				t.Errorf("the Work has %d manifests", len(work.Spec.Workload.Manifests))
			}
			kit.Eventually(t, "its status names the object", func() string {
				if err := fleet.Hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
					t.Fatal(err)
				}
				if len(work.Status.ManifestStatuses) != 1 {
					return fmt.Sprint(work.Status)
				}
				got := work.Status.ManifestStatuses[0].Identifier
				if got.Kind != scope.kind || got.Name != scope.name || got.Namespace != scope.namespace || got.Group+"/"+
					got.Version != scope.apiVersion || got.Resource != "" {
					return fmt.Sprintf("%+v", got)
				}
				return ""
			})
		})
	}
}

// Typed clients decode everything that the hub serves, and lose nothing when they write it back.
func TestTypedClientsReadEveryFieldAndWriteItBack(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{clusterAffinity: {clusterNames: [m1]}}"))
	fleet.Hub.Apply(t, deployment(ns, "typed", 1, "example.com/web:1"))
	kit.Eventually(t, "it is applied", func() string { return placed(t, ns, "typed-deployment", "m1") })
	c := kubernetes.NewForConfigOrDie(fleet.Hub.Config)
	for path, typed := range map[string]client.Object{
		"/apis/cluster.karmada.io/v1alpha1/clusters/m1": &clusterv1alpha1.Cluster{},
		"/apis/policy.karmada.io/v1alpha1/namespaces/" + ns +
			"/propagationpolicies/p": &policyv1alpha1.PropagationPolicy{},
		"/apis/work.karmada.io/v1alpha2/namespaces/" + ns +
			"/resourcebindings/typed-deployment": &workv1alpha2.ResourceBinding{},
		"/apis/work.karmada.io/v1alpha1/namespaces/" + ns +
			"/resourcebindings/typed-deployment": &workv1alpha1.ResourceBinding{},
		"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/" +
			workName("Deployment", "typed", ns): &workv1alpha1.Work{},
	} {
		var before int64
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the hub writes statuses at any time
			raw, err := c.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
			if err != nil {
				return err
			}
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			if err := d.Decode(typed); err != nil {
				return err
			}
			before = typed.GetGeneration()
			return fleet.Hub.Update(t.Context(), typed)
		})
		if err != nil {
			t.Errorf("read %s and write it back: %v", path, err)
			continue
		}
		if typed.GetGeneration() != before {
			t.Errorf("writing %s back changed its spec", path)
		}
	}

	m1 := clusterOf(t, "m1")
	s := m1.Status
	if s.NodeSummary == nil || s.NodeSummary.TotalNum < 3 || s.NodeSummary.ReadyNum < 3 { // some tests add their own
		t.Errorf("nodes: %+v", s.NodeSummary)
	}
	if r := s.ResourceSummary; r == nil || r.Allocatable.Cpu().Value() < 96 || r.Allocatable.Pods().Value() < 750 ||
		len(r.AllocatableModelings) != 9 {
		t.Errorf("resources: %+v", r)
	}
	kit.Eventually(t, "what is allocated is counted", func() string {
		if r := clusterOf(t, "m1").Status.ResourceSummary; r.Allocated.Cpu().MilliValue() < 10 ||
			r.Allocated.Pods().Value() < 1 {
			return fmt.Sprintf("%+v", r.Allocated)
		}
		return ""
	})
	if !strings.HasPrefix(s.KubernetesVersion, "v1.") {
		t.Errorf("version %q", s.KubernetesVersion)
	}
	for i, gv := range s.APIEnablements {
		if i > 0 && s.APIEnablements[i-1].GroupVersion >= gv.GroupVersion {
			t.Errorf("the group versions are not sorted: %s before %s", s.APIEnablements[i-1].GroupVersion, gv.GroupVersion)
		}
		if !slices.IsSortedFunc(gv.Resources, func(a, b clusterv1alpha1.APIResource) int {
			return strings.Compare(a.Name, b.Name)
		}) ||
			slices.ContainsFunc(gv.Resources, func(r clusterv1alpha1.APIResource) bool {
				return strings.Contains(r.Name, "/")
			}) {
			t.Errorf("the resources of %s are %v", gv.GroupVersion, gv.Resources)
		}
	}
}

func TestTheBinaryAnswersToTheNameKarmadactl(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "karmadactl")
	if err := os.Symlink(fleet.Lab.Hub.Binary, link); err != nil {
		t.Fatal(err)
	}
	karmadactl := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), link,
			append([]string{"--kubeconfig=" + fleet.Lab.Hub.Kubeconfig(), "--karmada-context=karmada-apiserver"},
				args...)...).CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"get", "clusters"}, {"--namespace=default", "get", "clusters"},
		{"get", "cluster", "m1", "-o", "wide"}} {
		out, err := karmadactl(args...)
		if err != nil || !strings.HasPrefix(out, "NAME") || !strings.Contains(out, "\nm1 ") ||
			!strings.Contains(out, "Push") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if out, err := karmadactl("get", "cluster", "m1", "-o", "jsonpath={.spec.syncMode}"); err != nil || out != "Push" {
		t.Errorf("%v %q", err, out)
	}
	if out, err := karmadactl("-n", "karmada-es-m1", "get", "works"); err != nil ||
		!strings.Contains(out, "WORKLOAD-KIND") && !strings.Contains(out, "No resources found") {
		t.Errorf("%v %q", err, out)
	}
	if out, err := karmadactl("unjoin", "nobody"); err == nil || !strings.HasPrefix(out, "karmadactl unjoin: ") &&
		!strings.HasPrefix(out, "karmadactl: ") {
		t.Errorf("it does not call itself by that name: %v %q", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), link, "--kubeconfig="+fleet.Lab.Hub.Kubeconfig(),
		"--karmada-context=nobody", "get", "clusters").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "nobody") {
		t.Errorf("a context that is not there: %v %q", err, out)
	}
}
