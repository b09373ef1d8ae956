// Package names derives the names of bindings, Works and execution spaces from those of templates and clusters.
// Tools compute the same names, so they are bit-exact with Karmada's; who creates the objects is decided elsewhere.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Namespaces of the hub that belong to the system.
const (
	// System holds what the control plane itself needs.
	System = "karmada-system"
	// Clusters holds the secrets of member clusters; the namespace of the same name in a member holds its accounts.
	Clusters = "karmada-cluster"

	executionSpacePrefix = "karmada-es-"
)

// ErrNotExecutionSpace reports that a namespace does not contain the Works of a cluster.
var ErrNotExecutionSpace = errors.New("not an execution space")

// Binding returns the name that Karmada gives the binding of a template. Templates may share it: kinds of the same name
// in two groups do, and names that differ only in case, or in ":" and ".".
func Binding(kind, name string) string { return binding(folded(name), kind) }

// BindingApart returns the name of the binding of a template whose Karmada name belongs to the binding of another
// template.
func BindingApart(gk schema.GroupKind, name string) string {
	return binding(fit(folded(name), maxName-len(gk.Kind)-2-maxHash)+"-"+hash(identity(gk, name)), gk.Kind)
}

// Bindings returns the names that the binding of a template may have, in the order of preference.
func Bindings(gk schema.GroupKind, name string) []string {
	return []string{Binding(gk.Kind, name), BindingApart(gk, name)}
}

// binding ends with the kind, however long the rest is.
func binding(name, kind string) string {
	suffix := "-" + strings.ToLower(kind)
	return fit(name, maxName-len(suffix)) + suffix
}

// Work returns the name that Karmada gives the Work of a template in an execution space; namespace is empty for a
// cluster-scoped template. Templates whose bindings share a Karmada name share this one, too.
func Work(kind, name, namespace string) string {
	return work(name, hash(workKey(kind, folded(name), namespace)))
}

// WorkApart returns the name of the Work of a template whose binding has the name BindingApart.
func WorkApart(gk schema.GroupKind, name, namespace string) string {
	return work(name, hash(namespace+"/"+identity(gk, name)))
}

// Works returns all names that the Work of a template may have.
func Works(gk schema.GroupKind, name, namespace string) []string {
	return append(Either(Work(gk.Kind, name, namespace), gk, name, namespace),
		Either(WorkApart(gk, name, namespace), gk, name, namespace)...)
}

// WorkFor returns the name of the Work of a template whose binding has the given name; see Either.
func WorkFor(binding string, gk schema.GroupKind, name, namespace string) string {
	if binding == BindingApart(gk, name) && binding != Binding(gk.Kind, name) {
		return WorkApart(gk, name, namespace)
	}
	return Work(gk.Kind, name, namespace)
}

// Either returns the two names that the Work of an object may have in an execution space: work and, if the Work of
// another object has that, Longer.
func Either(work string, gk schema.GroupKind, name, namespace string) []string {
	return []string{work, Longer(work, gk, name, namespace)}
}

// Longer returns the name of the Work of an object if the Work of another object has the name work. Whoever chooses
// names and namespaces can find an object with any given hash, but none with this name.
func Longer(work string, gk schema.GroupKind, name, namespace string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{work, gk.Group, gk.Kind, namespace, name}, "/")))
	h := hex.EncodeToString(sum[:16])
	return strings.TrimRight(work[:min(len(work), maxName-1-len(h))], "-.") + "-" + h
}

func workKey(kind, name, namespace string) string {
	key := name + "-" + kind
	if namespace != "" {
		key = namespace + "-" + key
	}
	return strings.ToLower(key)
}

func work(name, hash string) string { return fit(folded(name), maxName-1-len(hash)) + "-" + hash }

// PromotedPolicy returns the name that Karmada gives the policy of a template that is promoted from a member cluster.
func PromotedPolicy(gvk schema.GroupVersionKind, name, namespace string) string {
	return work(name, hash(namespace+gvk.String()))
}

// WorkOfManifestWork returns the name of the Work of one object of a ManifestWork, unless another object's Work has it;
// see Either. Objects such as roles may have names that no Work may have.
func WorkOfManifestWork(manifestWork, group, kind, name, namespace string) string {
	return subdomain(name) + "-" + dumpHash(strings.Join([]string{manifestWork, group, kind, namespace, name}, "/"))
}

// WorkOfReplicaSet returns the name of the ManifestWorks that a ManifestWorkReplicaSet has for a Placement.
func WorkOfReplicaSet(set, namespace, placement string) string {
	return subdomain(set) + "-" + hash(strings.Join([]string{namespace, set, placement}, "/"))
}

// subdomain returns a name as a DNS subdomain that leaves room for a dash and a hash; one that is one stays as it is,
// but for its length.
func subdomain(name string) string {
	const room = maxName - 1 - maxHash
	lower := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r == ':':
			return '.'
		}
		return '-'
	}, strings.ToLower(name))
	var labels []string
	for label := range strings.SplitSeq(lower[:min(len(lower), room)], ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	if labels == nil {
		return "x"
	}
	return strings.Join(labels, ".")
}

// WorkOfAutoscaler returns the name of the Work of the autoscaler that a cluster gets for a FederatedHPA: a template
// that is an autoscaler of the same name has another.
func WorkOfAutoscaler(federatedHPA, namespace string) string {
	return work(federatedHPA, dumpHash(strings.Join([]string{"FederatedHPA", namespace, federatedHPA}, "/")))
}

// DependedByLabel returns the label key that marks an attached binding as required by the independent one named.
func DependedByLabel(prefix, bindingNamespace, bindingName string) string {
	return prefix + hash(text.Path(bindingNamespace, bindingName))
}

// DerivedService returns the name of the Service that clusters get for a ServiceImport.
func DerivedService(serviceImport string) string { return Label("derived-" + serviceImport) }

// The limits of Kubernetes, in bytes, and the longest result of hash.
const (
	maxName  = 253
	maxLabel = 63
	maxHash  = 10
)

// Label returns a name as the value of a label or as a DNS label, which may be shorter than names: what is too long is
// cut and ends with a hash.
func Label(name string) string { return fit(name, maxLabel) }

// Object returns a name that was put together from others, as the name of an object: what is too long is cut and ends
// with a hash.
func Object(name string) string { return fit(name, maxName) }

// fit returns a name of at most limit bytes. A longer one is cut, and ends with a hash of all of it, so that two names
// stay two.
func fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	h := hash(name)
	return strings.TrimRight(name[:limit-1-len(h)], "-.") + "-" + h
}

// folded returns a template's name as that of an object of the hub: roles may have names that bindings and Works may
// not.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, ":", ".")) }

// identity is unique per template of a namespace.
func identity(gk schema.GroupKind, name string) string { return gk.Group + "/" + gk.Kind + "/" + name }

// ExecutionSpace returns the hub namespace that holds a cluster's Works.
func ExecutionSpace(cluster string) string { return executionSpacePrefix + cluster }

// ClusterOf returns the cluster whose Works the namespace holds; ErrNotExecutionSpace if it holds none.
func ClusterOf(namespace string) (string, error) {
	cluster, ok := strings.CutPrefix(namespace, executionSpacePrefix)
	if !ok || cluster == "" {
		return "", fmt.Errorf("namespace %q: %w", namespace, ErrNotExecutionSpace)
	}
	return cluster, nil
}

// Reserved reports whether a namespace belongs to Kubernetes or to the hub, so that nothing in it is ever a template.
// These are Karmada's: users may have other namespaces that OfSystem takes for those of the system.
func Reserved(namespace string) bool {
	return namespace == System || namespace == Clusters || strings.HasPrefix(namespace, executionSpacePrefix) ||
		strings.HasPrefix(namespace, "kube-")
}

// OfSystem reports whether a namespace is one of Kubernetes, of Karmada or of Argosy, by its name: few users need to
// write in it, and some hold credentials. Templates in it may be propagated: see Reserved.
func OfSystem(namespace string) bool {
	first, _, divided := strings.Cut(namespace, "-")
	return divided && (first == "kube" || first == "karmada" || first == "argosy")
}

// hash is FNV-1a of the plain string, in decimal, in the alphabet that is safe in names: at most maxHash bytes.
func hash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// dumpHash hashes an object as Kubernetes does.
func dumpHash(s string) string { return hash(dump.ForHash(s)) }
