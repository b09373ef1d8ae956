package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit"
)

// letIn binds a role of the hub, named after the test and what it is for, that lets subjects into the proxy of
// clusters.
func letIn(t *testing.T, ns, what, clusters, subjects string) {
	t.Helper()
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-%[2]s}
rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], resourceNames: %[3]s, verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-%[2]s}
subjects: %[4]s
roleRef: {kind: ClusterRole, name: %[1]s-%[2]s, apiGroup: rbac.authorization.k8s.io}`, ns, what, clusters, subjects))
}

// lists lists the ConfigMaps of a member's namespace default, as who is given: through the hub, or with the token by
// which the hub acts as its users, as somebody who has stolen it.
func lists(t *testing.T, member, token string, as rest.ImpersonationConfig) error {
	t.Helper()
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Host += proxy.Path(member)
	if token != "" {
		at := fleet.Members[member].Config
		config = &rest.Config{Host: at.Host, BearerToken: token,
			TLSClientConfig: rest.TLSClientConfig{CAData: at.CAData, CAFile: at.CAFile, Insecure: at.Insecure}}
	}
	config.Impersonate = as
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	return err
}

// impersonatorToken is what the hub acts in a member with as its users.
func impersonatorToken(t *testing.T, member string) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: member + "-impersonator"},
		secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data["token"])
}

// waitForbidden waits until a request is refused with this text, or is allowed if want is empty.
func waitForbidden(t *testing.T, what string, ask func() error, want string) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		switch err := ask(); {
		case want == "" && err == nil, want != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), want):
			return ""
		default:
			return fmt.Sprintf("got %v, want %q", err, want)
		}
	})
}

func named(user string, groups ...string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: user, Groups: groups}
}

// The token of the impersonator was as strong as the hub's own: it might be anybody, system:masters among them.
func TestTheHubActsInAMemberAsThoseAloneWhomItsRolesLetIn(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	token := impersonatorToken(t, "m1")
	alice, dora, bob, devs := "alice-"+ns, "dora-"+ns, "bob-"+ns, "devs-"+ns
	const acting, mayNot = `User "system:serviceaccount:karmada-cluster:karmada-impersonator" cannot`, "cannot impersonate"

	// 1. Nobody is let in yet.
	waitForbidden(t, "the hub refuses who is not let in", func() error { return lists(t, "m1", "", named(alice)) },
		`cannot get resource "clusters/proxy"`)
	for who, c := range map[string]struct {
		as   rest.ImpersonationConfig
		want string
	}{
		"a user":                       {named(alice), mayNot},
		"an administrator":             {named("argosy-admin", "system:masters"), mayNot},
		"the member's administrator":   {named("system:admin", "system:masters"), mayNot},
		"a component":                  {named("system:kube-controller-manager"), mayNot},
		"the account of the hub there": {named("system:serviceaccount:karmada-cluster:karmada-m1"), mayNot},
		"itself with the rights of masters": {named("system:serviceaccount:karmada-cluster:karmada-impersonator",
			"system:masters"), mayNot},
		"nobody, and so by rights of its own": {rest.ImpersonationConfig{}, acting + ` list resource "configmaps"`},
	} {
		if err := lists(t, "m1", token, c.as); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("who has the token acts as %s: %v, want it forbidden: %s", who, err, c.want)
		}
	}

	// 2. The hub lets her in: she acts as herself, and the member decides.
	letIn(t, ns, "users", "[m1]", fmt.Sprintf(
		"[{kind: User, name: %s, apiGroup: rbac.authorization.k8s.io}, {kind: User, name: system:kube-scheduler, apiGroup: rbac.authorization.k8s.io}]", alice))
	hers := fmt.Sprintf(`User %q cannot list resource "configmaps"`, alice)
	waitForbidden(t, "the member refuses her by her name", func() error { return lists(t, "m1", "", named(alice)) }, hers)
	waitForbidden(t, "the token is good for her", func() error { return lists(t, "m1", token, named(alice)) }, hers)
	fleet.Members["m1"].Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: access-%[1]s, namespace: default}
subjects: [{kind: User, name: %[2]s, apiGroup: rbac.authorization.k8s.io}, {kind: Group, name: %[3]s, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, namespace: %[1]s, name: robot}]
roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}`, ns, alice, devs))
	waitForbidden(t, "the member lets her", func() error { return lists(t, "m1", "", named(alice)) }, "")
	for who, c := range map[string]struct {
		as   rest.ImpersonationConfig
		want string
	}{
		"another":               {named(bob), mayNot},
		"her among the masters": {named(alice, "system:masters"), mayNot},
		"her in a group":        {named(alice, devs), mayNot},
		"her with what only an authority says": {rest.ImpersonationConfig{UserName: alice,
			Extra: map[string][]string{"scopes": {"all"}}}, mayNot},
	} {
		if err := lists(t, "m1", token, c.as); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("who has the token acts as %s: %v, want it forbidden: %s", who, err, c.want)
		}
	}
	waitForbidden(t, "another cluster's proxy does not let her in",
		func() error { return lists(t, "m2", "", named(alice)) },
		`cannot get resource "clusters/proxy"`)
	if err := lists(t, "m2", impersonatorToken(t, "m2"), named(alice)); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), mayNot) {
		t.Errorf("another cluster lets the hub act as her: %v", err)
	}
	// A component of the hub is let in by a role, and is another's name in the member.
	waitForbidden(t, "a name of Kubernetes' own is kept out", func() error {
		return lists(t, "m1", "", named("system:kube-scheduler"))
	}, "a system user of Kubernetes")

	// 3. A group is let in: its members act, in this group.
	letIn(t, ns, "groups", "[m1]", fmt.Sprintf("[{kind: Group, name: %s, apiGroup: rbac.authorization.k8s.io}]", devs))
	waitForbidden(t, "a member of the group acts in it",
		func() error { return lists(t, "m1", "", named(dora, devs, "finance")) },
		"")
	if err := lists(t, "m1", token, named(bob, devs)); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), mayNot) {
		t.Errorf("who has the token acts as somebody who never called: %v", err)
	}

	// 4. What the hub lets in no more, the member does not either.
	fleet.Hub.Remove(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", ns+"-users")
	fleet.Hub.Remove(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", ns+"-groups")
	waitForbidden(t, "the hub refuses her again", func() error { return lists(t, "m1", "", named(alice)) },
		`cannot get resource "clusters/proxy"`)
	waitForbidden(t, "the member lets the hub act as her no more",
		func() error { return lists(t, "m1", token, named(alice)) },
		mayNot)
	waitForbidden(t, "nor as who was in the group", func() error { return lists(t, "m1", token, named(dora)) }, mayNot)
	waitForbidden(t, "nor as the group", func() error { return lists(t, "m1", token, named(dora, devs)) }, mayNot)
}

func TestHubServiceAccountIsNotMemberServiceAccount(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	robot := named("system:serviceaccount:"+ns+":robot", "system:serviceaccounts", "system:serviceaccounts:"+ns,
		"system:authenticated")
	letIn(t, ns, "robot", "[m2]", fmt.Sprintf(
		"[{kind: ServiceAccount, namespace: %s, name: robot}, {kind: Group, name: 'system:serviceaccounts:%[1]s', apiGroup: rbac.authorization.k8s.io}]", ns))
	fleet.Members["m2"].Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot-%[1]s, namespace: default}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: robot}]
roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}`, ns))
	token := impersonatorToken(t, "m2")
	waitForbidden(t, "it is refused, with what to do", func() error { return lists(t, "m2", "", robot) },
		"kubectl annotate cluster m2 argosy.io/impersonate-system-names="+robot.UserName)
	refused := "cannot impersonate"
	waitForbidden(t, "the member does not let the hub act as it", func() error {
		return lists(t, "m2", token, named(robot.UserName))
	}, refused)

	names := func(text string) {
		fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "m2", func(u *unstructured.Unstructured) {
			all := u.GetAnnotations()
			if all == nil {
				all = map[string]string{}
			}
			if all[wellknown.SystemNamesAnnotation] = text; text == "" {
				delete(all, wellknown.SystemNamesAnnotation)
			}
			u.SetAnnotations(all)
		})
	}
	t.Cleanup(func() { names("") })
	names(robot.UserName)
	waitForbidden(t, "it acts, as the member's of that name", func() error { return lists(t, "m2", "", robot) }, "")
	waitForbidden(t, "as that one alone", func() error {
		return lists(t, "m2", token, named("system:serviceaccount:"+ns+":default"))
	}, refused)
	waitForbidden(t, "and not as a group of Kubernetes' own", func() error {
		return lists(t, "m2", token, named(robot.UserName, "system:masters"))
	}, refused)
	names("")
	waitForbidden(t, "it is refused again",
		func() error { return lists(t, "m2", "", robot) }, "a system user of Kubernetes")
	waitForbidden(t, "also by the member", func() error { return lists(t, "m2", token, named(robot.UserName)) }, refused)
}
