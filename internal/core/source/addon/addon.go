// Package addon decides how an operator is installed in each cluster from its rendered manifests: in which order and
// with which policies. Each manifest is enclosed, so that it has no effect on the hub. Callers read and write.
package addon

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Stage is the order of an addon's objects: a stage is sent when all objects of earlier stages exist in the clusters.
type Stage int

// The stages.
const (
	// Foundation has definitions and namespaces. They and their content stay in clusters when the addon is disabled.
	Foundation Stage = iota
	// Operator has the workloads and their dependencies.
	Operator
	// Webhooks has admission configurations. From then on, clusters call the operator.
	Webhooks
	// Stages is the number of stages.
	Stages
)

func (s Stage) String() string {
	return [...]string{"definitions and namespaces", "the operator", "its webhooks"}[s]
}

// stageOf returns the stage of a kind.
func stageOf(gk schema.GroupKind) Stage {
	switch {
	case gk == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		gk == schema.GroupKind{Kind: "Namespace"}:
		return Foundation
	case gk.Group == "admissionregistration.k8s.io":
		return Webhooks
	}
	return Operator
}

// Object is a manifest of an addon, enclosed.
type Object struct {
	Stage    Stage
	Template *unstructured.Unstructured // an EnclosedManifest
}

// hook is the annotation of objects that Helm itself runs during an installation or upgrade.
const hook = "helm.sh/hook"

// Enclose returns the objects to write to the hub for the manifests of an addon, by stage and name, and notes for the
// user. namespaced reports whether a kind is namespaced, if known; manifests without a namespace go to the given one.
// The manifests are not changed.
func Enclose(name, namespace string, manifests []*unstructured.Unstructured,
	namespaced func(schema.GroupVersionKind) (is, known bool)) ([]Object, []string, error) {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return nil, nil, fmt.Errorf("addon name %q: %s", name, strings.Join(wrong, "; "))
	}
	// The addon's own definitions have the scope of their kinds.
	scopes := map[schema.GroupKind]bool{}
	for _, m := range manifests {
		if m.GetKind() == "CustomResourceDefinition" {
			scopes[schema.GroupKind{Group: fields.Text(m.Object, "spec", "group"),
				Kind: fields.Text(m.Object, "spec", "names", "kind")}] = fields.Text(m.Object, "spec", "scope") == "Namespaced"
		}
	}
	var all []Object
	var warnings []string
	var errs []error
	seen, spaces, needed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range manifests {
		gvk := m.GroupVersionKind()
		if h := m.GetAnnotations()[hook]; h != "" && h != "crd-install" {
			warnings = append(warnings, fmt.Sprintf("%s %s is a Helm hook (%s); hooks are not run, so it is skipped",
				m.GetKind(), m.GetName(), h))
			continue
		}
		if m.GetName() == "" {
			errs = append(errs, fmt.Errorf("a %s has no metadata.name: each manifest must have a name", m.GetKind()))
			continue
		}
		m = m.DeepCopy()
		interpret.Prune(m)
		is, known := scopes[gvk.GroupKind()]
		if !known {
			is, known = namespaced(gvk)
		}
		if !known {
			is = m.GetNamespace() != ""
		}
		switch {
		case !is:
			m.SetNamespace("")
		case m.GetNamespace() == "":
			m.SetNamespace(namespace)
		}
		if is {
			needed[m.GetNamespace()] = true
		}
		if gvk.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			spaces[m.GetName()] = true
		}
		t := enclose(name, m)
		if seen[t.GetName()] {
			errs = append(errs, fmt.Errorf("the manifests contain %s %s/%s twice", m.GetKind(), m.GetNamespace(), m.GetName()))
			continue
		}
		seen[t.GetName()] = true
		all = append(all, Object{stageOf(gvk.GroupKind()), t})
	}
	if len(all) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("the manifests contain nothing to install"))
	}
	for ns := range needed {
		if !spaces[ns] && ns != metav1.NamespaceDefault && ns != metav1.NamespaceSystem {
			warnings = append(warnings, fmt.Sprintf(
				"the manifests do not contain the namespace %s: its objects are applied when it exists in the clusters", ns))
		}
	}
	slices.Sort(warnings)
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Template.GetName(), b.Template.GetName()))
	})
	return all, warnings, errors.Join(errs...)
}

// enclose returns m as a template.
func enclose(addon string, m *unstructured.Unstructured) *unstructured.Unstructured {
	parts := []string{addon, m.GetKind()}
	if ns := m.GetNamespace(); ns != "" {
		parts = append(parts, ns)
	}
	t := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"manifest": m.Object}}}
	t.SetGroupVersionKind(releasev1alpha1.GroupVersion.WithKind(releasev1alpha1.EnclosedManifestKind.Kind))
	// Names of roles may have colons; names of EnclosedManifests may not.
	t.SetName(names.Object(strings.ToLower(strings.ReplaceAll(strings.Join(append(parts, m.GetName()), "."), ":", "."))))
	t.SetLabels(map[string]string{wellknown.AddonLabel: addon})
	return t
}

// Options are the user's options for an addon.
type Options struct {
	// Clusters to install the addon in; empty for all, including clusters that join later.
	Clusters []string
	// Overwrite takes over existing objects in clusters.
	Overwrite bool
}

// Policies returns the policies of an addon: one for its foundation, which stays in clusters when the addon is
// disabled, and one for the rest. They name each object, so that they never select objects of others.
func Policies(name string, all []Object, o Options) []*policyv1alpha1.ClusterPropagationPolicy {
	policy := func(suffix string, stays bool) *policyv1alpha1.ClusterPropagationPolicy {
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name + suffix,
			Labels: map[string]string{wellknown.AddonLabel: name}}}
		if len(o.Clusters) > 0 {
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: o.Clusters}
		}
		p.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
		if o.Overwrite {
			p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
		if stays {
			p.Spec.PreserveResourcesOnDeletion = &stays
		}
		for _, x := range all {
			if (x.Stage == Foundation) == stays {
				p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
					APIVersion: x.Template.GetAPIVersion(), Kind: x.Template.GetKind(), Name: x.Template.GetName(),
				})
			}
		}
		return p
	}
	return slices.DeleteFunc([]*policyv1alpha1.ClusterPropagationPolicy{policy("-foundation", true), policy("", false)},
		func(p *policyv1alpha1.ClusterPropagationPolicy) bool { return len(p.Spec.ResourceSelectors) == 0 })
}

// StageOf returns the stage of an addon's template on the hub.
func StageOf(t *releasev1alpha1.EnclosedManifest) (Stage, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(t.Spec.Manifest.Raw, &head); err != nil {
		return 0, fmt.Errorf("EnclosedManifest %s: %w", t.Name, err)
	}
	return stageOf(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind).GroupKind()), nil
}
