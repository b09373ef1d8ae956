package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	ocmworkv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/dialect"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

// request is a write of one of our kinds. Its objects are never nil but old, which is for a creation.
type request struct {
	admission.Attributes
	obj, old *unstructured.Unstructured
}

// kind has the steps that judge the objects of a kind. Either may be nil.
type kind struct {
	// mutate comes before the schema: it must bear shapes that the schema refuses, and leave the refusal to it.
	mutate func(context.Context, request) error
	// validate gets the object as it will be stored.
	validate func(context.Context, request) error
}

// objects normalises, defaults and validates our own kinds. Each kind or pair has a file in this package with its
// steps.
type objects struct {
	*admission.Handler
	Options
	kinds map[schema.GroupResource]kind
	index *index
	// scheme is Options.Scheme, made once.
	scheme func() (*runtime.Scheme, error)

	mapper     meta.RESTMapper
	authorizer authorizer.Authorizer
	client     dynamic.Interface
}

// typed returns a validation that gets the object in its type, and the stored one: nil for a creation, or if it cannot
// be read.
func typed[T any](validate func(_ context.Context, _ request, obj, was *T) error) func(context.Context,
	request) error {
	return func(ctx context.Context, r request) error {
		obj, was := new(T), new(T)
		if err := into(r.obj, obj); err != nil {
			return r.invalid(err)
		}
		if r.old == nil || into(r.old, was) != nil {
			was = nil
		}
		return validate(ctx, r, obj, was)
	}
}

// checking returns the validation of a kind that depends on the object only.
func checking[T any](check func(*T) field.ErrorList) func(context.Context, request) error {
	return typed(func(_ context.Context, r request, obj, _ *T) error { return r.refuse(check(obj)) })
}

// withDefaults returns the mutation of a kind that replaces alternative spellings and sets defaults in the spec.
func withDefaults[T any](setDefaults func(r request, obj *T)) func(context.Context, request) error {
	return func(ctx context.Context, r request) error {
		if err := r.normalise(ctx); err != nil {
			return err
		}
		obj := new(T)
		if into(r.obj, obj) != nil {
			return nil // the schema has the better error
		}
		before, err := generic(obj)
		if err != nil {
			return err
		}
		setDefaults(r, obj)
		return r.setSpec(before, obj)
	}
}

// ifChanged validates new objects, and updates that change the spec.
func ifChanged(validate func(context.Context, request) error) func(context.Context, request) error {
	return func(ctx context.Context, r request) error {
		if r.keepsSpec() {
			return nil
		}
		return validate(ctx, r)
	}
}

// normalise replaces alternative spellings. It is all of the mutation of some kinds.
func normalise(ctx context.Context, r request) error { return r.normalise(ctx) }

// setDefaults replaces alternative spellings, and sets the defaults of OpenKruise. A write that keeps the spec, such as
// of a label, does not add any.
func setDefaults(ctx context.Context, r request) error {
	err := r.normalise(ctx)
	if err == nil && !r.keepsSpec() {
		dialect.Default(r.obj)
	}
	return err
}

func newObjects(index *index, options Options) *objects {
	o := &objects{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), Options: options,
		index: index}
	if options.Scheme != nil {
		o.scheme = sync.OnceValues(options.Scheme)
	}
	propagation := kind{naming(o.mutatePropagation), o.validatePropagation}
	override := kind{naming(o.mutateOverride), o.validateOverride}
	binding := kind{o.mutateBinding, o.validateBinding}
	o.kinds = map[schema.GroupResource]kind{
		policyv1alpha1.Resource("propagationpolicies"):        propagation,
		policyv1alpha1.Resource("clusterpropagationpolicies"): propagation,
		policyv1alpha1.Resource("overridepolicies"):           override,
		policyv1alpha1.Resource("clusteroverridepolicies"):    override,
		policyv1alpha1.Resource("clustertaintpolicies"):       {nil, typed(o.validateClusterTaintPolicy)},
		policyv1alpha1.Resource("federatedresourcequotas"):    {nil, typed(o.validateFederatedResourceQuota)},
		appsv1alpha1.Resource("workloadrebalancers"):          {nil, ifChanged(typed(o.validateRebalancer))},
		remedyv1alpha1.Resource("remedies"):                   {nil, ifChanged(typed(o.validateRemedy))},
		autoscalingv1alpha1.Resource("federatedhpas"): {
			withDefaults(func(_ request, f *autoscalingv1alpha1.FederatedHPA) { validate.DefaultFederatedHPA(f) }),
			checking(validate.FederatedHPA)},
		autoscalingv1alpha1.Resource("cronfederatedhpas"):            {nil, checking(validate.CronFederatedHPA)},
		ocmv1.Resource("manifestworks"):                              {o.mutateManifestWork, typed(o.validateManifestWork)},
		ocmworkv1alpha1.Resource("manifestworkreplicasets"):          {mutateReplicaSet, typed(o.validateReplicaSet)},
		addonv1beta1.Resource("clustermanagementaddons"):             {nil, typed(o.validateClusterAddon)},
		addonv1beta1.Resource("managedclusteraddons"):                {nil, typed(o.validateAddon)},
		addonv1beta1.Resource("addontemplates"):                      {nil, ifChanged(typed(o.validateAddonTemplate))},
		addonv1beta1.Resource("addondeploymentconfigs"):              {nil, ifChanged(o.validateAddonSettings)},
		clusterv1.Resource("managedclusters"):                        {mutateManagedCluster, typed(o.validateManagedCluster)},
		setv1beta2.Resource("managedclustersetbindings"):             {nil, typed(o.validateSetBinding)},
		clusterv1alpha1.Resource("clusters"):                         {withDefaults(defaultCluster), typed(o.validateCluster)},
		configv1alpha1.Resource("resourceinterpretercustomizations"): {normalise, typed(o.validateCustomization)},
		configv1alpha1.Resource("resourceinterpreterwebhookconfigurations"): {nil,
			typed(o.validateWebhookConfiguration)},
		configv1alpha1.Resource("replicaschedulingpolicies"): {
			withDefaults(func(_ request, p *configv1alpha1.ReplicaSchedulingPolicy) { validate.DefaultReplicaScheduling(p) }),
			checking(validate.ReplicaScheduling)},
		networkingv1alpha1.Resource("multiclusterservices"): {o.mutateMultiClusterService,
			typed(o.validateMultiClusterService)},
		networkingv1alpha1.Resource("multiclusteringresses"): {normalise, checking(validate.MultiClusterIngress)},
		multiclusterv1alpha1.Resource("serviceimports"):      {nil, typed(o.validateServiceImport)},
		releasev1alpha1.Resource("releases"):                 {o.mutateRelease, o.validateRelease},
		releasev1alpha1.Resource("releasestrategies"): {nil, ifChanged(checking(
			func(s *releasev1alpha1.ReleaseStrategy) field.ErrorList {
				return validate.ReleaseStrategy(&s.Spec, field.NewPath("spec"))
			}))},
		releasev1alpha1.Resource("releasechecks"):    {nil, ifChanged(typed(o.validateReleaseCheck))},
		releasev1alpha1.Resource("releaseapprovals"): {o.mutateReleaseApproval, typed(o.validateReleaseApproval)},
		releasev1alpha1.Resource("releaserevisions"): {nil, ifChanged(o.validateReleaseRevision)},
		releasev1alpha1.Resource("releaseguards"): {nil, ifChanged(checking(
			func(g *releasev1alpha1.ReleaseGuard) field.ErrorList { return validate.ReleaseGuard(&g.Spec) }))},
		workv1alpha1.Resource("works"):                   {o.mutateWork, o.validateWork},
		workv1alpha2.Resource("resourcebindings"):        binding,
		workv1alpha2.Resource("clusterresourcebindings"): binding,
	}
	// Members validate templates, but they do not know the fields that come from guides, and an early error is better for
	// mistakes in pods.
	for _, resource := range []string{"clonesets", "statefulsets", "daemonsets", "uniteddeployments"} {
		o.kinds[schema.GroupResource{Group: "apps.kruise.io", Resource: resource}] = kind{setDefaults, adviseTemplate}
	}
	for group, resources := range map[string][]string{
		"apps.kruise.io": {"broadcastjobs", "advancedcronjobs", "ephemeraljobs", "imagepulljobs", "imagelistpulljobs",
			"workloadspreads",
			"persistentpodstates", "containerrecreaterequests"},
		"policy.kruise.io": {"podunavailablebudgets"},
		"argoproj.io":      {"rollouts", "workflows", "cronworkflows", "workflowtemplates", "clusterworkflowtemplates"},
	} {
		for _, resource := range resources {
			o.kinds[schema.GroupResource{Group: group, Resource: resource}] = kind{validate: adviseTemplate}
		}
	}
	o.kinds[schema.GroupResource{Group: "apps.kruise.io", Resource: "sidecarsets"}] = kind{o.mutateSidecarSet,
		adviseTemplate}
	return o
}

var (
	_ admission.MutationInterface   = &objects{}
	_ admission.ValidationInterface = &objects{}
)

func (o *objects) SetRESTMapper(m meta.RESTMapper) { o.mapper = m }

func (o *objects) SetAuthorizer(a authorizer.Authorizer) { o.authorizer = a }

func (o *objects) SetDynamicClient(c dynamic.Interface) {
	o.client = c
	o.index.feed(c)
}

func (o *objects) SetDrainedNotification(done <-chan struct{}) { o.index.endWith(done) }

func (o *objects) ValidateInitialization() error {
	if o.mapper == nil || o.authorizer == nil || o.client == nil {
		return fmt.Errorf("%s needs a RESTMapper, an authorizer and a client", ObjectsPlugin)
	}
	return nil
}

// Admit runs the mutation of the object's kind.
func (o *objects) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	k, r, ok := o.judge(a)
	if !ok || k.mutate == nil {
		return nil
	}
	return k.mutate(ctx, r)
}

// Validate runs the validation of the object's kind.
func (o *objects) Validate(ctx context.Context, a admission.Attributes, interfaces admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return o.validateDeletion(ctx, a)
	}
	if err := cmp.Or(o.refuseUnreadable(a), o.guardAddonStatus(a)); err != nil {
		return err
	}
	if err := o.refuseOverwrite(ctx, a); err != nil {
		return err
	}
	if err := o.refuseDirectChange(ctx, a, interfaces); err != nil {
		return err
	}
	if err := o.refuseVersionChange(ctx, a, interfaces); err != nil {
		return err
	}
	if errs := validate.Choices(annotationsOf(a.GetObject()), annotationsOf(a.GetOldObject())); len(errs) > 0 &&
		a.GetUserInfo().GetName() != user.APIServerUser {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	o.adviseQuota(ctx, a, interfaces)
	o.adviseAutoscalers(ctx, a, interfaces)
	if r, ok := native(a, interfaces); ok {
		o.adviseMissing(ctx, r)
		return nil
	}
	k, r, ok := o.judge(a)
	if ok {
		if err := o.guardRegistration(r); err != nil {
			return err
		}
	}
	// The deletion of an invalid object is not blocked: its finalizers must be removable. Its spec has effect until then,
	// so a change of the spec is validated.
	if !ok || k.validate == nil || r.obj.GetDeletionTimestamp() != nil && r.keepsSpec() && sameRelease(r) {
		return nil
	}
	if err := k.validate(ctx, r); err != nil {
		return err
	}
	o.adviseMissing(ctx, r)
	return nil
}

// validateDeletion judges deletions, those of a collection object by object.
func (o *objects) validateDeletion(ctx context.Context, a admission.Attributes) error {
	switch of := a.GetResource().GroupResource(); {
	case a.GetSubresource() != "":
		return nil
	case of == ocmv1.Resource("manifestworks"):
		return cmp.Or(o.refuseRendered(ctx, a), o.authorizeWorks(ctx, a, "delete"))
	case of == addonv1beta1.Resource("managedclusteraddons"):
		return o.refuseAddonDeletion(ctx, a)
	case of == ocmworkv1alpha1.Resource("manifestworkreplicasets"),
		of == addonv1beta1.Resource("clustermanagementaddons"):
		return o.authorizeFleet(ctx, a, "delete")
	case of == clusterv1alpha1.Resource("clusters"), of == clusterv1.Resource("managedclusters"):
		return o.refuseDerived(ctx, a)
	}
	return nil
}

func (o *objects) judge(a admission.Attributes) (kind, request, bool) {
	k, ok := o.kinds[a.GetResource().GroupResource()]
	if !ok || a.GetSubresource() != "" {
		return kind{}, request{}, false
	}
	obj, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return kind{}, request{}, false
	}
	old, _ := a.GetOldObject().(*unstructured.Unstructured)
	return k, request{a, obj, old}, true
}

// creating reports whether the object is new, and this is the first time that we see it: plugins may be asked again.
func (r request) creating() bool {
	return r.GetOperation() == admission.Create && !r.GetReinvocationContext().IsReinvoke()
}

// disown removes the managed fields of an object that our own controllers create. It costs a quarter of every write to
// maintain them, and only the hub sets these fields. A user who applies to the object still gets an entry.
func (r request) disown() {
	if r.creating() && r.fromHub() {
		r.obj.SetManagedFields(nil)
	}
}

// keepsSpec reports whether the request is an update that does not change the spec.
func (r request) keepsSpec() bool {
	return r.old != nil && equality.Semantic.DeepEqual(r.old.Object["spec"], r.obj.Object["spec"])
}

// fromHub reports whether the hub's own controllers sent the request.
func (r request) fromHub() bool { return r.GetUserInfo().GetName() == user.APIServerUser }

// normalise rewrites the object to canonical spelling, and warns of that and of new fields that are valid but probably
// a mistake.
func (r request) normalise(ctx context.Context) error {
	_, warnings, err := dialect.Normalise(r.obj)
	if err != nil {
		return r.invalid(err)
	}
	var known []string
	if r.old != nil {
		known = dialect.Advise(r.old)
	}
	warn(ctx, warnings, nil)
	warn(ctx, dialect.Advise(r.obj), known)
	return nil
}

// refuse returns the API server's error for invalid fields; nil if there are none.
func (r request) refuse(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.GetKind().GroupKind(), r.name(), errs)
}

// refuseAsWebhook is refuse with the code of the webhooks of Open Cluster Management, which its clients expect.
func refuseAsWebhook(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewBadRequest(errs.ToAggregate().Error())
}

// invalid returns the refusal for an error that is no field error. Clients print the causes, not the message.
func (r request) invalid(err error) error {
	status := apierrors.NewInvalid(r.GetKind().GroupKind(), r.name(), nil)
	status.ErrStatus.Message += ": " + err.Error()
	reasons := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		reasons = joined.Unwrap()
	}
	for _, reason := range reasons {
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: reason.Error()}
		var e *dialect.Error
		if errors.As(reason, &e) {
			cause.Field, cause.Message = e.Field, e.Message
		}
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, cause)
	}
	return status
}

func (r request) name() string {
	if n := r.GetName(); n != "" {
		return n
	}
	return r.obj.GetName()
}

// into decodes obj. A mutation ignores the error, since the schema has the better one.
func into(obj *unstructured.Unstructured, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed)
}

// decoded returns the objects of a request; old is nil for a creation.
func decoded[T any](r request) (obj, old *T, err error) {
	obj = new(T)
	if err := into(r.obj, obj); err != nil {
		return nil, nil, r.invalid(err)
	}
	if r.old != nil {
		old = new(T)
		if err := into(r.old, old); err != nil {
			return nil, nil, r.invalid(err)
		}
	}
	return obj, old, nil
}

// setSpec writes into the spec only what differs between two states of the object in its type; before is generic. The
// whole spec would add zero values for missing required fields, which would then pass validation.
func (r request) setSpec(before map[string]any, after any) error {
	is, err := generic(after)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(before["spec"], is["spec"]) { // a missing spec stays missing
		r.obj.Object["spec"] = change(r.obj.Object["spec"], before["spec"], is["spec"])
	}
	return nil
}

// generic converts through JSON: the converter leaves unsigned integers, which unstructured objects must not contain.
func generic(typed any) (map[string]any, error) {
	data, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", typed, err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode %T: %w", typed, err)
	}
	return m, nil
}

// change applies the difference between was and is to dst. Lists of another length are replaced.
func change(dst, was, is any) any {
	if reflect.DeepEqual(was, is) {
		return dst
	}
	switch is := is.(type) {
	case map[string]any:
		was, typed := was.(map[string]any)
		dst, there := dst.(map[string]any)
		if !typed || !there {
			break
		}
		for key := range was {
			if _, kept := is[key]; !kept {
				delete(dst, key)
			}
		}
		for key, value := range is {
			if !reflect.DeepEqual(was[key], value) {
				dst[key] = change(dst[key], was[key], value)
			}
		}
		return dst
	case []any:
		was, typed := was.([]any)
		dst, there := dst.([]any)
		if !typed || !there || len(was) != len(is) || len(dst) != len(is) {
			break
		}
		for i := range is {
			dst[i] = change(dst[i], was[i], is[i])
		}
		return dst
	}
	return is
}

// list reads the objects of a resource into a list of their Go type.
func list(ctx context.Context, of dynamic.ResourceInterface, o metav1.ListOptions, into any) error {
	found, err := of.List(ctx, o)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), into)
}

// get reads an object into its Go type; nil if there is none.
func get[T any](ctx context.Context, of dynamic.ResourceInterface, name string) (*T, error) {
	found, err := of.Get(ctx, name, metav1.GetOptions{})
	switch {
	case commit.Absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	obj := new(T)
	if err := into(found, obj); err != nil {
		return nil, err
	}
	return obj, nil
}
