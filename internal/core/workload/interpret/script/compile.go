package script

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
	"k8s.io/utils/lru"
)

// chunk is the name of every script, with which positions in errors begin.
const chunk = "script"

// compiled is a compiled script. It is immutable.
type compiled struct {
	source string
	main   *lua.FunctionProto
	// functions are the names of the global functions in order of definition.
	functions []string
	// locals are the lines of local variables. To declare the called function local is a frequent mistake.
	locals map[string]int
	// extended are the libraries that the script adds to, so that it needs its own copy.
	extended []string
	// globals is true if the script uses _G, so that it may define functions that its text does not show.
	globals bool
}

// fault is a problem of a script, without the name of the script.
type fault struct {
	reason  Reason
	line    int
	message string
}

func (f *fault) Error() string {
	if f.line > 0 {
		return fmt.Sprintf("line %d: %s", f.line, f.message)
	}
	return f.message
}

// Check returns where and why a script does not compile; nil if it does. Admission uses it.
func Check(source string) error {
	_, err := compileOnce(source)
	return err
}

// cachedScripts limits the cache, so that scripts of a kind need not be compiled at each event. A user who tries many
// scripts with a dry run could otherwise fill the hub's memory.
const cachedScripts = 256

// cache has the recently used compiled scripts by content, without failures.
var cache = lru.New(cachedScripts)

// compileOnce compiles a source that is not in the cache.
func compileOnce(source string) (*compiled, error) {
	if c, ok := cache.Get(source); ok {
		return c.(*compiled), nil
	}
	c, err := compile(source)
	if err == nil {
		cache.Add(source, c)
	}
	return c, err
}

// compile parses, guards and compiles a source. The error is a *fault.
func compile(source string) (c *compiled, err error) {
	if len(source) > SizeLimit {
		return nil, &fault{Syntax, 0, fmt.Sprintf("the script has %d bytes, more than %d", len(source), SizeLimit)}
	}
	statements, err := parse.Parse(strings.NewReader(source), chunk)
	if err != nil {
		return nil, syntaxFault(source, err)
	}
	defer func() {
		// The compiler panics at its own limits, such as too many registers.
		if r := recover(); r != nil {
			c, err = nil, &fault{Syntax, 0, fmt.Sprintf("does not compile: %v", r)}
		}
	}()
	g := &guard{locals: map[string]int{}}
	g.statements(statements)
	main, err := lua.Compile(statements, chunk)
	if err != nil {
		var e *lua.CompileError
		if errors.As(err, &e) {
			return nil, &fault{Syntax, e.Line, e.Message}
		}
		return nil, &fault{Syntax, 0, err.Error()}
	}
	plain(main)
	return &compiled{source: source, main: main, functions: g.functions, locals: g.locals, extended: g.extended,
		globals: g.globals}, nil
}

// syntaxFault rewrites an error of the parser in the words of Lua.
func syntaxFault(source string, err error) error {
	var e *parse.Error
	if !errors.As(err, &e) {
		return &fault{Syntax, 0, err.Error()}
	}
	if e.Pos.Line != parse.EOF {
		return &fault{Syntax, e.Pos.Line, fmt.Sprintf("%s near '%s'", e.Message, e.Token)}
	}
	line := strings.Count(strings.TrimRight(source, "\n"), "\n") + 1
	// A truncated script usually lacks the ends of blocks. Report that as Lua does.
	closed := source
	for range missingEnds {
		closed += "\nend"
		if _, err := parse.Parse(strings.NewReader(closed), chunk); err == nil {
			return &fault{Syntax, line, "'end' expected near <eof>"}
		}
	}
	return &fault{Syntax, line, "unexpected end of the script"}
}

// plain replaces tail calls by calls, so that the depth limit applies and all frames are visible; makes empty tables
// small instead of 32 fields; and removes the Lua 5.0 table of arguments.
func plain(proto *lua.FunctionProto) {
	// An instruction has the opcode and the operands A, C and B, with 6, 8, 9 and 9 bits.
	const (
		opcode  = 26
		c       = 9
		operand = 1<<9 - 1
	)
	skip := 0
	for i, instruction := range proto.Code {
		if skip > 0 { // operands of the previous instruction
			skip--
			continue
		}
		switch int(instruction >> opcode) {
		case lua.OP_TAILCALL:
			proto.Code[i] = instruction&(1<<opcode-1) | uint32(lua.OP_CALL)<<opcode
		case lua.OP_NEWTABLE:
			if instruction&operand == 0 {
				proto.Code[i] |= 1
			}
			if instruction>>c&operand == 0 {
				proto.Code[i] |= 1 << c
			}
		case lua.OP_SETLIST:
			if instruction>>c&operand == 0 {
				skip = 1
			}
		case lua.OP_CLOSURE:
			skip = int(proto.FunctionPrototypes[instruction&(1<<18-1)].NumUpvalues)
		case lua.OP_MOVEN:
			skip = int(instruction >> c & operand)
		}
	}
	proto.IsVarArg &^= lua.VarArgNeedsArg
	for _, inner := range proto.FunctionPrototypes {
		plain(inner)
	}
}

// missingEnds limits the attempts to parse a script again. A hostile script opens thousands of blocks, and each
// attempt parses all of it.
const missingEnds = 8

// Guard functions replace operations of the machine whose memory is not limited. No script can name them.
const (
	concatGuard = "(concat)" // of any number of values
	setGuard    = "(set)"    // of table, key and value
	indexGuard  = "(index)"  // of a key in a table's constructor: gives the key
	listGuard   = "(list)"   // of a table whose constructor ends in any number of values: gives the table
)

// guard rewrites a script so that each instruction uses little memory. Then it is enough to check the memory from time
// to time. It also finds the functions that the script defines. A local variable with the name of a function or of a
// library counts as that: this only costs a copy of the library, or an error at the call in place of an earlier one.
type guard struct {
	functions, extended []string
	locals              map[string]int
	globals             bool

	// depth is the number of enclosing functions.
	depth int
}

// inside rewrites what a node contains.
func (g *guard) inside(node any) {
	v := reflect.ValueOf(node).Elem()
	for i := range v.NumField() {
		switch part := v.Field(i).Addr().Interface().(type) {
		case *ast.Expr:
			*part = g.expression(*part)
		case *[]ast.Expr:
			g.expressions(*part)
		case *[]ast.Stmt:
			g.statements(*part)
		case **ast.FunctionExpr:
			g.expression(*part)
		case **ast.FuncName:
			g.inside(*part)
		}
	}
}

func (g *guard) statements(statements []ast.Stmt) {
	for i, s := range statements {
		statements[i] = g.statement(s)
	}
}

func (g *guard) statement(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return g.assignment(s)
	case *ast.LocalAssignStmt:
		for _, name := range s.Names {
			if g.depth == 0 {
				g.locals[name] = s.Line()
			}
		}
	case *ast.FuncDefStmt:
		g.define(s.Name.Func, s.Func) // nothing for a method
	}
	g.inside(s)
	return s
}

// define records a function that is global or added to a library.
func (g *guard) define(name, value ast.Expr) {
	if field, ok := name.(*ast.AttrGetExpr); ok {
		module, ok := field.Object.(*ast.IdentExpr)
		if ok && slices.Contains(extensible, module.Value) && !slices.Contains(g.extended, module.Value) {
			g.extended = append(g.extended, module.Value)
		}
	}
	ident, ok := name.(*ast.IdentExpr)
	_, isFunction := value.(*ast.FunctionExpr)
	if ok && isFunction && g.depth == 0 && !slices.Contains(g.functions, ident.Value) {
		g.functions = append(g.functions, ident.Value)
	}
}

// extensible are the libraries that a script may extend.
var extensible = []string{"string", "table", "math", "os"}

// assignment lets the guard set elements t[k] = v. With several values all are evaluated before the first is set, as in
// Lua.
func (g *guard) assignment(s *ast.AssignStmt) ast.Stmt {
	elements := false
	for i, target := range s.Lhs {
		if i < len(s.Rhs) {
			g.define(target, s.Rhs[i])
		}
		elements = elements || isElement(target)
		s.Lhs[i] = g.expression(target)
	}
	g.expressions(s.Rhs)
	if !elements {
		return s
	}
	set := func(target *ast.AttrGetExpr, value ast.Expr) ast.Stmt {
		return setPosition(&ast.FuncCallStmt{Expr: guarded(target, setGuard, target.Object, target.Key, value)}, s)
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		return set(s.Lhs[0].(*ast.AttrGetExpr), single(s.Rhs[0]))
	}

	block := setPosition(&ast.DoBlockStmt{}, s)
	temporary := func(exprs []ast.Expr, n int, prefix string) []ast.Expr {
		l := setPosition(&ast.LocalAssignStmt{Exprs: exprs}, s)
		var names []ast.Expr
		for i := range n {
			name := fmt.Sprintf("(%s %d)", prefix, i)
			l.Names = append(l.Names, name)
			names = append(names, setPosition(&ast.IdentExpr{Value: name}, s))
		}
		block.Stmts = append(block.Stmts, l)
		return names
	}
	var places []ast.Expr
	for _, target := range s.Lhs {
		if t, ok := target.(*ast.AttrGetExpr); ok {
			places = append(places, t.Object, t.Key)
		}
	}
	places = temporary(places, len(places), "place")
	values := temporary(s.Rhs, len(s.Lhs), "value")
	// From last to first, as the machine does. The order matters if two targets are the same.
	for i := len(s.Lhs) - 1; i >= 0; i-- {
		if t, ok := s.Lhs[i].(*ast.AttrGetExpr); ok {
			n := len(places) - 2
			t.Object, t.Key, places = places[n], places[n+1], places[:n]
			block.Stmts = append(block.Stmts, set(t, values[i]))
			continue
		}
		block.Stmts = append(block.Stmts, setPosition(&ast.AssignStmt{Lhs: []ast.Expr{s.Lhs[i]}, Rhs: []ast.Expr{values[i]}},
			s))
	}
	return block
}

// isElement reports whether an expression is t[k] with a key that is not a constant name.
func isElement(e ast.Expr) bool {
	a, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	_, field := a.Key.(*ast.StringExpr)
	return !field
}

func (g *guard) expressions(exprs []ast.Expr) {
	for i, e := range exprs {
		exprs[i] = g.expression(e)
	}
}

func (g *guard) expression(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case nil: // such as the receiver of a function that is no method
		return nil
	case *ast.TableExpr:
		return g.table(e)
	case *ast.StringConcatOpExpr:
		return g.concat(e)
	case *ast.IdentExpr:
		g.globals = g.globals || e.Value == "_G"
	case *ast.FunctionExpr:
		g.depth++
		defer func() { g.depth-- }()
	}
	g.inside(e)
	return e
}

// table guards computed keys, and lists that end in a multi-value expression.
func (g *guard) table(e *ast.TableExpr) ast.Expr {
	many := false
	for i, f := range e.Fields {
		if f.Key != nil {
			_, field := f.Key.(*ast.StringExpr)
			if f.Key = g.expression(f.Key); !field {
				f.Key = guarded(f.Key, indexGuard, single(f.Key))
			}
		}
		f.Value = g.expression(f.Value)
		many = i == len(e.Fields)-1 && f.Key == nil && isMany(f.Value)
	}
	if many {
		return guarded(e, listGuard, e)
	}
	return e
}

// concatenated is the maximum number of values per call. Each uses a register.
const concatenated = 50

// concat rewrites a chain to as few calls as possible.
func (g *guard) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	var last ast.Expr = e
	for {
		next, ok := last.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		operands = append(operands, single(g.expression(next.Lhs)))
		last = next.Rhs
	}
	operands = append(operands, single(g.expression(last)))
	for len(operands) > concatenated {
		rest := operands[len(operands)-concatenated:]
		operands = append(operands[:len(operands)-concatenated], guarded(e, concatGuard, rest...))
	}
	return guarded(e, concatGuard, operands...)
}

// isMany reports whether an expression may give several values at the end of a list.
func isMany(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// single limits an expression to one value.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// guarded returns a call of a guard at the position of where. It gives one value.
func guarded(where ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	return setPosition(&ast.FuncCallExpr{Func: setPosition(&ast.IdentExpr{Value: name}, where),
		Args:      append([]ast.Expr{}, args...),
		AdjustRet: true}, where)
}

// setPosition copies the position of a node.
func setPosition[T ast.PositionHolder](node T, where ast.PositionHolder) T {
	node.SetLine(where.Line())
	node.SetLastLine(max(where.LastLine(), where.Line()))
	return node
}
