package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"

	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
)

// Facts: ../../../../shared/reference/ocm-hub.md section 9, ocm-api.md section 3.1.
func TestRolloutsAdmitClusters(t *testing.T) {
	now := time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)
	// groups: "a b | NAME: c d" are two groups; sent: "a=Succeeded/5m" has that state for five minutes.
	for story, tc := range map[string]struct {
		strategy, groups, sent, want string
	}{
		"all":               {"{}", "b a | c", "", "b a c"},
		"all, some have it": {"{type: All}", "a b c", "a=Failed/1h b=Sent", "c"},
		"all wait for nothing": {
			"{type: All, all: {minSuccessTime: 1h, maxFailures: 0, progressDeadline: 1m}}",
			"a b", "a=Failed/2m",
			"b",
		},
		"progressive without settings": {"{type: Progressive}", "b a", "", "a b"},
		"two at a time": {
			"{type: Progressive, progressive: {maxConcurrency: 2}}",
			"d c | b a", "",
			"a b; held: maxConcurrency is reached: awaiting a, b",
		},
		"the next": {
			"{type: Progressive, progressive: {maxConcurrency: 2}}",
			"a b c d", "a=Succeeded/0s b=Progressing/1h",
			"c; held: maxConcurrency is reached: awaiting b, c",
		},
		"a share is rounded up": {
			"{type: Progressive, progressive: {maxConcurrency: 30%}}",
			"a b c d", "",
			"a b; held: maxConcurrency is reached: awaiting a, b",
		},
		"a number above that of all": {"{type: Progressive, progressive: {maxConcurrency: 5}}", "a b c d", "", "a b c d"},
		"no number":                  {"{type: Progressive, progressive: {maxConcurrency: 0}}", "a b", "", "a b"},
		"what was sent is awaited": {
			"{type: Progressive, progressive: {maxConcurrency: 1}}",
			"a b", "a=Sent",
			"; held: maxConcurrency is reached: awaiting a",
		},
		"without a deadline": {
			"{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: None}}",
			"a b", "a=Progressing/99h",
			"; held: maxConcurrency is reached: awaiting a",
		},
		"before the deadline": {
			"{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 10m}}",
			"a b", "a=Progressing/4m",
			"; held: maxConcurrency is reached: awaiting a; after 6m0s",
		},
		"after the deadline": {
			"{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 10m}}",
			"a b", "a=Progressing/10m",
			"b",
		},
		"after it without failures": {
			"{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 10m}}",
			"a b", "a=Progressing/10m",
			"; held: maxFailures tolerates 0 failures, and these clusters failed: a",
		},
		"soaking": {
			"{type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 5m}}",
			"a b", "a=Succeeded/2m",
			"; held: maxConcurrency is reached: awaiting a; after 3m0s",
		},
		"soaked": {
			"{type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 5m}}",
			"a b", "a=Succeeded/5m",
			"b",
		},
		"the earliest time": {
			"{type: Progressive, progressive: {maxConcurrency: 2, minSuccessTime: 5m, progressDeadline: 3m}}",
			"a b c", "a=Succeeded/1m b=Progressing/1m",
			"; held: maxConcurrency is reached: awaiting a, b; after 2m0s",
		},
		"a failure": {
			"{type: Progressive, progressive: {maxConcurrency: 2}}",
			"a b c", "a=Failed/1m",
			"; held: maxFailures tolerates 0 failures, and these clusters failed: a",
		},
		"a tolerated failure": {
			"{type: Progressive, progressive: {maxConcurrency: 2, maxFailures: 1}}",
			"a b c", "a=Failed/1m",
			"b; held: maxConcurrency is reached: awaiting a, b",
		},
		"a failed cluster keeps its place until its deadline": {
			"{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 2m}}",
			"a b c", "a=Failed/1m",
			"; held: maxConcurrency is reached: awaiting a; after 1m0s",
		},
		"and then frees it": {
			"{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: 1, progressDeadline: 2m}}",
			"a b c", "a=Failed/2m",
			"b; held: maxConcurrency is reached: awaiting b",
		},
		"a share of failures of all": {
			"{type: Progressive, progressive: {maxFailures: 50%}}",
			"a b c d", "a=Failed/1m b=Failed/1m",
			"c d",
		},
		"more failures than clusters": {
			"{type: Progressive, progressive: {maxFailures: 9}}",
			"a b", "a=Failed/1m",
			"; held: maxFailures tolerates 0 failures, and these clusters failed: a",
		},
		"done":     {"{type: Progressive, progressive: {maxConcurrency: 1}}", "a b", "a=Succeeded/1m b=Failed/1m", ""},
		"by group": {"{type: ProgressivePerGroup}", "b a | c", "", "b a; held: group 0 is not complete: awaiting b, a"},
		"the group is incomplete": {
			"{type: ProgressivePerGroup}",
			"a b | c", "a=Succeeded/1m b=Progressing/1m",
			"; held: group 0 is not complete: awaiting b",
		},
		"the next group": {
			"{type: ProgressivePerGroup}",
			"a b | x: c | d", "a=Succeeded/1m b=Succeeded/1m",
			"c; held: group \"x\" is not complete: awaiting c",
		},
		"a group soaks": {
			"{type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: 1h}}",
			"a | b", "a=Succeeded/1m",
			"; held: group 0 is not complete: awaiting a; after 59m0s",
		},
		"a failure in a group": {
			"{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 10%}}",
			"a b | c", "a=Failed/1m b=Succeeded/1m",
			"c",
		},
		"too many failures in a group": {
			"{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 1}}",
			"a b | c", "a=Failed/1m b=Failed/1m",
			"; held: group 0 tolerates 1 failures, and these clusters failed: a, b",
		},
		"a cluster that joins a failed group": {
			"{type: ProgressivePerGroup}",
			"a b | c", "a=Failed/1m",
			"; held: group 0 tolerates 0 failures, and these clusters failed: a",
		},
		"a cluster that joins a failed mandatory group": {
			"{type: Progressive, progressive: {mandatoryDecisionGroups: [{}]}}",
			"a b | c", "a=Failed/1m",
			"; held: mandatory group 0 tolerates 0 failures, and these clusters failed: a",
		},
		"a share without a rest": {
			"{type: Progressive, progressive: {maxConcurrency: 28%}}",
			strings.Join(strings.Split("abcdefghijklmnopqrstuvwxy", ""), " "), "",
			"a b c d e f g; held: maxConcurrency is reached: awaiting a, b, c, d, e, f, g",
		},
		"many are awaited": {
			"{type: Progressive, progressive: {maxConcurrency: 12}}",
			strings.Join(strings.Split("abcdefghijklmnopqrstuvwxy", ""), " "), "",
			"a b c d e f g h i j k l; held: maxConcurrency is reached: awaiting a, b, c, d, e, f, g, h, i, j and 2 more",
		},
		"silence has no deadline": {
			"{type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 1m}}",
			"a b", "a=Sent/1h",
			"; held: maxConcurrency is reached: awaiting a",
		},
		"awaited beside a timeout": {
			"{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 1, progressDeadline: 5m}}",
			"a b | c", "a=Progressing/6m b=Progressing/1m",
			"; held: group 0 is not complete: awaiting b; after 4m0s",
		},
		"mandatory by name": {
			"{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: x}]}}",
			"a | x: c b", "",
			"c b; held: mandatory group \"x\" is not complete: awaiting c, b",
		},
		"mandatory by index": {
			"{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 1}]}}",
			"a | x: c b", "b=Succeeded/1m",
			"c; held: mandatory group \"x\" is not complete: awaiting c",
		},
		"a name wins over an index": {
			"{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: x, groupIndex: 0}]}}",
			"a | x: b", "",
			"b; held: mandatory group \"x\" is not complete: awaiting b",
		},
		"one mandatory group after the other": {
			"{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupIndex: 2}, {groupIndex: 1}]}}",
			"a | b | c", "",
			"b; held: mandatory group 1 is not complete: awaiting b",
		},
		"mandatory groups tolerate none": {
			"{type: Progressive, progressive: {maxFailures: 2, progressDeadline: 1m, mandatoryDecisionGroups: [{groupIndex: 0}]}}",
			"a | b", "a=Progressing/1m",
			"; held: mandatory group 0 tolerates 0 failures, and these clusters failed: a",
		},
		"after the mandatory ones": {
			"{type: Progressive, progressive: {maxConcurrency: 2, mandatoryDecisionGroups: [{groupIndex: 0}]}}",
			"a | b c d", "a=Succeeded/1m b=Progressing/1m",
			"c; held: maxConcurrency is reached: awaiting b, c",
		},
		"the share is of the others": {
			"{type: Progressive, progressive: {maxConcurrency: 50%, mandatoryDecisionGroups: [{groupIndex: 0}]}}",
			"a b | c d", "a=Succeeded/1m b=Succeeded/1m",
			"c; held: maxConcurrency is reached: awaiting c",
		},
		"a mandatory group that is not": {
			"{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: gone}]}}",
			"a", "",
			"a",
		},
		"settings of other types": {"{type: Progressive, all: {progressDeadline: nonsense}}", "a", "", "a"},
		"an unknown type": {
			"{type: Some}",
			"a", "",
			`error: type: unknown type "Some": use All, Progressive or ProgressivePerGroup`,
		},
		"no duration": {
			"{type: Progressive, progressive: {progressDeadline: 5mfoo}}",
			"a", "",
			`error: progressive.progressDeadline: "5mfoo" is not a duration such as 5m`,
		},
		"a negative duration": {
			"{type: ProgressivePerGroup, progressivePerGroup: {minSuccessTime: -1m}}",
			"a", "",
			`error: progressivePerGroup.minSuccessTime: "-1m" is not a duration such as 5m`,
		},
		"no share": {
			"{type: Progressive, progressive: {maxConcurrency: some}}",
			"a", "",
			`error: progressive.maxConcurrency: "some" is neither a number nor a percentage`,
		},
		"NaN": {
			"{type: Progressive, progressive: {maxFailures: NaN%}}",
			"a", "",
			`error: progressive.maxFailures: "NaN%" is neither a number nor a percentage`,
		},
		"a text with a number": {
			"{type: Progressive, progressive: {maxConcurrency: '1'}}",
			"a", "",
			`error: progressive.maxConcurrency: "1" is neither a number nor a percentage`,
		},
	} {
		t.Run(story, func(t *testing.T) {
			var strategy scorev1alpha1.RolloutStrategy
			if err := yaml.Unmarshal([]byte(tc.strategy), &strategy); err != nil {
				t.Fatal(err)
			}
			in := Input{Strategy: strategy, Sent: map[string]Cluster{}, Now: now}
			for i, text := range strings.Split(tc.groups, "|") {
				g := Group{Index: int32(i)}
				if name, clusters, named := strings.Cut(text, ":"); named {
					g.Name, text = strings.TrimSpace(name), clusters
				}
				g.Clusters = strings.Fields(text)
				in.Groups = append(in.Groups, g)
			}
			states := map[string]State{"Sent": Sent, "Progressing": Progressing, "Succeeded": Succeeded, "Failed": Failed}
			for _, text := range strings.Fields(tc.sent) {
				name, state, _ := strings.Cut(text, "=")
				state, since, timed := strings.Cut(state, "/")
				c := Cluster{State: states[state]}
				if timed {
					d, err := time.ParseDuration(since)
					if err != nil {
						t.Fatal(err)
					}
					c.Since = now.Add(-d)
				}
				in.Sent[name] = c
			}
			d, err := Decide(in)
			got := strings.Join(d.Next, " ")
			if d.Held != "" {
				got += "; held: " + d.Held
			}
			if d.After > 0 {
				got += fmt.Sprintf("; after %s", d.After)
			}
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
