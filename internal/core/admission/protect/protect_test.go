package protect

import (
	"github.com/argosy-io/argosy/api/wellknown"
	"strings"
	"testing"
)

func TestADeletionIsConfirmedByTheNameOfTheObject(t *testing.T) {
	for value, want := range map[string]bool{"works.work.karmada.io": true, "true": false, "": false,
		"clusters.cluster.karmada.io": false} {
		if got := Confirmed("works.work.karmada.io",
			map[string]string{wellknown.ConfirmDeletionAnnotation: value}); got != want {
			t.Errorf("%q confirms: %v, want %v", value, got, want)
		}
	}
	if Confirmed("works.work.karmada.io", nil) {
		t.Error("nothing confirms")
	}
}

func TestHubObjectsNeedConfirmationToBeDeleted(t *testing.T) {
	for _, tc := range []struct {
		story   string
		err     error
		message string // empty: it may be deleted
	}{
		{"a definition of the hub", Definition("works.work.karmada.io", true, ""),
			"kubectl annotate customresourcedefinition works.work.karmada.io argosy.io/confirm-deletion=works.work.karmada.io"},
		{"a definition of templates", Definition("clonesets.apps.kruise.io", false, "CloneSet shop/web"),
			"such as CloneSet shop/web"},
		{"a definition that nobody uses", Definition("clonesets.apps.kruise.io", false, ""), ""},
		{"the execution space of a member", Namespace("karmada-es-m1", true), "argosy unjoin m1"},
		{"the execution space of a cluster that is gone or leaves", Namespace("karmada-es-m1", false), ""},
		{"the namespace of credentials", Namespace("karmada-cluster", false), "credentials"},
		{"the hub's namespace", Namespace("karmada-system", false), "argosy.io/confirm-deletion=karmada-system"},
		{"a user's namespace", Namespace("shop", false), ""},
		{"the namespace of a klusterlet", ManifestWorks("eu"), "kubectl delete managedcluster eu"},
		{"a namespace whose name begins like those", Namespace("karmada-systems", false), ""},
	} {
		switch {
		case tc.message == "" && tc.err != nil:
			t.Errorf("%s: refused with %q", tc.story, tc.err)
		case tc.message != "" && (tc.err == nil || !strings.Contains(tc.err.Error(), tc.message)):
			t.Errorf("%s: got %v, want one that says %q", tc.story, tc.err, tc.message)
		}
	}
}
