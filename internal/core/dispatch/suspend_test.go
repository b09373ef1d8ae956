package dispatch_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

func TestSuspensionReachesWorksWithoutATemplate(t *testing.T) {
	const all, none = "suspension: {dispatching: true}\nclusters: [{name: eu}, {name: us}]",
		"clusters: [{name: eu}, {name: us}]"
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		spec      string
		decision  dispatch.Decision
		suspended bool // as the Works are
		change    func(us *workv1alpha1.Work)
		want      map[string]bool
	}{
		"the template cannot be read": {all, dispatch.Decision{Err: broken}, false, nil,
			map[string]bool{"eu": true, "us": true}},
		"the placement is waited for": {all, dispatch.Decision{Waits: true}, false, nil,
			map[string]bool{"eu": true, "us": true}},
		"an override fails in one cluster": {all,
			dispatch.Decision{Results: []dispatch.Result{{Cluster: "eu"}, {Cluster: "us", Err: broken}}}, false, nil,
			map[string]bool{"us": true}},
		"one cluster waits for its turn": {all, dispatch.Decision{Results: []dispatch.Result{{Cluster: "eu"}}}, false,
			nil, map[string]bool{"us": true}},
		"they are suspended already": {all, dispatch.Decision{Err: broken}, true, nil, map[string]bool{}},
		"they go on though an override fails": {none, dispatch.Decision{Err: broken}, true, nil,
			map[string]bool{"eu": false, "us": false}},
		"one is going": {all, dispatch.Decision{Err: broken}, false, func(us *workv1alpha1.Work) {
			us.DeletionTimestamp = &metav1.Time{}
		}, map[string]bool{"eu": true}},
		"one is another template's": {all, dispatch.Decision{Err: broken}, false, func(us *workv1alpha1.Work) {
			us.Annotations["resourcebinding.karmada.io/name"] = "another"
		}, map[string]bool{"eu": true}},
	} {
		t.Run(name, func(t *testing.T) {
			before := input(t, configMap, none)
			in := input(t, configMap, c.spec)
			in.Existing = works(t, before)
			for _, w := range in.Existing {
				if c.suspended {
					w.Spec.SuspendDispatching = new(true)
				}
			}
			if c.change != nil {
				c.change(in.Existing["us"])
			}
			got := map[string]bool{}
			for _, w := range dispatch.Suspensions(in, c.decision) {
				got[w.Namespace[len("karmada-es-"):]] = w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
				if string(w.Spec.Workload.Manifests[0].Raw) != string(
					in.Existing[w.Namespace[len("karmada-es-"):]].Spec.Workload.Manifests[0].Raw) {
					t.Error("its manifest is another")
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("written are %v, want %v", got, c.want)
			}
			for cluster, suspended := range c.want {
				if is, written := got[cluster]; !written || is != suspended {
					t.Errorf("written are %v, want %v", got, c.want)
				}
			}
		})
	}
}
