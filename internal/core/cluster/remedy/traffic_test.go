package remedy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
)

// candidates parses clusters such as "m1:controlled,live,endpoints". A cluster is known unless it says unknown, and
// lost unless it says live or undecided.
func candidates(text string) (all []Candidate) {
	for _, one := range strings.Fields(text) {
		name, facts, _ := strings.Cut(one, ":")
		has := func(fact string) bool { return slices.Contains(strings.Split(facts, ","), fact) }
		all = append(all, Candidate{Cluster: name, Controlled: has("controlled"), Live: has("live"),
			Lost: !has("live") && !has("undecided"), Known: !has("unknown"), Endpoints: has("endpoints")})
	}
	return all
}

func TestTrafficLeavesControlledClustersIfAnotherServes(t *testing.T) {
	for _, tc := range []struct {
		name, clusters string
		want           Traffic
	}{
		{"no clusters", "", Traffic{}},
		{"no remedy", "m1:live,endpoints m2:live,endpoints", Traffic{}},
		{"another serves", "m2:live,endpoints m1:controlled,live,endpoints", Traffic{Blocked: []string{"m1"}}},
		{"one of three serves", "m3:controlled,endpoints m1:controlled,live,endpoints m2:live,endpoints",
			Traffic{Blocked: []string{"m1", "m3"}}},
		{"all would be cut", "m2:controlled,live,endpoints m1:controlled,live,endpoints",
			Traffic{Kept: []string{"m1", "m2"}}},
		{"the only cluster", "m1:controlled,live,endpoints", Traffic{Kept: []string{"m1"}}},
		{"the other has no endpoints", "m1:controlled,live,endpoints m2:live", Traffic{Kept: []string{"m1"}}},
		{"the other is lost", "m1:controlled,live,endpoints m2:endpoints", Traffic{Kept: []string{"m1"}}},
		{"the other is lost and unknown", "m1:controlled,live,endpoints m2:unknown", Traffic{Kept: []string{"m1"}}},
		{"a lost cluster is kept, too", "m1:controlled,endpoints m2:endpoints", Traffic{Kept: []string{"m1"}}},
		{"nothing to keep", "m1:controlled,live m2:live", Traffic{}},
		{"the other is not known yet", "m1:controlled,live,endpoints m2:live,unknown",
			Traffic{Held: []string{"m1"}, Unknown: true}},
		{"the other has last known endpoints", "m1:controlled,live,endpoints m2:live,unknown,endpoints",
			Traffic{Held: []string{"m1"}, Unknown: true}},
		{"not decided whether it is lost", "m1:controlled,undecided,endpoints m2:live,endpoints m3:controlled,live,endpoints",
			Traffic{Blocked: []string{"m3"}, Held: []string{"m1"}}},
		{"not decided whether it is lost, and none serves", "m1:controlled,undecided,endpoints m2:live",
			Traffic{Kept: []string{"m1"}}},
		{"one serves, one is not known yet", "m1:controlled,live,endpoints m2:live,unknown m3:live,endpoints",
			Traffic{Blocked: []string{"m1"}}},
		{"it is not known itself", "m1:controlled,live,unknown m2:live", Traffic{Held: []string{"m1"}, Unknown: true}},
	} {
		if diff := cmp.Diff(tc.want, Decide(candidates(tc.clusters))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}

// Whatever Remedies say, a Service that some cluster serves is served by one.
func TestRemediesNeverCutAllTraffic(t *testing.T) {
	fact := func() bool { return rand.IntN(2) == 0 }
	for range 10000 {
		var all []Candidate
		for _, name := range []string{"m1", "m2", "m3", "m4"}[:1+rand.IntN(4)] {
			all = append(all, Candidate{name, fact(), fact(), fact(), fact(), fact()})
		}
		traffic := Decide(all)
		for _, c := range all {
			if !c.Controlled && (slices.Contains(traffic.Blocked, c.Cluster) || slices.Contains(traffic.Held, c.Cluster) ||
				slices.Contains(traffic.Kept, c.Cluster)) {
				t.Fatalf("%+v: %s has no action, and the decision names it: %+v", all, c.Cluster, traffic)
			}
		}
		if len(traffic.Blocked) > 0 && !slices.ContainsFunc(all, func(c Candidate) bool {
			return c.Live && c.Known && c.Endpoints && !slices.Contains(traffic.Blocked, c.Cluster)
		}) {
			t.Fatalf("%+v: no cluster is left that serves: %+v", all, traffic)
		}
	}
}

func TestClusterIsOutOnlyIfItIsOutForEachService(t *testing.T) {
	got := Together([]Traffic{{Blocked: []string{"m1", "m2", "m3"}}, {Kept: []string{"m1"}},
		{Held: []string{"m1", "m2"}, Unknown: true}, {Blocked: []string{"m3"}}})
	want := Traffic{Blocked: []string{"m3"}, Kept: []string{"m1"}, Held: []string{"m2"}, Unknown: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, tc := range []struct{ was, want []string }{{nil, []string{"m3"}},
		{[]string{"m1", "m2"}, []string{"m2", "m3"}}} {
		if got := got.Blocking(tc.was); !slices.Equal(got, tc.want) {
			t.Errorf("of %q, %q are out of traffic, want %q", tc.was, got, tc.want)
		}
	}
}

func TestKeptTrafficNamesClustersAndRemedies(t *testing.T) {
	was := &metav1.Condition{Type: networkingv1alpha1.TrafficKept, Message: "as before"}
	for _, tc := range []struct {
		name     string
		t        Traffic
		remedies []string
		was      *metav1.Condition
		want     string
	}{
		{"none", Traffic{Blocked: []string{"m1"}}, nil, was, ""},
		{"one", Traffic{Kept: []string{"m1"}}, []string{"r"}, nil, "traffic to m1 continues against Remedy r: "},
		{"some", Traffic{Kept: []string{"m1", "m2"}}, []string{"a", "b"}, was,
			"traffic to m1, m2 continues against Remedy a, b: "},
		{"a Remedy that has just been deleted", Traffic{Kept: []string{"m1"}}, nil, nil,
			"traffic to m1 continues against a Remedy: no other cluster is ready and has ready endpoints; provide "},
		{"unknown", Traffic{Held: []string{"m1"}, Unknown: true}, nil, was, "as before"},
		{"known for some", Traffic{Kept: []string{"m1"}, Held: []string{"m2"}, Unknown: true}, nil, was, "as before"},
		{"known for some, none before", Traffic{Kept: []string{"m1"}, Held: []string{"m2"}, Unknown: true}, nil, nil,
			"traffic to m1 continues"},
		{"unknown, none before", Traffic{Held: []string{"m1"}, Unknown: true}, nil, nil, ""},
		{"one is not ready, and another cluster serves", Traffic{Held: []string{"m1"}}, nil, was, ""},
	} {
		got := ""
		if c := KeptCondition(tc.t, tc.remedies, tc.was); c != nil {
			got = c.Message
		}
		if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
