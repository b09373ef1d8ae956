package text

import (
	"slices"
	"strings"
)

// MeantObject is Meant for names of objects. A name that differs in digits only is another object: m1 is not m2.
func MeantObject(name string, names []string) string {
	return Meant(name, slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !strings.EqualFold(n, name) && strings.EqualFold(letters(n), letters(name))
	}))
}

// Meant returns the name that was probably meant by another one: the nearest by edit distance, or one that contains it
// or is part of it; empty if none is similar.
func Meant(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := distance(strings.ToLower(n), strings.ToLower(name)); d < least {
			best, least = n, d
		}
	}
	if best != "" {
		return best
	}
	for _, n := range names {
		a, b := strings.ToLower(n), strings.ToLower(name)
		if len(b) > 4 && (strings.HasPrefix(a, b) || strings.HasSuffix(a, b) || strings.HasPrefix(b, a)) {
			return n
		}
	}
	return ""
}

// letters returns a name without its digits.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// distance returns the edit distance between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost = 1 + min(above, row[j], row[j+1])
			}
			above, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
