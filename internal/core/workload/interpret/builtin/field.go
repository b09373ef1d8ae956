package builtin

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Short names of functions that read objects.
var (
	field   = fields.Value
	whole   = fields.Whole
	number  = fields.Number
	text    = fields.Text
	yes     = fields.Yes
	object  = fields.Object
	list    = fields.List
	objects = fields.Objects
)

// specNumber returns the integer at path in the spec, or otherwise if it is not set. Other types are an error.
func specNumber(obj *unstructured.Unstructured, otherwise int64, path ...string) (int64, error) {
	v := field(object(obj.Object, "spec"), path...)
	if v == nil {
		return otherwise, nil
	}
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("spec.%s: %v is not an integer", strings.Join(path, "."), v)
	}
	return n, nil
}

// share returns v, an integer or a percentage like "0.5%", of total. up rounds percentages up. otherwise is the
// default.
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

// nearest returns v, an integer or a percentage, of total, rounded half up.
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

// percentDigits limits the digits of a percentage. A hostile template may have a million of them, and to compute with
// them takes quadratic time.
const percentDigits = 12

// percentage returns v percent of total as the exact fraction part/of: 16.1% of 1000 is 161.
func percentage(v any, total int64) (part, of *big.Int, err error) {
	s, _ := v.(string)
	digits, ok := strings.CutSuffix(s, "%")
	before, after, point := strings.Cut(digits, ".")
	n, isNumber := new(big.Int).SetString(before+after, 10)
	if !ok || !isNumber || len(digits) > percentDigits || before == "" || point && after == "" ||
		strings.ContainsAny(digits, "+-_") {
		if s != "" {
			v = strconv.Quote(s) // quoted, so that the message distinguishes a string from a number
		}
		return nil, nil, fmt.Errorf("%v is neither an integer nor a percentage", v)
	}
	of = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(2+len(after))), nil)
	return n.Mul(n, big.NewInt(total)), of, nil
}

// conditionText returns a string field of the condition of a type; empty if there is none.
func conditionText(status map[string]any, kind, name string) string {
	for _, c := range objects(status, "conditions") {
		if text(c, "type") == kind {
			return text(c, name)
		}
	}
	return ""
}

// isTrue reports whether the condition of a type is True.
func isTrue(status map[string]any, kind string) bool {
	return conditionText(status, kind, "status") == "True"
}

// overdue reports whether the object's own progress deadline has expired.
func overdue(status map[string]any) bool {
	return conditionText(status, "Progressing", "status") == "False" &&
		conditionText(status, "Progressing", "reason") == "ProgressDeadlineExceeded"
}
