package addons

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

// Paths in the pods of an add-on.
const (
	hubKubeconfig = "/managed/hub-kubeconfig"
	proxyCA       = "/managed/proxy-ca"
	caFile        = "ca-bundle.crt"
)

// variable matches a variable in the manifest of an AddOnTemplate. One without a value is empty.
var variable = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// renderer makes the manifests of an add-on for a cluster.
type renderer struct {
	addon, namespace string
	settings         addonv1alpha1.AddOnDeploymentConfigSpec
	values           map[string]string
	env              []corev1.EnvVar
	volumes          []corev1.Volume
	mounts           []corev1.VolumeMount
}

// render returns the spec of the ManifestWork of an add-on, and its namespace in the cluster: that of the settings or
// else of the first Deployment or DaemonSet.
func render(addon, cluster string, t addonv1alpha1.AddOnTemplateSpec,
	s addonv1alpha1.AddOnDeploymentConfigSpec) (spec ocmv1.ManifestWorkSpec, namespace string, err error) {
	spec = *t.AgentSpec.DeepCopy()
	spec.Workload.Manifests = nil
	var objects []*unstructured.Unstructured
	for i, manifest := range t.AgentSpec.Workload.Manifests {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(manifest.Raw); err != nil {
			return spec, "", fmt.Errorf("spec.agentSpec.workload.manifests[%d]: %w", i, err)
		}
		objects = append(objects, obj)
	}
	r := &renderer{addon: addon, settings: s, namespace: s.AgentInstallNamespace, values: map[string]string{}}
	for _, v := range s.CustomizedVariables {
		r.values[v.Name] = v.Value
	}
	r.values["CLUSTER_NAME"], r.values["INSTALL_NAMESPACE"] = cluster, ""
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		for _, obj := range objects {
			if r.namespace == "" && isWorkload(obj) && obj.GetKind() == kind {
				r.namespace = r.fill(obj.GetNamespace()).(string)
			}
		}
	}
	if r.namespace == "" {
		r.namespace = addonv1alpha1.DefaultInstallNamespace
	}
	if err := r.prepare(cluster, t.Registration); err != nil {
		return spec, "", err
	}
	if len(s.ProxyConfig.CABundle) > 0 {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": addon + "-proxy-ca", "namespace": r.namespace},
			"data":     map[string]any{caFile: string(s.ProxyConfig.CABundle)}}})
	}
	for _, obj := range objects {
		if err := r.object(obj, &spec); err != nil {
			return spec, "", fmt.Errorf("%s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
		}
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			return spec, "", err
		}
		spec.Workload.Manifests = append(spec.Workload.Manifests,
			ocmv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return spec, r.namespace, nil
}

// prepare sets what all pods of the add-on get.
func (r *renderer) prepare(cluster string, registrations []addonv1alpha1.RegistrationSpec) error {
	mount := func(name, path string, source corev1.VolumeSource) {
		r.volumes = append(r.volumes, corev1.Volume{Name: name, VolumeSource: source})
		r.mounts = append(r.mounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	secret := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
	}
	for _, registration := range registrations {
		r.values["HUB_KUBECONFIG"] = cmp.Or(r.values["HUB_KUBECONFIG"], hubKubeconfig+"/kubeconfig")
		if registration.Type == addonv1alpha1.RegistrationKubeClient {
			mount("hub-kubeconfig", hubKubeconfig, secret(r.addon+"-hub-kubeconfig"))
			continue
		}
		if registration.CustomSigner == nil {
			return errors.New("a registration with a custom signer does not name the signer")
		}
		dashed := strings.ReplaceAll(registration.CustomSigner.SignerName, "/", "-")
		mount("cert-"+strings.ReplaceAll(dashed, ".", "-"), "/managed/"+dashed, secret(r.addon+"-"+dashed+"-client-cert"))
	}
	if path := r.values["HUB_KUBECONFIG"]; path != "" {
		r.env = podEnv("HUB_KUBECONFIG", path)
	}
	r.values["INSTALL_NAMESPACE"] = r.namespace
	r.env = append(r.env, podEnv("CLUSTER_NAME", cluster, "INSTALL_NAMESPACE", r.namespace)...)
	proxy := r.settings.ProxyConfig
	for name, value := range map[string]string{"HTTP_PROXY": proxy.HTTPProxy, "HTTPS_PROXY": proxy.HTTPSProxy,
		"NO_PROXY": proxy.NoProxy} {
		if value != "" {
			r.env = append(r.env, podEnv(name, value, strings.ToLower(name), value)...)
		}
	}
	if len(proxy.CABundle) > 0 {
		r.env = append(r.env, podEnv("CA_BUNDLE_FILE_PATH", proxyCA+"/"+caFile)...)
		mount("proxy-ca-bundle", proxyCA, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: r.addon + "-proxy-ca"}}})
	}
	slices.SortStableFunc(r.env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// object changes a manifest for the cluster, and adds what the klusterlet should report of it to the spec.
func (r *renderer) object(obj *unstructured.Unstructured, spec *ocmv1.ManifestWorkSpec) error {
	obj.Object = r.fill(obj.Object).(map[string]any)
	_, label := obj.GetLabels()[addonv1alpha1.PreDeleteLabel]
	if _, annotation := obj.GetAnnotations()[addonv1alpha1.PreDeleteAnnotation]; label || annotation {
		return errors.New("jobs and pods that run before an add-on is deleted are not supported: remove the object " +
			"from the AddOnTemplate")
	}
	if r.settings.AgentInstallNamespace != "" {
		r.move(obj)
	}
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	id := ocmv1.ResourceIdentifier{Group: plural.Group, Resource: plural.Resource, Namespace: obj.GetNamespace(),
		Name: obj.GetName()}
	if _, stays := obj.GetAnnotations()[addonv1alpha1.DeletionOrphanAnnotation]; stays {
		if spec.DeleteOption == nil {
			spec.DeleteOption = &ocmv1.DeleteOption{}
		}
		if o := spec.DeleteOption; o.PropagationPolicy != ocmv1.DeleteOrphan { // which keeps all
			o.PropagationPolicy = ocmv1.DeleteSelectivelyOrphan
			if o.SelectivelyOrphan == nil {
				o.SelectivelyOrphan = &ocmv1.SelectivelyOrphan{}
			}
			o.SelectivelyOrphan.OrphaningRules = append(o.SelectivelyOrphan.OrphaningRules, ocmv1.OrphaningRule{
				Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name})
		}
	}
	if obj.GetKind() == "CustomResourceDefinition" {
		dropDescriptions(obj.Object["spec"]) // they are most of its size
	}
	if !isWorkload(obj) {
		return nil
	}
	i := slices.IndexFunc(spec.ManifestConfigs,
		func(c ocmv1.ManifestConfigOption) bool { return c.ResourceIdentifier == id })
	if i < 0 {
		i = len(spec.ManifestConfigs)
		spec.ManifestConfigs = append(spec.ManifestConfigs, ocmv1.ManifestConfigOption{ResourceIdentifier: id,
			FeedbackScrapeType: ocmv1.FeedbackPoll})
	}
	if config := &spec.ManifestConfigs[i]; !slices.ContainsFunc(config.FeedbackRules, func(f ocmv1.FeedbackRule) bool {
		return f.Type == ocmv1.FeedbackWellKnownStatus
	}) {
		config.FeedbackRules = append(config.FeedbackRules, ocmv1.FeedbackRule{Type: ocmv1.FeedbackWellKnownStatus})
	}
	return r.pods(obj, plural.Resource)
}

// isWorkload reports whether the pods of an object get the settings of the add-on.
func isWorkload(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().Group == "apps" && slices.Contains([]string{"Deployment", "DaemonSet"}, obj.GetKind())
}

// fill returns a value with the variables in its texts replaced.
func (r *renderer) fill(v any) any {
	switch v := v.(type) {
	case string:
		return variable.ReplaceAllStringFunc(v, func(name string) string { return r.values[strings.Trim(name, "{}")] })
	case []any:
		for i := range v {
			v[i] = r.fill(v[i])
		}
	case map[string]any:
		filled := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			filled[r.fill(key).(string)] = r.fill(v[key])
		}
		return filled
	}
	return v
}

// move moves an object into the namespace of the settings, with the subjects of its RoleBindings.
func (r *renderer) move(obj *unstructured.Unstructured) {
	if obj.GetNamespace() != "" {
		obj.SetNamespace(r.namespace)
	}
	switch obj.GetKind() {
	case "Namespace":
		obj.SetName(r.namespace)
	case "ClusterRoleBinding", "RoleBinding":
		subjects, _ := obj.Object["subjects"].([]any)
		for _, s := range subjects {
			if s, ok := s.(map[string]any); ok {
				s["namespace"] = r.namespace
			}
		}
	}
}

// pods changes the pod template of a workload. resource is its plural name.
func (r *renderer) pods(obj *unstructured.Unstructured, resource string) error {
	template, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	if err != nil {
		return err
	}
	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
		return fmt.Errorf("spec.template: %w", err)
	}
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Env = append(c.Env, r.env...)
			c.VolumeMounts = append(c.VolumeMounts, r.mounts...)
			c.Image = r.image(c.Image)
			if err := r.limit(resource+":"+obj.GetName()+":"+c.Name, c); err != nil {
				return err
			}
		}
	}
	spec.Volumes = append(spec.Volumes, r.volumes...)
	if p := r.settings.NodePlacement; p != nil {
		if p.NodeSelector != nil {
			spec.NodeSelector = p.NodeSelector
		}
		if p.Tolerations != nil {
			spec.Tolerations = p.Tolerations
		}
	}
	if template, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&pod); err != nil {
		return err
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	return unstructured.SetNestedMap(obj.Object, template, "spec", "template")
}

// image returns an image with its registry replaced by the last mirror that has it.
func (r *renderer) image(image string) string {
	mirrored := image
	for _, m := range r.settings.Registries {
		source, mirror := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
		if source == "" {
			mirrored = strings.TrimPrefix(mirror+"/"+image[strings.LastIndex(image, "/")+1:], "/")
		} else if rest, is := strings.CutPrefix(image, source); is {
			mirrored = mirror + rest
		}
	}
	return mirrored
}

// limit sets the resources of a container by the last requirement for its id, RESOURCE:NAME:CONTAINER.
func (r *renderer) limit(id string, c *corev1.Container) error {
	for _, requirement := range r.settings.ResourceRequirements {
		parts := strings.Split(requirement.ContainerID, ":")
		for i := range parts {
			if parts[i] == "*" {
				parts[i] = ".+"
			}
		}
		matcher, err := regexp.Compile("^" + strings.Join(parts, ":") + "$")
		if err != nil {
			return fmt.Errorf("resourceRequirements: containerID %q: %w", requirement.ContainerID, err)
		}
		if matcher.MatchString(id) {
			c.Resources = requirement.Resources
		}
	}
	return nil
}

// dropDescriptions removes the descriptions from the schemas of a CustomResourceDefinition. A property with that name
// is no text.
func dropDescriptions(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dropDescriptions(item)
		}
	case map[string]any:
		if _, text := v["description"].(string); text {
			delete(v, "description")
		}
		for _, item := range v {
			dropDescriptions(item)
		}
	}
}

// podEnv returns environment variables. pairs are names and values in turn.
func podEnv(pairs ...string) (env []corev1.EnvVar) {
	for i := 0; i+1 < len(pairs); i += 2 {
		env = append(env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return env
}
