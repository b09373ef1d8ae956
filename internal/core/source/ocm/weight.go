package ocm

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// maxWeight limits how often an expression may put the same value into lists and maps that it makes.
const maxWeight = 1000

// weigher computes how large the values of an expression can become, because cel-go does not count it in their costs:
// [[1]].map(a, a+a).map(a, a+a)… doubles a list each time, and only its size() or == walks through all of it.
type weigher struct {
	of       *ast.AST
	greatest float64
}

// checkWeight fails if an expression can make a value of more than maxWeight parts, beside those of its input.
func checkWeight(of *ast.AST) error {
	w := &weigher{of: of}
	if w.weigh(of.Expr(), nil); w.greatest > maxWeight {
		return fmt.Errorf("the expression can make a list or a map with more than %d elements: simplify it", maxWeight)
	}
	return nil
}

// weigh returns an upper bound of the parts of the value of an expression. A variable of the input is one part.
func (w *weigher) weigh(e ast.Expr, variables map[string]float64) (weight float64) {
	defer func() { w.greatest = max(w.greatest, weight) }()
	sum := func(of ...ast.Expr) (n float64) {
		for _, e := range of {
			n += w.weigh(e, variables)
		}
		return n
	}
	switch e.Kind() {
	case ast.IdentKind:
		return max(variables[e.AsIdent()], 1)
	case ast.SelectKind:
		return sum(e.AsSelect().Operand())
	case ast.ListKind:
		return 1 + sum(e.AsList().Elements()...)
	case ast.MapKind:
		weight = 1
		for _, entry := range e.AsMap().Entries() {
			weight += sum(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return weight
	case ast.CallKind:
		call := e.AsCall()
		weight = sum(call.Args()...)
		if call.IsMemberFunction() {
			weight += sum(call.Target())
		}
		w.greatest = max(w.greatest, weight)
		switch w.of.GetType(e.ID()).Kind() {
		case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind:
			return 1
		}
		return max(weight, 1)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inner := map[string]float64{}
		for name, n := range variables {
			inner[name] = n
		}
		inner[c.IterVar()] = w.weigh(c.IterRange(), variables)
		inner[c.IterVar2()] = inner[c.IterVar()]
		inner[c.AccuVar()] = w.weigh(c.AccuInit(), variables)
		w.weigh(c.LoopCondition(), inner)
		inner[c.AccuVar()] = w.weigh(c.LoopStep(), inner)
		return w.weigh(c.Result(), inner)
	}
	return 1
}
