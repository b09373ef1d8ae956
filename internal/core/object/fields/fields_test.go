package fields_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

func TestMissingFieldIsTheZeroValue(t *testing.T) {
	m := map[string]any{"a": map[string]any{"n": int64(3), "s": "x", "b": true,
		"l": []any{map[string]any{"i": int64(1)}, "y", nil}}, "nil": nil}
	if n := fields.Number(m, "a", "n"); n != 3 {
		t.Errorf("the number is %d", n)
	}
	if s, b := fields.Text(m, "a", "s"), fields.Yes(m, "a", "b"); s != "x" || !b {
		t.Errorf("the text is %q, the boolean %t", s, b)
	}
	if diff := cmp.Diff([]map[string]any{{"i": int64(1)}}, fields.Objects(m, "a", "l")); diff != "" {
		t.Errorf("the objects of the list (-want +got):\n%s", diff)
	}
	for _, path := range [][]string{{"b"}, {"a", "x"}, {"a", "s", "deeper"}, {"a", "l", "0"}, {"nil"}, {"nil", "x"}} {
		if v := fields.Value(m, path...); v != nil {
			t.Errorf("at %v there is %v", path, v)
		}
	}
	if fields.Number(m, "a", "s") != 0 || fields.Text(m, "a", "n") != "" || fields.Yes(m, "a", "n") ||
		fields.Object(m, "a", "n") != nil || fields.List(m, "a") != nil ||
		fields.Objects(m, "a") != nil || fields.Object(nil, "a") != nil {
		t.Error("a value of another type passes for one of the type asked for")
	}
}

func TestIntegralFloatIsAnInteger(t *testing.T) {
	for v, want := range map[any]any{int64(1 << 60): int64(1 << 60), 3.0: int64(3), -2.0: int64(-2), 7: int64(7),
		int32(7): int64(7),
		1.5:      nil, float64(1 << 53): nil, math.Inf(1): nil, "3": nil, true: nil} {
		n, ok := fields.Whole(v)
		if ok != (want != nil) || ok && n != want {
			t.Errorf("%v is %d, %t; want %v", v, n, ok, want)
		}
	}
}
