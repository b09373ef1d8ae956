package interpret

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverSet is the metadata that an API server or the hub's own controllers set.
var serverSet = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
}

// SetByServer says whether a field of the metadata is one that an API server or the hub's own controllers set, so that
// it is never sent.
func SetByServer(field string) bool { return slices.Contains(serverSet, field) }

// jobLabels are what the API server generates into a Job; its UID there is the hub's.
var jobLabels = []string{
	"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
}

// deadlines are the fields that would make a member delete a finished object, which we would then create, and so run,
// again: the hub alone cleans up.
var deadlines = map[schema.GroupKind][]string{
	{Group: "batch", Kind: "Job"}:                               {"spec", "ttlSecondsAfterFinished"},
	{Group: "apps.kruise.io", Kind: "BroadcastJob"}:             {"spec", "completionPolicy", "ttlSecondsAfterFinished"},
	{Group: "apps.kruise.io", Kind: "ImagePullJob"}:             {"spec", "completionPolicy", "ttlSecondsAfterFinished"},
	{Group: "apps.kruise.io", Kind: "ImageListPullJob"}:         {"spec", "completionPolicy", "ttlSecondsAfterFinished"},
	{Group: "apps.kruise.io", Kind: "ContainerRecreateRequest"}: {"spec", "ttlSecondsAfterFinished"},
	{Group: "apps.kruise.io", Kind: "EphemeralJob"}:             {"spec", "ttlSecondsAfterFinished"},
	{Group: "argoproj.io", Kind: "Workflow"}:                    {"spec", "ttlStrategy"},
}

// Prune removes from manifest, in place, what the hub's API server set and a member must set for itself: before a Work.
func Prune(manifest *unstructured.Unstructured) {
	DropAllocated(manifest) // by the managed fields, which are dropped next
	if metadata, ok := manifest.Object["metadata"].(map[string]any); ok {
		for _, key := range serverSet {
			delete(metadata, key)
		}
	}
	delete(manifest.Object, "status")

	kind := manifest.GroupVersionKind().GroupKind()
	if path, ok := deadlines[kind]; ok {
		unstructured.RemoveNestedField(manifest.Object, path...)
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		dropKeys(manifest.Object, func(key string) bool {
			return strings.HasPrefix(key, "deployment.kubernetes.io/revision")
		}, "metadata", "annotations")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		pruneJob(manifest.Object)
	case schema.GroupKind{Kind: "ServiceAccount"}:
		pruneServiceAccount(manifest)
	case schema.GroupKind{Kind: "Service"}:
		pruneService(manifest.Object)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		if manifest.Object["aggregationRule"] != nil {
			delete(manifest.Object, "rules") // each cluster's controller collects its own
		}
	case schema.GroupKind{Kind: "Secret"}:
		pruneSecret(manifest.Object)
	case schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"},
		schema.GroupKind{Group: "argoproj.io", Kind: "CronWorkflow"}:
		pruneWorkflow(manifest.Object)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		dropKeys(manifest.Object, func(key string) bool {
			return key == "volume.kubernetes.io/selected-node"
		}, "metadata", "annotations")
	}
}

// pruneJob removes the generated selector; with manualSelector it is the user's own.
func pruneJob(job map[string]any) {
	if manual, _, _ := unstructured.NestedBool(job, "spec", "manualSelector"); manual {
		return
	}
	generated := func(key string) bool { return slices.Contains(jobLabels, key) }
	dropKeys(job, generated, "spec", "selector", "matchLabels")
	dropKeys(job, generated, "spec", "template", "metadata", "labels")
	if selector, ok := valueAt(job, []string{"spec", "selector"}).(map[string]any); ok && len(selector) == 0 {
		unstructured.RemoveNestedField(job, "spec", "selector")
	}
}

// pruneServiceAccount removes the token secrets that were made for the account on the hub.
func pruneServiceAccount(account *unstructured.Unstructured) {
	secrets, ok := account.Object["secrets"].([]any)
	if !ok {
		return
	}
	prefix := account.GetName() + "-token-"
	kept := slices.DeleteFunc(slices.Clone(secrets), func(ref any) bool {
		name, _ := valueAt(ref, []string{"name"}).(string)
		return strings.HasPrefix(name, prefix)
	})
	if len(kept) == 0 {
		delete(account.Object, "secrets")
		return
	}
	account.Object["secrets"] = kept
}

// pruneService removes the addresses that the hub gave; a headless Service stays headless.
func pruneService(service map[string]any) {
	spec, ok := service["spec"].(map[string]any)
	if !ok || spec["clusterIP"] == corev1.ClusterIPNone {
		return
	}
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
}

// certificates are the Secrets in which operators keep what they sign for themselves: rendered or copied, another
// cluster's would be taken for its own.
var certificates = []string{"kruise-webhook-certs", "kruise-rollout-webhook-certs"}

// pruneSecret removes the hub's token from a service account's secret, and an operator's certificates; the member makes
// its own.
func pruneSecret(secret map[string]any) {
	if name, _ := valueAt(secret, []string{"metadata", "name"}).(string); slices.Contains(certificates, name) {
		delete(secret, "data")
		delete(secret, "stringData")
	}
	if secret["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	delete(secret, "data")
	dropKeys(secret, func(key string) bool { return key == corev1.ServiceAccountUIDKey }, "metadata", "annotations")
}

// pruneWorkflow removes the marks by which Argo's controller knows what it has done with: it would not look at the
// object at all.
func pruneWorkflow(workflow map[string]any) {
	done := func(key string) bool {
		switch key {
		case "workflows.argoproj.io/completed", "workflows.argoproj.io/phase",
			"workflows.argoproj.io/workflow-archiving-status",
			"cronworkflows.argoproj.io/completed", "cronworkflows.argoproj.io/last-used-schedule":
			return true
		}
		return false
	}
	dropKeys(workflow, done, "metadata", "labels")
	dropKeys(workflow, done, "metadata", "annotations")
}

// dropKeys removes the unwanted keys of the map at path, and the map itself when nothing is left in it.
func dropKeys(object map[string]any, unwanted func(string) bool, path ...string) {
	m, ok := valueAt(object, path).(map[string]any)
	if !ok {
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
