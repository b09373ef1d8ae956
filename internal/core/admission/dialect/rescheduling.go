package dialect

import (
	"strconv"
	"strings"
)

// rescheduling: a threshold is a percentage with or without its sign.
func (r *rewrite) rescheduling() {
	const path = "spec.reschedulePolicy.threshold"
	threshold := child(child(r.spec, "reschedulePolicy"), "threshold")
	for _, of := range []string{"cpuUtilization", "memoryUtilization"} {
		text, _ := threshold[of].(string)
		digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		if n, err := strconv.ParseInt(digits, 10, 32); percent && err == nil {
			threshold[of] = n
			r.rewritten(path+"."+of, text, digits)
		}
	}
}
