package joincli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/test/kit/clitest"
)

// fakeMember returns a cluster with a UID and a token controller, which fills the secrets of accounts.
func fakeMember(uid string) client.Client {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(uid)}}
	return fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(system).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if s, ok := obj.(*corev1.Secret); ok {
				s.UID = uuid.NewUUID()
			}
			return c.Create(ctx, obj, opts...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			r := request.(*authenticationv1.TokenRequest)
			if sub != "token" || r.Spec.BoundObjectRef == nil || r.Spec.BoundObjectRef.UID == "" {
				return fmt.Errorf("request of %s for %v", sub, r.Spec)
			}
			r.Status.Token = "token of " + obj.GetName()
			return nil
		},
	}).Build()
}

func joining(name string, hub, member client.Client) (*Join, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &Join{
		Name: name, Namespace: "karmada-cluster", Hub: hub, Member: member, Out: out,
		Endpoint: hubcli.Endpoint{Config: &rest.Config{Host: "https://" + name,
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("CA")}}},
	}, out
}

// anchorsOf returns the Secrets that tokens of an account go with.
func anchorsOf(t *testing.T, member client.Client, account string) []corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := member.List(t.Context(), &list, client.InNamespace("karmada-cluster"),
		client.MatchingLabels{"argosy.io/token-of": account}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func exists(t *testing.T, c client.Client, obj client.Object, namespace, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func TestJoinCreatesTheObjectsOfKarmada(t *testing.T) {
	hub, member := clitest.FakeHub(), fakeMember("id-1")
	j, out := joining("m1", hub, member)
	j.Provider, j.Region, j.Zones = "p", "r", []string{"z1", "z2"}
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "cluster(m1) is joined successfully\n" {
		t.Errorf("said %q", got)
	}

	for _, name := range []string{"karmada-m1", "karmada-impersonator"} {
		account := &corev1.ServiceAccount{}
		if !exists(t, member, account, "karmada-cluster", name) || account.Labels["karmada.io/system"] != "true" {
			t.Errorf("service account %s is %v", name, account)
		}
		if anchors := anchorsOf(t, member, name); len(anchors) != 1 || len(anchors[0].Data) != 0 {
			t.Errorf("the token of %s goes with %v, want one empty Secret", name, anchors)
		}
	}
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	if !exists(t, member, role, "", "karmada-controller-manager:karmada-m1") || len(role.Rules) != 2 ||
		role.Rules[0].Verbs[0] != "*" || role.Rules[1].Verbs[0] != "get" {
		t.Errorf("cluster role has rules %v", role.Rules)
	}
	if !exists(t, member, binding, "", "karmada-controller-manager:karmada-m1") ||
		binding.Subjects[0].Name != "karmada-m1" || binding.RoleRef.Name != role.Name {
		t.Errorf("cluster role binding is %v", binding)
	}

	cluster := &clusterv1alpha1.Cluster{}
	if !exists(t, hub, cluster, "", "m1") {
		t.Fatal("there is no cluster")
	}
	s := cluster.Spec
	if s.ID != "id-1" || s.SyncMode != "Push" || s.APIEndpoint != "https://m1" || s.Provider != "p" || s.Region != "r" ||
		len(s.Zones) != 2 ||
		s.SecretRef.Namespace != "karmada-cluster" || s.SecretRef.Name != "m1" ||
		s.ImpersonatorSecretRef.Name != "m1-impersonator" {
		t.Errorf("spec is %+v", s)
	}
	for name, data := range map[string]map[string]string{
		"m1":              {"token": "token of karmada-m1", "caBundle": "CA"},
		"m1-impersonator": {"token": "token of karmada-impersonator"},
	} {
		secret := &corev1.Secret{}
		if !exists(t, hub, secret, "karmada-cluster", name) {
			t.Fatalf("there is no secret %s", name)
		}
		if len(secret.Data) != len(data) {
			t.Errorf("secret %s has keys %v", name, secret.Data)
		}
		for key, want := range data {
			if got := string(secret.Data[key]); got != want {
				t.Errorf("secret %s has %s %q, want %q", name, key, got, want)
			}
		}
		if o := secret.OwnerReferences; len(o) != 1 || o[0].Kind != "Cluster" || o[0].Name != "m1" {
			t.Errorf("secret %s is owned by %v, want the cluster", name, o)
		}
	}
}

// Joining again changes the role in both directions and keeps it without the flag; the hub can log in all the time.
func TestRoleOfTheHubInAMemberCanBeChanged(t *testing.T) {
	letIn := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "see"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
		ResourceNames: []string{"m1"}}}}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "see"},
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"},
			{Kind: "Group", Name: "devs"}, {Kind: "Group", Name: "system:masters"}}}
	hub, member := clitest.FakeHub(letIn, bound), fakeMember("id-1")
	for i, c := range []struct {
		role string
		full bool
	}{{"minimal", false}, {"", false}, {"full", true}, {"", true}, {"minimal", false}} {
		j, out := joining("m1", hub, member)
		if j.Role = c.role; j.Run(t.Context()) != nil {
			t.Fatalf("join %d with %q: %s", i, c.role, out)
		}
		role, secret := &rbacv1.ClusterRole{}, &corev1.Secret{}
		if !exists(t, member, role, "", "karmada-controller-manager:karmada-m1") || roles.IsFull(role.Rules) != c.full {
			t.Errorf("after join %d with %q the rules are %v", i, c.role, role.Rules)
		}
		if !exists(t, hub, secret, "karmada-cluster", "m1") || len(secret.Data["token"]) == 0 ||
			len(anchorsOf(t, member, "karmada-m1")) != 1 {
			t.Errorf("after join %d the hub has no token: %v", i, secret.Data)
		}
		if strings.Contains(out.String(), "the hub has the role minimal there") == c.full {
			t.Errorf("join %d says %q", i, out)
		}
		named := map[string][]string{}
		for _, r := range role.Rules {
			if slices.Contains(r.Verbs, "impersonate") {
				named[r.Resources[0]] = r.ResourceNames
			}
		}
		want := map[string][]string{}
		if !c.full {
			want = map[string][]string{"users": {"alice"}, "groups": {"devs"}}
		}
		if fmt.Sprint(named) != fmt.Sprint(want) {
			t.Errorf("after join %d with %q the hub may act as %v", i, c.role, named)
		}
	}
}

// Who may join clusters need not be able to list the roles of the hub.
func TestJoinWithTheRoleMinimalSaysWhoDoesNotReachTheCluster(t *testing.T) {
	hub := clitest.FakeHub().(client.WithWatch)
	refusing := interceptor.NewClient(hub, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
		list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*rbacv1.ClusterRoleList); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
		}
		return c.List(ctx, list, opts...)
	}})
	j, out := joining("m1", refusing, fakeMember("id-1"))
	j.Role = "minimal"
	if err := j.Run(t.Context()); err != nil || !strings.Contains(out.String(), "only administrators and those who were") {
		t.Errorf("%v: %s", err, out)
	}
}

// actAs returns the names that the hub's account may act as.
func actAs(t *testing.T, member client.Client) (names []string) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	exists(t, member, role, "", "karmada-controller-manager:karmada-m1")
	for _, r := range role.Rules {
		if slices.Contains(r.Verbs, "impersonate") {
			names = append(names, r.ResourceNames...)
		}
	}
	return names
}

// Whoever joins a cluster again takes away no access there: neither that of members of groups, nor what this user
// cannot see on the hub.
func TestJoiningAgainWithTheRoleMinimalKeepsWhoIsPermitted(t *testing.T) {
	var refused []client.ObjectList
	timeout := errors.New("timed out")
	hubOf := func(subjects ...rbacv1.Subject) client.Client {
		letIn := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "see"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}}}}
		bound := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "see"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"}, Subjects: subjects}
		return interceptor.NewClient(clitest.FakeHub(letIn, bound).(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				for i, of := range refused {
					switch {
					case fmt.Sprintf("%T", of) != fmt.Sprintf("%T", list):
					case i == 0:
						return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
					default:
						return timeout
					}
				}
				return c.List(ctx, list, opts...)
			}})
	}
	alice, devs := rbacv1.Subject{Kind: "User", Name: "alice"}, rbacv1.Subject{Kind: "Group", Name: "devs"}
	hub, member := hubOf(alice, devs), fakeMember("id-1")
	join := func(role string, want ...string) {
		t.Helper()
		j, out := joining("m1", hub, member)
		if j.Role = role; j.Run(t.Context()) != nil {
			t.Fatalf("join with %q: %s", role, out)
		}
		if got := actAs(t, member); !slices.Equal(got, want) {
			t.Errorf("after a join with %q the hub may act as %v, want %v", role, got, want)
		}
	}
	join("full")
	users, err := proxyUsers(t.Context(), hub)
	if err != nil {
		t.Fatal(err)
	}
	// Bob has called as a member of devs.
	role, _ := users.ForCluster("m1", nil).Role(nil, "hub-1", access.Identity{User: "bob", By: []string{"devs"}})
	if err := member.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	none := &rbacv1.ClusterRoleList{}
	refused = []client.ObjectList{none}
	join("minimal", "alice", "bob", "devs")
	refused = nil
	join("", "alice", "bob", "devs")
	refused = []client.ObjectList{none}
	join("", "alice", "bob", "devs")
	refused = nil
	seen := &rbacv1.ClusterRoleBinding{}
	exists(t, hub, seen, "", "see")
	seen.Subjects = []rbacv1.Subject{alice}
	if err := hub.Update(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	join("minimal", "alice")
	// Who is not permitted is not known after a failure.
	refused = []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, none}
	j, _ := joining("m1", hub, member)
	if err := j.Run(t.Context()); !errors.Is(err, timeout) || !slices.Equal(actAs(t, member), []string{"alice"}) {
		t.Errorf("%v, and the hub may act as %v", err, actAs(t, member))
	}
}

func TestJoinRefusesTheMemberOfAnotherHubWithoutTakeover(t *testing.T) {
	member := fakeMember("id-1")
	first, _ := joining("m1", clitest.FakeHub(), member)
	first.HubAddress = "https://first"
	if err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{}
	if !exists(t, member, lease, "karmada-cluster", "argosy-hub") || *lease.Spec.HolderIdentity != "hub-1" {
		t.Fatalf("the stamp is %+v", lease.Spec)
	}
	if err := first.Run(t.Context()); err != nil {
		t.Errorf("its own hub cannot join it again: %v", err)
	}

	hub := clitest.FakeHub()
	system := &corev1.Namespace{}
	exists(t, hub, system, "", "kube-system")
	system.UID = "hub-2"
	if err := hub.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	second, out := joining("m1", hub, member)
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "https://first") ||
		!strings.Contains(err.Error(), "--take-over") {
		t.Errorf("a second hub got %v, want a refusal that names the first and --take-over", err)
	}
	if exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1") {
		t.Error("a refused join left a cluster in the hub")
	}
	second.TakeOver = true
	if err := second.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "no longer writes there") {
		t.Errorf("said %q", out)
	}
	if exists(t, member, lease, "karmada-cluster", "argosy-hub"); *lease.Spec.HolderIdentity != "hub-2" {
		t.Errorf("the stamp is %+v", lease.Spec)
	}

	// The first hub leaves what the second uses.
	cluster := &clusterv1alpha1.Cluster{}
	exists(t, first.Hub, cluster, "", "m1")
	u, _ := unjoining("m1", first.Hub, member)
	if _, err := u.cleanMember(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-m1") ||
		!exists(t, member, lease, "karmada-cluster", "argosy-hub") {
		t.Error("the first hub removed the accounts or the stamp of the second")
	}
	u.hub = hub
	if _, err := u.cleanMember(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-m1") ||
		exists(t, member, lease, "karmada-cluster", "argosy-hub") {
		t.Error("the second hub left its accounts or its stamp")
	}
}

func TestJoinWarnsAboutAnotherControlPlane(t *testing.T) {
	member := fakeMember("id-1")
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
		Labels: map[string]string{"karmada.io/managed": "true"}}}
	if err := member.Create(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	j, out := joining("m1", clitest.FakeHub(), member)
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "warning: 1 namespaces labelled karmada.io/managed=true, such as shop") {
		t.Errorf("said %q", out)
	}
}

// hubWith returns a hub with that identity.
func hubWith(id string) client.Client {
	return fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(id)}}).Build()
}

// What is left in a member after an unjoin without its kubeconfig is this hub's own, another hub's or Karmada's.
func TestJoinTellsWhoseLeftoverIsInTheMember(t *testing.T) {
	const karmada = "a Karmada control plane may manage"
	for story, tc := range map[string]struct {
		former, by string // the name under which a hub joined it before
		lease      bool   // that hub could not remove its Lease
		left       []client.Object
		refused    bool
		says, not  []string
	}{
		"nothing": {not: []string{"has", karmada}},
		"of this hub, under the same name": {former: "new", by: "hub-1",
			says: []string{"cluster(new) has accounts of this hub, which joined it under this name before"},
			not:  []string{karmada, "another hub", "unjoin"}},
		"of this hub, under the same name, with its Lease": {former: "new", by: "hub-1", lease: true,
			says: []string{"under this name before"}, not: []string{karmada, "another hub"}},
		"of this hub, under another name": {former: "old", by: "hub-1",
			says: []string{`as "old" before: ` + "`argosy unjoin old --cluster-kubeconfig m.yaml` removes them"},
			not:  []string{karmada, "another hub"}},
		"of this hub, under another name, with its Lease": {former: "old", by: "hub-1", lease: true,
			says: []string{"`argosy unjoin old --cluster-kubeconfig m.yaml` removes them"},
			not:  []string{karmada, "another hub"}},
		"a namespace of this hub": {left: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
			Labels:      map[string]string{"karmada.io/managed": "true"},
			Annotations: map[string]string{"argosy.io/hub": "hub-1"}}}}, not: []string{karmada, "another hub"}},
		"of another hub, which claims it": {former: "old", by: "hub-2", lease: true, refused: true,
			says: []string{"is a member of another hub", "the hub hub-2", "--take-over"}, not: []string{karmada, "this hub"}},
		"of another hub, which does not": {former: "old", by: "hub-2",
			says: []string{"warning", "objects of another hub", `karmada-cluster/karmada-old of the hub "hub-2"`,
				"`argosy unjoin NAME --cluster-kubeconfig FILE` with that hub", "NAME, its name of the cluster, is old"},
			not: []string{karmada, "of this hub", "argosy unjoin new"}},
		"of another hub, which does not, under the same name": {former: "new", by: "hub-2",
			says: []string{"objects of another hub", "NAME, its name of the cluster, is new"},
			not:  []string{karmada, "of this hub"}},
		"of this hub, under the name of another cluster of it": {
			left: []client.Object{anchor("karmada-prod", "hub-1"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-cluster", Name: "karmada-prod"}}},
			says: []string{"under the names of its other clusters: karmada-cluster/karmada-prod"},
			not:  []string{karmada, "argosy unjoin"}},
		"a namespace of another hub": {left: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
			Labels:      map[string]string{"karmada.io/managed": "true"},
			Annotations: map[string]string{"argosy.io/hub": "hub-2"}}}},
			says: []string{`namespace shop of the hub "hub-2"`, "`argosy unjoin NAME --cluster-kubeconfig FILE` with that hub",
				"is not known here"}, not: []string{karmada, "argosy unjoin new"}},
		"namespaces with a forged hub": {left: forged(20),
			says: []string{`of the hub "\x1b[2J`, "and 15 more"}, not: []string{karmada, "\x1b", "team-6"}},
		"of Karmada": {left: []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-cluster", Name: "karmada-old"}}}, says: []string{karmada}, not: []string{"of this hub"}},
	} {
		t.Run(story, func(t *testing.T) {
			hub, member := hubWith("hub-1"), fakeMember("id-1")
			prod := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"},
				Spec: clusterv1alpha1.ClusterSpec{ID: "id-of-prod"}}
			if err := hub.Create(t.Context(), prod); err != nil {
				t.Fatal(err)
			}
			for _, obj := range tc.left {
				if err := member.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if tc.former != "" {
				before := hub
				if tc.by != "hub-1" {
					before = hubWith(tc.by)
				}
				leavesBehind(t, tc.former, before, member, tc.lease)
			}
			j, out := joining("new", hub, member)
			j.Flags = "--cluster-kubeconfig m.yaml"
			console := ""
			j.Progress = func(step, detail string) {
				if step == "warning" {
					console += detail
				}
			}
			err := j.Run(t.Context())
			if (err != nil) != tc.refused {
				t.Fatal(err)
			}
			said := out.String() + fmt.Sprint(err)
			for _, want := range tc.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
				if !tc.refused && want != "warning" && !strings.Contains(console, want) {
					t.Errorf("the console does not show %q: %s", want, console)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(said, not) {
					t.Errorf("it says %q:\n%s", not, said)
				}
			}
		})
	}
}

// anchor returns the Secret of a token of an account, as a user of the member can write it too.
func anchor(account, hub string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: account + "-token-x",
		Labels: map[string]string{"argosy.io/token-of": account, "argosy.io/hub": hub}}}
}

// forged returns namespaces that a user of the member made, to write to the terminal of the administrator.
func forged(n int) (out []client.Object) {
	for i := range n {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%02d", i),
			Labels:      map[string]string{"karmada.io/managed": "true"},
			Annotations: map[string]string{"argosy.io/hub": "\x1b[2Jall is well"}}})
	}
	return out
}

// leavesBehind joins a member and unjoins it without its kubeconfig, as when it does not answer if the Lease stays.
func leavesBehind(t *testing.T, name string, hub, member client.Client, lease bool) {
	t.Helper()
	j, _ := joining(name, hub, member)
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	u, _ := unjoining(name, hub, nil)
	if err := u.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !lease {
		stamp := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "argosy-hub"}}
		if err := member.Delete(t.Context(), stamp); err != nil {
			t.Fatal(err)
		}
	}
}

// The command that join and unjoin name removes the leftover, and nothing that the new name or another hub uses.
func TestUnjoinRemovesALeftoverOfThisHubOnly(t *testing.T) {
	for story, tc := range map[string]struct {
		by, joined string // who left it, and the name that the member has now
		err        string
	}{
		"of this hub, and the member is in no fleet":   {by: "hub-1"},
		"of this hub, and the member has another name": {by: "hub-1", joined: "new"},
		"of another hub":                        {by: "hub-2", err: `has tokens of another hub ("hub-2"): it is kept`},
		"none":                                  {err: `cluster "old" is not joined`},
		"none, and the member has another name": {joined: "new", err: `cluster "old" is not joined`},
		"of another hub, and the member has a name with this": {by: "hub-2", joined: "new", err: "it is kept"},
	} {
		t.Run(story, func(t *testing.T) {
			hub, member := hubWith("hub-1"), fakeMember("id-1")
			if tc.by != "" {
				before := hub
				if tc.by != "hub-1" {
					before = hubWith(tc.by)
				}
				leavesBehind(t, "old", before, member, false)
			}
			if tc.joined != "" {
				j, _ := joining(tc.joined, hub, member)
				if err := j.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, dry := range []bool{true, false} {
				u, out := unjoining("old", hub, member)
				u.dryRun = dry
				err := u.run(t.Context())
				if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q; said %s", err, tc.err, out)
				}
				want := dry && tc.by != "" || tc.by == "hub-2"
				if left := exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-old"); left != want {
					t.Errorf("dry run %t: the account is left: %t, want %t", dry, left, want)
				}
			}
			for what, left := range map[string]bool{
				"the account of the new name": exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-new"),
				"the Lease":                   exists(t, member, &coordinationv1.Lease{}, "karmada-cluster", "argosy-hub"),
				"the token of the impersonator": slices.ContainsFunc(anchorsOf(t, member, "karmada-impersonator"),
					func(s corev1.Secret) bool { return s.Labels["argosy.io/hub"] == "hub-1" }),
			} {
				if left != (tc.joined != "") {
					t.Errorf("%s is left: %t", what, left)
				}
			}
		})
	}
}

// Another hub has joined the member since. What this hub left is revoked, and removed if the other does not use it.
func TestUnjoinRemovesALeftoverInTheMemberOfAnotherHub(t *testing.T) {
	const removed = "what this hub left of cluster(old) is removed"
	karmadas := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-old",
		Annotations: map[string]string{corev1.ServiceAccountNameKey: "karmada-old"}},
		Type: corev1.SecretTypeServiceAccountToken}
	elsewhere := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-old"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "other", Name: "karmada-old"}}}
	for story, tc := range map[string]struct {
		joined string        // the name under which the other hub joined it
		has    client.Object // what else is there
		live   bool          // this hub has the cluster still
		kept   string
	}{
		"under another name":                            {joined: "new"},
		"under the same name":                           {joined: "old", kept: `tokens of another hub ("hub-2")`},
		"under the same name, with accounts elsewhere":  {has: elsewhere, kept: `an account in namespace "other"`},
		"of Karmada, under the same name":               {has: karmadas, kept: "a token that does not expire, in the Secret karmada-old"},
		"under another name, of a cluster of this hub":  {joined: "new", live: true},
		"under the same name, of a cluster of this hub": {joined: "old", live: true, kept: "tokens of another hub"},
	} {
		t.Run(story, func(t *testing.T) {
			hub, member := hubWith("hub-1"), fakeMember("id-1")
			if tc.live {
				j, _ := joining("old", hub, member)
				if err := j.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				leavesBehind(t, "old", hub, member, true)
			}
			switch has := tc.has.(type) {
			case nil:
			case *rbacv1.ClusterRoleBinding:
				there := &rbacv1.ClusterRoleBinding{}
				exists(t, member, there, "", has.Name)
				there.Subjects = has.Subjects
				if err := member.Update(t.Context(), there); err != nil {
					t.Fatal(err)
				}
			default:
				if err := member.Create(t.Context(), has); err != nil {
					t.Fatal(err)
				}
			}
			if tc.joined != "" {
				j, _ := joining(tc.joined, hubWith("hub-2"), member)
				j.TakeOver = true
				if err := j.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			u, out := unjoining("old", hub, member)
			if err := u.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, account := range []string{"karmada-old", "karmada-impersonator"} {
				if slices.ContainsFunc(anchorsOf(t, member, account), func(s corev1.Secret) bool {
					return s.Labels["argosy.io/hub"] == "hub-1"
				}) {
					t.Errorf("this hub's token of %s is valid still", account)
				}
			}
			said := out.String()
			if tc.kept == "" && !tc.live != strings.Contains(said, removed) || tc.kept != "" &&
				(strings.Contains(said, removed) || !strings.Contains(said, "the account karmada-old is kept, because it has ") ||
					!strings.Contains(said, tc.kept)) {
				t.Errorf("it says %s", said)
			}
			for what, is := range map[string][2]bool{
				"the account": {exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-old"), tc.kept != ""},
				"its role": {exists(t, member, &rbacv1.ClusterRole{}, "", "karmada-controller-manager:karmada-old"),
					tc.kept != ""},
				"the account of the other hub's name": {exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster",
					"karmada-new"), tc.joined == "new"},
				"the impersonator": {exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-impersonator"),
					tc.joined != "" || tc.kept != ""},
				"the other hub's Lease": {exists(t, member, &coordinationv1.Lease{}, "karmada-cluster", "argosy-hub"),
					tc.joined != ""},
			} {
				if is[0] != is[1] {
					t.Errorf("%s is there: %t, want %t", what, is[0], is[1])
				}
			}
		})
	}
}

// Whoever controls a member can write leftovers of any name there, and the member's identity.
func TestUnjoinKeepsTheClusterThatIsNotInTheKubeconfig(t *testing.T) {
	broken := fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	}).Build()
	for story, tc := range map[string]struct {
		id     string // recorded of prod
		member client.Client
		force  bool
		says   string
	}{
		"another identity":         {"id-prod", fakeMember("id-evil"), false, "is for another cluster"},
		"another identity, forced": {"id-prod", fakeMember("id-evil"), true, "is for another cluster"},
		"the identity of prod, at the address of another member": {"id-prod", fakeMember("id-prod"), false,
			`is for cluster "evil"`},
		"no recorded identity":                                {"", fakeMember("id-evil"), false, "is for another cluster"},
		"no recorded identity, forced":                        {"", fakeMember("id-evil"), true, "is for another cluster"},
		"no answer, forced, at the address of another member": {"id-prod", broken, true, `is for cluster "evil"`},
	} {
		t.Run(story, func(t *testing.T) {
			hub := clitest.FakeHub(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"},
				Spec: clusterv1alpha1.ClusterSpec{ID: tc.id, APIEndpoint: "https://prod", SyncMode: "Push"}},
				&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"},
					Spec: clusterv1alpha1.ClusterSpec{ID: "id-evil", APIEndpoint: "https://evil", SyncMode: "Push"}})
			for _, obj := range []client.Object{anchor("karmada-prod", "hub-1"), &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-prod"}}} {
				if err := tc.member.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			for _, dry := range []bool{true, false} {
				u, _ := unjoining("prod", hub, tc.member)
				u.host, u.force, u.dryRun = "https://evil", tc.force, dry
				err := u.run(t.Context())
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want a refusal with %q", err, tc.says)
				}
				if !exists(t, hub, &clusterv1alpha1.Cluster{}, "", "prod") {
					t.Fatal("the live cluster left the fleet")
				}
			}
		})
	}
	// Of the same address, and of an address that is new to the hub, it is the member.
	for _, tc := range []struct{ id, host string }{{"", "https://prod"}, {"id-prod", "https://prod-by-proxy"}} {
		hub := clitest.FakeHub(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"},
			Spec: clusterv1alpha1.ClusterSpec{ID: tc.id, APIEndpoint: "https://prod", SyncMode: "Push"}})
		u, _ := unjoining("prod", hub, fakeMember("id-prod"))
		u.host = tc.host
		if err := u.run(t.Context()); err != nil {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// An agent that unregister could not remove is removed later, if it is this hub's.
func TestUnregisterRemovesALeftoverAgentOfThisHubOnly(t *testing.T) {
	for story, tc := range map[string]struct{ agent, claimed, err string }{
		"of this hub":                     {agent: "old", claimed: "hub-1"},
		"of this hub, under another name": {agent: "other", claimed: "hub-1", err: `cluster "old" is not joined`},
		"of another hub":                  {agent: "old", claimed: "hub-2", err: `cluster "old" is not joined`},
		"of a hub that is unknown":        {agent: "old", err: `cluster "old" is not joined`},
		"none":                            {claimed: "hub-1", err: `cluster "old" is not joined`},
	} {
		t.Run(story, func(t *testing.T) {
			member := fakeMember("id-1")
			if tc.agent != "" {
				for _, obj := range (agent.Deployed{Cluster: tc.agent, Namespace: agent.DefaultNamespace, Image: "i"}).Manifests() {
					if err := member.Create(t.Context(), obj); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tc.claimed != "" {
				lease := &coordinationv1.Lease{}
				tenure.Stamp{Hub: tc.claimed}.Write(lease)
				if err := member.Create(t.Context(), lease); err != nil {
					t.Fatal(err)
				}
			}
			u, out := unjoining("old", hubWith("hub-1"), member)
			u.pull, u.agentNamespace = true, agent.DefaultNamespace
			err := u.run(t.Context())
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got %v, want %q; said %s", err, tc.err, out)
			}
			left := exists(t, member, &appsv1.Deployment{}, agent.DefaultNamespace, agent.Name)
			if left != (tc.agent != "" && tc.err != "") {
				t.Errorf("the agent is left: %t", left)
			}
		})
	}
}

func TestJoinAgainKeepsUserSettings(t *testing.T) {
	hub, member := clitest.FakeHub(), fakeMember("id-1")
	j, _ := joining("m1", hub, member)
	j.Region = "r"
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster, secret := &clusterv1alpha1.Cluster{}, &corev1.Secret{}
	exists(t, hub, cluster, "", "m1")
	cluster.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	if err := hub.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	exists(t, hub, secret, "karmada-cluster", "m1")
	secret.Data["token"] = []byte("expired")
	if err := hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	// One of the old kind, which never ends.
	endless := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-m1",
		Annotations: map[string]string{corev1.ServiceAccountNameKey: "karmada-m1"}},
		Type: corev1.SecretTypeServiceAccountToken}
	if err := member.Create(t.Context(), endless); err != nil {
		t.Fatal(err)
	}
	was := anchorsOf(t, member, "karmada-m1")

	again, out := joining("m1", hub, member)
	if err := again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "was joined before") ||
		!strings.Contains(out.String(), "cluster(m1) is joined successfully") {
		t.Errorf("said %q, want a notice and success", out)
	}
	if is := anchorsOf(t, member, "karmada-m1"); len(is) != 1 || is[0].UID == was[0].UID {
		t.Errorf("tokens go with %v, want one new Secret", is)
	}
	if exists(t, member, &corev1.Secret{}, "karmada-cluster", "karmada-m1") {
		t.Error("the token that never ends is good still")
	}
	exists(t, hub, cluster, "", "m1")
	exists(t, hub, secret, "karmada-cluster", "m1")
	if cluster.Spec.Region != "r" || len(cluster.Spec.Taints) != 1 ||
		string(secret.Data["token"]) != "token of karmada-m1" {
		t.Errorf("after joining again: region %q, taints %v, token %q", cluster.Spec.Region, cluster.Spec.Taints,
			secret.Data["token"])
	}
}

func TestJoinRefusesAmbiguousClusters(t *testing.T) {
	now := metav1.Now()
	existing := func(name, id string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode}}
	}
	leaving := existing("m1", "id-1", "Push")
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"karmada.io/cluster-controller"}
	for story, tc := range map[string]struct {
		member *clusterv1alpha1.Cluster
		says   []string
	}{
		"the cluster has another name already": {existing("first", "id-1", "Push"), []string{`"first"`, "id-1"}},
		"the name belongs to another cluster": {existing("m1", "id-2", "Push"),
			[]string{`"m1" belongs to another cluster`, "id-2"}},
		"the cluster is being removed": {leaving, []string{"being removed"}},
		"the cluster pulls":            {existing("m1", "id-1", "Pull"), []string{"Pull mode"}},
	} {
		t.Run(story, func(t *testing.T) {
			member := fakeMember("id-1")
			j, _ := joining("m1", clitest.FakeHub(tc.member), member)
			err := j.Run(t.Context())
			if err == nil {
				t.Fatal("it was joined")
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not say %q", err, text)
				}
			}
			if exists(t, member, &corev1.Namespace{}, "", "karmada-cluster") {
				t.Error("a refused join changed the member")
			}
		})
	}
}

func TestJoinRefusesTheHubItself(t *testing.T) {
	hub := clitest.FakeHub()
	j, _ := joining("m1", hub, hub)
	err := j.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--cluster-kubeconfig is for the hub itself") {
		t.Errorf("got %v, want a refusal that names --cluster-kubeconfig", err)
	}
	if exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1") || exists(t, hub, &corev1.Namespace{}, "", "karmada-cluster") {
		t.Error("a refused join changed the hub")
	}
}

func TestJoinChecksTheNameBeforeAnythingElse(t *testing.T) {
	for name, says := range map[string]string{
		strings.Repeat("a", 49): "must be no more than 48 characters",
		"Upper":                 "lower case",
		"dots.are.out":          "must not contain dots",
	} {
		if err := ValidName(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("name %q: %v, want %q", name, err, says)
		}
	}
}

func TestJoinInDryRunChangesNothing(t *testing.T) {
	hub, member := clitest.FakeHub(), fakeMember("id-1")
	j, _ := joining("m1", hub, member)
	j.dryRun = true
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, member, &corev1.Namespace{}, "", "karmada-cluster") ||
		exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1") {
		t.Error("a dry run changed something")
	}
}

func TestJoinNamesTheRemedyForAFailedMember(t *testing.T) {
	refusedDiscovery := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403,
		Reason: metav1.StatusReasonForbidden, Message: "unknown"}}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "id-1"}}
	build := fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(system)
	noTokens := build.WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object,
			...client.SubResourceCreateOption) error {
			return errors.New("no key to sign with")
		},
	}).Build()
	failing := func(err error) client.Client {
		return fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
		}).Build()
	}
	for story, tc := range map[string]struct {
		member client.Client
		says   []string
	}{
		"no tokens": {noTokens, []string{`cluster "m1"`,
			"request a token of the service account karmada-cluster/karmada-m1", "no key to sign with"}},
		"nobody listens": {failing(errors.New("connection refused")),
			[]string{`cluster "m1" at https://m1 is not responding`, "connection refused", "--cluster-kubeconfig"}},
		"a web server": {failing(apierrors.NewNotFound(corev1.Resource("namespaces"), "kube-system")),
			[]string{"responds, but not as a healthy cluster", "--cluster-context"}},
		"another CA": {failing(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
			[]string{`certificate of cluster "m1" at https://m1 is not trusted`, "certificate-authority-data"}},
		"refused user": {failing(apierrors.NewUnauthorized("Unauthorized")),
			[]string{"not authorized in cluster \"m1\"", "the credentials are missing or not valid"}},
		"no credentials": {failing(fmt.Errorf("failed to get server groups: %w", refusedDiscovery)),
			[]string{"not authorized in cluster \"m1\" at https://m1: the credentials are missing, or their user"}},
	} {
		t.Run(story, func(t *testing.T) {
			j, _ := joining("m1", clitest.FakeHub(), tc.member)
			err := j.Run(t.Context())
			if err == nil {
				t.Fatal("it was joined")
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not say %q", err, text)
				}
			}
		})
	}
}

func unjoining(name string, hub, member client.Client) (*unjoin, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &unjoin{name: name, namespace: "karmada-cluster", hub: hub, member: member, wait: 300 * time.Millisecond,
		yes: true, out: out,
		contents: func(context.Context, string) ([]execute.Content, error) { return nil, nil }}, out
}

func TestUnjoinDeletesTheObjectsOfJoin(t *testing.T) {
	hub, member := clitest.FakeHub(), fakeMember("id-1")
	j, _ := joining("m1", hub, member)
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	u, out := unjoining("m1", hub, member)
	if err := u.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "cluster(m1) is unjoined successfully") {
		t.Errorf("said %q", out)
	}
	for name, left := range map[string]bool{
		"cluster":             exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1"),
		"secret of the hub":   exists(t, hub, &corev1.Secret{}, "karmada-cluster", "m1"),
		"impersonator secret": exists(t, hub, &corev1.Secret{}, "karmada-cluster", "m1-impersonator"),
		"cluster role":        exists(t, member, &rbacv1.ClusterRole{}, "", "karmada-controller-manager:karmada-m1"),
		"role binding":        exists(t, member, &rbacv1.ClusterRoleBinding{}, "", "karmada-controller-manager:karmada-m1"),
		"service account":     exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-m1"),
		"impersonator":        exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-impersonator"),
		"member's namespace":  exists(t, member, &corev1.Namespace{}, "", "karmada-cluster"),
	} {
		if left {
			t.Errorf("the %s is left", name)
		}
	}
}

func TestUnjoinSparesAnotherHubsAccounts(t *testing.T) {
	member := fakeMember("id-1")
	first, second := clitest.FakeHub(), clitest.FakeHub()
	for name, hub := range map[string]client.Client{"m1": first, "other": second} {
		j, _ := joining(name, hub, member)
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	u, _ := unjoining("m1", first, member)
	if err := u.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", "karmada-m1") {
		t.Error("our account is left")
	}
	for _, name := range []string{"karmada-other", "karmada-impersonator"} {
		if !exists(t, member, &corev1.ServiceAccount{}, "karmada-cluster", name) {
			t.Errorf("the other hub lost its account %s", name)
		}
	}
}

func TestUnjoinKeepsAccountNamespaceWithOtherObjects(t *testing.T) {
	theirs := execute.Content{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Name: "theirs", UID: "1"}
	for story, tc := range map[string]struct {
		namespace string
		before    bool // it was there before the cluster joined
		holds     []execute.Content
		left      bool
	}{
		"the usual one":               {namespace: "karmada-cluster"},
		"one that joining made":       {namespace: "fleet"},
		"one with somebody's objects": {namespace: "karmada-cluster", holds: []execute.Content{theirs}, left: true},
		"somebody's, of another name": {namespace: "production", before: true, left: true},
		"one with what every cluster has": {namespace: "fleet",
			holds: []execute.Content{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: "kube-root-ca.crt", UID: "2"}}},
	} {
		t.Run(story, func(t *testing.T) {
			hub, member := clitest.FakeHub(), fakeMember("id-1")
			if tc.before {
				if err := member.Create(t.Context(),
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace, UID: "theirs"}}); err != nil {
					t.Fatal(err)
				}
			}
			j, _ := joining("m1", hub, member)
			j.Namespace = tc.namespace
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			u, out := unjoining("m1", hub, member)
			u.namespace = tc.namespace
			u.contents = func(context.Context, string) ([]execute.Content, error) { return tc.holds, nil }
			if err := u.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := exists(t, member, &corev1.Namespace{}, "", tc.namespace); left != tc.left ||
				left != strings.Contains(out.String(), "namespace "+tc.namespace+" stays") {
				t.Errorf("it is left: %v, want %v; said\n%s", left, tc.left, out)
			}
		})
	}
}

func TestUnjoinAsksBeforeAnythingIsDeleted(t *testing.T) {
	const claim = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"}}`
	for story, tc := range map[string]struct {
		on      func(*unjoin)
		says    []string
		silent  string // what it does not say
		err     string
		left    bool
		keeping bool
		// protected is true if the hub refuses to delete the cluster.
		protected bool
	}{
		"nobody answers": {says: []string{"deleted in cluster m1: 1 PersistentVolumeClaim\n",
			"PersistentVolumeClaim shop/data"}, err: "--yes", left: true},
		"a user says no": {on: func(u *unjoin) { u.answers = strings.NewReader("n\n") },
			says: []string{"[y/N]", "shop/data"}, err: "nothing was changed", left: true},
		"a user says nothing": {on: func(u *unjoin) { u.answers = strings.NewReader("") }, err: "nothing was changed",
			left: true},
		"a user says yes": {on: func(u *unjoin) { u.answers = strings.NewReader("Yes\n") },
			says: []string{"[y/N]", "unjoined successfully"}},
		"it is confirmed": {on: func(u *unjoin) { u.yes = true },
			says: []string{"shop/data", "unjoined successfully"}},
		"everything stays": {on: func(u *unjoin) { u.keep = true },
			says: []string{"kept in the cluster: 1 PersistentVolumeClaim", "unjoined successfully"}, keeping: true},
		"nothing is changed, dryly": {on: func(u *unjoin) { u.dryRun = true }, says: []string{"shop/data", "dry run"},
			left: true},
		"the hub protects the cluster": {on: func(u *unjoin) { u.answers = strings.NewReader("Yes\n") },
			protected: true, says: []string{"shop/data"}, silent: "[y/N]", err: "is protected", left: true},
		"the hub protects the cluster, dryly": {on: func(u *unjoin) { u.dryRun = true },
			protected: true, says: []string{"shop/data"}, silent: "can be unjoined", err: "is protected", left: true},
	} {
		t.Run(story, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u"},
				Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: "Push"},
				Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready",
					Status: metav1.ConditionTrue}}}}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "data"}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(claim)}}}
			kept := false
			hub := interceptor.NewClient(clitest.FakeHub(cluster, work).(client.WithWatch), interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
					now := &clusterv1alpha1.Cluster{}
					if _, is := obj.(*clusterv1alpha1.Cluster); is && c.Get(ctx, client.ObjectKeyFromObject(obj), now) == nil {
						kept = now.Annotations["argosy.io/keep-workloads"] == "true"
						if tc.protected {
							return errors.New("cluster m1 is protected")
						}
					}
					return c.Delete(ctx, obj, o...)
				}})
			u, out := unjoining("m1", hub, nil)
			if u.yes = false; tc.on != nil {
				tc.on(u)
			}
			if err := u.run(t.Context()); (err == nil) != (tc.err == "") || err != nil &&
				!strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			for _, say := range tc.says {
				if !strings.Contains(out.String(), say) {
					t.Errorf("it does not say %q:\n%s", say, out)
				}
			}
			if tc.silent != "" && strings.Contains(out.String(), tc.silent) {
				t.Errorf("it says %q:\n%s", tc.silent, out)
			}
			if left := exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1"); left != tc.left || kept != tc.keeping {
				t.Errorf("the cluster is left: %v, and was to keep its workloads: %v", left, kept)
			}
		})
	}
}

// left returns what an earlier unjoin without deletion left in a cluster.
func left(context.Context) ([]membercli.Orphan, error) {
	return []membercli.Orphan{{Cluster: "m1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			{Cluster: "m1", Kind: "Namespace", Name: "shop"}},
		errors.New("some kinds could not be listed")
}

func TestJoinCountsOrphansOfAnEarlierMembership(t *testing.T) {
	j, out := joining("m1", clitest.FakeHub(), fakeMember("id-1"))
	j.orphans = left
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = "cluster(m1) has 2 objects of this hub without a Work, such as Deployment shop/web: "
	if !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, out)
	}
}

func TestUnjoinNamesObjectsWithoutAWork(t *testing.T) {
	const want = "cluster(m1) keeps 2 objects of this hub without a Work, such as Deployment shop/web; `argosy orphans -C m1` lists them"
	for _, ready := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u"},
			Spec:   clusterv1alpha1.ClusterSpec{SyncMode: "Push"},
			Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: ready}}}}
		u, out := unjoining("m1", clitest.FakeHub(cluster), nil)
		u.orphans, u.dryRun = left, true
		if err := u.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(out.String(), want); said != (ready == metav1.ConditionTrue) {
			t.Errorf("of a cluster with Ready=%s it says:\n%s", ready, out)
		}
	}
}

func TestADeadClusterIsUnjoinedByForceAlone(t *testing.T) {
	for story, tc := range map[string]struct {
		on   func(*unjoin)
		dead bool // the hub has not seen it yet
		// reason is why it is not ready; empty for no answer.
		reason, err string
	}{
		"it is refused":                            {err: `cluster "m1" is not responding`},
		"also when it has died just now":           {dead: true, err: "--force"},
		"by force":                                 {on: func(u *unjoin) { u.force = true }},
		"when all stays there anyway":              {on: func(u *unjoin) { u.keep = true }},
		"called as karmadactl, like that":          {on: func(u *unjoin) { u.dead = true }},
		"that it is confirmed says nothing":        {on: func(u *unjoin) { u.yes = true }, err: "repair the cluster"},
		"it is another hub's, and is left to that": {reason: clusterv1alpha1.ReasonHeldByAnotherHub},
	} {
		t.Run(story, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u"},
				Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: "Push"},
				Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready",
					Status: metav1.ConditionFalse}}}}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
				`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}}`)}}}
			binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
				Spec: workv1alpha2.ResourceBindingSpec{
					Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
						ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}},
					Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 2}}}}
			if tc.dead {
				cluster.Status.Conditions[0].Status = metav1.ConditionTrue
			}
			if tc.reason != "" {
				cluster.Status.Conditions[0].Reason, cluster.Status.Conditions[0].Message = tc.reason, "hub b holds it"
			}
			hub := clitest.FakeHub(cluster, work, binding)
			u, out := unjoining("m1", hub, nil)
			u.yes = true
			u.probe = func(context.Context) error { return errors.New("no answer") }
			if tc.on != nil {
				tc.on(u)
			}
			err := u.run(t.Context())
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			for _, say := range []string{"kept in the cluster: 1 Deployment.apps", "nothing can be deleted there",
				"3 replicas of 1 workload may keep running there while they are placed in other clusters as well"} {
				if !strings.Contains(out.String(), say) {
					t.Errorf("it does not say %q:\n%s", say, out)
				}
			}
			if left := exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1"); left != (err != nil) {
				t.Errorf("the cluster is left: %v", left)
			} else if !left && !strings.Contains(out.String(), "argosy orphans") {
				t.Errorf("what to do later is not said:\n%s", out)
			}
		})
	}
}

func TestUnjoinReportsItsWaitAndForceDoesNotWait(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u", Finalizers: []string{"karmada.io/cluster-controller"}},
		Spec:       clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: "Push"},
	}
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-deployment"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}},
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web",
		Finalizers: []string{"karmada.io/execution-controller"}}}
	hub := clitest.FakeHub(cluster, binding, work)
	u, _ := unjoining("m1", hub, nil)
	err := u.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ResourceBinding default/web-deployment still target it") ||
		!strings.Contains(err.Error(), "--force") {
		t.Fatalf("got %v, want what holds the cluster and what to do", err)
	}
	u.force = true
	if err := u.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, hub, &clusterv1alpha1.Cluster{}, "", "m1") || exists(t, hub, work, "karmada-es-m1", "web") {
		t.Error("by force, the cluster or its Work is left")
	}
}

func TestUnjoinContinuesOnceTheHubResponds(t *testing.T) {
	for story, failures := range map[string]int{"after a while": 2, "not any more": 1000} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u"},
			Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: "Push"}}
		deleted, failed := false, 0
		down := func() error {
			if deleted && failed < failures {
				failed++
				return &url.Error{Op: "Get", URL: "https://hub", Err: syscall.ECONNREFUSED}
			}
			return nil
		}
		u, _ := unjoining("m1", interceptor.NewClient(clitest.FakeHub(cluster).(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
				deleted = true
				return c.Delete(ctx, obj, o...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				o ...client.GetOption) error {
				return cmp.Or(down(), c.Get(ctx, key, obj, o...))
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				return cmp.Or(down(), c.List(ctx, list, o...))
			},
		}), nil)
		err := u.run(t.Context())
		switch {
		case failures == 2 && (err != nil || failed != 2):
			t.Errorf("%s: got %v after %d failures", story, err, failed)
		case failures > 2 && (err == nil || !strings.Contains(err.Error(), "cannot be listed: connection refused")):
			t.Errorf("%s: got %v, want the cause", story, err)
		}
	}
}

func TestUnjoinShowsItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u",
			Finalizers: []string{"karmada.io/cluster-controller"}},
			Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: "Push"},
			Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
				Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}}}
		work := func(name string) *workv1alpha1.Work {
			w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: name}}
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q}}`, name)}}}
			return w
		}
		hub := clitest.FakeHub(cluster, work("a"), work("b")).(client.WithWatch)
		u, out := unjoining("m1", hub, nil)
		u.wait = time.Minute
		begun := time.Now()
		u.hub = interceptor.NewClient(hub, interceptor.Funcs{
			// Each second, the hub removes one more object.
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				o ...client.GetOption) error {
				switch since := time.Since(begun); {
				case since >= 4*time.Second:
					left := &clusterv1alpha1.Cluster{}
					if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), left); err == nil {
						left.Finalizers = nil
						_ = c.Update(ctx, left)
					}
				case since >= 2*time.Second:
					_ = c.Delete(ctx, work("b"))
				case since >= time.Second:
					_ = c.Delete(ctx, work("a"))
				}
				return c.Get(ctx, key, obj, o...)
			},
		})
		if err := u.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"cluster(m1) is being removed\n", "1 of 2 objects removed\n",
			"removing its namespace karmada-es-m1 from the hub", "unjoined successfully"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q:\n%s", want, out)
			}
		}
	})
}

func TestUnjoinRefusesBeforeItChangesAnything(t *testing.T) {
	member := func(mode clusterv1alpha1.ClusterSyncMode) client.Client {
		return clitest.FakeHub(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"},
			Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: mode}})
	}
	dead := fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	}).Build()
	for story, tc := range map[string]struct {
		hub, member client.Client
		says        string
	}{
		"nobody of that name":         {clitest.FakeHub(), nil, `cluster "m1" is not joined`},
		"a cluster that pulls":        {member("Pull"), nil, "Pull mode"},
		"a kubeconfig of another one": {member("Push"), fakeMember("id-2"), "is for another cluster"},
		"a dead member":               {member("Push"), dead, "--force removes it"},
	} {
		t.Run(story, func(t *testing.T) {
			u, _ := unjoining("m1", tc.hub, tc.member)
			if err := u.run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			var left clusterv1alpha1.ClusterList
			if err := tc.hub.List(t.Context(), &left); err != nil || story != "nobody of that name" && len(left.Items) != 1 {
				t.Errorf("the hub now has %d clusters (%v)", len(left.Items), err)
			}
		})
	}
}

func TestTheHubIsFoundInOrder(t *testing.T) {
	write := func(dir, server string) string {
		return clitest.WriteFile(t, dir, "kubeconfig", clitest.KubeconfigOf(server))
	}
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("KUBECONFIG", "")
	host := func(h hubcli.HubFlags) (string, error) {
		c, err := h.Locate()
		if err != nil {
			return "", err
		}
		return c.Host, nil
	}
	if _, err := host(hubcli.HubFlags{}); !errors.Is(err, hubcli.ErrNoHub) {
		t.Errorf("without any hub: %v, want what to do", err)
	}
	clitest.WriteFile(t, data+"/argosy", "admin.kubeconfig", clitest.KubeconfigOf("https://here"))
	if got, err := host(hubcli.HubFlags{}); got != "https://here" {
		t.Errorf("found %q (%v), want the hub that was started here", got, err)
	}
	t.Setenv("KUBECONFIG", write(t.TempDir(), "https://env"))
	if got, err := host(hubcli.HubFlags{}); got != "https://env" {
		t.Errorf("found %q (%v), want that of KUBECONFIG", got, err)
	}
	flag := write(t.TempDir(), "https://flag")
	if got, err := host(hubcli.HubFlags{Kubeconfig: flag, Context: "two"}); got != "https://flag" {
		t.Errorf("found %q (%v), want that of --kubeconfig", got, err)
	}
	if _, err := host(hubcli.HubFlags{Kubeconfig: flag, Context: "nope"}); err == nil ||
		!strings.Contains(err.Error(), "nope") {
		t.Errorf("a context that is not there: %v", err)
	}
	if _, err := host(hubcli.HubFlags{Kubeconfig: "/nowhere/kubeconfig"}); err == nil ||
		!strings.Contains(err.Error(), "/nowhere/kubeconfig") {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}
