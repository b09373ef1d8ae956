package controller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	corewhy "github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/match"
	corepods "github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/why"
)

// answer asks `argosy why` as the hub's API does.
func (w *world) answer(q why.Query) why.Explained {
	w.t.Helper()
	q.Pods = why.PodsHere(w.troubled)
	q.Troubled = why.AllPodsHere(w.troubled)
	says, err := why.Explain(w.t.Context(), w.Hub, w.RESTMapper(), q)
	if err != nil {
		w.t.Fatalf("why %s %s: %v", q.Kind, q.Name, err)
	}
	return says
}

func (w *world) troubled(ctx context.Context, namespace string, of workv1alpha2.Binding) (all []corepods.Workload,
	running bool, err error) {
	all, err = w.room.Troubled(ctx, namespace)
	if of != nil {
		all = w.room.AddRefusals(ctx, of, all)
	}
	return all, true, err
}

// readersDisagree returns where the row of the console, `argosy why` for the workload and for the cluster, `argosy
// status`, the status of the template that `kubectl get` shows, and the binding differ.
func (w *world) readersDisagree() (out []string) {
	w.t.Helper()
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	ctx := w.t.Context()
	all, err := scope.Bindings.List(ctx, w.Hub)
	if err != nil {
		w.t.Fatal(err)
	}
	troubled, _, err := w.troubled(ctx, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	facts := state.Facts{Troubled: state.TroubledOf(troubled), Cluster: w.cluster}
	members := map[string]corewhy.MemberAnswer{}
	for name := range w.members {
		members[name] = w.answer(why.Query{Kind: "clusters.cluster.karmada.io", Name: name}).(corewhy.MemberAnswer)
	}
	var bad []string
	var rows []*overview.WorkloadRow
	for _, b := range all {
		row, of := overview.RowOfWorkload(b, facts), b.BindingSpec().Resource
		rows = append(rows, &row)
		gk := match.GroupKind(of.APIVersion, of.Kind)
		says := w.answer(why.Query{Kind: gk.String(), Namespace: of.Namespace, Name: of.Name}).(corewhy.Answer)
		if p := says.Placement; p != nil && p.Scheduled != nil && p.Scheduled.Status == metav1.ConditionTrue && p.Due != "" {
			differ("%s: it is scheduled, and why says that the scheduler is about to act: %s", row.String(), p.Due)
		}
		for _, p := range row.Places {
			at := row.String() + " in " + p.Cluster
			i := slices.IndexFunc(says.Clusters, func(c corewhy.Cluster) bool { return c.Name == p.Cluster })
			if i < 0 || says.Clusters[i].State != p.State || says.Clusters[i].ReadyPods != p.Ready ||
				says.Clusters[i].WantedPods != p.Wanted || says.Clusters[i].Bad != p.State.Bad() {
				differ("%s: the console says %+v, why %+v", at, p, says.Clusters)
			}
			there := members[p.Cluster].Placed
			i = slices.IndexFunc(there, func(t corewhy.PlacedThere) bool { return t.Template == row.String() })
			if i < 0 || there[i].State != p.State || there[i].Ready != p.Ready || there[i].Wanted != p.Wanted {
				differ("%s: the console says %+v, why cluster %+v", at, p, there)
			}
			if item := reportIn(b, p.Cluster); p.State == state.Healthy && (item == nil || !item.Applied ||
				item.Health != workv1alpha1.ResourceHealthy) {
				differ("%s: the console says %+v, the binding %+v", at, p, item)
			}
		}
		template := &unstructured.Unstructured{}
		template.SetAPIVersion(of.APIVersion)
		template.SetKind(of.Kind)
		template.SetNamespace(of.Namespace)
		template.SetName(of.Name)
		if w.HasObject(template) && gk.Kind == "Deployment" {
			ready, _, _ := unstructured.NestedInt64(template.Object, "status", "readyReplicas")
			if len(b.BindingSpec().GracefulEvictionTasks) == 0 && ready != row.Ready {
				differ("%s: the console says %d ready, its status %d", row.String(), row.Ready, ready)
			}
		}
		if row.Bad && row.State != state.Lost {
			bad = append(bad, row.String())
		}
	}
	items, more := overview.Attention(overview.Facts{Workloads: rows, Troubled: troubled}, 100)
	for _, o := range bad {
		if !slices.ContainsFunc(items, func(i overview.Item) bool { return i.Object != nil && i.Object.String() == o }) {
			differ("%s is bad, and status does not list it: %+v", o, items)
		}
	}
	if more > 0 {
		differ("status leaves out %d", more)
	}
	return out
}

// reportIn returns what a binding reports of a cluster; nil for nothing.
func reportIn(b workv1alpha2.Binding, cluster string) *workv1alpha2.AggregatedStatusItem {
	items := b.BindingStatus().AggregatedStatus
	for i := range items {
		if items[i].ClusterName == cluster {
			return &items[i]
		}
	}
	return nil
}
