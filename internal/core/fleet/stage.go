package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

// Revision names the pods of a template. It changes when the template asks for other pods.
func Revision(template *unstructured.Unstructured) (string, error) {
	kind := template.GroupVersionKind().GroupKind()
	paths := interpret.PodTemplatePaths(kind)
	if w, ok := workloads[kind]; ok {
		paths = w.revisionPaths()
	}
	h := fnv.New64a()
	for _, path := range paths {
		raw, err := json.Marshal(field(template.Object, path...))
		if err != nil {
			return "", fmt.Errorf("read %s of the template: %w", strings.Join(path, "."), err)
		}
		_, _ = h.Write(raw) // never fails
	}
	return strconv.FormatUint(h.Sum64(), 36), nil
}

// Approval is the value of StageAnnotation.
type Approval struct {
	// Stage is the number of a stage, from 1. Its pause and those of earlier stages are approved.
	Stage int64 `json:"stage"`
	// Revision is that of the template that is rolled out; empty if the value is only a number.
	Revision string `json:"revision,omitempty"`
}

// String is the value for StageAnnotation.
func (a Approval) String() string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err) // a number and text
	}
	return string(raw)
}

// approvalOf reads StageAnnotation: an Approval, or the number of a stage.
func approvalOf(value string) (a Approval, err error) {
	if json.Unmarshal([]byte(value), &a.Stage) == nil && a.Stage >= 0 {
		return a, nil
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&a); {
	case err != nil, a.Stage < 0:
		return Approval{}, fmt.Errorf(`%q is neither the number of a stage nor {"stage": 1, "revision": "…"}`, value)
	case a.Revision == "":
		return Approval{}, errors.New(`"revision" is missing: write the number of the stage alone, or run ` + "`argosy rollout approve`")
	}
	return a, nil
}

// counts returns up to which stage a approves the pauses of a revision. A number alone counts for one revision only: record says which,
// and next is the record to store.
func (a Approval) counts(revision, record string) (stage int64, next string) {
	if a.Stage == 0 {
		return 0, ""
	}
	if a.Revision == "" {
		var was Approval
		if json.Unmarshal([]byte(record), &was) != nil || was.Stage != a.Stage {
			was = Approval{a.Stage, revision}
		}
		a, next = was, was.String()
	}
	if a.Revision != revision {
		return 0, next
	}
	return a.Stage, next
}
