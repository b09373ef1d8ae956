package script

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Messages of the machine about a failed line. They contain types but no names. The names are in the script's text.
var (
	indexed  = regexp.MustCompile(`^attempt to index a non-table object\((\w+)\) with key '(.*)'$`)
	called   = regexp.MustCompile(`^attempt to call a non-function object$`)
	computed = regexp.MustCompile(`^cannot perform (\w+) operation between (\w+) and (\w+)$`)
	compared = regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`)
	joined   = regexp.MustCompile(`^(cannot join .*) to a string with \.\.$`)
	argument = regexp.MustCompile(`^bad argument #(\d+) to (\w+) \((\w+) expected, got (\w+)\)$`)
	measured = regexp.MustCompile(`^__len undefined$`)
)

// defaults are empty values by type.
var defaults = map[string]string{"table": "{}", "string": `""`, "number": "0"}

var arithmetic = map[string]string{"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "pow": "^"}

// inPlainWords describes the failure of a line in terms of the script. there reports whether the variable or field with
// the name is known to have a value.
func inPlainWords(c *compiled, line int, message string, there func(name string) bool) string {
	if m := indexed.FindStringSubmatch(message); m != nil {
		kind, key := m[1], m[2]
		owners := find(c, line, func(e *ast.AttrGetExpr) []ast.Expr {
			if k, ok := e.Key.(*ast.StringExpr); ok && k.Value != key {
				return nil
			}
			return []ast.Expr{e.Object}
		})
		if kind == "nil" {
			owners = slices.DeleteFunc(owners, there)
		}
		owner := oneOf(owners)
		if owner == "" {
			owners = find(c, line, func(e *ast.FuncCallExpr) []ast.Expr {
				if e.Func != nil || e.Method != key {
					return nil
				}
				return []ast.Expr{e.Receiver}
			})
			owner = oneOf(owners)
		}
		switch {
		case owner == "":
			return fmt.Sprintf("a value that is %s is indexed with %q", aType(kind), key)
		case kind != "nil":
			return fmt.Sprintf("%s is %s, so it has no %q", owner, aType(kind), key)
		case library.absent[owner] != "":
			return fmt.Sprintf("there is no %s here: %s", owner, library.absent[owner])
		case owner == "kube":
			return fmt.Sprintf("kube is nil, so it has no %q; begin the script with: local kube = require(\"kube\")", key)
		}
		return fmt.Sprintf("%s is nil, so it has no %q; check it before, such as: if %s ~= nil then", owner, key, owners[0])
	}
	if called.MatchString(message) {
		names := find(c, line, func(e *ast.FuncCallExpr) []ast.Expr {
			if e.Func != nil {
				return []ast.Expr{e.Func}
			}
			return []ast.Expr{&ast.AttrGetExpr{Object: e.Receiver, Key: &ast.StringExpr{Value: e.Method}}}
		})
		for _, name := range names {
			module, _, _ := strings.Cut(name, ".")
			if why, ok := library.absent[module]; ok {
				return fmt.Sprintf("there is no %s here: %s", name, why)
			}
		}
		// Functions that the script or the library defines are probably not the missing ones.
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains(c.names(), name) ||
				slices.ContainsFunc(c.locals, func(f Function) bool { return f.Name == name }) || defined(name)
		})
		if name := oneOf(names); name != "" {
			return fmt.Sprintf("%s is called, but is not a function", name)
		}
		return "a value is called that is not a function"
	}
	if m := computed.FindStringSubmatch(message); m != nil {
		sign := arithmetic[m[1]]
		operands := find(c, line, func(e *ast.ArithmeticOpExpr) []ast.Expr {
			if e.Operator != sign {
				return nil
			}
			return wrong(e.Lhs, e.Rhs, m[2], m[3], "number")
		})
		return operation("compute with "+sign, operands, m[2], m[3])
	}
	if m := compared.FindStringSubmatch(message); m != nil {
		operands := find(c, line, func(e *ast.RelationalOpExpr) []ast.Expr {
			if e.Operator == "==" || e.Operator == "~=" {
				return nil
			}
			// The machine rewrites > and >= with swapped operands.
			left, right := m[1], m[2]
			if strings.HasPrefix(e.Operator, ">") {
				left, right = right, left
			}
			return wrong(e.Lhs, e.Rhs, left, right, "")
		})
		return operation("compare", operands, m[1], m[2])
	}
	if m := joined.FindStringSubmatch(message); m != nil && strings.HasSuffix(m[1], "nil") {
		operands := find(c, line, func(e *ast.StringConcatOpExpr) []ast.Expr {
			if _, chain := e.Rhs.(*ast.StringConcatOpExpr); chain {
				return []ast.Expr{e.Lhs}
			}
			return []ast.Expr{e.Lhs, e.Rhs}
		})
		if one := oneOf(operands); one != "" {
			return fmt.Sprintf("%s to a string with ..; look at %s", m[1], one)
		}
	}
	if m := argument.FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		given := oneOf(find(c, line, func(e *ast.FuncCallExpr) []ast.Expr {
			args := e.Args
			if e.Func == nil {
				args = append([]ast.Expr{e.Receiver}, args...)
				if e.Method != m[2] {
					return nil
				}
			} else if name := path(e.Func); name != m[2] && !strings.HasSuffix(name, "."+m[2]) {
				return nil
			}
			if n > len(args) {
				return nil
			}
			return args[n-1 : n]
		}))
		if given == "" {
			given = "argument " + m[1]
		}
		if instead, ok := defaults[m[3]]; ok && m[4] == "nil" {
			return fmt.Sprintf("%s needs %s, but %s is nil; check it before, or give a default, such as: (%s or %s)", m[2],
				aType(m[3]), given, given, instead)
		}
		return fmt.Sprintf("%s needs %s, but %s is %s", m[2], aType(m[3]), given, aType(m[4]))
	}
	if measured.MatchString(message) {
		owner := oneOf(find(c, line, func(e *ast.UnaryLenOpExpr) []ast.Expr { return []ast.Expr{e.Expr} }))
		if owner == "" {
			owner = "something"
		}
		return fmt.Sprintf("# asks for the length of %s, which is neither a table nor a string", owner)
	}
	return message
}

// defined reports whether a name such as string.rep is in the library.
func defined(name string) bool {
	var v lua.LValue = library.base
	for step := range strings.SplitSeq(name, ".") {
		t, ok := v.(*lua.LTable)
		if !ok {
			return false
		}
		if meta, frozen := t.Metatable.(*lua.LTable); frozen {
			t, _ = meta.RawGetString("__index").(*lua.LTable)
		}
		v = t.RawGetString(step)
	}
	return v != lua.LNil
}

// operation describes an operation that is impossible with operands, including nil.
func operation(what string, operands []string, left, right string) string {
	missing := left == "nil" || right == "nil"
	one := oneOf(operands)
	switch {
	case one != "" && missing:
		return fmt.Sprintf("cannot %s: %s is nil; give it a value for that case, such as: (%s or 0)", what, one, one)
	case one != "":
		return fmt.Sprintf("cannot %s %s and %s; look at %s", what, aType(left), aType(right), one)
	}
	return fmt.Sprintf("cannot %s %s and %s", what, aType(left), aType(right))
}

// wrong returns those of two operands with an unsuitable type: the nil ones, or both if their types differ.
func wrong(lhs, rhs ast.Expr, left, right, wanted string) []ast.Expr {
	var out []ast.Expr
	if wanted == "" && left != "nil" && right != "nil" {
		return []ast.Expr{lhs, rhs}
	}
	for i, e := range []ast.Expr{lhs, rhs} {
		found := []string{left, right}[i]
		if wanted == "" && found == "nil" || wanted != "" && found != wanted && found != "string" {
			out = append(out, e)
		}
	}
	return out
}

func aType(kind string) string {
	if kind == "nil" {
		return kind
	}
	return "a " + kind
}

// oneOf names the candidates in a message.
func oneOf(names []string) string { return strings.Join(names, " or ") }

// find returns the names in the expressions of a kind at a line, without duplicates.
func find[E ast.Expr](c *compiled, line int, of func(E) []ast.Expr) []string {
	statements, err := parse.Parse(strings.NewReader(c.source), chunk)
	if err != nil || line == 0 {
		return nil
	}
	var names []string
	inspect(reflect.ValueOf(statements), func(e ast.Expr) {
		if found, ok := e.(E); ok && e.Line() == line {
			for _, target := range of(found) {
				if name := path(target); name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	})
	return names
}

// inspect visits all expressions, inner ones first, as in evaluation.
func inspect(v reflect.Value, visit func(ast.Expr)) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			inspect(v.Index(i), visit)
		}
	case reflect.Interface:
		inspect(v.Elem(), visit)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		inspect(v.Elem(), visit)
		if e, ok := v.Interface().(ast.Expr); ok {
			visit(e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				inspect(v.Field(i), visit)
			}
		}
	}
}

// path returns an expression as written in the script if it is a variable or field; otherwise empty.
func path(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.AttrGetExpr:
		object := path(e.Object)
		if object == "" {
			return ""
		}
		switch key := e.Key.(type) {
		case *ast.StringExpr:
			return object + "." + key.Value
		case *ast.NumberExpr:
			return object + "[" + key.Value + "]"
		}
		if key := path(e.Key); key != "" {
			return object + "[" + key + "]"
		}
	}
	return ""
}
