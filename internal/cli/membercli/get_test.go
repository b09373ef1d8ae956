package membercli

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestGetClustersPrintsStableColumns(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	list := []clusterv1alpha1.Cluster{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "m1", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Minute))},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: "Push", APIEndpoint: "https://m1", Zones: []string{"a", "b"},
				Region: "eu"},
			Status: clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.36.3", Brakes: []string{"shop", "web"},
				APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps.kruise.io/v1alpha1",
					Resources: []clusterv1alpha1.APIResource{{Kind: "CloneSet"}}}},
				Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "m2", CreationTimestamp: metav1.NewTime(now)},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: "Push", Taints: []corev1.Taint{
				{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
				{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}},
			Status: clusterv1alpha1.ClusterStatus{Brakes: []string{"kube-system"}}},
	}
	for name, tc := range map[string]struct {
		o    printers.PrintOptions
		want [][]string
	}{
		"table": {printers.PrintOptions{}, [][]string{{"NAME", "VERSION", "MODE", "READY", "AGE", "TAINTS", "BRAKE"},
			{"m1", "v1.36.3", "Push", "True", "90m", "<none>", "shop,", "web"},
			{"m2", "Push", "Unknown", "0s", "cluster.karmada.io/unschedulable:NoSchedule",
				"kube-system"}}},
		"wide": {printers.PrintOptions{Wide: true, NoHeaders: true},
			[][]string{{"m1", "v1.36.3", "Push", "True", "90m", "<none>", "shop,", "web", "a,b", "eu", "<none>",
				"https://m1", "<none>", "v1alpha1"}, {"m2", "Push", "Unknown", "0s",
				"cluster.karmada.io/unschedulable:NoSchedule", "kube-system", "<none>",
				"<none>",
				"<none>", "<none>", "<none>", "<none>"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printClusters(&out, list, now, tc.o); err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
				if got := strings.Fields(line); strings.Join(got, " ") != strings.Join(tc.want[i], " ") {
					t.Errorf("line %d is %q, want %q", i, got, tc.want[i])
				}
			}
		})
	}
}

func TestOnlyTheTableOfClustersIsOurs(t *testing.T) {
	for line, want := range map[string]bool{
		"clusters":                                 true,
		"cluster m1 -o wide":                       true,
		"Clusters -l a=b --no-headers":             true,
		"clusters -n x":                            true,
		"clusters --color never":                   true,
		"clusters -o json":                         false,
		"clusters -w":                              false,
		"clusters --show-labels":                   false,
		"clusters m1 -l a=b":                       false,
		"deployments":                              false,
		"clusters,deployments":                     false,
		"clusters.cluster.karmada.io --sort-by .x": false,
	} {
		hub := &hubcli.HubFlags{}
		cmd := NewGet(hub, StdStreams)
		hub.Bind(cmd.Flags())
		cmd.Flags().String("color", "auto", "")
		if err := cmd.Flags().Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if _, got := clusterTable(cmd.Flags(), cmd.Flags().Args()); got != want {
			t.Errorf("get %s: ours %t, want %t", line, got, want)
		}
	}
}

// printTables answers requests for tables with one of one object.
func printTables(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {},
		"columnDefinitions": [{"name": "Name", "type": "string"}, {"name": "Age", "type": "string"}],
		"rows": [{"cells": ["web", "1d"], "object": {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
			"metadata": {"name": "web", "namespace": "shop"}}}]}`)
	return true
}

// Scripts for karmadactl read its columns, which it prints for the hub as well.
func TestGetPrintsTheColumnsOfKarmadactl(t *testing.T) {
	eu := runs(t, map[string]string{"web-1": ""})
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu})
	s.Api.Serve(kruiseSets)
	s.Api.Serve(membertest.Kind{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Plural: "statefulsets", Namespaced: true})
	s.Api.Put(eu.Object(kruiseSets, "shop", "web"))
	for _, server := range []*membertest.Server{eu, s.Api} {
		server.Behave(printTables)
	}
	for _, c := range []struct{ name, line, want string }{
		{"argosy", "clonesets", "NAME AGE"},
		{"argosy", "clonesets -C eu", "NAME CLUSTER AGE ADOPTION"},
		{"karmadactl", "clonesets", "NAME CLUSTER AGE ADOPTION"},
		{"karmadactl", "clonesets -s karmada", "NAME CLUSTER AGE ADOPTION"},
		{"kubectl karmada", "clonesets -s all", "NAME CLUSTER AGE ADOPTION"},
		{"karmadactl", "clusters", "NAME CLUSTER AGE ADOPTION"},
		{"karmadactl", "pods -s members", "NAME CLUSTER AGE"},
		{"karmadactl", "statefulset", "NAME CLUSTER AGE ADOPTION"},
		{"karmadactl", "cloneset web -o name", "cloneset.apps.kruise.io/web"},
	} {
		out, errOut, err := s.Run(func(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
			hub.CalledBy = c.name
			return NewGet(hub, streams)
		}, "", strings.Fields(c.line)...)
		header, rows, _ := strings.Cut(out, "\n")
		if got := strings.Join(strings.Fields(header), " "); err != nil || got != c.want {
			t.Errorf("%s get %s prints %q, %v; want %q", c.name, c.line, got, err, c.want)
		}
		if c.line == "clonesets" && c.name == "karmadactl" && !strings.Contains(rows, "Karmada") {
			t.Errorf("the hub is not named:\n%s", out)
		}
		if c.line == "statefulset" && !strings.Contains(errOut, "get statefulsets.apps.kruise.io") {
			t.Errorf("the other kind of that name is not named: %q", errOut)
		}
	}
}
