package membership

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func TestTaintsFollowReady(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(key string, effect corev1.TaintEffect, added time.Time) corev1.Taint {
		taint := corev1.Taint{Key: key, Effect: effect}
		if !added.IsZero() {
			taint.TimeAdded = &metav1.Time{Time: added}
		}
		return taint
	}
	pair := func(key string, added time.Time) []corev1.Taint {
		return []corev1.Taint{at(key, corev1.TaintEffectNoSchedule, time.Time{}), at(key, corev1.TaintEffectNoExecute, added)}
	}
	earlier := now.Add(-time.Minute)
	const notReady, unreachable = clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable
	cordon := []corev1.Taint{at(clusterv1alpha1.TaintUnschedulable, corev1.TaintEffectNoSchedule, time.Time{})}
	drain := []corev1.Taint{at("maintenance", corev1.TaintEffectNoExecute, earlier)}
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		ready  metav1.ConditionStatus
		want   []corev1.Taint
	}{
		"nothing is known yet":             {nil, "", nil},
		"ready and cordoned":               {cordon, "True", cordon},
		"not ready":                        {cordon, "False", slices.Concat(cordon, pair(notReady, now))},
		"still not ready":                  {pair(notReady, earlier), "False", pair(notReady, earlier)},
		"unreachable":                      {nil, "Unknown", pair(unreachable, now)},
		"unreachable, then not ready":      {pair(unreachable, earlier), "False", pair(notReady, earlier)},
		"ready again":                      {slices.Concat(pair(notReady, earlier), drain), "True", drain},
		"tainted by an older hub":          {pair(notReady, earlier)[:1], "False", pair(notReady, now)},
		"a NoExecute taint without a time": {pair(notReady, time.Time{}), "False", pair(notReady, now)},
		"set by hand while ready":          {pair(notReady, earlier)[1:], "True", nil},
		"set by hand before the outage": {pair(notReady, earlier)[1:], "False",
			[]corev1.Taint{pair(notReady, earlier)[1], pair(notReady, now)[0]}},
	} {
		t.Run(name, func(t *testing.T) {
			var ready *metav1.Condition
			if tc.ready != "" {
				ready = &metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: tc.ready}
			}
			before := slices.Clone(tc.taints)
			got, changed := Taints(tc.taints, ready, now)
			if !equalTaints(got, tc.want) || changed != !equalTaints(before, tc.want) {
				t.Fatalf("got %v (changed %t), want %v", got, changed, tc.want)
			}
			if again, changed := Taints(got, ready, now.Add(time.Hour)); changed || !equalTaints(again, got) {
				t.Errorf("a second run changed %v to %v", got, again)
			}
		})
	}
}

func equalTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool {
		return x.MatchTaint(&y) && x.Value == y.Value && x.TimeAdded.Equal(y.TimeAdded)
	})
}

func TestTolerationEndsAfterTimeAdded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	added := now.Add(-time.Hour)
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect, TimeAdded: &metav1.Time{Time: added}}
	}
	drain, disk := taint("drain", corev1.TaintEffectNoExecute), taint("disk", corev1.TaintEffectNoExecute)
	young := drain
	young.TimeAdded = nil
	lasts := func(key string, seconds ...int64) corev1.Toleration {
		out := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
		if len(seconds) > 0 {
			out.TolerationSeconds = &seconds[0]
		}
		return out
	}
	type taints = []corev1.Taint
	type list = []corev1.Toleration
	for name, tc := range map[string]struct {
		taints      taints
		tolerations list
		first       string
		until       time.Time
	}{
		"no taint":                        {nil, nil, "", time.Time{}},
		"NoSchedule ends nothing":         {taints{taint("drain", corev1.TaintEffectNoSchedule)}, nil, "", time.Time{}},
		"nothing tolerates it":            {taints{drain}, nil, "drain", added},
		"tolerated for ever":              {taints{drain}, list{lasts("drain")}, "", time.Time{}},
		"tolerated for a time":            {taints{drain}, list{lasts("drain", 60)}, "drain", added.Add(time.Minute)},
		"tolerated for no time":           {taints{drain}, list{lasts("drain", 0)}, "drain", added},
		"tolerated for less than no time": {taints{drain}, list{lasts("drain", -5)}, "drain", added},
		"the longest toleration counts": {taints{drain}, list{lasts("drain", 60), lasts("", 120)}, "drain",
			added.Add(2 * time.Minute)},
		"the shortest taint counts": {taints{drain, disk}, list{lasts("drain", 60), lasts("disk", 30)}, "disk",
			added.Add(30 * time.Second)},
		"one of two is tolerated": {taints{drain, disk}, list{lasts("drain")}, "disk", added},
		"a taint without a time":  {taints{young}, list{lasts("drain", 60)}, "drain", now.Add(time.Minute)},
		"more seconds than a time holds": {taints{drain, disk}, list{lasts("drain", 1<<62), lasts("disk", 60)}, "disk",
			added.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			first, until, limited := ToleratedUntil(tc.taints, tc.tolerations, now)
			if limited != (tc.first != "") || first.Key != tc.first || !until.Equal(tc.until) {
				t.Errorf("got %q until %v, want %q until %v", first.Key, until, tc.first, tc.until)
			}
		})
	}
}

func TestDefaultTolerationsFillMissingOnes(t *testing.T) {
	d := TolerationDefaults{NotReady: 300, Unreachable: 60}
	const notReady, unreachable = clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable
	type list = []corev1.Toleration
	for name, tc := range map[string]struct {
		given list
		added []string
	}{
		"none": {nil, []string{notReady, unreachable}},
		"another taint": {list{{Key: "gpu", Operator: corev1.TolerationOpExists}},
			[]string{notReady, unreachable}},
		"one of the two": {list{{Key: notReady, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute}}, []string{unreachable}},
		"only for NoSchedule": {list{{Key: notReady, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}}, []string{notReady, unreachable}},
		"all taints":                     {list{{Operator: corev1.TolerationOpExists}}, nil},
		"a value that the taint has not": {list{{Key: notReady, Value: "x"}}, []string{notReady, unreachable}},
	} {
		t.Run(name, func(t *testing.T) {
			backing := append(make(list, 0, 8), tc.given...)
			all := d.WithDefaults(backing)
			var added []string
			for _, toleration := range all[len(tc.given):] {
				added = append(added, toleration.Key)
				if !OnlyDelaysFailover(toleration) {
					t.Errorf("%v does more than to delay a failover", toleration)
				}
			}
			if !slices.Equal(added, tc.added) {
				t.Errorf("added %v, want %v", added, tc.added)
			}
			if again := d.WithDefaults(all); len(again) != len(all) {
				t.Errorf("a second run added to %v: %v", all, again)
			}
			if backing := backing[:cap(backing)]; len(added) > 0 && backing[len(tc.given)].Key != "" {
				t.Error("the given slice was written to")
			}
		})
	}
	if all := d.WithDefaults(nil); *all[0].TolerationSeconds != 300 || *all[1].TolerationSeconds != 60 {
		t.Errorf("the seconds of %v are not the defaults", all)
	}
}
