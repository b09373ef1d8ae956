package golden

import "strings"

// around is the number of equal lines shown around differences.
const around = 2

// Diff returns the difference of two texts by lines, with "- " for removed and "+ " for added lines, some context, and
// "..." for omitted lines. It is empty for equal texts.
func Diff(before, after string) string {
	a, b := lines(before), lines(after)
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	type line struct {
		mark, text string
	}
	var all []line
	changed := false
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, line{"  ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			all = append(all, line{"- ", a[i]})
			i, changed = i+1, true
		default:
			all = append(all, line{"+ ", b[j]})
			j, changed = j+1, true
		}
	}
	if !changed {
		return ""
	}
	near := make([]bool, len(all))
	for i, l := range all {
		for k := max(i-around, 0); l.mark != "  " && k <= min(i+around, len(all)-1); k++ {
			near[k] = true
		}
	}
	var out strings.Builder
	for i, l := range all {
		switch {
		case near[i]:
			out.WriteString(l.mark + l.text + "\n")
		case i == 0 || near[i-1]:
			out.WriteString("  ...\n")
		}
	}
	return out.String()
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
