package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
)

func defaultCluster(r request, c *clusterv1alpha1.Cluster) {
	if r.old == nil && len(c.Spec.ResourceModels) == 0 {
		c.Spec.ResourceModels = validate.DefaultGrades()
	}
	validate.DefaultCluster(c, metav1.Now())
}

func (o *objects) validateCluster(ctx context.Context, r request, c, old *clusterv1alpha1.Cluster) error {
	if err := o.authorizeKeeping(ctx, r); err != nil {
		return err
	}
	if err := o.authorizeSystemNames(ctx, r); err != nil {
		return err
	}
	if err := o.refuseSecondOwner(ctx, r); err != nil {
		return err
	}
	if err := r.refuse(validate.Cluster(c)); err != nil {
		return err
	}
	return o.authorizeSecrets(ctx, r, c, old)
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// authorizeSecrets requires the right to read the secrets of a cluster from users who set its address or secrets: the
// hub sends their content to that address. A change also requires the right to read the previous ones, since the hub
// then sends its requests to the new address.
func (o *objects) authorizeSecrets(ctx context.Context, r request, c, old *clusterv1alpha1.Cluster) error {
	if r.fromHub() {
		return nil
	}
	refs := []*clusterv1alpha1.LocalSecretReference{c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef}
	if old != nil {
		was, is := old.Spec, c.Spec
		if was.APIEndpoint == is.APIEndpoint && was.ProxyURL == is.ProxyURL &&
			was.InsecureSkipTLSVerification == is.InsecureSkipTLSVerification &&
			equality.Semantic.DeepEqual(was.ProxyHeader, is.ProxyHeader) &&
			equality.Semantic.DeepEqual(was.SecretRef, is.SecretRef) &&
			equality.Semantic.DeepEqual(was.ImpersonatorSecretRef, is.ImpersonatorSecretRef) {
			return nil
		}
		refs = append(refs, was.SecretRef, was.ImpersonatorSecretRef)
	}
	for _, ref := range refs {
		if ref == nil {
			continue
		}
		if err := o.mayRead(ctx, r, secrets, ref.Namespace, ref.Name,
			"the hub sends the credentials of a cluster to the address of its spec"); err != nil {
			return err
		}
	}
	return nil
}

// authorizeKeeping requires the right to delete the cluster from users who set what happens to its workloads when it
// leaves.
func (o *objects) authorizeKeeping(ctx context.Context, r request) error {
	was := ""
	if r.old != nil {
		was = r.old.GetAnnotations()[wellknown.KeepWorkloadsAnnotation]
	}
	if is := r.obj.GetAnnotations()[wellknown.KeepWorkloadsAnnotation]; is == was {
		return nil
	}
	return o.require(ctx, r, right{verb: "delete", resource: clusters, name: r.name()},
		"the annotation %s decides what happens to the cluster's workloads when it leaves, and you may not delete clusters.cluster.karmada.io", wellknown.KeepWorkloadsAnnotation)
}

// authorizeSystemNames requires the right to impersonate a system name on the hub from users who let that name act in
// a member. Otherwise a user who may update Clusters could give a service account the rights of another one in the
// member.
func (o *objects) authorizeSystemNames(ctx context.Context, r request) error {
	if r.fromHub() {
		return nil
	}
	impersonate := func(resource, namespace, name string) right {
		return right{verb: "impersonate", resource: schema.GroupVersionResource{Version: "v1", Resource: resource},
			namespace: namespace, name: name}
	}
	var before []string
	if r.old != nil {
		before = access.SystemNames(r.old.GetAnnotations())
	}
	for _, name := range access.SystemNames(r.obj.GetAnnotations()) {
		if slices.Contains(before, name) {
			continue
		}
		needed := []right{impersonate("users", "", name), impersonate("groups", "", name)}
		if namespace, account, is := access.ServiceAccount(name); is {
			needed = []right{impersonate("serviceaccounts", namespace, account)}
		}
		for _, of := range needed {
			if err := o.require(ctx, r, of,
				"the annotation %s lets %q act in the cluster, and you may not impersonate %s %q on the hub",
				wellknown.SystemNamesAnnotation, name, of.resource.Resource, of.name); err != nil {
				return err
			}
		}
	}
	return nil
}
