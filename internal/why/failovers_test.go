package why

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// counted counts what is read by name, and refuses to list bindings of all namespaces.
type counted struct {
	client.Reader
	read map[string]int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.read[key.Name]++
	return c.Reader.Get(ctx, key, obj, opts...)
}

func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	in := client.ListOptions{}
	in.ApplyOptions(opts)
	if _, of := list.(*workv1alpha2.ResourceBindingList); of && in.Namespace == "" {
		return apierrors.NewForbidden(workv1alpha2.Resource("resourcebindings"), "", nil)
	}
	return c.Reader.List(ctx, list, opts...)
}

// A policy may have thousands of workloads that leave a lost cluster: why reads none of the others.
func TestWhyOfALeavingWorkloadReadsNoOther(t *testing.T) {
	drained := &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")}
	drained.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
		Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	before := schedule.NewSnapshot([]*clusterv1alpha1.Cluster{drained.DeepCopy()})
	drained.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute,
		TimeAdded: &metav1.Time{Time: time.Now().Add(-time.Hour)}}}
	for _, label := range []string{policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel} {
		objects := []client.Object{drained}
		for _, name := range []string{"web", "db"} {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta("shop", names.Binding("Deployment", name))}
			b.UID, b.Labels = types.UID(name), map[string]string{label: "id"}
			b.Spec = workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
				Kind: "Deployment", Namespace: "shop", Name: name}, Replicas: 1, Placement: &policyv1alpha1.Placement{}}
			placed, err := schedule.Schedule(b, before, nil)
			if err != nil {
				t.Fatal(err)
			}
			placed.Apply(b, nil)
			schedule.Confirm(b, schedule.Confirmation{Ran: true}, metav1.Now())
			objects = append(objects, b, &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1",
				Kind: "Deployment"}, ObjectMeta: objectMeta("shop", name)})
		}
		r, mapper := hub(objects...)
		reader := &counted{r, map[string]int{}}
		says, err := Explain(t.Context(), reader, mapper, Query{Kind: "deployment", Namespace: "shop", Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		answer := says.(why.Answer)
		if reader.read["db"] > 0 || len(answer.Missing) > 0 {
			t.Errorf("%s: read are %v, missing %v", label, reader.read, answer.Missing)
		}
		if len(answer.Failovers) != 1 || answer.Failovers[0].Name != "web" || answer.Failovers[0].From != "eu" {
			t.Errorf("%s: the failovers are %+v, want that web leaves eu", label, answer.Failovers)
		}
	}
}

// Who may list the bindings of a namespace, and no clusters, gets what these record, and the right that is missing.
func TestFailoversOfANamespaceNeedRightsThere(t *testing.T) {
	began := metav1.NewTime(time.Now().Add(-time.Minute))
	var objects []client.Object
	for _, namespace := range []string{"shop", "bank"} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: objectMeta(namespace, names.Binding("Deployment", "web"))}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace,
			Name: "web"}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "eu", Reason: "TaintUntolerated",
			CreationTimestamp: &began}}
		objects = append(objects, b)
	}
	r, _ := hub(append(objects, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "eu")})...)
	for name, c := range map[string]struct {
		limited
		namespace     string
		moves, lacked int
		refused       bool
		waits         failover.Code
	}{
		"view in shop":                   {limited{namespace: "shop"}, "shop", 1, 1, false, failover.ClustersUnread},
		"no clusters":                    {limited{refused: []string{"clusters"}}, "shop", 1, 1, false, failover.ClustersUnread},
		"clusters, and bindings in shop": {limited{namespace: "shop", allowed: "clusters"}, "shop", 1, 2, false, ""},
		"all, of shop":                   {limited{}, "shop", 1, 0, false, ""},
		"all":                            {limited{}, "", 2, 0, false, ""},
		"view in shop, -A":               {limited{namespace: "shop"}, "", 0, 0, true, ""},
		"of bank":                        {limited{namespace: "shop"}, "bank", 0, 0, true, ""},
	} {
		c.Reader = r
		moves, missing, err := Failovers(t.Context(), c.limited, Scheduler{}, nil, c.namespace, time.Now())
		if (err != nil) != c.refused || len(moves) != c.moves || len(missing) != c.lacked {
			t.Errorf("%s: %d moves, missing %v, %v", name, len(moves), missing, err)
			continue
		}
		if c.moves == 1 && (moves[0].From != "eu" || moves[0].Namespace != "shop" || c.waits != "" &&
			(moves[0].Since == nil || moves[0].WaitingFor != c.waits)) {
			t.Errorf("%s: %+v", name, moves)
		}
	}
}
