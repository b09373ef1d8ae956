package script

import (
	"context"
	"errors"
	"slices"

	lua "github.com/yuin/gopher-lua"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Trace is what a call does besides its result. The lists are sorted.
type Trace struct {
	// Unknown are the fields that it reads although the kind does not have them, such as spec.suspend.
	Unknown []string
	// Globals are the global variables that it sets.
	Globals []string
}

// Trace runs the operation once and ignores the result. For AggregateStatus without items it passes nil, as Karmada
// does. The error is an *Error; the trace then ends there.
func (p *Program) Trace(ctx context.Context, in interpret.Inputs) (Trace, error) {
	var found Trace
	defined := map[string]bool{}
	err := execute(ctx, p.bounds, p.compiled,
		func(r *run) (lua.LValue, error) {
			r.env.ForEach(func(name, _ lua.LValue) { defined[name.String()] = true })
			_, f, err := p.pick(r)
			return f, err
		},
		func(r *run) ([]lua.LValue, error) {
			values, err := contracts[p.operation].args(r, in)
			for _, v := range values {
				err = errors.Join(err, r.watch(v, p.schema, "", func(path string) { found.Unknown = append(found.Unknown, path) }))
			}
			if err == nil && in.Items == nil && p.operation == configv1alpha1.InterpreterOperationAggregateStatus {
				values[1] = lua.LNil
			}
			return values, err
		},
		func(r *run, _ []lua.LValue) error {
			r.env.ForEach(func(name, v lua.LValue) {
				if !defined[name.String()] && v.Type() != lua.LTFunction {
					found.Globals = append(found.Globals, name.String())
				}
			})
			return nil
		})
	slices.Sort(found.Unknown)
	slices.Sort(found.Globals)
	found.Unknown = slices.Compact(found.Unknown)
	if err != nil {
		return found, p.fault(err)
	}
	return found, nil
}

// watch opens a value completely, and calls unknown for each read of a field that its schema does not have.
func (r *run) watch(v lua.LValue, schema *Schema, path string, unknown func(path string)) error {
	t, ok := v.(*lua.LTable)
	if !ok || schema == nil {
		return nil
	}
	err := r.open(t)
	t.ForEach(func(key, value lua.LValue) {
		name, ok := key.(lua.LString)
		if !ok {
			err = errors.Join(err, r.watch(value, schema.items(), path+"[]", unknown))
			return
		}
		err = errors.Join(err, r.watch(value, schema.Field(string(name)), step(path, name), unknown))
	})
	meta := r.machine.CreateTable(0, 1)
	meta.RawSetString("__index", r.machine.NewFunction(func(l *lua.LState) int {
		if name, ok := l.Get(2).(lua.LString); ok && len(schema.Properties) > 0 && schema.Field(string(name)) == nil {
			unknown(step(path, name))
		}
		return 0
	}))
	t.Metatable = meta
	return err
}

func step(path string, name lua.LString) string {
	if path == "" {
		return string(name)
	}
	return path + "." + string(name)
}
