package builtin

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field is the value at path, not a copy; nil when there is none on the way.
func field(m map[string]any, path ...string) any {
	var v any = m
	for _, key := range path {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[key]
	}
	return v
}

// whole is v as an integer; scripts and hand-made objects have floats where an API server has integers.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n)
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	}
	return 0, false
}

// number is the integer at path; 0 when there is none.
func number(m map[string]any, path ...string) int64 {
	n, _ := whole(field(m, path...))
	return n
}

func text(m map[string]any, path ...string) string {
	s, _ := field(m, path...).(string)
	return s
}

func yes(m map[string]any, path ...string) bool {
	b, _ := field(m, path...).(bool)
	return b
}

func object(m map[string]any, path ...string) map[string]any {
	o, _ := field(m, path...).(map[string]any)
	return o
}

func list(m map[string]any, path ...string) []any {
	l, _ := field(m, path...).([]any)
	return l
}

// objects are the elements of the list at path that are objects.
func objects(m map[string]any, path ...string) []map[string]any {
	var found []map[string]any
	for _, v := range list(m, path...) {
		if o, ok := v.(map[string]any); ok {
			found = append(found, o)
		}
	}
	return found
}

// specNumber is the integer of the spec at path, otherwise when it is not set. What is no integer is an error.
func specNumber(obj *unstructured.Unstructured, otherwise int64, path ...string) (int64, error) {
	v := field(object(obj.Object, "spec"), path...)
	if v == nil {
		return otherwise, nil
	}
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("spec.%s: %v is no integer", strings.Join(path, "."), v)
	}
	return n, nil
}

// share is v, an integer or a percentage like "0.5%", of total; up says how a percentage rounds. otherwise when unset.
func share(v any, total int64, up bool, otherwise any) (int64, error) {
	if v == nil {
		v = otherwise
	}
	if n, ok := whole(v); ok {
		return n, nil
	}
	part, of, err := percentage(v, total)
	if err != nil {
		return 0, err
	}
	if up {
		part = part.Add(part, new(big.Int).Sub(of, big.NewInt(1)))
	}
	return part.Quo(part, of).Int64(), nil
}

// nearest is v, an integer or a percentage, of total, half a one rounded up.
func nearest(v any, total int64) (int64, error) {
	if n, ok := whole(v); ok {
		return n, nil
	}
	part, of, err := percentage(v, total)
	if err != nil {
		return 0, err
	}
	part = part.Add(part.Lsh(part, 1), of)
	return part.Quo(part, of.Lsh(of, 1)).Int64(), nil
}

// percentDigits bounds the digits of a percentage; nobody needs as many.
const percentDigits = 12

// percentage is v per cent of total as the fraction part/of, so that no digit of the percentage is lost: 16.1% of 1000 is 161.
func percentage(v any, total int64) (part, of *big.Int, err error) {
	s, _ := v.(string)
	digits, ok := strings.CutSuffix(s, "%")
	before, after, point := strings.Cut(digits, ".")
	n, isNumber := new(big.Int).SetString(before+after, 10)
	if !ok || !isNumber || len(digits) > percentDigits || before == "" || point && after == "" || strings.ContainsAny(digits, "+-_") {
		return nil, nil, fmt.Errorf("%v is neither an integer nor a percentage", v)
	}
	of = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(2+len(after))), nil)
	return n.Mul(n, big.NewInt(total)), of, nil
}

// conditionText is a text field of the condition of a type; empty when there is none.
func conditionText(status map[string]any, kind, name string) string {
	for _, c := range objects(status, "conditions") {
		if text(c, "type") == kind {
			return text(c, name)
		}
	}
	return ""
}

// isTrue says whether the condition of a type is True.
func isTrue(status map[string]any, kind string) bool {
	return conditionText(status, kind, "status") == "True"
}

// overdue says whether the object's own progress deadline is over.
func overdue(status map[string]any) bool {
	return conditionText(status, "Progressing", "status") == "False" &&
		conditionText(status, "Progressing", "reason") == "ProgressDeadlineExceeded"
}
