package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/core"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/sim/argo"
	"github.com/argosy-io/argosy/internal/sim/kruise"
)

// newManager has the controllers of volumes and, if there are versions of OpenKruise, of it and of Argo Workflows.
func newManager(ctx context.Context, config *rest.Config, versions kruise.Versions) (ctrl.Manager, error) {
	// What these controllers write is theirs: under the hub's own name, which the binary has too, the hub would take it
	// for its own.
	config = rest.CopyConfig(config)
	config.UserAgent = "simulated-controllers"
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Logger:  logr.New(klog.NewKlogr().GetSink()),
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return nil, err
	}
	if err := addVolumes(mgr); err != nil {
		return nil, err
	}
	if versions == nil {
		return mgr, nil
	}
	if err := argo.AddToManager(mgr); err != nil {
		return nil, err
	}
	return mgr, kruise.AddToManager(ctx, mgr, versions)
}

// kruiseAdmission stands for the webhooks of the OpenKruise manager. All plugins made share the injector.
func (m *member) kruiseAdmission(injector *kruise.Injector) apiserver.AdmissionPlugin {
	return apiserver.AdmissionPlugin{
		Name: "KruiseSimulation",
		New: func() (admission.Interface, error) {
			return &webhooks{
				Handler:   admission.NewHandler(admission.Create, admission.Update),
				injector:  injector,
				acceptAll: m.config.AcceptAll,
			}, nil
		},
	}
}

type webhooks struct {
	*admission.Handler
	client    kubernetes.Interface
	injector  *kruise.Injector
	acceptAll bool
}

var (
	_ admission.MutationInterface            = &webhooks{}
	_ admission.ValidationInterface          = &webhooks{}
	_ initializer.WantsExternalKubeClientSet = &webhooks{}
	_ admission.InitializationValidator      = &webhooks{}
)

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (w *webhooks) SetExternalKubeClientSet(c kubernetes.Interface) { w.client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (w *webhooks) ValidateInitialization() error {
	if w.client == nil {
		return errors.New("no client")
	}
	return nil
}

// Admit implements admission.MutationInterface.
func (w *webhooks) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch o := a.GetObject().(type) {
	case *core.Pod:
		if a.GetOperation() == admission.Create {
			return w.inject(ctx, a.GetNamespace(), o)
		}
	case *unstructured.Unstructured:
		defaults := kruise.Defaulter{
			Template: func(t *corev1.PodTemplateSpec) {
				full := &corev1.PodTemplate{Template: *t}
				coredefaults.SetObjectDefaults_PodTemplate(full)
				*t = full.Template
			},
			Claim: coredefaults.SetObjectDefaults_PersistentVolumeClaim,
		}
		if err := defaults.Default(o); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return nil
}

// inject gives a new pod its sidecars. Most pods have none, and are not even converted.
func (w *webhooks) inject(ctx context.Context, namespace string, pod *core.Pod) error {
	if !w.injector.Injects() {
		return nil
	}
	v1 := &corev1.Pod{}
	if err := coredefaults.Convert_core_Pod_To_v1_Pod(pod, v1, nil); err != nil {
		return apierrors.NewInternalError(err)
	}
	v1.Namespace = namespace
	injected, err := w.injector.Inject(ctx, v1)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("inject sidecars: %w", err))
	}
	if !injected {
		return nil
	}
	coredefaults.SetObjectDefaults_Pod(v1)
	return coredefaults.Convert_v1_Pod_To_core_Pod(v1, pod, nil)
}

// Validate implements admission.ValidationInterface.
func (w *webhooks) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	u, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok || a.GetSubresource() != "" || u.GetDeletionTimestamp() != nil || w.acceptAll {
		return nil
	}
	old, _ := a.GetOldObject().(*unstructured.Unstructured)
	errs := kruise.Validate(u, old, kruise.Finder{
		Pod: func(namespace, name string) (*corev1.Pod, error) {
			return w.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		SidecarRevision: func(set, customVersion, name string) error {
			return w.injector.FindRevision(ctx, set, customVersion, name)
		},
		SidecarSets: func() ([]unstructured.Unstructured, error) { return w.injector.SidecarSets(ctx) },
	})
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs)
}
