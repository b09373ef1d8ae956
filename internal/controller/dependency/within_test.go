package dependency

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// The author of a template chooses the dependencies that a script reads from it.
func TestDependencyInAnotherNamespaceDoesNotFollow(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		of := func(namespace, name string) configv1alpha1.DependentObjectReference {
			return configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
		}
		labelled := of("treasury", "")
		labelled.LabelSelector = &metav1.LabelSelector{}
		anywhere := of("", "")
		anywhere.LabelSelector = &metav1.LabelSelector{}
		for what, ref := range map[string]configv1alpha1.DependentObjectReference{"by its name": of("treasury", "vault"),
			"by labels": labelled, "by labels in any namespace": anywhere} {
			for _, alone := range []bool{true, false} {
				h := newHub(t)
				h.needs = []configv1alpha1.DependentObjectReference{ref}
				if !alone {
					h.needs = append(h.needs, settingsRef)
				}
				h.create(object("ConfigMap", "shop", "settings"))
				h.create(object("Secret", "treasury", "vault"))
				h.workload("Deployment", "shop", "web", "eu")
				h.settle()
				if _, err := scope.Bindings.Get(t.Context(), h.client,
					types.NamespacedName{Namespace: "treasury", Name: "vault-secret"}); !apierrors.IsNotFound(err) {
					t.Errorf("%s: a Secret of another namespace follows: %v", what, err)
				}
				if !alone && h.going(settings) {
					t.Errorf("%s: what is in the template's own namespace does not follow", what)
				}
				var events []string
				for len(h.recorder.Events) > 0 {
					events = append(events, <-h.recorder.Events)
				}
				found := slices.ContainsFunc(events, func(e string) bool {
					return strings.Contains(e, "Secret treasury/") && strings.Contains(e, "another namespace")
				})
				if named := ref.Namespace != ""; found != named || named && len(events) != 2 {
					t.Errorf("%s: events are %q", what, events)
				}
				if w := h.settle(); len(w) > 0 || len(h.recorder.Events) > 0 {
					t.Errorf("%s: a second look wrote %v", what, w)
				}
			}
		}
	})
}

func TestClusterScopedTemplateHasNamespacedDependencies(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef}
		h.create(object("ConfigMap", "shop", "settings"))
		h.workload("ClusterTool", "", "web", "eu")
		h.settle()
		if h.going(settings) {
			t.Error("what it depends on does not follow")
		}
	})
}
