package guides

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

// clusterNamespace is the hub's namespace of a member's ManifestWorks, which the article takes for given.
func (s *story) clusterNamespace(member string) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member,
		Labels: map[string]string{"namespace.karmada.io/skip-auto-propagation": "true"}}}
	if err := fleet.Hub.Create(s.t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		s.fail("make the namespace %s: %v", member, err)
	}
}

// manifestWork is the one at a line of the short article, for our member1.
func (s *story) manifestWork(line int) *unstructured.Unstructured {
	return s.object(strings.Replace(s.text("S001", line), "namespace: cluster1", "namespace: member1", 1))
}

// feeds waits until a ManifestWork for a member is applied, and its first object feeds such values back, as "name=value
// name=value".
func (s *story) feeds(member, name, want string) {
	s.waitUntil(name+" feeds back", func() string {
		mw := &ocmv1.ManifestWork{}
		if err := fleet.Hub.Get(s.t.Context(), client.ObjectKey{Namespace: member, Name: name}, mw); err != nil {
			return err.Error()
		}
		for _, kind := range []string{ocmv1.Applied, ocmv1.Available} {
			if c := meta.FindStatusCondition(mw.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue ||
				c.ObservedGeneration != mw.Generation {
				return fmt.Sprint(mw.Status)
			}
		}
		var all []string
		for _, v := range mw.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			if v.Value.Integer != nil {
				all = append(all, fmt.Sprintf("%s=%d", v.Name, *v.Value.Integer))
			} else if v.Value.String != nil {
				all = append(all, v.Name+"="+*v.Value.String)
			}
		}
		if got := strings.Join(all, " "); !strings.HasPrefix(got, want) {
			return got
		}
		return ""
	})
}
