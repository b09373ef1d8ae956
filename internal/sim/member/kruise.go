package member

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
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
func newManager(config *rest.Config, versions kruise.Versions) (ctrl.Manager, error) {
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
	return mgr, kruise.AddToManager(mgr, versions)
}

// kruiseAdmission stands for the mutating webhooks of the OpenKruise manager. All plugins made share the injector.
func (m *member) kruiseAdmission(injector *kruise.Injector) apiserver.AdmissionPlugin {
	return apiserver.AdmissionPlugin{
		Name: "KruiseSimulation",
		New: func() (admission.Interface, error) {
			return &webhooks{admission.NewHandler(admission.Create, admission.Update), injector}, nil
		},
	}
}

type webhooks struct {
	*admission.Handler
	injector *kruise.Injector
}

var _ admission.MutationInterface = &webhooks{}

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
	if injects, err := w.injector.Injects(ctx); err != nil {
		return apierrors.NewInternalError(err)
	} else if !injects {
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
