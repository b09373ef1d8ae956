package release_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// account is a service account as a user.
func account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }

func TestAnApprovalIsThatOfAnotherPerson(t *testing.T) {
	const everything = "* *"
	deployer, robot := account("shop", "deployer"), account("shop", "robot")
	token := func(who, of string) string {
		return who + ` may create serviceaccounts/token "` + of + `" in the namespace "shop"`
	}
	for _, c := range []struct {
		what, author, by string
		// may are the rights, each as "USER may RIGHT".
		may      []string
		approved []string
		hub      bool
		want     string // the refusal; empty for none
	}{
		{what: "two users", author: "alice", by: "bob"},
		{what: "a service account released", author: deployer, by: "bob"},
		{what: "the approver creates tokens of the author", author: deployer, by: "bob",
			may: []string{token("bob", "deployer")},
			want: deployer + ` created the release: bob may create serviceaccounts/token "deployer" in the namespace "shop", ` +
				`and so act as ` + deployer + `: a user without such a right must approve it`},
		{what: "the approver creates tokens of another service account", author: deployer, by: "bob",
			may: []string{token("bob", "other")}},
		{what: "the approver impersonates the author", author: deployer, by: "bob",
			may:  []string{`bob may impersonate serviceaccounts "deployer" in the namespace "shop"`},
			want: "bob may impersonate"},
		{what: "the approver impersonates the author for some requests", author: deployer, by: "bob",
			may:  []string{`bob may impersonate:serviceaccount serviceaccounts "deployer" in the namespace "shop"`},
			want: "bob may impersonate:serviceaccount"},
		{what: "the approver has the hub write a token", author: deployer, by: "bob",
			may:  []string{`bob may create secrets in the namespace "shop"`},
			want: `bob may create secrets in the namespace "shop"`},
		{what: "the approver gets a token", author: deployer, by: "bob",
			may: []string{`bob may get secrets "deployer-token" in the namespace "shop"`}, want: "bob may get secrets"},
		{what: "the approver lists tokens", author: deployer, by: "bob",
			may: []string{`bob may list secrets "deployer-token" in the namespace "shop"`}, want: "bob may list secrets"},
		{what: "the approver watches tokens", author: deployer, by: "bob",
			may: []string{`bob may watch secrets "deployer-token" in the namespace "shop"`}, want: "bob may watch secrets"},
		{what: "the approver has the hub write a token into a Secret that it fills", author: deployer, by: "bob",
			may: []string{`bob may patch secrets "deployer-token" in the namespace "shop"`}, want: "bob may patch secrets"},
		{what: "the approver updates a token", author: deployer, by: "bob",
			may: []string{`bob may update secrets "deployer-token" in the namespace "shop"`}, want: "bob may update secrets"},
		{what: "the approver gives itself any right", author: deployer, by: "bob",
			may: []string{`bob may escalate roles in the namespace "shop"`}, want: "bob may escalate roles"},
		{what: "the approver binds any role", author: deployer, by: "bob",
			may: []string{`bob may bind roles in the namespace "shop"`}, want: "bob may bind roles"},
		{what: "the approver binds any cluster role", author: deployer, by: "bob",
			may: []string{`bob may bind clusterroles in the namespace "shop"`}, want: "bob may bind clusterroles"},
		{what: "the approver approves certificates of all Kubernetes signers", author: deployer, by: "bob",
			may: []string{`bob may approve signers "kubernetes.io/*"`}, want: "bob may approve signers"},
		{what: "the approver gets another Secret", author: deployer, by: "bob",
			may: []string{`bob may get secrets "other" in the namespace "shop"`}},
		{what: "the approver approves certificates", author: deployer, by: "bob",
			may: []string{`bob may approve signers "kubernetes.io/kube-apiserver-client"`}, want: "bob may approve signers"},
		{what: "the approver is an administrator, the author a service account", author: deployer, by: "root",
			may: []string{"root may " + everything, token("root", "deployer")}, want: "root may create serviceaccounts/token"},
		{what: "the approver approves certificates for the author", author: "alice", by: "bob",
			may: []string{`bob may approve signers "kubernetes.io/kube-apiserver-client"`}, want: "bob may approve signers"},
		{what: "the approver impersonates a user", author: "alice", by: "bob",
			may: []string{`bob may impersonate users "alice"`}, want: "so act as alice"},
		{what: "the approver impersonates a user for some requests", author: "alice", by: "bob",
			may: []string{`bob may impersonate:user-info users "alice"`}, want: "so act as alice"},
		{what: "the author impersonates the approver", author: "alice", by: "bob",
			may:  []string{`alice may impersonate users "bob"`},
			want: `alice created the release: alice may impersonate users "bob", and so act as bob`},
		{what: "an administrator approves what a user released", author: "alice", by: "root",
			may: []string{"root may " + everything, `root may impersonate users "alice"`}},
		{what: "a user approves what an administrator released", author: "root", by: "alice",
			may: []string{"root may " + everything, `root may impersonate users "alice"`}},
		{what: "the author uses the approver", author: "alice", by: robot, may: []string{token("alice", "robot")},
			want: "alice created the release: alice may create serviceaccounts/token"},
		{what: "an administrator uses the approver", author: "root", by: robot,
			may: []string{"root may " + everything, token("root", "robot")}, want: "root created the release: root may create"},
		{what: "another user uses the approver", author: "alice", by: robot, may: []string{token("carol", "robot")}},
		{what: "two service accounts", author: deployer, by: robot, want: "one person may use it and " + robot},
		{what: "two service accounts of two namespaces", author: deployer, by: account("bank", "robot"),
			want: "a user who is no service account must approve it"},
		{what: "an approver uses another one", author: "carol", by: robot, may: []string{token("bob", "robot")},
			approved: []string{"bob"}, want: "bob has approved: bob may create serviceaccounts/token"},
		{what: "an approver used another one", author: "carol", by: "bob", may: []string{token("bob", "robot")},
			approved: []string{robot}, want: robot + " has approved: bob may create serviceaccounts/token"},
		{what: "two approvers", author: "carol", by: "bob", approved: []string{"alice", "bob"}},
		{what: "service accounts approve twice", author: "carol", by: robot, approved: []string{deployer},
			want: deployer + " has approved, and one person may use it"},
		{what: "a service account approves for the hub", hub: true, by: robot,
			want: "whoever changed the workload may use"},
		{what: "a user approves for the hub", hub: true, by: "bob"},
		{what: "an approver may act as who may have changed the workload", hub: true, by: "bob",
			may: []string{token("bob", "deployer")}, want: deployer + " may update the workloads, so it counts as the author"},
	} {
		rule := &releasev1alpha1.ReleaseApprovalRule{NotAuthor: true, Count: 2}
		r := releaseAtProd(t)
		if r.Spec.CreatedBy = (&releasev1alpha1.ReleaseUser{User: c.author}); c.hub {
			r.Spec.CreatedBy, r.Spec.Trigger = nil, &releasev1alpha1.ReleaseTrigger{}
		}
		a := &releasev1alpha1.ReleaseApproval{}
		a.Namespace, a.Spec.Release, a.Spec.ReleaseUID, a.Spec.Revision = "shop", "r1", "u-1", "rev-2"
		a.Spec.Stage, a.Spec.Attempt, a.Spec.Gate, a.Spec.Verdict = "prod", 2, "sign", releasev1alpha1.VerdictApprove
		var approved []releasev1alpha1.ReleaseApproval
		for _, user := range c.approved {
			b := a.DeepCopy()
			b.Spec.By = &releasev1alpha1.ReleaseUser{User: user}
			approved = append(approved, *b)
		}
		f := release.Rights{
			Has: func(u releasev1alpha1.ReleaseUser, right release.ActRight) bool {
				for _, may := range c.may {
					if may == u.User+" may "+right.String() {
						return true
					}
				}
				return false
			},
			Tokens: func(namespace, name string) []string { return []string{name + "-token"} },
			Updaters: func() []releasev1alpha1.ReleaseUser {
				return []releasev1alpha1.ReleaseUser{{User: deployer}}
			},
		}
		by := releasev1alpha1.ReleaseUser{User: c.by}
		why := release.OnePerson(r, rule, a, by, approved, f)
		if c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.what, why, c.want)
		}
		// Without notAuthor, the author may approve; a gate with one approval counts one user.
		if rule.NotAuthor, rule.Count = false, 1; release.OnePerson(r, rule, a, by, approved, f) != "" {
			t.Errorf("%s: refused at a gate without notAuthor", c.what)
		}
		// Approvals at other gates, of other attempts, and rejections are no approvals at this one.
		rule.Count = 2
		for i := range approved {
			for _, change := range []func(*releasev1alpha1.ReleaseApprovalSpec){
				func(s *releasev1alpha1.ReleaseApprovalSpec) { s.Gate = "other" },
				func(s *releasev1alpha1.ReleaseApprovalSpec) { s.Attempt = 1 },
				func(s *releasev1alpha1.ReleaseApprovalSpec) { s.Position = releasev1alpha1.GateAfter },
				func(s *releasev1alpha1.ReleaseApprovalSpec) { s.Stage = "other" },
				func(s *releasev1alpha1.ReleaseApprovalSpec) { s.Verdict = releasev1alpha1.VerdictReject },
			} {
				b := approved[i].DeepCopy()
				change(&b.Spec)
				if why := release.OnePerson(r, rule, a, by, []releasev1alpha1.ReleaseApproval{*b}, f); why != "" {
					t.Errorf("%s: an approval of something else counts: %s", c.what, why)
				}
			}
		}
	}
	nobody := releasev1alpha1.ReleaseUser{}
	if why := release.OnePerson(&releasev1alpha1.Release{}, nil, nil, nobody, nil, release.Rights{}); why != "" {
		t.Errorf("a gate without a rule refuses: %s", why)
	}
}

func TestAReleaseSaysWhoCannotApprove(t *testing.T) {
	r := releaseAtProd(t)
	r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing, Status: metav1.ConditionFalse,
		Reason: releasev1alpha1.ReasonWaitingForApproval, Message: "gates sign of stage prod"}}
	what, _ := release.Waits(r)
	const want = "alice, who created it, cannot approve, nor can users who may act as such a user"
	if !strings.Contains(what, want) {
		t.Errorf("%q does not say %q", what, want)
	}
	r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{}
	if what, _ = release.Waits(r); !strings.Contains(what, "who may update the workloads cannot approve") {
		t.Errorf("a release that the hub started: %q", what)
	}
	r.Status.Strategy.Stages[1].Before[0].Approval.NotAuthor = false
	what, _ = release.Waits(r)
	if strings.Contains(what, "cannot approve") || !strings.Contains(what, "waits for approval") {
		t.Errorf("without notAuthor: %q", what)
	}
}
