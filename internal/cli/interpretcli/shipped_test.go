package interpretcli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/shipped"
)

// shippedCases are the cases of the shipped customizations.
const shippedCases = "../../core/workload/interpret/shipped/testdata/*.yaml"

// shippedOperations returns the operations of the shipped customizations by kind.
func shippedOperations(t *testing.T) map[schema.GroupVersionKind][]configv1alpha1.InterpreterOperation {
	t.Helper()
	all, err := shipped.Customizations()
	if err != nil {
		t.Fatal(err)
	}
	operations := map[schema.GroupVersionKind][]configv1alpha1.InterpreterOperation{}
	for _, c := range all {
		kind := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		for _, s := range script.Scripts(c.Spec.Customizations) {
			operations[kind] = append(operations[kind], s.Operation)
		}
	}
	return operations
}

func TestShippedScriptsHaveNoFindings(t *testing.T) {
	all, err := shipped.Customizations()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for operation, found := range try(t.Context(), c, &schemas.Set{}) {
			if len(found.warnings)+len(found.failures) > 0 {
				t.Errorf("%s: %s: %s", c.Name, operation, found)
			}
		}
	}
}

// A script is given what an API server lets through, and more: nothing in it may be taken for granted.
func TestShippedScriptsAcceptMissingFields(t *testing.T) {
	for kind, operations := range shippedOperations(t) {
		for _, content := range []map[string]any{
			{},
			{"spec": map[string]any{}, "status": map[string]any{}},
			{"metadata": "x", "spec": "x", "status": int64(1)},
			{"metadata": map[string]any{"name": "x", "annotations": "x"}, "spec": []any{}, "status": []any{}},
		} {
			object := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}
			for key, value := range content {
				object[key] = value
			}
			n := int32(2)
			for _, operation := range operations {
				q := question{operation: operation, desired: &unstructured.Unstructured{Object: object}, replicas: &n}
				if operation == configv1alpha1.InterpreterOperationRetain {
					q.observed = q.desired
				}
				_, err := q.answer(context.Background(), shipped.Tier())
				var fault *script.Error
				if errors.As(err, &fault) && fault.Reason != script.BadResult {
					t.Errorf("%s of %v: %v", operation, object, err)
				}
			}
		}
	}
}

// asking is a tier that notes what is asked.
type asking struct {
	interpret.Tier
	asked map[string]bool
}

func (a asking) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	a.asked[kind.GroupKind().String()+" "+string(operation)] = true
	return a.Tier.Find(kind, operation)
}

func TestShippedScriptsPassTheirCases(t *testing.T) {
	files, err := filepath.Glob(shippedCases)
	if err != nil || len(files) == 0 {
		t.Fatalf("find cases: %d files, %v", len(files), err)
	}
	asked := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parseCases(text)
			if err != nil {
				t.Fatal(err)
			}
			results, err := f.run(context.Background(), asking{shipped.Tier(), asked})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Failure != "" {
					t.Errorf("%s: %s: %s", r.Name, r.Operation, r.Failure)
				}
			}
		})
	}
	var untold []string
	for kind, operations := range shippedOperations(t) {
		for _, operation := range operations {
			if key := kind.GroupKind().String() + " " + string(operation); !asked[key] {
				untold = append(untold, key)
			}
		}
	}
	slices.Sort(untold)
	for _, key := range untold {
		t.Errorf("no case asks %s", key)
	}
}

// mutants are copies of a value with one thing in it, anywhere, turned into something else.
func mutants(value any, visit func(any)) {
	for _, other := range []any{"x", true, []any{int64(-1)}, map[string]any{"x": nil}} {
		visit(other)
	}
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			mutants(v[key], func(m any) {
				changed := maps.Clone(v)
				changed[key] = m
				visit(changed)
			})
		}
	case []any:
		for i := range v {
			mutants(v[i], func(m any) {
				changed := slices.Clone(v)
				changed[i] = m
				visit(changed)
			})
		}
	}
}

// What a member reports is whatever somebody wrote there. A script may say that it makes no sense, in an answer of the
// wrong form at worst; it may not stumble.
func TestShippedScriptsAcceptAnyStatus(t *testing.T) {
	files, err := filepath.Glob(shippedCases)
	if err != nil || len(files) == 0 {
		t.Fatalf("find cases: %d files, %v", len(files), err)
	}
	// With -short every tenth object is tried.
	made, every := 0, 1
	if testing.Short() {
		every = 10
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseCases(text)
		if err != nil {
			t.Fatal(err)
		}
		stumbles := map[string]bool{}
		try := func(q question, what any) {
			if made++; made%every != 0 {
				return
			}
			var fault *script.Error
			_, err := q.answer(context.Background(), shipped.Tier())
			for again := 0; again < 5 && errors.As(err, &fault) && fault.Reason == script.DeadlineExceeded; again++ {
				// A machine that is busy with something else is slow now and then; a loop without an end is so each time.
				_, err = q.answer(context.Background(), shipped.Tier())
			}
			if !errors.As(err, &fault) || fault.Reason == script.BadResult {
				return
			}
			// That a pod template or a quantity is none is for the library to say, and it does.
			if !strings.Contains(fault.Message, "the pod template: ") && !strings.Contains(fault.Message, "takes quantities") {
				if !stumbles[fault.Error()] {
					t.Errorf("%s: %v\n  of %v", filepath.Base(file), fault, what)
				}
				stumbles[fault.Error()] = true
			}
		}
		messages := map[configv1alpha1.InterpreterOperation]bool{}
		for _, c := range f.Cases {
			q, err := f.question(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"spec", "status"} {
				if part == "spec" && messages[q.operation] {
					continue // it is the same in all cases, or nearly
				}
				messages[q.operation] = true
				for _, of := range []**unstructured.Unstructured{&q.desired, &q.observed} {
					was := *of
					if was == nil {
						continue
					}
					mutants(was.Object[part], func(m any) {
						changed := maps.Clone(was.Object)
						changed[part] = m
						*of = &unstructured.Unstructured{Object: changed}
						try(q, m)
					})
					*of = was
				}
			}
			for i, item := range q.items {
				if item.Status == nil {
					continue
				}
				var status any
				if err := json.Unmarshal(item.Status.Raw, &status); err != nil {
					t.Fatal(err)
				}
				mutants(status, func(m any) {
					raw, err := json.Marshal(m)
					if err != nil {
						t.Fatal(err)
					}
					q.items = slices.Clone(q.items)
					q.items[i].Status = &runtime.RawExtension{Raw: raw}
					try(q, m)
				})
				q.items[i] = item
			}
		}
	}
	if made < 2000 {
		t.Errorf("only %d objects were made", made)
	}
}
