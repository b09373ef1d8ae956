package validate

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// scriptLimit bounds what compiling may cost, in time and in stack: the compiler recurses as deep as a script nests, and takes
// the square of a chain's length. The worst script of that size takes about the second that a request may take; others milliseconds.
const scriptLimit = 64 << 10

// compiles says where and why a script is no Lua.
func compiles(script string) error {
	if len(script) > scriptLimit {
		return fmt.Errorf("the script has %d bytes, more than %d", len(script), scriptLimit)
	}
	chunk, err := parse.Parse(strings.NewReader(script), "script")
	if err != nil {
		return syntaxError(script, err)
	}
	return compile(chunk)
}

func compile(chunk []ast.Stmt) (err error) {
	defer func() {
		// The compiler panics at its own limits, such as too many registers.
		if r := recover(); r != nil {
			err = fmt.Errorf("does not compile: %v", r)
		}
	}()
	if _, err := lua.Compile(chunk, "script"); err != nil {
		var e *lua.CompileError
		if errors.As(err, &e) {
			return fmt.Errorf("line %d: %s", e.Line, e.Message)
		}
		return err
	}
	return nil
}

// syntaxError puts an error of the parser into the words of Lua itself.
func syntaxError(script string, err error) error {
	var e *parse.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Pos.Line != parse.EOF {
		return fmt.Errorf("line %d: %s near '%s'", e.Pos.Line, e.Message, e.Token)
	}
	line := strings.Count(strings.TrimRight(script, "\n"), "\n") + 1
	// A script that was cut off mostly lacks the ends of its blocks; then Lua says so.
	const deepest = 8
	closed := script
	for range deepest {
		closed += "\nend"
		if _, err := parse.Parse(strings.NewReader(closed), "script"); err == nil {
			return fmt.Errorf("line %d: 'end' expected near <eof>", line)
		}
	}
	return fmt.Errorf("line %d: unexpected end of the script", line)
}
