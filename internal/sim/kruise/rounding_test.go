package kruise

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestPartitionKeepsOldPodsAsTheRealManagerRounds(t *testing.T) {
	for _, tt := range []struct {
		name      string
		partition string
		replicas  int32
		want      int32
	}{
		{"not set keeps none", "", 5, 0},
		{"a number is itself", "2", 5, 2},
		{"a number beyond the replicas is all of them", "9", 5, 5},
		{"a percentage rounds up", "50%", 3, 2},
		{"a small percentage keeps at least one", "1%", 10, 1},
		{"fractions of a percent count", "0.5%", 1000, 5},
		{"a fraction of a percent rounds up", "0.5%", 10, 1},
		{"below 100% one of several is always updated", "99%", 10, 9},
		{"the same for two", "90%", 2, 1},
		{"a single pod may be kept by any percentage", "1%", 1, 1},
		{"100% keeps all", "100%", 10, 10},
		{"more than 100% is all of them", "200%", 4, 4},
		{"0% keeps none", "0%", 10, 0},
		{"no noise of binary fractions", "7%", 100, 7},
		{"no replicas, none to keep", "50%", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := keepOld(value(tt.partition), tt.replicas)
			if err != nil || got != tt.want {
				t.Errorf("partition %q of %d keeps %d, %v, want %d", tt.partition, tt.replicas, got, err, tt.want)
			}
		})
	}
	if _, err := keepOld(&intstr.IntOrString{Type: intstr.String, StrVal: "5"}, 10); err == nil {
		t.Error("a number written as text must be refused")
	}
}

func TestSurgeRoundsUpAndUnavailableGivesWayToIt(t *testing.T) {
	for _, tt := range []struct {
		name               string
		surge, unavailable string
		paused             bool
		replicas           int32
		wantSurge          int32
		wantUnavailable    int32
	}{
		{"the default is 20% rounded up", "", "", false, 2, 0, 1},
		{"the default of ten is two", "", "", false, 10, 0, 2},
		{"unavailable rounds up without surge", "0", "30%", false, 4, 0, 2},
		{"unavailable rounds down with surge", "1", "30%", false, 4, 1, 1},
		{"surge rounds up", "30%", "0", false, 4, 2, 0},
		{"a paused update has no surge, so unavailable rounds up again", "50%", "30%", true, 4, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, u, err := surgeAndUnavailable(value(tt.surge), value(tt.unavailable), tt.paused, tt.replicas)
			if err != nil || s != tt.wantSurge || u != tt.wantUnavailable {
				t.Errorf("surge %d, unavailable %d, %v, want %d and %d", s, u, err, tt.wantSurge, tt.wantUnavailable)
			}
		})
	}
}

func TestAStatefulSetMayAlwaysMakeOnePodUnavailable(t *testing.T) {
	for _, tt := range []struct {
		unavailable string
		replicas    int32
		want        int32
	}{
		{"", 5, 1}, {"0", 5, 1}, {"3", 5, 3}, {"20%", 4, 1}, {"50%", 5, 2}, {"100%", 5, 5},
	} {
		if got, err := atLeastOne(value(tt.unavailable), tt.replicas); err != nil || got != tt.want {
			t.Errorf("%q of %d: %d, %v, want %d", tt.unavailable, tt.replicas, got, err, tt.want)
		}
	}
}

func value(s string) *intstr.IntOrString {
	if s == "" {
		return nil
	}
	v := intstr.Parse(s)
	return &v
}
