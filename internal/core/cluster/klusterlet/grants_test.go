package klusterlet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// written returns rules as "verbs group/resource", with the object they are limited to.
func written(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		text := fmt.Sprintf("%s %s/%s", strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","),
			strings.Join(r.Resources, ","))
		if len(r.ResourceNames) > 0 {
			text += " of " + strings.Join(r.ResourceNames, ",")
		}
		all = append(all, strings.ReplaceAll(text, "open-cluster-management.io", "ocm"))
	}
	return all
}

func wantRules(t *testing.T, role rbacv1.ClusterRole, want ...string) {
	t.Helper()
	if got := written(role.Rules); !slices.Equal(got, want) {
		t.Errorf("%s has the rules\n%s\nwant\n%s", role.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAcceptedKlusterletsHaveTheirPermissions(t *testing.T) {
	g := GrantsOf("eu", true)
	wantRules(t, *g.ClusterRole,
		"create,get,list,watch certificates.k8s.io/certificatesigningrequests",
		"renew register.ocm/managedclusters/clientcertificates",
		"get,list,update,watch cluster.ocm/managedclusters of eu",
		"patch,update cluster.ocm/managedclusters/status of eu")
	const role = "open-cluster-management:managedcluster:"
	for what, tc := range map[string]struct {
		name, namespace string
		ref             rbacv1.RoleRef
		subjects        []rbacv1.Subject
		labels          map[string]string
		finalizers      []string
		want            string
	}{
		"cluster": {g.ClusterRoleBinding.Name, g.ClusterRoleBinding.Namespace, g.ClusterRoleBinding.RoleRef,
			g.ClusterRoleBinding.Subjects, g.ClusterRoleBinding.Labels, g.ClusterRoleBinding.Finalizers,
			"/" + role + "eu to ClusterRole " + role + "eu []"},
		"registration": {g.Registration.Name, g.Registration.Namespace, g.Registration.RoleRef, g.Registration.Subjects,
			g.Registration.Labels, g.Registration.Finalizers,
			"eu/" + role + "eu:registration to ClusterRole " + role + "registration []"},
		"work": {g.Work.Name, g.Work.Namespace, g.Work.RoleRef, g.Work.Subjects, g.Work.Labels, g.Work.Finalizers,
			"eu/" + role + "eu:work to ClusterRole " + role +
				"work [cluster.open-cluster-management.io/manifest-work-cleanup]"},
	} {
		got := fmt.Sprintf("%s/%s to %s %s %v", tc.namespace, tc.name, tc.ref.Kind, tc.ref.Name, tc.finalizers)
		if got != tc.want {
			t.Errorf("the binding %s is %s, want %s", what, got, tc.want)
		}
		if len(tc.subjects) != 1 || tc.subjects[0].Name != "system:open-cluster-management:eu" ||
			tc.subjects[0].Kind != rbacv1.GroupKind {
			t.Errorf("the binding %s has the subjects %v", what, tc.subjects)
		}
		if tc.labels[clusterv1.ClusterNameLabel] != "eu" {
			t.Errorf("the binding %s has the labels %v", what, tc.labels)
		}
	}
	if l := g.Namespace.Labels; g.Namespace.Name != "eu" || l[clusterv1.ClusterNameLabel] != "eu" ||
		l[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "true" {
		t.Errorf("the namespace is %s with the labels %v", g.Namespace.Name, l)
	}
	g.ClusterRole.Labels["a"] = "b"
	if g.ClusterRoleBinding.Labels["a"] != "" || g.Work.Labels["a"] != "" {
		t.Error("the objects share their labels")
	}
}

func TestDeniedKlusterletsReadOnlyTheirCluster(t *testing.T) {
	g := GrantsOf("eu", false)
	wantRules(t, *g.ClusterRole, "get,list,watch cluster.ocm/managedclusters of eu")
	if g.Registration != nil || g.Work != nil || g.ClusterRoleBinding == nil || g.Namespace == nil {
		t.Errorf("the grants are %+v", g)
	}
}

func TestSharedRolesCoverTheNamespaceOfACluster(t *testing.T) {
	roles := SharedRoles()
	wantRules(t, roles[0],
		"get,list,watch,update coordination.k8s.io/leases",
		"get,list,watch addon.ocm/managedclusteraddons",
		"patch,update addon.ocm/managedclusteraddons/status",
		"create events.k8s.io/events")
	wantRules(t, roles[1],
		"create,patch,update /events",
		"create,patch,update events.k8s.io/events",
		"get,list,watch,update,patch work.ocm/manifestworks",
		"patch,update work.ocm/manifestworks/status")
	g := GrantsOf("eu", true)
	for i, binding := range []*rbacv1.RoleBinding{g.Registration, g.Work} {
		label, has := roles[i].Labels[clusterv1.ClusterNameLabel]
		if binding.RoleRef.Name != roles[i].Name || !has || label != "" {
			t.Errorf("role %s with the labels %v, binding of %s", roles[i].Name, roles[i].Labels, binding.RoleRef.Name)
		}
	}
}

func TestBootstrapCredentialsRegisterAndNothingElse(t *testing.T) {
	s := StaticGrants()
	wantRules(t, s.ClusterRole,
		"get /configmaps of cluster-info",
		"create,get,list,watch certificates.k8s.io/certificatesigningrequests",
		"get,create,list,watch cluster.ocm/managedclusters",
		"create cluster.ocm/managedclustersets/join of default")
	var got []string
	for _, b := range s.ClusterRoleBindings {
		subject := b.Subjects[0]
		got = append(got, fmt.Sprintf("%s: %s to %s %s/%s", b.Name, b.RoleRef.Name, subject.Kind, subject.Namespace,
			subject.Name))
	}
	want := []string{
		"open-cluster-management:bootstrap:managedcluster: open-cluster-management:bootstrap to " +
			"Group /system:bootstrappers:managedcluster",
		"open-cluster-management:bootstrap:agent-registration: open-cluster-management:bootstrap to " +
			"ServiceAccount open-cluster-management/agent-registration-bootstrap",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the bindings are %q, want %q", got, want)
	}
	if a := s.ServiceAccount; a.Namespace != Agents || a.Name != BootstrapAccount {
		t.Errorf("the account is %s/%s", a.Namespace, a.Name)
	}
	if len(s.Namespaces) != 2 || s.Namespaces[0].Name != Agents || s.Namespaces[1].Name != "open-cluster-management-hub" {
		t.Errorf("the namespaces are %v", s.Namespaces)
	}
	for _, ns := range s.Namespaces {
		if ns.Labels[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "true" {
			t.Errorf("namespace %s would be propagated to members", ns.Name)
		}
	}
}
