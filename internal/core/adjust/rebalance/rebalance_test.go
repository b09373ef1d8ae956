package rebalance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var (
	created = time.Unix(1000, 0)
	now     = metav1.NewTime(time.Unix(2000, 0))
)

// deployment returns a Deployment of the namespace shop.
func deployment(name string) appsv1alpha1.ObjectReference {
	return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

// rebalancer names Deployments.
func rebalancer(names ...string) *appsv1alpha1.WorkloadRebalancer {
	r := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Generation: 3,
		CreationTimestamp: metav1.NewTime(created)}}
	for _, n := range names {
		r.Spec.Workloads = append(r.Spec.Workloads, deployment(n))
	}
	return r
}

// observed sets the status: "a+ b- c" is a rebalanced, b missing, c without a result.
func observed(r *appsv1alpha1.WorkloadRebalancer, text string, finish *metav1.Time) *appsv1alpha1.WorkloadRebalancer {
	for _, s := range strings.Fields(text) {
		o := appsv1alpha1.ObservedWorkload{Workload: deployment(strings.TrimRight(s, "+-"))}
		switch s[len(s)-1] {
		case '+':
			o.Result = appsv1alpha1.RebalanceSuccessful
		case '-':
			o.Result, o.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
		}
		r.Status.ObservedWorkloads = append(r.Status.ObservedWorkloads, o)
	}
	r.Status.FinishTime = finish
	return r
}

// show is the inverse of observed.
func show(s appsv1alpha1.WorkloadRebalancerStatus) string {
	var out []string
	for _, o := range s.ObservedWorkloads {
		mark := "?" + string(o.Result) + string(o.Reason)
		switch {
		case o.Result == "" && o.Reason == "":
			mark = ""
		case o.Result == "Successful" && o.Reason == "":
			mark = "+"
		case o.Result == "Failed" && o.Reason == "ReferencedBindingNotFound":
			mark = "-"
		}
		out = append(out, o.Workload.Name+mark)
	}
	return strings.Join(out, " ")
}

func TestStatusFollowsSpecAndBindings(t *testing.T) {
	earlier := metav1.NewTime(time.Unix(1500, 0))
	for name, c := range map[string]struct {
		spec, was string
		finish    *metav1.Time
		found     string // as observed: "a+" was found, "b-" was not, others were not looked at
		pending   string
		want      string
		wantAt    *metav1.Time
	}{
		"all are found": {spec: "b a", found: "a+ b+", pending: "a b", want: "a+ b+", wantAt: &now},
		"a missing one is a result, too": {
			spec: "a b", found: "a- b+", pending: "a b", want: "a- b+", wantAt: &now},
		"one that could not be asked has none": {
			spec: "a b", found: "b+", pending: "a b", want: "a b+"},
		"... until it could": {
			spec: "a b", was: "a b+", found: "a+", pending: "a", want: "a+ b+", wantAt: &now},
		"nothing new leaves the time alone": {
			spec: "a b", was: "a- b+", finish: &earlier, found: "a-", pending: "a", want: "a- b+", wantAt: &earlier},
		"a missing one that appears ends it anew": {
			spec: "a b", was: "a- b+", finish: &earlier, found: "a+", pending: "a", want: "a+ b+", wantAt: &now},
		"one that is added": {
			spec: "a b c", was: "a+ c+", finish: &earlier, found: "b+", pending: "b", want: "a+ b+ c+", wantAt: &now},
		"one that is added and could not be asked opens it": {
			spec: "a b", was: "a+", finish: &earlier, pending: "b", want: "a+ b"},
		"one that is dropped stays if it was rebalanced": {
			spec: "c", was: "a+ b- c+", finish: &earlier, want: "a+ c+", wantAt: &earlier},
		"... and counts when it comes back": {
			spec: "c a", was: "a+ c+", finish: &earlier, want: "a+ c+", wantAt: &earlier},
		"another order": {spec: "b a", was: "a+ b+", finish: &earlier, want: "a+ b+", wantAt: &earlier},
		"named twice":   {spec: "a a", found: "a+", pending: "a", want: "a+", wantAt: &now},
	} {
		t.Run(name, func(t *testing.T) {
			r := observed(rebalancer(strings.Fields(c.spec)...), c.was, c.finish)
			before := r.DeepCopy()
			var pending []string
			for _, w := range Pending(r) {
				pending = append(pending, w.Name)
			}
			if got := strings.Join(pending, " "); got != c.pending {
				t.Errorf("pending are %q, want %q", got, c.pending)
			}
			found := map[appsv1alpha1.ObjectReference]bool{}
			for _, s := range strings.Fields(c.found) {
				found[deployment(s[:len(s)-1])] = strings.HasSuffix(s, "+")
			}
			got := Observe(r, found, now)
			if show(got) != c.want || !got.FinishTime.Equal(c.wantAt) || got.ObservedGeneration != 3 {
				t.Errorf("the status is %q of generation %d, finished at %v; want %q at %v", show(got), got.ObservedGeneration,
					got.FinishTime, c.want, c.wantAt)
			}
			result := appsv1alpha1.RebalanceSuccessful
			switch {
			case c.wantAt == nil:
				result = ""
			case strings.Contains(c.want, "-"):
				result = appsv1alpha1.RebalanceFailed
			}
			if got.Result != result {
				t.Errorf("the result of %q is %q, want %q", c.want, got.Result, result)
			}
			if fmt.Sprint(r) != fmt.Sprint(before) {
				t.Errorf("the argument was changed")
			}
		})
	}
}

func TestTheStatusIsSortedByVersionKindNamespaceAndName(t *testing.T) {
	sorted := []appsv1alpha1.ObjectReference{
		{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Namespace: "a", Name: "a"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "b"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "b", Name: "a"},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "a", Name: "a"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "a"},
	}
	r := rebalancer()
	r.Spec.Workloads = slices.Clone(sorted)
	slices.Reverse(r.Spec.Workloads)
	for i, o := range Observe(r, nil, now).ObservedWorkloads {
		if o.Workload != sorted[i] {
			t.Errorf("entry %d is %v, want %v", i, o.Workload, sorted[i])
		}
	}
}

func TestABindingIsAskedAsOfTheRebalancersCreation(t *testing.T) {
	at := func(seconds int64) *metav1.Time { t := metav1.NewTime(time.Unix(seconds, 0)); return &t }
	for name, c := range map[string]struct {
		workload appsv1alpha1.ObjectReference
		change   func(*workv1alpha2.ResourceBinding)
		want     *metav1.Time // nil: not found
	}{
		"one never asked": {deployment("web"), nil, at(1000)},
		"one asked before": {deployment("web"),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = at(999) }, at(1000)},
		"one asked at the same moment": {deployment("web"),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = at(1000) }, at(1000)},
		"one asked since": {deployment("web"),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = at(1001) }, at(1001)},
		"of another version": {appsv1alpha1.ObjectReference{APIVersion: "apps/v1beta2", Kind: "Deployment",
			Namespace: "shop", Name: "web"}, nil, at(1000)},
		"of another group": {appsv1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Deployment",
			Namespace: "shop", Name: "web"}, nil, nil},
		"of a name that reads the same": {deployment("Web"), nil, nil},
		"one on its way out": {deployment("web"),
			func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = at(5) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
				Name: "web"}
			if c.change != nil {
				c.change(b)
			}
			before := b.DeepCopy()
			got, found := Trigger(rebalancer("web"), c.workload, b)
			if found != (c.want != nil) || found && !got.BindingSpec().RescheduleTriggeredAt.Equal(c.want) {
				t.Errorf("found is %t, the binding %v; want it asked at %v", found, got, c.want)
			}
			if fmt.Sprint(b) != fmt.Sprint(before) {
				t.Errorf("the argument was changed")
			}
		})
	}
	if _, found := Trigger(rebalancer("web"), deployment("web"), nil); found {
		t.Errorf("no binding is found")
	}
}

// Clients compare the request with the creation of the rebalancer, as Karmada's end-to-end suite does.
func TestRequestIsServedOnceWhateverTheLastRunWas(t *testing.T) {
	w := deployment("web")
	for name, c := range map[string]struct {
		made, scheduled, created int64 // scheduled 0: not confirmed yet
		served                   bool  // the placement is as the rebalancer wants it already
	}{
		"a run before the rebalancer":            {10, 999, 1_000, false},
		"a run in its second":                    {10, 1_000, 1_000, false},
		"a run before the request was seen":      {10, 1_030, 1_000, false},
		"not confirmed, made before":             {999, 0, 1_000, false},
		"not confirmed, made in its second":      {1_000, 0, 1_000, false},
		"not confirmed, made after":              {1_001, 0, 1_000, true},
		"made after, and scheduled":              {1_001, 1_030, 1_000, true},
		"made in its second, scheduled later on": {1_000, 1_030, 1_000, false},
	} {
		b := &workv1alpha2.ResourceBinding{}
		b.CreationTimestamp = metav1.Unix(c.made, 0)
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: w.Namespace,
			Name: w.Name}
		b.Spec.Placement = &policyv1alpha1.Placement{}
		schedule.Result{}.Apply(b, nil)
		if c.scheduled > 0 {
			schedule.Confirm(b, schedule.Confirmation{Ran: true}, metav1.Unix(c.scheduled, 0))
		}
		r := &appsv1alpha1.WorkloadRebalancer{}
		r.CreationTimestamp = metav1.Unix(c.created, 0)
		asked, found := Trigger(r, w, b)
		if !found || !asked.BindingSpec().RescheduleTriggeredAt.Equal(&r.CreationTimestamp) {
			t.Errorf("%s: found %t, asked at %v, want %v", name, found, asked.BindingSpec().RescheduleTriggeredAt,
				r.CreationTimestamp)
			continue
		}
		if again, _ := Trigger(r, w, asked); again != asked {
			t.Errorf("%s: it asks twice", name)
		}
		if reason, _ := schedule.Due(asked, schedule.Snapshot{}); (reason == schedule.RescheduleAsked) == c.served {
			t.Errorf("%s: the scheduler runs because %q", name, reason)
		}
		schedule.Result{}.Apply(asked, nil)
		schedule.Confirm(asked, schedule.Confirmation{Ran: true}, metav1.Unix(1_031, 0))
		if reason, _ := schedule.Due(asked, schedule.Snapshot{}); reason == schedule.RescheduleAsked {
			t.Errorf("%s: it is served twice", name)
		}
	}
}

func TestRebalancerTTL(t *testing.T) {
	finish := metav1.NewTime(time.Unix(1990, 0))
	for name, c := range map[string]struct {
		ttl    *int32
		finish *metav1.Time
		stale  bool
		want   time.Duration
		ends   bool
	}{
		"without a time to live it stays":        {nil, &finish, false, 0, false},
		"unfinished it stays":                    {new(int32(0)), nil, false, 0, false},
		"a status of an older spec says nothing": {new(int32(0)), &finish, true, 0, false},
		"0 is at once":                           {new(int32(0)), &finish, false, 0, true},
		"some is left":                           {new(int32(30)), &finish, false, 20 * time.Second, true},
		"none is left":                           {new(int32(10)), &finish, false, 0, true},
		"what should have been gone long ago":    {new(int32(1)), &finish, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := observed(rebalancer("a"), "a+", c.finish)
			r.Spec.TTLSecondsAfterFinished = c.ttl
			if r.Status.ObservedGeneration = r.Generation; c.stale {
				r.Status.ObservedGeneration--
			}
			if got, ends := Remaining(r, now.Time); got != c.want || ends != c.ends {
				t.Errorf("it is kept for %v, ends %t; want %v, %t", got, ends, c.want, c.ends)
			}
		})
	}
}
