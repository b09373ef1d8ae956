package schemas

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetes are the kinds of Kubernetes that a policy may select.
var kubernetes = func() map[schema.GroupVersionKind]any {
	all := map[schema.GroupVersionKind]any{}
	add := func(gv schema.GroupVersion, objects ...any) {
		for _, o := range objects {
			all[gv.WithKind(reflect.TypeOf(o).Name())] = o
		}
	}
	add(corev1.SchemeGroupVersion, corev1.Pod{}, corev1.PodTemplate{}, corev1.ReplicationController{}, corev1.Service{},
		corev1.ConfigMap{},
		corev1.Secret{}, corev1.ServiceAccount{}, corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{},
		corev1.Namespace{},
		corev1.LimitRange{}, corev1.ResourceQuota{}, corev1.Node{})
	add(appsv1.SchemeGroupVersion, appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, appsv1.ReplicaSet{})
	add(batchv1.SchemeGroupVersion, batchv1.Job{}, batchv1.CronJob{})
	add(networkingv1.SchemeGroupVersion, networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.NetworkPolicy{})
	add(policyv1.SchemeGroupVersion, policyv1.PodDisruptionBudget{})
	add(autoscalingv1.SchemeGroupVersion, autoscalingv1.HorizontalPodAutoscaler{})
	add(autoscalingv2.SchemeGroupVersion, autoscalingv2.HorizontalPodAutoscaler{})
	add(rbacv1.SchemeGroupVersion, rbacv1.Role{}, rbacv1.RoleBinding{}, rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{})
	add(storagev1.SchemeGroupVersion, storagev1.StorageClass{})
	add(discoveryv1.SchemeGroupVersion, discoveryv1.EndpointSlice{})
	return all
}()

// ofType returns the schema of a Go type as encoding/json writes it. A field without omitempty is required.
func ofType(object any) *apiextensionsv1.JSONSchemaProps {
	return reflected(reflect.TypeOf(object))
}

// leaves are types with their own JSON encoding.
var leaves = map[reflect.Type]apiextensionsv1.JSONSchemaProps{
	reflect.TypeFor[metav1.Time]():          {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.MicroTime]():     {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.Duration]():      {Type: "string"},
	reflect.TypeFor[resource.Quantity]():    {XIntOrString: true},
	reflect.TypeFor[intstr.IntOrString]():   {XIntOrString: true},
	reflect.TypeFor[metav1.FieldsV1]():      {Type: "object", XPreserveUnknownFields: new(true)},
	reflect.TypeFor[runtime.RawExtension](): {Type: "object", XPreserveUnknownFields: new(true)},
}

func reflected(t reflect.Type) *apiextensionsv1.JSONSchemaProps {
	if leaf, ok := leaves[t]; ok {
		return &leaf
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflected(t.Elem())
	case reflect.Struct:
		s := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				inner := reflected(f.Type)
				for n, p := range inner.Properties {
					s.Properties[n] = p
				}
				s.Required = append(s.Required, inner.Required...)
				continue
			}
			if name == "" || name == "-" {
				continue
			}
			s.Properties[name] = *reflected(f.Type)
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				s.Required = append(s.Required, name)
			}
		}
		return s
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &apiextensionsv1.JSONSchemaProps{Type: "string", Format: "byte"}
		}
		return &apiextensionsv1.JSONSchemaProps{Type: "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: reflected(t.Elem())}}
	case reflect.Map:
		return &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
			Allows: true, Schema: reflected(t.Elem()),
		}}
	case reflect.Bool:
		return &apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case reflect.String:
		return &apiextensionsv1.JSONSchemaProps{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &apiextensionsv1.JSONSchemaProps{Type: "number"}
	case reflect.Interface:
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	default:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer"}
	}
}
