package override

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// overrideImage changes the image at the predicate's path or, without a predicate, the images of all containers and
// images outside of containers. A registry is changed in all images of a pod, including init containers and volumes,
// because a cluster that cannot pull one of them cannot start the pod. Tags and repositories of init containers stay,
// as in Karmada.
func overrideImage(m *unstructured.Unstructured, o *policyv1alpha1.ImageOverrider) error {
	if o.Predicate != nil {
		return overrideImageAt(m, o)
	}
	registry := o.Component == policyv1alpha1.Registry
	all := containers(m)
	if registry {
		all = allContainers(m)
	}
	var paths []pointer
	for _, c := range all {
		paths = append(paths, append(slices.Clone(c.path), "image"))
		// The empty image for hot upgrades of a sidecar moves to the same registry but keeps its tag.
		if registry {
			paths = append(paths, append(slices.Clone(c.path), "upgradeStrategy", "hotUpgradeEmptyImage"))
		}
	}
	if registry {
		for _, path := range interpret.ImageVolumes(m) {
			paths = append(paths, path)
		}
	}
	for _, path := range interpret.Images(m) {
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nothing(fmt.Sprintf("a %s has no known containers; specify the image with predicate.path", m.GetKind()))
	}
	found, changed := false, false
	for _, path := range paths {
		v, _ := path.get(m.Object)
		// A container may have no image: Argo has defaults for templates.
		if v == nil || v == "" {
			continue
		}
		before, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s is not a string", path)
		}
		after, err := changeImage(before, o)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := edit(m.Object, path, policyv1alpha1.OverriderOpReplace, after); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found, changed = true, changed || after != before
	}
	if !found {
		return nothing("it does not contain an image")
	}
	return removedNothing(o, changed)
}

func overrideImageAt(m *unstructured.Unstructured, o *policyv1alpha1.ImageOverrider) error {
	path, err := parsePointer(o.Predicate.Path)
	if err != nil {
		return fmt.Errorf("predicate: %w", err)
	}
	v, ok := path.get(m.Object)
	if !ok {
		return fmt.Errorf("predicate: %s does not exist", path)
	}
	before, ok := v.(string)
	if !ok {
		return fmt.Errorf("predicate: %q is not a string", o.Predicate.Path)
	}
	after, err := changeImage(before, o)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := edit(m.Object, path, policyv1alpha1.OverriderOpReplace, after); err != nil {
		return fmt.Errorf("predicate: %w", err)
	}
	return removedNothing(o, after != before)
}

// removedNothing returns an error for a removal without effect. Setting an existing value is no error.
func removedNothing(o *policyv1alpha1.ImageOverrider, changed bool) error {
	if o.Operator == policyv1alpha1.OverriderOpRemove && !changed {
		return nothing(fmt.Sprintf("no image has a %s", strings.ToLower(string(o.Component))))
	}
	return nil
}

// image is a parsed image name: [registry/]repository[:tag][@digest]. Parsing never fails.
type image struct{ registry, repository, tag, digest string }

func parseImage(s string) image {
	var i image
	s, i.digest, _ = strings.Cut(s, "@")
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, '/') {
		s, i.tag = s[:colon], s[colon+1:]
	}
	// The first part is a registry only if it must be a host. Otherwise it belongs to the repository.
	if host, rest, ok := strings.Cut(s, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		i.registry, s = host, rest
	}
	i.repository = s
	return i
}

func (i image) String() string {
	s := i.repository
	if i.registry != "" {
		s = i.registry + "/" + s
	}
	if i.tag != "" {
		s += ":" + i.tag
	}
	if i.digest != "" {
		s += "@" + i.digest
	}
	return s
}

// setTag sets a tag, a digest or both. A digest contains a colon, a tag does not.
func (i *image) setTag(s string) {
	if tag, digest, ok := strings.Cut(s, "@"); ok {
		i.tag, i.digest = tag, digest
		return
	}
	i.tag, i.digest = s, ""
	if strings.Contains(s, ":") {
		i.tag, i.digest = "", s
	}
}

// changeImage changes one part of the image. Add appends to the part, as in Karmada. A digest counts as part of the
// tag.
func changeImage(s string, o *policyv1alpha1.ImageOverrider) (string, error) {
	i := parseImage(s)
	change := func(part string) (string, error) {
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			return part + o.Value, nil
		case policyv1alpha1.OverriderOpReplace:
			return o.Value, nil
		case policyv1alpha1.OverriderOpRemove:
			return "", nil
		default:
			return "", fmt.Errorf("unknown operator %q", o.Operator)
		}
	}
	var err error
	switch o.Component {
	case policyv1alpha1.Registry:
		i.registry, err = change(i.registry)
	case policyv1alpha1.Repository:
		i.repository, err = change(i.repository)
	case policyv1alpha1.Tag:
		if o.Operator == policyv1alpha1.OverriderOpAdd && i.tag == "" && i.digest != "" {
			return "", fmt.Errorf("image %q is pinned by digest, so nothing can be appended", s)
		}
		var tag string
		if tag, err = change(i.tag); err == nil {
			i.setTag(tag)
		}
	default:
		err = fmt.Errorf("unknown component %q", o.Component)
	}
	if err != nil {
		return "", err
	}
	if i.repository == "" {
		return "", errors.New("the repository would be empty")
	}
	return i.String(), nil
}
