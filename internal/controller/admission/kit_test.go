package admission

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/api/crds"
	kinds "github.com/argosy-io/argosy/internal/core/kind"
)

// hub does with a write of one of our kinds what an API server does: strict decoding and defaults by the schema,
// mutating admission, the schema, validating admission.
type hub struct {
	t       *testing.T
	index   *index
	plugins []admission.Interface
	client  *dynamicfake.FakeDynamicClient
	// mayCreateCPP is which users may create ClusterPropagationPolicies and ClusterOverridePolicies.
	mayCreateCPP map[string]bool
	options      Options
	// reads is who may get what, as "user group/resource namespace/name"; admin may all.
	reads map[string]bool
	// may are other rights, as "user verb resource namespace" or "user verb resource/subresource name".
	may map[string]bool
	// users are those that are known by more than their name.
	users map[string]*user.DefaultInfo
}

var listKinds = map[schema.GroupVersionResource]string{
	{Group: "policy.karmada.io", Version: "v1alpha1",
		Resource: "propagationpolicies"}: "PropagationPolicyList",
	{Group: "policy.karmada.io", Version: "v1alpha1",
		Resource: "clusterpropagationpolicies"}: "ClusterPropagationPolicyList",
	{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "overridepolicies"}: "OverridePolicyList",
	{Group: "release.argosy.io", Version: "v1alpha1",
		Resource: "releaserevisions"}: "ReleaseRevisionList",
	{Group: "policy.karmada.io", Version: "v1alpha1",
		Resource: "clusteroverridepolicies"}: "ClusterOverridePolicyList",
	{Group: "networking.karmada.io", Version: "v1alpha1",
		Resource: "multiclusterservices"}: "MultiClusterServiceList",
	{Group: "config.karmada.io", Version: "v1alpha1",
		Resource: "resourceinterpretercustomizations"}: "ResourceInterpreterCustomizationList",
	{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}: "CustomResourceDefinitionList",
	{Group: "work.karmada.io", Version: "v1alpha2",
		Resource: "resourcebindings"}: "ResourceBindingList",
	{Group: "work.karmada.io", Version: "v1alpha2",
		Resource: "clusterresourcebindings"}: "ClusterResourceBindingList",
	{Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters"}: "ClusterList",
	managedClusters: "ManagedClusterList",
	federatedQuotas: "FederatedResourceQuotaList",
	{Group: "autoscaling", Version: "v2",
		Resource: "horizontalpodautoscalers"}: "HorizontalPodAutoscalerList",
	{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}: "ScaledObjectList",
	{Group: "autoscaling.karmada.io", Version: "v1alpha1",
		Resource: "federatedhpas"}: "FederatedHPAList",
	releases: "ReleaseList",
	{Group: "release.argosy.io", Version: "v1alpha1",
		Resource: "releaseapprovals"}: "ReleaseApprovalList",
	{Version: "v1", Resource: "secrets"}:         "SecretList",
	{Version: "v1", Resource: "serviceaccounts"}: "ServiceAccountList",
	releaseGuards:       "ReleaseGuardList",
	namespaces:          "NamespaceList",
	roleBindings:        "RoleBindingList",
	clusterRoleBindings: "ClusterRoleBindingList",
}

// newHub holds the objects and has seen them all.
func newHub(t *testing.T, objects ...*unstructured.Unstructured) *hub {
	t.Helper()
	return newHubWith(t, Options{}, objects...)
}

// newHubWith is one with settings.
func newHubWith(t *testing.T, options Options, objects ...*unstructured.Unstructured) *hub {
	t.Helper()
	runtimeObjects := make([]runtime.Object, len(objects))
	for i := range objects {
		runtimeObjects[i] = objects[i]
	}
	h := &hub{t: t, client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds,
		runtimeObjects...),
		mayCreateCPP: map[string]bool{"admin": true}, options: options}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"},
		{Group: "apps.kruise.io", Version: "v1beta1"}, {Group: "apps", Version: "v1"},
		{Group: "rbac.authorization.k8s.io", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		mapper.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind},
			meta.RESTScopeRoot)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "SidecarSet"},
		meta.RESTScopeRoot)
	for _, kind := range []string{"CloneSet", "StatefulSet", "UnitedDeployment"} {
		mapper.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: kind}, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	for _, gvk := range append(kinds.Scalers(), autoscalingv1alpha1.GroupVersion.WithKind("FederatedHPA")) {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}

	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	for _, p := range Plugins(h.options) {
		plugin, err := p.New()
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := plugin.(interface{ SetRESTMapper(meta.RESTMapper) }); ok {
			w.SetRESTMapper(mapper)
		}
		if w, ok := plugin.(interface{ SetAuthorizer(authorizer.Authorizer) }); ok {
			w.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision,
				string, error) {
				if a.GetVerb() == "delete" && a.GetResource() == "clusters" && a.GetUser().GetName() == "admin" {
					return authorizer.DecisionAllow, "", nil
				}
				if (a.GetVerb() == "create" || a.GetVerb() == "delete") && a.GetResource() == "works" &&
					a.GetUser().GetName() == "admin" {
					return authorizer.DecisionAllow, "", nil
				}
				if a.GetVerb() == "create" && strings.HasPrefix(a.GetResource(), "cluster") &&
					strings.HasSuffix(a.GetResource(), "policies") && a.IsResourceRequest() && h.mayCreateCPP[a.GetUser().GetName()] {
					return authorizer.DecisionAllow, "", nil
				}
				if a.GetVerb() == "get" && (a.GetUser().GetName() == "admin" ||
					h.reads[fmt.Sprintf("%s %s/%s %s/%s", a.GetUser().GetName(), a.GetAPIGroup(), a.GetResource(), a.GetNamespace(),
						a.GetName())]) {
					return authorizer.DecisionAllow, "", nil
				}
				// Other rights are in h.may: "user verb resource namespace". admin has them all.
				if slices.Contains([]string{"list", "escalate", "bind", "update"}, a.GetVerb()) &&
					a.GetUser().GetName() == "admin" || a.GetAPIGroup() == "release.argosy.io" && a.GetUser().GetName() == "admin" ||
					strings.HasSuffix(a.GetAPIGroup(), "open-cluster-management.io") && a.GetUser().GetName() == "admin" ||
					a.GetAPIGroup() != registrations.Group && h.may[fmt.Sprintf("%s %s %s %s", a.GetUser().GetName(), a.GetVerb(),
						a.GetResource(), a.GetNamespace())] ||
					a.GetName() != "" && h.may[fmt.Sprintf("%s %s %s %s/%s", a.GetUser().GetName(), a.GetVerb(), a.GetResource(),
						a.GetNamespace(), a.GetName())] ||
					h.may[fmt.Sprintf("%s %s %s/%s %s", a.GetUser().GetName(), a.GetVerb(), a.GetResource(), a.GetSubresource(),
						a.GetName())] {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			}))
		}
		if w, ok := plugin.(interface{ SetDynamicClient(dynamic.Interface) }); ok {
			w.SetDynamicClient(h.client)
		}
		if w, ok := plugin.(interface{ SetDrainedNotification(<-chan struct{}) }); ok {
			w.SetDrainedNotification(done)
		}
		if err := admission.ValidateInitialization(plugin); err != nil {
			t.Fatal(err)
		}
		if c, ok := plugin.(*claim); ok {
			h.index = c.index
		}
		h.plugins = append(h.plugins, plugin)
	}
	h.wait("the index is fed", func() bool { return h.index.synced.Load() })
	return h
}

// interfaces converts built-in kinds, as an API server does.
var interfaces = admission.NewObjectInterfacesFromScheme(scheme.Scheme)

func (h *hub) wait(what string, holds func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("timed out: %s", what)
		}
	}
}

// write returns the object that a write of obj stores, and its warnings; old is nil for a creation.
func (h *hub) write(username string, obj,
	old *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	h.t.Helper()
	return h.writeTo("", username, obj, old)
}

// writeTo is write to a subresource; empty for the object itself.
func (h *hub) writeTo(subresource, username string, obj,
	old *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	h.t.Helper()
	obj = obj.DeepCopy()
	props, resource := schemaOf(h.t, obj)
	if props != nil {
		s, err := structuralschema.NewStructural(props)
		if err != nil {
			h.t.Fatal(err)
		}
		if unknown := pruning.PruneWithOptions(obj.Object, s, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
			h.t.Errorf("%s %s: strict decoding refuses %s", obj.GetKind(), obj.GetName(), strings.Join(unknown, ", "))
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, s)
		defaulting.Default(obj.Object, s)
	}
	operation := admission.Create
	var oldObject runtime.Object
	if old != nil {
		operation, oldObject = admission.Update, old
	}
	info := h.users[username]
	if info == nil {
		info = &user.DefaultInfo{Name: username}
	}
	a := admission.NewAttributesRecord(obj, oldObject, obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName(), resource,
		subresource, operation, nil, false, info)
	warnings := &recorder{}
	ctx := warning.WithWarningRecorder(context.Background(), warnings)
	for _, p := range h.plugins {
		if m, ok := p.(admission.MutationInterface); ok && p.Handles(operation) {
			if err := m.Admit(ctx, a, interfaces); err != nil {
				return nil, warnings.texts, err
			}
		}
	}
	if props != nil {
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			h.t.Fatal(err)
		}
		if errs := validation.ValidateCustomResource(nil, obj.Object, validator); len(errs) > 0 {
			return nil, warnings.texts, errs.ToAggregate()
		}
	}
	for _, p := range h.plugins {
		if v, ok := p.(admission.ValidationInterface); ok && p.Handles(operation) {
			if err := v.Validate(ctx, a, interfaces); err != nil {
				return nil, warnings.texts, err
			}
		}
	}
	return obj, warnings.texts, nil
}

// delete asks the plugins whether an object may be deleted.
func (h *hub) delete(username string, old *unstructured.Unstructured) error {
	h.t.Helper()
	_, resource := schemaOf(h.t, old)
	a := admission.NewAttributesRecord(nil, old, old.GroupVersionKind(), old.GetNamespace(), old.GetName(), resource, "",
		admission.Delete,
		nil, false, &user.DefaultInfo{Name: username})
	for _, p := range h.plugins {
		if !p.Handles(admission.Delete) {
			continue
		}
		if m, ok := p.(admission.MutationInterface); ok {
			if err := m.Admit(context.Background(), a, nil); err != nil {
				return err
			}
		}
		if v, ok := p.(admission.ValidationInterface); ok {
			if err := v.Validate(context.Background(), a, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// create is write of a new object by an admin, which must succeed.
func (h *hub) create(text string) *unstructured.Unstructured {
	h.t.Helper()
	obj, _, err := h.write("admin", object(h.t, text), nil)
	if err != nil {
		h.t.Fatalf("%s\n%v", text, err)
	}
	return obj
}

// refuses expects a write to be refused in these words.
func (h *hub) refuses(username string, obj, old *unstructured.Unstructured, words ...string) {
	h.t.Helper()
	_, _, err := h.write(username, obj, old)
	if err == nil {
		h.t.Errorf("%s %s is accepted, want a refusal with %q", obj.GetKind(), obj.GetName(), words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			h.t.Errorf("refusal %q does not say %q", err, w)
		}
	}
}

// refusesAsWebhook is refuses with the code of the webhooks of Open Cluster Management.
func (h *hub) refusesAsWebhook(username string, obj *unstructured.Unstructured, words ...string) {
	h.t.Helper()
	h.refuses(username, obj, nil, words...)
	if _, _, err := h.write(username, obj, nil); !apierrors.IsBadRequest(err) {
		h.t.Errorf("the refusal %v is no bad request", err)
	}
}

type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

var allDefinitions = sync.OnceValues(crds.Definitions)

// schemaOf returns the schema of one of our kinds; nil for any other.
func schemaOf(t *testing.T, obj *unstructured.Unstructured) (*apiextensions.JSONSchemaProps,
	schema.GroupVersionResource) {
	t.Helper()
	all, err := allDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	gvk := obj.GroupVersionKind()
	for _, crd := range all {
		if crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Name != gvk.Version {
				continue
			}
			props := &apiextensions.JSONSchemaProps{}
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema,
				props, nil); err != nil {
				t.Fatal(err)
			}
			return props, gvk.GroupVersion().WithResource(crd.Spec.Names.Plural)
		}
	}
	return nil, gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return obj
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
