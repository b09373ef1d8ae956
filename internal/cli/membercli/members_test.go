package membercli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/member/streams"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning}}
}

var kruiseSets = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1",
	Kind: "CloneSet"}, Plural: "clonesets", Namespaced: true}

// runs returns a member in which a CloneSet has pods with these logs.
func runs(t *testing.T, logs map[string]string) *membertest.Server {
	m := membertest.New(t, kruiseSets)
	k := &membertest.Kubelet{Log: map[string]string{}}
	for name, text := range logs {
		m.Put(pod(name))
		k.Log["shop/"+name] = text
	}
	m.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}})
	m.Behave(k.Serve)
	return m
}

func TestLogsOfTheFleetNameTheClusterOfEachLine(t *testing.T) {
	t.Parallel()
	all := []string{"[eu] [pod/web-1/app] one", "[eu] [pod/web-1/app] two", "[eu] [pod/web-2/app] three",
		"[us] [pod/web-3/app] four"}
	for name, c := range map[string]struct {
		args []string
		down bool
		mute bool // us answers 404 for the log of its pod
		want []string
		err  string
	}{
		"labels, and a cluster without the log": {args: []string{"-l", "app=web", "--all-clusters"}, mute: true,
			want: all[:3], err: `the logs of cluster "us" are not complete`},
		"a workload, and a cluster without the log": {args: []string{"cloneset/web", "--all-clusters"}, mute: true,
			want: all[:3], err: `the logs of cluster "us" are not complete`},
		"a pod without a log": {args: []string{"web-3", "--all-clusters"}, mute: true,
			err: `the logs of cluster "us" are not complete`},
		"a workload of OpenKruise":      {args: []string{"cloneset/web", "--all-clusters"}, want: all},
		"by its plural and group":       {args: []string{"clonesets.apps.kruise.io/web", "--all-clusters"}, want: all},
		"followed":                      {args: []string{"cloneset/web", "--all-clusters", "-f"}, want: all},
		"by labels":                     {args: []string{"-l", "app=web", "--all-clusters"}, want: all},
		"of some clusters":              {args: []string{"-l", "app=web", "-C", "us,jp"}, want: all[3:]},
		"a pod by name, wherever it is": {args: []string{"web-3", "--all-clusters"}, want: []string{"[us] four"}},
		"of one cluster as kubectl":     {args: []string{"web-3", "-C", "us"}, want: []string{"four"}},
		"a workload in one cluster":     {args: []string{"cloneset/web", "--cluster", "us"}, want: []string{"four"}},
		"one that is nowhere":           {args: []string{"web-9", "--all-clusters"}, err: `cluster "eu": `},
		"one that does not answer": {args: []string{"cloneset/web", "--all-clusters"}, down: true, want: all,
			err: `the logs of cluster "down" are not complete`},
		"no cluster named": {args: []string{"web-3"},
			err: "name the cluster with --cluster, or use --all-clusters"},
		"both": {args: []string{"web-3", "--all-clusters", "-C", "eu"},
			err: "cannot be used together"},
		"another cluster": {args: []string{"web-3", "-C", "xx"},
			err: `there is no cluster "xx": the fleet has eu, jp, us`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eu, us, jp := runs(t, map[string]string{"web-1": "", "web-2": ""}), runs(t, map[string]string{"web-3": ""}),
				membertest.New(t)
			members := map[string]*membertest.Server{"eu": eu, "us": us, "jp": jp}
			if c.down {
				members["down"] = nil
			}
			follow := make(chan string)
			close(follow)
			for m, logs := range map[*membertest.Server]map[string]string{eu: {"shop/web-1": "one\ntwo",
				"shop/web-2": "three\n"}, us: {"shop/web-3": "four\n"}} {
				if c.mute && m == us {
					logs = nil
				}
				m.Behave((&membertest.Kubelet{Log: logs, Follow: follow}).Serve)
			}
			out, errOut, err := clitest.See(t, members).Run(NewLogs, "", c.args...)
			if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("ended with %v, want %q", err, c.err)
			}
			if c.down && !strings.Contains(errOut, `[down] cluster "down"`) {
				t.Errorf("it was told %q", errOut)
			}
			got := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}

func TestACommandRunsInAPodOfAMember(t *testing.T) {
	t.Parallel()
	m := membertest.New(t)
	m.Put(pod("web-1"))
	k := &membertest.Kubelet{Exec: func(pod string, command []string, stdin io.Reader, stdout, _ io.Writer) error {
		var in []byte
		if stdin != nil && command[0] == "cat" {
			in, _ = io.ReadAll(stdin)
		}
		fmt.Fprintf(stdout, "%s %q %s", pod, command, in)
		if command[0] == "false" {
			return streams.ExitCode(7)
		}
		return nil
	}}
	m.Behave(k.Serve)
	s := clitest.See(t, map[string]*membertest.Server{"eu": m, "down": nil})
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  string
		err   string
		code  int
	}{
		"a command": {args: []string{"web-1", "--cluster", "eu", "--", "date", "-u"},
			want: `shop/web-1 ["date" "-u"] `},
		"with what is typed": {args: []string{"web-1", "-C", "eu", "-i", "--", "cat"}, stdin: "typed",
			want: `shop/web-1 ["cat"] typed`},
		"with the scope": {args: []string{"web-1", "-s", "members", "-C", "eu", "--", "date"},
			want: `shop/web-1 ["date"] `},
		"one that fails": {args: []string{"web-1", "-C", "eu", "--", "false"}, want: `shop/web-1 ["false"] `,
			err: "command terminated with exit code 7", code: 7},
		"no such pod":      {args: []string{"web-9", "-C", "eu", "--", "date"}, err: `cluster "eu": `},
		"a silent cluster": {args: []string{"web-1", "-C", "down", "--", "date"}, err: `cluster "down" is not reachable`},
		"no cluster":       {args: []string{"web-1", "--", "date"}, err: "name the cluster with --cluster"},
		"two clusters":     {args: []string{"web-1", "-C", "eu,down", "--", "date"}, err: "name one cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := s.Run(NewExec, c.stdin, c.args...)
			if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("ended with %v, %q, want %q", err, errOut, c.err)
			}
			if code, _ := err.(hubcli.ExitError); code.Code != c.code {
				t.Errorf("exit code %d, want %d", code.Code, c.code)
			}
			if out != c.want {
				t.Errorf("printed %q, want %q", out, c.want)
			}
		})
	}
}

func TestObjectsOfSeveralClustersNameTheirCluster(t *testing.T) {
	eu, us := runs(t, map[string]string{"web-1": ""}), runs(t, map[string]string{"web-2": "", "web-3": ""})
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu, "us": us})
	out, _, err := s.Run(NewGet, "", "pods", "-s", "members", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.PodList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []string
	for _, p := range list.Items {
		got = append(got, p.Annotations[cachedFrom]+" "+p.Name)
	}
	if want := []string{"eu web-1", "us web-2", "us web-3"}; list.Kind != "List" || !slices.Equal(got, want) {
		t.Errorf("a %s of %q, want %q", list.Kind, got, want)
	}
	out, _, err = s.Run(NewGet, "", "pod", "web-2", "-s", "members", "-o", "jsonpath={.metadata.name}")
	if err != nil || out != "web-2" {
		t.Errorf("of one that is in one cluster: %q, %v", out, err)
	}
	if _, _, err = s.Run(NewGet, "", "pod", "web-9", "-s", "members"); err == nil ||
		strings.Count(err.Error(), "not found") != 2 {
		t.Errorf("of one that is nowhere: %v", err)
	}
	if _, _, err = s.Run(NewGet, "", "pods", "-s", "fleet"); err == nil ||
		!strings.Contains(err.Error(), "karmada, members or all") {
		t.Errorf("of a scope that is none: %v", err)
	}
}

func TestClustersWithoutTheObjectOrItsKindAreSkipped(t *testing.T) {
	eu, us := runs(t, map[string]string{"web-1": ""}), membertest.New(t)
	eu.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu, "us": us})
	if out, _, err := s.Run(NewGet, "", "cloneset", "web", "-s", "members", "-o", "name"); err != nil ||
		!strings.Contains(out, "web") {
		t.Errorf("get of a kind that one cluster serves: %q, %v", out, err)
	}
	if _, _, err := s.Run(NewGet, "", "things", "-s", "members"); err == nil ||
		strings.Count(err.Error(), `the server doesn't have a resource type "things"`) != 2 {
		t.Errorf("get of a kind that no cluster serves: %v", err)
	}
	if out, _, err := s.Run(NewDescribe, "", "configmap", "settings", "-s", "members",
		"--show-events=false"); err != nil || !strings.Contains(out, "settings") {
		t.Errorf("describe of an object in one cluster: %q, %v", out, err)
	}
	if _, _, err := s.Run(NewDescribe, "", "configmap", "nowhere", "-s", "members"); err == nil ||
		strings.Count(err.Error(), "not found") != 2 {
		t.Errorf("describe of an object that is nowhere: %v", err)
	}
}

func TestDescribeDoesNotControlTheTerminal(t *testing.T) {
	eu, us := membertest.New(t), membertest.New(t)
	for _, member := range []*membertest.Server{eu, us} {
		member.Put(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings",
				Annotations: map[string]string{"note": "x\x1b[2J\a\by\u009b\u202ez"}},
			Data: map[string]string{"image": "x\x1b[2J\a\by\u009b\u202ez"}})
	}
	s := clitest.See(t, map[string]*membertest.Server{"eu": eu, "us": us})
	out, _, err := s.Run(NewDescribe, "", "configmap", "settings", "-s", "members", "--show-events=false")
	if err != nil || strings.Count(out, "# Cluster ") != 2 || strings.Count(out, "y  z") != 4 ||
		strings.ContainsAny(out, "\x1b\a\b\u009b\u202e") {
		t.Errorf("described as %q, %v", out, err)
	}
}

func TestObjectIsMissingOnlyByAnAnswerOfItsCluster(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	missing := apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), "eu")
	for name, c := range map[string]struct {
		at   string
		err  error
		want bool
	}{
		"no object": {"eu", fmt.Errorf("cluster: %w", apierrors.NewNotFound(pods, "web")), true},
		"no kind":   {"eu", &notServedError{schema.GroupKind{Kind: "things"}}, true},
		"no object, several times": {"eu",
			utilerrors.NewAggregate([]error{apierrors.NewNotFound(pods, "a"), apierrors.NewNotFound(pods, "b")}), true},
		"no object, and another failure": {"eu",
			utilerrors.NewAggregate([]error{apierrors.NewNotFound(pods, "a"), errors.New("no")}), false},
		"no cluster":                   {"eu", missing, false},
		"no cluster, asked of the hub": {"", missing, true},
		"a text":                       {"eu", errors.New(`Error from server (NotFound): pods "web" not found`), false},
	} {
		if got := (&place{Cluster: c.at}).lacks(c.err); got != c.want {
			t.Errorf("%s: lacks the object: %t, want %t", name, got, c.want)
		}
	}
}

func TestAMembersRowsSayTheirClusterAndWhetherTheyAreManaged(t *testing.T) {
	row := func(managed bool) metav1.TableRow {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		// The EndpointSlices and Endpoints of a Service copy its labels, not its annotations.
		u.SetLabels(map[string]string{"karmada.io/managed": "true"})
		if managed {
			u.SetAnnotations(map[string]string{"work.karmada.io/namespace": "karmada-es-eu", "work.karmada.io/name": "web"})
		}
		r := metav1.TableRow{Cells: []any{"web", "2/2"}}
		r.Object.Object = u
		return r
	}
	for name, c := range map[string]struct {
		at   *place
		kind string
		want string
	}{
		"of the hub": {&place{}, "Deployment", "Name Cluster Ready Adoption: web Karmada 2/2 -, web Karmada 2/2 -"},
		"a workload": {&place{Cluster: "eu"}, "Deployment", "Name Cluster Ready Adoption: web eu 2/2 Y, web eu 2/2 N"},
		"pods":       {&place{Cluster: "eu"}, "Pod", "Name Cluster Ready: web eu 2/2, web eu 2/2"},
	} {
		t.Run(name, func(t *testing.T) {
			table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}},
				Rows: []metav1.TableRow{row(true), row(false)}}
			addColumns(table, c.at, c.kind != "Pod")
			got := strings.ReplaceAll(titles(table), "\t", " ") + ":"
			for i, r := range table.Rows {
				if i > 0 {
					got += ","
				}
				for _, cell := range r.Cells {
					got += fmt.Sprint(" ", cell)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLinesAreWholeWhoeverWritesThem(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	a, b := &lines{prefix: "a: ", mu: &mu, out: &out}, &lines{prefix: "b: ", mu: &mu, out: &out}
	for _, w := range []struct {
		to   *lines
		text string
	}{{a, "on"}, {b, "1\n2"}, {a, "e\ntwo\nthr"}, {b, "\n\n"}, {a, "ee"}} {
		if n, err := w.to.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatal(n, err)
		}
	}
	a.end()
	b.end()
	if want := "b: 1\na: one\na: two\nb: 2\nb: \na: three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPodsOfAWorkloadMatchItsSelector(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"CloneSet","spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}}}`: "a=b,c",
		`{"kind":"CloneSet","status":{"labelSelector":"a=b"}}`:                                                                   "a=b",
		`{"kind":"BroadcastJob","apiVersion":"apps.kruise.io/v1beta1","metadata":{"name":"warm"}}`:                               "broadcastjob-name=warm",
		`{"kind":"Workflow","apiVersion":"argoproj.io/v1alpha1","metadata":{"name":"report"}}`:                                   "workflows.argoproj.io/workflow=report",
		`{"kind":"Widget","spec":{"selector":{"color":"red"}}}`:                                                                  "",
		`{"kind":"Widget"}`: "",
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		got, err := selectorOf(u)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("of %s: %q, %v, want %q", text, got, err, want)
		}
	}
}
