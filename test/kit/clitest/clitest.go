// Package clitest has a hub with members for the tests of verbs.
package clitest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// ServeBindings makes the hub serve the kinds that failovers depend on.
func (s *Seeing) ServeBindings() {
	for _, k := range []struct {
		gv           schema.GroupVersion
		kind, plural string
		namespaced   bool
	}{
		{workv1alpha2.GroupVersion, "ResourceBinding", "resourcebindings", true},
		{workv1alpha2.GroupVersion, "ClusterResourceBinding", "clusterresourcebindings", false},
		{policyv1alpha1.GroupVersion, "PropagationPolicy", "propagationpolicies", true},
		{policyv1alpha1.GroupVersion, "ClusterPropagationPolicy", "clusterpropagationpolicies", false},
		{workv1alpha1.GroupVersion, "Work", "works", true},
		{appsv1.SchemeGroupVersion, "Deployment", "deployments", true},
		{releasev1alpha1.GroupVersion, "Release", "releases", true},
		{ocmv1.GroupVersion, "ManifestWork", "manifestworks", true},
	} {
		s.Api.Serve(membertest.Kind{GroupVersionKind: k.gv.WithKind(k.kind), Plural: k.plural, Namespaced: k.namespaced})
	}
}

// BoundDeployment returns the binding of a Deployment in namespace shop that is placed in cluster us.
func BoundDeployment(name string, tasks ...workv1alpha2.GracefulEvictionTask) *workv1alpha2.ResourceBinding {
	placement := policyv1alpha1.Placement{}
	b := &workv1alpha2.ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment", Generation: 1},
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: name}
	b.Spec.Placement, b.Spec.GracefulEvictionTasks = &placement, tasks
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "us"}}
	b.Status.SchedulerObservedGeneration = 1
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: "Success"}}
	b.Annotations = map[string]string{
		policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(&placement)}
	return b
}

func FakeHub(objs ...client.Object) client.Client {
	objs = append(objs, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "hub-1"}})
	return fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(objs...).Build()
}

func KubeconfigOf(server string) string {
	return `{apiVersion: v1, kind: Config, current-context: one, clusters: [{name: c, cluster: {server: "` + server + `"}}],
contexts: [{name: one, context: {cluster: c}}, {name: two, context: {cluster: c}}]}`
}

func WriteFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	definitionKind = membertest.Kind{GroupVersionKind: definition.GVK, Plural: "customresourcedefinitions"}
	ClusterKind    = membertest.Kind{GroupVersionKind: clusterv1alpha1.GroupVersion.WithKind("Cluster"),
		Plural: "clusters"}
	leaseKind = membertest.Kind{GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		Plural: "leases", Namespaced: true}
)

// Seeing is a hub that passes requests on to members, and the verbs that use it.
type Seeing struct {
	T    *testing.T
	File string
	Api  *membertest.Server
	// Refuse answers requests that the user may not send, and reports whether it did; nil refuses none.
	Refuse func(http.ResponseWriter, *http.Request) bool
}

// See returns a hub with these members; nil is one that does not answer.
func See(t *testing.T, members map[string]*membertest.Server) *Seeing {
	t.Helper()
	api := membertest.New(t, ClusterKind, leaseKind, definitionKind)
	var objects []client.Object
	for name, m := range members {
		if m == nil {
			m = membertest.New(t)
			m.Down(true)
		}
		c := m.Cluster(name)
		c.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster"}
		c.Spec.ImpersonatorSecretRef = c.Spec.SecretRef
		objects = append(objects, c, m.Secret(name))
		api.Put(c)
	}
	store := FakeHub(objects...)
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	handler := proxy.Handler(proxy.Options{Hub: func() (client.Reader, error) { return store, nil },
		Grants: acting.Fixed(access.Derive(
			[]rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "see"},
				Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"},
					Resources: []string{"clusters/proxy"}}}}},
			[]rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"},
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}}}))}, api)
	s := &Seeing{T: t, File: filepath.Join(t.TempDir(), "hub.kubeconfig"), Api: api}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Refuse != nil && s.Refuse(w, r) {
			return
		}
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("Authorization", "Bearer "+membertest.Token) // a client keeps its token where there is no TLS
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info),
			&user.DefaultInfo{Name: "alice"})))
	}))
	t.Cleanup(server.Close)
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: hub, contexts: [{name: hub, context: {cluster: hub, user: alice, namespace: shop}}],
clusters: [{name: hub, cluster: {server: %q}}], users: [{name: alice, user: {token: %q}}]}`, server.URL, membertest.Token)
	if err := os.WriteFile(s.File, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Run runs a verb and returns what it printed.
func (s *Seeing) Run(verb func(*hubcli.HubFlags, genericiooptions.IOStreams) *cobra.Command, stdin string,
	args ...string) (out, errOut string, err error) {
	s.T.Helper()
	hub := &hubcli.HubFlags{Kubeconfig: s.File}
	var o, e safe
	cmd := verb(hub, genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &o, ErrOut: &e})
	root := &cobra.Command{Use: "argosy", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	root.SetOut(&o)
	root.SetErr(&e)
	err = root.ExecuteContext(s.T.Context())
	return o.String(), e.String(), err
}

// safe is written by many.
type safe struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

// Started returns a release of the hub with a status, as the hub would write it.
func Started(status string) *releasev1alpha1.Release {
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1", UID: "uid-r1",
		Generation: 1}}
	r.Spec = releasev1alpha1.ReleaseSpec{State: releasev1alpha1.StateRun,
		StrategyRef: &releasev1alpha1.ReleaseStrategyReference{Name: "one-two-seven"},
		Targets: []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}}}
	if err := yaml.UnmarshalStrict([]byte(status), &r.Status); err != nil {
		panic(err) // a mistake in this file
	}
	return r
}

// Gated is the status of a release that waits at gate sign of its second stage.
const Gated = `
observedGeneration: 1
phase: Running
reason: WaitingForApproval
stage: two
progress: 2/20
revision: abc
startedAt: "2026-01-01T11:00:00Z"
conditions:
- {type: Accepted, status: "True", reason: Planned, message: "", lastTransitionTime: "2026-01-01T11:00:00Z"}
- type: Progressing
  status: "False"
  reason: WaitingForApproval
  message: gates sign of stage two
  lastTransitionTime: "2026-01-01T11:00:00Z"
journal:
- {seq: 1, at: "2026-01-01T11:00:00Z", type: Phase, reason: Started}
- {seq: 2, at: "2026-01-01T11:30:00Z", type: Stage, stage: one, reason: Done}
stages:
- name: one
  phase: Done
  attempt: 1
  clusterNames: [eu, us]
  endedAt: "2026-01-01T11:30:00Z"
  counts: {clusters: 2, reached: 2, pods: 2, new: 2, available: 2}
- name: two
  phase: Gated
  attempt: 2
  sameClusters: true
  gates: [{name: sign, position: Before, phase: Waiting, since: "2026-01-01T11:30:00Z"}]
- {name: seven, phase: Pending, attempt: 0, sameClusters: true}
`
