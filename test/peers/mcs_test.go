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
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(list), list); err != nil && !strings.Contains(err.Error(), "not found") {
				return err.Error()
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
	suite := m.Run(t, nil, program, "-kubeconfig", kubeconfig, "-contexts", contexts, "-ginkgo.no-color",
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
