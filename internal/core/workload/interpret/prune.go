package interpret

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// serverSet are the metadata fields that API servers or controllers of the hub set.
var serverSet = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
}

// SetByServer reports whether an API server or a controller of the hub sets a metadata field, so that it is never sent.
func SetByServer(field string) bool { return slices.Contains(serverSet, field) }

// Prune removes from manifest, in place, what the hub's API server set and a member must set itself.
func Prune(manifest *unstructured.Unstructured) {
	DropAllocated(manifest) // uses the managed fields, which are removed next
	if metadata, ok := manifest.Object["metadata"].(map[string]any); ok {
		for _, key := range serverSet {
			delete(metadata, key)
		}
	}
	delete(manifest.Object, "status")

	of := kind.Facts(manifest)
	// If a member deleted a finished object, the hub would create it again, and it would run again.
	if of.Once != nil && of.Once.TTL != nil {
		unstructured.RemoveNestedField(manifest.Object, of.Once.TTL...)
	}
	if len(of.Generated) > 0 {
		generated := func(key string) bool { return slices.Contains(of.Generated, key) }
		dropKeys(manifest.Object, generated, "metadata", "labels")
		dropKeys(manifest.Object, generated, "metadata", "annotations")
	}
	if len(of.Pods.Labels) > 0 {
		pruneSelector(manifest.Object, of.Pods.Labels)
	}
	switch manifest.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		pruneServiceAccount(manifest)
	case schema.GroupKind{Kind: "Service"}:
		pruneService(manifest.Object)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		if manifest.Object["aggregationRule"] != nil {
			delete(manifest.Object, "rules") // each cluster's controller fills them in
		}
	case schema.GroupKind{Kind: "Secret"}:
		pruneSecret(manifest.Object)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		dropKeys(manifest.Object, func(key string) bool {
			return key == "volume.kubernetes.io/selected-node"
		}, "metadata", "annotations")
	}
}

// pruneSelector removes the generated selector of a Job, whose labels contain its UID on the hub. With manualSelector
// it belongs to the user.
func pruneSelector(job map[string]any, labels []string) {
	if fields.Yes(job, "spec", "manualSelector") {
		return
	}
	generated := func(key string) bool { return slices.Contains(labels, key) }
	dropKeys(job, generated, "spec", "selector", "matchLabels")
	dropKeys(job, generated, "spec", "template", "metadata", "labels")
	if selector := fields.Object(job, "spec", "selector"); selector != nil && len(selector) == 0 {
		unstructured.RemoveNestedField(job, "spec", "selector")
	}
}

// pruneServiceAccount removes the token secrets that were created on the hub.
func pruneServiceAccount(account *unstructured.Unstructured) {
	secrets, ok := account.Object["secrets"].([]any)
	if !ok {
		return
	}
	prefix := account.GetName() + "-token-"
	kept := slices.DeleteFunc(slices.Clone(secrets), func(ref any) bool {
		secret, _ := ref.(map[string]any)
		return strings.HasPrefix(fields.Text(secret, "name"), prefix)
	})
	if len(kept) == 0 {
		delete(account.Object, "secrets")
		return
	}
	account.Object["secrets"] = kept
}

// pruneService removes the addresses that the hub allocated. A headless Service stays headless.
func pruneService(service map[string]any) {
	spec, ok := service["spec"].(map[string]any)
	if !ok || spec["clusterIP"] == corev1.ClusterIPNone {
		return
	}
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
}

// certificates are the Secrets with certificates that operators create for their own cluster. Those of another cluster
// would be accepted by mistake.
var certificates = []string{"kruise-webhook-certs", "kruise-rollout-webhook-certs"}

// pruneSecret removes the hub's token of a service account, and an operator's certificates. The member creates its own.
func pruneSecret(secret map[string]any) {
	if slices.Contains(certificates, fields.Text(secret, "metadata", "name")) {
		delete(secret, "data")
		delete(secret, "stringData")
	}
	if secret["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	delete(secret, "data")
	dropKeys(secret, func(key string) bool { return key == corev1.ServiceAccountUIDKey }, "metadata", "annotations")
}

// dropKeys removes the unwanted keys of the map at path, and the map itself if it becomes empty.
func dropKeys(object map[string]any, unwanted func(string) bool, path ...string) {
	m := fields.Object(object, path...)
	if m == nil {
		return
	}
	for key := range m {
		if unwanted(key) {
			delete(m, key)
		}
	}
	if len(m) == 0 {
		unstructured.RemoveNestedField(object, path...)
	}
}
