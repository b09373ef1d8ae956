package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
)

var podsToDeletePath = []string{"spec", "scaleStrategy", "podsToDelete"}

// namesPods reports whether objects of the kind can name pods to delete.
func namesPods(template *unstructured.Unstructured) bool {
	return kind.Facts(template).Divides == kind.DividesRolloutAndPods
}

// PodsAskedFor returns the names in a CloneSet's podsToDelete, and that of a ContainerRecreateRequest's pod, that have
// to be looked for in the clusters, sorted: those that are not routed yet. Others' are none.
func PodsAskedFor(template *unstructured.Unstructured, existing map[string]*workv1alpha1.Work) ([]string, error) {
	if kind.Facts(template).Divides == kind.DividesNothingButPods {
		if pod := text(template.Object, "spec", "podName"); pod != "" && len(existing) == 0 {
			return []string{pod}, nil
		}
		return nil, nil
	}
	names := podsNamed(template)
	for cluster, w := range existing {
		if len(names) == 0 {
			break
		}
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before == nil || !m.madeFrom(template) {
			continue
		}
		known := texts(m.before.Object, podsToDeletePath...)
		if text, ok := w.Annotations[wellknown.FleetAnnotation]; ok {
			note := parseNote(text)
			known = append(append(known, split(note.Deleted)...), split(note.Missing)...)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
	}
	return unique(names), nil
}

// PodsSent returns, by cluster, the pods in podsToDelete that were sent to the clusters that had them. It is empty
// until each of these clusters has applied its Work, and while the Works are of an older template.
func PodsSent(template *unstructured.Unstructured,
	existing map[string]*workv1alpha1.Work) (map[string][]string, error) {
	names := podsNamed(template)
	if len(names) == 0 {
		return nil, nil
	}
	sent := map[string][]string{}
	for cluster, w := range existing {
		m, err := observe(Member{Cluster: cluster, Work: w})
		if err != nil {
			return nil, err
		}
		if m.before == nil || !m.madeFrom(template) {
			return nil, nil
		}
		pods := texts(m.before.Object, podsToDeletePath...)
		if m.note == nil || len(pods) == 0 {
			continue
		}
		if !m.fresh {
			return nil, nil
		}
		for _, name := range pods {
			if slices.Contains(names, name) && !slices.Contains(split(m.note.Missing), name) {
				sent[cluster] = append(sent[cluster], name)
			}
		}
	}
	return sent, nil
}

// WithoutPods returns a CloneSet that does not name these pods for deletion.
func WithoutPods(template *unstructured.Unstructured, gone []string) *unstructured.Unstructured {
	out := template.DeepCopy()
	left := slices.DeleteFunc(list(out.Object, podsToDeletePath...), func(v any) bool {
		name, ok := v.(string)
		return ok && slices.Contains(gone, name)
	})
	if len(left) > 0 {
		// It was there as a list.
		_ = unstructured.SetNestedSlice(out.Object, left, podsToDeletePath...)
		return out
	}
	unstructured.RemoveNestedField(out.Object, podsToDeletePath...)
	if parent := podsToDeletePath[:len(podsToDeletePath)-1]; len(object(out.Object, parent...)) == 0 {
		unstructured.RemoveNestedField(out.Object, parent...)
	}
	return out
}

// DeletingPod returns a CloneSet that also names a pod for deletion. With fewer, it has one replica fewer, so that no
// pod replaces the deleted one. For templates of other kinds, it returns an error.
func DeletingPod(template *unstructured.Unstructured, pod string, fewer bool) (*unstructured.Unstructured, error) {
	if !namesPods(template) {
		return nil, fmt.Errorf("a %s cannot name pods for deletion: only a CloneSet.apps.kruise.io can",
			template.GroupVersionKind().GroupKind())
	}
	out := template.DeepCopy()
	if !slices.Contains(podsNamed(template), pod) {
		names := append(slices.Clone(list(out.Object, podsToDeletePath...)), pod)
		if err := unstructured.SetNestedSlice(out.Object, names, podsToDeletePath...); err != nil {
			return nil, fmt.Errorf("name a pod for deletion: %w", err)
		}
	}
	if fewer {
		replicas := int64(1) // the default
		if given, found, _ := unstructured.NestedInt64(out.Object, "spec", "replicas"); found {
			replicas = given
		}
		if err := unstructured.SetNestedField(out.Object, max(0, replicas-1), "spec", "replicas"); err != nil {
			return nil, fmt.Errorf("set the replicas: %w", err)
		}
	}
	return out, nil
}

// PodsToDelete returns the names in a CloneSet's podsToDelete; nil where there is no such list, and of other kinds.
func PodsToDelete(template *unstructured.Unstructured) []string {
	if !namesPods(template) || field(template.Object, podsToDeletePath...) == nil {
		return nil
	}
	return append([]string{}, podsNamed(template)...)
}

// podsNamed returns the names in a CloneSet's podsToDelete; none of other kinds.
func podsNamed(template *unstructured.Unstructured) []string {
	if !namesPods(template) {
		return nil
	}
	return texts(template.Object, podsToDeletePath...)
}

// passPods is routePods of a template in one cluster, which gets all names. The note records the pods it did not have.
func (f *fleet) passPods(m *member) {
	var missing []string
	names := podsNamed(f.Template)
	for _, name := range names {
		sent := m.before != nil && m.note != nil && m.madeFrom(f.Template) &&
			!slices.Contains(split(m.note.Missing), name)
		if !sent && !slices.Contains(f.Pods[name], m.Cluster) {
			missing = append(missing, name)
		}
	}
	f.put(m, strings.Join(names, ","), "metadata", "annotations", wellknown.SentPodsToDeleteAnnotation)
	f.result.Notes[m.Cluster] = Note{Missing: strings.Join(missing, ",")}.String()
}

// podSearchRetry is how soon a pod is searched again in clusters that did not respond.
const podSearchRetry = 5 * time.Second

// podRoutes is where each name in podsToDelete goes. Lists by member are in the order of the members.
type podRoutes struct {
	// own are the names that each member gets, sent those of them that its Work has already, deleted the names whose pods
	// it had.
	own, sent, deleted [][]string
	// nowhere are in no cluster that was searched; twice are in several clusters.
	nowhere, twice []string
	// unknown may be in a cluster that did not respond.
	unknown []string
}

// podRoutes decides which cluster gets which names: each the names of its own pods. A name that is nowhere, or in two
// clusters, goes to none, because a member refuses the whole update for it. A name that was sent stays in the Work
// until the template changes: the member's controller takes it off its own list when the pod is gone.
//
// A name goes to its cluster in one write with the replica that goes with it. New names wait until the scheduler has
// removed the replicas; else the member's controller recreates the pod and later deletes another one.
func (f *fleet) podRoutes(names []string) podRoutes {
	r := podRoutes{own: make([][]string, len(f.members)), sent: make([][]string, len(f.members)),
		deleted: make([][]string, len(f.members))}
	waits := f.placedTooMany()
	for _, name := range names {
		var in []int
		gone := -1
		missing, routed := false, false
		for i, m := range f.members {
			if slices.Contains(f.Pods[name], m.Cluster) {
				in = append(in, i)
			}
			if m.before == nil {
				continue
			}
			same := m.madeFrom(f.Template)
			if slices.Contains(texts(m.before.Object, podsToDeletePath...), name) {
				if same {
					in, routed = []int{i}, true
					break
				}
				gone = i
			}
			if m.note != nil {
				if slices.Contains(split(m.note.Deleted), name) {
					gone = i
				}
				missing = missing || same && slices.Contains(split(m.note.Missing), name)
			}
		}
		_, looked := f.Pods[name]
		found := routed || len(in) > 0 || gone >= 0
		switch {
		case !found && !looked && !missing:
			r.unknown = append(r.unknown, name)
		case waits && !routed && gone < 0:
		case len(in) == 1:
			r.own[in[0]] = append(r.own[in[0]], name)
			if routed {
				r.sent[in[0]] = append(r.sent[in[0]], name)
			}
		case len(in) > 1:
			r.twice = append(r.twice, name)
		case gone >= 0:
			r.deleted[gone] = append(r.deleted[gone], name)
		default:
			r.nowhere = append(r.nowhere, name)
		}
	}
	return r
}

// delayScaleDown keeps the replicas of a cluster that gets fewer of them than pods to delete, while a name may still
// turn out to be there: the member's controller would choose other pods. It has to run before the rollout is divided.
func (f *fleet) delayScaleDown(r podRoutes) {
	if len(r.unknown) == 0 {
		return
	}
	f.recheck(podSearchRetry)
	for i, m := range f.members {
		if m.before == nil || m.Base == nil {
			continue
		}
		before, after := number(m.before.Object, "spec", "replicas"), number(m.Base.Object, "spec", "replicas")
		if before-after <= int64(len(r.own[i])-len(r.sent[i])) {
			continue
		}
		r.own[i] = r.sent[i] // a name goes with its replica
		m.Replicas = before
		f.put(m, before, "spec", "replicas")
	}
}

// routePods writes the names into the manifests, and reports those that go to no cluster.
func (f *fleet) routePods(names []string, r podRoutes) {
	for i, m := range f.members {
		if m.Base == nil {
			continue
		}
		if len(names) > 0 {
			own := make([]any, len(r.own[i]))
			for k, name := range r.own[i] {
				own[k] = name
			}
			f.put(m, own, podsToDeletePath...)
			f.put(m, strings.Join(r.own[i], ","), "metadata", "annotations", wellknown.SentPodsToDeleteAnnotation)
		}
		if text, ok := f.result.Notes[m.Cluster]; ok {
			note := parseNote(text)
			note.Deleted, note.Missing = strings.Join(r.deleted[i], ","), strings.Join(r.nowhere, ",")
			f.result.Notes[m.Cluster] = note.String()
		}
	}
	var texts []string
	if len(r.nowhere) > 0 {
		texts = append(texts, strings.Join(r.nowhere, ", ")+" not found in any responding cluster")
	}
	if len(r.twice) > 0 {
		texts = append(texts, strings.Join(r.twice, ", ")+" found in several clusters")
	}
	if len(r.unknown) > 0 {
		texts = append(texts, strings.Join(r.unknown, ", ")+
			" not found, but a cluster does not respond; the replicas that go with the pods stay until it does")
	}
	if len(texts) > 0 {
		f.addCondition(PodNotFound, "pods named in spec.scaleStrategy.podsToDelete are not deleted: %s; remove the names, or delete the pods in their clusters", strings.Join(texts, "; "))
	}
}

// recheck asks to decide again after d at the latest.
func (f *fleet) recheck(d time.Duration) {
	if f.result.RecheckAfter == 0 || d < f.result.RecheckAfter {
		f.result.RecheckAfter = d
	}
}

// placedTooMany reports whether the clusters have more replicas than the template asks for.
func (f *fleet) placedTooMany() bool {
	if !f.Divided {
		return false
	}
	asked, set := whole(field(f.Template.Object, "spec", "replicas"))
	if !set {
		asked = 1
	}
	return f.replicas() > asked
}

// parseNote returns the note of an annotation; empty if it is invalid.
func parseNote(text string) (n Note) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return Note{}
	}
	return n
}

func split(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
}

// madeFrom reports whether the Work was made from this generation of the template.
func (m *member) madeFrom(template *unstructured.Unstructured) bool {
	return m.before.GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation] ==
		strconv.FormatInt(template.GetGeneration(), 10)
}

// podRecheck is the time until the hub looks again for a pod that it did not find.
const podRecheck = time.Minute

// PodOwner returns the controller that the pods of PodsAskedFor must have. It is empty if any will do.
func PodOwner(template *unstructured.Unstructured) (owner, name string) {
	if kind.Facts(template).Divides == kind.DividesNothingButPods {
		return "", ""
	}
	return template.GetKind(), template.GetName()
}

// recreateRequest sends a ContainerRecreateRequest only to clusters that have its pod, because the others reject it. It
// stays in the clusters that got it, because its spec is immutable.
func (f *fleet) recreateRequest() error {
	pod := text(f.Template.Object, "spec", "podName")
	before := split(f.Routed)
	var routed []string
	for _, m := range f.members {
		switch {
		case m.before != nil, slices.Contains(before, m.Cluster), len(before) == 0 && slices.Contains(f.Pods[pod], m.Cluster):
			routed = append(routed, m.Cluster)
		default:
			f.result.Waiting = append(f.result.Waiting, m.Cluster)
		}
	}
	f.result.Routed = strings.Join(unique(routed), ",")
	if len(routed) > 0 {
		return nil
	}
	f.result.RecheckAfter = podRecheck
	where := "not found in any responding cluster"
	if _, allResponded := f.Pods[pod]; allResponded {
		where = "not found in " + strings.Join(unique(f.clusters()), ", ")
	}
	f.addCondition(PodNotFound, "pod %q of spec.podName was %s, so there is nothing to recreate; name a pod that runs in a cluster of the policy", pod, where)
	return nil
}
