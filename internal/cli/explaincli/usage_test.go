package explaincli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func runUsage(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
	return NewUsage(hub)
}

// usedFleet is a hub with the Deployments shop/web and bank/web, which has metrics of a pod of each.
func usedFleet(t *testing.T) *clitest.Seeing {
	s := clitest.See(t, nil)
	s.ServeBindings()
	s.Api.Serve(membertest.Kind{GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("PodMetrics"), Plural: "pods",
		Namespaced: true})
	s.Api.Serve(membertest.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Plural: "namespaces"})
	one := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	for _, namespace := range []string{"shop", "bank"} {
		b := clitest.BoundDeployment("web")
		b.Namespace, b.Spec.Resource.Namespace = namespace, namespace
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}, {Name: "us", Replicas: 1}}
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: one}
		s.Api.Put(b)
		s.Api.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": "t-" + namespace}}})
		s.Api.Put(&metricsv1beta1.PodMetrics{
			TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1",
				Annotations: map[string]string{"resource.karmada.io/query-from-cluster": "eu"}},
			Containers: []metricsv1beta1.ContainerMetrics{{Name: "a", Usage: corev1.ResourceList{
				"cpu": resource.MustParse("300m")}}, {Name: "b", Usage: corev1.ResourceList{"cpu": resource.MustParse("300m")}}}})
	}
	return s
}

func TestUsageShowsTheFleet(t *testing.T) {
	t.Parallel()
	s := usedFleet(t)
	for args, c := range map[string]struct {
		want []string // the lines, with one space between columns
		err  string
	}{
		"": {want: []string{"NAMESPACE RESOURCE REQUESTED LIMITS USED USED%", "shop cpu 3 <none> 600m 20%",
			"shop memory 3Gi <none> <none> <none>"}},
		"-A --by cluster -C us": {want: []string{"CLUSTER RESOURCE REQUESTED LIMITS USED USED%",
			"us cpu 2 <none> <none> <none>", "us memory 2Gi <none> <none> <none>"}},
		"-A --by label=team -o csv": {want: []string{"team,resource,requested,limits,used,quota,change,cost30d",
			"t-bank,cpu,3,0,0.6,,,", "t-bank,memory,3221225472,0,,,,", "t-shop,cpu,3,0,0.6,,,",
			"t-shop,memory,3221225472,0,,,,"}},
		"--price cpu=0.01": {want: []string{"NAMESPACE RESOURCE REQUESTED LIMITS USED USED% COST/30D",
			"shop cpu 3 <none> 600m 20% 21.60", "shop memory 3Gi <none> <none> <none> <none>",
			"shop all <none> <none> <none> <none> 21.60"}},
		"--by label=team -C nowhere": {want: []string{
			"no workload in namespace shop requests or uses anything; -A shows all namespaces"}},
		"--since yesterday": {err: `--since must be a duration such as 12h or 7d, not "yesterday"`},
		"--since -1h":       {err: "--since must be"},
		"--since -1d":       {err: "--since must be"},
		"--price cpu=-1":    {err: "--price must be such as cpu=0.03,memory=0.004, not cpu=-1"},
		"--price cpu=NaN":   {err: "--price must be"},
		"--by team":         {err: `--by: "team" must be namespace, cluster, or label=KEY`},
		"-o wide":           {err: `--output must be json, yaml or csv, not "wide"`},
	} {
		out, _, err := s.Run(runUsage, "", strings.Fields(args)...)
		if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: got %v, want %q", args, err, c.err)
		}
		var got []string
		for line := range strings.Lines(out) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q printed\n%s\nwant\n%s", args, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A user who may view one namespace never sees the name of another one.
func TestUsageAsksForItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	s := usedFleet(t)
	s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		own := strings.Contains(r.URL.Path, "/namespaces/shop") || !strings.Contains(r.URL.Path, "bindings") &&
			!strings.Contains(r.URL.Path, "pods") && !strings.Contains(r.URL.Path, "namespaces") &&
			!strings.Contains(r.URL.Path, "deployments")
		if !own {
			http.Error(w, "forbidden", http.StatusForbidden)
		}
		return !own
	}
	for _, by := range []string{"namespace", "cluster", "label=team"} {
		out, errOut, err := s.Run(runUsage, "", "--by", by)
		if err != nil || !strings.Contains(out, "600m") || strings.Contains(out+errOut, "bank") {
			t.Errorf("by %s it prints %s%s: %v", by, out, errOut, err)
		}
		if out, _, err := s.Run(runUsage, "", "-A", "--by", by); err == nil || out != "" {
			t.Errorf("by %s, all namespaces are shown: %s", by, out)
		}
	}
}

func TestUsageShowsTheChangeFromTheHistory(t *testing.T) {
	t.Parallel()
	s := usedFleet(t)
	status, body := http.StatusOK, `[{"namespace":"shop","cluster":"us","cpu":500,"memory":1073741824}]`
	s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/argosy/usage" {
			return false
		}
		at, err := time.Parse(time.RFC3339, r.URL.Query().Get("at"))
		ago := time.Since(at)
		const week = 7 * 24 * time.Hour
		if err != nil || ago < week || ago > week+time.Minute || r.URL.Query().Get("namespace") != "shop" {
			t.Errorf("it asks for %s", r.URL.RawQuery)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
	out, _, err := s.Run(runUsage, "")
	if err != nil || !strings.Contains(out, "CHANGE") || !strings.Contains(out, "+2500m") ||
		!strings.Contains(out, "+2Gi") {
		t.Errorf("it prints %s: %v", out, err)
	}
	body = "null"
	if out, errOut, err := s.Run(runUsage, ""); err != nil || strings.Contains(out+errOut, "CHANGE") || errOut != "" {
		t.Errorf("without an earlier sample it prints %s%s: %v", out, errOut, err)
	}
	status, body = http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden",`+
		`"code":403,"message":"no","details":{"group":"release.argosy.io","kind":"releases"}}`
	out, errOut, err := s.Run(runUsage, "")
	if err != nil || strings.Contains(out, "CHANGE") || !strings.Contains(errOut,
		"UNKNOWN: you may not list releases.release.argosy.io in namespace shop; a RoleBinding to the ClusterRole view") {
		t.Errorf("without the right it prints %s%s: %v", out, errOut, err)
	}
}

func TestUsageIsShownWithoutMetrics(t *testing.T) {
	t.Parallel()
	s := usedFleet(t)
	s.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		denied := strings.Contains(r.URL.Path, "/pods")
		if denied {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
				`"message":"no","details":{"group":"metrics.k8s.io","kind":"pods"}}`))
		}
		return denied
	}
	out, errOut, err := s.Run(runUsage, "")
	if err != nil || !strings.Contains(out, "shop        cpu") || !strings.Contains(errOut,
		"UNKNOWN: you may not list pods.metrics.k8s.io in namespace shop; a RoleBinding to the ClusterRole view permits it") {
		t.Errorf("it prints %s%s: %v", out, errOut, err)
	}
}
