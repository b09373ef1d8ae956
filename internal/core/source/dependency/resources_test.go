package dependency

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSidecarExpressions(t *testing.T) {
	const piecewise = "min(max(max(max(0.5,0.5*cpu),cpu-1.0),cpu-1.0),3.0)"
	for _, c := range []struct {
		text string
		cpu  float64
		want float64
	}{
		{"42", 0, 42}, {"3.14", 0, 3.14}, {".5", 0, .5}, {"50%", 0, .5}, {"40m", 0, .04}, {"100Mi", 0, 100 << 20},
		{"1Gi", 0, 1 << 30}, {"2k", 0, 2000}, {"1e3", 0, 1000}, {"1E", 0, 1e18},
		{"cpu", 2, 2}, {"cpu*50%", 2, 1}, {"1+2*3-4/2", 0, 5}, {"8/4/2", 0, 1}, {"8-4-2", 0, 2}, {"(1 + 2) * 3", 0, 9},
		{"-cpu + 3", 2, 1}, {"5 --cpu", 2, 7}, {"cpu\n+ 1e-3", 2, 2.001}, {"max(1, min(cpu, 5), 3)", 4, 4},
		{"max(cpu*50%, 50m)", .05, .05}, {"0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", 10, 3.8},
		{piecewise, 0, .5}, {piecewise, 1, .5}, {piecewise, 2, 1}, {piecewise, 3, 2}, {piecewise, 4, 3}, {piecewise, 9, 3},
		{"min(cpu, 2)", math.Inf(1), 2},
		{strings.Repeat("(", 2000) + "cpu" + strings.Repeat(")", 2000), 2, 2},
		{strings.Repeat("-", expressionLimit-4) + "1e+3", 0, 1000},
		{strings.Repeat("max(", 800) + "cpu" + strings.Repeat(")", 800), 3, 3},
	} {
		e, err := parseExpression(c.text, "cpu")
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := e(c.cpu); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s of %v is %v, want %v", c.text, c.cpu, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"": "expected operand", "cpu*": "expected operand", "cpu 1": "expected", "cpu // 1": "expected operand",
		"avg(cpu)": `"avg" is neither`, "memory": `"memory" is neither`, "(cpu": "expected ')'",
		"max(1 2)": "missing ','", "max": `"max" is neither`, "max()": "no values", "1Mib": "expected",
		"1..2": "expected", "50%3": "expected", "cpu ^ 2": "only + - * /", "+cpu": "only + - * /", "cpu.x": "only + - * /",
		"max(cpu...)": "only + - * /", `"cpu"`: "not a number",
		"cpu 1Ki": `found "1Ki"`, "50% 40m": `found "40m"`, "1e-3 .5": `found ".5"`, "cpu + - ": "expected operand",
		"'1'": "illegal rune", "`1`": "not a number", `"1" 2`: "expected", "1E-": "expected operand",
		strings.Repeat("(", 1000): "expected operand", strings.Repeat("-", expressionLimit) + "1": "longer than 4096 bytes",
		strings.Repeat(" ", expressionLimit) + "1": "longer than 4096 bytes",
	} {
		if _, err := parseExpression(text, "cpu"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", text, err, want)
		}
	}
}

func TestInvalidExpressionsAreReported(t *testing.T) {
	u := sent(t, "logs", "containers: [{name: logs}, {name: a, resourcesPolicy: {targetContainersNameRegex: '(', resourcesExpr: {limits: {cpu: 'avg(cpu)'}, requests: {cpu: cpu, memory: cpu}}}}], initContainers: [{name: i, resourcesPolicy: {resourceExpr: {requests: {memory: '1+'}}}}]")
	const counts = "; placements use the requests of the container itself"
	want := []string{
		"spec.containers[1].resourcesPolicy.targetContainersNameRegex: \"(\": error parsing regexp: missing closing ): `(`" +
			counts,
		`spec.containers[1].resourcesPolicy: the expression of limits.cpu: "avg(cpu)": "avg" is neither a function nor the resource` + counts,
		`spec.containers[1].resourcesPolicy: the expression of requests.memory: "cpu": "cpu" is neither a function nor the resource` + counts,
		`spec.initContainers[0].resourcesPolicy: the expression of requests.memory: "1+": expected operand, found 'EOF'` +
			counts,
	}
	if diff := cmp.Diff(want, SidecarAdvice(u)); diff != "" {
		t.Error(diff)
	}
	u.SetKind("CloneSet")
	if got := SidecarAdvice(u); got != nil {
		t.Errorf("of another kind: %q", got)
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("max(cpu*50%, 50m)")
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := parseExpression(text, "cpu"); err == nil {
			e(1)
		}
	})
}
