package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

type Change struct {
	// Objects are applied: templates, policies, overrides, clusters, customizations.
	Objects []Object
	// Namespace of objects and scalings without a namespace.
	Namespace string
	// Down are clusters that stop responding: workloads that fail over leave them, others stay, and new ones avoid them.
	Down []string
	// Drained are clusters that get the taint Drained, and whose workloads are rescheduled as by a WorkloadRebalancer.
	Drained []string
	// Removed are clusters that leave the fleet, as by an unjoin, with all that runs in them.
	Removed []string
	// Unhealthy are clusters where the workloads with application failover become unhealthy, and stay so.
	Unhealthy []string
	// Taints are put on clusters. New workloads that do not tolerate them avoid the clusters, and with NoExecute, those
	// there leave.
	Taints []Taint
	// Scale are workloads with another number of replicas.
	Scale []Scale
}

// steps returns the parts of the change in the order in which they happen: first what happens to clusters, then the
// objects in their order, where neighbours that are all templates, or all none, go together, and then the scalings.
func (c Change) steps() []Change {
	clusters := c
	clusters.Objects, clusters.Scale = nil, nil
	var steps []Change
	var templates bool
	for _, o := range c.Objects {
		gk := o.GroupVersionKind().GroupKind()
		if gk.Group == clusterv1alpha1.GroupVersion.Group || gk.Group == Document.Group {
			clusters.Objects = append(clusters.Objects, o)
			continue
		}
		if template := propagate.Propagable(gk); len(steps) == 0 || template != templates {
			templates, steps = template, append(steps, Change{Namespace: c.Namespace})
		}
		last := &steps[len(steps)-1]
		last.Objects = append(last.Objects, o)
	}
	if len(c.Scale) > 0 {
		steps = append(steps, Change{Namespace: c.Namespace, Scale: c.Scale})
	}
	return append([]Change{clusters}, steps...)
}

// Drained is the taint of a drained cluster.
var Drained = corev1.Taint{Key: wellknown.DrainedTaint, Effect: corev1.TaintEffectNoExecute}

type Taint struct {
	Cluster string
	corev1.Taint
}

// Scale is a workload and its new replicas. Kind is a kind or its plural, in any case, as "cloneset" or
// "clonesets.apps.kruise.io".
type Scale struct {
	Namespace, Kind, Name string
	Replicas              int32
}

// ParseTaint reads CLUSTER=KEY:EFFECT or CLUSTER=KEY=VALUE:EFFECT.
func ParseTaint(text string) (Taint, error) {
	bad := func(why string) (Taint, error) {
		return Taint{}, fmt.Errorf("taint %q: %s; write CLUSTER=KEY:EFFECT or CLUSTER=KEY=VALUE:EFFECT, such as m1=disk=slow:NoSchedule", text, why)
	}
	cluster, rest, ok := strings.Cut(text, "=")
	if !ok || cluster == "" {
		return bad("it names no cluster")
	}
	at := strings.LastIndex(rest, ":")
	if at < 0 {
		return bad("it has no effect")
	}
	key, value, _ := strings.Cut(rest[:at], "=")
	t := Taint{cluster, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(rest[at+1:])}}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return bad(fmt.Sprintf("the key %q: %s", key, problems[0]))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return bad(fmt.Sprintf("the value %q: %s", value, problems[0]))
	}
	if effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}; !slices.Contains(effects, t.Effect) {
		return bad(fmt.Sprintf("the effect is %q, and there are NoSchedule, PreferNoSchedule and NoExecute", t.Effect))
	}
	return t, nil
}

// ParseScale reads [NAMESPACE/]KIND/NAME=N.
func ParseScale(text string) (Scale, error) {
	what, number, ok := strings.Cut(text, "=")
	parts := strings.Split(what, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Scale{}, fmt.Errorf("scale %q: write KIND/NAME=N or NAMESPACE/KIND/NAME=N, such as shop/cloneset/web=20", text)
	}
	if err != nil || n < 0 {
		return Scale{}, fmt.Errorf("scale %q: %q is no number of replicas: write a whole number that is not negative", text,
			number)
	}
	s := Scale{Kind: parts[len(parts)-2], Name: parts[len(parts)-1], Replicas: int32(n)}
	if len(parts) == 3 {
		s.Namespace = parts[0]
	}
	return s, nil
}

// String returns the scaling as ParseScale reads it.
func (s Scale) String() string {
	text := fmt.Sprintf("%s/%s=%d", s.Kind, s.Name, s.Replicas)
	if s.Namespace != "" {
		text = s.Namespace + "/" + text
	}
	return text
}

// putTaint adds a taint to a cluster, or replaces the one with its key and effect.
func putTaint(c *clusterv1alpha1.Cluster, t corev1.Taint, now time.Time) {
	if t.Effect == corev1.TaintEffectNoExecute {
		t.TimeAdded = &metav1.Time{Time: now}
	}
	c.Spec.Taints = append(slices.DeleteFunc(c.Spec.Taints, func(has corev1.Taint) bool { return has.MatchTaint(&t) }), t)
}

// changed returns the fleet after the change is applied, before anything is decided. touched are the changed templates.
// The error joins all contradictions in the change.
func (f *Fleet) changed(ctx context.Context, c Change, meaning func(*Fleet) interpret.Interpreter,
	now time.Time) (next *Fleet, touched map[ref]bool, err error) {
	next, touched, err = f.Apply(c.Objects, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	exists := func(flag, cluster string) bool {
		if next.clusters[cluster] != nil {
			return true
		}
		errs = append(errs, fmt.Errorf("%s: there is no cluster %q; there are %s", flag, cluster,
			few(sortedKeys(next.clusters))))
		return false
	}
	// Copy a cluster before it is changed.
	edited := func(name string) *clusterv1alpha1.Cluster {
		cluster := next.clusters[name].DeepCopy()
		cluster.ResourceVersion = ""
		next.clusters[name] = cluster
		return cluster
	}
	fate := map[string]string{}
	for _, f := range []struct {
		flag     string
		clusters []string
	}{{"--cluster-down", c.Down}, {"--cluster-drained", c.Drained}, {"--cluster-removed", c.Removed},
		{"--unhealthy", c.Unhealthy}} {
		for _, name := range f.clusters {
			if !exists(f.flag, name) {
				continue
			}
			if has := fate[name]; has != "" && has != f.flag {
				errs = append(errs, fmt.Errorf("%s: cluster %q is also in %s; remove one of the two", f.flag, name, has))
				continue
			}
			fate[name] = f.flag
		}
	}
	for name, flag := range fate {
		switch flag {
		case "--cluster-down":
			cluster := edited(name)
			meta.SetStatusCondition(&cluster.Status.Conditions, membership.Seen(membership.Probe{Err: "simulated"}))
			cluster.Spec.Taints, _ = membership.Taints(cluster.Spec.Taints, membership.Readiness(cluster), now)
		case "--cluster-drained":
			putTaint(edited(name), Drained, now)
		}
	}
	for _, t := range c.Taints {
		if !exists("--taint", t.Cluster) {
			continue
		}
		if fate[t.Cluster] == "--cluster-removed" {
			errs = append(errs, fmt.Errorf("--taint: cluster %q is also in --cluster-removed; remove one of the two", t.Cluster))
			continue
		}
		putTaint(edited(t.Cluster), t.Taint, now)
	}
	for _, name := range c.Removed {
		delete(next.clusters, name)
	}
	scaled := map[ref]Scale{}
	m := meaning(next)
	for _, s := range c.Scale {
		s.Namespace = cmp.Or(s.Namespace, c.Namespace)
		r, err := next.find(s)
		if err == nil && scaled[r] != (Scale{}) && scaled[r].Replicas != s.Replicas {
			err = fmt.Errorf("scale %s: another one gives it %d replicas: keep one of the two", s, scaled[r].Replicas)
		}
		if err == nil {
			scaled[r] = s
			next.templates[r], err = revise(ctx, m, next, r, s)
			touched[r], next.added = true, append(next.added, r)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return next, touched, nil
}

// find returns the one template that a scaling means.
func (f *Fleet) find(s Scale) (ref, error) {
	kind, group, grouped := strings.Cut(strings.ToLower(s.Kind), ".")
	var found []ref
	for r := range f.templates {
		k := strings.ToLower(r.Kind)
		if (k == kind || k+"s" == kind || k+"es" == kind) && (!grouped || strings.ToLower(r.Group) == group) &&
			r.Name == s.Name && (r.Namespace == s.Namespace || r.Namespace == "") {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, compareRefs)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return ref{}, fmt.Errorf("scale %s: the fleet has no such template; what no policy selects is not recorded, and a file of -f can bring it", s)
	}
	return ref{}, fmt.Errorf("scale %s: %s and %s are meant alike: name the group too, as %s.%s", s,
		found[0].GroupKind, found[1].GroupKind, strings.ToLower(found[0].Kind), found[0].Group)
}

// few names the first clusters, or "none".
func few(names []string) string { return cmp.Or(text.Names(names, 8), "none") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
