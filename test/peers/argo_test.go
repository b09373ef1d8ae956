package peers

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// argo is the controller of Argo Workflows in two members of the fleet.
type argo struct {
	members map[string]kit.Cluster
}

// startArgo starts a member with Argo Workflows: its definitions, which have schemas of all fields, and its controller.
func startArgo(t *testing.T, program, name string) kit.Cluster {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kit.PeersFolder(), "argo-crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the definitions of Argo Workflows are not beside its controller: %v", err)
	}
	m, c := bareMember(t, name, files...)
	for _, text := range []string{"{apiVersion: v1, kind: Namespace, metadata: {name: argo}}",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: workflow-controller-configmap, namespace: argo}, data: {config: "{metricsConfig: {enabled: false}}"}}`} {
		if err := c.Create(t.Context(), kit.Object(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	m.Run(t, []string{"LEADER_ELECTION_DISABLE=true"}, program, "--kubeconfig", m.Kubeconfig, "-n", "argo",
		"--executor-image", "executor")
	join(t, m)
	return c
}

func TestArgoWorkflows(t *testing.T) {
	program := kit.Peers(t, "workflow-controller")[0]
	a := &argo{members: map[string]kit.Cluster{}}
	for _, name := range []string{"a1", "a2"} {
		a.members[name] = startArgo(t, program, name)
	}
	for name, story := range map[string]func(*testing.T){
		"a Workflow":                     a.runsOnce,
		"a CronWorkflow":                 func(t *testing.T) { a.startsRuns(t, "", 1) },
		"a CronWorkflow in each cluster": func(t *testing.T) { a.startsRuns(t, "argosy.io/run-per-cluster: \"true\"", 2) },
	} {
		t.Run(name, story)
	}
}

// reporter is a policy for Workflows or CronWorkflows in both members, and the account of their steps.
func reporter(ns, kind string) string {
	return fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s},
 spec: {propagateDeps: true, resourceSelectors: [{apiVersion: argoproj.io/v1alpha1, kind: %[2]s}],
 placement: {clusterAffinity: {clusterNames: [a1, a2]}}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: report, namespace: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: report, namespace: %[1]s},
 rules: [{apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [create, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: report, namespace: %[1]s},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: report}, subjects: [{kind: ServiceAccount, name: report, namespace: %[1]s}]}
`, ns, kind)
}

// report does in a member what Argo's executor does in the pods, which have none here: it reports, as their account,
// that pods which have completed have reported all their results. Pods whose report is there are left alone.
func (a *argo) report(t *testing.T, cluster, ns string) error {
	t.Helper()
	config := rest.CopyConfig(a.members[cluster].Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":report",
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	account, err := kit.Connect(cluster, config)
	if err != nil {
		return err
	}
	var list corev1.PodList
	if err := a.members[cluster].List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, p := range list.Items {
		if p.Status.Phase != corev1.PodSucceeded {
			continue
		}
		result := kit.Object(t, fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: WorkflowTaskResult, metadata: {name: %s, namespace: %s,
			labels: {workflows.argoproj.io/workflow: %s, workflows.argoproj.io/report-outputs-completed: "true"}}}`,
			p.Annotations["workflows.argoproj.io/node-id"], ns, p.Labels["workflows.argoproj.io/workflow"]))
		if err := account.Create(t.Context(), result); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("report the results of pod %s in %s: %w", p.Name, cluster, err)
		}
	}
	return nil
}

// nodes returns the phases of the steps of a Workflow by name.
func nodes(u *unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	byID, _ := kit.Field(u, "status", "nodes").(map[string]any)
	for _, node := range byID {
		node := node.(map[string]any)
		all[fmt.Sprint(node["name"])] = fmt.Sprint(node["phase"])
	}
	return all
}

// clustersWith returns the members that have an object.
func (a *argo) clustersWith(t *testing.T, kind, ns, name string) (clusters []string) {
	t.Helper()
	for _, cluster := range []string{"a1", "a2"} {
		if a.members[cluster].Find(t, "argoproj.io/v1alpha1", kind, ns, name) != nil {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// runsOnce is the story of a Workflow of two steps, which runs in one cluster alone.
func (a *argo) runsOnce(t *testing.T) {
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, reporter(ns, "Workflow")+fmt.Sprintf(`---
{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: daily, namespace: %s}, spec: {entrypoint: main, serviceAccountName: report,
 templates: [{name: main, steps: [[{name: collect, template: run}], [{name: send, template: run}]]},
  {name: run, container: {image: "report:1", command: [report]}}]}}`, ns))
	kit.Eventually(t, "the Workflow runs both steps, as the hub shows", func() string {
		clusters := a.clustersWith(t, "Workflow", ns, "daily")
		if len(clusters) != 1 {
			return fmt.Sprintf("it is in %v", clusters)
		}
		if err := a.report(t, clusters[0], ns); err != nil {
			return err.Error()
		}
		here := a.members[clusters[0]].Find(t, "argoproj.io/v1alpha1", "Workflow", ns, "daily")
		hub := fleet.Hub.Find(t, "argoproj.io/v1alpha1", "Workflow", ns, "daily")
		if phase := kit.Field(here, "status", "phase"); phase != "Succeeded" || phase != kit.Field(hub, "status", "phase") {
			return fmt.Sprintf("it is %v with the steps %v, and on the hub %v", phase, nodes(here), kit.Field(hub, "status"))
		}
		if is := nodes(hub); len(is) < 3 || !reflect.DeepEqual(is, nodes(here)) {
			return fmt.Sprintf("the steps are %v, and the hub shows %v", nodes(here), is)
		}
		all := items(t, ns, "daily-workflow")
		if len(all) != 1 || all[0].ClusterName != clusters[0] || all[0].Health != "Healthy" {
			return fmt.Sprintf("the binding reports %+v", all)
		}
		return ""
	})
	done := 0
	for cluster := range a.members {
		var list corev1.PodList
		if err := a.members[cluster].List(t.Context(), &list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		done += len(list.Items)
	}
	if done != 2 {
		t.Errorf("%d pods ran, want one for each of two steps", done)
	}
}

// runs returns how many runs of a CronWorkflow a member has, by phase.
func (a *argo) runs(t *testing.T, cluster, ns string) map[string]int {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("argoproj.io/v1alpha1")
	list.SetKind("WorkflowList")
	if err := a.members[cluster].List(t.Context(), list, client.InNamespace(ns),
		client.MatchingLabels{"workflows.argoproj.io/cron-workflow": "tick"}); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for i := range list.Items {
		all[fmt.Sprint(kit.Field(&list.Items[i], "status", "phase"))]++
	}
	return all
}

// startsRuns is the story of a CronWorkflow that starts runs in some clusters, until it is suspended on the hub.
func (a *argo) startsRuns(t *testing.T, annotations string, clusters int) {
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, reporter(ns, "CronWorkflow")+fmt.Sprintf(`---
{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: tick, namespace: %s, annotations: {%s}}, spec: {
 schedules: ["@every 5s"], concurrencyPolicy: Forbid, successfulJobsHistoryLimit: 100, workflowSpec: {entrypoint: run, serviceAccountName: report,
  templates: [{name: run, container: {image: "report:1", command: [report]}}]}}}`, ns, annotations))
	// shows compares what the hub shows with the runs in the members: at least so many have succeeded in each.
	shows := func(least int, suspended bool) string {
		in := a.clustersWith(t, "CronWorkflow", ns, "tick")
		if len(in) != clusters {
			return fmt.Sprintf("it is in %v", in)
		}
		succeeded, active, last := 0, 0, ""
		for _, cluster := range in {
			if err := a.report(t, cluster, ns); err != nil {
				return err.Error()
			}
			runs := a.runs(t, cluster, ns)
			if runs["Succeeded"] < least {
				return fmt.Sprintf("%s has the runs %v", cluster, runs)
			}
			here := a.members[cluster].Find(t, "argoproj.io/v1alpha1", "CronWorkflow", ns, "tick")
			if is, _ := kit.Field(here, "spec", "suspend").(bool); is != suspended {
				return fmt.Sprintf("its suspension in %s is %t", cluster, is)
			}
			for phase, n := range runs {
				if phase == "Succeeded" {
					succeeded += n
				} else {
					active += n
				}
			}
			last = max(last, fmt.Sprint(kit.Field(here, "status", "lastScheduledTime")))
		}
		hub := fleet.Hub.Find(t, "argoproj.io/v1alpha1", "CronWorkflow", ns, "tick")
		status, _ := kit.Field(hub, "status").(map[string]any)
		listed, _ := status["active"].([]any)
		if number(status, "succeeded") != succeeded || len(listed) != active || status["lastScheduledTime"] != last {
			return fmt.Sprintf("%d runs have succeeded, %d are active, the last began at %s, and the hub shows %v", succeeded,
				active, last, status)
		}
		for _, item := range items(t, ns, "tick-cronworkflow") {
			if item.Health != "Healthy" { // so is a suspended one
				return fmt.Sprintf("its health in %s is %s", item.ClusterName, item.Health)
			}
		}
		return ""
	}
	kit.Eventually(t, "runs succeed, as the hub shows", func() string { return shows(2, false) })
	fleet.Hub.Change(t, "argoproj.io/v1alpha1", "CronWorkflow", ns, "tick", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, true, "spec", "suspend")
	})
	kit.Eventually(t, "it is suspended, and its last run succeeds", func() string {
		for cluster := range a.members {
			if runs := a.runs(t, cluster, ns); len(runs) > 1 {
				_ = a.report(t, cluster, ns) // shows reports errors
				return fmt.Sprintf("%s has the runs %v", cluster, runs)
			}
		}
		return shows(2, true)
	})
	fleet.Hub.Remove(t, "argoproj.io/v1alpha1", "CronWorkflow", ns, "tick")
	kit.Eventually(t, "it is gone with its runs", func() string {
		for cluster := range a.members {
			if runs, in := a.runs(t, cluster, ns), a.clustersWith(t, "CronWorkflow", ns, "tick"); len(runs) > 0 || len(in) > 0 {
				return fmt.Sprintf("it is in %s with the runs %v", strings.Join(in, " and "), runs)
			}
		}
		return ""
	})
}
