package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
)

// The parameters of a list, beside those of Kubernetes.
const (
	// ParamClusters are names of clusters, separated by commas.
	ParamClusters = "clusters"
	// ParamFilter is an expression of CEL about the variables object and cluster.
	ParamFilter = "filter"
	// ParamImage is an image, with or without registry and tag.
	ParamImage = "image"
	// ParamReady is true or false.
	ParamReady = "ready"
	// ParamOwner is the controller of an object, as cloneset/web.
	ParamOwner = "owner"
	// ParamMinAge and ParamMaxAge are durations, such as 36h.
	ParamMinAge, ParamMaxAge = "minAge", "maxAge"
	// ParamOrderBy is age, cluster, name or namespace, with a minus in front for the reverse order.
	ParamOrderBy = "orderBy"
)

const (
	// filterLength bounds an expression, and filterCost one evaluation of it.
	filterLength, filterCost = 4096, 100_000
	// filterTime bounds all evaluations of a request.
	filterTime = 20 * time.Second
)

// traits are facts of an object that filters ask for, so that they need not decode it.
type traits struct {
	images []string
	ready  readiness
	// owners are the controller of the object, as "cloneset/web", and for the pods of a Deployment the Deployment.
	owners []string
}

type readiness int8

const (
	readyUnknown readiness = iota
	isReady
	isNotReady
)

func traitsOf(u *unstructured.Unstructured) (t traits) {
	pod := u.Object
	if u.GetKind() != "Pod" {
		pod, _, _ = unstructured.NestedMap(u.Object, "spec", "template")
	}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedFieldNoCopy(pod, "spec", list)
		all, _ := containers.([]any)
		for _, c := range all {
			if container, ok := c.(map[string]any); ok {
				if image, ok := container["image"].(string); ok {
					t.images = append(t.images, shared(image))
				}
			}
		}
	}
	t.ready = readyOf(u)
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		t.owners = append(t.owners, shared(strings.ToLower(owner.Kind)+"/"+owner.Name))
		hash := u.GetLabels()["pod-template-hash"]
		if of, is := strings.CutSuffix(owner.Name, "-"+hash); is && hash != "" {
			t.owners = append(t.owners, shared("deployment/"+of))
		}
	}
	return t
}

// readyOf reports whether an object is ready: by its condition Ready or Available, or by its replicas.
func readyOf(u *unstructured.Unstructured) readiness {
	if wanted, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		if ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); ready < wanted {
			return isNotReady
		}
		return isReady
	}
	if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "Succeeded" {
		return isReady
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	all, _ := conditions.([]any)
	for _, c := range all {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != "Ready" && condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return isReady
		}
		return isNotReady
	}
	if u.GetKind() == "Pod" {
		return isNotReady
	}
	return readyUnknown
}

// hasImage reports whether an object has an image, which may lack the registry and the tag.
func (t traits) hasImage(wanted string) bool {
	return slices.ContainsFunc(t.images, func(image string) bool {
		if image == wanted || strings.HasSuffix(image, "/"+wanted) {
			return true
		}
		repository, _, _ := strings.Cut(image, "@")
		if tag := strings.LastIndex(repository, ":"); tag > strings.LastIndex(repository, "/") {
			if !strings.ContainsAny(wanted, "@") && strings.LastIndex(wanted, ":") > strings.LastIndex(wanted, "/") {
				return repository == wanted || strings.HasSuffix(repository, "/"+wanted)
			}
			repository = repository[:tag]
		}
		return repository == wanted || strings.HasSuffix(repository, "/"+wanted)
	})
}

// filter selects objects.
type filter struct {
	labels labels.Selector
	// fields are requirements that an entry answers, and paths those that its JSON answers.
	fields, paths fields.Requirements
	image, owner  string
	ready         readiness
	// since and until bound the time of creation, in seconds since 1970; 0 is no bound.
	since, until int64
	// program is the expression; nil for none.
	program cel.Program
	// failed has the first error of the expression, and failures their number. Objects for which it fails do not pass.
	failed   error
	failures int
	// order compares two objects; nil for the order of the store.
	order func(a, b *entry) int
}

// orders are the orders of a list. The age is that of the object: the oldest first.
var orders = map[string]func(a, b *entry) int{
	"age":       func(a, b *entry) int { return cmp.Compare(a.created, b.created) },
	"cluster":   func(a, b *entry) int { return strings.Compare(a.cluster, b.cluster) },
	"name":      func(a, b *entry) int { return strings.Compare(a.name, b.name) },
	"namespace": func(a, b *entry) int { return strings.Compare(a.namespace, b.namespace) },
}

// newFilter returns the filter of a request. The error is an API error.
func newFilter(values url.Values, now time.Time) (*filter, error) {
	f := &filter{image: values.Get(ParamImage), owner: strings.ToLower(values.Get(ParamOwner))}
	var err error
	if f.labels, err = labels.Parse(values.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	selector, err := fields.ParseSelector(values.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	for _, r := range selector.Requirements() {
		if _, known := (&entry{}).field(r.Field); known {
			f.fields = append(f.fields, r)
		} else {
			f.paths = append(f.paths, r)
		}
	}
	switch values.Get(ParamReady) {
	case "":
	case "true":
		f.ready = isReady
	case "false":
		f.ready = isNotReady
	default:
		return nil, apierrors.NewBadRequest("ready is neither true nor false")
	}
	for param, bound := range map[string]*int64{ParamMinAge: &f.until, ParamMaxAge: &f.since} {
		if text := values.Get(param); text != "" {
			age, err := time.ParseDuration(text)
			if err != nil || age < 0 {
				return nil, apierrors.NewBadRequest(param + " is not a duration such as 36h")
			}
			*bound = now.Add(-age).Unix()
		}
	}
	if by := values.Get(ParamOrderBy); by != "" {
		name, reverse := strings.CutPrefix(by, "-")
		order := orders[name]
		if order == nil {
			return nil, apierrors.NewBadRequest("orderBy is not one of age, cluster, name, namespace")
		}
		if f.order = order; reverse {
			f.order = func(a, b *entry) int { return order(b, a) }
		}
	}
	if text := values.Get(ParamFilter); text != "" {
		f.program, err = compile(text)
	}
	return f, err
}

// compile returns the program of an expression. The error is an API error.
func compile(text string) (cel.Program, error) {
	if len(text) > filterLength {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("filter has more than %d characters", filterLength))
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("cluster", cel.StringType),
		cel.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("filter: %v", issues.Err()))
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, apierrors.NewBadRequest("filter is not an expression that is true or false")
	}
	program, err := env.Program(ast, cel.CostLimit(filterCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("filter: %v", err))
	}
	return program, nil
}

// field returns a field that is known without decoding the object.
func (e *entry) field(name string) (value string, known bool) {
	switch name {
	case "metadata.name":
		return e.name, true
	case "metadata.namespace":
		return e.namespace, true
	case "spec.nodeName":
		return e.node, true
	case "status.phase":
		return e.phase, true
	}
	return "", false
}

// decodes reports whether the filter needs the JSON of objects.
func (f *filter) decodes() bool { return len(f.paths) > 0 || f.program != nil }

// quick reports whether an object passes what its JSON is not needed for.
func (f *filter) quick(e *entry) bool {
	if f.ready != readyUnknown && f.ready != e.ready || f.image != "" && !e.hasImage(f.image) ||
		f.owner != "" && !slices.Contains(e.owners, f.owner) || f.since != 0 && e.created < f.since ||
		f.until != 0 && e.created > f.until {
		return false
	}
	for _, r := range f.fields {
		if value, _ := e.field(r.Field); !holds(r, value) {
			return false
		}
	}
	return f.labels.Matches(e.labels)
}

func holds(r fields.Requirement, value string) bool {
	return (r.Value == value) == (r.Operator != "!=")
}

// passes reports whether an object passes. It decodes the object at most once. The error is that of the context.
func (f *filter) passes(ctx context.Context, e *entry) (bool, error) {
	if !f.quick(e) || !f.decodes() {
		return f.quick(e), nil
	}
	var object map[string]any
	if err := json.Unmarshal(e.json(e.version), &object); err != nil {
		f.fail(e, err)
		return false, nil
	}
	for _, r := range f.paths {
		if !holds(r, fieldAt(object, r.Field)) {
			return false, nil
		}
	}
	if f.program == nil {
		return true, nil
	}
	out, _, err := f.program.ContextEval(ctx, map[string]any{"object": object, "cluster": e.cluster})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		if is, ok := out.Value().(bool); ok {
			return is, nil
		}
		err = errors.New("it is neither true nor false")
	}
	f.fail(e, err)
	return false, nil
}

// fail counts an object for which the filter fails.
func (f *filter) fail(e *entry, err error) {
	if f.failures++; f.failed == nil {
		f.failed = fmt.Errorf("%s/%s of cluster %s: %w", e.namespace, e.name, e.cluster, err)
	}
}

// fieldAt returns a field as text, such as "3" or "true"; empty if there is none.
func fieldAt(object map[string]any, path string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (f *filter) sort(found []*entry) { slices.SortStableFunc(found, f.order) }
