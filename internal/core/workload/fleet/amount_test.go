package fleet

import "testing"

func TestAPercentageRoundsAsTheFieldDoes(t *testing.T) {
	for _, c := range []struct {
		value    any
		of       int64
		rounding Rounding
		want     int64 // -1: refused
	}{
		{"20%", 9, Up, 2},
		{"20%", 9, Down, 1},
		{"50%", 9, HalfUp, 5},
		{"50%", 5, HalfUp, 3},
		{"49%", 5, HalfUp, 2},
		{"0.5%", 100, Up, 1},
		{"0.5%", 200, Up, 1},
		{"0.5%", 201, Up, 2},
		{"7%", 100, Up, 7},
		{"0.7%", 1000, Up, 7},
		{"1.1%", 1000, Up, 11},
		{"0%", 9, Up, 0},
		{"150%", 4, Up, 6},
		{int64(3), 100, Down, 3},
		{float64(3), 100, Down, 3},
		{int64(-1), 100, Up, -1},
		{"5", 100, Up, -1},
		{"-5%", 100, Up, -1},
		{"1e9%", 100, Up, -1},
		{"1/2%", 100, Up, -1},
		{"%", 100, Up, -1},
		{".%", 100, Up, -1},
		{"5.%", 9, Up, -1},
		{".5%", 9, Up, -1},
		{"+5%", 9, Up, -1},
		{"0x1%", 9, Up, -1},
		{"Inf%", 9, Up, -1},
		{"12345678901234567%", 9, Up, -1},
		{"16.1%", 1000, Up, 161}, // 16.1 has no float
		{3.5, 100, Up, -1},
		{true, 100, Up, -1},
	} {
		got, err := Resolve(c.value, c.of, c.rounding)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%v of %d is %d (%v), want %d", c.value, c.of, got, err, c.want)
		}
	}
}

func TestAPartitionBelowAllKeepsNotAllOfSeveral(t *testing.T) {
	for _, c := range []struct {
		partition any
		of        int64
		rounding  Rounding
		want      int64
	}{
		{nil, 9, Up, 0},
		{"50%", 9, Up, 5},
		{"90%", 9, Up, 8},
		{"99%", 9, Up, 8},
		{"100%", 9, Up, 9},
		{"99%", 1, Up, 1},
		{"10%", 10, Up, 1},
		{int64(8), 9, Up, 8},
		{int64(12), 9, Up, 9},
		{"50%", 9, Down, 4},
	} {
		if got, err := KeptOld(c.partition, c.of, c.rounding); err != nil || got != c.want {
			t.Errorf("a partition of %v keeps %d of %d (%v), want %d", c.partition, got, c.of, err, c.want)
		}
	}
}

// Health reads the limit as it stands; only a division has room for at least one pod.
func TestLimitsAreThoseOfTheStrategy(t *testing.T) {
	for text, want := range map[string]int64{
		"{maxSurge: 1, maxUnavailable: 0}": 0, "{maxUnavailable: 0}": 0, "{maxUnavailable: 2}": 2, "{}": 1,
	} {
		h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 3, updateStrategy: "+text+"}}")
		if _, unavailable, err := Limits(h.in.Template, 3); err != nil || unavailable != want {
			t.Errorf("%s: %d may be unavailable (%v), want %d", text, unavailable, err, want)
		}
	}
}
