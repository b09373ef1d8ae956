package dependency

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// resourcesPolicy makes the resources of a sidecar depend on those of the pod's containers, as in OpenKruise 1.9.
type resourcesPolicy struct {
	// Names is a regular expression for the pod's own containers that count, without OpenKruise sidecars. Mode selects
	// their sum or maximum.
	Names, Mode string
	// Limits and Requests are expressions by resource. The resource name is the variable: the value of those containers.
	Limits, Requests map[corev1.ResourceName]string
}

// policyOf returns the resourcesPolicy of a container or nil. v1alpha1 spells its fields differently.
func policyOf(container map[string]any) *resourcesPolicy {
	raw := fields.Object(container, "resourcesPolicy")
	if raw == nil {
		return nil
	}
	first := func(names ...string) string {
		for _, name := range names {
			if v, ok := raw[name].(string); ok {
				return v
			}
		}
		return ""
	}
	p := &resourcesPolicy{Names: first("targetContainersNameRegex"),
		Mode: first("targetContainersMode", "targetContainerMode")}
	for _, name := range []string{"resourcesExpr", "resourceExpr"} {
		if of, ok := raw[name].(map[string]any); ok {
			p.Limits, p.Requests = expressions(of["limits"]), expressions(of["requests"])
			break
		}
	}
	return p
}

func expressions(raw any) map[corev1.ResourceName]string {
	of, _ := raw.(map[string]any)
	out := map[corev1.ResourceName]string{}
	for name, v := range of {
		if text := strings.TrimSpace(fmt.Sprint(v)); v != nil && text != "" {
			out[corev1.ResourceName(name)] = text
		}
	}
	return out
}

// apply returns c with the policy applied in a pod with these containers. If an expression has no valid value, such as
// a division by zero or a negative result, OpenKruise rejects the pod; then the container's own value counts.
func (p *resourcesPolicy) apply(c corev1.Container, pod []corev1.Container) corev1.Container {
	names, err := regexp.Compile(p.Names)
	if err != nil {
		return c
	}
	pod = slices.DeleteFunc(slices.Clone(pod), func(c corev1.Container) bool { return !names.MatchString(c.Name) })
	if len(pod) == 0 {
		return c
	}
	c.Resources = *c.Resources.DeepCopy()
	set := func(to *corev1.ResourceList, from map[corev1.ResourceName]string,
		amount func(corev1.Container, corev1.ResourceName) float64) {
		for name, text := range from {
			e, err := parseExpression(text, string(name))
			if err != nil {
				continue
			}
			value := e(p.total(pod, name, amount))
			if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 { // infinity means no limit
				continue
			}
			if *to == nil {
				*to = corev1.ResourceList{}
			}
			(*to)[name] = quantity(name, value)
		}
	}
	set(&c.Resources.Limits, p.Limits, func(c corev1.Container, name corev1.ResourceName) float64 {
		if q, ok := c.Resources.Limits[name]; ok {
			return q.AsApproximateFloat64()
		}
		return math.Inf(1)
	})
	set(&c.Resources.Requests, p.Requests, func(c corev1.Container, name corev1.ResourceName) float64 {
		q, ok := c.Resources.Requests[name]
		if !ok {
			q = c.Resources.Limits[name] // the API server defaults requests to limits
		}
		return q.AsApproximateFloat64()
	})
	return c
}

// total returns the value of the variable of a resource's expressions.
func (p *resourcesPolicy) total(pod []corev1.Container, name corev1.ResourceName,
	amount func(corev1.Container, corev1.ResourceName) float64) float64 {
	var total float64
	for _, c := range pod {
		if n := amount(c, name); p.Mode == "max" {
			total = max(total, n)
		} else {
			total += n
		}
	}
	return total
}

// quantity rounds up: CPU to millicores, other resources to whole units.
func quantity(name corev1.ResourceName, value float64) resource.Quantity {
	const noise = 1e-6 // tolerates floating-point errors
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(int64(math.Ceil(value*1000-noise)), resource.DecimalSI)
	}
	return *resource.NewQuantity(int64(math.Ceil(value-noise)), resource.BinarySI)
}

// SidecarAdvice lists the expressions of a SidecarSet that are invalid and therefore ignored in requirements.
func SidecarAdvice(obj *unstructured.Unstructured) (advice []string) {
	if obj.GroupVersionKind().GroupKind() != SidecarSetKind {
		return nil
	}
	for _, list := range []string{"initContainers", "containers"} {
		for i, c := range fields.Objects(obj.Object, "spec", list) {
			p := policyOf(c)
			if p == nil {
				continue
			}
			at := fmt.Sprintf("spec.%s[%d].resourcesPolicy", list, i)
			if _, err := regexp.Compile(p.Names); err != nil {
				advice = append(advice, fmt.Sprintf(
					"%s.targetContainersNameRegex: %q: %v; placements use the requests of the container itself", at, p.Names, err))
			}
			for part, of := range map[string]map[corev1.ResourceName]string{"limits": p.Limits, "requests": p.Requests} {
				for name, text := range of {
					if _, err := parseExpression(text, string(name)); err != nil {
						advice = append(advice, fmt.Sprintf(
							"%s: the expression of %s.%s: %q: %v; placements use the requests of the container itself", at, part, name, text,
							err))
					}
				}
			}
		}
	}
	slices.Sort(advice)
	return advice
}

// expression computes a value from its variable.
type expression func(variable float64) float64

// expressionLimit bounds an expression in bytes: users write them, and Go's parser and compile are recursive.
const expressionLimit = 4 << 10

// symbol matches a name, an operator, or a number: also a percentage or a quantity of Kubernetes.
var symbol = regexp.MustCompile(
	`[A-Za-z_][A-Za-z_0-9]*|[-+*/\n]|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:%|[KMGTPE]i|[eE][-+]?[0-9]+|[numkMGTPE])?`)

// parseExpression parses numbers, the variable, + - * /, parentheses, max and min. All but the numbers is as in Go.
func parseExpression(text, variable string) (expression, error) {
	if len(text) > expressionLimit {
		return nil, fmt.Errorf("it is longer than %d bytes", expressionLimit)
	}
	text = symbol.ReplaceAllStringFunc(text, func(s string) string {
		switch c := s[0]; {
		case c == '\n':
			return " "
		case c == '.' || c >= '0' && c <= '9':
			return ` "` + s + `" ` // a value in Go, and errors show it as it is
		case c == '_' || c >= 'A':
			return s
		}
		return " " + s + " " // Go would read two minus signs as one operator, and two slashes as a comment
	})
	tree, err := parser.ParseExpr(text)
	if list := (scanner.ErrorList)(nil); errors.As(err, &list) {
		return nil, errors.New(list[0].Msg)
	} else if err != nil {
		return nil, err
	}
	return compile(tree, variable)
}

// operators of two values.
var operators = map[token.Token]func(a, b float64) float64{
	token.ADD: func(a, b float64) float64 { return a + b },
	token.SUB: func(a, b float64) float64 { return a - b },
	token.MUL: func(a, b float64) float64 { return a * b },
	token.QUO: func(a, b float64) float64 { return a / b },
}

// functions of any number of values.
var functions = map[string]func(a, b float64) float64{"max": math.Max, "min": math.Min}

func compile(tree ast.Expr, variable string) (expression, error) {
	switch e := tree.(type) {
	case *ast.ParenExpr:
		return compile(e.X, variable)
	case *ast.BasicLit:
		text := strings.Trim(e.Value, `"`)
		digits, percent := strings.CutSuffix(text, "%")
		q, err := resource.ParseQuantity(digits)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		value := q.AsApproximateFloat64()
		if percent {
			value /= 100
		}
		return func(float64) float64 { return value }, nil
	case *ast.Ident:
		if e.Name != variable {
			return nil, fmt.Errorf("%q is neither a function nor the resource", e.Name)
		}
		return func(x float64) float64 { return x }, nil
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return fold(operators[token.SUB], variable, &ast.BasicLit{Value: "0"}, e.X)
		}
	case *ast.BinaryExpr:
		if operator := operators[e.Op]; operator != nil {
			return fold(operator, variable, e.X, e.Y)
		}
	case *ast.CallExpr:
		name, _ := e.Fun.(*ast.Ident)
		switch {
		case name == nil || e.Ellipsis.IsValid():
		case functions[name.Name] == nil:
			return nil, fmt.Errorf("%q is neither a function nor the resource", name.Name)
		case len(e.Args) == 0:
			return nil, fmt.Errorf("%s has no values", name.Name)
		default:
			return fold(functions[name.Name], variable, e.Args...)
		}
	}
	return nil, errors.New("only + - * /, parentheses, max and min are supported")
}

// fold returns the expression that combines values from left to right.
func fold(combine func(a, b float64) float64, variable string, values ...ast.Expr) (expression, error) {
	var all []expression
	for _, v := range values {
		e, err := compile(v, variable)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return func(x float64) float64 {
		value := all[0](x)
		for _, e := range all[1:] {
			value = combine(value, e(x))
		}
		return value
	}, nil
}
