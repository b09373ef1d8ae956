package fleet

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Rounding is how a percentage of something becomes a whole number.
type Rounding int

// The roundings.
const (
	Up Rounding = iota
	Down
	HalfUp
)

// Resolve returns v, a whole number or a percentage such as "20%" or "0.5%", as a number of pods. Other and negative
// values are errors, also a number as text, as in OpenKruise.
func Resolve(v any, of int64, r Rounding) (int64, error) {
	if n, ok := whole(v); ok {
		if n < 0 {
			return 0, fmt.Errorf("%d is negative", n)
		}
		return n, nil
	}
	p, err := percentOf(v)
	if err != nil {
		return 0, err
	}
	exact := p.Mul(p, big.NewRat(of, 100))
	switch r {
	case Up:
		return ceil(exact), nil
	case HalfUp:
		return floor(exact.Add(exact, big.NewRat(1, 2))), nil
	default:
		return floor(exact), nil
	}
}

// percentOf returns the number before the percent sign.
func percentOf(v any) (*big.Rat, error) {
	text, _ := v.(string)
	digits, ok := strings.CutSuffix(text, "%")
	// Rat would take fractions and powers of ten, large ones too.
	if !ok || digits == "" || len(digits) > 16 || strings.Trim(digits, "0123456789.") != "" ||
		strings.HasPrefix(digits, ".") || strings.HasSuffix(digits, ".") {
		return nil, fmt.Errorf("%s is neither a whole number nor a percentage", quoted(v))
	}
	p, ok := new(big.Rat).SetString(digits)
	if !ok {
		return nil, fmt.Errorf("%s is neither a whole number nor a percentage", quoted(v))
	}
	return p, nil
}

// quoted returns the value as JSON text, so that a number and the string "1" differ.
func quoted(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(text)
	}
	return fmt.Sprint(v)
}

func floor(r *big.Rat) int64 {
	n := new(big.Int).Quo(r.Num(), r.Denom()) // not negative here
	if !n.IsInt64() {
		return math.MaxInt32
	}
	return min(n.Int64(), math.MaxInt32)
}

func ceil(r *big.Rat) int64 {
	n := floor(r)
	if new(big.Rat).SetInt64(n).Cmp(r) < 0 {
		n++
	}
	return min(n, math.MaxInt32)
}

// PercentKeeping returns a percentage for a partition that keeps at least kept of total pods old, and the number that
// it keeps: exactly kept if a whole percentage can. If pods are added, the same proportion stays old.
func PercentKeeping(kept, total int64) (percent string, keeps int64) {
	kept = min(max(kept, 0), total)
	if total == 0 {
		return "100%", 0
	}
	above, below := (100*kept+total-1)/total, 100*kept/total
	for _, p := range []int64{above, below, above} {
		percent = fmt.Sprintf("%d%%", p)
		keeps, _ = KeptOld(percent, total, Up) // a percentage is never wrong
		if keeps == kept {
			break
		}
	}
	return percent, keeps
}

// KeptOld returns how many of total pods a partition keeps on the old revision; 0 without a partition. A percentage is
// rounded as given. If it is rounded up, only 100% keeps all of several pods.
func KeptOld(partition any, total int64, r Rounding) (int64, error) {
	if partition == nil {
		return 0, nil
	}
	n, err := Resolve(partition, total, r)
	if err != nil {
		return 0, err
	}
	if text, percent := partition.(string); percent && r == Up && text != "100%" && total > 1 && n == total {
		n--
	}
	return min(n, total), nil
}

// The short names by which this package reads objects.
var (
	field  = fields.Value
	whole  = fields.Whole
	number = fields.Number
	text   = fields.Text
	object = fields.Object
	list   = fields.List

	objects = fields.Objects
	texts   = fields.Texts
)

// sumOf adds up fields.
func sumOf(status map[string]any, names []string) (total int64) {
	for _, name := range names {
		total += number(status, name)
	}
	return total
}
