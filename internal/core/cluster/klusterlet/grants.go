package klusterlet

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Grants are the namespace of a cluster and the permissions of its klusterlet.
type Grants struct {
	Namespace          *corev1.Namespace
	ClusterRole        *rbacv1.ClusterRole
	ClusterRoleBinding *rbacv1.ClusterRoleBinding
	// Registration and Work bind SharedRoles in the namespace of the cluster; nil for a cluster that is not accepted. Work
	// has a finalizer, so that the klusterlet can delete its objects before its permissions end.
	Registration, Work *rbacv1.RoleBinding
}

const (
	// rolePrefix is the prefix of the ClusterRoles of klusterlets. The name of the cluster follows.
	rolePrefix = "open-cluster-management:managedcluster:"
	// registrationRole and workRole are SharedRoles.
	registrationRole = rolePrefix + "registration"
	workRole         = rolePrefix + "work"

	bootstrapRole = "open-cluster-management:bootstrap"
	// clusterInfo is the ConfigMap in kube-public with the address of the hub and its certificate authorities.
	clusterInfo = "cluster-info"
)

// roleOf returns the name of the ClusterRole of a cluster.
func roleOf(cluster string) string { return rolePrefix + cluster }

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// named limits a rule to one object.
func named(r rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	r.ResourceNames = []string{name}
	return r
}

func clusterRoleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// GrantsOf returns the namespace of a cluster and the permissions of its klusterlet. If the cluster is not accepted,
// the klusterlet may only read its own ManagedCluster.
func GrantsOf(cluster string, accepted bool) Grants {
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster}
	rules := []rbacv1.PolicyRule{named(rule(clusterv1.GroupVersion.Group, "managedclusters", "get", "list", "watch"),
		cluster)}
	if accepted {
		rules = []rbacv1.PolicyRule{
			rule(certificatesv1.GroupName, "certificatesigningrequests", "create", "get", "list", "watch"),
			rule(RegisterGroup, "managedclusters/clientcertificates", "renew"),
			named(rule(clusterv1.GroupVersion.Group, "managedclusters", "get", "list", "update", "watch"), cluster),
			named(rule(clusterv1.GroupVersion.Group, "managedclusters/status", "patch", "update"), cluster),
		}
	}
	// Open Cluster Management grants the same to a group without system:, which an identity provider may have.
	subjects := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: GroupOf(cluster)}}
	meta := metav1.ObjectMeta{Name: roleOf(cluster), Labels: labels}
	g := Grants{
		Namespace:   NamespaceOf(cluster),
		ClusterRole: &rbacv1.ClusterRole{ObjectMeta: *meta.DeepCopy(), Rules: rules},
		ClusterRoleBinding: &rbacv1.ClusterRoleBinding{ObjectMeta: *meta.DeepCopy(), Subjects: subjects,
			RoleRef: clusterRoleRef(meta.Name)},
	}
	g.Namespace.Labels[clusterv1.ClusterNameLabel] = cluster
	if !accepted {
		return g
	}
	binding := func(suffix, role string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(), Subjects: subjects, RoleRef: clusterRoleRef(role)}
		b.Namespace, b.Name = cluster, roleOf(cluster)+suffix
		return b
	}
	g.Registration, g.Work = binding(":registration", registrationRole), binding(":work", workRole)
	g.Work.Finalizers = []string{ocmv1.ManifestWorkFinalizer}
	return g
}

// NamespaceOf returns a namespace for objects of the hub, such as the ManifestWorks of a cluster. It is not propagated
// to members.
func NamespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}}}
}

// SharedRoles returns the ClusterRoles that accepted klusterlets have in the namespaces of their clusters.
func SharedRoles() []rbacv1.ClusterRole {
	const addons, works = "managedclusteraddons", "manifestworks"
	role := func(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{Rules: rules,
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: ""}}}
	}
	return []rbacv1.ClusterRole{
		role(registrationRole,
			rule(coordinationv1.GroupName, "leases", "get", "list", "watch", "update"),
			rule(addonv1alpha1.GroupVersion.Group, addons, "get", "list", "watch"),
			rule(addonv1alpha1.GroupVersion.Group, addons+"/status", "patch", "update"),
			rule(eventsv1.GroupName, "events", "create")),
		role(workRole,
			rule(corev1.GroupName, "events", "create", "patch", "update"),
			rule(eventsv1.GroupName, "events", "create", "patch", "update"),
			rule(ocmv1.GroupVersion.Group, works, "get", "list", "watch", "update", "patch"),
			rule(ocmv1.GroupVersion.Group, works+"/status", "patch", "update")),
	}
}

// Static are the objects that klusterlets need before their clusters are accepted.
type Static struct {
	// Namespaces are those of the service account, and one that tools expect.
	Namespaces          []corev1.Namespace
	ServiceAccount      corev1.ServiceAccount
	ClusterRole         rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// StaticGrants returns the permissions of bootstrap tokens and of the bootstrap account. RBAC cannot limit the names of
// new ManagedClusters. A cluster joins the set default before it is accepted, and other sets need an administrator.
func StaticGrants() Static {
	meta := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: bootstrapRole + suffix,
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}}
	}
	group := clusterv1.GroupVersion.Group
	return Static{
		Namespaces:     []corev1.Namespace{*NamespaceOf(Agents), *NamespaceOf(hubNamespace)},
		ServiceAccount: corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Agents, Name: BootstrapAccount}},
		ClusterRole: rbacv1.ClusterRole{ObjectMeta: meta(""), Rules: []rbacv1.PolicyRule{
			named(rule(corev1.GroupName, "configmaps", "get"), clusterInfo),
			rule(certificatesv1.GroupName, "certificatesigningrequests", "create", "get", "list", "watch"),
			rule(group, "managedclusters", "get", "create", "list", "watch"),
			named(rule(group, "managedclustersets/join", "create"), clusterv1.DefaultSet),
		}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{
			{ObjectMeta: meta(":managedcluster"), RoleRef: clusterRoleRef(bootstrapRole), Subjects: []rbacv1.Subject{
				{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: TokenGroup}}},
			{ObjectMeta: meta(":agent-registration"), RoleRef: clusterRoleRef(bootstrapRole), Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Namespace: Agents, Name: BootstrapAccount}}},
		},
	}
}
