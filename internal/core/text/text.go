// Package text shortens what others say, for places that bear only so much of it, and counts in words.
package text

import (
	"fmt"
	"strings"
)

const ellipsis = "…"

// Cut is s as it is if it has no more than most bytes, and otherwise the beginning of it with "…" at its end, of most bytes at most and
// valid UTF-8. most is at least that of "…", 3.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}

// Count is "1 object", or "3 objects": of is what one of them is called.
func Count[N int | int32 | int64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
