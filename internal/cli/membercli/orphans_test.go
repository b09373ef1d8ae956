package membercli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// What is being deleted with its Work may go between two looks: it was never the hub's without a Work.
func TestObjectDeletedWithItsWorkIsNoOrphan(t *testing.T) {
	configMaps := membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
		Namespaced: true}
	works := membertest.Kind{GroupVersionKind: workv1alpha1.GroupVersion.WithKind("Work"), Plural: "works",
		Namespaced: true}
	member := membertest.New(t, configMaps)
	for _, name := range []string{"left", "going"} {
		member.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
				Labels: map[string]string{workv1alpha2.ManagedLabel: "true"},
				Annotations: map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-eu",
					workv1alpha2.WorkNameAnnotation: name}}})
	}
	s := clitest.See(t, map[string]*membertest.Server{"eu": member})
	s.Api.Serve(works)
	s.Api.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/works") {
			member.Remove(configMaps, "shop", "going")
		}
		return false
	})
	out, said, err := s.Run(func(hub *hubcli.HubFlags,
		_ genericiooptions.IOStreams) *cobra.Command {
		return NewOrphans(hub)
	},
		"")
	if err != nil || !strings.Contains(out, "left") || strings.Contains(out, "going") {
		t.Errorf("%s%s (%v), want the object alone that has no Work", out, said, err)
	}
}

func TestDeleteAllOrphansSucceedsIfThereAreNone(t *testing.T) {
	configMaps := membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
		Namespaced: true}
	s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t, configMaps)})
	orphans := func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command { return NewOrphans(hub) }
	_, stderr, err := s.Run(orphans, "", "delete", "--all", "--yes")
	if err != nil || stderr != "No orphans found\n" {
		t.Errorf("--all: got %q (%v), want a note that there are none", stderr, err)
	}
	if _, _, err = s.Run(orphans, "", "delete", "configmap", "settings", "-n", "shop"); err == nil {
		t.Error("deleting an orphan by a name that does not exist succeeds")
	}
}

func TestDeleteAllOrphansKeepsNamespacesAndDefinitions(t *testing.T) {
	of := func(group, resource, kind, name string) Orphan {
		return Orphan{Kind: kind, Name: name, Resource: schema.GroupVersionResource{Group: group, Version: "v1",
			Resource: resource}}
	}
	rest, left := withoutParents([]Orphan{
		of("", "namespaces", "Namespace", "shop"),
		of("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "trains.example.com"),
		of("example.com", "namespaces", "Namespace", "another kind of that name"),
		of("apps", "deployments", "Deployment", "web"),
	})
	if left != 2 || len(rest) != 2 || rest[0].Resource.Group != "example.com" || rest[1].Name != "web" {
		t.Errorf("%d are left out, the rest is %v", left, rest)
	}
}

// Users of a member write the marks of its objects: forged names reach no other path of the hub, and hide no orphan.
func TestForgedFormerNamesHideNoOrphan(t *testing.T) {
	configMaps := membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
		Namespaced: true}
	works := membertest.Kind{GroupVersionKind: workv1alpha1.GroupVersion.WithKind("Work"), Plural: "works",
		Namespaced: true}
	namespaces := membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Plural: "namespaces"}
	many := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("f%02d", i))
		}
		return out
	}
	for story, tc := range map[string]struct {
		former []string
		status int // of the lists of Works of former names
		listed int // former names whose objects are listed
		note   string
	}{
		"a path":                       {former: []string{"x/../../y", "..", "a b"}, status: http.StatusOK},
		"a former name":                {former: []string{"old"}, status: http.StatusOK, listed: 1},
		"one that may not be read":     {former: []string{"old"}, status: http.StatusForbidden, note: "its former name old"},
		"one that the hub lacks":       {former: []string{"old"}, status: http.StatusNotFound, note: "its former name old"},
		"as many as a cluster has":     {former: many(10), status: http.StatusOK, listed: 10},
		"more than a cluster may have": {former: many(25), status: http.StatusOK, listed: 10, note: "15 former names"},
	} {
		t.Run(story, func(t *testing.T) {
			member := membertest.New(t, configMaps)
			s := clitest.See(t, map[string]*membertest.Server{"eu": member})
			s.Api.Serve(works)
			s.Api.Serve(namespaces)
			system := s.Api.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
			put := func(name, cluster, work string) {
				member.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
						Labels: map[string]string{workv1alpha2.ManagedLabel: "true"},
						Annotations: map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-" + cluster,
							workv1alpha2.WorkNameAnnotation: work, "argosy.io/hub": string(system.GetUID())}}})
			}
			put("left", "eu", "../../../left")
			for i, former := range tc.former {
				put(fmt.Sprintf("former-%d", i), former, "w")
			}
			var mu sync.Mutex
			asked := map[string]bool{}
			s.Api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/works") || strings.HasSuffix(r.URL.Path, "/left") {
					mu.Lock()
					asked[r.URL.Path] = true
					mu.Unlock()
				}
				if tc.status == http.StatusOK || !strings.Contains(r.URL.Path, "/karmada-es-old/works") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
					Status: metav1.StatusFailure, Code: int32(tc.status), Message: "no"})
				return true
			})
			config, err := (&hubcli.HubFlags{Kubeconfig: s.File}).ToRESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			notes := &noted{}
			config.WarningHandler = notes
			found, err := FindOrphans(t.Context(), config, []string{"eu"})
			if err != nil || len(found) != 1+tc.listed || found[len(found)-1].Name != "left" {
				t.Errorf("got %v (%v), want the orphan of the cluster and %d of former names", found, err, tc.listed)
			}
			if said := strings.Join(notes.said, "\n"); !strings.Contains(said, tc.note) || tc.note == "" && said != "" {
				t.Errorf("the notes are %q, want %q", said, tc.note)
			}
			for i := range found {
				if err := found[i].delete(t.Context(), config); err != nil {
					t.Errorf("delete %s: %v", &found[i], err)
				}
			}
			if len(asked) > 1+2*tc.listed+1 {
				t.Errorf("it asks the hub for %v", asked)
			}
			for path := range asked {
				if !strings.HasPrefix(path, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-") ||
					strings.Contains(path, "..") {
					t.Errorf("it asks the hub for %s", path)
				}
			}
		})
	}
}

type noted struct{ said []string }

func (n *noted) HandleWarningHeader(_ int, _, text string) { n.said = append(n.said, text) }

// A run that has ended gets no Work where its cluster joins again, while the hub still has its template.
func TestTheObjectOfARunThatEndedIsNoOrphan(t *testing.T) {
	kind := func(group, version, kind, plural string) membertest.Kind {
		return membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			Plural: plural, Namespaced: true}
	}
	jobs, workflows := kind("batch", "v1", "Job", "jobs"), kind("argoproj.io", "v1alpha1", "Workflow", "workflows")
	const (
		divided  = `{replicas: 2, placement: {replicaScheduling: {replicaSchedulingType: Divided}}, clusters: [{name: eu}]}`
		each     = `{replicas: 2, placement: {}, clusters: [{name: us, replicas: 2}]}`
		complete = `{conditions: [{type: Complete, status: "True"}]}`
		failed   = `{conditions: [{type: Failed, status: "True"}]}`
	)
	for name, c := range map[string]struct {
		kind            membertest.Kind
		status, binding string
		uid             string // of the template from which the object was created; that of the binding is "current"
		denied          string // a part of the paths that the user may not read
		orphan          bool
	}{
		"a divided Job":             {jobs, complete, divided, "current", "", false},
		"a divided Job that failed": {jobs, failed, divided, "current", "", false},
		"a divided Job that runs":   {jobs, "{active: 1}", divided, "current", "", true},
		"a Workflow":                {workflows, "{phase: Succeeded}", each, "current", "", false},
		"a Workflow that failed":    {workflows, "{phase: Error}", each, "current", "", false},
		"a Workflow that runs":      {workflows, "{phase: Running}", each, "current", "", true},
		"a Job of each cluster":     {jobs, complete, each, "current", "", true},
		"a Job that is nowhere":     {jobs, complete, "{replicas: 2, placement: {}}", "current", "", false},
		"one of a former template":  {jobs, complete, divided, "former", "", true},
		"one of no template":        {jobs, complete, divided, "", "", true},
		"a Job without a binding":   {jobs, complete, "", "current", "", true},
		"one that is hidden":        {jobs, complete, divided, "current", "/resourcebindings/", true},
		"a ConfigMap":               {membertest.ConfigMap, complete, divided, "current", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			member := membertest.New(t, c.kind)
			s := clitest.See(t, map[string]*membertest.Server{"eu": member})
			s.Api.Serve(kind("work.karmada.io", "v1alpha1", "Work", "works"))
			s.Api.Serve(kind("work.karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings"))
			version := c.kind.GroupVersion().String()
			object := func(text string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
					t.Fatal(err)
				}
				u.SetNamespace("shop")
				return u
			}
			if c.binding != "" {
				s.Api.Put(object(fmt.Sprintf("{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: %s}, "+
					"spec: {resource: {apiVersion: %s, kind: %s, namespace: shop, name: run, uid: current}, %s}",
					names.Binding(c.kind.Kind, "run"), version, c.kind.Kind, c.binding[1:])))
			}
			there := object(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: run}, status: %s}", version, c.kind.Kind,
				c.status))
			there.SetLabels(map[string]string{workv1alpha2.ManagedLabel: "true"})
			there.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-eu",
				workv1alpha2.WorkNameAnnotation: "run", workv1alpha2.TemplateUIDAnnotation: c.uid})
			member.Put(there)
			s.Api.Behave(func(w http.ResponseWriter, r *http.Request) bool {
				if c.denied == "" || !strings.Contains(r.URL.Path, c.denied) {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
					Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden})
				return true
			})
			config, err := (&hubcli.HubFlags{Kubeconfig: s.File}).ToRESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			found, err := FindOrphans(t.Context(), config, []string{"eu"})
			if err != nil || (len(found) > 0) != c.orphan {
				t.Errorf("got %v (%v), want an orphan: %t", found, err, c.orphan)
			}
		})
	}
}
