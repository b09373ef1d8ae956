package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// NewRevision is the revision of a workload: of its template on the hub, or of its manifest in a cluster without
// overrides. Policies in overrides that do not select it do not count. Equal input has an equal name.
func NewRevision(template *unstructured.Unstructured,
	overrides []policyv1alpha1.Override) *releasev1alpha1.ReleaseRevision {
	gvk := template.GroupVersionKind()
	spec := releasev1alpha1.ReleaseRevisionSpec{
		Target:             ReferenceOf(template),
		TemplateGeneration: template.GetGeneration(),
		PodsHash:           fleet.RevisionOf(template),
	}
	for _, path := range fleet.RevisionPaths(gvk.GroupKind()) {
		f := releasev1alpha1.RevisionField{Path: strings.Join(path, ".")}
		if value := fields.Value(template.Object, path...); value != nil {
			f.Value = &runtime.RawExtension{Raw: []byte(text.JSON(value))}
		}
		spec.Pods = append(spec.Pods, f)
	}
	for _, c := range interpret.Containers(template) {
		if c.Image != "" {
			spec.Images = append(spec.Images, c.Image)
		}
	}
	for _, p := range override.Selecting(template, overrides) {
		// Not the selectors of other workloads, which the readers of the revision may not know.
		rules := *p.OverrideSpec()
		rules.ResourceSelectors = slices.DeleteFunc(slices.Clone(rules.ResourceSelectors),
			func(s policyv1alpha1.ResourceSelector) bool {
				return match.Selector(s, match.TemplateOf(template)) == match.None
			})
		kind := "OverridePolicy"
		if p.GetNamespace() == "" {
			kind = "ClusterOverridePolicy"
		}
		spec.Overrides = append(spec.Overrides, releasev1alpha1.RevisionOverride{Kind: kind, Name: p.GetName(),
			Spec: runtime.RawExtension{Raw: []byte(text.JSON(rules))}})
	}
	spec.Hash = hashOf(gvk.GroupKind().String(), template.GetName(), spec.Pods, spec.Overrides)
	name := template.GetName()
	name = strings.Trim(name[:min(len(name), 150)], "-.")
	return &releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Namespace: template.GetNamespace(),
		Name: strings.ToLower(gvk.Kind) + "-" + name + "-" + spec.Hash}, Spec: spec}
}

// hashOf is a short hash of values as JSON.
func hashOf(values ...any) string {
	sum := sha256.Sum256([]byte(text.JSON(values)))
	return hex.EncodeToString(sum[:6])
}

// WithPods is a copy of a template, or of a manifest, with the pods of a revision. It fails for a revision of another
// workload, and for one with fields that do not make pods.
func WithPods(u *unstructured.Unstructured, r *releasev1alpha1.ReleaseRevision) (*unstructured.Unstructured, error) {
	if !sameTarget(r.Spec.Target, ReferenceOf(u)) {
		return nil, fmt.Errorf("ReleaseRevision %s is not of %s %s", r.Name, u.GetKind(), u.GetName())
	}
	out := u.DeepCopy()
	for _, f := range r.Spec.Pods {
		path := strings.Split(f.Path, ".")
		if !slices.ContainsFunc(fleet.RevisionPaths(u.GroupVersionKind().GroupKind()), func(own []string) bool {
			return slices.Equal(own, path)
		}) {
			return nil, fmt.Errorf("ReleaseRevision %s has %s, which makes no pods of a %s", r.Name, f.Path, u.GetKind())
		}
		if f.Value == nil {
			unstructured.RemoveNestedField(out.Object, path...)
			continue
		}
		var value any
		if err := utiljson.Unmarshal(f.Value.Raw, &value); err != nil {
			return nil, fmt.Errorf("read %s of ReleaseRevision %s: %w", f.Path, r.Name, err)
		}
		if err := unstructured.SetNestedField(out.Object, value, path...); err != nil {
			return nil, fmt.Errorf("apply %s of ReleaseRevision %s: %w", f.Path, r.Name, err)
		}
	}
	return out, nil
}

// podsOf is a workload with nothing but the pods of a revision.
func podsOf(r *releasev1alpha1.ReleaseRevision) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(r.Spec.Target.APIVersion)
	u.SetKind(r.Spec.Target.Kind)
	u.SetName(r.Spec.Target.Name)
	return WithPods(u, r)
}

func Overrides(r *releasev1alpha1.ReleaseRevision) ([]policyv1alpha1.Override, error) {
	var all []policyv1alpha1.Override
	for _, o := range r.Spec.Overrides {
		var p policyv1alpha1.Override = &policyv1alpha1.ClusterOverridePolicy{}
		if o.Kind == "OverridePolicy" {
			p = &policyv1alpha1.OverridePolicy{}
			p.SetNamespace(r.Namespace)
		}
		p.SetName(o.Name)
		if err := json.Unmarshal(o.Spec.Raw, p.OverrideSpec()); err != nil {
			return nil, fmt.Errorf("read override %s of ReleaseRevision %s: %w", o.Name, r.Name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// Drift compares the revision that is released with the one that the template has now. It returns a reason of the
// condition Drifted, or nothing.
func Drift(released, current *releasev1alpha1.ReleaseRevision) (reason string) {
	switch {
	case released == nil || current == nil || released.Spec.Hash == current.Spec.Hash:
		return ""
	case released.Spec.PodsHash != current.Spec.PodsHash:
		return releasev1alpha1.ReasonTemplateChanged
	case !reflect.DeepEqual(released.Spec.Overrides, current.Spec.Overrides):
		return releasev1alpha1.ReasonOverrideChanged
	}
	return ""
}
