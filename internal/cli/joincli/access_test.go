package joincli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	kind := membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Plural: "clusterroles"}
	role := func(name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, TypeMeta: metav1.TypeMeta{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}}
	}
	members := map[string]*membertest.Server{}
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
	return granting{addons{client: clitest.FakeHub(objects...), out: out}, config, errOut}, out, errOut
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
	b := &workv1alpha2.ClusterResourceBinding{}
	b.Name = names.Binding("EnclosedManifest", g.Name())
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: releasev1alpha1.GroupVersion.String(),
		Kind: "EnclosedManifest", Name: g.Name()}
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
