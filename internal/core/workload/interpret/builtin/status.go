package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

type reflector func(context.Context, *unstructured.Unstructured) (map[string]any, error)

// reflectFields reports the given status fields and the generations.
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
		return interpret.WithOrigin(out, observed), nil
	}
}

// reflectWhole reports the whole status, the generations and the kept immutable fields.
func reflectWhole(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	status := interpret.WholeStatus(observed)
	if status == nil {
		return nil, nil
	}
	if c := keptCondition(observed); c != nil {
		status["conditions"] = append(list(status, "conditions"), c)
	}
	return interpret.WithOrigin(status, observed), nil
}

// fresh reports whether the controller has observed the current generation of obj.
func fresh(obj *unstructured.Unstructured) bool {
	return generationOf(object(obj.Object, "status")) >= obj.GetGeneration()
}

// generationOf returns the observed generation of a status; 0 if there is none.
func generationOf(status map[string]any) int64 {
	n, _ := interpret.ObservedGeneration(status)
	return n
}

// report is the status from one cluster.
type report struct {
	cluster string
	status  map[string]any // nil before the first report
	health  workv1alpha1.ResourceHealth
}

// reports decodes the items and sorts them by cluster.
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

// sums adds up the counters over all clusters. All counters are set, including zeros.
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

// sumsOf returns the sums for a template. It does not count replicas with pods of another revision as updated.
func sumsOf(template *unstructured.Unstructured, rs []report, counters ...string) map[string]any {
	status := sums(rs, counters...)
	for _, c := range counters {
		if !strings.HasPrefix(c, "updated") {
			continue
		}
		var total int64
		for _, r := range rs {
			if interpret.CountsUpdated(r.status, template.GetGeneration()) {
				total += number(r.status, c)
			}
		}
		status[c] = total
	}
	return status
}

// settler returns a template with a status: settled or settledNative.
type settler func(template *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured

// addition sets fields of a template's status that are no counters.
type addition func(status map[string]any, template *unstructured.Unstructured, rs []report) error

// counting returns the Aggregate of a kind whose status counts pods. done reports whether the counters look like a
// finished rollout, for observedGeneration.
func counting(settle settler, counters []string,
	done func(template *unstructured.Unstructured, status map[string]any) bool, more ...addition) aggregator {
	return ofReports(func(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
		status := sumsOf(template, rs, counters...)
		for _, add := range more {
			if err := add(status, template, rs); err != nil {
				return nil, err
			}
		}
		status["observedGeneration"] = observedGeneration(template, rs, done(template, status))
		return settle(template, status), nil
	})
}

// unknown is for kinds whose counters do not tell whether a rollout is finished.
func unknown(*unstructured.Unstructured, map[string]any) bool { return false }

// reaching is true if all these counters are at least the template's replicas.
func reaching(counters ...string) func(template *unstructured.Unstructured, status map[string]any) bool {
	return func(template *unstructured.Unstructured, status map[string]any) bool {
		return reach(template, status, counters...)
	}
}

// addRevisions adds the common revisions of the clusters.
func addRevisions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	revisions(status, rs)
	return nil
}

// addCollisions adds the maximum collision count.
func addCollisions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	if n, ok := most(rs, "collisionCount"); ok {
		status["collisionCount"] = n
	}
	return nil
}

// badIfTrue reports whether True is the bad status of a type of conditions, as for failures and conflicts.
func badIfTrue(kind string) bool {
	return strings.HasPrefix(kind, "Failed") || strings.HasSuffix(kind, "Failure") ||
		slices.Contains([]string{interpret.ImmutableFieldConflict, interpret.NoMatchedPods, interpret.PodsReserved,
			"Stalled", "Reconciling", "Degraded"}, kind)
}

// addConditions adds the conditions of an OpenKruise workload.
func addConditions(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	setConditions(status, rs, badIfTrue, "lastUpdateTime", "lastTransitionTime")
	return nil
}

// addSelector adds the pod selector as a string, which autoscalers use. It is computed from the template.
func addSelector(status map[string]any, template *unstructured.Unstructured, _ []report) error {
	raw := object(template.Object, "spec", "selector")
	if raw == nil {
		return nil
	}
	s, err := match.ParseSelector(raw)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	setText(status, "labelSelector", s.String())
	return nil
}

// oldVersion reports whether an OpenKruise object has version v1alpha1.
func oldVersion(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().Version == "v1alpha1"
}

// dropNew removes v1beta1 fields from the status of a v1alpha1 template and returns the status. The API server would
// drop them, and the status would be written again and again.
func dropNew(status map[string]any, template *unstructured.Unstructured, fields ...string) map[string]any {
	if oldVersion(template) {
		for _, f := range fields {
			delete(status, f)
		}
	}
	return status
}

// observedGeneration returns the template's generation once every cluster has it and has observed it, and the previous
// value until then.
//
// If done is true, the counters look like a finished rollout, and every cluster must be healthy too: if each cluster
// runs all replicas, one finished cluster satisfies spec.replicas. Argo CD and kubectl rollout status compare
// generation and counters and must not see a finished rollout too early. Otherwise it returns one less, even if that
// lowers the value, for example after a cluster joins.
func observedGeneration(template *unstructured.Unstructured, rs []report, done bool) int64 {
	was, now := generationOf(object(template.Object, "status")), template.GetGeneration()
	if len(rs) == 0 {
		// A workload with zero replicas has no clusters and is complete. Any other one without clusters is not.
		if wanted, err := wantedReplicas(template); err == nil && wanted == 0 {
			return now
		}
		return was
	}
	observed := now
	for _, r := range rs {
		fresh := r.status != nil &&
			number(r.status, interpret.TemplateGenerationField) >= now &&
			generationOf(r.status) >= number(r.status, interpret.GenerationField)
		if !fresh {
			observed = was
		}
		if done && (!fresh || r.health != "" && r.health != workv1alpha1.ResourceHealthy) {
			return min(was, now-1)
		}
	}
	return observed
}

// reach reports whether all these counters are at least the template's replicas. Invalid replicas are never reached.
func reach(template *unstructured.Unstructured, status map[string]any, counters ...string) bool {
	wanted, err := wantedReplicas(template)
	return err == nil && !slices.ContainsFunc(counters, func(c string) bool { return number(status, c) < wanted })
}

// common returns the value of a string field that all clusters with a status share; otherwise empty. Revision names
// differ between clusters; the binding has them per cluster.
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

// revisions sets currentRevision and updateRevision to the common values of the clusters. Tools take equal ones for a
// finished rollout. If the clusters disagree on both, the updateRevision of an unfinished cluster prevents that. While
// a release keeps former pods, there is none, as the cluster does not know the revision of the template.
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
	if slices.ContainsFunc(rs, func(r report) bool { return text(r.status, interpret.FormerRevisionField) != "" }) {
		update = ""
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

// most returns the highest number of a field. ok is false if no cluster has it.
func most(rs []report, name string) (highest int64, ok bool) {
	for _, r := range rs {
		if n, is := whole(r.status[name]); is && (!ok || n > highest) {
			highest, ok = n, true
		}
	}
	return highest, ok
}

// earliest and latest return the first and last of the times, in their original spelling. Empty ones are ignored.
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

// textsOf returns a string field of every cluster.
func textsOf(rs []report, name string) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = text(r.status, name)
	}
	return out
}

// severity orders the states of a condition, worst first. If bad is true, as for FailedScale, True is the worst.
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

// maxMessages limits the clusters whose messages a condition contains. Each of 1,000 clusters may report a message of
// several KiB, and the template would become too large for etcd.
const maxMessages = 10

// doneReasons are reasons of Progressing that mean finished. The aggregate has one only if all clusters have it.
var doneReasons = []string{"CloneSetAvailable", "ProgressPartitionAvailable"}

// conditions aggregates the clusters' conditions: per type the worst state wins, the message names the clusters in it,
// and the latest of their times is used. times are the time fields.
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
			f.messages = append(f.messages, withCluster(r.cluster, text(c, "message")))
		}
	}
	var out []any
	for _, f := range folds {
		f.condition["message"] = words.Lines(f.messages, maxMessages)
		out = append(out, f.condition)
	}
	sortBy(out, "type")
	return out
}

// setConditions sets the aggregated conditions, if there are any.
func setConditions(status map[string]any, rs []report, bad func(kind string) bool, times ...string) {
	if c := conditions(rs, bad, times...); c != nil {
		status["conditions"] = c
	}
}

// settled returns the template with the status, or the template itself if it has the status already.
func settled(template *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	if was, ok := template.Object["status"].(map[string]any); ok && equality.Semantic.DeepEqual(was, status) {
		return template
	}
	return interpret.WithStatus(template, status)
}

// settledNative is settled for Kubernetes kinds, whose API servers omit zeros.
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

// reflectNoting is reflectWhole with an additional condition from note, if any.
func reflectNoting(note func(observed *unstructured.Unstructured) map[string]any) reflector {
	return func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
		status, err := reflectWhole(ctx, observed)
		if err != nil || status == nil {
			return status, err
		}
		if c := note(observed); c != nil {
			status["conditions"] = append(slices.Clone(list(status, "conditions")), c)
		}
		return status, nil
	}
}

// noMatchedPods reports a SidecarSet without pods, which looks healthy but may be a problem.
func noMatchedPods(observed *unstructured.Unstructured) map[string]any {
	if !fresh(observed) || number(observed.Object, "status", "matchedPods") > 0 {
		return nil
	}
	return map[string]any{
		"type": interpret.NoMatchedPods, "status": "True", "reason": interpret.NoMatchedPods,
		"message": "it is not injected into any pod: no matching pod was created since then, or the injection webhook does not work",
	}
}

// podsReserved reports subsets with unschedulable pods.
func podsReserved(observed *unstructured.Unstructured) map[string]any {
	total := number(observed.Object, "status", "reservedPods")
	if total <= 0 {
		return nil
	}
	var in []string
	subsets := objects(observed.Object, "status", "subsetStatuses")
	slices.SortFunc(subsets, func(a, b map[string]any) int { return cmp.Compare(text(a, "name"), text(b, "name")) })
	for _, s := range subsets {
		if n := number(s, "reservedPods"); n > 0 {
			in = append(in, fmt.Sprintf("%d in subset %s", n, text(s, "name")))
		}
	}
	return map[string]any{
		"type": interpret.PodsReserved, "status": "True", "reason": interpret.PodsReserved,
		"message": "pods are unschedulable and were temporarily replaced elsewhere: " +
			cmp.Or(strings.Join(in, ", "), fmt.Sprint(total)),
	}
}
