package ocm

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/library"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

const (
	// CostLimit is the limit of the API server for schema rules, about a tenth of a second.
	CostLimit = 1_000_000
	// Budget limits all expressions of an object in one reconciliation.
	Budget = 10 * CostLimit
)

// NewEnvironment returns an environment of expressions with the libraries of Open Cluster Management, and more options.
func NewEnvironment(more ...cel.EnvOption) (*cel.Env, error) {
	texts, err := boundedStrings()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append([]cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), texts,
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib()}, more...)...)
}

// environment has the variables and functions of expressions of ManifestWorks.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return NewEnvironment(
		cel.Variable("object", cel.DynType), cel.Variable("result", cel.BoolType),
		cel.Function("hasConditions", cel.Overload("has_conditions", []*cel.Type{cel.DynType}, cel.BoolType,
			cel.UnaryBinding(func(status ref.Val) ref.Val {
				native, err := status.ConvertToNative(reflect.TypeFor[map[string]any]())
				m, _ := native.(map[string]any)
				return types.Bool(err == nil && m["conditions"] != nil)
			}))),
	)
})

// Compile compiles an expression with the given result type.
func Compile(expression string, of *cel.Type) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return CompileIn(env, expression, of)
}

// CompileIn compiles an expression in an environment.
func CompileIn(env *cel.Env, expression string, of *cel.Type) (cel.Program, error) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if got := ast.OutputType(); !got.IsExactType(of) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q returns a %s, not a %s", expression, got, of)
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(CostLimit),
		cel.CostTracking(&costs{}))
}

// Programs caches compiled expressions, because compiling takes much longer than evaluating. The zero value is empty;
// nil does not cache.
type Programs struct {
	mu   sync.Mutex
	kept map[string]cel.Program // by result type and expression
}

// programsKept limits the cache. Beyond it most entries are probably of deleted ManifestWorks.
const programsKept = 2000

func (p *Programs) compile(expression string, of *cel.Type) (cel.Program, error) {
	if p == nil {
		return Compile(expression, of)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := of.String() + " " + expression
	if program := p.kept[key]; program != nil {
		return program, nil
	}
	program, err := Compile(expression, of)
	if err != nil {
		return nil, err
	}
	if p.kept == nil || len(p.kept) >= programsKept {
		p.kept = map[string]cel.Program{}
	}
	p.kept[key] = program
	return program, nil
}

// ErrBudget is the error of expressions that cost more than Budget together.
var ErrBudget = fmt.Errorf("the total cost of the expressions exceeds %d", Budget)

// Run runs a program and adds its cost to spent.
func Run(program cel.Program, variables map[string]any, spent *uint64) (ref.Val, error) {
	if *spent > Budget {
		return nil, ErrBudget
	}
	out, details, err := program.Eval(variables)
	if details != nil && details.ActualCost() != nil {
		*spent += *details.ActualCost()
	} else {
		*spent += CostLimit // it was aborted at the limit
	}
	return out, err
}

// Evaluate returns the condition of a rule for an object, without times; nil if there is none. It adds the cost to
// spent.
func (p *Programs) Evaluate(rule ocmv1.ConditionRule, object *unstructured.Unstructured,
	spent *uint64) *metav1.Condition {
	c := &metav1.Condition{Type: rule.Condition, Reason: ocmv1.ReasonRuleEvaluated}
	if rule.Type == ocmv1.RuleWellKnownConditions {
		return wellKnownCondition(c, object)
	}
	failed := func(reason string, err error) *metav1.Condition {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, err.Error()
		return c
	}
	if len(rule.CelExpressions) == 0 {
		return failed(ocmv1.ReasonRuleInvalid, fmt.Errorf("the rule of %s has no celExpressions", rule.Condition))
	}
	holds := true
	variables := map[string]any{"object": object.Object}
	for _, expression := range rule.CelExpressions {
		program, err := p.compile(expression, cel.BoolType)
		if err != nil {
			return failed(ocmv1.ReasonRuleInvalid, err)
		}
		out, err := Run(program, variables, spent)
		if err != nil {
			return failed(ocmv1.ReasonRuleExpressionError, fmt.Errorf("%q: %w", expression, err))
		}
		is, ok := out.Value().(bool)
		if !ok {
			return failed(ocmv1.ReasonRuleExpressionError,
				fmt.Errorf("%q returns %v, not true or false", expression, out.Value()))
		}
		holds = holds && is
	}
	c.Status, c.Message = metav1.ConditionFalse, "Manifest is not "+rule.Condition
	if holds {
		c.Status, c.Message = metav1.ConditionTrue, "Manifest is "+rule.Condition
	}
	if rule.Message != "" {
		c.Message = rule.Message
	}
	if rule.MessageExpression == "" {
		return c
	}
	program, err := p.compile(rule.MessageExpression, cel.StringType)
	if err != nil {
		return failed(ocmv1.ReasonRuleInvalid, err)
	}
	variables["result"] = holds
	out, err := Run(program, variables, spent)
	if err != nil {
		return failed(ocmv1.ReasonRuleExpressionError, fmt.Errorf("%q: %w", rule.MessageExpression, err))
	}
	if text, _ := out.Value().(string); text != "" {
		c.Message = text
	}
	return c
}

// wellKnownCondition returns the condition Complete of Pods and of kinds that run once; nil for other kinds.
func wellKnownCondition(c *metav1.Condition, object *unstructured.Unstructured) *metav1.Condition {
	if c.Type != ocmv1.Complete {
		return nil
	}
	var over bool
	switch of := kind.Facts(object); {
	case of.Once != nil:
		c.Message = of.Kind + " is not finished"
		if over = of.Once.Over(fields.Object(object.Object, "status")); over {
			c.Message = of.Kind + " is finished"
		}
	case of.Pods.IsPod():
		phase := fields.Text(object.Object, "status", "phase")
		over, c.Message = phase == "Succeeded" || phase == "Failed", "Pod is in phase "+phase
	default:
		return nil
	}
	c.Status = metav1.ConditionFalse
	if over {
		c.Status = metav1.ConditionTrue
	}
	return c
}
