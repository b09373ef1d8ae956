package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/member/membertest"
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
	s := see(t, map[string]*membertest.Server{"eu": member})
	s.api.Serve(works)
	s.api.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/works") {
			member.Remove(configMaps, "shop", "going")
		}
		return false
	})
	out, said, err := s.run(func(hub *hubFlags, _ genericiooptions.IOStreams) *cobra.Command { return newOrphans(hub) },
		"")
	if err != nil || !strings.Contains(out, "left") || strings.Contains(out, "going") {
		t.Errorf("%s%s (%v), want the object alone that has no Work", out, said, err)
	}
}

func TestDeleteAllOrphansSucceedsIfThereAreNone(t *testing.T) {
	configMaps := membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps",
		Namespaced: true}
	s := see(t, map[string]*membertest.Server{"eu": membertest.New(t, configMaps)})
	orphans := func(hub *hubFlags, _ genericiooptions.IOStreams) *cobra.Command { return newOrphans(hub) }
	_, stderr, err := s.run(orphans, "", "delete", "--all", "--yes")
	if err != nil || stderr != "No orphans found\n" {
		t.Errorf("--all: got %q (%v), want a note that there are none", stderr, err)
	}
	if _, _, err = s.run(orphans, "", "delete", "configmap", "settings", "-n", "shop"); err == nil {
		t.Error("deleting an orphan by a name that does not exist succeeds")
	}
}

func TestDeleteAllOrphansKeepsNamespacesAndDefinitions(t *testing.T) {
	of := func(group, resource, kind, name string) orphan {
		return orphan{Kind: kind, Name: name, resource: schema.GroupVersionResource{Group: group, Version: "v1",
			Resource: resource}}
	}
	rest, left := withoutHolders([]orphan{
		of("", "namespaces", "Namespace", "shop"),
		of("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "trains.example.com"),
		of("example.com", "namespaces", "Namespace", "another kind of that name"),
		of("apps", "deployments", "Deployment", "web"),
	})
	if left != 2 || len(rest) != 2 || rest[0].resource.Group != "example.com" || rest[1].Name != "web" {
		t.Errorf("%d are left out, the rest is %v", left, rest)
	}
}
