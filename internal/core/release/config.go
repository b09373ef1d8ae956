package release

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// ConfigMapKind is the kind of versioned configuration.
var ConfigMapKind = schema.GroupKind{Kind: "ConfigMap"}

// ConfigMaps are existing ConfigMaps of the namespace of a workload, by name: those that its pods read, and their
// versions. Nil means that configuration is not versioned.
type ConfigMaps map[string]*unstructured.Unstructured

// hashLength is the number of hexadecimal digits in the name of a version. A collision is found; see VersionsToMake.
const hashLength = 8

// VersionsConfig reports whether the release versions ConfigMaps.
func (in Input) VersionsConfig() bool { return VersionsConfig(in.strategy()) }

// VersionsConfig reports whether releases by a strategy version ConfigMaps. The strategy may be nil.
func VersionsConfig(strategy *releasev1alpha1.ReleaseStrategySpec) bool {
	return strategy != nil && strategy.Config == releasev1alpha1.ConfigVersioned
}

// ReadConfigMaps returns the names of the ConfigMaps that the pods of a template read, sorted.
func ReadConfigMaps(template *unstructured.Unstructured) []string {
	var names []string
	interpret.EachConfigMap(template, func(ref map[string]any) { names = append(names, fields.Text(ref, "name")) })
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// IsVersion reports whether a ConfigMap with these annotations is marked as a version of another one.
func IsVersion(annotations map[string]string) bool {
	_, marked := annotations[wellknown.VersionOfAnnotation]
	return marked
}

// VersionOf returns the name of the version of a ConfigMap with its present content; empty if it cannot have versions.
func VersionOf(configMap *unstructured.Unstructured) string {
	if IsVersion(configMap.GetAnnotations()) || propagate.Excluded(match.TemplateOf(configMap)) {
		return ""
	}
	return versionName(configMap.GetName(), contentHash(configMap))
}

// versionName is the name of a version, of at most 253 characters.
func versionName(configMap, hash string) string {
	return strings.TrimRight(configMap[:min(len(configMap), 252-hashLength)], "-.") + "-" + hash
}

// contentHash is of the data of a ConfigMap.
func contentHash(configMap *unstructured.Unstructured) string {
	return hashOf(configMap.Object["data"], configMap.Object["binaryData"])[:hashLength]
}

// CurrentRevision is the revision that a template has now; see NewRevision. With ConfigMaps, its pods read the versions
// of them. effective is the revision that clusters have, nil if it is not known: pods keep its version of a ConfigMap
// that does not exist, because a deletion is no change to release.
func CurrentRevision(template *unstructured.Unstructured, overrides []policyv1alpha1.Override, configMaps ConfigMaps,
	effective *releasev1alpha1.ReleaseRevision) *releasev1alpha1.ReleaseRevision {
	if configMaps == nil {
		return NewRevision(template, overrides)
	}
	template, config := withVersions(template, overrides, configMaps, effective)
	r := NewRevision(template, overrides)
	r.Spec.Config = config
	return r
}

// withVersions returns a copy of a template whose pods read versions of the ConfigMaps that exist, or that the
// effective revision has. A ConfigMap that an override policy selects has no versions: the policy may not select them,
// and its changes could not change them in members.
func withVersions(template *unstructured.Unstructured, overrides []policyv1alpha1.Override, configMaps ConfigMaps,
	effective *releasev1alpha1.ReleaseRevision) (*unstructured.Unstructured, []releasev1alpha1.RevisionConfig) {
	var config []releasev1alpha1.RevisionConfig
	versions := map[string]string{} // names by those of ConfigMaps
	for _, name := range ReadConfigMaps(template) {
		c := releasev1alpha1.RevisionConfig{Kind: ConfigMapKind.Kind, Name: name}
		switch of := configMaps[name]; {
		case of == nil:
			c.Hash = hashIn(effective, name)
		case VersionOf(of) != "" && len(override.Selecting(of, overrides)) == 0:
			c.Hash = contentHash(of)
		}
		if c.Hash != "" {
			versions[name] = versionName(name, c.Hash)
		}
		config = append(config, c)
	}
	out := template.DeepCopy()
	interpret.EachConfigMap(out, func(ref map[string]any) {
		if version := versions[fields.Text(ref, "name")]; version != "" {
			ref["name"] = version
		}
	})
	return out, config
}

// hashIn is the hash of a ConfigMap in a revision, which may be nil; empty if its pods read no version of it.
func hashIn(r *releasev1alpha1.ReleaseRevision, configMap string) string {
	if r != nil {
		for _, c := range r.Spec.Config {
			if c.Name == configMap {
				return c.Hash
			}
		}
	}
	return ""
}

// newVersion returns the version of a ConfigMap with its present content. It has no labels, which could be those of a
// tool that owns the ConfigMap. It belongs to the workload until a ReleaseRevision is stored that uses it; see OwnedBy.
func newVersion(of, workload *unstructured.Unstructured) *unstructured.Unstructured {
	v := &unstructured.Unstructured{Object: map[string]any{"immutable": true}}
	v.SetAPIVersion("v1")
	v.SetKind(ConfigMapKind.Kind)
	v.SetNamespace(of.GetNamespace())
	v.SetName(versionName(of.GetName(), contentHash(of)))
	v.SetAnnotations(map[string]string{wellknown.VersionOfAnnotation: of.GetName()})
	for _, field := range contentFields {
		if content := of.Object[field]; content != nil {
			v.Object[field] = runtime.DeepCopyJSONValue(content)
		}
	}
	v.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: workload.GetAPIVersion(), Kind: workload.GetKind(),
		Name: workload.GetName(), UID: workload.GetUID()}})
	return v
}

// contentFields are the fields of a ConfigMap with its content.
var contentFields = []string{"data", "binaryData"}

// hasContentOf reports whether a ConfigMap is the version of another one with the hash of its content. of is that
// ConfigMap if it has this content now, and otherwise nil. A ConfigMap that is not immutable is no version: its content
// may change in all clusters.
func hasContentOf(u *unstructured.Unstructured, c releasev1alpha1.RevisionConfig, of *unstructured.Unstructured) bool {
	if u.GetAnnotations()[wellknown.VersionOfAnnotation] != c.Name || u.Object["immutable"] != true ||
		contentHash(u) != c.Hash {
		return false
	}
	return of == nil || !slices.ContainsFunc(contentFields, func(field string) bool {
		return !reflect.DeepEqual(u.Object[field], of.Object[field]) // the hash is short
	})
}

// withContent returns the ConfigMap of an entry of a revision if it has the content of the revision, otherwise nil.
func (all ConfigMaps) withContent(c releasev1alpha1.RevisionConfig) *unstructured.Unstructured {
	if of := all[c.Name]; of != nil && contentHash(of) == c.Hash {
		return of
	}
	return nil
}

// VersionsToMake returns the versions of a revision that do not exist and can be made, for a template. taken is the
// namespace and name of a ConfigMap that has the name of a version and is none of that content; empty if there is none.
func VersionsToMake(r *releasev1alpha1.ReleaseRevision, template *unstructured.Unstructured,
	configMaps ConfigMaps) (versions []*unstructured.Unstructured, taken string) {
	for _, c := range r.Spec.Config {
		if c.Hash == "" {
			continue
		}
		of, have := configMaps.withContent(c), configMaps[versionName(c.Name, c.Hash)]
		switch {
		case have == nil && of != nil:
			versions = append(versions, newVersion(of, template))
		case have != nil && !hasContentOf(have, c, of):
			return nil, have.GetNamespace() + "/" + have.GetName()
		}
	}
	return versions, ""
}

// TakenMessage is about a ConfigMap, "namespace/name", that has the name of a version.
func TakenMessage(configMap string) string {
	return fmt.Sprintf("ConfigMap %s has the name of a version that the hub has to make, and is none of this content: "+
		"other data, or not immutable; delete it, or create it under another name", configMap)
}

// LostVersions returns a line about each version of a revision that pods read, that does not exist, and that cannot be
// made again, because the ConfigMap has other content now.
func LostVersions(r *releasev1alpha1.ReleaseRevision, configMaps ConfigMaps) (lines []string) {
	for _, c := range r.Spec.Config {
		if name := versionName(c.Name, c.Hash); c.Hash != "" && configMaps[name] == nil && configMaps.withContent(c) == nil {
			lines = append(lines, fmt.Sprintf("pods of ReleaseRevision %s read ConfigMap %s/%s, which was deleted, and "+
				"ConfigMap %s does not have this content now; give it the content again, or release another revision", r.Name,
				r.Namespace, name, c.Name))
		}
	}
	return lines
}

// Versions returns the names of the ConfigMaps that the pods of a revision read in place of others. The revision may be
// nil.
func Versions(r *releasev1alpha1.ReleaseRevision) (names []string) {
	if r == nil {
		return nil
	}
	for _, c := range r.Spec.Config {
		if c.Hash != "" {
			names = append(names, versionName(c.Name, c.Hash))
		}
	}
	return names
}

// Attached reports whether one of these ConfigMaps is in clusters with the workload of a binding, which may have pods
// of revisions that the binding no longer names. If the recorded dependencies cannot be read, each may be.
func Attached(b workv1alpha2.Binding, namespace string, configMaps ...string) bool {
	recorded, err := propagate.RecordedDependencies(b)
	if err != nil {
		return len(configMaps) > 0
	}
	return slices.ContainsFunc(recorded, func(ref configv1alpha1.DependentObjectReference) bool {
		return match.GroupKind(ref.APIVersion, ref.Kind) == ConfigMapKind && ref.Namespace == namespace &&
			slices.Contains(configMaps, ref.Name)
	})
}

// LastOwner reports whether a version of a ConfigMap that is Attached to a binding is deleted with a revision, because
// none of the others has it.
func LastOwner(b workv1alpha2.Binding, r *releasev1alpha1.ReleaseRevision,
	others []*releasev1alpha1.ReleaseRevision) bool {
	return Attached(b, r.Namespace, slices.DeleteFunc(Versions(r), func(version string) bool {
		return slices.ContainsFunc(others, func(o *releasev1alpha1.ReleaseRevision) bool {
			return o.Name != r.Name && slices.Contains(Versions(o), version)
		})
	})...)
}

// OwnedBy returns a version with a stored revision as an owner, in place of the workload: it is deleted with the last
// revision that uses it. It returns nil if the revision is an owner, and for a ConfigMap that is no version.
func OwnedBy(version *unstructured.Unstructured, r *releasev1alpha1.ReleaseRevision) *unstructured.Unstructured {
	owners := version.GetOwnerReferences()
	if !IsVersion(version.GetAnnotations()) ||
		slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == r.UID }) {
		return nil
	}
	kind := releasev1alpha1.GroupVersion.WithKind("ReleaseRevision")
	owners = slices.DeleteFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind != kind.Kind })
	out := version.DeepCopy()
	out.SetOwnerReferences(append(owners, metav1.OwnerReference{APIVersion: kind.GroupVersion().String(),
		Kind: kind.Kind, Name: r.Name, UID: r.UID}))
	return out
}

// ConfigChanges reports whether a change of an object, of which one state may be nil, changes what pods read of a
// ConfigMap.
func ConfigChanges(was, is *unstructured.Unstructured) bool {
	u := cmp.Or(is, was)
	return u.GroupVersionKind().GroupKind() == ConfigMapKind &&
		(was == nil || is == nil || !propagate.SameContent(was, is))
}

// AnyConfigMap is among the ConfigNames of each revision with ConfigMaps.
const AnyConfigMap = "*"

// ConfigNames returns the names of the ConfigMaps of which a change concerns a revision, those of versions too.
func ConfigNames(r *releasev1alpha1.ReleaseRevision) []string {
	if len(r.Spec.Config) == 0 {
		return nil
	}
	names := append(Versions(r), AnyConfigMap)
	for _, c := range r.Spec.Config {
		names = append(names, c.Name)
	}
	return names
}

type Workload struct {
	Namespace string
	releasev1alpha1.ReleaseObjectReference
}

// WorkloadsOf returns the workloads of revisions, each once.
func WorkloadsOf(revisions []releasev1alpha1.ReleaseRevision) []Workload {
	var all []Workload
	seen := map[Workload]bool{}
	for i := range revisions {
		if w := (Workload{revisions[i].Namespace, revisions[i].Spec.Target}); !seen[w] {
			seen[w] = true
			all = append(all, w)
		}
	}
	return all
}
