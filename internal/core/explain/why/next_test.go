package why_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

var command = regexp.MustCompile("(^|[^`/])\\b(argosy|kubectl) [a-z]")

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

// Texts that no test reaches follow the same rule, in all packages with next steps.
func TestCommandsInTextsAreInBackquotes(t *testing.T) {
	for _, dir := range []string{".", "../overview", "../../release", "../../adjust/failover", "../../execute"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files (%v)", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				// A command that another text completes starts its literal, and is put into backquotes there.
				if err == nil && command.MatchString(" "+text) && !started[text] {
					t.Errorf("%s: the command is not in backquotes: %s", set.Position(lit.Pos()), text)
				}
				return true
			})
		}
	}
}

// started are literals that begin a command, which gets its backquotes with its end.
var started = map[string]bool{"argosy logs %s -n %s -C %s": true, "argosy why": true, "argosy restore accept": true}

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

// A run that has finished needs no cluster: nothing is created where the template comes later.
func TestAFinishedRunIsNoFault(t *testing.T) {
	const spec = "spec: {template: {spec: {containers: [{name: c, image: x}]}}}"
	served := func(version, kind string) with {
		return func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: version,
				Resources: []clusterv1alpha1.APIResource{{Kind: kind}}})
		}
	}
	for name, c := range map[string]struct {
		version, kind, status, divided string
		// now are its clusters, of m2 and m3: m1 has left.
		now  []workv1alpha2.TargetCluster
		over bool
		// there: it is reported from m2.
		there bool
	}{
		"a Workflow in another cluster": {version: "argoproj.io/v1alpha1", kind: "Workflow", status: "phase: Succeeded",
			now: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}, over: true},
		"a Workflow in its cluster": {version: "argoproj.io/v1alpha1", kind: "Workflow", status: "phase: Succeeded",
			now: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}, there: true},
		"a failed Workflow in another cluster": {version: "argoproj.io/v1alpha1", kind: "Workflow", status: "phase: Failed",
			now: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}, over: true},
		"a Workflow in no cluster": {version: "argoproj.io/v1alpha1", kind: "Workflow", status: "phase: Succeeded",
			over: true},
		"a divided Job": {version: "batch/v1", kind: "Job", divided: byRoom,
			status: `conditions: [{type: Complete, status: "True"}]`,
			now:    []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}, over: true},
		"a Job in no cluster": {version: "batch/v1", kind: "Job", status: `conditions: [{type: Failed, status: "True"}]`,
			over: true},
		"a Job in each cluster": {version: "batch/v1", kind: "Job", status: `conditions: [{type: Complete, status: "True"}]`,
			now: []workv1alpha2.TargetCluster{{Name: "m2"}}},
		"a Workflow that runs": {version: "argoproj.io/v1alpha1", kind: "Workflow", status: "phase: Running",
			now: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}},
	} {
		h := start(t, "{apiVersion: "+c.version+", kind: "+c.kind+", metadata: {name: web, namespace: shop, uid: a}, "+spec+
			", status: {"+c.status+"}}", cluster("m2", served(c.version, c.kind)), cluster("m3", served(c.version, c.kind)))
		h.claim(h.policy("shop", "web", "{resourceSelectors: [{apiVersion: "+c.version+", kind: "+c.kind+"}], placement: {"+
			"clusterAffinity: {exclude: [m3]}"+strings.TrimSuffix(", "+c.divided, ", ")+"}}"))
		if c.divided != "" {
			h.Binding.BindingSpec().Replicas = 2
		}
		h.schedule()
		h.Binding.BindingSpec().Clusters = c.now
		if c.now == nil {
			h.Clusters = h.Clusters[1:]
		}
		if c.there {
			h.Binding.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Applied: true,
				Health: workv1alpha1.ResourceHealthy}}
		}
		a := explain(h.Facts)
		text := asJSON(t, a)
		if strings.Contains(text, ", in no cluster") != (c.over && !c.there) || c.there && len(a.Placement.Steps) < 2 {
			t.Errorf("%s: the placement is %+v", name, a.Placement)
		}
		message := workv1alpha2.MessageRunFinished
		if strings.Contains(c.status, "Failed") {
			message = workv1alpha2.MessageRunFailed
		}
		if over := strings.Contains(text, message); over != c.over && !c.there {
			t.Errorf("%s: over: %t, found %+v", name, over, a.Findings)
		}
		if c.over && (strings.Contains(text, "about to be created") || strings.Contains(text, "WorkloadRebalancer")) {
			t.Errorf("%s: %s", name, text)
		}
		for _, row := range a.Clusters {
			failed := message == workv1alpha2.MessageRunFailed
			if c.over && row.Target && (row.Bad != failed || row.Why != message) {
				t.Errorf("%s: %s is %s: %s", name, row.Name, row.State, row.Why)
			}
		}
	}
}
