// Package names derives the names of bindings, Works and execution spaces from those of templates and clusters.
// Tools compute the same names, so they are bit-exact with Karmada's; who creates the objects is decided elsewhere.
package names

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// Namespaces of the hub that belong to the system.
const (
	// System holds what the control plane itself needs.
	System = "karmada-system"
	// Clusters holds the secrets of member clusters; the namespace of the same name in a member holds its accounts.
	Clusters = "karmada-cluster"

	executionSpacePrefix = "karmada-es-"
)

// ErrNotExecutionSpace says that a namespace does not hold the Works of a cluster.
var ErrNotExecutionSpace = errors.New("not an execution space")

// Binding is the name of the binding of a template. Templates of the same kind name in two groups share it.
func Binding(kind, name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind)
}

// Work is the name of the Work of a template in an execution space; namespace is empty for a cluster-scoped template.
func Work(kind, name, namespace string) string {
	key := name + "-" + kind
	if namespace != "" {
		key = namespace + "-" + key
	}
	return strings.ToLower(strings.ReplaceAll(name, ":", ".")) + "-" + hash(strings.ToLower(key))
}

// WorkOfManifestWork is the name of the Work of one object of a ManifestWork: no other ManifestWork, and no template, has a Work of
// that name for the same object. Objects such as roles may have names that no Work may have.
func WorkOfManifestWork(manifestWork, group, kind, name, namespace string) string {
	return subdomain(name) + "-" + hash(strings.Join([]string{manifestWork, group, kind, namespace, name}, "/"))
}

// subdomain is a name as a DNS subdomain that leaves room for a dash and a hash; one that is one stays as it is, but for its length.
func subdomain(name string) string {
	const room = 253 - 1 - 10
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

// WorkOfAutoscaler is the name of the Work of the autoscaler that a cluster gets for a FederatedHPA: a template that is an autoscaler of
// the same name has another.
func WorkOfAutoscaler(federatedHPA, namespace string) string {
	return strings.ToLower(federatedHPA) + "-" + hash(strings.Join([]string{"FederatedHPA", namespace, federatedHPA}, "/"))
}

// DependedByLabel is the label key that marks an attached binding as required by the independent one named.
func DependedByLabel(prefix, bindingNamespace, bindingName string) string {
	key := bindingName
	if bindingNamespace != "" {
		key = bindingNamespace + "/" + bindingName
	}
	return prefix + hash(key)
}

// ExecutionSpace is the hub namespace that holds a cluster's Works.
func ExecutionSpace(cluster string) string { return executionSpacePrefix + cluster }

// ClusterOf is the cluster whose Works the namespace holds; ErrNotExecutionSpace if it holds none.
func ClusterOf(namespace string) (string, error) {
	cluster, ok := strings.CutPrefix(namespace, executionSpacePrefix)
	if !ok || cluster == "" {
		return "", fmt.Errorf("namespace %q: %w", namespace, ErrNotExecutionSpace)
	}
	return cluster, nil
}

// Reserved says whether a namespace belongs to the system, so that nothing in it is ever a template.
func Reserved(namespace string) bool {
	return namespace == System || namespace == Clusters || strings.HasPrefix(namespace, executionSpacePrefix)
}

// hash is FNV-1a over the dump that Kubernetes hashes objects by, in the alphabet that is safe in names.
func hash(s string) string {
	h := fnv.New32a()
	// fnv never fails to write.
	_, _ = fmt.Fprintf(h, "%v", dump.ForHash(s))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
