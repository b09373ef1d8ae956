package ocm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
)

func ignoredFields(s ocmv1.UpdateStrategy) []ocmv1.IgnoreField {
	if s.Type != ocmv1.UpdateStrategyServerSideApply || s.ServerSideApply == nil {
		return nil
	}
	return s.ServerSideApply.IgnoreFields
}

// Ignored returns the named fields, or an error if one of them cannot be ignored.
func Ignored(f ocmv1.IgnoreField) (paths []jsonpath.Path, err error) {
	texts := slices.Concat(f.JSONPaths, f.JQPathExpressions)
	for _, pointer := range f.JSONPointers {
		text, err := fromPointer(pointer)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		path, err := jsonpath.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// fromPointer converts a JSON pointer to a path: /spec/containers/0 becomes ['spec']['containers'][0].
func fromPointer(pointer string) (string, error) {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok || rest == "" {
		return "", fmt.Errorf("%q: must be a JSON pointer to a field, such as /spec/replicas", pointer)
	}
	var path strings.Builder
	for token := range strings.SplitSeq(rest, "/") {
		if _, err := strconv.ParseUint(token, 10, 16); err == nil {
			path.WriteString("[" + token + "]")
			continue
		}
		path.WriteString("['" + strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~") + "']")
	}
	return path.String(), nil
}

// Leave returns desired with the fields that w leaves to the member as in observed. It does not modify its arguments.
// Decide stores the names of these fields on w.
func Leave(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text := w.Annotations[wellknown.IgnoredFieldsAnnotation]
	if text == "" {
		return desired, nil
	}
	var ignored []ocmv1.IgnoreField
	if err := json.Unmarshal([]byte(text), &ignored); err != nil {
		return nil, fmt.Errorf("read the ignored fields: %w", err)
	}
	for _, f := range ignored {
		leave := jsonpath.Keep
		if f.Condition == ocmv1.IgnoreOnSpokeChange {
			leave = jsonpath.Retain
		}
		paths, err := Ignored(f)
		if err == nil {
			desired, err = leave(paths, desired, observed)
		}
		if err != nil {
			return nil, fmt.Errorf("ignore fields: %w", err)
		}
	}
	return desired, nil
}
