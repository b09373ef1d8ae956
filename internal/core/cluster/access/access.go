// Package access decides which users of the hub may act in a member, and the permissions that the hub needs there. The
// hub's authorizer decides who may use the proxy of a cluster; the member's authorizer decides what a user may do
// there.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/api/wellknown"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	systemPrefix  = "system:"
	accountPrefix = "system:serviceaccount:"
	// masters may do anything on the hub, without a role.
	masters = "system:masters"
	// everybody is the group of all authenticated users. A role for it grants access, but no user acts as this group.
	everybody = "system:authenticated"
)

// Grants are the users and groups that the hub's roles allow to use the proxies of clusters.
type Grants struct {
	// by maps clusters to their users and groups. The empty name stands for all clusters.
	by map[string]subjects
}

type subjects struct{ users, groups map[string]bool }

// Derive reads the grants from the cluster roles of the hub. A RoleBinding grants no access, since clusters are
// cluster-scoped.
func Derive(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) Grants {
	clusters := map[string][]string{}
	for i := range roles {
		if names := Clusters(roles[i].Rules); len(names) > 0 {
			clusters[roles[i].Name] = names
		}
	}
	g := Grants{by: map[string]subjects{}}
	for i := range bindings {
		b := &bindings[i]
		if b.RoleRef.Kind != "ClusterRole" {
			continue
		}
		for _, cluster := range clusters[b.RoleRef.Name] {
			in, known := g.by[cluster]
			if !known {
				in = subjects{users: map[string]bool{}, groups: map[string]bool{}}
				g.by[cluster] = in
			}
			for _, s := range b.Subjects {
				switch s.Kind {
				case rbacv1.UserKind:
					in.users[s.Name] = true
				case rbacv1.GroupKind:
					in.groups[s.Name] = true
				case rbacv1.ServiceAccountKind:
					in.users[accountPrefix+s.Namespace+":"+s.Name] = true
				}
			}
		}
	}
	return g
}

// Clusters returns the clusters whose proxies the rules allow, each once. For all clusters, it returns only the empty
// name. As in Karmada, a right to the proxy of all clusters in the group search is a right to each cluster.
func Clusters(rules []rbacv1.PolicyRule) []string {
	var names []string
	for _, r := range rules {
		has := func(list []string, any ...string) bool {
			return slices.ContainsFunc(list, func(v string) bool { return v == "*" || slices.Contains(any, v) })
		}
		switch {
		case len(r.Verbs) == 0:
		case has(r.APIGroups, "search.karmada.io") && has(r.Resources, "proxying/proxy", "*/proxy"):
			return []string{""}
		case has(r.APIGroups, "cluster.karmada.io") && has(r.Resources, "clusters/proxy", "*/proxy"):
			if len(r.ResourceNames) == 0 {
				return []string{""}
			}
			names = append(names, r.ResourceNames...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Allowed are the users who may act under their own name in one cluster.
type Allowed struct {
	// Users and Groups are those in the hub's roles, sorted. Kubernetes' own are included only if the Cluster allows it.
	Users, Groups []string
	// letIn are all groups in roles, including those that users cannot act as.
	letIn map[string]bool
	// system are the system names of Kubernetes that the Cluster allows.
	system map[string]bool
	text   string
}

// SystemNames returns the system names that the annotations of a Cluster allow. Other names have no effect.
func SystemNames(annotations map[string]string) (names []string) {
	for name := range strings.SplitSeq(annotations[wellknown.SystemNamesAnnotation], ",") {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, systemPrefix) && name != everybody {
			names = append(names, name)
		}
	}
	return names
}

// ServiceAccount returns namespace and name of a user that is a service account; ok is false for other users.
func ServiceAccount(user string) (namespace, name string, ok bool) {
	account, is := strings.CutPrefix(user, accountPrefix)
	namespace, name, _ = strings.Cut(account, ":")
	return namespace, name, is && namespace != "" && name != ""
}

// ForCluster returns the users allowed in a cluster with these annotations.
func (g Grants) ForCluster(cluster string, annotations map[string]string) Allowed {
	a := Allowed{letIn: map[string]bool{}, system: map[string]bool{}}
	for _, name := range SystemNames(annotations) {
		a.system[name] = true
	}
	for _, of := range []string{"", cluster} {
		for name := range g.by[of].users {
			if a.mayAct(name) {
				a.Users = append(a.Users, name)
			}
		}
		for name := range g.by[of].groups {
			a.letIn[name] = true
			if a.mayAct(name) {
				a.Groups = append(a.Groups, name)
			}
		}
	}
	for _, list := range []*[]string{&a.Users, &a.Groups} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	a.text = fmt.Sprintf("%q %q %v %v", a.Users, a.Groups, a.letIn, a.system) // maps are printed in order
	return a
}

func (a Allowed) mayAct(name string) bool {
	return name != "" && (!strings.HasPrefix(name, systemPrefix) || a.system[name])
}

// Identity is the identity under which a request is passed on.
type Identity struct {
	// Hub is true if the request uses the hub's identity. The user is an administrator, who can read the hub's
	// credentials anyway.
	Hub bool
	// User and Groups are the identity in the member.
	User   string
	Groups []string
	// By are the groups that give access to a user without a role of their own.
	By []string
}

// The reasons why a user of the hub does not act in a member.
var (
	// ErrSystemName: system names of Kubernetes are other users in the member.
	ErrSystemName = errors.New("a system user of Kubernetes")
	// ErrNotNamed: no role of the hub gives the user access.
	ErrNotNamed = errors.New("not allowed by any ClusterRole")
)

// Judge returns the identity of a user of the hub in the member. It contains only those groups of the user that roles
// of the hub name, because the hub can only get the right to impersonate named groups.
func (a Allowed) Judge(name string, groups []string) (Identity, error) {
	if slices.Contains(groups, masters) {
		return Identity{Hub: true}, nil
	}
	if !a.mayAct(name) {
		return Identity{}, ErrSystemName
	}
	id := Identity{User: name}
	for _, group := range groups {
		if a.letIn[group] {
			id.By = append(id.By, group)
		}
		if _, acts := slices.BinarySearch(a.Groups, group); acts && !strings.HasPrefix(name, accountPrefix) {
			id.Groups = append(id.Groups, group) // the member decides the groups of a service account
		}
	}
	if _, named := slices.BinarySearch(a.Users, name); named {
		id.By = nil
	} else if len(id.By) == 0 {
		return Identity{}, ErrNotNamed
	}
	return id, nil
}

// GroupUser is a user who has access by a group. The groups of a user are known only when the user calls.
type GroupUser struct {
	User   string   `json:"user"`
	Groups []string `json:"groups"`
}

// most bounds the users with access by groups in the role of a member, and mostBytes the size of their names, which are
// in an annotation of at most 256 KiB. The user who called first is dropped first, and added again at the next call.
const (
	most      = 1000
	mostBytes = 128 << 10
)

// Learn returns the users in known who still have access, and id if a group gives it access. A user in the later half
// keeps the position, so that the call causes no write.
func (a Allowed) Learn(known []GroupUser, id Identity) []GroupUser {
	var out []GroupUser
	at := -1
	for _, m := range known {
		stays := slices.ContainsFunc(m.Groups, func(g string) bool { return a.letIn[g] })
		if _, named := slices.BinarySearch(a.Users, m.User); stays && !named && a.mayAct(m.User) {
			if m.User == id.User {
				at = len(out)
			}
			out = append(out, m)
		}
	}
	if len(id.By) > 0 {
		me := GroupUser{User: id.User, Groups: id.By}
		switch {
		case at >= 0 && len(out)-at <= most/2:
			out[at] = me
		case at >= 0:
			out = append(slices.Delete(out, at, at+1), me)
		default:
			out = append(out, me)
		}
	}
	out = out[max(0, len(out)-most):]
	size := 0
	for i := len(out) - 1; i >= 0; i-- {
		for _, text := range append([]string{out[i].User}, out[i].Groups...) {
			size += len(text) + len(`"",`)
		}
		if size += len(`{"user":"groups":[]},`); size > mostBytes {
			return out[i+1:]
		}
	}
	return out
}

// Rules returns the permissions that the hub needs in the member: to act as the allowed users, and as known members of
// the allowed groups.
func (a Allowed) Rules(known []GroupUser) []rbacv1.PolicyRule {
	var users, accounts []string
	add := func(name string) {
		if _, account, is := ServiceAccount(name); is {
			accounts = append(accounts, account)
			return
		}
		users = append(users, name)
	}
	for _, name := range a.Users {
		add(name)
	}
	for _, m := range known {
		add(m.User)
	}
	var rules []rbacv1.PolicyRule
	for _, r := range []struct {
		resource string
		names    []string
	}{{"users", users}, {"groups", a.Groups}, {"serviceaccounts", accounts}} {
		if names := slices.Clone(r.names); len(names) > 0 { // without names it would be anybody
			slices.Sort(names)
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{""},
				Resources: []string{r.resource}, ResourceNames: slices.Compact(names)})
		}
	}
	return rules
}

// String is equal for equal values only.
func (a Allowed) String() string { return a.text }
