package joincli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/grant"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// fleetOfGrants is a hub with the clusters eu of env=prod and us of env=dev, which have the ClusterRole view; only eu
// has the role auditor.
func fleetOfGrants(t *testing.T) (a granting, out, errOut *bytes.Buffer) {
	t.Helper()
	a, out, errOut, _ = membersOfGrants(t)
	return a, out, errOut
}

func membersOfGrants(t *testing.T) (a granting, out, errOut *bytes.Buffer, members map[string]*membertest.Server) {
	t.Helper()
	kind := membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Plural: "clusterroles"}
	role := func(name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, TypeMeta: metav1.TypeMeta{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}}
	}
	members = map[string]*membertest.Server{}
	objects := []client.Object{role("view")}
	for name, env := range map[string]string{"eu": "prod", "us": "dev"} {
		members[name] = membertest.New(t, kind)
		members[name].Put(role("view"))
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"env": env}}})
	}
	members["eu"].Put(role("auditor"))
	s := clitest.See(t, members)
	config, err := clientcmd.BuildConfigFromFlags("", s.File)
	if err != nil {
		t.Fatal(err)
	}
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	return granting{addons{client: clitest.FakeHub(objects...), out: out}, config, errOut}, out, errOut, members
}

// bindingOf returns the binding that the hub makes of a grant.
func bindingOf(g grant.Grant) *workv1alpha2.ClusterResourceBinding {
	b := &workv1alpha2.ClusterResourceBinding{}
	b.Name = names.Binding("EnclosedManifest", g.Name())
	b.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "1"}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: releasev1alpha1.GroupVersion.String(),
		Kind: "EnclosedManifest", Name: g.Name()}
	return b
}

func grantOf(t *testing.T, group, role, namespace, selector string, clusters ...string) grant.Grant {
	t.Helper()
	g, err := grant.New(group, role, namespace, selector, clusters)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// written returns how many objects of grants the hub has.
func (a granting) written(t *testing.T) (n int) {
	t.Helper()
	for _, list := range []client.ObjectList{&releasev1alpha1.EnclosedManifestList{}, &rbacv1.ClusterRoleList{},
		&policyv1alpha1.ClusterPropagationPolicyList{}, &rbacv1.ClusterRoleBindingList{}} {
		if err := a.client.List(t.Context(), list, client.HasLabels{"argosy.io/access"}); err != nil {
			t.Fatal(err)
		}
		switch l := list.(type) {
		case *releasev1alpha1.EnclosedManifestList:
			n += len(l.Items)
		case *policyv1alpha1.ClusterPropagationPolicyList:
			n += len(l.Items)
		case *rbacv1.ClusterRoleList:
			n += len(l.Items)
		case *rbacv1.ClusterRoleBindingList:
			n += len(l.Items)
		}
	}
	return n
}

func TestGrantIsWrittenOnceListedAndRevoked(t *testing.T) {
	a, out, errOut := fleetOfGrants(t)
	g := grantOf(t, "devs", "view", "", "env=prod")
	for range 2 {
		if err := a.grant(t.Context(), g, false); err != nil {
			t.Fatal(err)
		}
	}
	if a.written(t) != 2 || out.String() != strings.Repeat(
		"granted role view in all namespaces to group \"devs\"\n", 2) {
		t.Errorf("%d objects, and %q", a.written(t), out)
	}
	if !strings.Contains(errOut.String(), "Warning: cluster eu: "+grant.NoProxy) {
		t.Errorf("it does not say what is missing: %q", errOut)
	}
	errOut.Reset()
	if err := a.grant(t.Context(), g, true); err != nil || errOut.Len() > 0 || a.written(t) != 4 {
		t.Errorf("with the right on the hub: %v, %d objects, %q", err, a.written(t), errOut)
	}
	b := bindingOf(g)
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "eu",
		AppliedMessage: "the hub may not grant rights in cluster eu"}}
	if err := a.client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := a.grant(t.Context(), grantOf(t, "devs", "auditor", "shop", "", "eu", "us"), false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errOut.String(), "Warning: cluster us: it has no ClusterRole auditor") {
		t.Errorf("it does not say which cluster lacks the role: %q", errOut)
	}
	all, err := a.states(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := a.print(all); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"GROUP ROLE NAMESPACE CLUSTERS APPLIED IN MISSING",
		"devs auditor shop eu,us <none> eu: it is not applied yet; us: it is not applied yet, it has no",
		"devs view <all> env=prod <none> eu: the hub may not grant rights in cluster eu"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	if err := a.client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		g       grant.Grant
		left    int
		refused string
	}{
		{grantOf(t, "devs", "view", "shop", "env=prod"), 6, `group "devs" was not granted role view in namespace shop`},
		{grantOf(t, "devs", "view", "", "env=dev"), 6, "was not granted"},
		{grantOf(t, "others", "view", "", "env=prod"), 6, "was not granted"},
		{grantOf(t, "devs", "auditor", "shop", ""), 4, ""},
		{g, 0, ""},
		{g, 0, "`argosy access list` shows all grants"},
	} {
		err := a.revoke(t.Context(), c.g, time.Second)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) ||
			a.written(t) != c.left {
			t.Errorf("revoke %+v: %v, and %d objects are left, want %d", c.g, err, a.written(t), c.left)
		}
	}
}

func TestGrantThatCannotWorkIsRefusedOrWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		g             grant.Grant
		refused, warn string
	}{
		"a role that is nowhere": {g: grantOf(t, "devs", "viewer", "", "env=prod"),
			refused: `there is no ClusterRole "viewer", neither on the hub nor in the clusters`},
		"a role and no cluster": {g: grantOf(t, "devs", "viewer", "", "env=none"), refused: "neither on the hub"},
		"a cluster that is none": {g: grantOf(t, "devs", "view", "", "", "eu", "mars"),
			refused: `cluster "mars" is not joined`},
		"no clusters": {g: grantOf(t, "devs", "view", "", ""), refused: "select clusters by label with --clusters"},
		"no cluster yet": {g: grantOf(t, "devs", "view", "", "env=none"),
			warn: "Warning: no cluster has env=none: the grant applies to clusters that get it later"},
		"a role of the clusters": {g: grantOf(t, "devs", "auditor", "", "env=prod"), warn: grant.NoProxy},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, errOut := fleetOfGrants(t)
			err := a.grant(t.Context(), c.g, false)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, want %q", err, c.refused)
			}
			if !strings.Contains(errOut.String(), c.warn) {
				t.Errorf("warned %q, want %q", errOut, c.warn)
			}
			if n := a.written(t); (n == 2) != (err == nil) {
				t.Errorf("%d objects were written", n)
			}
		})
	}
}

// Whoever made the policy preserve the binding does not keep the right in clusters.
func TestRevokedGrantIsNotPreservedInClusters(t *testing.T) {
	a, _, _ := fleetOfGrants(t)
	g := grantOf(t, "devs", "view", "", "env=prod")
	update := func(set func(p *policyv1alpha1.ClusterPropagationPolicy)) *policyv1alpha1.ClusterPropagationPolicy {
		t.Helper()
		p := &policyv1alpha1.ClusterPropagationPolicy{}
		if err := a.client.Get(t.Context(), client.ObjectKey{Name: g.Name()}, p); err != nil {
			t.Fatal(err)
		}
		set(p)
		if err := a.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	preserve := func(p *policyv1alpha1.ClusterPropagationPolicy) { p.Spec.PreserveResourcesOnDeletion = new(true) }
	read := func(p *policyv1alpha1.ClusterPropagationPolicy) {}
	if err := a.grant(t.Context(), g, false); err != nil {
		t.Fatal(err)
	}
	update(preserve)
	if err := a.grant(t.Context(), g, false); err != nil || update(read).Spec.PreserveResourcesOnDeletion != nil {
		t.Errorf("%v; granted again, it is still preserved", err)
	}
	update(preserve)
	if err := a.revoke(t.Context(), g, time.Second/2); err == nil || a.written(t) != 2 ||
		!strings.Contains(err.Error(), "the group keeps the role in clusters") ||
		!strings.Contains(err.Error(), "grant it again, which removes this setting") {
		t.Fatalf("%v, and %d objects are left", err, a.written(t))
	}
	if err := a.grant(t.Context(), g, false); err != nil {
		t.Fatal(err)
	}
	if err := a.revoke(t.Context(), g, time.Second/2); err != nil || a.written(t) != 0 {
		t.Errorf("%v, and %d objects are left", err, a.written(t))
	}
}

func TestChangedGrantIsRevokedAndWhatIsLeftOfOneIsNamed(t *testing.T) {
	for story, c := range map[string]struct {
		change func(a granting, m *releasev1alpha1.EnclosedManifest) error
		warn   string
		anyOf  bool // a revocation without clusters finds it
	}{
		"another manifest": {change: func(a granting, m *releasev1alpha1.EnclosedManifest) error {
			m.Spec.Manifest.Raw = bytes.ReplaceAll(m.Spec.Manifest.Raw, []byte("devs"), []byte("eve"))
			return a.client.Update(t.Context(), m)
		}, warn: "someone has changed it: grant again as before, or revoke the grant", anyOf: true},
		"no annotation": {change: func(a granting, m *releasev1alpha1.EnclosedManifest) error {
			m.Annotations = nil
			return a.client.Update(t.Context(), m)
		}, warn: "someone has changed it: grant again as before, or revoke the grant"},
		"no template": {change: func(a granting, m *releasev1alpha1.EnclosedManifest) error {
			return a.client.Delete(t.Context(), m)
		}, warn: "Warning: the ClusterRoleBinding argosy-access-"},
	} {
		for _, clusters := range []bool{true, false} {
			a, _, errOut := fleetOfGrants(t)
			g := grantOf(t, "devs", "view", "", "env=prod")
			if err := a.grant(t.Context(), g, true); err != nil {
				t.Fatal(err)
			}
			m := &releasev1alpha1.EnclosedManifest{}
			if err := a.client.Get(t.Context(), client.ObjectKey{Name: g.Name()}, m); err != nil {
				t.Fatal(err)
			}
			if err := c.change(a, m); err != nil {
				t.Fatal(err)
			}
			if all, err := a.states(t.Context()); err != nil || len(all) > 0 || !strings.Contains(errOut.String(), c.warn) {
				t.Errorf("%s: %v, %v, %q", story, all, err, errOut)
			}
			if !clusters {
				g = grantOf(t, "devs", "view", "", "")
			}
			err := a.revoke(t.Context(), g, time.Second)
			if found := clusters || c.anyOf; (err == nil) != found || (a.written(t) == 0) != found {
				t.Errorf("%s: %v, and %d objects are left", story, err, a.written(t))
			}
		}
	}
}

// The right to the proxies ends with the selection, and list says so before.
func TestProxiesOfClustersThatAreNoLongerSelectedEnd(t *testing.T) {
	a, out, errOut := fleetOfGrants(t)
	g, other := grantOf(t, "devs", "view", "", "env=prod"), grantOf(t, "devs", "view", "shop", "", "us")
	if err := errors.Join(a.grant(t.Context(), g, true), a.grant(t.Context(), other, false)); err != nil {
		t.Fatal(err)
	}
	eu := &clusterv1alpha1.Cluster{}
	if err := a.client.Get(t.Context(), client.ObjectKey{Name: "eu"}, eu); err != nil {
		t.Fatal(err)
	}
	eu.Labels = nil
	if err := a.client.Update(t.Context(), eu); err != nil {
		t.Fatal(err)
	}
	all, err := a.states(t.Context())
	if err != nil || len(all) != 2 || len(all[0].In) != 1 || all[0].In[0].Cluster != "eu" ||
		!slices.Equal(all[0].In[0].Missing, []string{grant.StillProxied}) {
		t.Errorf("%v: %+v", err, all)
	}
	if err := a.grant(t.Context(), g, true); err != nil || a.written(t) != 4 {
		t.Errorf("%v, and %d objects are left: %s", err, a.written(t), errOut)
	}
	// The revocation names other grants of the role.
	if err := a.revoke(t.Context(), g, time.Second); err != nil || !strings.HasSuffix(out.String(),
		"other grants still give it this role: in namespace shop of clusters us\n") {
		t.Errorf("%v: %q", err, out)
	}
}

// A cluster that refuses to tell is not taken for one that has the role, and others are not asked.
func TestOnlySelectedClustersAreAskedForTheRole(t *testing.T) {
	a, _, errOut, members := membersOfGrants(t)
	asked := atomic.Int32{}
	members["us"].Behave(func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false })
	members["eu"].Behave(func(w http.ResponseWriter, _ *http.Request) bool {
		status := apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "view", errors.New("no")).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(status)
		return true
	})
	if err := a.grant(t.Context(), grantOf(t, "devs", "view", "", "env=prod"), true); err != nil ||
		!strings.Contains(errOut.String(), "Warning: cluster eu: it is not known whether it has a ClusterRole view") {
		t.Errorf("%v: %q", err, errOut)
	}
	all, err := a.states(t.Context())
	if err != nil || len(all) != 1 || len(all[0].In) != 1 ||
		!strings.Contains(strings.Join(all[0].In[0].Missing, ", "), "not known whether") {
		t.Errorf("%v: %+v", err, all)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("a cluster that is not selected was asked %d times", n)
	}
}

// What the command cannot read afterwards, it reads before it writes.
func TestGrantWritesNothingIfItCannotReadWhatItReports(t *testing.T) {
	for _, refused := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		a, _, _ := fleetOfGrants(t)
		hub := a.client
		a.client = interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context,
			c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list) == reflect.TypeOf(refused) {
				return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "", errors.New("no"))
			}
			return c.List(ctx, list, opts...)
		}})
		err := a.grant(t.Context(), grantOf(t, "devs", "view", "", "env=prod"), true)
		if a.client = hub; !apierrors.IsForbidden(err) || a.written(t) > 0 {
			t.Errorf("%v, and %d objects were written", err, a.written(t))
		}
	}
}
