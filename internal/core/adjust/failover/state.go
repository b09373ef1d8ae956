package failover

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

const (
	// pathLimit is the most bytes of a JSONPath: users write it, and the parser is recursive.
	pathLimit = 1024
	// expressionLimit is the most expressions in braces of a JSONPath: each may name a whole status.
	expressionLimit = 8
)

// ParsePath reads a JSONPath of statePreservation: text, and expressions in braces of fields and indexes. The rest of
// kubectl's syntax is refused, because a short path with ranges, unions or recursion can take minutes and gigabytes to
// evaluate.
func ParsePath(path string) (*jsonpath.JSONPath, error) {
	if len(path) > pathLimit {
		return nil, fmt.Errorf("it has %d bytes, the maximum is %d", len(path), pathLimit)
	}
	if !strings.Contains(path, "{") {
		return nil, errors.New("it has no expression in braces, such as {.jobID}")
	}
	parsed, err := jsonpath.Parse("statePreservation", path)
	if err != nil {
		return nil, err
	}
	expressions := 0
	for _, node := range parsed.Root.Nodes {
		list, isExpression := node.(*jsonpath.ListNode)
		if !isExpression {
			continue // text
		}
		if expressions++; expressions > expressionLimit {
			return nil, fmt.Errorf("it has more than %d expressions in braces", expressionLimit)
		}
		for _, step := range list.Nodes {
			if !isStep(step) {
				return nil, errSteps
			}
		}
	}
	j := jsonpath.New("statePreservation")
	return j, j.Parse(path)
}

var errSteps = errors.New("an expression may have only fields and indexes, such as {.a.b}, {.a['b']} and {.list[0]}; " +
	"it may not have ranges, recursion, wildcards, slices, unions, filters or literals")

// isStep reports whether a node leads from a value to at most one other.
func isStep(node jsonpath.Node) bool {
	switch n := node.(type) {
	case *jsonpath.FieldNode:
		return true
	case *jsonpath.ArrayNode:
		return n.Params[0].Known && n.Params[1].Derived && !n.Params[2].Known
	}
	return false
}

// preserved returns the labels that carry the state of b in a cluster over to its replacement, and a warning for each
// that has none.
func preserved(rules *policyv1alpha1.StatePreservation, b workv1alpha2.Binding,
	cluster string) (labels map[string]string, warnings []string) {
	if rules == nil {
		return nil, nil
	}
	var status any
	if item := itemOf(b, cluster); item != nil && item.Status != nil {
		if json.Unmarshal(item.Status.Raw, &status) != nil {
			status = nil
		}
	}
	for _, rule := range rules.Rules {
		value, err := valueAt(rule.JSONPath, status)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf(
				"statePreservation: the replacement does not get the label %s: the JSONPath %s of its status in cluster %q: %v",
				rule.AliasLabelName, rule.JSONPath, cluster, err))
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[rule.AliasLabelName] = value
	}
	return labels, warnings
}

// valueAt returns the value at a path, as a label takes it.
func valueAt(path string, status any) (value string, err error) {
	defer func() {
		if r := recover(); r != nil { // some paths that can be parsed panic
			err = fmt.Errorf("cannot be evaluated: %v", r)
		}
	}()
	if status == nil {
		return "", errors.New("no status was reported")
	}
	j, err := ParsePath(path)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := j.Execute(&out, status); err != nil {
		return "", fmt.Errorf("matches nothing: %w", err)
	}
	text := out.String()
	if text == "" {
		return "", errors.New("matches nothing")
	}
	if wrong := validation.IsValidLabelValue(text); len(wrong) > 0 {
		return "", fmt.Errorf("the value is not valid as a label: %s", wrong[0])
	}
	return text, nil
}
