package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
	words "github.com/argosy-io/argosy/internal/core/text"
)

// What a reflected status says beyond the member's own: which generation the member's object is at, and which one of
// the template it was made from. observedGeneration means something on the hub only beside them.
const (
	generationField         = "generation"
	templateGenerationField = "resourceTemplateGeneration"
)

type reflector func(context.Context, *unstructured.Unstructured) (map[string]any, error)

// reflectFields reports these fields of the status, and the generations.
func reflectFields(fields ...string) reflector {
	return func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
		status, ok := observed.Object["status"].(map[string]any)
		if !ok {
			return nil, nil
		}
		out := make(map[string]any, len(fields)+2)
		for _, f := range fields {
			if v, ok := status[f]; ok {
				out[f] = runtime.DeepCopyJSONValue(v)
			}
		}
		return withGenerations(out, observed), nil
	}
}

// reflectWhole reports all of the status, and the generations, and what the member keeps against the template.
func reflectWhole(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	status := interpret.WholeStatus(observed)
	if status == nil {
		return nil, nil
	}
	if c := keptCondition(observed); c != nil {
		status["conditions"] = append(list(status, "conditions"), c)
	}
	return withGenerations(status, observed), nil
}

func withGenerations(status map[string]any, observed *unstructured.Unstructured) map[string]any {
	status[generationField] = observed.GetGeneration()
	// Without the annotation, or with a broken one, nobody can say that the member is up to date, so nothing does.
	if n, err := strconv.ParseInt(observed.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation], 10,
		64); err == nil {
		status[templateGenerationField] = n
	}
	return status
}

// fresh says whether the controller of obj has seen its present generation.
func fresh(obj *unstructured.Unstructured) bool {
	return number(obj.Object, "status", "observedGeneration") >= obj.GetGeneration()
}

// report is what one cluster says of its copy.
type report struct {
	cluster string
	status  map[string]any // nil: nothing yet
	health  workv1alpha1.ResourceHealth
}

// reports are the items, decoded and sorted by cluster.
func reports(items []workv1alpha2.AggregatedStatusItem) ([]report, error) {
	rs := make([]report, len(items))
	for i, item := range items {
		rs[i] = report{cluster: item.ClusterName, health: item.Health}
		if item.Status == nil || len(item.Status.Raw) == 0 {
			continue
		}
		if err := json.Unmarshal(item.Status.Raw, &rs[i].status); err != nil {
			return nil, fmt.Errorf("decode the status from cluster %q: %w", item.ClusterName, err)
		}
	}
	slices.SortFunc(rs, func(a, b report) int { return cmp.Compare(a.cluster, b.cluster) })
	return rs, nil
}

// sums adds up the counters over all clusters; each is set, be it to zero.
func sums(rs []report, counters ...string) map[string]any {
	status := make(map[string]any, len(counters)+2)
	for _, c := range counters {
		var total int64
		for _, r := range rs {
			total += number(r.status, c)
		}
		status[c] = total
	}
	return status
}

// sumsOf returns the sums for a template. Replicas that a cluster reports as updated to an older generation are not
// counted.
func sumsOf(template *unstructured.Unstructured, rs []report, counters ...string) map[string]any {
	status := sums(rs, counters...)
	for _, c := range counters {
		if !strings.HasPrefix(c, "updated") {
			continue
		}
		var total int64
		for _, r := range rs {
			if CountsUpdated(r.status, template.GetGeneration()) {
				total += number(r.status, c)
			}
		}
		status[c] = total
	}
	return status
}

// CountsUpdated says whether the replicas that a cluster reports as updated are of this generation of the template.
// They are not while the cluster has an older generation, or while its controller has not observed the present one.
func CountsUpdated(status map[string]any, generation int64) bool {
	of := number(status, templateGenerationField)
	if of == 0 {
		return true
	}
	seen, ok := whole(status["observedGeneration"])
	return of >= generation && !(ok && seen < number(status, generationField))
}

// addition sets fields of a template's status that are more than counters.
type addition func(status map[string]any, template *unstructured.Unstructured, rs []report) error

// counting is the Aggregate of a kind whose status counts pods. done says whether the counters look like the end of a
// rollout, for observedGeneration.
func counting(counters []string, done func(template *unstructured.Unstructured, status map[string]any) bool,
	more ...addition) func(context.Context, *unstructured.Unstructured,
	[]workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	return func(_ context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		rs, err := reports(items)
		if err != nil {
			return nil, err
		}
		status := sumsOf(template, rs, counters...)
		for _, add := range more {
			if err := add(status, template, rs); err != nil {
				return nil, err
			}
		}
		status["observedGeneration"] = observedGeneration(template, rs, done(template, status))
		return settled(template, status), nil
	}
}

// reaching is when all these counters are at least the template's replicas.
func reaching(counters ...string) func(template *unstructured.Unstructured, status map[string]any) bool {
	return func(template *unstructured.Unstructured, status map[string]any) bool {
		return reach(template, status, counters...)
	}
}

// addRevisions adds the revisions that the clusters agree on.
func addRevisions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	revisions(status, rs)
	return nil
}

// addCollisions adds how often the names of revisions have collided, in the cluster where most have.
func addCollisions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	if n, ok := most(rs, "collisionCount"); ok {
		status["collisionCount"] = n
	}
	return nil
}

// addConditions adds the conditions of a workload of OpenKruise. True is bad for what tells of failures and conflicts.
func addConditions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	bad := func(kind string) bool {
		return strings.HasPrefix(kind, "Failed") || strings.HasSuffix(kind, "Failure") ||
			slices.Contains([]string{interpret.ImmutableFieldConflict, interpret.NoMatchedPods, interpret.PodsReserved}, kind)
	}
	if c := conditions(rs, bad, "lastUpdateTime", "lastTransitionTime"); c != nil {
		status["conditions"] = c
	}
	return nil
}

// addSelector adds the selector of the pods as a text, by which autoscalers find them. It is the same everywhere, so it
// needs no cluster to say it.
func addSelector(status map[string]any, template *unstructured.Unstructured, _ []report) error {
	raw := object(template.Object, "spec", "selector")
	if raw == nil {
		return nil
	}
	s, err := selectorOf(raw)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	setText(status, "labelSelector", s.String())
	return nil
}

// oldVersion says whether an object of OpenKruise is written in v1alpha1.
func oldVersion(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().Version == "v1alpha1"
}

// dropNew takes from a status the fields that only v1beta1 has, if the template is written in v1alpha1: members may
// serve either, and a server would drop them, so that the status were written again and again. The status is returned.
func dropNew(status map[string]any, template *unstructured.Unstructured, fields ...string) map[string]any {
	if oldVersion(template) {
		for _, f := range fields {
			delete(status, f)
		}
	}
	return status
}

// observedGeneration is the template's generation once every cluster has it and has seen it; until then it stays what
// it was.
//
// done says that the counters look like the end of a rollout, and then there is more to it. Sums hide who is behind
// when the template runs in full in every cluster: with two clusters of three replicas each, one that is finished
// satisfies spec.replicas = 3. Tools that compare generation and counters, Argo CD and kubectl rollout status, must not
// be told so while a cluster has not got there. So the counters are of the template's generation only if every cluster
// is healthy too, and are of the one before if not, even if that takes a word back: a cluster that joins late starts
// from nothing.
func observedGeneration(template *unstructured.Unstructured, rs []report, done bool) int64 {
	was, now := number(template.Object, "status", "observedGeneration"), template.GetGeneration()
	if len(rs) == 0 {
		// A workload of no replicas is in no cluster, and is complete there; any other is on its way.
		if wanted, err := specNumber(template, 1, "replicas"); err == nil && wanted == 0 {
			return now
		}
		return was
	}
	observed := now
	for _, r := range rs {
		fresh := r.status != nil &&
			number(r.status, templateGenerationField) >= now &&
			number(r.status, "observedGeneration") >= number(r.status, generationField)
		if !fresh {
			observed = was
		}
		if done && (!fresh || r.health != "" && r.health != workv1alpha1.ResourceHealthy) {
			return min(was, now-1)
		}
	}
	return observed
}

// reach says whether all these counters are at least the template's replicas. Replicas of nonsense are never reached.
func reach(template *unstructured.Unstructured, status map[string]any, counters ...string) bool {
	wanted, err := specNumber(template, 1, "replicas")
	return err == nil && !slices.ContainsFunc(counters, func(c string) bool { return number(status, c) < wanted })
}

// common is the value of a text field that all clusters with a status agree on; empty when they do not.
// Revisions are names that each cluster makes by itself: which one has which is on the binding.
func common(rs []report, name string) string {
	var value string
	first := true
	for _, r := range rs {
		if r.status == nil {
			continue
		}
		v := text(r.status, name)
		if !first && v != value {
			return ""
		}
		value, first = v, false
	}
	return value
}

// revisions sets currentRevision and updateRevision to what all clusters agree on. Tools take two equal ones for a
// finished rollout; when clusters disagree on both, a cluster that is rolling lends its updateRevision to prevent that.
func revisions(status map[string]any, rs []report) {
	current, update := common(rs, "currentRevision"), common(rs, "updateRevision")
	if current == update {
		for _, r := range rs {
			if u := text(r.status, "updateRevision"); u != text(r.status, "currentRevision") {
				update = u
				break
			}
		}
	}
	setText(status, "currentRevision", current)
	setText(status, "updateRevision", update)
}

// setText sets a field unless the value is empty.
func setText(status map[string]any, name, value string) {
	if value != "" {
		status[name] = value
	}
}

// most is the highest number of a field; ok says whether any cluster has it.
func most(rs []report, name string) (highest int64, ok bool) {
	for _, r := range rs {
		if n, is := whole(r.status[name]); is && (!ok || n > highest) {
			highest, ok = n, true
		}
	}
	return highest, ok
}

// earliest and latest are the first and the last of some times, as they were spelled; empty ones do not count.
func earliest(times ...string) string {
	return extreme(times, func(t, than time.Time) bool { return t.Before(than) })
}

func latest(times ...string) string {
	return extreme(times, func(t, than time.Time) bool { return t.After(than) })
}

func extreme(times []string, better func(t, than time.Time) bool) string {
	var best string
	var at time.Time
	for _, s := range times {
		t, err := time.Parse(time.RFC3339, s)
		if err == nil && (best == "" || better(t, at)) {
			best, at = s, t
		}
	}
	return best
}

// textsOf is one text field of every cluster.
func textsOf(rs []report, name string) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = text(r.status, name)
	}
	return out
}

// severity orders the states of a condition, the worst first; a bad condition, like FailedScale, is worst when True.
func severity(state string, bad bool) int {
	worst, best := "False", "True"
	if bad {
		worst, best = best, worst
	}
	switch state {
	case worst:
		return 0
	case best:
		return 2
	default:
		return 1
	}
}

// mostMessages is the number of clusters whose messages a condition has.
const mostMessages = 10

// doneReasons are those of Progressing that say that nothing is left to do. They hold of the whole only if they do of
// every cluster.
var doneReasons = []string{"CloneSetAvailable", "ProgressPartitionAvailable"}

// conditions folds the clusters' conditions: per type the worst state wins, the message says which clusters are in it,
// and the last of them to get there dates it. times are the fields that hold dates.
func conditions(rs []report, bad func(kind string) bool, times ...string) []any {
	type fold struct {
		condition map[string]any
		messages  []string
	}
	folds := map[string]*fold{}
	for _, r := range rs {
		for _, c := range objects(r.status, "conditions") {
			kind := text(c, "type")
			f, ok := folds[kind]
			if !ok || severity(text(c, "status"), bad(kind)) < severity(text(f.condition, "status"), bad(kind)) {
				f = &fold{condition: map[string]any{"type": kind, "status": text(c, "status")}}
				setText(f.condition, "reason", text(c, "reason"))
				folds[kind] = f
			}
			if text(c, "status") != text(f.condition, "status") {
				continue
			}
			if reason := text(c, "reason"); slices.Contains(doneReasons, text(f.condition, "reason")) && reason != "" &&
				!slices.Contains(doneReasons, reason) {
				f.condition["reason"] = reason
			}
			for _, t := range times {
				setText(f.condition, t, latest(text(f.condition, t), text(c, t)))
			}
			f.messages = append(f.messages, said(r.cluster, text(c, "message")))
		}
	}
	var out []any
	for _, f := range folds {
		f.condition["message"] = words.Lines(f.messages, mostMessages)
		out = append(out, f.condition)
	}
	slices.SortFunc(out, func(a, b any) int {
		return cmp.Compare(text(a.(map[string]any), "type"), text(b.(map[string]any), "type"))
	})
	return out
}

// settled is template with the status, or template itself when it says that already.
func settled(template *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	if was, ok := template.Object["status"].(map[string]any); ok && equality.Semantic.DeepEqual(was, status) {
		return template
	}
	return interpret.WithStatus(template, status)
}

// settledNative is settled for the kinds of Kubernetes itself, whose servers leave out what is zero.
func settledNative(template *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	if equality.Semantic.DeepEqual(withoutZeros(object(template.Object, "status")), withoutZeros(status)) {
		return template
	}
	return interpret.WithStatus(template, status)
}

func withoutZeros(status map[string]any) map[string]any {
	out := make(map[string]any, len(status))
	for key, value := range status {
		if n, ok := whole(value); ok && n == 0 || value == nil || value == "" {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			if v = withoutZeros(v); len(v) > 0 {
				out[key] = v
			}
		case []any:
			if len(v) > 0 {
				items := make([]any, len(v))
				for i, item := range v {
					if o, ok := item.(map[string]any); ok {
						item = withoutZeros(o)
					}
					items[i] = item
				}
				out[key] = items
			}
		default:
			out[key] = value
		}
	}
	return out
}
