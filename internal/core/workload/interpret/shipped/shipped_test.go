package shipped_test

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
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/ask"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/golden"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/lint"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/shipped"
)

// operations by the letters of the table of kinds that people know from Karmada, and more where that was too little.
var letters = map[byte]configv1alpha1.InterpreterOperation{
	'C': configv1alpha1.InterpreterOperationInterpretComponent,
	'D': configv1alpha1.InterpreterOperationInterpretDependency,
	'H': configv1alpha1.InterpreterOperationInterpretHealth, 'R': configv1alpha1.InterpreterOperationInterpretReplica,
	'V': configv1alpha1.InterpreterOperationReviseReplica, 'T': configv1alpha1.InterpreterOperationRetain,
	'A': configv1alpha1.InterpreterOperationAggregateStatus, 'S': configv1alpha1.InterpreterOperationInterpretStatus,
}

var answered = map[schema.GroupKind]string{
	{Group: "batch.volcano.sh", Kind: "Job"}:                      "CDHAS",
	{Group: "flink.apache.org", Kind: "FlinkDeployment"}:          "CDHRAS",
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}:        "DHTAS",
	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}: "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}:    "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"}:           "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart"}:        "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmRepository"}:   "DHTAS",
	{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}:    "DHTAS",
	{Group: "kubeflow.org", Kind: "Notebook"}:                     "DHRAS",
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:                   "CDHAS",
	{Group: "kubeflow.org", Kind: "TFJob"}:                        "CDHAS",
	{Group: "kubeflow.org", Kind: "MPIJob"}:                       "CDHAS",
	{Group: "kyverno.io", Kind: "ClusterPolicy"}:                  "HAS",
	{Group: "kyverno.io", Kind: "Policy"}:                         "HAS",
	{Group: "ray.io", Kind: "RayCluster"}:                         "CDHAS",
	{Group: "ray.io", Kind: "RayJob"}:                             "CDHAS",
	{Group: "ray.io", Kind: "RayService"}:                         "CDHAS",
	{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}:     "CDHAS",
}

func TestShippedKindsImplementTheirOperations(t *testing.T) {
	tier := shipped.Tier()
	for kind, want := range answered {
		hooks := tier.Hooks(kind)
		for letter, operation := range letters {
			if got := hooks.Implements(operation); got != strings.Contains(want, string(letter)) {
				t.Errorf("%s answers %s: %v", kind, operation, got)
			}
		}
	}
	if hooks := tier.Hooks(schema.GroupKind{Group: "apps", Kind: "Deployment"}); hooks != nil {
		t.Error("a Deployment is answered by a script")
	}
}

func TestShippedScriptsHaveNoFindings(t *testing.T) {
	all, err := shipped.Customizations()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(answered) {
		t.Errorf("%d customizations for %d kinds", len(all), len(answered))
	}
	for _, c := range all {
		for _, s := range script.Scripts(c.Spec.Customizations) {
			if _, err := script.Compile(c.Name, s.Operation, s.Source, nil); err != nil {
				t.Error(err)
			}
		}
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		findings, n := lint.File(context.Background(), c.Name, text, lint.Options{})
		if n != 1 {
			t.Errorf("%s: %d customizations", c.Name, n)
		}
		for _, f := range findings {
			if f.Rule != lint.UnknownKind { // whose definitions are not ours
				t.Errorf("%s: %s: line %d: %s", c.Name, f.Field, f.Line, f.Message)
			}
		}
	}
}

// A script is given what an API server lets through, and more: nothing in it may be taken for granted.
func TestShippedScriptsAcceptMissingFields(t *testing.T) {
	for kind, want := range answered {
		hooks := shipped.Tier().Hooks(kind)
		for _, content := range []map[string]any{
			{},
			{"spec": map[string]any{}, "status": map[string]any{}},
			{"metadata": "x", "spec": "x", "status": int64(1)},
			{"metadata": map[string]any{"name": "x", "annotations": "x"}, "spec": []any{}, "status": []any{}},
		} {
			object := map[string]any{"apiVersion": kind.Group + "/v1", "kind": kind.Kind}
			for key, value := range content {
				object[key] = value
			}
			n := int32(2)
			for _, letter := range []byte(want) {
				q := ask.Question{Operation: letters[letter], Desired: &unstructured.Unstructured{Object: object}, Replicas: &n}
				if letter == 'T' {
					q.Observed = q.Desired
				}
				_, err := q.Run(context.Background(), hooks)
				var fault *script.Error
				if errors.As(err, &fault) && fault.Reason != script.BadResult {
					t.Errorf("%s of %v: %v", letters[letter], object, err)
				}
			}
		}
	}
}

func TestShippedScriptsPassTheirCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
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
			f, err := golden.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			hooks := func(obj *unstructured.Unstructured, operation configv1alpha1.InterpreterOperation) (*interpret.Hooks,
				error) {
				asked[obj.GroupVersionKind().GroupKind().String()+" "+string(operation)] = true
				return shipped.Tier().Hooks(obj.GroupVersionKind().GroupKind()), nil
			}
			for _, r := range f.Run(context.Background(), hooks) {
				if r.Failure != "" {
					t.Errorf("%s: %s: %s", r.Name, r.Operation, r.Failure)
				}
			}
		})
	}
	var untold []string
	for kind, want := range answered {
		for _, letter := range []byte(want) {
			if key := kind.String() + " " + string(letters[letter]); !asked[key] {
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
	files, err := filepath.Glob("testdata/*.yaml")
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
		f, err := golden.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		stumbles := map[string]bool{}
		try := func(q ask.Question, what any) {
			if made++; made%every != 0 {
				return
			}
			var fault *script.Error
			_, err := q.Run(context.Background(), shipped.Tier().Hooks(q.Object().GroupVersionKind().GroupKind()))
			for again := 0; again < 5 && errors.As(err, &fault) && fault.Reason == script.DeadlineExceeded; again++ {
				// A machine that is busy with something else is slow now and then; a loop without an end is so each time.
				_, err = q.Run(context.Background(), shipped.Tier().Hooks(q.Object().GroupVersionKind().GroupKind()))
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
			q := f.Question(c)
			for _, part := range []string{"spec", "status"} {
				if part == "spec" && messages[q.Operation] {
					continue // it is the same in all cases, or nearly
				}
				messages[q.Operation] = true
				for _, of := range []**unstructured.Unstructured{&q.Desired, &q.Observed} {
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
			for i, item := range q.Items {
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
					q.Items = slices.Clone(q.Items)
					q.Items[i].Status = &runtime.RawExtension{Raw: raw}
					try(q, m)
				})
				q.Items[i] = item
			}
		}
	}
	if made < 2000 {
		t.Errorf("only %d objects were made", made)
	}
}
