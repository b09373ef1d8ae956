package ocm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Item is one object of a ManifestWork.
type Item struct {
	// Object is the manifest; nil if it is invalid.
	Object *unstructured.Unstructured
	// Meta identifies the object. Its ordinal is the index in the spec.
	Meta ocmv1.ManifestResourceMeta
	// strategy, feedback and rules are from the first option for the object that sets them.
	strategy *ocmv1.UpdateStrategy
	feedback []ocmv1.FeedbackRule
	rules    []ocmv1.ConditionRule
	// Err is why the object cannot be applied.
	Err error
}

// Items returns the objects of a ManifestWork in order. The plural names of kinds are those of the cluster c, which may
// be nil.
func Items(mw *ocmv1.ManifestWork, c *clusterv1alpha1.Cluster) []Item {
	items := make([]Item, len(mw.Spec.Workload.Manifests))
	for i := range items {
		item := &items[i]
		item.Meta.Ordinal = int32(i)
		m := &unstructured.Unstructured{}
		if err := m.UnmarshalJSON(mw.Spec.Workload.Manifests[i].Raw); err != nil {
			item.Err = fmt.Errorf("read spec.workload.manifests[%d]: %w", i, err)
			continue
		}
		id := identityOf(m, c)
		gvk := m.GroupVersionKind()
		item.Object = m
		item.Meta = ocmv1.ManifestResourceMeta{Ordinal: int32(i), Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Resource: id.Resource, Namespace: id.Namespace, Name: id.Name}
		switch {
		case m.GetName() == "":
			item.Err = fmt.Errorf("spec.workload.manifests[%d].metadata.name is empty", i)
		case mw.Spec.Executor != nil:
			item.Err = errExecutor
		}
		item.take(mw.Spec.ManifestConfigs)
	}
	return items
}

// take takes over the options for the object. The first value of each option wins.
func (i *Item) take(options []ocmv1.ManifestConfigOption) {
	for j := range options {
		option := &options[j]
		news := i.strategy == nil && option.UpdateStrategy != nil || len(i.feedback) == 0 && len(option.FeedbackRules) > 0 ||
			len(i.rules) == 0 && len(option.ConditionRules) > 0
		if !news || !i.Named(option.ResourceIdentifier) {
			continue
		}
		if i.strategy == nil {
			i.strategy = option.UpdateStrategy
		}
		if len(i.feedback) == 0 {
			i.feedback = option.FeedbackRules
		}
		if len(i.rules) == 0 {
			i.rules = option.ConditionRules
		}
	}
	if slices.ContainsFunc(i.rules, unusable) {
		i.rules = slices.DeleteFunc(slices.Clone(i.rules), unusable)
	}
}

// ConditionType returns an error if a rule may not set a condition of this type.
func ConditionType(kind string) error {
	switch kind {
	case ocmv1.Applied, ocmv1.Deleting, ocmv1.StatusFeedbackSynced:
		return fmt.Errorf("%s is reserved for the hub: use another type", kind)
	}
	if !conditionType.MatchString(kind) || len(kind) > 316 {
		return errors.New("must be the type of a condition, such as Ready or example.com/Ready")
	}
	return nil
}

var conditionType = regexp.MustCompile(
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// unusable reports whether a rule, which passed admission anyway, sets an invalid condition.
func unusable(rule ocmv1.ConditionRule) bool { return ConditionType(rule.Condition) != nil }

// completes reports whether a rule decides when the object is complete.
func (i Item) completes() bool {
	of := kind.Lookup(schema.GroupKind{Group: i.Meta.Group, Kind: i.Meta.Kind})
	return slices.ContainsFunc(i.rules, func(r ocmv1.ConditionRule) bool {
		return r.Condition == ocmv1.Complete &&
			(r.Type != ocmv1.RuleWellKnownConditions || of.Once != nil || of.Pods.IsPod())
	})
}

// Named reports whether the identifier of an option names the object.
func (i Item) Named(by ocmv1.ResourceIdentifier) bool {
	return by.Group == i.Meta.Group && by.Resource == i.Meta.Resource && matches(by.Namespace, i.Meta.Namespace) &&
		matches(by.Name, i.Meta.Name)
}

// identityOf returns the identifier of an object as used by options and rules.
func identityOf(m *unstructured.Unstructured, c *clusterv1alpha1.Cluster) ocmv1.OrphaningRule {
	gvk := m.GroupVersionKind()
	return ocmv1.OrphaningRule{Group: gvk.Group, Resource: plural(gvk, c), Namespace: m.GetNamespace(), Name: m.GetName()}
}

// plural returns the resource of a kind as served by the cluster, or else a guess by English rules.
func plural(gvk schema.GroupVersionKind, c *clusterv1alpha1.Cluster) string {
	if c != nil {
		for _, e := range c.Status.APIEnablements {
			if gv, err := schema.ParseGroupVersion(e.GroupVersion); err != nil || gv.Group != gvk.Group {
				continue
			}
			for _, r := range e.Resources {
				if r.Kind == gvk.Kind {
					return r.Name
				}
			}
		}
	}
	if kind := strings.ToLower(gvk.Kind); len(kind) > 1 && strings.HasSuffix(kind, "y") &&
		strings.ContainsRune("aeiou", rune(kind[len(kind)-2])) {
		return kind + "s" // gateways
	}
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return guess.Resource
}

// matches reports whether text matches the pattern, in which * matches any text.
func matches(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == text
	}
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// WorkNames returns the names that the object's Work may have: the second if another object's Work has the first.
func (i Item) WorkNames(manifestWork string) []string {
	return names.Either(names.WorkOfManifestWork(manifestWork, i.Meta.Group, i.Meta.Kind, i.Meta.Name, i.Meta.Namespace),
		schema.GroupKind{Group: i.Meta.Group, Kind: i.Meta.Kind}, i.Meta.Name, i.Meta.Namespace)
}

// WorkName returns the name of the object's Work among the existing ones of the ManifestWork; the first for a new one.
func (i Item) WorkName(manifestWork string, existing map[string]*workv1alpha1.Work) string {
	either := i.WorkNames(manifestWork)
	if existing[either[1]] != nil {
		return either[1]
	}
	return either[0]
}

func (i Item) identity() ocmv1.OrphaningRule {
	return ocmv1.OrphaningRule{Group: i.Meta.Group, Resource: i.Meta.Resource, Namespace: i.Meta.Namespace,
		Name: i.Meta.Name}
}

// updates returns the update strategy.
func (i Item) updates() ocmv1.UpdateStrategy {
	if i.strategy != nil {
		return *i.strategy
	}
	return ocmv1.UpdateStrategy{Type: ocmv1.UpdateStrategyUpdate}
}

// Writes reports whether the hub writes the object, that is, unless it is ReadOnly.
func (i Item) Writes() bool { return i.updates().Type != ocmv1.UpdateStrategyReadOnly }

// order lists kinds that others need first, by rank. All other kinds are last.
var order = [][]string{
	{"Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "PersistentVolume"},
	{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"},
	{"Secret", "ConfigMap", "PersistentVolumeClaim"},
	{"Service"},
	{"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet",
		"Job", "CronJob"},
	{"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding"},
}

// rank returns the position of the object in the order of application. The others wait for objects of rank 0.
func (i Item) rank() int {
	rank := slices.IndexFunc(order, func(kinds []string) bool { return slices.Contains(kinds, i.Meta.Kind) })
	if rank < 0 || strings.HasSuffix(i.Meta.Group, ".kruise.io") { // it has its own DaemonSet and StatefulSet
		return len(order)
	}
	return rank
}

// sameResource reports whether two status entries are for the same object.
func sameResource(a, b ocmv1.ManifestResourceMeta) bool {
	a.Ordinal, b.Ordinal = 0, 0
	return a == b
}
