package admission

import (
	"context"
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
)

// A template that depends on an object that is not on the hub is stored, with one warning.
func TestMissingDependencyOfNewTemplateIsWarnedOf(t *testing.T) {
	const (
		pods = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}"
		sts  = "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: w, namespace: shop}, spec: {" +
			pods + ", serviceName: db}}"
		flow     = "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, namespace: shop}, spec: {entrypoint: main, serviceAccountName: runner}}"
		cron     = "{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: w, namespace: shop}, spec: {workflowSpec: {entrypoint: main}}}"
		role     = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: executor, namespace: shop}, rules: [{apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [create, patch]}]}"
		reads    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: executor, namespace: shop}, rules: [{apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [get]}]}"
		binding  = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: executor, namespace: shop}, roleRef: {kind: Role, name: executor}, subjects: [{kind: ServiceAccount, name: runner}]}"
		all      = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}"
		everyone = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {kind: ClusterRole, name: all}, subjects: [{kind: Group, name: 'system:serviceaccounts:shop'}]}"
		service  = "{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}}"
	)
	for name, c := range map[string]struct {
		template string
		hub      []string
		want     string // of the warning; empty for none
	}{
		"a StatefulSet without its Service": {sts, nil, `no Service "db" in namespace "shop"`},
		"one whose Service is in another namespace": {sts, []string{strings.Replace(service, "shop", "other", 1)},
			`no Service "db"`},
		"one with it":         {sts, []string{service}, ""},
		"one that names none": {strings.Replace(sts, ", serviceName: db", "", 1), nil, ""},
		"a Workflow whose account has no rights": {flow, nil,
			`ServiceAccount "runner" in namespace "shop" has no role`},
		"one whose role is another's": {flow,
			[]string{role, strings.Replace(binding, "runner", "walker", 1)}, `"runner"`},
		"one whose role lets it read alone":                 {flow, []string{reads, binding}, `"runner"`},
		"one whose role is not there":                       {flow, []string{binding}, `"runner"`},
		"one that may report":                               {flow, []string{role, binding}, ""},
		"one that may do all, as everyone in the namespace": {flow, []string{all, everyone}, ""},
		"one that runs a template, which may say":           {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, namespace: shop}, spec: {workflowTemplateRef: {name: t}}}", nil, ""},
		"one whose account is a parameter": {strings.Replace(flow, "runner", "'{{workflow.parameters.as}}'",
			1), nil, ""},
		"one whose executor has an account of its own": {strings.Replace(flow, "serviceAccountName: runner",
			"serviceAccountName: walker, executor: {serviceAccountName: runner}", 1), []string{role, binding}, ""},
		"a CronWorkflow that names no account": {cron, []string{role, binding}, `ServiceAccount "default"`},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				var objects []*unstructured.Unstructured
				for _, text := range c.hub {
					objects = append(objects, object(t, text))
				}
				h := newHub(t, objects...)
				stored, warnings, err := h.write("admin", object(t, c.template), nil)
				if output := strings.Join(warnings, "\n"); err != nil || (output == "") != (c.want == "") ||
					!strings.Contains(output, c.want) {
					t.Fatalf("warned is %q, %v, want %q", output, err, c.want)
				}
				if _, warnings, err := h.write("admin", stored, stored); len(warnings) > 0 || err != nil {
					t.Errorf("a second time: %v, %q", err, warnings)
				}
			})
		})
	}
}

// The API server has StatefulSets of Kubernetes itself in a type of its own.
func TestMissingServiceOfStatefulSetIsWarnedOf(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		scheme := runtime.NewScheme()
		if err := appsv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"},
			Spec: appsv1.StatefulSetSpec{ServiceName: "db"}}
		for subresource, want := range map[string]int{"": 1, "status": 0} {
			warnings := &recorder{}
			a := admission.NewAttributesRecord(set, nil, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "shop", "w",
				appsv1.SchemeGroupVersion.WithResource("statefulsets"), subresource, admission.Create, &metav1.CreateOptions{},
				false, &user.DefaultInfo{Name: "admin"})
			for _, p := range h.plugins {
				if o, ok := p.(*objects); ok {
					if err := o.Validate(warning.WithWarningRecorder(context.Background(), warnings), a,
						admission.NewObjectInterfacesFromScheme(scheme)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(warnings.texts) != want {
				t.Errorf("warned of %q is %q", subresource, warnings.texts)
			}
		}
	})
}
