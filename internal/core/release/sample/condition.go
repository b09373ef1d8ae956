package sample

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
)

type Condition struct {
	text    string
	program cel.Program
}

// language is CEL with the variables of conditions. It has no loops.
var language = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("result", cel.DoubleType), cel.Variable("control", cel.DoubleType),
		cel.Variable("cluster", cel.StringType), cel.CrossTypeNumericComparisons(true), cel.ClearMacros())
})

// NewCondition compiles a condition. control reports whether the check has a query for a control.
func NewCondition(text string, control bool) (*Condition, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("is not CEL: %w; in arithmetic and with ==, write numbers as 2.0", issues.Err())
	}
	if !tree.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("must be true or false, and is a %s", tree.OutputType())
	}
	uses := map[string]bool{}
	for _, ref := range tree.NativeRep().ReferenceMap() {
		uses[ref.Name] = true
	}
	switch {
	case !uses["result"]:
		return nil, errors.New("does not use result, so the query would not matter")
	case uses["control"] && !control:
		return nil, errors.New("uses control, but the check has no query for it")
	}
	program, err := env.Program(tree, cel.CostLimit(10_000))
	if err != nil {
		return nil, err
	}
	return &Condition{text, program}, nil
}

func (c *Condition) holds(result, control float64, cluster string) (bool, error) {
	out, _, err := c.program.Eval(map[string]any{"result": result, "control": control, "cluster": cluster})
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", c.text, err)
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("evaluate %q: the result is neither true nor false", c.text)
	}
	return holds, nil
}
