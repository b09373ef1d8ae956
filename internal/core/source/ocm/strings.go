package ocm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// madeLimit is the longest text that a function of an expression makes, in bytes. The cost of an expression counts what
// goes into a function, but x.replace("", x) of 100 kB makes 10 GB.
const madeLimit = 1 << 20

// growing are the string functions whose result can be much longer than what goes in, with its length.
var growing = map[string]func(args []ref.Val) int{
	"replace": func(args []ref.Val) int {
		text, old, with := textOf(args[0]), textOf(args[1]), textOf(args[2])
		n := strings.Count(text, old)
		if len(args) == 4 {
			if most, ok := args[3].Value().(int64); ok && most >= 0 {
				n = int(min(int64(n), most))
			}
		}
		return len(text) + n*len(with)
	},
	"join": func(args []ref.Val) int {
		separator := ""
		if len(args) == 2 {
			separator = textOf(args[1])
		}
		return length(args[0], len(separator))
	},
	"format": func(args []ref.Val) int {
		text := textOf(args[0])
		for _, precision := range precisions.FindAllStringSubmatch(text, -1) {
			if n, err := strconv.Atoi(precision[1]); err != nil || n > maxPrecision {
				return madeLimit + 1
			}
		}
		return len(text) + 2*length(args[1], 0) + maxPrecision*strings.Count(text, "%.") // %x doubles a text
	},
}

// precisions are the numbers of digits in a text for format. Each pads a number to that length.
var precisions = regexp.MustCompile(`%\.([0-9]+)`)

const maxPrecision = 100

// costly are the functions that read a whole text, with the bytes of it that cost one unit. The library counts none of
// them, or too little.
var costly = map[string]uint64{"parseJSON": 1, "scores": 1, "reverse": 10, "charAt": 10, "size": 10}

// costs adds the size of what growing functions make to their cost, as for other texts a tenth of it, and that of
// costly ones.
type costs struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	cost := c.CostEstimator.CallCost(function, overload, args, result)
	bytes := costly[function]
	if growing[function] == nil && bytes == 0 {
		return cost
	}
	made := uint64(1)
	if bytes > 0 {
		made += uint64(len(textOf(args[0]))) / bytes
	}
	if function != "size" {
		made += uint64(length(result, 0)) / 10
	}
	if cost != nil {
		made += *cost
	}
	return &made
}

// boundedStrings are the string functions of expressions, in a version. Those that grow fail beyond madeLimit.
func boundedStrings(version uint32) (cel.EnvOption, error) {
	env, err := cel.NewCustomEnv(ext.Strings(ext.StringsVersion(version)))
	if err != nil {
		return nil, err
	}
	var all []*decls.FunctionDecl
	for name, function := range env.Functions() {
		if size := growing[name]; size != nil {
			if function, err = bounded(function, size); err != nil {
				return nil, err
			}
		}
		all = append(all, function)
	}
	return cel.FunctionDecls(all...), nil
}

// bounded is a function that fails if size of its arguments exceeds madeLimit.
func bounded(function *decls.FunctionDecl, size func([]ref.Val) int) (*decls.FunctionDecl, error) {
	bindings, err := function.Bindings()
	if err != nil {
		return nil, err
	}
	by := map[string]*functions.Overload{}
	for _, b := range bindings {
		by[b.Operator] = b
	}
	var options []decls.FunctionOpt
	for _, o := range function.OverloadDecls() {
		binding := by[o.ID()]
		if binding == nil {
			return nil, fmt.Errorf("the overload %s of %s has no binding", o.ID(), function.Name())
		}
		check := func(args ...ref.Val) ref.Val {
			if size(args) > madeLimit {
				return types.NewErr("%s makes a text of more than %d bytes", function.Name(), madeLimit)
			}
			switch {
			case binding.Unary != nil && len(args) == 1:
				return binding.Unary(args[0])
			case binding.Binary != nil && len(args) == 2:
				return binding.Binary(args[0], args[1])
			}
			return binding.Function(args...)
		}
		var bind decls.OverloadOpt
		switch len(o.ArgTypes()) {
		case 1:
			bind = decls.UnaryBinding(func(a ref.Val) ref.Val { return check(a) })
		case 2:
			bind = decls.BinaryBinding(func(a, b ref.Val) ref.Val { return check(a, b) })
		default:
			bind = decls.FunctionBinding(check)
		}
		options = append(options, decls.MemberOverload(o.ID(), o.ArgTypes(), o.ResultType(), bind))
	}
	return decls.NewFunction(function.Name(), options...)
}

func textOf(v ref.Val) string {
	text, _ := v.(types.String)
	return string(text)
}

// length returns the length of all texts in a value, and of separators between the elements of a list. It stops beyond
// madeLimit.
func length(v ref.Val, separator int) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case traits.Lister:
		n := 0
		for it := v.Iterator(); it.HasNext() == types.True && n <= madeLimit; {
			n += length(it.Next(), 0) + separator
		}
		return n
	case traits.Mapper:
		n := 0
		for it := v.Iterator(); it.HasNext() == types.True && n <= madeLimit; {
			key := it.Next()
			n += length(key, 0) + length(v.Get(key), 0)
		}
		return n
	}
	return 64 // a number, at most as bits, a time or a type
}
