package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// inputs are the types that decide, and the folders that may make one: internal/facts reads them for everybody. A
// reader elsewhere would forget a field that the hub's controllers read.
var inputs = map[string][]string{
	"propagate.Observed": {"internal/facts",
		"internal/controller/admission",   // of an object that does not exist yet
		"internal/core/source/adopt",      // with a policy that is only planned
		"internal/core/explain/simulate"}, // of a fleet in memory
	"failover.Input": {"internal/facts", "internal/core/explain/simulate"},
	"release.Input":  {"internal/facts"},
	"release.Target": {"internal/facts",
		"internal/controller/release"}, // of a workload without a release, for its current revision
}

// TestInputsOfDecisionsAreReadInOnePlace finds composite literals of the types of inputs elsewhere. A release.Input
// with nothing but a Release is no input of a step: its methods answer what a release alone decides.
func TestInputsOfDecisionsAreReadInOnePlace(t *testing.T) {
	for _, f := range files(t) {
		if !f.test && !strings.HasPrefix(f.folder, "test") {
			for _, complaint := range madeInputs(f) {
				t.Error(complaint)
			}
		}
	}
}

func madeInputs(f file) (complaints []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		selector, ok := literal.Type.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		name := of.Name + "." + selector.Sel.Name
		makers, is := inputs[name]
		if is && !slices.Contains(makers, f.folder) && !onlyRelease(literal) {
			complaints = append(complaints, f.describe(literal.Pos(), "makes a %s: read it with internal/facts", name))
		}
		return true
	})
	return complaints
}

// onlyRelease reports whether a literal has no field but Release and Strategy; that of an error has none.
func onlyRelease(literal *ast.CompositeLit) bool {
	return !slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := pair.Key.(*ast.Ident)
		return !ok || key.Name != "Release" && key.Name != "Strategy"
	})
}

func TestInputsMadeElsewhereAreFound(t *testing.T) {
	for source, wrong := range map[string]bool{
		"var x = release.Input{Release: r, Now: now}":               true,
		"var x = &failover.Input{Options: o}":                       true,
		"var x = propagate.Decide(propagate.Observed{Template: t})": true,
		"var x = release.Input{Release: r}":                         false,
		"var x = release.Input{Release: r, Strategy: s}":            false,
		"var x = release.Target{Template: t}":                       true,
		"var x = dispatch.Input{Binding: b}":                        false,
		"func f(in release.Input) release.Input { return in }":      false,
	} {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, "x.go", "package x\n"+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := madeInputs(file{folder: "internal/why", name: "x.go", ast: parsed, set: set}); len(got) > 0 != wrong {
			t.Errorf("%s: %v", source, got)
		}
		if got := madeInputs(file{folder: "internal/facts", name: "x.go", ast: parsed, set: set}); len(got) > 0 {
			t.Errorf("in internal/facts, %s: %v", source, got)
		}
	}
}

// TestReadinessOfClustersIsReadInOnePlace finds other readers of the condition Ready than membership.IsReady,
// KnownNotReady and LostSince. They would answer differently for clusters without a condition.
func TestReadinessOfClustersIsReadInOnePlace(t *testing.T) {
	for _, f := range files(t) {
		if f.test || f.folder == "internal/core/cluster/membership" || strings.HasPrefix(f.folder, "test") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && readsReadiness(call) {
				t.Error(f.describe(call.Pos(), "reads the condition Ready of a cluster: call membership.IsReady"))
			}
			return true
		})
	}
}

// readsReadiness reports whether a call compares the condition Ready of a cluster with a status.
func readsReadiness(call *ast.CallExpr) bool {
	called, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(called.Sel.Name, "IsStatusCondition") &&
		slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
			kind, ok := arg.(*ast.SelectorExpr)
			return ok && kind.Sel.Name == "ClusterConditionReady"
		})
}

func TestReadersOfReadinessAreFound(t *testing.T) {
	for source, wrong := range map[string]bool{
		"meta.IsStatusConditionTrue(s.Conditions, clusterv1alpha1.ClusterConditionReady)":          true,
		"meta.IsStatusConditionFalse(s.Conditions, clusterv1alpha1.ClusterConditionReady)":         true,
		"meta.IsStatusConditionTrue(s.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)": false,
		"meta.FindStatusCondition(s.Conditions, clusterv1alpha1.ClusterConditionReady)":            false,
	} {
		parsed, err := parser.ParseExpr(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := readsReadiness(parsed.(*ast.CallExpr)); got != wrong {
			t.Errorf("%s: %t", source, got)
		}
	}
}
