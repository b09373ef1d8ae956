package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Impersonator is the name of the role in a member by which the hub acts there as its users, and of its binding. It is
// Karmada's.
const Impersonator = "karmada-impersonator"

// Role returns the role that a member should have. existing is the current one, nil for none; hub is the identity of
// the hub that writes it; id is the user that is about to act, or empty. ours is false for a role that someone other
// than a hub wrote or changed: it stays, even if it allows less or more. A role of another hub is taken over with the
// member.
func (a Allowed) Role(existing *rbacv1.ClusterRole, hub string, id Identity) (want *rbacv1.ClusterRole, ours bool) {
	var known []GroupUser
	want = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Impersonator}}
	if existing != nil {
		if !written(existing) {
			return existing, false
		}
		want = existing.DeepCopy()
		_ = json.Unmarshal([]byte(existing.Annotations[wellknown.MembersOfGroupsAnnotation]),
			&known) // an unreadable annotation is rebuilt
	}
	known = a.Learn(known, id)
	want.Rules, want.AggregationRule = a.Rules(known), nil
	mark(&want.ObjectMeta, hub, ruled(want))
	delete(want.Annotations, wellknown.MembersOfGroupsAnnotation)
	if len(known) > 0 {
		want.Annotations[wellknown.MembersOfGroupsAnnotation] = text.JSON(known)
	}
	return want, true
}

// Narrowings is the number of steps of Narrowed.
const Narrowings = 3

// NotHeld begins the reason of Kubernetes for refusing a role with rights that its writer lacks.
const NotHeld = "is attempting to grant RBAC permissions not currently held"

// Narrowed returns the role to write after Kubernetes refused want, because the writer lacks one of its rights.
// Kubernetes refuses a role as a whole, so rights that are to end would stay, too. Step 0 returns want. Step 1 leaves
// out names that existing does not have. Step 2 also leaves out names of Kubernetes, which the role minimal of a member
// never permits. If no right is to end, existing stays.
func Narrowed(existing, want *rbacv1.ClusterRole, step int) *rbacv1.ClusterRole {
	if existing == nil || step == 0 {
		return want
	}
	var kept []rbacv1.PolicyRule
	ends := false
	for _, r := range existing.Rules {
		ends = ends || slices.ContainsFunc(r.ResourceNames, func(name string) bool {
			return !permits(want.Rules, r.Resources[0], name)
		})
	}
	if !ends {
		return existing
	}
	for _, r := range want.Rules {
		resource := r.Resources[0]
		r.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), func(name string) bool {
			return !permits(existing.Rules, resource, name) ||
				step == 2 && (resource == "serviceaccounts" || strings.HasPrefix(name, systemPrefix))
		})
		if len(r.ResourceNames) > 0 {
			kept = append(kept, r)
		}
	}
	var known []GroupUser
	_ = json.Unmarshal([]byte(want.Annotations[wellknown.MembersOfGroupsAnnotation]), &known) // Role has written it
	known = slices.DeleteFunc(known, func(u GroupUser) bool {
		_, account, is := ServiceAccount(u.User)
		return !permits(kept, "users", u.User) && !(is && permits(kept, "serviceaccounts", account))
	})
	want = want.DeepCopy()
	want.Rules = kept
	mark(&want.ObjectMeta, "", ruled(want))
	delete(want.Annotations, wellknown.MembersOfGroupsAnnotation)
	if len(known) > 0 {
		want.Annotations[wellknown.MembersOfGroupsAnnotation] = text.JSON(known)
	}
	return want
}

// permits reports whether rules permit to impersonate a name.
func permits(rules []rbacv1.PolicyRule, resource, name string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, resource) && (len(r.ResourceNames) == 0 ||
			slices.Contains(r.ResourceNames, name))
	})
}

// written reports whether a hub wrote the role as it is, by its digest. Earlier versions wrote roles without a digest,
// for all users.
func written(role *rbacv1.ClusterRole) bool {
	if of, ok := role.Annotations[wellknown.WrittenDigestAnnotation]; ok {
		return of == ruled(role)
	}
	return role.Labels[workv1alpha2.SystemLabel] == "true" && role.AggregationRule == nil &&
		reflect.DeepEqual(role.Rules, []rbacv1.PolicyRule{
			{Verbs: []string{"impersonate"}, APIGroups: []string{""},
				Resources: []string{"users", "groups", "serviceaccounts"}}})
}

// ruled returns the digest of a role. An aggregated role has a different digest.
func ruled(role *rbacv1.ClusterRole) string {
	rules := role.Rules
	if len(rules) == 0 {
		rules = nil // an API server may give either
	}
	return digest([]any{rules, role.AggregationRule})
}

// Binding returns the binding that gives the role to a service account, and to no other; existing, hub and ours are as
// in Role.
func Binding(existing *rbacv1.ClusterRoleBinding, hub, namespace,
	account string) (want *rbacv1.ClusterRoleBinding, ours bool) {
	want = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: Impersonator}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Impersonator}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	if existing != nil {
		switch of, marked := existing.Annotations[wellknown.WrittenDigestAnnotation]; {
		case !marked && existing.RoleRef == role && reflect.DeepEqual(existing.Subjects, subjects):
			return existing, true // by a hub of before, or who wants the same
		case !marked, of != digestOf(existing):
			return existing, false
		}
		want = existing.DeepCopy()
	}
	want.RoleRef, want.Subjects = role, subjects
	mark(&want.ObjectMeta, hub, digestOf(want))
	return want, true
}

// Goes reports whether a role or binding is deleted when the hub leaves the member: this hub wrote it last, and it was
// not changed since.
func Goes(existing metav1.Object, hub string) bool {
	of, marked := existing.GetAnnotations()[wellknown.WrittenDigestAnnotation]
	return marked && existing.GetAnnotations()[wellknown.HubAnnotation] == hub && of == digestOf(existing)
}

// digestOf returns the digest of what a hub writes into a role or binding.
func digestOf(o metav1.Object) string {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		return ruled(o)
	case *rbacv1.ClusterRoleBinding:
		return digest([]any{o.RoleRef, o.Subjects})
	}
	return ""
}

// mark records on a member's object that this hub wrote it, and its digest.
func mark(meta *metav1.ObjectMeta, hub, what string) {
	meta.Labels, meta.Annotations = maps.Clone(meta.Labels), maps.Clone(meta.Annotations)
	metav1.SetMetaDataLabel(meta, workv1alpha2.SystemLabel, "true")
	metav1.SetMetaDataAnnotation(meta, wellknown.WrittenDigestAnnotation, what)
	if hub != "" {
		metav1.SetMetaDataAnnotation(meta, wellknown.HubAnnotation, hub)
	}
}

// Differs reports whether a role or a binding is to be written.
func Differs(existing, want metav1.Object) bool {
	return !maps.Equal(existing.GetAnnotations(), want.GetAnnotations()) ||
		!maps.Equal(existing.GetLabels(), want.GetLabels()) || digestOf(existing) != digestOf(want)
}

func digest(what any) string {
	sum := sha256.Sum256([]byte(text.JSON(what)))
	return hex.EncodeToString(sum[:8])
}
