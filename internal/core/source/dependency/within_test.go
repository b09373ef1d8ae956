package dependency_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

func TestDependenciesAreInTheNamespaceOfTheTemplate(t *testing.T) {
	secret := func(namespace string) configv1alpha1.DependentObjectReference {
		return configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "tls"}
	}
	labelled := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "treasury",
		LabelSelector: &metav1.LabelSelector{}}
	class := configv1alpha1.DependentObjectReference{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass",
		Name: "high"}
	all := []configv1alpha1.DependentObjectReference{secret("shop"), secret("treasury"), class, secret("karmada-cluster"),
		labelled}

	within, elsewhere := dependency.Within("shop", all)
	if diff := cmp.Diff([]configv1alpha1.DependentObjectReference{secret("shop"), class}, within); diff != "" {
		t.Errorf("what follows (-want +got):\n%s", diff)
	}
	var errs []string
	for _, err := range elsewhere {
		if !errors.Is(err, dependency.ErrElsewhere) {
			t.Errorf("%v is none that callers know", err)
		}
		errs = append(errs, err.Error())
	}
	const why = " is in another namespace; only dependencies in the namespace of the template are propagated with it"
	if diff := cmp.Diff([]string{"Secret treasury/tls" + why, "Secret karmada-cluster/tls" + why,
		"Secret treasury/(selected by labels)" + why}, errs); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if within, elsewhere := dependency.Within("", all); len(within) != len(all) || elsewhere != nil {
		t.Errorf("a template in no namespace may depend on what is in any: %v, %v", within, elsewhere)
	}

	// A reference without a namespace selects in all.
	for text, want := range map[string]bool{
		"{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: tls}}":     true,
		"{apiVersion: v1, kind: Secret, metadata: {namespace: treasury, name: tls}}": false,
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}}":           true,
	} {
		if got := dependency.MayFollow("shop", coretest.Object(t, text)); got != want {
			t.Errorf("%s follows a template in shop: %t, want %t", text, got, want)
		}
	}
}
