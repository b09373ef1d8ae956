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

// pathLimit is the most bytes of a JSONPath.
const pathLimit = 1024

// ParsePath reads a JSONPath of statePreservation, in kubectl's syntax.
func ParsePath(path string) (*jsonpath.JSONPath, error) {
	if len(path) > pathLimit {
		return nil, fmt.Errorf("it has %d bytes, the maximum is %d", len(path), pathLimit)
	}
	if !strings.Contains(path, "{") {
		return nil, errors.New("it has no expression in braces, such as {.jobID}")
	}
	j := jsonpath.New("statePreservation")
	if err := j.Parse(path); err != nil {
		return nil, err
	}
	return j, nil
}

// preserved are the labels that carry the state of b in a cluster over to its replacement, and a warning for each that has none.
func preserved(rules *policyv1alpha1.StatePreservation, b workv1alpha2.Binding, cluster string) (labels map[string]string, warnings []string) {
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
			warnings = append(warnings, fmt.Sprintf("statePreservation: the replacement does not get the label %s: the JSONPath %s of its status in cluster %q: %v", rule.AliasLabelName, rule.JSONPath, cluster, err))
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[rule.AliasLabelName] = value
	}
	return labels, warnings
}

// valueAt is the value at a path, as a label takes it.
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
