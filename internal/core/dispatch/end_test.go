package dispatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

func TestBindingDeletionDeletesWorksOnlyWithItsTemplate(t *testing.T) {
	now := metav1.Now()
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p",
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}}
	template := func(uid string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetUID(types.UID(uid))
		propagate.Claim(u, p)
		for _, c := range change {
			c(u)
		}
		return u
	}
	b := &workv1alpha2.ResourceBinding{}
	b.DeletionTimestamp = &now
	b.Spec.Resource.UID = "1"

	for _, tc := range []struct {
		story string
		end   End
		want  bool
	}{
		{"the kind of its template is not served, and its namespace goes", End{Unserved: true, NamespaceGoes: true}, true},
		{"the kind of its template is not served, as its definition is going", End{Unserved: true, DefinitionGoes: true},
			false},
		{"its template is gone", End{}, true},
		{"its template is going", End{Template: template("1",
			func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&now) })}, true},
		{"its template was made anew", End{Template: template("2")}, true},
		{"no policy holds its template", End{Template: template("1",
			func(u *unstructured.Unstructured) { propagate.Unclaim(u) })}, true},
		{"a MultiClusterService holds its template", End{Template: template("1", func(u *unstructured.Unstructured) {
			propagate.Unclaim(u)
			u.SetLabels(map[string]string{policyv1alpha1.ClaimedByLabel: "MultiClusterService"})
		})}, false},
		{"somebody deletes the binding alone", End{Template: template("1")}, false},
		{"its namespace goes, and took it before the template", End{Template: template("1"), NamespaceGoes: true}, true},
		{"its definition goes, and took it", End{Template: template("1"), DefinitionGoes: true}, false},
		{"its definition goes while its template does", End{DefinitionGoes: true}, false},
	} {
		if got, known := Ordered(b, tc.end); !known || got != tc.want {
			t.Errorf("%s: ordered %v (known: %v), want %v", tc.story, got, known, tc.want)
		}
	}
	if ordered, known := Ordered(b, End{Unserved: true}); ordered || known {
		t.Errorf("the kind of its template is not served: ordered %v (known: %v), want it to be unknown", ordered, known)
	}

	// What follows others has no policy that holds it.
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment"}}
	free := template("1", func(u *unstructured.Unstructured) { propagate.Unclaim(u) })
	for story, tc := range map[string]struct {
		end  End
		want bool
	}{
		"others need it":                        {End{Template: free}, false},
		"others need it, and it is not there":   {End{}, true},
		"its namespace goes, with those others": {End{Template: free, NamespaceGoes: true}, true},
	} {
		if got, known := Ordered(b, tc.end); !known || got != tc.want {
			t.Errorf("%s: ordered %v (known: %v), want %v", story, got, known, tc.want)
		}
	}
}
