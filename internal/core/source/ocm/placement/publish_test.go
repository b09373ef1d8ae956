package placement

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestPoliciesSayWhereTheirClustersArePublished(t *testing.T) {
	for _, c := range []struct{ namespace, value, want, wrong string }{
		{"shop", "web", "shop/web", ""},
		{"shop", "argocd/web", "", `"argocd/web" is not NAME`},
		{"shop", "", "", `"" is not NAME`},
		{"", "argocd/web", "argocd/web", ""},
		{"", "web", "", `"web" is not NAMESPACE/NAME`},
		{"", "argocd/", "", "is not NAMESPACE/NAME"},
		{"", "argocd/web/b", "", "is not NAMESPACE/NAME"},
		{"", "argocd/" + strings.Repeat("a", 64), "", "is not NAMESPACE/NAME"},
	} {
		of := metav1.ObjectMeta{Namespace: c.namespace,
			Annotations: map[string]string{"argosy.io/placement-decision": c.value}}
		var p policyv1alpha1.Propagation = &policyv1alpha1.PropagationPolicy{ObjectMeta: of}
		if c.namespace == "" {
			p = &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: of}
		}
		got, err := PublishedAs(p)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) ||
			err == nil && got.String() != c.want {
			t.Errorf("%q of a policy in %q: %s, %v", c.value, c.namespace, got, err)
		}
	}
	if got, err := PublishedAs(&policyv1alpha1.PropagationPolicy{}); got.Name != "" || err != nil {
		t.Errorf("without the annotation: %s, %v", got, err)
	}
}

func TestClustersArePublishedUntilTheyAreReplaced(t *testing.T) {
	binding := func(from string, clusters ...string) workv1alpha2.Binding {
		b := &workv1alpha2.ResourceBinding{}
		for _, c := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		if from != "" {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from}}
		}
		return b
	}
	got := ClustersOf([]workv1alpha2.Binding{binding("", "c", "a"), binding("d", "a", "b")})
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := ClustersOf(nil); len(got) != 0 {
		t.Errorf("without bindings: %v", got)
	}
}
