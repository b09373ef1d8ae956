package pull

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Grants are the permissions of the agent of one cluster.
type Grants struct {
	ClusterRole        rbacv1.ClusterRole
	ClusterRoleBinding rbacv1.ClusterRoleBinding
	// Roles are in the namespace of the secrets of clusters, in the execution space, and in the namespace where agents of
	// Karmada elect a leader. RoleBindings have the same order.
	Roles        []rbacv1.Role
	RoleBindings []rbacv1.RoleBinding
}

// definitions are the definitions whose end an agent checks before it deletes an object in its cluster.
var definitions = []string{"works.work.karmada.io", "manifestworks.work.open-cluster-management.io",
	"federatedhpas.autoscaling.karmada.io", "multiclusterservices.networking.karmada.io",
	"serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io"}

const (
	agentSuffix  = ":agent"
	secretSuffix = ":agent-secret"
	workSuffix   = ":agent-work"
	leaderSuffix = ":agent-leader"
	rolePrefix   = "system:karmada:"
)

// GrantsOf returns the permissions of the agent of a cluster: its Cluster and Lease, and what is in its execution
// space. It may also read what all agents need: interpreter configurations and the identity of the hub. RBAC cannot
// limit the names of new objects; see Check.
func GrantsOf(cluster string) Grants {
	space := names.ExecutionSpace(cluster)
	g := Grants{
		ClusterRole: rbacv1.ClusterRole{ObjectMeta: grantMeta("", RoleOf(cluster)), Rules: []rbacv1.PolicyRule{
			named(rule("cluster.karmada.io", "clusters", "get", "list", "watch", "update"), cluster),
			rule("cluster.karmada.io", "clusters", "create"),
			named(rule("cluster.karmada.io", "clusters/status", "get", "update", "patch"), cluster),
			named(rule("cluster.karmada.io", "clusters/"+TunnelSubresource, "create"), cluster),
			rule("config.karmada.io", "resourceinterpretercustomizations", "get", "list", "watch"),
			rule("config.karmada.io", "resourceinterpreterwebhookconfigurations", "get", "list", "watch"),
			rule("certificates.k8s.io", "certificatesigningrequests", "create", "get"),
			named(rule("", "namespaces", "get"), metav1.NamespaceSystem, names.Clusters, space),
			named(rule("apiextensions.k8s.io", "customresourcedefinitions", "get"), definitions...),
		}},
		Roles: []rbacv1.Role{
			{ObjectMeta: grantMeta(names.Clusters, rolePrefix+cluster+secretSuffix), Rules: []rbacv1.PolicyRule{
				named(rule("", "secrets", "get", "update", "patch"), SecretsOf(cluster)...),
				rule("", "secrets", "create"),
				named(rule("coordination.k8s.io", "leases", "get", "update", "patch"), cluster),
				rule("coordination.k8s.io", "leases", "create"),
			}},
			{ObjectMeta: grantMeta(space, rolePrefix+cluster+workSuffix), Rules: []rbacv1.PolicyRule{
				rule("work.karmada.io", "works", "get", "list", "watch", "create", "update", "patch", "delete"),
				rule("work.karmada.io", "works/status", "get", "update", "patch"),
				rule("", "events", "create", "update", "patch"),
				rule("", "services", "list", "watch"),
			}},
			{ObjectMeta: grantMeta(names.System, rolePrefix+cluster+leaderSuffix), Rules: []rbacv1.PolicyRule{
				named(rule("coordination.k8s.io", "leases", "get", "update", "patch"), electionLease(cluster)),
				rule("coordination.k8s.io", "leases", "create"),
			}},
		},
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: User(cluster)}}
	g.ClusterRoleBinding = rbacv1.ClusterRoleBinding{ObjectMeta: *g.ClusterRole.ObjectMeta.DeepCopy(), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.ClusterRole.Name}}
	for _, role := range g.Roles {
		g.RoleBindings = append(g.RoleBindings, rbacv1.RoleBinding{ObjectMeta: *role.ObjectMeta.DeepCopy(),
			Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
	}
	return g
}

// TunnelGrantsOf returns the permissions of the agent of a cluster in which a klusterlet acts: the agent only connects
// the cluster for requests of the hub.
func TunnelGrantsOf(cluster string) Grants {
	g := GrantsOf(cluster)
	g.ClusterRole.Rules = []rbacv1.PolicyRule{
		named(rule("cluster.karmada.io", "clusters", "get"), cluster),
		named(rule("cluster.karmada.io", "clusters/"+TunnelSubresource, "create"), cluster),
		rule("certificates.k8s.io", "certificatesigningrequests", "create", "get"),
		named(rule("", "namespaces", "get"), metav1.NamespaceSystem),
	}
	g.Roles, g.RoleBindings = nil, nil
	return g
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}

// Object is a role or a binding.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects returns all roles and bindings.
func (g *Grants) Objects() []Object {
	return append([]Object{&g.ClusterRole, &g.ClusterRoleBinding}, g.InNamespaces()...)
}

// InNamespaces returns the roles and bindings in namespaces.
func (g *Grants) InNamespaces() (objects []Object) {
	for i := range g.Roles {
		objects = append(objects, &g.Roles[i], &g.RoleBindings[i])
	}
	return objects
}

func grantMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{workv1alpha2.SystemLabel: "true"}}
}

const impersonatorSuffix = "-impersonator"

// electionLease returns the name of the Lease in karmada-system by which replicas of Karmada's agent elect a leader.
func electionLease(cluster string) string { return "karmada-agent-" + cluster }

// SecretsOf returns the names of the Secrets in karmada-cluster with which the hub reaches a cluster.
func SecretsOf(cluster string) []string { return []string{cluster, cluster + impersonatorSuffix} }

// GrantedCluster returns the cluster of a role or binding of an agent by its name; ok is false for other names.
func GrantedCluster(role string) (cluster string, ok bool) {
	rest, ok := strings.CutPrefix(role, rolePrefix)
	if !ok {
		return "", false
	}
	for _, suffix := range []string{agentSuffix, secretSuffix, workSuffix, leaderSuffix} {
		if cluster, ok := strings.CutSuffix(rest, suffix); ok {
			return cluster, validName(cluster)
		}
	}
	return "", false
}

// Static are the permissions that do not depend on a cluster.
type Static struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
}

// StaticGrants returns the permissions of bootstrap tokens, of the registrar and of all agents. restoreMark is the
// ConfigMap that exists after a restore from a backup until a user accepts it.
func StaticGrants(restoreMark string) Static {
	const bootstrap, registration = "argosy:agent-bootstrap", "argosy:agent-registration"
	const info, agents = "argosy:cluster-info", "argosy:agents"
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name,
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}}
	}
	subject := func(kind, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}}
	}
	clusterRole := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	}
	readOne := func(configMap string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{named(rule("", "configmaps", "get"), configMap)}
	}
	return Static{
		ClusterRoles: []rbacv1.ClusterRole{
			{ObjectMeta: meta("", bootstrap), Rules: []rbacv1.PolicyRule{
				rule("certificates.k8s.io", "certificatesigningrequests", "create", "get")}},
			// Admission replaces what the registrar writes with GrantsOf.
			{ObjectMeta: meta("", registration), Rules: []rbacv1.PolicyRule{
				rule("cluster.karmada.io", "clusters", "get"),
				rule("", "namespaces", "create"),
				rule(rbacv1.GroupName, "clusterroles", "create", "bind", "escalate"),
				rule(rbacv1.GroupName, "roles", "create", "bind", "escalate"),
				rule(rbacv1.GroupName, "clusterrolebindings", "create"),
				rule(rbacv1.GroupName, "rolebindings", "create")}},
		},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{
			{ObjectMeta: meta("", bootstrap), RoleRef: clusterRole(bootstrap), Subjects: subject(rbacv1.GroupKind, TokenGroup)},
			{ObjectMeta: meta("", registration), RoleRef: clusterRole(registration),
				Subjects: subject(rbacv1.UserKind, Registrar)},
		},
		Roles: []rbacv1.Role{
			{ObjectMeta: meta(metav1.NamespacePublic, info), Rules: readOne(ClusterInfo)},
			{ObjectMeta: meta(names.System, agents), Rules: readOne(restoreMark)},
		},
		RoleBindings: []rbacv1.RoleBinding{
			{ObjectMeta: meta(metav1.NamespacePublic, info), RoleRef: role(info),
				Subjects: subject(rbacv1.UserKind, "system:anonymous")},
			{ObjectMeta: meta(names.System, agents), RoleRef: role(agents), Subjects: subject(rbacv1.GroupKind, Group)},
		},
	}
}

// ClusterInfo is the ConfigMap in kube-public with the hub's certificate authorities, which a bootstrap token signs.
const ClusterInfo = "cluster-info"
