package propagate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// decision returns a Decision in words: "claim low→high, Make, release".
func decision(d propagate.Decision) string {
	var words []string
	add := func(there bool, format string, args ...any) {
		if there {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	name := func(p policyv1alpha1.Propagation) string {
		if p == nil {
			return ""
		}
		return p.GetName()
	}
	add(d.Claimed != nil, "claim %s→%s", name(d.Preempted), name(d.Policy))
	add(d.Claimed == nil && d.Policy != nil, "keep %s", name(d.Policy))
	add(d.Action != propagate.KeepBinding, "%s", d.Action)
	add(d.Released != nil, "release")
	add(d.Pending != nil, "%s waits for %v", name(d.Pending), d.MissingOverrides)
	return strings.Join(words, ", ")
}

func TestDecide(t *testing.T) {
	low, high := identified(policy("shop", "low", 1, deployments), "id-low"),
		identified(policy("shop", "high", 5, deployments), "id-high")
	taker := identified(policy("shop", "taker", 5, deployments), "id-taker")
	taker.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways
	dependent := identified(policy("shop", "dependent", 9, deployments), "id-dependent")
	dependent.PropagationSpec().DependentOverrides = []string{"there", "missing"}
	dependentTaker := dependent.DeepCopyObject().(policyv1alpha1.Propagation)
	dependentTaker.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways
	lazy := identified(policy("shop", "lazy", 1, deployments), "id-lazy")
	lazy.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation
	lazy.PropagationSpec().PropagateDeps = true
	going := low.DeepCopyObject().(policyv1alpha1.Propagation)
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	nameless := policy("shop", "without-id", 9, deployments)

	claimed := func(p policyv1alpha1.Propagation) *unstructured.Unstructured {
		u := template("shop", "web")
		propagate.Claim(u, p)
		return u
	}
	edited := func(u *unstructured.Unstructured, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u = u.DeepCopy()
		edit(u)
		return u
	}
	waiting := edited(claimed(lazy), func(u *unstructured.Unstructured) { propagate.Await(u, lazy) })
	scaled := func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"replicas": int64(9)} }
	labelled := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{policyv1alpha1.ClaimedByLabel: "MultiClusterService"})
	}
	deleted := func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }
	binding := func(p policyv1alpha1.Propagation) workv1alpha2.Binding {
		return bind(t, claimed(p), p, meaning, nil)
	}
	all := func(ps ...policyv1alpha1.Propagation) []policyv1alpha1.Propagation { return ps }

	for name, c := range map[string]struct {
		observed propagate.Observed
		want     string
	}{
		"no policy selects it": {propagate.Observed{Template: template("shop", "web")}, ""},
		"the highest policy claims": {propagate.Observed{Template: template("shop", "web"), Policies: all(low, high)},
			"claim →high, Make"},
		"a policy without an id claims nothing": {propagate.Observed{Template: template("shop", "web"),
			Policies: all(low, nameless)},
			"claim →low, Make"},
		"a claim stays": {propagate.Observed{Template: claimed(low), Policies: all(low, high), Binding: binding(low)},
			"keep low, Make"},
		"a claim is preempted": {propagate.Observed{Template: claimed(low), Policies: all(low, high, taker),
			Binding: binding(low)},
			"claim low→taker, Make"},
		"a deleted policy hands over": {propagate.Observed{Template: claimed(low), Policies: all(going, high),
			Binding: binding(low)},
			"claim →high, Make"},
		"a deleted policy releases": {propagate.Observed{Template: claimed(low), Policies: all(going), Binding: binding(low)},
			"Update, release"},
		"a template that is being deleted keeps its claim": {propagate.Observed{Template: edited(claimed(low), deleted),
			Policies: all(low, taker), Binding: binding(low)},
			"keep low"},
		"a template that is being deleted releases a deleted policy": {propagate.Observed{Template: edited(claimed(low),
			deleted), Policies: all(going, high), Binding: binding(low)},
			"Update, release"},
		"another component manages it": {propagate.Observed{Template: edited(template("shop", "web"), labelled),
			Policies: all(low)}, ""},
		"a MultiClusterService places it": {propagate.Observed{Template: template("shop", "web"), Policies: all(low),
			Exposed: true},
			""},
		"the namespace is excluded": {propagate.Observed{Template: template("kube-system", "web"),
			Policies: all(identified(policy("", "all", 0, deployments), "id"))}, ""},
		"override policies are missing": {propagate.Observed{Template: template("shop", "web"),
			Policies: all(low, dependent)},
			"dependent waits for [missing]"},
		"override policies are missing to preempt": {propagate.Observed{Template: claimed(low),
			Policies: all(low, dependentTaker), Binding: binding(low)},
			"keep low, Make, dependent waits for [missing]"},
		"override policies are missing after admission claimed": {propagate.Observed{Template: claimed(dependent),
			Policies: all(dependent)},
			"keep dependent, dependent waits for [missing]"},
		"override policies went after the binding was made": {propagate.Observed{Template: claimed(dependent),
			Policies: all(dependent), Binding: binding(dependent)},
			"keep dependent, Make"},
		"the binding is that of a deleted template": {propagate.Observed{Policies: all(low), Binding: binding(low),
			Template: edited(template("shop", "web"), func(u *unstructured.Unstructured) { u.SetUID("another") })}, "Delete"},
		"a Lazy policy claims at creation": {propagate.Observed{Template: template("shop", "web"), Policies: all(lazy),
			Creating: true},
			"claim →lazy, Make"},
		"a Lazy policy claims after creation": {propagate.Observed{Template: template("shop", "web"), Policies: all(lazy)},
			"claim →lazy, lazy waits for []"},
		"a Lazy policy claims, and the binding stays": {propagate.Observed{Template: claimed(low), Policies: all(going, lazy),
			Binding: binding(low)},
			"claim →lazy, Update, lazy waits for []"},
		"a Lazy policy waits": {propagate.Observed{Template: waiting, Policies: all(lazy), Binding: binding(low)},
			"keep lazy, Update, lazy waits for []"},
		"a Lazy policy takes effect": {propagate.Observed{Template: edited(waiting, scaled), Policies: all(lazy),
			Binding: binding(low)},
			"keep lazy, Make, release"},
		"a record without data is no change": {propagate.Observed{Template: edited(waiting, scaled), Policies: all(lazy),
			Binding: binding(low), Unchanged: true},
			"keep lazy, Update, lazy waits for []"},
	} {
		c.observed.OverrideExists = func(key types.NamespacedName) bool {
			return key == types.NamespacedName{Namespace: "shop", Name: "there"}
		}
		before := c.observed.Template.DeepCopy()
		for range 2 { // the order of policies does not matter
			d := propagate.Decide(c.observed)
			if got := decision(d); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
			if d.Claimed != nil && !propagate.ClaimedBy(d.Claimed, propagate.ClaimOf(d.Policy)) {
				t.Errorf("%s: the claim is %v", name, d.Claimed.GetAnnotations())
			}
			if d.Action == propagate.UpdateBinding && d.Policy != nil &&
				!propagate.ClaimedBy(d.Binding, propagate.ClaimOf(d.Policy)) {
				t.Errorf("%s: the binding is claimed by %v", name, d.Binding.GetAnnotations())
			}
			for what, obj := range map[string]metav1.Object{"template": d.Released, "binding": d.Binding} {
				if d.Policy == nil && d.Released != nil && obj != nil && !propagate.ClaimedBy(obj, propagate.PolicyClaim{}) {
					t.Errorf("%s: the %s keeps a claim", name, what)
				}
			}
			slices.Reverse(c.observed.Policies)
		}
		if fmt.Sprint(before) != fmt.Sprint(c.observed.Template) {
			t.Errorf("%s: the template that was observed has changed", name)
		}
	}
}
