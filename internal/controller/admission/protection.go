package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/crds"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/protect"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/scope"
)

// protection denies all users the deletion of objects with the protection label, and all but the hub's own controllers
// the deletion of objects that the hub needs. It checks each object of a collection, so the deletion stops at a
// protected one; others may be deleted by then.
type protection struct {
	*admission.Handler
	reader
}

func newProtection() *protection {
	return &protection{admission.NewHandler(admission.Delete), reader{plugin: ProtectionPlugin}}
}

var _ admission.ValidationInterface = &protection{}

// ownDefinitions are the names of the definitions that the hub cannot be without.
var ownDefinitions = sync.OnceValues(func() (map[string]bool, error) {
	all, err := crds.Definitions()
	own := map[string]bool{}
	for _, crd := range all {
		own[crd.Name] = true
	}
	return own, err
})

// Validate denies the deletion of a protected object.
func (p *protection) Validate(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetOldObject() == nil {
		return nil
	}
	obj, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return nil
	}
	if obj.GetLabels()[policyv1alpha1.DeletionProtectionLabel] == policyv1alpha1.DeletionProtectionAlways {
		//lint:ignore ST1005 the words are Karmada's
		return admission.NewForbidden(a, errors.New("This resource is protected, please make sure to remove the label: "+
			policyv1alpha1.DeletionProtectionLabel))
	}
	if a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	switch a.GetResource().GroupResource() {
	case workv1alpha1.Resource("works"):
		err = ownOrder(a)
	case definitions.GroupResource():
		if !protect.Confirmed(obj.GetName(), obj.GetAnnotations()) {
			err = p.validateDefinition(ctx, obj.GetName(), a.GetOldObject())
		}
	case releasev1alpha1.Resource("releaserevisions"):
		err = p.validateRevision(ctx, a, interfaces)
	case corev1.Resource("configmaps"):
		if release.IsVersion(obj.GetAnnotations()) {
			err = checkVersion(ctx, p.client, obj)
		}
	case corev1.Resource("namespaces"):
		if !protect.Confirmed(obj.GetName(), obj.GetAnnotations()) {
			err = p.validateNamespace(ctx, obj.GetName())
		}
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// ownOrder refuses a deletion of a Work that would pass for the hub's own order, see commit.Delete.
func ownOrder(a admission.Attributes) error {
	o, ok := a.GetOperationOptions().(*metav1.DeleteOptions)
	if ok && o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationForeground {
		return errors.New("foreground deletion of a Work is reserved for the hub, and Works have no dependents there; delete it with --cascade=background")
	}
	return nil
}

func (p *protection) validateRevision(ctx context.Context, a admission.Attributes,
	interfaces admission.ObjectInterfaces) error {
	u, err := templateOf(a.GetOldObject(), a, interfaces)
	if err != nil || u == nil {
		return err
	}
	r := &releasev1alpha1.ReleaseRevision{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		return fmt.Errorf("decode ReleaseRevision %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	bindings, err := bindingsIn(ctx, p.client, r.Namespace)
	if err != nil {
		return err
	}
	var stored releasev1alpha1.ReleaseRevisionList
	if err := list(ctx, p.client.Resource(releasev1alpha1.GroupVersion.WithResource("releaserevisions")).
		Namespace(r.Namespace), metav1.ListOptions{}, &stored); err != nil {
		return fmt.Errorf("list the ReleaseRevisions of namespace %q: %w", r.Namespace, err)
	}
	return protect.Revision(r, scope.Pointers(stored.Items), bindings)
}

func (p *protection) validateDefinition(ctx context.Context, name string, obj runtime.Object) error {
	own, err := ownDefinitions()
	if err != nil {
		return err
	}
	used := ""
	if !own[name] {
		if used, err = p.used(ctx, kindOf(obj)); err != nil {
			return fmt.Errorf("check for templates of the kind: %w", err)
		}
	}
	return protect.Definition(name, own[name], used)
}

// kindOf returns the kind that a definition defines.
func kindOf(obj runtime.Object) schema.GroupKind {
	switch d := obj.(type) {
	case *apiextensions.CustomResourceDefinition:
		return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
	case *unstructured.Unstructured:
		return match.KindDefined(d)
	}
	return schema.GroupKind{}
}

// used names a propagated template of the kind; empty if there is none.
func (p *protection) used(ctx context.Context, gk schema.GroupKind) (string, error) {
	for _, resource := range []string{"resourcebindings", "clusterresourcebindings"} {
		bindings := p.client.Resource(workv1alpha2.GroupVersion.WithResource(resource))
		for o := (metav1.ListOptions{Limit: 500}); ; {
			list, err := bindings.List(ctx, o)
			if err != nil {
				return "", err
			}
			for i := range list.Items {
				ref := referenceOf(&list.Items[i])
				if match.GroupKind(ref.APIVersion, ref.Kind) == gk {
					return text.Object(gk.Kind, ref.Namespace, ref.Name), nil
				}
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				break
			}
		}
	}
	return "", nil
}

func (p *protection) validateNamespace(ctx context.Context, name string) error {
	stays := false
	if cluster, err := names.ClusterOf(name); err == nil {
		found, err := get[clusterv1alpha1.Cluster](ctx, p.client.Resource(clusters), cluster)
		if err != nil {
			return fmt.Errorf("check whether cluster %q is in the fleet: %w", cluster, err)
		}
		stays = found != nil && found.DeletionTimestamp == nil
	}
	cluster, err := get[clusterv1alpha1.Cluster](ctx, p.client.Resource(clusters), name)
	if err != nil {
		return fmt.Errorf("check whether cluster %q is in the fleet: %w", name, err)
	}
	if cluster != nil && klusterlet.Manages(cluster) {
		return protect.ManifestWorks(name)
	}
	return protect.Namespace(name, stays)
}
