package release

import (
	"fmt"
	"slices"
	"strings"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// ActRight is a right by which its holder can act as another user of the hub.
type ActRight struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

func (r ActRight) String() string {
	what := strings.TrimSuffix(r.Verb+" "+r.Resource+"/"+r.Subresource, "/")
	if r.Name != "" {
		what += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		what += fmt.Sprintf(" in the namespace %q", r.Namespace)
	}
	return what
}

// Rights are the facts that OnePerson needs about users.
type Rights struct {
	// Has reports whether a user has a right now.
	Has func(releasev1alpha1.ReleaseUser, ActRight) bool
	// Tokens returns the names of the Secrets with tokens of a service account.
	Tokens func(namespace, name string) []string
	// Updaters returns the service accounts, as users, that may update a target of the release.
	Updaters func() []releasev1alpha1.ReleaseUser
}

// actsAs returns a right by which one user can act as another; empty if there is none.
func (f Rights) actsAs(one releasev1alpha1.ReleaseUser, another string) string {
	const api, rbac = "authentication.k8s.io", "rbac.authorization.k8s.io"
	rights := []ActRight{{Verb: "impersonate", Resource: "users", Name: another},
		{Verb: "impersonate:user-info", Group: api, Resource: "users", Name: another}}
	namespace, name, account := serviceAccountOf(another)
	if !account && f.Has(one, ActRight{Verb: "*", Group: "*", Resource: "*"}) {
		return ""
	}
	if account {
		rights = []ActRight{
			{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: name},
			{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: name},
			{Verb: "impersonate:serviceaccount", Group: api, Resource: "serviceaccounts", Namespace: namespace, Name: name},
			{Verb: "create", Resource: "secrets", Namespace: namespace}, // the hub puts a token into a Secret that asks for it
			// Each of these gives its holder the others.
			{Verb: "escalate", Group: rbac, Resource: "roles", Namespace: namespace},
			{Verb: "bind", Group: rbac, Resource: "roles", Namespace: namespace},
			{Verb: "bind", Group: rbac, Resource: "clusterroles", Namespace: namespace}}
		for _, secret := range f.Tokens(namespace, name) {
			for _, verb := range []string{"get", "list", "watch", "update", "patch"} {
				rights = append(rights, ActRight{Verb: verb, Resource: "secrets", Namespace: namespace, Name: secret})
			}
		}
	}
	// The hub issues certificates for any name.
	for _, signer := range []string{"kubernetes.io/kube-apiserver-client", "kubernetes.io/*"} {
		rights = append(rights, ActRight{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: signer})
	}
	for _, right := range rights {
		if f.Has(one, right) {
			return right.String()
		}
	}
	return ""
}

// serviceAccountOf returns the service account of a user name; ok is false for other users.
func serviceAccountOf(user string) (namespace, name string, ok bool) {
	if user, ok = strings.CutPrefix(user, "system:serviceaccount:"); !ok {
		return "", "", false
	}
	return strings.Cut(user, ":")
}

// OnePerson returns why an approval that MayApprove permits would not be that of another person, and what to do; empty
// if it would. CheckApproval permits it too. approved are the approvals of the namespace.
//
// Two users are two people if neither may act as the other directly, without a third user between them. Two service
// accounts may be one person. Administrators may act as everybody: as no rule of the hub binds them, this does not make
// them one person with users, but with service accounts.
func OnePerson(r *releasev1alpha1.Release, rule *releasev1alpha1.ReleaseApprovalRule,
	a *releasev1alpha1.ReleaseApproval, by releasev1alpha1.ReleaseUser, approved []releasev1alpha1.ReleaseApproval,
	f Rights) string {
	type other struct {
		releasev1alpha1.ReleaseUser
		did string
	}
	var others []other
	_, _, account := serviceAccountOf(by.User)
	switch author := r.Spec.CreatedBy; {
	case rule == nil:
		return ""
	case !rule.NotAuthor:
	case r.Spec.Trigger != nil && account:
		return fmt.Sprintf("the hub started the release, and whoever changed the workload may use %s: "+aPerson, by.User)
	case r.Spec.Trigger != nil:
		for _, u := range f.Updaters() {
			others = append(others, other{u, "may update the workloads, so it counts as the author"})
		}
	case author != nil:
		others = append(others, other{*author, "created the release"})
	}
	for _, b := range approved {
		if differs, _ := mismatch(r, r.Status.Revision, *StageUnderWay(r), &b); rule.Count > 1 && differs == "" &&
			b.Spec.Gate == a.Spec.Gate && positionOf(&b) == positionOf(a) && b.Spec.By != nil &&
			b.Spec.Verdict == releasev1alpha1.VerdictApprove {
			others = append(others, other{*b.Spec.By, "has approved"})
		}
	}
	for _, o := range others {
		if o.User == by.User {
			continue
		}
		if _, _, accounts := serviceAccountOf(o.User); account && accounts {
			return fmt.Sprintf("%s %s, and one person may use it and %s: "+aPerson, o.User, o.did, by.User)
		}
		for _, pair := range [][2]releasev1alpha1.ReleaseUser{{by, o.ReleaseUser}, {o.ReleaseUser, by}} {
			if right := f.actsAs(pair[0], pair[1].User); right != "" {
				return fmt.Sprintf("%s %s: %s may %s, and so act as %s: a user without such a right must approve it", o.User,
					o.did, pair[0].User, right, pair[1].User)
			}
		}
	}
	return ""
}

const aPerson = "a user who is no service account must approve it"

// approvers describes who may approve at the gates at which a release waits; empty if every user with the right may.
func approvers(r *releasev1alpha1.Release) string {
	author := "who may update the workloads"
	if r.Spec.Trigger == nil && r.Spec.CreatedBy != nil {
		author = r.Spec.CreatedBy.User + ", who created it,"
	}
	var all []string
	add := func(text string) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, g := range WaitingGates(r) {
		rule := RuleOf(r, g)
		if rule != nil && rule.NotAuthor {
			add(author + " cannot approve, nor can users who may act as such a user")
		}
		if rule != nil && len(rule.From) > 0 {
			add("only " + subjects(rule.From) + " can approve")
		}
	}
	return strings.Join(all, "; ")
}
