package klusterlet

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// managed returns a ManagedCluster with a lease interval in seconds, and changes.
func managed(seconds int32, changes ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"},
		Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: seconds}}
	for _, change := range changes {
		change(mc)
	}
	return mc
}

func deleted(mc *clusterv1.ManagedCluster) { mc.DeletionTimestamp = &metav1.Time{Time: now} }

func available(status metav1.ConditionStatus) func(*clusterv1.ManagedCluster) {
	return func(mc *clusterv1.ManagedCluster) {
		mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailable, Status: status}}
	}
}

// renewedBefore returns a Lease that was renewed some time ago.
func renewedBefore(ago time.Duration) *coordinationv1.Lease { return LeaseOf("eu", now.Add(-ago)) }

func TestKlusterletsAreSilentAfterFiveIntervals(t *testing.T) {
	const limit, tick = 5 * time.Minute, time.Nanosecond
	old := renewedBefore(24 * time.Hour)
	for story, tc := range map[string]struct {
		mc     *clusterv1.ManagedCluster
		lease  *coordinationv1.Lease
		seen   time.Duration // since the hub saw the renewal, or since it began to lead
		silent bool
		next   time.Duration
	}{
		"renewed just now":                    {managed(60), renewedBefore(0), 0, false, limit},
		"just before the end":                 {managed(60), renewedBefore(limit - tick), limit - tick, false, tick},
		"at the end":                          {managed(60), renewedBefore(limit), limit, true, 0},
		"after the end":                       {managed(60), renewedBefore(limit + tick), limit + tick, true, 0},
		"no interval means 60 s":              {managed(0), renewedBefore(0), 4 * time.Minute, false, time.Minute},
		"a negative interval means 60 s":      {managed(-1), renewedBefore(0), 4 * time.Minute, false, time.Minute},
		"a short interval":                    {managed(1), renewedBefore(0), 4 * time.Second, false, time.Second},
		"a short interval ended":              {managed(1), renewedBefore(0), 5 * time.Second, true, 0},
		"the hub restarted a second ago":      {managed(60), old, time.Second, false, limit - time.Second},
		"just before the end after a restart": {managed(60), old, limit - tick, false, tick},
		"at the end after a restart":          {managed(60), old, limit, true, 0},
		"a clock that is a day slow":          {managed(60), old, time.Minute, false, 4 * time.Minute},
		"a clock that is an hour fast":        {managed(60), renewedBefore(-time.Hour), limit, true, 0},
		"no Lease yet":                        {managed(60), nil, time.Minute, false, 4 * time.Minute},
		"the Lease is gone":                   {managed(60), nil, limit, true, 0},
		"never renewed":                       {managed(60), &coordinationv1.Lease{}, time.Minute, false, 4 * time.Minute},
		"deleted without a Lease":             {managed(60, deleted), nil, 0, true, 0},
		"deleted, and it renews":              {managed(60, deleted), renewedBefore(0), time.Minute, false, 4 * time.Minute},
		"deleted, and silent":                 {managed(60, deleted), old, limit, true, 0},
	} {
		silent, next := Silent(tc.mc, tc.lease, now.Add(-tc.seen), now)
		if silent != tc.silent || next != tc.next {
			t.Errorf("%s: silent %t, next %v, want %t, %v", story, silent, next, tc.silent, tc.next)
		}
	}
	if silent, next := Silent(managed(math.MaxInt32), old, now.Add(-24*time.Hour), now); silent || next <= 0 {
		t.Errorf("the longest interval: silent %t, next %v", silent, next)
	}
}

func TestLeaseStartsRenewed(t *testing.T) {
	l := LeaseOf("eu", now)
	if l.Namespace != "eu" || l.Name != "managed-cluster-lease" || *l.Spec.HolderIdentity != "managed-cluster-lease" ||
		!l.Spec.RenewTime.Time.Equal(now) || l.Labels[clusterv1.ClusterNameLabel] != "eu" {
		t.Errorf("the Lease is %+v", l)
	}
}

func TestSilenceHasTheTextThatToolsKnow(t *testing.T) {
	want := metav1.Condition{Type: "ManagedClusterConditionAvailable", Status: "Unknown",
		Reason: "ManagedClusterLeaseUpdateStopped", Message: "Registration agent stopped updating its lease.",
		LastTransitionTime: metav1.NewTime(now)}
	if got := Unavailability(now); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestClocksMayDifferByLessThanFiveIntervals(t *testing.T) {
	skip := func(value string) func(*clusterv1.ManagedCluster) {
		return func(mc *clusterv1.ManagedCluster) {
			mc.Annotations = map[string]string{"registration.open-cluster-management.io/skip-clock-sync-check": value}
		}
	}
	const limit = 5 * time.Minute
	for story, tc := range map[string]struct {
		mc     *clusterv1.ManagedCluster
		behind time.Duration
		synced bool
	}{
		"the same time":                {managed(60), 0, true},
		"a little behind":              {managed(60), limit - time.Microsecond, true},
		"behind":                       {managed(60), limit, false},
		"a little ahead":               {managed(60), -limit + time.Microsecond, true},
		"ahead":                        {managed(60), -limit, false},
		"a short interval":             {managed(1), 5 * time.Second, false},
		"no interval means 60 s":       {managed(0), limit - time.Second, true},
		"behind, but not checked":      {managed(60, skip("true")), time.Hour, true},
		"behind, and another value":    {managed(60, skip("false")), time.Hour, false},
		"behind by more than possible": {managed(60), math.MaxInt64, false},
	} {
		got := Clock(tc.mc, renewedBefore(tc.behind), now)
		want := metav1.Condition{Type: "ManagedClusterConditionClockSynced", Status: "True",
			Reason: "ManagedClusterClockSynced", Message: "The clock of the managed cluster is synced with the hub.",
			LastTransitionTime: metav1.NewTime(now)}
		if !tc.synced {
			want.Status, want.Reason = "False", "ManagedClusterClockOutOfSync"
			want.Message = "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent " +
				"functionalities."
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", story, got, want)
		}
	}
	if got := Clock(managed(60), &coordinationv1.Lease{}, now); got.Status != metav1.ConditionTrue {
		t.Errorf("a Lease without a renewal: %+v", got)
	}
}

// described returns taints as "key=value:effect", with * for those that are added now.
func described(taints []clusterv1.Taint) string {
	var all []string
	for _, t := range taints {
		_, key, ok := strings.Cut(t.Key, "cluster.open-cluster-management.io/")
		if !ok {
			key = t.Key
		}
		text := fmt.Sprintf("%s=%s:%s", key, t.Value, t.Effect)
		if t.TimeAdded.Time.Equal(now) {
			text += "*"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestTaintsFollowTheAvailability(t *testing.T) {
	before := metav1.NewTime(now.Add(-time.Hour))
	taint := func(key, value string, effect clusterv1.TaintEffect) clusterv1.Taint {
		return clusterv1.Taint{Key: key, Value: value, Effect: effect, TimeAdded: before}
	}
	own := []clusterv1.Taint{taint("gpu", "a", clusterv1.NoSelect), taint("dedicated", "", clusterv1.NoSelectIfNew)}
	unreachable := taint(clusterv1.TaintUnreachable, "", clusterv1.NoSelect)
	unavailable := taint(clusterv1.TaintUnavailable, "", clusterv1.NoSelect)
	users := taint(clusterv1.TaintUnreachable, "", clusterv1.NoSelectIfNew)
	with := func(taints ...clusterv1.Taint) func(*clusterv1.ManagedCluster) {
		return func(mc *clusterv1.ManagedCluster) { mc.Spec.Taints = taints }
	}
	const kept = "gpu=a:NoSelect dedicated=:NoSelectIfNew"
	for story, tc := range map[string]struct {
		mc   *clusterv1.ManagedCluster
		want string
	}{
		"it never reported":        {managed(60), "unreachable=:NoSelect*"},
		"it is silent":             {managed(60, available("Unknown"), with(own...)), kept + " unreachable=:NoSelect*"},
		"it is silent, as known":   {managed(60, available("Unknown"), with(unreachable)), "unreachable=:NoSelect"},
		"it is not available":      {managed(60, available("False"), with(own...)), kept + " unavailable=:NoSelect*"},
		"from silent to unavail":   {managed(60, available("False"), with(unreachable)), "unavailable=:NoSelect*"},
		"from unavailable to loss": {managed(60, available("Unknown"), with(unavailable)), "unreachable=:NoSelect*"},
		"it is back":               {managed(60, available("True"), with(own[0], unreachable, own[1])), kept},
		"it is back, with both":    {managed(60, available("True"), with(unreachable, unavailable)), ""},
		"it was always there":      {managed(60, available("True"), with(own...)), kept},
		"the order stays": {managed(60, available("Unknown"), with(own[0], unreachable, own[1])),
			"gpu=a:NoSelect unreachable=:NoSelect dedicated=:NoSelectIfNew"},
		"it is there twice":     {managed(60, available("Unknown"), with(unreachable, unreachable)), "unreachable=:NoSelect"},
		"a user's with the key": {managed(60, available("True"), with(users)), "unreachable=:NoSelectIfNew"},
		"a user's is not the hub's": {managed(60, available("Unknown"), with(users)),
			"unreachable=:NoSelectIfNew unreachable=:NoSelect*"},
		"it is deleted, and silent": {managed(60, deleted, available("Unknown"), with(own...)), kept},
		"it is deleted, and back":   {managed(60, deleted, available("True"), with(unreachable)), "unreachable=:NoSelect"},
	} {
		was := described(tc.mc.Spec.Taints)
		if got := described(Taints(tc.mc, now)); got != tc.want {
			t.Errorf("%s: %s, want %s", story, got, tc.want)
		}
		if is := described(tc.mc.Spec.Taints); is != was {
			t.Errorf("%s: the ManagedCluster itself changed from %s to %s", story, was, is)
		}
	}
}
