package admission

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/convert"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// mutateBinding gives a new binding the id that its Works refer to. Our own controllers bring one along.
func (o *objects) mutateBinding(ctx context.Context, r request) error {
	if !r.creating() {
		return nil
	}
	label := workv1alpha2.ResourceBindingPermanentIDLabel
	if r.GetKind().Kind == "ClusterResourceBinding" {
		label = workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	labels := r.obj.GetLabels()
	if !r.fromHub() && labels[label] == "" && labels[workv1alpha2.BindingManagedByLabel] == "" {
		warning.AddWarning(ctx, "", "the hub creates bindings from a template and the policy that selects it; a binding created by hand is not scheduled: "+
			"write a PropagationPolicy that selects the template instead")
	}
	identify(r.obj, nil, label)
	r.disown()
	return nil
}

// validateBinding decodes a binding only if it has something to validate: they are written often.
func (o *objects) validateBinding(ctx context.Context, r request) error {
	if err := validateBindingContent(r); err != nil {
		return err
	}
	if err := o.authorizeBinding(ctx, r); err != nil {
		return err
	}
	return o.refuseOverQuota(ctx, r)
}

func validateBindingContent(r request) error {
	if r.GetKind().Version != workv1alpha2.GroupVersion.Version {
		return nil
	}
	components, _, _ := unstructured.NestedFieldNoCopy(r.obj.Object, "spec", "components")
	dependencies, _, _ := unstructured.NestedFieldNoCopy(r.obj.Object, "metadata", "annotations",
		workv1alpha2.DependenciesAnnotation)
	if components == nil && dependencies == nil {
		return nil
	}
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	if r.GetKind().Kind == "ClusterResourceBinding" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	if err := into(r.obj, b); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.Binding(b))
}

// authorizeBinding requires that a binding written by a user refers to an object in its own namespace that the user
// may read: a binding brings its template to clusters, where the user may read more than on the hub. It checks each
// write that changes a field, since every field decides where the template goes, or how.
func (o *objects) authorizeBinding(ctx context.Context, r request) error {
	if r.fromHub() || r.keepsSpec() &&
		maps.Equal(r.old.GetLabels(), r.obj.GetLabels()) && maps.Equal(r.old.GetAnnotations(), r.obj.GetAnnotations()) {
		return nil
	}
	ref := referenceOf(r.obj)
	// What was stored before there was this rule can still be read and deleted, and is sent nowhere.
	if r.old == nil || referenceOf(r.old) != ref {
		if err := propagate.CheckReference(r.GetNamespace(), ref); err != nil {
			return r.refuse(field.ErrorList{field.Invalid(field.NewPath("spec", "resource"), ref.Namespace+"/"+ref.Name,
				err.Error())})
		}
	}
	// The labels of a binding name its policy, and a ClusterPropagationPolicy may overwrite objects where other policies
	// may not. So new labels need the right to overwrite, too.
	if overwrites(r.obj) && (r.old == nil || !overwrites(r.old) || !maps.Equal(r.old.GetLabels(), r.obj.GetLabels())) {
		if err := o.mayOverwrite(ctx, r, "spec.conflictResolution: Overwrite"); err != nil {
			return err
		}
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if mapping, err := o.mapper.RESTMapping(match.GroupKind(ref.APIVersion, ref.Kind)); err == nil {
		resource = mapping.Resource
	}
	return o.mayRead(ctx, r, resource, ref.Namespace, ref.Name, "a binding propagates its template to member clusters")
}

// overwrites reports whether a binding requests to take over existing objects in members, in either version.
func overwrites(b *unstructured.Unstructured) bool {
	if stored, err := convert.Binding(b, workv1alpha2.GroupVersion.String()); err == nil {
		b = stored
	}
	return fields.Text(b.Object, "spec", "conflictResolution") == string(policyv1alpha1.ConflictOverwrite)
}

// mayRead rejects a write of a user who may not read an object that the hub would read because of it.
func (o *objects) mayRead(ctx context.Context, r admission.Attributes, resource schema.GroupVersionResource, namespace,
	name, why string) error {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	return o.require(ctx, r, right{verb: "get", resource: resource, namespace: namespace, name: name},
		"%s, for which you need permission to get %s %q %s", why, resource.GroupResource(), name, where)
}

// referenceOf returns the reference of a binding of any version, without fields that the hub updates.
func referenceOf(b *unstructured.Unstructured) workv1alpha2.ObjectReference {
	resource := fields.Object(b.Object, "spec", "resource")
	return workv1alpha2.ObjectReference{APIVersion: fields.Text(resource, "apiVersion"),
		Kind:      fields.Text(resource, "kind"),
		Namespace: fields.Text(resource, "namespace"), Name: fields.Text(resource, "name")}
}

// identify gives obj a permanent id if it has none: the one it had, else a new one.
func identify(obj, old *unstructured.Unstructured, label string) {
	if obj.GetLabels()[label] == "" {
		fields.SetLabel(obj, label, cmp.Or(idOf(old, label), string(uuid.NewUUID())))
	}
}
