package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// mcsSpecs are how many specs of the conformance suite have each label and need neither a network between clusters nor
// a DNS server. The other ten do: ClusterIP and headless DNS, and Connectivity.
var mcsSpecs = map[string]int{"Required": 14, "ExportedLabels": 2, "EndpointSlice": 1}

// The specs of the conformance suite of SIG Multicluster that need no data plane hold, with an exporting cluster in
// Push mode and one in Pull mode, in each order.
func TestConformanceOfMultiClusterServices(t *testing.T) {
	program := kit.Peers(t, "mcs-conformance.test")[0]
	m, behind, _ := pulled(t, "mcs-pull")
	clusters := map[string]string{"home": fleet.Lab.Fleet.Members()[0].Kubeconfig, "behind": m.Kubeconfig}
	config := clientcmdapi.NewConfig()
	for name, file := range clusters {
		one, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		current := one.Contexts[one.CurrentContext]
		config.Clusters[name], config.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]kit.Cluster{"home": fleet.Members["home"], "behind": behind} {
		kit.Eventually(t, "the hub has brought the API of Services to "+name, func() string {
			list := kit.Object(t, `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport}`)
			list.SetName("none")
			list.SetNamespace("default")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(list), list); !apierrors.IsNotFound(err) {
				return fmt.Sprint(err)
			}
			return ""
		})
	}
	for _, contexts := range []string{"home,behind", "behind,home"} {
		conform(t, m, program, kubeconfig, contexts)
	}
}

// conform runs the suite.
func conform(t *testing.T, m *kit.Member, program, kubeconfig, contexts string) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	// The suite writes a page about its results into its folder.
	suite := m.Run(t, nil, "env", "-C", dir, program, "-kubeconfig", kubeconfig, "-contexts", contexts, "-ginkgo.no-color",
		"-ginkgo.label-filter", "(Required || ExportedLabels || EndpointSlice) && !DNS", "-ginkgo.json-report", report)
	for start := time.Now(); !suite.Ended(); time.Sleep(time.Second) {
		if time.Since(start) > 15*time.Minute {
			t.Fatalf("the suite does not end:\n%s", suite.Output())
		}
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("the suite wrote no report: %v\n%s", err, suite.Output())
	}
	var suites []struct {
		SpecReports []struct {
			LeafNodeType, LeafNodeText, State string
			LeafNodeLabels                    []string
			ContainerHierarchyLabels          [][]string
			RunTime                           time.Duration
			Failure                           struct{ Message string }
		}
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		t.Fatal(err)
	}
	hold := map[string]int{}
	for _, s := range suites[0].SpecReports {
		labels := slices.Concat(append(s.ContainerHierarchyLabels, s.LeafNodeLabels)...)
		switch {
		case s.State == "passed" && s.LeafNodeType == "It":
			for label := range mcsSpecs {
				if slices.Contains(labels, label) {
					hold[label]++
				}
			}
		case s.State != "skipped" && s.State != "passed":
			t.Errorf("%s, %s %q: %s after %s: %s", contexts, s.LeafNodeType, s.LeafNodeText, s.State,
				s.RunTime.Round(time.Second), s.Failure.Message)
		}
	}
	if got, want := fmt.Sprint(hold), fmt.Sprint(mcsSpecs); got != want {
		t.Errorf("%s: of the specs hold %s, want %s", contexts, got, want)
	}
	t.Logf("%s: the specs hold: %v", contexts, hold)
}

// exportedWeb is a Deployment of two pods with its Service, which the cluster exports.
const exportedWeb = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %[1]s}, spec: {selector: {app: web}, ports: [{name: http, port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: %[1]s}}
`

// The API server of an exporting cluster is killed, and then the hub: the cluster exports on, and only its endpoints
// leave the clusters that have others.
func TestStoppedClustersExportOn(t *testing.T) {
	kit.Peers(t, "mcs-conformance.test")
	ns := fleet.Namespace(t)
	home, away := fleet.Members["home"], fleet.Members["away"]
	for _, c := range []kit.Cluster{home, away} {
		kit.Eventually(t, "the cluster has the namespace", func() string {
			var space corev1.Namespace
			if err := c.Get(t.Context(), client.ObjectKey{Name: ns}, &space); err != nil {
				return err.Error()
			}
			return ""
		})
		c.Apply(t, fmt.Sprintf(exportedWeb, ns))
	}
	from := func() string {
		var all discoveryv1.EndpointSliceList
		if err := home.List(t.Context(), &all, client.InNamespace(ns),
			client.MatchingLabels{discoveryv1.LabelServiceName: "derived-web"}); err != nil {
			return err.Error()
		}
		var words []string
		for _, s := range all.Items {
			words = append(words, fmt.Sprint(s.Labels["multicluster.kubernetes.io/source-cluster"], len(s.Endpoints)))
		}
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	imported := func() string {
		u := home.Find(t, "multicluster.x-k8s.io/v1beta1", "ServiceImport", ns, "web")
		if u == nil {
			return "no import"
		}
		ips, _ := kit.Field(u, "spec", "ips").([]any)
		return fmt.Sprintf("%v with %d address", kit.Field(u, "status", "clusters"), len(ips))
	}
	const both = "[map[cluster:away] map[cluster:home]] with 1 address"
	want := func(what, endpoints string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			if i, e := imported(), from(); i != both || e != endpoints {
				return fmt.Sprintf("home imports %s with the endpoints of %q", i, e)
			}
			return ""
		})
	}
	want("home imports web from both", "away2 home2")

	member := fleet.Lab.Fleet.Members()[1]
	member.Kill()
	want("the endpoints of the stopped cluster leave", "home2")
	fleet.Lab.Hub.Kill()
	if err := fleet.Lab.Hub.Start(t.Context(), hubArgs...); err != nil {
		t.Fatal(err)
	}
	kit.Stays(t, "home imports web from both after a restart of the hub", 20*time.Second, func() string {
		if got := imported(); got != both {
			return got
		}
		return ""
	})
	if err := member.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("the endpoints are back", "away2 home2")

	away.Remove(t, "multicluster.x-k8s.io/v1beta1", "ServiceExport", ns, "web")
	kit.Eventually(t, "away does not export any more", func() string {
		if got := imported(); got != "[map[cluster:home]] with 1 address" || from() != "home2" {
			return got + " " + from()
		}
		return ""
	})
	home.Remove(t, "multicluster.x-k8s.io/v1beta1", "ServiceExport", ns, "web")
	kit.Eventually(t, "nothing is left", func() string {
		if got := imported() + from(); got != "no import" {
			return got
		}
		return ""
	})
}
