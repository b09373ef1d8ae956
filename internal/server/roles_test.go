package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/why"
	"github.com/argosy-io/argosy/test/kit"
)

// judge asks the hub's own authorizer.
type judge struct {
	*testing.T
	client kubernetes.Interface
}

// allowed reports whether a user may do something to a resource, such as "update", "clonesets/status.apps.kruise.io".
func (j judge) allowed(user, verb, resource, namespace, name string) bool {
	j.Helper()
	resource, group, _ := strings.Cut(resource, ".")
	resource, sub, _ := strings.Cut(resource, "/")
	return j.review(user, &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: namespace, Name: name}})
}

// mayGet reports whether a user may use an address that is no object.
func (j judge) mayGet(user, verb, path string) bool {
	j.Helper()
	return j.review(user, &authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}})
}

func (j judge) review(user string, spec *authorizationv1.SubjectAccessReviewSpec) bool {
	j.Helper()
	spec.User, spec.Groups = user, []string{"system:authenticated"}
	answer, err := j.client.AuthorizationV1().SubjectAccessReviews().Create(j.Context(),
		&authorizationv1.SubjectAccessReview{Spec: *spec}, metav1.CreateOptions{})
	if err != nil {
		j.Fatal(err)
	}
	return answer.Status.Allowed
}

// bind gives a user a ClusterRole, in a namespace or, if that is empty, in all and at the scope of the cluster.
func bind(t *testing.T, client kubernetes.Interface, user, role, namespace string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if namespace == "" {
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects, RoleRef: ref},
			metav1.CreateOptions{})
	} else {
		_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects, RoleRef: ref},
			metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitAggregation returns when Kubernetes' roles view, edit and admin have all rules of the hub's roles.
func awaitAggregation(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	kit.Eventually(t, "Kubernetes' roles include the hub's", func() string {
		all, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, whole := range all.Items {
			if whole.AggregationRule == nil {
				continue
			}
			for _, part := range all.Items {
				matches := func(s metav1.LabelSelector) bool {
					selector, err := metav1.LabelSelectorAsSelector(&s)
					return err == nil && selector.Matches(k8slabels.Set(part.Labels))
				}
				if part.Name == whole.Name || !slices.ContainsFunc(whole.AggregationRule.ClusterRoleSelectors, matches) {
					continue
				}
				for _, rule := range part.Rules {
					if !slices.ContainsFunc(whole.Rules, func(r rbacv1.PolicyRule) bool {
						return equality.Semantic.DeepEqual(r, rule)
					}) {
						return fmt.Sprintf("%s lacks %v of %s", whole.Name, rule, part.Name)
					}
				}
			}
		}
		return ""
	})
}

// Each role, given as people are given it, against each kind that the hub defines, and against what is beside these.
func TestRolesAllowExactlyTheirTable(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	if err := installWorkloadCRDs(t.Context(), h.Config(), h.config.defines); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "bank"} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitAggregation(t, client)
	j := judge{t, client}
	// vera, ed and ann have Kubernetes' roles in one namespace, flo sees the fleet and no namespace, vic looks at all of
	// them, oli looks after the fleet, and nora has nothing.
	people := []struct {
		name, role, namespace, of string
	}{
		{"vera", "view", "shop", roles.View}, {"ed", "edit", "shop", roles.Edit}, {"ann", "admin", "shop", roles.Admin},
		{"flo", roles.Fleet, "", roles.Fleet}, {"vic", "view", "", roles.View},
		{"oli", roles.Operator, "", roles.Operator}, {"nora", "", "", ""},
	}
	for _, p := range people {
		if p.role == "" {
			continue
		}
		bind(t, client, p.name, p.role, p.namespace)
		kit.Eventually(t, "the hub knows what "+p.name+" may do", func() string {
			if j.allowed(p.name, "list", "propagationpolicies.policy.karmada.io", "shop", "") ||
				j.allowed(p.name, "list", "clusters.cluster.karmada.io", "", "") {
				return ""
			}
			return "not yet"
		})
	}

	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind",
		"escalate", "impersonate", "approve", "pause", "resume", "abort", "rollback", "skip", "retry"}
	_, served, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	namespaced, subresources := map[string]bool{}, map[string]bool{}
	for _, list := range served {
		group, _, ok := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			if ok {
				namespaced[r.Name+"."+group] = r.Namespaced
				subresources[r.Name+"."+group] = true
			}
		}
	}
	// No discovery lists what the hub serves beside a definition.
	beside := map[string]bool{"clusters/proxy.cluster.karmada.io": true, "resourcebindings/pods.work.karmada.io": true,
		"proxying/proxy.search.karmada.io": true, "search/api.search.karmada.io": true, "search/apis.search.karmada.io": true}
	namespaced["resourcebindings/pods.work.karmada.io"] = true
	asked := 0
	for _, d := range roles.Decisions {
		name := d.Resource + "." + d.Group
		if !subresources[name] && !beside[name] {
			t.Errorf("the hub does not serve %s", name)
		}
		for _, p := range people {
			for _, ns := range []string{"shop", "karmada-es-eu", ""} {
				if !namespaced[name] && ns != "" {
					continue
				}
				reaches := p.namespace == "" || namespaced[name] && ns == p.namespace
				for _, verb := range verbs {
					want := reaches && slices.Contains(roles.Verbs(p.of, d), verb)
					if got := j.allowed(p.name, verb, name, ns, "x"); got != want {
						t.Errorf("%s may %s %s in %q: %t, want %t", p.name, verb, name, ns, got, want)
					}
					asked++
				}
				for _, sub := range []string{"/status", "/finalizers", "/proxy", "/approval"} {
					if !reaches { // the resource itself shows it
						break
					}
					for _, verb := range []string{"update", "patch", "create"} {
						if j.allowed(p.name, verb, d.Resource+sub+"."+d.Group, ns, "x") {
							t.Errorf("%s may %s %s%s in %q", p.name, verb, name, sub, ns)
						}
						asked++
					}
				}
				if want := d.Scale && slices.Contains([]string{roles.Edit, roles.Admin}, p.of) && reaches; d.Scale &&
					j.allowed(p.name, "patch", d.Resource+"/scale."+d.Group, ns, "x") != want {
					t.Errorf("%s may patch %s/scale in %q: want %t", p.name, name, ns, want)
				}
			}
		}
	}
	for _, p := range roles.Paths {
		for _, who := range people {
			want := p.Everyone || who.namespace == "" && p.Allows(who.of)
			if got := j.mayGet(who.name, "get", p.Path); got != want {
				t.Errorf("%s may get %s: %t, want %t", who.name, p.Path, got, want)
			}
			if got := j.mayGet(who.name, "post", p.Path); got != (want && p.Post) {
				t.Errorf("%s may post to %s: %t, want %t", who.name, p.Path, got, want && p.Post)
			}
			asked += 2
		}
	}
	t.Logf("asked %d times", asked)

	// What is beside the table: each right has its refused neighbour.
	for _, c := range []struct{ who, verb, resource, namespace, name string }{
		{"vera", "get", "deployments.apps", "shop", ""}, {"vera", "list", "events", "shop", ""},
		{"ed", "create", "deployments.apps", "shop", ""},
		{"ed", "get", "secrets", "shop", ""}, {"ed", "create", "configmaps", "shop", ""},
		{"ann", "create", "rolebindings.rbac.authorization.k8s.io", "shop", ""},
		{"vic", "get", "leases.coordination.k8s.io", "karmada-system", "argosy"},
		{"vic", "list", "deployments.apps", "bank", ""},
		{"oli", "get", "leases.coordination.k8s.io", "karmada-system", "argosy"}, {"oli", "list", "namespaces", "", ""},
		{"oli", "list", "events", "bank", ""},
		{"oli", "list", "customresourcedefinitions.apiextensions.k8s.io", "", ""},
	} {
		if !j.allowed(c.who, c.verb, c.resource, c.namespace, c.name) {
			t.Errorf("%s may not %s %s %s in %q", c.who, c.verb, c.resource, c.name, c.namespace)
		}
	}
	for _, c := range []struct{ who, verb, resource, namespace, name string }{
		// Secrets, and the hub's own.
		{"vera", "get", "secrets", "shop", ""}, {"vic", "get", "secrets", "karmada-cluster", "eu"},
		{"vic", "list", "secrets", "shop", ""},
		{"oli", "get", "secrets", "karmada-cluster", "eu"}, {"oli", "list", "secrets", "karmada-cluster", ""},
		{"oli", "create", "secrets", "karmada-cluster", ""},
		{"oli", "get", "secrets", "shop", ""}, {"oli", "get", "configmaps", "karmada-system", ""},
		{"ed", "get", "secrets", "bank", ""}, {"ann", "get", "secrets", "karmada-cluster", "eu"},
		{"vic", "get", "leases.coordination.k8s.io", "karmada-system", "other"},
		{"vic", "update", "leases.coordination.k8s.io", "karmada-system", "argosy"},
		{"flo", "get", "leases.coordination.k8s.io", "karmada-system", "argosy"},
		{"flo", "list", "secrets", "karmada-cluster", ""}, {"flo", "get", "deployments.apps", "shop", ""},
		{"flo", "list", "namespaces", "", ""},
		// Other namespaces, and what is in none.
		{"ed", "create", "deployments.apps", "bank", ""}, {"ann", "create", "rolebindings.rbac.authorization.k8s.io", "bank",
			""}, {"vera", "get", "deployments.apps", "bank", ""},
		{"ed", "create", "namespaces", "", ""}, {"ann", "create", "namespaces", "", ""},
		{"oli", "create", "namespaces", "", ""}, {"oli", "update", "namespaces", "", "shop"},
		// More rights for oneself.
		{"ed", "create", "rolebindings.rbac.authorization.k8s.io", "shop", ""},
		{"ann", "bind", "clusterroles.rbac.authorization.k8s.io", "", "cluster-admin"},
		{"ann", "escalate", "roles.rbac.authorization.k8s.io", "shop", ""},
		{"ann", "create", "clusterrolebindings.rbac.authorization.k8s.io", "", ""},
		{"ann", "impersonate", "users", "", "oli"}, {"oli", "create", "clusterrolebindings.rbac.authorization.k8s.io", "",
			""}, {"oli", "create", "rolebindings.rbac.authorization.k8s.io", "shop", ""},
		{"oli", "impersonate", "users", "", "ann"}, {"oli", "impersonate", "groups", "", "system:masters"},
		{"oli", "impersonate", "serviceaccounts", "kube-system", "x"},
		{"oli", "create", "serviceaccounts/token", "karmada-system", "x"},
		{"oli", "update", "clusterroles.rbac.authorization.k8s.io", "", roles.Operator},
		{"ann", "update", "clusterroles.rbac.authorization.k8s.io", "", "admin"},
		{"oli", "approve", "signers.certificates.k8s.io", "", "x"},
		{"oli", "update", "certificatesigningrequests/approval.certificates.k8s.io", "", "x"},
		{"ann", "update", "certificatesigningrequests/approval.certificates.k8s.io", "", "x"},
		// What would run by the hub's rights, or in all namespaces.
		{"oli", "create", "deployments.apps", "shop", ""},
		{"oli", "create", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "", ""},
		{"oli", "update", "customresourcedefinitions.apiextensions.k8s.io", "", "works.work.karmada.io"},
		{"oli", "delete", "customresourcedefinitions.apiextensions.k8s.io", "", "works.work.karmada.io"},
		{"oli", "update", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "", "argosy-members"},
	} {
		if j.allowed(c.who, c.verb, c.resource, c.namespace, c.name) {
			t.Errorf("%s may %s %s %s in %q", c.who, c.verb, c.resource, c.name, c.namespace)
		}
	}

	t.Run("an administrator of a namespace lets others in, and not into the fleet", func(t *testing.T) {
		as := rest.CopyConfig(h.Config())
		as.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"system:authenticated"}}
		ann := kubernetes.NewForConfigOrDie(as)
		for role, allowed := range map[string]bool{"view": true, "edit": true, "admin": true, roles.Fleet: true,
			roles.View: true, roles.Edit: true, roles.Admin: true,
			roles.Operator: false, "cluster-admin": false, "system:controller:namespace-controller": false} {
			_, err := ann.RbacV1().RoleBindings("shop").Create(t.Context(),
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-"},
					Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nina"}},
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}, metav1.CreateOptions{})
			if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("binding %s in the namespace gives %v", role, err)
			}
		}
		// A role of a member may have the same name: a binding that a policy propagates would give it.
		for _, kind := range []string{"Role", "ClusterRole"} {
			_, err := ann.RbacV1().RoleBindings("shop").Create(t.Context(),
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-"},
					Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nina"}},
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "only-in-members"}}, metav1.CreateOptions{})
			if err == nil {
				t.Errorf("a binding to a %s that the hub does not have is accepted", kind)
			}
		}
		_, err := ann.RbacV1().Roles("shop").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "works"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{"work.karmada.io"},
				Resources: []string{"works", "resourcebindings"}}}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("a role with more than its author has gives %v", err)
		}
	})
}

// Each address that the hub serves beside the API has a line in the table of paths.
func TestEachAddressOfTheHubIsDecided(t *testing.T) {
	decided := map[string]bool{}
	for _, p := range roles.Paths {
		decided[p.Path] = true
		if p.Why == "" {
			t.Errorf("%s: nothing says why", p.Path)
		}
	}
	for _, path := range append([]string{why.Path, why.RoomPath, why.NodesPath, why.PodsPath, why.SchedulerPath,
		HealthPath, EncryptionPath, convertPath, "/readyz/etcd",
		"/readyz/store"}, append(slices.Clone(history.Paths), console.Paths...)...) {
		if !decided[path] {
			t.Errorf("decide in internal/core/hub/roles who may get %s", path)
		}
		delete(decided, path)
	}
	if len(decided) > 0 {
		t.Errorf("the hub does not serve %v", slices.Collect(maps.Keys(decided)))
	}
	if !strings.HasPrefix(proxy.Path("eu"), "/apis/cluster.karmada.io/") {
		t.Errorf("the proxy is served at %s, which is no subresource", proxy.Path("eu"))
	}
}

// A start keeps what an administrator did to the hub's roles, as it does with Kubernetes' own.
func TestStartKeepsChangesOfRoles(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	startRoles := func() {
		t.Helper()
		if _, err := h.startRoles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitAggregation(t, client)
	all := func() map[string]*rbacv1.ClusterRole {
		t.Helper()
		found := map[string]*rbacv1.ClusterRole{}
		for _, name := range roles.Names() {
			r, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found[name] = r
		}
		return found
	}
	change := func(name string, change func(*rbacv1.ClusterRole)) {
		t.Helper()
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			r, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(r)
			_, err = client.RbacV1().ClusterRoles().Update(t.Context(), r, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	allows := func(r *rbacv1.ClusterRole, group, resource, verb string) bool {
		return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) &&
				slices.Contains(rule.Verbs, verb)
		})
	}
	without := func(resource string) func(*rbacv1.ClusterRole) {
		return func(r *rbacv1.ClusterRole) {
			for i := range r.Rules {
				r.Rules[i].Resources = slices.DeleteFunc(r.Rules[i].Resources, func(other string) bool { return other == resource })
			}
			r.Rules = slices.DeleteFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
				return len(rule.Resources)+len(rule.NonResourceURLs) == 0
			})
		}
	}
	const group, overrides, policies = "policy.karmada.io", "overridepolicies", "propagationpolicies"
	mine := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"things"}}

	// Taken away for good, taken away for now, added, no part of view any more, and deleted.
	change(roles.Edit, func(r *rbacv1.ClusterRole) {
		without(overrides)(r)
		r.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
	})
	change(roles.View, func(r *rbacv1.ClusterRole) {
		without(policies)(r)
		r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] = "false"
	})
	kit.Eventually(t, "view has no more what its part gave it", func() string {
		r, err := client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		if err != nil || allows(r, group, policies, "get") {
			return fmt.Sprintf("it has %v, %v", r.Rules, err)
		}
		return ""
	})
	change(roles.Operator, func(r *rbacv1.ClusterRole) { r.Rules = append(r.Rules, mine) })
	if err := client.RbacV1().ClusterRoles().Delete(t.Context(), roles.Admin, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	protected, err := client.RbacV1().ClusterRoles().Get(t.Context(), roles.Edit, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	startRoles()
	now := all()
	if diff := cmp.Diff(protected, now[roles.Edit]); diff != "" {
		t.Errorf("the role that is not to be kept up to date was written: %s", diff)
	}
	if allows(now[roles.Edit], group, overrides, "get") {
		t.Error("what was taken away for good is back")
	}
	if !allows(now[roles.View], group, policies, "get") ||
		now[roles.View].Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "false" {
		t.Errorf("the role is %v", now[roles.View])
	}
	if !allows(now[roles.Operator], "example.com", "things", "get") ||
		!allows(now[roles.Operator], "cluster.karmada.io", "clusters", "update") {
		t.Errorf("the role is %v", now[roles.Operator])
	}
	if !allows(now[roles.Admin], group, overrides, "update") {
		t.Errorf("the role is %v", now[roles.Admin])
	}

	startRoles()
	if diff := cmp.Diff(now, all()); diff != "" {
		t.Errorf("a start that had nothing to add wrote roles: %s", diff)
	}

	for _, name := range roles.Names() { // other tests find them as the hub makes them
		if err := client.RbacV1().ClusterRoles().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	startRoles()
}
