package usage

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Lines returns the table of a report: one line for each resource of a group. With costs, a line with the sum follows
// each group. A column of which nothing is known is left out.
func (r Report) Lines() (columns []string, lines [][]string) {
	columns = []string{strings.ToUpper(r.By), "RESOURCE", "REQUESTED", "LIMITS", "USED", "USED%", "QUOTA", "CHANGE",
		"COST/30D"}
	all := r.Groups
	if len(all) > 1 {
		total := r.Total
		total.Name = "TOTAL"
		all = append(slices.Clone(all), total)
	}
	for _, group := range all {
		for _, res := range group.Resources {
			line := []string{group.Name, string(res.Name), res.Requested.String(), res.Limits.String(), text(res.Used), "",
				text(res.Quota), text(res.Change), money(res.Cost)}
			if res.UsedPercent != nil {
				line[5] = strconv.FormatInt(*res.UsedPercent, 10) + "%"
			}
			if res.Limits.IsZero() {
				line[3] = ""
			}
			if res.Change != nil && res.Change.Sign() > 0 {
				line[7] = "+" + line[7]
			}
			lines = append(lines, line)
		}
		if group.Cost != nil {
			lines = append(lines, []string{group.Name, "all", "", "", "", "", "", "", money(group.Cost)})
		}
	}
	for i := len(columns) - 1; i >= 6; i-- {
		if !slices.ContainsFunc(lines, func(line []string) bool { return line[i] != "" }) {
			columns = slices.Delete(columns, i, i+1)
			for j := range lines {
				lines[j] = slices.Delete(lines[j], i, i+1)
			}
		}
	}
	return columns, lines
}

// CSV returns one line for each resource of a group, without sums, and with plain numbers: cores, bytes and units. The
// columns are always the same.
func (r Report) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{r.By, "resource", "requested", "limits", "used", "quota", "change", "cost30d"})
	for _, group := range r.Groups {
		for _, res := range group.Resources {
			_ = w.Write([]string{group.Name, string(res.Name), number(&res.Requested), number(&res.Limits), number(res.Used),
				number(res.Quota), number(res.Change), money(res.Cost)})
		}
	}
	w.Flush() // a Builder returns no error
	return b.String()
}

func number(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return strconv.FormatFloat(q.AsApproximateFloat64(), 'f', -1, 64)
}

func text(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}

func money(cost *float64) string {
	if cost == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *cost)
}
