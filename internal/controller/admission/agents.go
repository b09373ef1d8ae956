package admission

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// agents limits what agents of clusters in Pull mode, and users who register them, create, and what agents change in
// their Clusters. RBAC cannot limit the names and contents of new objects, nor fields.
type agents struct {
	*admission.Handler
	reader
}

func newAgents() *agents {
	return &agents{admission.NewHandler(admission.Create, admission.Update), reader{plugin: AgentsPlugin}}
}

var (
	_ admission.MutationInterface   = &agents{}
	_ admission.ValidationInterface = &agents{}
)

// registrarLifetime is the lifetime of a registrar's certificate in seconds. It is needed only during a registration,
// and the API allows no shorter one.
const registrarLifetime = 600

// Admit shortens the certificates of registrars, and replaces the roles and bindings that registrars create with the
// permissions that the hub grants to agents. It keeps the region of a Cluster that its agent updates, and the actions
// of Remedies in its status, and marks the Secrets that agents create.
func (g *agents) Admit(ctx context.Context, a admission.Attributes, interfaces admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	cluster, isAgent := agentOf(a)
	if a.GetSubresource() != "" {
		if isAgent && resource == clusterv1alpha1.Resource("clusters") && a.GetSubresource() == "status" {
			return keepActions(ctx, a)
		}
		return nil
	}
	if a.GetOperation() == admission.Update {
		if isAgent && resource == clusterv1alpha1.Resource("clusters") {
			return keepPlace(ctx, a)
		}
		return nil
	}
	if obj, err := meta.Accessor(a.GetObject()); isAgent && err == nil {
		switch resource {
		case corev1.Resource("secrets"):
			pull.Report(cluster, obj)
		case clusterv1alpha1.Resource("clusters"):
			// From the start: it is not gone before the hub ends the registration.
			obj.SetFinalizers([]string{workv1alpha2.ClusterFinalizer})
		}
	}
	if resource == certificatesv1.Resource("certificatesigningrequests") {
		csr := &certificatesv1.CertificateSigningRequest{}
		return edit(a, interfaces, csr, func() {
			if commonName(csr.Spec.Request) == pull.Registrar {
				csr.Spec.ExpirationSeconds = new(int32(registrarLifetime))
			}
		})
	}
	if a.GetUserInfo().GetName() != pull.Registrar {
		return nil
	}
	if resource == corev1.Resource("namespaces") { // its labels and annotations are the hub's
		namespace := &corev1.Namespace{}
		return edit(a, interfaces, namespace, func() {
			namespace.ObjectMeta = metav1.ObjectMeta{Name: namespace.Name, Labels: map[string]string{
				workv1alpha2.SystemLabel: "true", corev1.LabelMetadataName: namespace.Name}}
		})
	}
	if resource.Group != rbacv1.GroupName {
		return nil
	}
	name := objectName(a)
	granted, ok := pull.GrantedCluster(name)
	if !ok {
		return admission.NewForbidden(a, fmt.Errorf("%q is not a role or binding of an agent", name))
	}
	if err := g.unregistered(ctx, a, granted); err != nil {
		return err
	}
	want := pull.GrantsOf(granted)
	switch resource.Resource {
	case "clusterroles":
		return replace(a, interfaces, granted, []rbacv1.ClusterRole{want.ClusterRole})
	case "clusterrolebindings":
		return replace(a, interfaces, granted, []rbacv1.ClusterRoleBinding{want.ClusterRoleBinding})
	case "roles":
		return replace(a, interfaces, granted, want.Roles)
	default:
		return replace(a, interfaces, granted, want.RoleBindings)
	}
}

// replace replaces the object of a request with the one of wanted that has its name and namespace. It denies a request
// for another object.
func replace[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](a admission.Attributes, interfaces admission.ObjectInterfaces, cluster string, wanted []T) error {
	for i := range wanted {
		if m := P(&wanted[i]); m.GetName() == objectName(a) && m.GetNamespace() == a.GetNamespace() {
			obj := P(new(T))
			return edit(a, interfaces, obj, func() { *obj = wanted[i] })
		}
	}
	return admission.NewForbidden(a, fmt.Errorf("the agent of cluster %q has no role or binding %q here", cluster,
		objectName(a)))
}

// edit decodes the object of a request into typed, calls change, and stores the result in the request.
func edit(a admission.Attributes, interfaces admission.ObjectInterfaces, typed runtime.Object, change func()) error {
	convertor := interfaces.GetObjectConvertor()
	err := convertor.Convert(a.GetObject(), typed, nil)
	if err == nil {
		change()
		err = convertor.Convert(typed, a.GetObject(), nil)
	}
	if err != nil {
		return fmt.Errorf("convert %s %s: %w", a.GetKind().Kind, objectName(a), err)
	}
	return nil
}

// Validate denies what agents and registrars must not create.
func (g *agents) Validate(ctx context.Context, a admission.Attributes, interfaces admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	why := ""
	if a.GetUserInfo().GetName() == pull.Registrar {
		if a.GetOperation() == admission.Create && a.GetResource().GroupResource() == corev1.Resource("namespaces") {
			why = pull.CheckNamespace(objectName(a))
		}
		return forbidden(a, why)
	}
	cluster, is := agentOf(a)
	if !is {
		return g.validateOthers(ctx, a, interfaces)
	}
	if a.GetOperation() == admission.Update {
		return g.validateUpdate(ctx, a, interfaces, cluster)
	}
	switch a.GetResource().GroupResource() {
	case workv1alpha1.Resource("works"):
		c, err := g.cluster(ctx, cluster)
		if err != nil {
			return err
		}
		why = pull.CheckPulls(cluster, c)
	case coordinationv1.Resource("leases"):
		why = pull.CheckLease(cluster, a.GetNamespace(), objectName(a))
	case corev1.Resource("secrets"):
		secret, err := asSecret(interfaces)(a.GetObject())
		if err != nil {
			return err
		}
		why = cmp.Or(pull.CheckSecret(cluster, a.GetNamespace(), objectName(a), secret.Type),
			pull.CheckSecretMeta(cluster, &corev1.Secret{}, secret))
	case clusterv1alpha1.Resource("clusters"):
		c, err := asCluster(a.GetObject())
		if err != nil {
			return err
		}
		fleet, err := g.fleet(ctx)
		if err != nil {
			return err
		}
		if why = pull.CheckCluster(cluster, c, fleet); why != "" {
			break
		}
		role, err := g.role(ctx, cluster)
		if err != nil {
			return err
		}
		if why = pull.CheckFirst(cluster, role); why == "" {
			return g.validateRefs(ctx, a, c, nil)
		}
	}
	return forbidden(a, why)
}

// validateUpdate denies what an agent must not change in its Cluster, and changes of Secrets that are not its own: the
// response to a change has the content.
func (g *agents) validateUpdate(ctx context.Context, a admission.Attributes, interfaces admission.ObjectInterfaces,
	cluster string) error {
	switch a.GetResource().GroupResource() {
	case corev1.Resource("secrets"):
		c, err := g.cluster(ctx, cluster)
		if err != nil {
			return err
		}
		was, is, err := updated(a, asSecret(interfaces))
		if err != nil {
			return err
		}
		return forbidden(a, cmp.Or(pull.CheckSecretUse(cluster, was, c), pull.CheckSecretMeta(cluster, was, is)))
	case clusterv1alpha1.Resource("clusters"):
		was, is, err := updated(a, asCluster)
		if err != nil {
			return err
		}
		if why := pull.CheckUpdate(cluster, was, is); why != "" {
			return forbidden(a, why)
		}
		return g.validateRefs(ctx, a, is, was)
	}
	return nil
}

// validateRefs denies new references of a Cluster to Secrets that its agent must not use. was is the Cluster before,
// nil for none.
func (g *agents) validateRefs(ctx context.Context, a admission.Attributes, is, was *clusterv1alpha1.Cluster) error {
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{is.Spec.SecretRef, is.Spec.ImpersonatorSecretRef} {
		if ref == nil || was != nil && (equality.Semantic.DeepEqual(ref, was.Spec.SecretRef) ||
			equality.Semantic.DeepEqual(ref, was.Spec.ImpersonatorSecretRef)) {
			continue
		}
		secret, err := g.client.Resource(secrets).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return forbidden(a, fmt.Sprintf("read Secret %s/%s, which the Cluster refers to: %v", ref.Namespace, ref.Name, err))
		}
		if why := pull.CheckSecretUse(is.Name, secret, nil); why != "" {
			return forbidden(a, why)
		}
	}
	return nil
}

// validateOthers denies changes of the content of a Secret that an agent without a Cluster created: a join would write
// the credentials of a cluster where that agent reads them.
func (g *agents) validateOthers(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Update || a.GetResource().GroupResource() != corev1.Resource("secrets") ||
		a.GetNamespace() != names.Clusters {
		return nil
	}
	old, err := meta.Accessor(a.GetOldObject())
	if err != nil || pull.ReportedBy(old) == "" {
		return err
	}
	was, is, err := updated(a, asSecret(interfaces))
	if err != nil || equality.Semantic.DeepEqual(was.Data, is.Data) {
		return err
	}
	c, err := g.cluster(ctx, pull.ReportedBy(old))
	if err != nil || pull.CheckPulls(pull.ReportedBy(old), c) == "" {
		return err
	}
	return forbidden(a, fmt.Sprintf("the agent of cluster %q created this Secret, and can read it: delete it first",
		pull.ReportedBy(old)))
}

// role returns the ClusterRole of the agent of a cluster; nil if there is none.
func (g *agents) role(ctx context.Context, cluster string) (metav1.Object, error) {
	role, err := get[rbacv1.ClusterRole](ctx, g.client.Resource(clusterRoles), pull.RoleOf(cluster))
	if err != nil {
		return nil, fmt.Errorf("read the permissions of the agent of cluster %q: %w", cluster, err)
	}
	if role == nil {
		return nil, nil
	}
	return role, nil
}

// cluster returns a Cluster; nil if there is none.
func (g *agents) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c, err := get[clusterv1alpha1.Cluster](ctx, g.client.Resource(clusters), name)
	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return c, nil
}

// agentOf returns the cluster whose agent sends a request. is is false for other users.
func agentOf(a admission.Attributes) (cluster string, is bool) {
	cluster, is = pull.ClusterOf(a.GetUserInfo().GetName())
	return cluster, is && slices.Contains(a.GetUserInfo().GetGroups(), pull.Group)
}

// updated returns an object before and after an update.
func updated[T any](a admission.Attributes, as func(runtime.Object) (*T, error)) (was, is *T, err error) {
	if was, err = as(a.GetOldObject()); err != nil {
		return nil, nil, err
	}
	is, err = as(a.GetObject())
	return was, is, err
}

func asSecret(interfaces admission.ObjectInterfaces) func(runtime.Object) (*corev1.Secret, error) {
	return func(obj runtime.Object) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		if err := interfaces.GetObjectConvertor().Convert(obj, secret, nil); err != nil {
			return nil, fmt.Errorf("convert a Secret: %w", err)
		}
		return secret, nil
	}
}

func keepPlace(ctx context.Context, a admission.Attributes) error {
	was, is, err := updated(a, asCluster)
	if err != nil || !pull.KeepPlace(was, is) {
		return err
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("cluster %q keeps its provider, region and zones: an agent sets them only where they "+
		"are empty; change them with `kubectl edit cluster %[1]s`", is.Name))
	kept, err := generic(is)
	if err != nil {
		return err
	}
	a.GetObject().(*unstructured.Unstructured).Object["spec"] = kept["spec"]
	return nil
}

// keepActions restores the actions of Remedies in a status that an agent writes. An agent that could write them would
// decide whether its cluster gets traffic, against the Remedies of the operators.
func keepActions(ctx context.Context, a admission.Attributes) error {
	was, is, err := updated(a, asCluster)
	if err != nil || slices.Equal(was.Status.RemedyActions, is.Status.RemedyActions) {
		return err
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("cluster %q keeps its status.remedyActions: only the hub writes them, by Remedies",
		is.Name))
	content := a.GetObject().(*unstructured.Unstructured).Object
	if len(was.Status.RemedyActions) == 0 {
		unstructured.RemoveNestedField(content, "status", "remedyActions")
		return nil
	}
	return unstructured.SetNestedStringSlice(content, was.Status.RemedyActions, "status", "remedyActions")
}

func forbidden(a admission.Attributes, why string) error {
	if why == "" {
		return nil
	}
	return admission.NewForbidden(a, errors.New(why))
}

// unregistered denies a change of the permissions of a registered cluster's agent. The hub itself keeps those.
func (g *agents) unregistered(ctx context.Context, a admission.Attributes, cluster string) error {
	c, err := g.cluster(ctx, cluster)
	if err != nil || c == nil {
		return err
	}
	return admission.NewForbidden(a, fmt.Errorf("cluster %q is registered already", cluster))
}

func (g *agents) fleet(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	var fleet clusterv1alpha1.ClusterList
	if err := list(ctx, g.client.Resource(clusters), metav1.ListOptions{}, &fleet); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return fleet.Items, nil
}

func asCluster(obj runtime.Object) (*clusterv1alpha1.Cluster, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a Cluster is a %T", obj)
	}
	c := &clusterv1alpha1.Cluster{}
	if err := into(u, c); err != nil {
		return nil, fmt.Errorf("decode cluster %q: %w", u.GetName(), err)
	}
	return c, nil
}

func objectName(a admission.Attributes) string {
	if name := a.GetName(); name != "" {
		return name
	}
	if obj, err := meta.Accessor(a.GetObject()); err == nil {
		return obj.GetName()
	}
	return ""
}

// commonName returns the user that a certificate is requested for; empty if the request cannot be read.
func commonName(request []byte) string {
	block, _ := pem.Decode(request)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return parsed.Subject.CommonName
}
