package fleet

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Rounding is how a percentage of something becomes a whole number.
type Rounding int

// The roundings.
const (
	Up Rounding = iota
	Down
	HalfUp
)

// Resolve is v, a whole number or a percentage such as "20%" or "0.5%", of something. Anything else, and what is
// negative, is an error: a number as text is refused, as OpenKruise does.
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

// percentOf is the number before the percent sign.
func percentOf(v any) (*big.Rat, error) {
	text, _ := v.(string)
	digits, ok := strings.CutSuffix(text, "%")
	// Rat would take fractions and powers of ten, large ones too.
	if !ok || digits == "" || len(digits) > 16 || strings.Trim(digits, "0123456789.") != "" {
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

// PercentKeeping is a percentage by which a partition that rounds up keeps at least kept of total pods old, and how
// many it keeps. It keeps exactly kept where a whole percentage does. When the pods become more, as many of them stay
// old in proportion.
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

// KeptOld is how many of total pods a partition keeps on the old revision; none is none. A percentage rounds as given,
// and when it rounds up, then only 100% keeps all of several pods.
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
