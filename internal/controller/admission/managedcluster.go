package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

var (
	managedClusters    = clusterv1.GroupVersion.WithResource("managedclusters")
	managedClusterSets = setv1beta2.GroupVersion.WithResource("managedclustersets")
	// registrations has the subresource accept. It exists only in roles.
	registrations = schema.GroupVersionResource{Group: klusterlet.RegisterGroup, Version: "v1",
		Resource: "managedclusters"}
)

// mutateManagedCluster sets the defaults of a ManagedCluster. Only the hub dates taints.
func mutateManagedCluster(_ context.Context, r request) error {
	mc := &clusterv1.ManagedCluster{}
	if _, has := r.obj.Object["spec"].(map[string]any); !has || into(r.obj, mc) != nil {
		return nil // the schema has the better error
	}
	var was *clusterv1.ManagedCluster
	if r.old != nil {
		was = &clusterv1.ManagedCluster{}
		if err := into(r.old, was); err != nil {
			return r.invalid(err)
		}
	}
	before, err := generic(mc)
	if err != nil {
		return err
	}
	dated := dialect.DefaultManagedCluster(mc, was, metav1.Now())
	// When this is asked again, the times are those that it set before.
	if len(dated) > 0 && !r.fromHub() && !r.GetReinvocationContext().IsReinvoke() {
		return apierrors.NewBadRequest(fmt.Sprintf("It is not allowed to set TimeAdded of Taint %q.",
			strings.Join(dated, ",")))
	}
	r.obj.SetLabels(mc.Labels)
	return r.setSpec(before, mc)
}

// validateManagedCluster validates a ManagedCluster, and requires the rights to accept it and to join its set. It
// limits what klusterlets change in theirs, see klusterlet.CheckChange. The hub writes what Clusters have.
func (o *objects) validateManagedCluster(ctx context.Context, r request, mc, was *clusterv1.ManagedCluster) error {
	if r.fromHub() {
		return nil
	}
	for _, c := range mc.Spec.ManagedClusterClientConfigs {
		if u, err := url.Parse(c.URL); err != nil || u.Scheme != "https" || u.Host == "" { // clients know the text
			return apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q denied the request: url %q is invalid in client "+
				"configs", "managedclustervalidators.admission.cluster.open-cluster-management.io", c.URL))
		}
	}
	if err := refuseAsWebhook(validate.ManagedCluster(mc)); err != nil {
		return err
	}
	if mc.Spec.HubAcceptsClient && (was == nil || !was.Spec.HubAcceptsClient) {
		if err := o.authorizeAcceptance(ctx, r); err != nil {
			return err
		}
	}
	if !maps.Equal(settingsOf(r.obj), settingsOf(r.old)) { // new add-ons in the cluster get these
		space := names.ExecutionSpace(mc.Name)
		if err := o.require(ctx, r, right{verb: "create", resource: works, namespace: space}, "annotations with the prefix "+
			"%s configure add-ons, for which you need permission to create works.work.karmada.io in the namespace %s",
			addonv1alpha1.GroupVersion.Group, space); err != nil {
			return err
		}
	}
	return o.authorizeSets(ctx, r, mc, was)
}

// authorizeAcceptance requires the right to accept a cluster. The hub then gives its klusterlet rights in the namespace
// of its name.
func (o *objects) authorizeAcceptance(ctx context.Context, r request) error {
	name := r.name()
	if err := o.require(ctx, r, right{verb: "update", resource: registrations, subresource: "accept", name: name},
		"user %q cannot update the HubAcceptsClient field", r.GetUserInfo().GetName()); err != nil {
		return err
	}
	c, err := get[clusterv1alpha1.Cluster](ctx, o.client.Resource(clusters), name)
	if err != nil {
		return fmt.Errorf("get cluster %q: %w", name, err)
	}
	if c != nil && !klusterlet.Manages(c) {
		return admission.NewForbidden(r, fmt.Errorf("cluster %q is joined without a klusterlet: unjoin or unregister it "+
			"first, or choose another name", name))
	}
	namespace, err := o.client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get namespace %s: %w", name, err)
	case namespace.GetDeletionTimestamp() != nil:
		return admission.NewForbidden(r, fmt.Errorf(
			"namespace %s, in which the klusterlet of the cluster gets its rights, is being deleted: accept the cluster "+
				"when the namespace is gone",
			name))
	case namespace.GetLabels()[clusterv1.ClusterNameLabel] != name:
		warning.AddWarning(ctx, "", fmt.Sprintf(
			"spec.hubAcceptsClient: namespace %s exists already, and the klusterlet can now read the ManifestWorks and "+
				"write the Leases and events in it",
			name))
	}
	return nil
}

// authorizeSets requires the right to join the ManagedClusterSet of a cluster and, for a change, the previous one, too:
// tenants of a set may place their workloads in its clusters.
func (o *objects) authorizeSets(ctx context.Context, r request, mc, was *clusterv1.ManagedCluster) error {
	is, before := mc.Labels[clusterv1.ClusterSetLabel], ""
	if was != nil {
		before = cmp.Or(was.Labels[clusterv1.ClusterSetLabel], clusterv1.DefaultSet)
	}
	if is == before {
		return nil
	}
	for _, set := range []string{is, before} {
		if set == "" {
			continue
		}
		if err := o.require(ctx, r, right{verb: "create", resource: managedClusterSets, subresource: "join", name: set},
			"user %q cannot move cluster %q into or out of the ManagedClusterSet %q: this needs permission to create "+
				"managedclustersets/join in %s for that set",
			r.GetUserInfo().GetName(), mc.Name, set, managedClusterSets.Group); err != nil {
			return err
		}
	}
	return nil
}

// validateSetBinding requires the right to bind the ManagedClusterSet of a new binding.
func (o *objects) validateSetBinding(ctx context.Context, r request, b, _ *setv1beta2.ManagedClusterSetBinding) error {
	set := b.Spec.ClusterSet
	if b.Name != set {
		return apierrors.NewBadRequest("The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet")
	}
	if r.old != nil || r.fromHub() {
		return nil
	}
	return o.require(ctx, r, right{verb: "create", resource: managedClusterSets, subresource: "bind", name: set},
		"user %q is not allowed to bind cluster set %q", r.GetUserInfo().GetName(), set)
}

// origin refuses that others than the hub write where the object of a cluster comes from.
func (r request) origin() field.ErrorList {
	if r.fromHub() {
		return nil
	}
	var was map[string]string
	if r.old != nil {
		was = r.old.GetAnnotations()
	}
	return validate.Origin(r.obj.GetAnnotations(), was)
}

// refuseSecondOwner refuses a new Cluster under the name of a ManagedCluster: the hub writes that Cluster itself.
func (o *objects) refuseSecondOwner(ctx context.Context, r request) error {
	if r.old != nil || r.fromHub() {
		return nil
	}
	mc, err := get[clusterv1.ManagedCluster](ctx, o.client.Resource(managedClusters), r.name())
	if err != nil {
		return fmt.Errorf("get ManagedCluster %q: %w", r.name(), err)
	}
	if mc == nil || klusterlet.Derived(mc) {
		return nil
	}
	return admission.NewForbidden(r, fmt.Errorf(
		"ManagedCluster %q exists: its klusterlet manages the cluster, and the hub writes its Cluster. Choose another name, "+
			"or run `kubectl delete managedcluster %[1]s` first", mc.Name))
}

// refuseRendered refuses that a user deletes a ManifestWork that the hub writes for a klusterlet: the klusterlet would
// delete the objects, past the limits on deletions of Works.
// Without its Work, it is left over.
func (o *objects) refuseRendered(ctx context.Context, a admission.Attributes) error {
	work, is := annotationsOf(a.GetOldObject())[wellknown.WorkAnnotation]
	if !is || a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	why := "the hub asks the klusterlet with it which kinds the cluster serves"
	if work != "" {
		_, err := o.client.Resource(works).Namespace(names.ExecutionSpace(a.GetNamespace())).Get(ctx, work,
			metav1.GetOptions{})
		if commit.Absent(err) {
			return nil
		}
		why = fmt.Sprintf("the hub writes it from Work %s/%s: delete the template or its policy, or the Work",
			names.ExecutionSpace(a.GetNamespace()), work)
	}
	return admission.NewForbidden(a, errors.New(why))
}

// refuseDerived refuses that a user deletes the object of a cluster that the hub writes: it would write it again. If
// the source is missing, the hub does not write it.
func (o *objects) refuseDerived(ctx context.Context, a admission.Attributes) error {
	from, source := annotationsOf(a.GetOldObject())[wellknown.DerivedFromAnnotation], clusters
	if from == "" || a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	if a.GetResource().GroupResource() == clusters.GroupResource() {
		source = managedClusters
	}
	if _, err := o.client.Resource(source).Get(ctx, a.GetName(), metav1.GetOptions{}); commit.Absent(err) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf(
		"the hub writes it from the %[1]s %[2]s: to remove the cluster, run `kubectl delete %[3]s %[2]s`", from, a.GetName(),
		strings.ToLower(from)))
}

// guardRegistration refuses, also while the object is being deleted, what only the hub or administrators may write into
// the Cluster, the ManagedCluster and the ManifestWorks of a cluster: the origin, and all but its addresses for a
// klusterlet.
func (o *objects) guardRegistration(r request) error {
	of := r.GetResource().GroupResource()
	if r.fromHub() || of != clusterv1alpha1.Resource("clusters") && of != clusterv1.Resource("managedclusters") &&
		of != ocmv1.Resource("manifestworks") {
		return nil
	}
	if err := r.refuse(r.origin()); err != nil {
		return err
	}
	_, agent := klusterletOf(r)
	if of != clusterv1.Resource("managedclusters") || !agent && !klusterlet.Registers(r.GetUserInfo().GetName(),
		r.GetUserInfo().GetGroups()) {
		return nil
	}
	return typed(func(_ context.Context, r request, mc, was *clusterv1.ManagedCluster) error {
		if why := klusterlet.CheckChange(mc, was); why != "" {
			return admission.NewForbidden(r, errors.New(why))
		}
		return nil
	})(context.Background(), r)
}

// klusterletOf returns the cluster whose klusterlet sends a request. is is false for other users.
func klusterletOf(a admission.Attributes) (cluster string, is bool) {
	cluster, _, is = klusterlet.ClusterOf(a.GetUserInfo().GetName())
	return cluster, is && slices.Contains(a.GetUserInfo().GetGroups(), klusterlet.GroupOf(cluster))
}

// workCluster returns the Cluster in which the ManifestWorks of a namespace are applied, nil for none, and whether a
// klusterlet applies them, and not the hub.
func (o *objects) workCluster(ctx context.Context, namespace string) (c *clusterv1alpha1.Cluster, byKlusterlet bool,
	err error) {
	if c, err = get[clusterv1alpha1.Cluster](ctx, o.client.Resource(clusters), namespace); err != nil {
		return nil, false, fmt.Errorf("get cluster %q: %w", namespace, err)
	}
	if c != nil {
		return c, klusterlet.AppliesWorks(c, nil), nil
	}
	mc, err := get[clusterv1.ManagedCluster](ctx, o.client.Resource(managedClusters), namespace)
	if err != nil {
		return nil, false, fmt.Errorf("get ManagedCluster %q: %w", namespace, err)
	}
	return nil, klusterlet.AppliesWorks(nil, mc), nil
}
