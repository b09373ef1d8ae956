package taint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Cordon is the taint of a cluster that a user closed to new workloads.
var Cordon = corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// Edit is a change of a cluster's taints that a user asks for.
type Edit struct {
	// Put are taints to set, by key and effect.
	Put []corev1.Taint
	// Drop are taints to remove. An empty effect is every effect of the key.
	Drop []corev1.Taint
}

// ParseEdit reads arguments such as those of kubectl: KEY=VALUE:EFFECT and KEY:EFFECT set a taint, KEY:EFFECT- and KEY-
// remove some.
func ParseEdit(args []string) (Edit, error) {
	var e Edit
	seen := map[string]bool{}
	for _, arg := range args {
		bad := func(why string) (Edit, error) {
			return Edit{}, fmt.Errorf("taint %q: %s; write KEY=VALUE:EFFECT or KEY:EFFECT, and KEY:EFFECT- or KEY- to remove it",
				arg, why)
		}
		text, drop := strings.CutSuffix(arg, "-")
		pair, effect, hasEffect := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return bad(fmt.Sprintf("the key %q is invalid: %s", key, wrong[0]))
		}
		if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
			return bad(fmt.Sprintf("the value %q is invalid: %s", value, wrong[0]))
		}
		if named := hasEffect || !drop; named && t.Effect != corev1.TaintEffectNoSchedule &&
			t.Effect != corev1.TaintEffectNoExecute {
			return bad(fmt.Sprintf("the effect %q is neither NoSchedule nor NoExecute", effect))
		}
		id := key + ":" + effect
		if seen[id] {
			return bad("it is given twice")
		}
		seen[id] = true
		if drop {
			e.Drop = append(e.Drop, t)
			continue
		}
		if membership.IsReadinessTaint(t) {
			return bad("the hub sets and removes this taint by the cluster's condition Ready")
		}
		e.Put = append(e.Put, t)
	}
	for _, d := range e.Drop {
		if slices.ContainsFunc(e.Put, func(p corev1.Taint) bool { return removes(d, p) }) {
			return Edit{}, fmt.Errorf("taint %s is both set and removed: keep one of the two", d.ToString())
		}
	}
	if len(e.Put)+len(e.Drop) == 0 {
		return Edit{}, errors.New("at least one taint is required, such as dedicated=gpu:NoSchedule")
	}
	return e, nil
}

// removes reports whether dropping d removes the taint.
func removes(d, t corev1.Taint) bool {
	return d.Key == t.Key && (d.Effect == "" || d.Effect == t.Effect)
}

// Apply returns the taints after the edit. It refuses to set a taint that is there with another value unless overwrite
// is set, and to remove one that is not there.
func (e Edit) Apply(taints []corev1.Taint, overwrite bool) ([]corev1.Taint, error) {
	var errs []error
	taints = slices.Clone(taints)
	for _, d := range e.Drop {
		before := len(taints)
		taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool { return removes(d, t) })
		if len(taints) == before {
			errs = append(errs, fmt.Errorf("taint %q not found", strings.TrimSuffix(d.ToString(), ":")))
		}
	}
	for _, p := range e.Put {
		at := slices.IndexFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&p) })
		switch {
		case at < 0:
			taints = append(taints, p)
		case taints[at].Value == p.Value:
			// It keeps its time: a toleration does not start again.
		case overwrite:
			taints[at] = p
		default:
			errs = append(errs, fmt.Errorf("it already has the taint %s, and --overwrite is not set", taints[at].ToString()))
		}
	}
	return taints, errors.Join(errs...)
}

// Verb returns kubectl's participle for the edit.
func (e Edit) Verb() string {
	switch {
	case len(e.Drop) == 0:
		return "tainted"
	case len(e.Put) == 0:
		return "untainted"
	}
	return "modified"
}
