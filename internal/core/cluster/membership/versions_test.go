package membership

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/kruise"
)

// release returns the discovery result of a member with a release of OpenKruise.
func release(t *testing.T, name string) []clusterv1alpha1.APIEnablement {
	t.Helper()
	kinds, err := kruise.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	byVersion := map[string][]clusterv1alpha1.APIResource{"apps/v1": {{Name: "deployments", Kind: "Deployment"}}}
	for _, k := range kinds {
		for i := len(k.Versions) - 1; i >= 0; i-- {
			gv := k.Group + "/" + k.Versions[i].Name
			byVersion[gv] = append(byVersion[gv], clusterv1alpha1.APIResource{Name: k.Plural, Kind: k.Kind})
			if k.Versions[i].Name == kruise.Stored(k, name) {
				break
			}
		}
	}
	var apis []clusterv1alpha1.APIEnablement
	for gv, resources := range byVersion {
		apis = append(apis, clusterv1alpha1.APIEnablement{GroupVersion: gv, Resources: resources})
	}
	return apis
}

func TestServedOpenKruiseVersions(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name   string
		apis   []clusterv1alpha1.APIEnablement
		column string
		status metav1.ConditionStatus
		want   string
	}{
		{"1.8", release(t, kruise.Release1_8), "v1alpha1", metav1.ConditionFalse, "CloneSet v1alpha1"},
		{"1.9", release(t, kruise.Release1_9), "v1alpha1,v1beta1", metav1.ConditionFalse, "UnitedDeployment v1alpha1"},
		{"1.10", release(t, kruise.Release1_10), "v1beta1", metav1.ConditionTrue, "every kind"},
		{"no OpenKruise", []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}, "", "", ""},
		{"nothing known", nil, "", "", ""},
	} {
		served := OpenKruise(tc.apis)
		if got := served.String(); got != tc.column {
			t.Errorf("%s: column %q, want %q", tc.name, got, tc.column)
		}
		c := CurrentOpenKruise(nil, served, now)
		switch {
		case c == nil && tc.status != "":
			t.Errorf("%s: no condition", tc.name)
		case c != nil && (c.Status != tc.status || !strings.Contains(c.Message, tc.want) || c.LastTransitionTime.IsZero()):
			t.Errorf("%s: condition %+v, want %s with %q", tc.name, *c, tc.status, tc.want)
		}
	}
	if got := OpenKruise(release(t, kruise.Release1_9)); strings.Contains(strings.Join(got.Older, " "), "SidecarSet") {
		t.Errorf("1.9 has SidecarSet in v1beta1, and yet it is among %v", got.Older)
	}
}
