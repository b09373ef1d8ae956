// Package text shortens what others say, for places that bear only so much of it.
package text

import "strings"

const ellipsis = "…"

// Cut is s as it is if it has no more than most bytes, and otherwise the beginning of it with "…" at its end, of most bytes at most and
// valid UTF-8. most is at least that of "…", 3.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}
