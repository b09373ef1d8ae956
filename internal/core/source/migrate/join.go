// Package migrate decides how workloads that run in several clusters become templates of the hub, and leave it again,
// without a restarted pod. It computes the template, the overrides for differences between clusters, the clusters that
// the hub may write, and whether a step disturbed pods. Callers read and write.
package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Copy is the object of a workload in one cluster.
type Copy struct {
	Cluster string
	Live    *unstructured.Unstructured
}

// Joined is one template for the objects of several clusters.
type Joined struct {
	Template *unstructured.Unstructured
	// Divides is true if the template has the replicas of all clusters, and each cluster its Replicas of them.
	Divides  bool
	Replicas map[string]int64
	// Rules change the template to the content of each cluster. Clusters with equal content need no rule.
	Rules []policyv1alpha1.RuleWithCluster
}

// Join returns one template for the objects, and a rule for each cluster that differs from it. If base is not nil, it
// is the existing template, and only rules and replicas are computed. divides is true if spec.replicas of the kind
// counts pods, so that clusters share it.
func Join(copies []Copy, base *unstructured.Unstructured, divides bool) (Joined, error) {
	if len(copies) == 0 {
		return Joined{}, errNoCopies
	}
	compared := copies
	if base != nil {
		compared = append([]Copy{{"the hub", base}}, copies...)
	}
	if err := checkAlike(compared); err != nil {
		return Joined{}, err
	}
	joined := Joined{Divides: divides, Replicas: map[string]int64{}}
	contents := make([]*unstructured.Unstructured, len(copies))
	for i, c := range copies {
		contents[i] = adopt.Template(c.Live)
		withoutMasters(contents[i])
		if !divides {
			continue
		}
		n, _ := fields.Whole(fields.Value(contents[i].Object, "spec", "replicas"))
		if n <= 0 {
			return Joined{}, fmt.Errorf("it runs no replicas in cluster %q: scale it up, or leave out this cluster", c.Cluster)
		}
		joined.Replicas[c.Cluster] = n
	}
	joined.Template = base
	if base == nil {
		joined.Template = mostCommon(contents).DeepCopy()
		if err := joined.complete(); err != nil {
			return Joined{}, err
		}
	}
	for i, c := range copies {
		rule, err := ruleFor(c.Cluster, joined.Template, contents[i], divides)
		if err != nil {
			return Joined{}, err
		}
		if rule != nil {
			joined.Rules = append(joined.Rules, *rule)
		}
	}
	return joined, nil
}

// complete gives a new template the replicas of all clusters, and keeps its partition and budgets as they are in each
// cluster.
func (j *Joined) complete() error {
	if j.Divides {
		if err := unstructured.SetNestedField(j.Template.Object, Sum(j.Replicas), "spec", "replicas"); err != nil {
			return err
		}
	}
	divided, err := fleet.Concerns(j.Template, j.Divides)
	if err != nil || !divided || j.Template.GetAnnotations()[wellknown.RolloutScopeAnnotation] != "" {
		return err
	}
	fields.SetAnnotation(j.Template, wellknown.RolloutScopeAnnotation, "Cluster")
	return nil
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// Sum returns the replicas of all clusters.
func Sum(replicas map[string]int64) (sum int64) {
	for _, n := range replicas {
		sum += n
	}
	return sum
}

// fixed are fields that are immutable, or that change the identity of pods.
var fixed = [][]string{{"spec", "selector"}, {"spec", "volumeClaimTemplates"}, {"spec", "serviceName"}}

// checkAlike returns an error if the objects cannot share one template.
func checkAlike(copies []Copy) error {
	first := copies[0]
	kind := first.Live.GroupVersionKind()
	paths := fixed
	if len(interpret.PodTemplatePaths(kind.GroupKind())) == 0 {
		paths = nil // the selector of a Service may differ
	}
	for _, c := range copies[1:] {
		if other := c.Live.GroupVersionKind(); other != kind {
			return fmt.Errorf("it is %s in %q and %s in %q", kind, first.Cluster, other, c.Cluster)
		}
		for _, path := range paths {
			have, other := withoutStatus(first.Live, path), withoutStatus(c.Live, path)
			if !reflect.DeepEqual(have, other) {
				return fmt.Errorf("%s differs between %q (%s) and %q (%s) and cannot change without new pods: "+
					"migrate them under different names", strings.Join(path, "."), first.Cluster, text.JSON(have), c.Cluster,
					text.JSON(other))
			}
		}
	}
	return nil
}

// withoutStatus returns the value at a path, without what the server adds to claims.
func withoutStatus(obj *unstructured.Unstructured, path []string) any {
	v := fields.Value(obj.Object, path...)
	claims, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(claims))
	for i, c := range claims {
		claim, ok := c.(map[string]any)
		if !ok {
			return v
		}
		claim = maps.Clone(claim)
		delete(claim, "status")
		out[i] = claim
	}
	return out
}

// encode returns a value as JSON.
// mostCommon returns the content from which the others differ in the fewest fields; the first of several.
func mostCommon(contents []*unstructured.Unstructured) *unstructured.Unstructured {
	return slices.MinFunc(contents, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(distance(a, contents), distance(b, contents))
	})
}

func distance(from *unstructured.Unstructured, contents []*unstructured.Unstructured) (n int) {
	for _, c := range contents {
		n += len(differences(from, c, true))
	}
	return n
}

// ruleFor returns the rule that changes the template to the content of a cluster; nil if they are equal.
func ruleFor(cluster string, template, content *unstructured.Unstructured,
	divides bool) (*policyv1alpha1.RuleWithCluster, error) {
	operations := differences(template, content, divides)
	if len(operations) == 0 {
		return nil, nil
	}
	if template.GroupVersionKind().GroupKind() == secretKind {
		return nil, fmt.Errorf("the Secret of cluster %q differs: an override policy would show its data to all users who "+
			"read policies. Make the clusters alike, or leave it out", cluster)
	}
	rule := &policyv1alpha1.RuleWithCluster{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}}
	if registry, ok := commonRegistry(operations); ok {
		images := []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Registry,
			Operator: policyv1alpha1.OverriderOpReplace, Value: registry}}
		rule.Overriders.ImageOverrider = images
		moved, err := applyRule(cluster, template, *rule)
		if err != nil {
			return nil, err
		}
		rule.Overriders.ImageOverrider = nil
		if rest := differences(moved, content, divides); len(rest) < len(operations) {
			operations, rule.Overriders.ImageOverrider = rest, images
		}
	}
	for _, o := range operations {
		o.addTo(&rule.Overriders)
	}
	result, err := applyRule(cluster, template, *rule)
	if err != nil {
		return nil, err
	}
	if rest := differences(result, content, divides); len(rest) > 0 {
		return nil, fmt.Errorf("no override gives cluster %q its %s: make the clusters alike first", cluster,
			strings.Join(rest[0].path, "."))
	}
	return rule, nil
}

// applyRule returns the template with the rule of a cluster.
func applyRule(cluster string, template *unstructured.Unstructured,
	rule policyv1alpha1.RuleWithCluster) (*unstructured.Unstructured, error) {
	p := &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{
		OverrideRules: []policyv1alpha1.RuleWithCluster{rule}}}
	out, _, err := override.Apply(template, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		[]policyv1alpha1.Override{p})
	if err != nil {
		return nil, fmt.Errorf("override for cluster %q: %w", cluster, err)
	}
	return out, nil
}

// operation changes one field of a template.
type operation struct {
	path     []string
	operator policyv1alpha1.OverriderOperator
	value    any
}

// escape escapes a key of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// addTo adds the operation to the overriders of a cluster.
func (o operation) addTo(to *policyv1alpha1.Overriders) {
	if o.path[0] == "metadata" {
		value, _ := o.value.(string)
		operator := o.operator
		if operator == policyv1alpha1.OverriderOpReplace {
			operator = policyv1alpha1.OverriderOpAdd // sets the key, whatever it has
		}
		change := policyv1alpha1.LabelAnnotationOverrider{Operator: operator, Value: map[string]string{o.path[2]: value}}
		if o.path[1] == "labels" {
			to.LabelsOverrider = append(to.LabelsOverrider, change)
		} else {
			to.AnnotationsOverrider = append(to.AnnotationsOverrider, change)
		}
		return
	}
	pointer := ""
	for _, key := range o.path {
		pointer += "/" + escape.Replace(key)
	}
	change := policyv1alpha1.PlaintextOverrider{Path: pointer, Operator: o.operator}
	if o.operator != policyv1alpha1.OverriderOpRemove {
		change.Value.Raw = []byte(text.JSON(o.value))
	}
	to.Plaintext = append(to.Plaintext, change)
}

// differences returns the operations that change template to content, sorted by path. spec.replicas is left out if
// clusters share it.
func differences(template, content *unstructured.Unstructured, divides bool) []operation {
	var all []operation
	collect(&all, nil, comparedFields(template, divides), comparedFields(content, divides))
	return all
}

// comparedFields returns the fields of an object that may differ between clusters.
func comparedFields(obj *unstructured.Unstructured, divides bool) map[string]any {
	bare := adopt.Template(obj)
	fleet.Bare(bare)
	annotations := fields.Object(bare.Object, "metadata", "annotations")
	delete(annotations, releasev1alpha1.ReleaseStrategyAnnotation)
	labels := fields.Object(bare.Object, "metadata", "labels")
	delete(bare.Object, "apiVersion")
	delete(bare.Object, "kind")
	// Both maps always exist, so that each key is an operation of its own.
	bare.Object["metadata"] = map[string]any{"labels": orEmpty(labels), "annotations": orEmpty(annotations)}
	if divides {
		unstructured.RemoveNestedField(bare.Object, "spec", "replicas")
	}
	return bare.Object
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// collect adds the operations below a path.
func collect(all *[]operation, path []string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	add := func(operator policyv1alpha1.OverriderOperator, value any, keys ...string) {
		*all = append(*all, operation{slices.Concat(path, keys), operator, value})
	}
	switch f := from.(type) {
	case map[string]any:
		t, ok := to.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(f)) {
			if v, ok := t[key]; ok {
				collect(all, slices.Concat(path, []string{key}), f[key], v)
			} else {
				add(policyv1alpha1.OverriderOpRemove, nil, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if _, ok := f[key]; !ok {
				add(policyv1alpha1.OverriderOpAdd, t[key], key)
			}
		}
		return
	case []any:
		t, ok := to.([]any)
		if !ok || !sameItems(f, t) {
			break
		}
		for i := range f {
			collect(all, slices.Concat(path, []string{strconv.Itoa(i)}), f[i], t[i])
		}
		return
	}
	add(policyv1alpha1.OverriderOpReplace, to)
}

// sameItems reports whether two lists have the same items in the same order, by name, so that an index means the same
// item in both.
func sameItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, ok := a[i].(map[string]any)
		y, also := b[i].(map[string]any)
		if !ok || !also || !reflect.DeepEqual(x["name"], y["name"]) {
			return false
		}
	}
	return true
}

// commonRegistry returns the registry that all images of a cluster come from, if images differ.
func commonRegistry(operations []operation) (registry string, ok bool) {
	for _, o := range operations {
		image, isText := o.value.(string)
		if o.path[len(o.path)-1] != "image" || !isText {
			continue
		}
		host, _, found := strings.Cut(image, "/")
		if !found || !strings.ContainsAny(host, ".:") && host != "localhost" || registry != "" && host != registry {
			return "", false
		}
		registry, ok = host, true
	}
	return registry, ok
}
