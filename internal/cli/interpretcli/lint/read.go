package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// each in a path stands for any element of a list or map.
const each = "*"

// origin is the source of a value: a path in an argument. Negative roots are none.
type origin struct {
	root int
	path []string
}

const (
	nowhere = -1
	kube    = -2
)

// reading is what a script reads and writes of its arguments, as far as the text shows.
type reading struct {
	// reads are paths by argument, in order of lines.
	reads []access
	// kept are the paths that the first argument gets from the second one.
	kept []access
	// guarded are the arguments that are compared to nil or have a default.
	guarded map[int]bool
}

type access struct {
	root int
	path []string
	line int
}

// readsPath reports whether the path of an argument, or something in it, is read.
func (r *reading) readsPath(root int, path ...string) bool {
	return slices.ContainsFunc(r.reads, func(a access) bool {
		return a.root == root && len(a.path) >= len(path) && slices.Equal(a.path[:len(path)], path)
	})
}

// reader analyses a script. It follows values through variables and loops, not through functions and tables.
type reader struct {
	*reading
	c        *checker
	scope    []map[string]origin
	depth    int
	reported map[string]bool
	name     string // the called function
	lenOf    []access
	inLoop   []access
}

// read reports what the text of the script shows. name is the called function.
func (c *checker) read(name string) *reading {
	statements, err := parse.Parse(strings.NewReader(c.script.text), "script")
	if err != nil {
		return &reading{}
	}
	r := &reader{reading: &reading{guarded: map[int]bool{}}, c: c, reported: map[string]bool{}, name: name}
	r.block(statements, nil)
	if c.script.operation.Operation == configv1alpha1.InterpreterOperationAggregateStatus && !r.guarded[1] {
		for _, a := range append(r.lenOf, r.inLoop...) {
			if a.root == 1 && len(a.path) == 0 {
				c.reportAt(a.line, Warning, NilCheck,
					"the items are nil in Karmada while no cluster has reported, and then this line fails",
					"begin with: statusItems = statusItems or {}")
				break
			}
		}
	}
	r.fields()
	return r.reading
}

// closed adds the missing ends of blocks to a script.
func closed(text string) (string, bool) {
	const deepest = 8
	for range deepest {
		if _, err := parse.Parse(strings.NewReader(text), "script"); err == nil {
			return text, true
		}
		text += "\nend"
	}
	return "", false
}

func (r *reader) push(names map[string]origin) { r.scope = append(r.scope, names) }
func (r *reader) pop()                         { r.scope = r.scope[:len(r.scope)-1] }

func (r *reader) declare(name string, o origin) { r.scope[len(r.scope)-1][name] = o }

func (r *reader) lookup(name string) (origin, bool) {
	for i := len(r.scope) - 1; i >= 0; i-- {
		if o, ok := r.scope[i][name]; ok {
			return o, true
		}
	}
	return origin{root: nowhere}, false
}

func (r *reader) block(statements []ast.Stmt, names map[string]origin) {
	if names == nil {
		names = map[string]origin{}
	}
	r.push(names)
	for _, s := range statements {
		r.statement(s)
	}
	r.pop()
}

// function analyses the body of a function. The parameters of the called one are the operation's arguments.
func (r *reader) function(name string, f *ast.FunctionExpr) {
	params := map[string]origin{}
	for i, p := range f.ParList.Names {
		params[p] = origin{root: nowhere}
		if name != "" && name == r.name && r.depth == 0 {
			params[p] = origin{root: i}
		}
	}
	r.depth++
	r.block(f.Stmts, params)
	r.depth--
}

func (r *reader) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		origins := make([]origin, len(s.Names))
		for i := range origins {
			origins[i] = origin{root: nowhere}
		}
		if len(s.Names) == 1 && len(s.Exprs) == 1 {
			if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
				r.declare(s.Names[0], origin{root: nowhere})
				r.function(s.Names[0], f)
				return
			}
		}
		for i, e := range s.Exprs {
			o := r.expression(e)
			if i < len(origins) {
				origins[i] = o
			}
		}
		for i, name := range s.Names {
			r.declare(name, origins[i])
		}
	case *ast.AssignStmt:
		r.assignment(s)
	case *ast.FuncCallStmt:
		r.expression(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts, nil)
	case *ast.WhileStmt:
		r.expression(s.Condition)
		r.block(s.Stmts, nil)
	case *ast.RepeatStmt:
		r.block(s.Stmts, nil)
	case *ast.IfStmt:
		r.expression(s.Condition)
		r.block(s.Then, nil)
		r.block(s.Else, nil)
	case *ast.NumberForStmt:
		r.expression(s.Init)
		r.expression(s.Limit)
		if s.Step != nil {
			r.expression(s.Step)
		}
		r.block(s.Stmts, map[string]origin{s.Name: {root: nowhere}})
	case *ast.GenericForStmt:
		r.loop(s)
	case *ast.FuncDefStmt:
		name := ""
		if ident, ok := s.Name.Func.(*ast.IdentExpr); ok {
			name = ident.Value
		}
		r.function(name, s.Func)
	case *ast.ReturnStmt:
		for _, e := range s.Exprs {
			r.expression(e)
			r.rebuilt(e)
		}
	}
}

// rebuilt reports a new object with a missing part.
func (r *reader) rebuilt(e ast.Expr) {
	table, ok := e.(*ast.TableExpr)
	if !ok || r.c.script.operation.Operation != configv1alpha1.InterpreterOperationAggregateStatus || r.c.kind == nil {
		return
	}
	var keys []string
	for _, f := range table.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok {
			keys = append(keys, key.Value)
		}
	}
	if _, has := r.c.kind.Schema.Properties["spec"]; has && slices.Contains(keys, "metadata") &&
		!slices.Contains(keys, "spec") {
		r.c.reportAt(e.Line(), Warning, Result, "a new object is returned, without its spec",
			"set desiredObj.status, and return desiredObj")
	}
}

// loop sets the origins of the variables of a loop over ipairs or pairs.
func (r *reader) loop(s *ast.GenericForStmt) {
	names := map[string]origin{}
	for _, name := range s.Names {
		names[name] = origin{root: nowhere}
	}
	for _, e := range s.Exprs {
		call, ok := e.(*ast.FuncCallExpr)
		ident, named := func() (*ast.IdentExpr, bool) {
			if !ok {
				return nil, false
			}
			i, is := call.Func.(*ast.IdentExpr)
			return i, is
		}()
		if named && len(call.Args) == 1 && len(s.Names) > 1 && (ident.Value == "ipairs" || ident.Value == "pairs") {
			if o := r.expression(call.Args[0]); o.root >= 0 {
				r.inLoop = append(r.inLoop, access{o.root, o.path, e.Line()})
				names[s.Names[1]] = o.child(each)
			}
			continue
		}
		r.expression(e)
	}
	r.block(s.Stmts, names)
}

func (r *reader) assignment(s *ast.AssignStmt) {
	values := make([]origin, len(s.Lhs))
	for i := range values {
		values[i] = origin{root: nowhere}
	}
	for i, e := range s.Rhs {
		if f, ok := e.(*ast.FunctionExpr); ok && i < len(s.Lhs) {
			name := ""
			if ident, ok := s.Lhs[i].(*ast.IdentExpr); ok {
				name = ident.Value
			}
			r.function(name, f)
			continue
		}
		o := r.expression(e)
		if i < len(values) {
			values[i] = o
		}
	}
	for i, target := range s.Lhs {
		ident, ok := target.(*ast.IdentExpr)
		if !ok {
			to := r.expression(target)
			if to.root == 0 && values[i].root == 1 && slices.Equal(to.path, values[i].path) {
				r.kept = append(r.kept, access{0, to.path, s.Line()})
			}
			continue
		}
		if _, known := r.lookup(ident.Value); known {
			for k := len(r.scope) - 1; k >= 0; k-- {
				if _, here := r.scope[k][ident.Value]; here {
					r.scope[k][ident.Value] = values[i]
					break
				}
			}
			continue
		}
		if r.depth > 0 && !r.reported[ident.Value] {
			r.reported[ident.Value] = true
			r.c.reportAt(s.Line(), Warning, Global,
				fmt.Sprintf("%s is global: in Karmada it persists after the call, and may affect the next object", ident.Value),
				"write local "+ident.Value)
		}
		r.scope[0][ident.Value] = values[i]
	}
}

func (o origin) child(key string) origin {
	if o.root < 0 {
		return origin{root: nowhere}
	}
	return origin{o.root, append(slices.Clone(o.path), key)}
}

// expression returns the origin of an expression's value.
func (r *reader) expression(e ast.Expr) origin {
	none := origin{root: nowhere}
	switch e := e.(type) {
	case *ast.IdentExpr:
		o, _ := r.lookup(e.Value)
		return o
	case *ast.AttrGetExpr:
		from := r.expression(e.Object)
		key, named := e.Key.(*ast.StringExpr)
		if !named {
			r.expression(e.Key)
		}
		if from.root == kube && named {
			r.library(key.Value, e.Line())
			return none
		}
		if from.root < 0 {
			return none
		}
		o := from.child(each)
		if named {
			o = from.child(key.Value)
		}
		r.reads = append(r.reads, access{o.root, o.path, e.Line()})
		return o
	case *ast.LogicalOpExpr:
		left, right := r.expression(e.Lhs), r.expression(e.Rhs)
		if e.Operator == "or" {
			r.guard(left)
			if left.root >= 0 {
				return left
			}
		}
		return right
	case *ast.RelationalOpExpr:
		left, right := r.expression(e.Lhs), r.expression(e.Rhs)
		if _, ok := e.Rhs.(*ast.NilExpr); ok {
			r.guard(left)
		}
		if _, ok := e.Lhs.(*ast.NilExpr); ok {
			r.guard(right)
		}
	case *ast.UnaryNotOpExpr:
		r.guard(r.expression(e.Expr))
	case *ast.UnaryLenOpExpr:
		if o := r.expression(e.Expr); o.root >= 0 {
			r.lenOf = append(r.lenOf, access{o.root, o.path, e.Line()})
		}
	case *ast.UnaryMinusOpExpr:
		r.expression(e.Expr)
	case *ast.ArithmeticOpExpr:
		r.expression(e.Lhs)
		r.expression(e.Rhs)
	case *ast.StringConcatOpExpr:
		r.expression(e.Lhs)
		r.expression(e.Rhs)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				r.expression(f.Key)
			}
			r.expression(f.Value)
		}
	case *ast.FunctionExpr:
		r.function("", e)
	case *ast.FuncCallExpr:
		if e.Func == nil {
			r.expression(e.Receiver)
		} else {
			if ident, ok := e.Func.(*ast.IdentExpr); ok && ident.Value == "require" && len(e.Args) == 1 {
				if name, ok := e.Args[0].(*ast.StringExpr); ok && name.Value == "kube" {
					return origin{root: kube}
				}
			}
			r.expression(e.Func)
		}
		for _, a := range e.Args {
			r.expression(a)
		}
	}
	return none
}

func (r *reader) guard(o origin) {
	if o.root >= 0 && len(o.path) == 0 {
		r.guarded[o.root] = true
	}
}

func (r *reader) library(name string, line int) {
	if slices.Contains(script.KubeFunctions(), name) {
		return
	}
	r.c.reportAt(line, Error, Library, fmt.Sprintf("kube has no function %s", name),
		"use "+oneOf(name, script.KubeFunctions()))
}

// fields reports paths that are not in the kind's schema, without paths below a reported one.
func (r *reader) fields() {
	if r.c.kind == nil {
		return
	}
	var unknown []string
	for _, a := range r.reads {
		s := r.c.schemaOf(a.root)
		at := -1
		for i, name := range a.path {
			next, open := descend(s, name)
			if open {
				break
			}
			if next == nil {
				at = i
				break
			}
			s = next
		}
		if at < 0 {
			continue
		}
		where := strings.Join(a.path[:at+1], ".")
		key := fmt.Sprintf("%d %s", a.root, where)
		if slices.Contains(unknown, key) {
			continue
		}
		unknown = append(unknown, key)
		r.c.reportAt(a.line, Warning, UnknownField, fmt.Sprintf("%s has no field %s: it is always nil",
			r.c.argumentName(a.root),
			strings.ReplaceAll(where, "."+each, "[]")),
			alternatives(s, a.path[at]))
	}
	if r.c.kind.ClusterScoped && r.readsPath(0, "metadata", "namespace") &&
		r.c.script.operation.Field == "dependencyInterpretation" {
		for _, a := range r.reads {
			if a.root == 0 && slices.Equal(a.path, []string{"metadata", "namespace"}) {
				r.c.reportAt(a.line, Warning, Namespace,
					fmt.Sprintf("%s is cluster-scoped: metadata.namespace is always nil, and a reference without a namespace finds nothing", r.c.target.Kind),
					"set the namespace of each reference, from the selector or from the field that refers to it")
				break
			}
		}
	}
}

// argumentName returns what an argument is, for messages.
func (c *checker) argumentName(root int) string {
	if c.script.operation.Operation == configv1alpha1.InterpreterOperationAggregateStatus && root == 1 {
		return "an item of " + c.target.Kind
	}
	return c.target.Kind
}

// schemaOf returns the schema of an argument.
func (c *checker) schemaOf(root int) *apiextensionsv1.JSONSchemaProps {
	switch {
	case root == 0, c.script.operation.Operation == configv1alpha1.InterpreterOperationRetain && root == 1:
		return c.kind.Schema
	case c.script.operation.Operation == configv1alpha1.InterpreterOperationAggregateStatus && root == 1:
		status := c.kind.Schema.Properties["status"]
		if len(status.Properties) > 0 {
			status = *status.DeepCopy()
			status.Properties["generation"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
			status.Properties["resourceTemplateGeneration"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
		}
		return &apiextensionsv1.JSONSchemaProps{Type: "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"clusterName": {Type: "string"}, "applied": {Type: "boolean"}, "appliedMessage": {Type: "string"},
					"health": {Type: "string"},
					"status": status,
				},
			}}}
	}
	return &apiextensionsv1.JSONSchemaProps{}
}

// descend returns the schema of the next step; nil if there is nothing, open if there may be anything.
func descend(s *apiextensionsv1.JSONSchemaProps, name string) (next *apiextensionsv1.JSONSchemaProps, open bool) {
	if s.Items != nil && s.Items.Schema != nil {
		if name == each {
			return s.Items.Schema, false
		}
		return nil, false
	}
	if p, ok := s.Properties[name]; ok {
		return &p, false
	}
	if a := s.AdditionalProperties; a != nil {
		if a.Schema != nil {
			return a.Schema, false
		}
		return nil, a.Allows
	}
	anything := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.XEmbeddedResource
	return nil, anything || name == each || len(s.Properties) == 0 && (s.Type == "" || s.Type == "object")
}

// alternatives suggests other fields.
func alternatives(s *apiextensionsv1.JSONSchemaProps, name string) string {
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		return "remove it"
	}
	return "use " + oneOf(name, names) + ", or remove it"
}

// oneOf returns the probable name, or all if they are few.
func oneOf(name string, names []string) string {
	if n := text.Meant(name, names); n != "" {
		return n
	}
	const few = 12
	if len(names) > few {
		return "one of " + strings.Join(names[:few], ", ") + ", …"
	}
	return "one of " + strings.Join(names, ", ")
}
