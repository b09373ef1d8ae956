package kruise_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/argosy-io/argosy/api/kruise"
)

// What is Kubernetes' own is written here a second time; a field that Kubernetes has and we have not would be refused.
func TestKubernetesTypesHaveAllFields(t *testing.T) {
	container := []string{"spec", "containers", "[]"}
	for _, tc := range []struct {
		kind string
		path []string
		of   reflect.Type
		more []string // fields that OpenKruise adds
	}{
		{"UnitedDeployment", []string{"spec", "template", "deploymentTemplate", "spec"},
			reflect.TypeFor[appsv1.DeploymentSpec](), nil},
		{"UnitedDeployment", []string{"spec", "template", "statefulSetTemplate", "spec"},
			reflect.TypeFor[appsv1.StatefulSetSpec](), nil},
		{"SidecarSet", container, reflect.TypeFor[corev1.Container](), []string{
			"podInjectPolicy", "upgradeStrategy", "shareVolumePolicy", "shareVolumeDevicePolicy", "transferEnv",
			"resourcesPolicy",
		}},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			s := schemaAt(t, tc.kind, version, tc.path...)
			for _, field := range tc.more {
				if _, ok := s.Properties[field]; !ok {
					t.Errorf("%s %s: no %s in a container", tc.kind, version, field)
				}
				delete(s.Properties, field)
			}
			sameFields(t, tc.kind+" "+version+" "+strings.Join(tc.path, "."), s, tc.of)
		}
	}
}

func schemaAt(t *testing.T, kind, version string, path ...string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	kinds, err := kruise.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if k.Kind != kind {
			continue
		}
		s := *k.Schema(version)
		for _, name := range path {
			if name == "[]" {
				s = *s.Items.Schema
			} else {
				s = s.Properties[name]
			}
		}
		return s
	}
	t.Fatalf("no %s", kind)
	return apiextensionsv1.JSONSchemaProps{}
}

// sameFields compares down to where the schema lets anything pass.
func sameFields(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps, of reflect.Type) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if s.XPreserveUnknownFields != nil {
		return
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Int64: "integer",
		reflect.Slice: "array", reflect.Map: "object", reflect.Struct: "object",
	}[of.Kind()]
	switch of {
	case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[resource.Quantity]():
		if !s.XIntOrString {
			t.Errorf("%s: is a number or a text", path)
		}
		return
	}
	if s.Type != want || s.Format == "int32" && of.Kind() != reflect.Int32 {
		t.Errorf("%s: %s %s, is %s", path, s.Type, s.Format, of)
		return
	}
	switch of.Kind() {
	case reflect.Slice:
		sameFields(t, path+"[]", *s.Items.Schema, of.Elem())
	case reflect.Map:
		sameFields(t, path+"[*]", *s.AdditionalProperties.Schema, of.Elem())
	case reflect.Struct:
		fields := jsonFields(of)
		for name, field := range fields {
			p, ok := s.Properties[name]
			if !ok {
				t.Errorf("%s: has no %s", path, name)
				continue
			}
			sameFields(t, path+"."+name, p, field)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s: %s is not of Kubernetes", path, name)
			}
		}
	}
}

func jsonFields(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			maps.Copy(fields, jsonFields(f.Type))
			continue
		}
		fields[name] = f.Type
	}
	return fields
}
