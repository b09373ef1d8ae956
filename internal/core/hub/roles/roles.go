// Package roles defines the hub's own ClusterRoles: one table with a line for each resource that the hub serves beyond
// those of Kubernetes. Administrators assign the roles with RoleBindings and ClusterRoleBindings.
package roles

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// The roles that the hub keeps. View, Edit and Admin are for a namespace, and part of Kubernetes' roles of these names.
// Fleet is what users of a namespace need beside it to see where their templates go. Operator is for who looks after
// the fleet. Both are part of nothing.
const (
	Fleet    = "argosy:fleet"
	View     = "argosy:view"
	Edit     = "argosy:edit"
	Admin    = "argosy:admin"
	Operator = "argosy:operator"
)

// Authenticated is the role, and its binding, with the addresses that every user may get. The hub checks what a user
// may see of them.
const Authenticated = "argosy:authenticated"

// aggregated are Kubernetes' roles that have what a role of ours has.
var aggregated = map[string][]string{View: {"view", "edit", "admin"}, Edit: {"edit", "admin"}, Admin: {"admin"}}

const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// level is a set of verbs on a resource.
type level int

const (
	nothing level = iota
	// reads also its status and scale.
	reads
	// creates is reads, and to create objects, not to change or delete them.
	creates
	// tends is reads, and to change and delete objects, not all of them in one request.
	tends
	// manages is tends, and to create objects.
	manages
	// writes is manages, all of them in one request, and scale. As in Kubernetes it is no right to status.
	writes
)

// levels are what users of the fleet, viewers, editors and administrators of a namespace, and operators may do.
type levels struct{ fleet, view, edit, admin, operator level }

var (
	// tenants: the users of a namespace write.
	tenants = levels{view: reads, edit: writes, admin: writes, operator: reads}
	// readers: everyone in a namespace reads.
	readers = levels{view: reads, edit: reads, admin: reads, operator: reads}
	// searchers: everyone searches. The answers depend on other rights.
	searchers = levels{fleet: reads, view: reads, edit: reads, admin: reads, operator: reads}
	// operators: they write what others read.
	operators = levels{view: reads, edit: reads, admin: reads, operator: manages}
)

// Decision is what each role may do with a resource. Admission has further requirements.
type Decision struct {
	// Group and Resource of the object; Resource is a subresource if the rights on it differ from those on the object.
	Group, Resource string
	// Status and Scale are the subresources that it has.
	Status, Scale bool
	levels
	// Own are additional verbs of a role. Admission checks them.
	Own map[string][]string
	// Why is the reason for the limits.
	Why string
}

const (
	whyTheHubs    = "only the hub writes it: write access would control what the hub sends to members"
	whyContent    = "it contains what is sent to members, including Secrets, and write access would make a user an administrator there"
	whyFleet      = "it affects every namespace, so only operators may write it"
	whyAllTenants = "it changes the workloads of every namespace, so only administrators may write it"
	whyOwn        = "the users of its namespace write it; operators only read it"
	whyApproval   = whyOwn + ". A separate right to approve would have no effect, because a user who can change a Rollout can remove its pauses"
	whyRelease    = "the users of its namespace write it; operators read, pause, abort and roll it back. The verb patch permits only what the other verbs permit"
	whyCheck      = "it makes the hub call an address of its author's choice, and send Secrets of its namespace there"
	whyApprovals  = "an approval cannot be changed, and deleting one withdraws the verdict of another user. Admission requires the verb approve on the release"
	whyGuards     = "it decides when every namespace may release, so only administrators may write it"
	whyQuotas     = "it limits the users of its namespace, so only administrators may write it"
	whyMetrics    = "each member answers with what the user may read there, which also needs clusters/proxy; it is read-only"
	whySearch     = "it shows objects of clusters of which the user may use clusters/proxy, as far as the cluster permits the " +
		"user to read them"
	whyBound = "it lets Placements of its namespace select the clusters of a set. Admission also requires the right to bind " +
		"that set"
	whyProfiles = "only the hub writes it: programs send their credentials to the address in it"
	whyAddons   = "its namespace is that of a cluster, so only operators may write it"
	whyInstalls = "it decides what is installed in members, so write access would make a user an administrator there"
	whyCopies   = "it contains the data of the Secret that it copies to namespaces"
)

// ContainsSecrets reports whether objects of the kind contain Secrets or their content.
func (d Decision) ContainsSecrets() bool { return d.Why == whyContent || d.Why == whyCopies }

// Decisions is the whole table. A kind of the hub without a line is for administrators only, and a test fails.
var Decisions = []Decision{
	// Where templates go, and their content.
	{Group: "policy.karmada.io", Resource: "propagationpolicies", levels: tenants, Why: whyOwn},
	{Group: "policy.karmada.io", Resource: "overridepolicies", levels: tenants, Why: whyOwn},
	{Group: "policy.karmada.io", Resource: "clusterpropagationpolicies",
		levels: levels{fleet: reads, view: reads, edit: reads, admin: reads, operator: manages}, Why: whyFleet},
	{Group: "policy.karmada.io", Resource: "clusteroverridepolicies",
		levels: levels{fleet: reads, view: reads, edit: reads, admin: reads, operator: reads}, Why: whyAllTenants},
	{Group: "policy.karmada.io", Resource: "clustertaintpolicies", levels: operators, Why: whyFleet},
	{Group: "policy.karmada.io", Resource: "federatedresourcequotas", Status: true, levels: readers, Why: whyQuotas},
	{Group: "apps.karmada.io", Resource: "workloadrebalancers", Status: true, levels: operators, Why: whyFleet},
	{Group: "remedy.karmada.io", Resource: "remedies", levels: operators, Why: whyFleet},
	{Group: "config.karmada.io", Resource: "replicaschedulingpolicies", Status: true, levels: operators,
		Why: whyFleet},

	// What the hub makes of them.
	{Group: "work.karmada.io", Resource: "resourcebindings", Status: true, levels: readers, Why: whyTheHubs},
	{Group: "work.karmada.io", Resource: "resourcebindings/pods", levels: readers,
		Why: "it shows why pods of the binding's template are not running, as reported by members, and is read-only"},
	{Group: "work.karmada.io", Resource: "clusterresourcebindings", Status: true, levels: readers, Why: whyTheHubs},
	{Group: "work.karmada.io", Resource: "works", Status: true, Why: whyContent},
	{Group: "work.open-cluster-management.io", Resource: "manifestworks", Status: true, Why: whyContent},
	{Group: "work.open-cluster-management.io", Resource: "manifestworkreplicasets", Status: true, Why: whyContent},
	{Group: "addon.open-cluster-management.io", Resource: "clustermanagementaddons", Status: true, Why: whyInstalls},
	{Group: "addon.open-cluster-management.io", Resource: "addontemplates", Why: whyContent},
	{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs", Why: whyContent},
	{Group: "release.argosy.io", Resource: "enclosedmanifests", Why: whyContent},

	// Releases.
	{Group: "release.argosy.io", Resource: "releases", Status: true, levels: tenants, Own: map[string][]string{
		Edit: {releasev1alpha1.VerbAbort, releasev1alpha1.VerbPause, releasev1alpha1.VerbRollback},
		Admin: {releasev1alpha1.VerbAbort, releasev1alpha1.VerbApprove, releasev1alpha1.VerbPause,
			releasev1alpha1.VerbResume, releasev1alpha1.VerbRetry, releasev1alpha1.VerbRollback, releasev1alpha1.VerbSkip},
		Operator: {releasev1alpha1.VerbAbort, "patch", releasev1alpha1.VerbPause, releasev1alpha1.VerbRollback},
	}, Why: whyRelease},
	{Group: "release.argosy.io", Resource: "releasestrategies", levels: tenants, Why: whyOwn},
	{Group: "release.argosy.io", Resource: "releasechecks",
		levels: levels{view: reads, edit: reads, admin: writes, operator: reads}, Why: whyCheck},
	{Group: "release.argosy.io", Resource: "releaseapprovals",
		levels: levels{view: reads, edit: reads, admin: creates, operator: reads}, Why: whyApprovals},
	{Group: "release.argosy.io", Resource: "releaseguards", Status: true, levels: readers, Why: whyGuards},
	{Group: "release.argosy.io", Resource: "releaserevisions", Status: true, levels: readers, Why: whyTheHubs},

	// Autoscaling and Services of several clusters.
	{Group: "autoscaling.karmada.io", Resource: "federatedhpas", Status: true, levels: tenants, Why: whyOwn},
	{Group: "autoscaling.karmada.io", Resource: "cronfederatedhpas", Status: true, levels: tenants, Why: whyOwn},
	{Group: "networking.karmada.io", Resource: "multiclusterservices", Status: true, levels: tenants, Why: whyOwn},
	{Group: "networking.karmada.io", Resource: "multiclusteringresses", Status: true, levels: tenants, Why: whyOwn},
	{Group: "multicluster.x-k8s.io", Resource: "serviceexports", Status: true, levels: tenants, Why: whyOwn},
	{Group: "multicluster.x-k8s.io", Resource: "serviceimports", Status: true, levels: tenants, Why: whyOwn},

	// The fleet, and what kinds mean in it.
	{Group: "cluster.karmada.io", Resource: "clusters", Status: true,
		levels: levels{fleet: reads, view: reads, edit: reads, admin: reads, operator: tends}, Why: whyFleet + ". A new cluster receives what policies place there, including Secrets: the right to join clusters is granted separately"},
	{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles", Status: true, levels: readers, Why: whyProfiles},
	{Group: "multicluster.x-k8s.io", Resource: "placementdecisions", levels: readers, Why: whyTheHubs},
	{Group: "cluster.open-cluster-management.io", Resource: "managedclusters", Status: true,
		levels: levels{fleet: reads, view: reads, edit: reads, admin: reads, operator: tends},
		Why:    whyFleet + ". The rights to register clusters, to accept them and to move them between sets are granted separately"},
	{Group: "cluster.open-cluster-management.io", Resource: "managedclustersets", Status: true, levels: operators,
		Why: whyFleet},
	{Group: "cluster.open-cluster-management.io", Resource: "managedclustersetbindings", Status: true,
		levels: levels{view: reads, edit: reads, admin: writes, operator: reads}, Why: whyBound},
	{Group: "cluster.open-cluster-management.io", Resource: "placements", Status: true, levels: tenants, Why: whyOwn},
	{Group: "cluster.open-cluster-management.io", Resource: "placementdecisions", Status: true, levels: readers,
		Why: whyTheHubs},
	{Group: "cluster.open-cluster-management.io", Resource: "addonplacementscores", Status: true, levels: operators,
		Why: whyAddons},
	{Group: "addon.open-cluster-management.io", Resource: "managedclusteraddons", Status: true, levels: operators,
		Why: whyAddons},
	{Group: "cluster.karmada.io", Resource: "clusters/proxy",
		Why: "it gives access to a member: it is granted for each cluster by name"},
	{Group: "metrics.k8s.io", Resource: "pods", levels: readers, Why: whyMetrics},
	{Group: "metrics.k8s.io", Resource: "nodes", levels: readers, Why: whyMetrics},
	{Group: "search.karmada.io", Resource: "resourceregistries", Status: true, levels: operators, Why: whyFleet},
	{Group: "search.karmada.io", Resource: "search/api", levels: searchers, Why: whySearch},
	{Group: "search.karmada.io", Resource: "search/apis", levels: searchers, Why: whySearch},
	{Group: "search.karmada.io", Resource: "proxying/proxy",
		Why: "like clusters/proxy, it gives access to members; for what a user reads or writes there, clusters/proxy of " +
			"the cluster is needed, too"},
	{Group: "config.karmada.io", Resource: "resourceinterpretercustomizations", levels: readers, Why: whyAllTenants},
	{Group: "config.karmada.io", Resource: "resourceinterpreterwebhookconfigurations",
		levels: levels{operator: reads}, Why: "the hub sends the templates of all namespaces, including Secrets, to its address"},

	// Workloads of OpenKruise and Argo, as those of Kubernetes: what is in no namespace is in all of them.
	{Group: "apps.kruise.io", Resource: "advancedcronjobs", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "broadcastjobs", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "clonesets", Status: true, Scale: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "containerrecreaterequests", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "daemonsets", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "ephemeraljobs", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "imagelistpulljobs", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "imagepulljobs", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "persistentpodstates", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "podprobemarkers", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "statefulsets", Status: true, Scale: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "uniteddeployments", Status: true, Scale: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "workloadspreads", Status: true, levels: tenants, Why: whyOwn},
	{Group: "apps.kruise.io", Resource: "sidecarsets", Status: true, levels: readers, Why: whyAllTenants},
	{Group: "apps.kruise.io", Resource: "resourcedistributions", Status: true, Why: whyCopies},
	{Group: "policy.kruise.io", Resource: "podunavailablebudgets", Status: true, levels: tenants, Why: whyOwn},
	{Group: "rollouts.kruise.io", Resource: "rollouts", Status: true, levels: tenants, Why: whyApproval},
	{Group: "rollouts.kruise.io", Resource: "batchreleases", Status: true, levels: tenants, Why: whyOwn},
	{Group: "argoproj.io", Resource: "rollouts", Status: true, Scale: true, levels: tenants, Why: whyOwn},
	{Group: "argoproj.io", Resource: "workflows", levels: tenants, Why: whyOwn},
	{Group: "argoproj.io", Resource: "cronworkflows", levels: tenants, Why: whyOwn},
	{Group: "argoproj.io", Resource: "workflowtemplates", levels: tenants, Why: whyOwn},
	{Group: "argoproj.io", Resource: "clusterworkflowtemplates", levels: readers, Why: whyAllTenants},
}

// Path is what each role may get of the hub's own addresses that are no objects.
type Path struct {
	Path                               string
	fleet, view, edit, admin, operator bool
	// Everyone is true if all authenticated users may.
	Everyone bool
	// Post is true if those who may get it may also post to it.
	Post bool
	// Why is the reason for the limits.
	Why string
}

const whyConsole = "it shows what the user may read, and is read-only"

const whyHistory = "it shows namespaces in which the user may list releases, and is read-only"

// Paths are all of them.
var Paths = slices.Concat([]Path{
	{Path: "/argosy/scheduler", fleet: true, view: true, edit: true, admin: true, operator: true,
		Why: "it shows the scheduler's configuration, and is read-only"},
	{Path: "/argosy/room", view: true, edit: true, admin: true, operator: true,
		Why: "it shows the available replicas of clusters and what limits them, and is read-only"},
	{Path: "/argosy/nodes", operator: true, Why: "it shows the nodes of all clusters and their workloads"},
	{Path: "/argosy/pods", view: true, edit: true, admin: true, operator: true,
		Why: "it shows resourcebindings/pods of all namespaces, and is read-only"},
	{Path: "/console/api/change", Everyone: true, Post: true,
		Why: "it checks, simulates and writes objects with the permissions of the user"},
	{Path: "/console/api/link", Everyone: true, Post: true,
		Why: "it logs the user in to the console, as the same user"},
	{Path: "/console/api/import", Everyone: true, Post: true,
		Why: "it joins a cluster with the permissions of the user, who must be allowed to create clusters"},
	{Path: "/argosy/health", operator: true, Why: "it shows the hub's store, disk and backups"},
	{Path: "/readyz/etcd", operator: true, Why: "its error can contain the addresses of the store"},
	{Path: "/readyz/store", operator: true, Why: "its error can contain the addresses of the store"},
	{Path: "/argosy/why", Why: "it reads with the permissions of the hub; `argosy why` uses those of its user"},
	{Path: "/argosy/encryption", Why: "it manages the keys of the store"},
	{Path: "/argosy/convert", Why: "only the hub calls it"},
}, everyone(whyHistory, "/argosy/releases", "/argosy/releases/events", "/argosy/deployments", "/argosy/dora",
	"/argosy/usage"),
	everyone(whyConsole, "/console/api/me", "/console/api/stream", "/console/api/why", "/console/api/actions",
		"/console/api/pods", "/console/api/object", "/console/api/release", "/console/api/evidence",
		"/console/api/revisions", "/console/api/timeline", "/console/api/kinds", "/console/api/objects",
		"/console/api/policies", "/console/api/unclaimed", "/console/api/usage", "/console/api/search"))

// everyone returns paths that all authenticated users may get.
func everyone(why string, paths ...string) (all []Path) {
	for _, path := range paths {
		all = append(all, Path{Path: path, Everyone: true, Why: why})
	}
	return all
}

// besides returns rules on resources of Kubernetes that a role needs for its work.
func besides(role string) []rbacv1.PolicyRule {
	if role == Fleet {
		return nil
	}
	// Who leads, where there are several hubs: `argosy status` asks.
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"},
		Resources: []string{"leases"}, ResourceNames: []string{"argosy"}}}
	if role != Operator {
		return rules
	}
	return append(rules,
		rbacv1.PolicyRule{Verbs: verbs(reads), APIGroups: []string{""}, Resources: []string{"namespaces"}},
		rbacv1.PolicyRule{Verbs: verbs(reads), APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}},
		// Placement follows the priority of a workload: `argosy simulate` asks.
		rbacv1.PolicyRule{Verbs: verbs(reads), APIGroups: []string{"scheduling.k8s.io"},
			Resources: []string{"priorityclasses"}},
		rbacv1.PolicyRule{Verbs: verbs(reads), APIGroups: []string{"apiextensions.k8s.io"},
			Resources: []string{"customresourcedefinitions"}})
}

// verbs of a level, for an object.
func verbs(l level) []string {
	switch l {
	case reads:
		return []string{"get", "list", "watch"}
	case creates:
		return []string{"create", "get", "list", "watch"}
	case tends:
		return []string{"delete", "get", "list", "patch", "update", "watch"}
	case manages:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	case writes:
		return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
	return nil
}

// levelOf returns what a role may do with the kind.
func (d Decision) levelOf(role string) level {
	return map[string]level{Fleet: d.fleet, View: d.view, Edit: d.edit, Admin: d.admin, Operator: d.operator}[role]
}

// Allows reports whether a role may read the path.
func (p Path) Allows(role string) bool {
	return map[string]bool{Fleet: p.fleet, View: p.view, Edit: p.edit, Admin: p.admin, Operator: p.operator}[role]
}

// Names returns the roles' names, those with fewer rights first.
func Names() []string { return []string{Fleet, View, Edit, Admin, Operator} }

// Verbs returns the verbs of a role on a resource, sorted.
func Verbs(role string, d Decision) []string {
	all := append(verbs(d.levelOf(role)), d.Own[role]...)
	slices.Sort(all)
	return all
}

// ForAuthenticated returns the role of all authenticated users, and its binding.
func ForAuthenticated() (rbacv1.ClusterRole, rbacv1.ClusterRoleBinding) {
	var paths, posted []string
	for _, p := range Paths {
		switch {
		case p.Everyone && p.Post:
			posted = append(posted, p.Path)
		case p.Everyone:
			paths = append(paths, p.Path)
		}
	}
	of := metav1.ObjectMeta{Name: Authenticated, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}}
	return rbacv1.ClusterRole{ObjectMeta: of,
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: paths},
				{Verbs: []string{"get", "post"}, NonResourceURLs: posted}}},
		rbacv1.ClusterRoleBinding{ObjectMeta: *of.DeepCopy(),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Authenticated},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}}}
}

// ClusterRoles returns the hub's roles with their rules.
func ClusterRoles() []rbacv1.ClusterRole {
	all := make([]rbacv1.ClusterRole, 0, len(Names()))
	for _, name := range Names() {
		role := rbacv1.ClusterRole{
			// As those of Kubernetes: what a start finds missing is added, unless the annotation is set to false.
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}},
			Rules:      append(rules(name), besides(name)...),
		}
		for _, of := range aggregated[name] {
			metav1.SetMetaDataLabel(&role.ObjectMeta, aggregateTo+of, "true")
		}
		if paths := allowed(name); len(paths) > 0 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: paths})
		}
		all = append(all, role)
	}
	return all
}

func allowed(role string) (paths []string) {
	for _, p := range Paths {
		if p.Allows(role) {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// rules returns the rules of a role on resources of the table, in its order: one for each group and set of verbs.
func rules(role string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	add := func(group, resource string, verbs ...string) {
		same := func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == group && slices.Equal(r.Verbs, verbs) }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Resources = append(all[i].Resources, resource)
			return
		}
		all = append(all, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}})
	}
	for _, d := range Decisions {
		l := d.levelOf(role)
		if l == nothing {
			continue
		}
		add(d.Group, d.Resource, Verbs(role, d)...)
		if d.Status {
			add(d.Group, d.Resource+"/status", "get")
		}
		switch {
		case d.Scale && l == writes:
			add(d.Group, d.Resource+"/scale", "get", "patch", "update")
		case d.Scale:
			add(d.Group, d.Resource+"/scale", "get")
		}
	}
	slices.SortStableFunc(all, func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.APIGroups[0], b.APIGroups[0]) })
	return all
}
