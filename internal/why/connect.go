package why

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Connect returns a reader and a mapper for Explain. They know the kinds that the hub serves now.
func Connect(hub *rest.Config) (client.Reader, meta.RESTMapper, error) {
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		return nil, nil, err
	}
	kinds := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(kinds), kinds, nil)
	c, err := client.New(hub, client.Options{Scheme: scheme, Mapper: mapper})
	return c, mapper, err
}

// Scheme returns the types that a reader for Explain must know. Callers must not change it.
func Scheme() *runtime.Scheme { return scheme }

// scheme holds what is read.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, autoscalingv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, ocmv1.AddToScheme,
		networkingv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme, releasev1alpha1.AddToScheme, remedyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in our types
		}
	}
	return s
}()

// AskHub reads what a hub answers at one of its own paths. The error is an API error where the hub refuses, or does not
// know the path.
func AskHub(ctx context.Context, hub *rest.Config, path string, params map[string]string, into any) error {
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		return err
	}
	request := d.RESTClient().Get().AbsPath(path)
	for name, value := range params {
		request = request.Param(name, value)
	}
	raw, err := RawAnswer(ctx, request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read what the hub says at %s: %w", path, err)
	}
	return nil
}

// RawAnswer returns what the hub answers to a request for one of its own paths. Its errors have the message and the
// reason of the hub; those of DoRaw have the code alone.
func RawAnswer(ctx context.Context, request *rest.Request) ([]byte, error) {
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}
