package ocm

import (
	"errors"
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

// NewEnvironment returns an environment of expressions with the libraries of Open Cluster Management, a version of the
// string functions, and more options.
func NewEnvironment(version uint32, more ...cel.EnvOption) (*cel.Env, error) {
	texts, err := boundedStrings(version)
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append([]cel.EnvOption{
		cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), texts,
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib()}, more...)...)
}

// environment has the variables and functions of expressions of ManifestWorks.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return NewEnvironment(2, cel.HomogeneousAggregateLiterals(),
		cel.Variable("object", cel.DynType), cel.Variable("result", cel.BoolType),
		cel.Function("hasConditions", cel.Overload("has_conditions", []*cel.Type{cel.DynType}, cel.BoolType,
			cel.UnaryBinding(func(status ref.Val) ref.Val {
				native, err := status.ConvertToNative(reflect.TypeFor[map[string]any]())
				m, _ := native.(map[string]any)
				return types.Bool(err == nil && m["conditions"] != nil)
			}))),
	)
})

// Compile compiles an expression of a ManifestWork with the given result type.
func Compile(expression string, of *cel.Type) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return compile(env, expression, of, CostLimit)
}

func compile(env *cel.Env, expression string, of *cel.Type, limit uint64) (cel.Program, error) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if got := ast.OutputType(); !got.IsExactType(of) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q returns a %s, not a %s", expression, got, of)
	}
	if err := checkWeight(ast.NativeRep()); err != nil {
		return nil, err
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(limit),
		cel.CostTracking(&costs{}))
}

// Programs caches compiled expressions, because compiling takes much longer than evaluating. The zero value is empty;
// nil does not cache.
type Programs struct {
	// Environment of the expressions. Default: that of ManifestWorks.
	Environment *cel.Env
	// CostLimit of an expression in Environment. Default: CostLimit.
	CostLimit uint64

	mu   sync.Mutex
	kept map[string]cel.Program // by result type and expression
	size int                    // of its keys
}

// programsKept and sizeKept limit the cache. Beyond them most entries are probably of deleted objects.
const programsKept, sizeKept = 2000, 1 << 20

// Compile compiles an expression with the given result type, or returns the program that it made before.
func (p *Programs) Compile(expression string, of *cel.Type) (program cel.Program, err error) {
	if p == nil {
		return Compile(expression, of)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := of.String() + " " + expression
	if program := p.kept[key]; program != nil {
		return program, nil
	}
	if p.Environment == nil {
		program, err = Compile(expression, of)
	} else {
		program, err = compile(p.Environment, expression, of, p.limit())
	}
	if err != nil {
		return nil, err
	}
	if p.kept == nil || len(p.kept) >= programsKept || p.size+len(key) > sizeKept {
		p.kept, p.size = map[string]cel.Program{}, 0
	}
	p.kept[key], p.size = program, p.size+len(key)
	return program, nil
}

// errBudget is the error of expressions that cost more than their budget together.
var errBudget = errors.New("the total cost of the expressions exceeds")

// limit returns the cost at which an expression is aborted.
func (p *Programs) limit() uint64 {
	if p == nil || p.CostLimit == 0 {
		return CostLimit
	}
	return p.CostLimit
}

// Run runs a program and adds its cost to spent. It fails if more than the budget is spent already.
func (p *Programs) Run(program cel.Program, variables map[string]any, spent *uint64, budget uint64) (ref.Val, error) {
	if *spent > budget {
		return nil, fmt.Errorf("%w %d", errBudget, budget)
	}
	out, details, err := program.Eval(variables)
	if details != nil && details.ActualCost() != nil {
		*spent += *details.ActualCost()
	} else {
		*spent += p.limit() // it was aborted at the limit
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
		program, err := p.Compile(expression, cel.BoolType)
		if err != nil {
			return failed(ocmv1.ReasonRuleInvalid, err)
		}
		out, err := p.Run(program, variables, spent, Budget)
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
	program, err := p.Compile(rule.MessageExpression, cel.StringType)
	if err != nil {
		return failed(ocmv1.ReasonRuleInvalid, err)
	}
	variables["result"] = holds
	out, err := p.Run(program, variables, spent, Budget)
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
