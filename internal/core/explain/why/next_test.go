package why_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

var command = regexp.MustCompile("(^|[^`/])\\b(?:argosy|kubectl) [a-z]")

// checkNext checks that a next step is prose with commands in backquotes. The console makes these copyable.
func checkNext(t *testing.T, next string) {
	t.Helper()
	for i, part := range strings.Split(next, "`") {
		if is := command.MatchString(part); i%2 == 0 && is || i%2 == 1 && (!is || strings.HasPrefix(part, " ")) {
			t.Errorf("commands of a next step belong in backquotes, and nothing else does: %s", next)
		}
	}
	if strings.Count(next, "`")%2 == 1 || strings.Contains(next, "``") {
		t.Errorf("a backquote is missing in the next step %s", next)
	}
}

// Texts that no test reaches follow the same rule, in all packages that decide or act.
func TestCommandsInTextsAreInBackquotes(t *testing.T) {
	begun := map[string]bool{}
	for _, dir := range []string{"../..", "../../../controller"} {
		if err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
				strings.Contains(file, "testdata") {
				return err
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				// A command that another text completes starts its literal, and is put into backquotes there.
				if begun[text] = started[text]; err == nil && !begun[text] && command.MatchString(" "+text) {
					t.Errorf("%s: the command is not in backquotes: %s", set.Position(lit.Pos()), text)
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for text := range started {
		if !begun[text] {
			t.Errorf("no text begins with %q: remove it from started", text)
		}
	}
}

// started are literals that begin a command, which gets its backquotes with its end, or is not in a sentence.
var started = map[string]bool{"argosy logs %s -n %s -C %s": true, "argosy why": true, "argosy restore accept": true,
	"kubectl scale": true, "kubectl rollout restart": true, "argosy rollout ": true}

func TestAnObjectThatIsNeverPropagatedHasTheReason(t *testing.T) {
	for object, want := range map[string][2]string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}}": {
			"the API server of each cluster creates one of its own",
			"to propagate its content, create a ConfigMap with another name"},
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: extension-apiserver-authentication, namespace: shop}}": {
			"the API server of each cluster creates one of its own",
			"to propagate its content, create a ConfigMap with another name"},
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: kube-public}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate its content, create it in a namespace of your own"},
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: c, namespace: karmada-system}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate its content, create it in a namespace of your own"},
		"{apiVersion: v1, kind: Namespace, metadata: {name: kube-public}}": {
			"each cluster has the namespaces of Kubernetes and of the hub for itself",
			"to propagate objects, create them in a namespace of your own"},
		"{apiVersion: v1, kind: Event, metadata: {name: e, namespace: shop}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
		"{apiVersion: release.argosy.io/v1alpha1, kind: Release, metadata: {name: r, namespace: shop}}": {
			"its kind configures the hub, or members create such objects themselves",
			"`argosy release status r -n shop` shows its state"},
		"{apiVersion: release.argosy.io/v1alpha1, kind: ReleaseStrategy, metadata: {name: r, namespace: shop}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: r}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
		"{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: web-deployment, namespace: shop, labels: {clusterpropagationpolicy.karmada.io/permanent-id: POLICY}, annotations: {clusterpropagationpolicy.karmada.io/name: all}}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
		"{apiVersion: apps.kruise.io/v1alpha1, kind: NodeImage, metadata: {name: n}}": {
			"its kind configures the hub, or members create such objects themselves", ""},
	} {
		h := start(t, object, fleet()...)
		p := h.policy("", "all", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Namespace}]}")
		for key, value := range h.Template.GetLabels() {
			if value == "POLICY" {
				h.Template.SetLabels(map[string]string{key: propagate.ID(p)})
			}
		}
		a := explain(h.Facts)
		if len(a.Findings) != 1 || a.Findings[0].What != "the hub never propagates it: "+want[0] ||
			a.Findings[0].Next != want[1] {
			t.Errorf("%s: found %+v, want %q", object, a.Findings, want)
		}
		claims := why.ExplainPolicy(why.PolicyFacts{Propagation: p, Policies: h.Policies, Clusters: h.Clusters,
			Templates: []why.Selectable{{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
		for _, s := range claims.Templates {
			if s.Why != "is never propagated: "+want[0] {
				t.Errorf("%s: its policy says %q", object, s.Why)
			}
		}
	}
}

func TestANamespaceThatSkipsPropagationHasTheReason(t *testing.T) {
	const (
		skip   = "labels: {namespace.karmada.io/skip-auto-propagation: 'true'}"
		reason = "the hub does not propagate it: it has the label namespace.karmada.io/skip-auto-propagation"
		itself = "namespaces are propagated to every cluster without a policy"
	)
	for name, c := range map[string]struct {
		metadata          string
		selected, claimed bool
		reason, next      string
	}{
		"with the label": {metadata: "{name: shop, " + skip + "}", reason: reason, next: "remove the label to propagate it " +
			"to every cluster, or select it by a ClusterPropagationPolicy"},
		"with another value": {metadata: "{name: shop, labels: {namespace.karmada.io/skip-auto-propagation: 'no'}}",
			reason: itself},
		"without a label": {metadata: "{name: shop}", reason: itself},
		"about to be claimed": {metadata: "{name: shop, " + skip + "}", selected: true, next: "wait some seconds; if it " +
			"stays unclaimed, check that the controllers of the hub run: `argosy status`"},
		"claimed": {metadata: "{name: shop, " + skip + "}", claimed: true},
		"of Kubernetes": {metadata: "{name: kube-public, " + skip + "}",
			reason: "the hub never propagates it: each cluster has the namespaces of Kubernetes and of the hub for itself",
			next:   "to propagate objects, create them in a namespace of your own"},
	} {
		h := start(t, "{apiVersion: v1, kind: Namespace, metadata: "+c.metadata+"}", fleet()...)
		if c.selected || c.claimed {
			p := h.policy("", "namespaces", "{resourceSelectors: [{apiVersion: v1, kind: Namespace}]}")
			if c.claimed {
				for _, member := range h.Clusters {
					member.Status.APIEnablements = append(member.Status.APIEnablements, clusterv1alpha1.APIEnablement{
						GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Namespace"}}})
				}
				h.claim(p)
				h.schedule()
				h.send()
				h.answers(workv1alpha1.ResourceHealthy, "{}")
			}
		}
		a := explain(h.Facts)
		next := ""
		for _, f := range a.Findings {
			if f.Cluster == "" {
				next += f.Next
			}
		}
		if checkNext(t, next); a.Policy.Why != c.reason || next != c.next {
			t.Errorf("%s: %q, %+v; want %q, %q", name, a.Policy.Why, a.Findings, c.reason, c.next)
		}
	}
}

// A run that has ended needs no cluster: nothing is created where the template comes later, and such clusters do not
// count as healthy.
func TestARunThatEndedNeedsNoOtherCluster(t *testing.T) {
	const (
		spec     = "spec: {template: {spec: {containers: [{name: c, image: x}]}}}"
		complete = `conditions: [{type: Complete, status: "True"}]`
		failed   = `conditions: [{type: Failed, status: "True"}]`
	)
	m2, both := []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}},
		[]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}, {Name: "m3", Replicas: 1}}
	served := func(version, kind string) with {
		return func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: version,
				Resources: []clusterv1alpha1.APIResource{{Kind: kind}}})
		}
	}
	for name, c := range map[string]struct {
		kind, status string
		divided      bool
		// now are its clusters. Those in there report it; m1, where it ran before, has left.
		now   []workv1alpha2.TargetCluster
		there string
		// summary is the end of the answer's.
		summary string
	}{
		"a Workflow in another cluster": {"Workflow", "phase: Succeeded", false, m2, "", "the run has finished"},
		"a Workflow in its cluster":     {"Workflow", "phase: Succeeded", false, m2, "m2", "healthy in 1 of 1 cluster"},
		"a failed Workflow in another cluster": {"Workflow", "phase: Failed", false, m2, "",
			"1 problem, the run has failed"},
		"a failed Workflow in its cluster": {"Workflow", "phase: Failed", false, m2, "m2",
			"1 problem, healthy in 0 of 1 cluster"},
		"a Workflow in no cluster":     {"Workflow", "phase: Succeeded", false, nil, "", "the run has finished"},
		"a Workflow that runs":         {"Workflow", "phase: Running", false, m2, "", "1 waiting, healthy in 0 of 1 cluster"},
		"a divided Job":                {"Job", complete, true, both, "", "the run has finished"},
		"a divided Job in one of two":  {"Job", complete, true, both, "m3", "healthy in 1 of 1 cluster"},
		"a divided Job that left one":  {"Job", complete, true, m2, "m2", "healthy in 1 of 1 cluster"},
		"a divided Job in both":        {"Job", complete, true, both, "m2 m3", "healthy in 2 of 2 clusters"},
		"one that failed":              {"Job", failed, true, both, "", "1 problem, the run has failed"},
		"one that failed in one":       {"Job", failed, true, both, "m3", "1 problem, healthy in 0 of 1 cluster"},
		"a Job in no cluster":          {"Job", complete, false, nil, "", "the run has finished"},
		"a failed Job in no cluster":   {"Job", failed, false, nil, "", "1 problem, the run has failed"},
		"a Job in each cluster":        {"Job", complete, false, m2, "", "1 waiting, healthy in 0 of 1 cluster"},
		"a BroadcastJob in no cluster": {"BroadcastJob", "phase: completed", false, nil, "", "the run has finished"},
		"a failed BroadcastJob":        {"BroadcastJob", "phase: failed", false, nil, "", "1 problem, the run has failed"},
		"a BroadcastJob in another": {"BroadcastJob", "phase: completed", false, m2, "",
			"1 waiting, healthy in 0 of 1 cluster"},
	} {
		version := map[string]string{"Workflow": "argoproj.io/v1alpha1", "Job": "batch/v1",
			"BroadcastJob": "apps.kruise.io/v1beta1"}[c.kind]
		h := start(t, "{apiVersion: "+version+", kind: "+c.kind+", metadata: {name: web, namespace: shop, uid: a}, "+spec+
			", status: {"+c.status+"}}", cluster("m2", served(version, c.kind)), cluster("m3", served(version, c.kind)))
		placement := "clusterTolerations: [{operator: Exists}]"
		if c.divided { // the two clusters that are left are too few
			placement += ", " + byRoom + ", spreadConstraints: [{spreadByField: cluster, minGroups: 2}]"
		}
		p := h.policy("shop", "web", "{resourceSelectors: [{apiVersion: "+version+", kind: "+c.kind+"}], placement: {"+
			placement+"}}")
		h.claim(p)
		if c.divided {
			h.Binding.BindingSpec().Replicas = 2
		}
		h.schedule()
		failed := strings.Contains(strings.ToLower(c.status), "failed")
		spec, status := h.Binding.BindingSpec(), h.Binding.BindingStatus()
		spec.Clusters = c.now
		if c.kind != "Workflow" && !c.divided && c.now != nil {
			spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
		}
		if len(c.now) < 2 {
			h.Clusters = h.Clusters[:len(c.now)]
		}
		if c.divided || c.now == nil { // the scheduler of an earlier version reported this
			spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: "cluster", MinGroups: 3}}
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: workv1alpha2.Scheduled,
				Status: metav1.ConditionFalse, Reason: workv1alpha2.ReasonSchedulerError, Message: "too few clusters"})
		}
		for _, cluster := range strings.Fields(c.there) {
			health := workv1alpha1.ResourceHealthy
			if failed {
				health = workv1alpha1.ResourceUnhealthy
			}
			status.AggregatedStatus = append(status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
				ClusterName: cluster, Applied: true, Health: health})
		}
		h.Works, h.Unseen = why.WorksInStatus(h.Binding), true
		a := explain(h.Facts)
		text := asJSON(t, a)
		if a.Summary != c.summary {
			t.Errorf("%s: %s, want %s: %+v", name, a.Summary, c.summary, a.Findings)
		}
		message := workv1alpha2.MessageRunFinished
		if failed {
			message = workv1alpha2.MessageRunFailed
		}
		nowhere := strings.Contains(c.summary, "the run has")
		if over := strings.Contains(text, message+"; no cluster reports it"); over != nowhere {
			t.Errorf("%s: the placement is %+v", name, a.Placement)
		}
		if (nowhere || c.divided) && (strings.Contains(text, "about to be") || strings.Contains(text, "WorkloadRebalancer") ||
			strings.Contains(text, "not scheduled")) {
			t.Errorf("%s: %s", name, text)
		}
		for _, row := range a.Clusters {
			ended := row.Target && !strings.Contains(c.there, row.Name) && (nowhere || c.divided)
			if (row.State == state.Ended) != ended || ended && (row.Bad || row.Why != message) {
				t.Errorf("%s: %s is %s: %s", name, row.Name, row.State, row.Why)
			}
		}

		// Policies know only the binding, whose condition follows.
		for _, written := range []bool{false, true} {
			if reason := workv1alpha2.ReasonRunFinished; written {
				meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: workv1alpha2.WorksWritten,
					Status: metav1.ConditionTrue, Reason: reason})
			}
			of := why.ExplainPolicy(why.PolicyFacts{Propagation: p, Policies: h.Policies, Clusters: h.Clusters,
				Bindings:  []workv1alpha2.Binding{h.Binding},
				Templates: []why.Selectable{{GroupVersionKind: h.Template.GroupVersionKind(), Object: h.Template}}})
			unscheduled := meta.IsStatusConditionFalse(status.Conditions, workv1alpha2.Scheduled)
			if got := of.Templates[0].State; (got != "") != (unscheduled && !written) {
				t.Errorf("%s: with its condition: %t, its policy says %q", name, written, got)
			}
		}
	}
}
