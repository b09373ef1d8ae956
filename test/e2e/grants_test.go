package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// A group reads in the clusters of a label, through the hub, until the grant is revoked. It has no right on the hub.
func TestGroupReadsInTheClustersOfALabelUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	label := func(cluster, value string) {
		fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", cluster, func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			if labels[ns] = value; value == "" {
				delete(labels, ns)
			}
			u.SetLabels(labels)
		})
	}
	label("m1", "yes")
	t.Cleanup(func() { label("m1", ""); label("m2", "") })
	kit.Eventually(t, "the namespace is in the member", func() string {
		if fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns) == nil {
			return "not yet"
		}
		return ""
	})

	dev := newPerson(t, "dev-"+ns, ns+"-devs")
	lists := func(member string) error {
		_, err := dev.throughProxy(member).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		return err
	}
	dev.shut("the proxy before the grant", lists("m1"))

	group := ns + "-devs"
	args := []string{"access", "grant", group, "--role", "view", "-n", ns, "--clusters", ns + "=yes"}
	if out := argosy(t, args...); !strings.Contains(out, "granted role view in namespace "+ns) ||
		!strings.Contains(out, "m1: no ClusterRole of the hub lets the group use clusters/proxy") {
		t.Errorf("grant says %q", out)
	}
	argosy(t, append(args, "--proxy")...)
	revokedAtEnd(t, group, ns)
	kit.Eventually(t, "the group lists in m1", func() string {
		if err := lists("m1"); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err := dev.throughProxy("m1").CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
	dev.shut("a creation in m1", err)
	dev.shut("the cluster without the label", lists("m2"))
	dev.shut("the namespace of the same name on the hub", dev.Get(t.Context(),
		client.ObjectKey{Namespace: ns, Name: "none"}, &corev1.ConfigMap{}))
	if local, all := bindingsOf(t, "RoleBinding", group), bindingsOf(t, "ClusterRoleBinding", group); len(local) > 0 ||
		len(all) != 1 || !strings.HasPrefix(all[0], "argosy-access-") {
		t.Errorf("the hub itself binds the group by %v and %v, want only the right to use the proxy", local, all)
	}
	if out := argosy(t, "access", "list"); !strings.Contains(out, group) || !strings.Contains(out, "m1") {
		t.Errorf("list says %q", out)
	}

	// A cluster that gets the label gets the binding.
	label("m2", "yes")
	kit.Eventually(t, "m2 has the binding, and list says what is missing there", func() string {
		if out := argosy(t, "access", "list"); !strings.Contains(out, "m1,m2") ||
			!strings.Contains(out, "m2: no ClusterRole of the hub lets the group use clusters/proxy") {
			return out
		}
		return ""
	})
	label("m2", "")

	if out := argosy(t, "access", "revoke", group, "--role", "view", "-n", ns, "--clusters",
		ns+"=yes"); !strings.Contains(out, "revoked role view") {
		t.Errorf("revoke says %q", out)
	}
	kit.Eventually(t, "the group is refused again", func() string {
		if err := lists("m1"); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("got %v", err)
		}
		return ""
	})
	var left rbacv1.RoleBindingList
	if err := fleet.Members["m1"].List(t.Context(), &left, client.InNamespace(ns)); err != nil || len(left.Items) > 0 {
		t.Errorf("m1 keeps %v, %v", left.Items, err)
	}
	refused(t, []string{"was not granted role view", "argosy access list"}, "access", "revoke", group, "--role", "view",
		"-n", ns)
}

// revokedAtEnd takes the role view in a namespace from a group when the test ends, if it still has it.
func revokedAtEnd(t *testing.T, group, ns string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		_, _ = fleet.Argosy(ctx, "access", "revoke", group, "--role", "view", "-n", ns)
	})
}

// bindingsOf returns the names of the hub's bindings for a group.
func bindingsOf(t *testing.T, kind, group string) (found []string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := fleet.Hub.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, b := range list.Items {
		if strings.Contains(fmt.Sprint(b.Object["subjects"]), group) {
			found = append(found, b.GetName())
		}
	}
	return found
}

// Administrators of a namespace and operators get no role in a member by the command, nor by its objects.
func TestOnlyAdministratorsGrantRolesInClusters(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	group := ns + "-team"
	argosy(t, "access", "grant", group, "--role", "view", "-n", ns, "--cluster", "m1")
	name := ""
	var enclosed unstructured.UnstructuredList
	enclosed.SetAPIVersion("release.argosy.io/v1alpha1")
	enclosed.SetKind("EnclosedManifestList")
	if err := fleet.Hub.List(t.Context(), &enclosed, client.HasLabels{"argosy.io/access"}); err != nil {
		t.Fatal(err)
	}
	for _, e := range enclosed.Items {
		if strings.Contains(fmt.Sprint(e.Object["spec"]), group) {
			name = e.GetName()
		}
	}
	revokedAtEnd(t, group, ns)

	bind := func(kind, where, role, group string) {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {%s name: grants-%s-%s}, `+
			`roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "%s"}, `+
			`subjects: [{kind: Group, name: %s, apiGroup: rbac.authorization.k8s.io}]}`, kind, where, ns,
			strings.ReplaceAll(role, ":", "-"), role, group))
	}
	for _, role := range []string{"edit", "admin", "argosy:operator"} {
		who := ns + "-" + strings.ReplaceAll(role, ":", "-")
		kind, where := "RoleBinding", "namespace: "+ns+","
		if role == "argosy:operator" {
			kind, where = "ClusterRoleBinding", ""
		}
		bind(kind, where, role, who)
		p := newPerson(t, "user-"+who, who)
		kit.Eventually(t, "the hub knows the role "+role, func() string {
			err := p.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "none"},
				kit.Object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy}"))
			if !apierrors.IsNotFound(err) {
				return fmt.Sprint(err)
			}
			return ""
		})
		for _, args := range [][]string{{"grant", who, "--role", "view", "--cluster", "m1"},
			{"grant", who, "--role", "view", "-n", ns, "--cluster", "m1"},
			{"revoke", group, "--role", "view", "-n", ns}, {"list"}} {
			if out, err := p.argosy(append([]string{"access"}, args...)...); err == nil ||
				!strings.Contains(out, "you may not ") {
				t.Errorf("as %s, access %v: %v\n%s", role, args, err, out)
			}
		}
		p.shut("an enclosed binding", p.creates(fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest,
  metadata: {name: %s}, spec: {manifest: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}}}`, who)))
		selecting := "{resourceSelectors: [{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest, name: " + name +
			"}], placement: " + placedOn("m2") + "}"
		p.shut("a policy that sends the grant elsewhere", p.creates(propagation("", who, selecting)))
		if err := p.creates(propagation(ns, who, selecting)); err == nil {
			t.Errorf("as %s, a policy of the namespace sends the grant elsewhere", role)
		}
		p.shut("a binding of more than its author has", p.creates(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1,
  kind: RoleBinding, metadata: {namespace: %s, name: more}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
  subjects: [{kind: Group, name: %s, apiGroup: rbac.authorization.k8s.io}]}`, ns, who)))
		p.shut("a binding of the cluster scope", p.creates(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1,
  kind: ClusterRoleBinding, metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			who)))
	}
}

// The usual story works with the rights that the page lists. What they lack is named with the cluster and a remedy.
func TestHubWorksWithFewRightsInAMember(t *testing.T) {
	t.Parallel()
	m, member := startMember(t, "few1")
	joined(t, m, "--role", "minimal")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "all", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, "+
		"{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}, {apiVersion: v1, kind: LimitRange}], placement: "+
		placedOn("few1")+"}"))
	fleet.Hub.Apply(t, deployment(ns, "web", 2, "example.com/web:1"))
	fleet.Hub.Apply(t, configMap(ns, "settings", "1"))
	kit.Eventually(t, "the workload runs and reports", func() string { return placed(t, ns, "web-deployment", "few1") })
	kit.Eventually(t, "its status is on the hub", func() string {
		web := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
		if n := kit.Field(web, "status", "readyReplicas"); fmt.Sprint(n) != "2" {
			return fmt.Sprintf("%v replicas are ready", n)
		}
		return ""
	})
	if c := clusterOf(t, "few1"); c.Status.NodeSummary == nil || c.Status.NodeSummary.TotalNum != 2 {
		t.Errorf("the nodes are %+v", c.Status.NodeSummary)
	}

	const range1 = "{apiVersion: v1, kind: LimitRange, metadata: {namespace: NS, name: limits}, spec: {limits: [{type: Pod, max: {cpu: 1}}]}}"
	fleet.Hub.Apply(t, strings.ReplaceAll(range1, "NS", ns))
	lacks := " limitranges in namespace " + ns + " of cluster few1: `argosy join few1 --role full"
	kit.Eventually(t, "the binding names what is missing", func() string {
		b := binding(t, ns, "limits-limitrange")
		if b == nil || len(b.Status.AggregatedStatus) == 0 ||
			!strings.Contains(b.Status.AggregatedStatus[0].AppliedMessage, "the hub may not ") ||
			!strings.Contains(b.Status.AggregatedStatus[0].AppliedMessage, lacks) {
			return fmt.Sprint(b)
		}
		return ""
	})
	if out, _ := fleet.Argosy(t.Context(), "why", "limitrange", "limits", "-n", ns); !strings.Contains(out, lacks) {
		t.Errorf("why says %s", out)
	}

	// More rights, and fewer again: what runs stays.
	argosy(t, "join", "few1", "--cluster-kubeconfig", m.Kubeconfig, "--role", "full")
	kit.Eventually(t, "with the role full it is applied", func() string {
		if member.Find(t, "v1", "LimitRange", ns, "limits") == nil {
			return "not yet"
		}
		return ""
	})
	// With the role minimal, the hub could not delete it, or see that it is gone.
	fleet.Hub.Remove(t, "v1", "LimitRange", ns, "limits")
	kit.Eventually(t, "it is deleted, and the hub has seen that", func() string {
		if member.Find(t, "v1", "LimitRange", ns, "limits") != nil || binding(t, ns, "limits-limitrange") != nil {
			return "not yet"
		}
		return ""
	})
	argosy(t, "join", "few1", "--cluster-kubeconfig", m.Kubeconfig, "--role", "minimal")
	argosy(t, "join", "few1", "--cluster-kubeconfig", m.Kubeconfig)
	role := get(t, member, &rbacv1.ClusterRole{}, "", "karmada-controller-manager:karmada-few1")
	for _, r := range role.Rules {
		if strings.Contains(strings.Join(r.Verbs, " "), "*") {
			t.Errorf("joining again without a role gave %v", r)
		}
	}
	fleet.Hub.Apply(t, deployment(ns, "web", 3, "example.com/web:1"))
	kit.Eventually(t, "the hub still works there", func() string {
		if n := kit.Field(member.Find(t, "apps/v1", "Deployment", ns, "web"), "spec", "replicas"); fmt.Sprint(n) != "3" {
			return fmt.Sprintf("%v replicas", n)
		}
		return ""
	})
}
