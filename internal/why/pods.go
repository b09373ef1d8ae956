package why

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/scope"
)

// PodsPath is the path of PodsHandler. GET returns, as JSON, a TroubledPods: the templates of all namespaces with pods
// in trouble. A right to the nonResourceURL is a right to read this for every namespace.
const PodsPath = "/argosy/pods"

// podsDetailed is the number of templates at PodsPath, and of clusters at the path of one binding, with all details.
// Others, up to podsShown in all, have one trouble without its message: readers decide states by them.
const (
	podsDetailed = 100
	podsShown    = 10000
)

// BindingPods is the subresource of a ResourceBinding that BindingPodsHandler serves: a TroubledPods of its template,
// by cluster. A right to it in a namespace is a right to read this for all templates there.
const BindingPods = "pods"

// TroubledPods are templates with pods in trouble, by namespace, name, kind and cluster. More is the number of others.
type TroubledPods struct {
	Workloads []pods.Workload `json:"workloads"`
	More      int             `json:"more,omitempty"`
}

// Troubled returns the templates with pods in trouble in a namespace, or in all for "". For the template of a binding,
// which may be nil, it also asks members why they create no pods. running is false if this process runs no controllers.
type Troubled func(ctx context.Context, namespace string, of workv1alpha2.Binding) (all []pods.Workload, running bool,
	err error)

// PodsHandler serves the knowledge of the controllers in this process.
func PodsHandler(connect Connector, troubled Troubled) http.Handler {
	return answering(connect, func(ctx context.Context, _ url.Values, _ client.Reader, _ meta.RESTMapper) (any, error) {
		return shown(troubled(ctx, "", nil))
	})
}

// BindingPodsHandler serves one ResourceBinding.
func BindingPodsHandler(connect Connector, troubled Troubled, binding types.NamespacedName) http.Handler {
	return answering(connect, func(ctx context.Context, _ url.Values, r client.Reader, _ meta.RESTMapper) (any, error) {
		b, err := scope.Bindings.Get(ctx, r, binding)
		if err != nil {
			return nil, fail(metav1.StatusReasonNotFound, "read the binding: %v", err)
		}
		return troubledOf(ctx, troubled, b)
	})
}

func troubledOf(ctx context.Context, troubled Troubled, b workv1alpha2.Binding) (TroubledPods, error) {
	all, running, err := troubled(ctx, b.GetNamespace(), b)
	ref := b.BindingSpec().Resource
	all = slices.DeleteFunc(all, func(w pods.Workload) bool {
		return w.APIVersion != ref.APIVersion || w.Kind != ref.Kind || w.Name != ref.Name
	})
	return shown(all, running, err)
}

func shown(all []pods.Workload, running bool, err error) (TroubledPods, error) {
	switch {
	case err != nil:
		return TroubledPods{}, err
	case !running:
		return TroubledPods{}, fail(metav1.StatusReasonServiceUnavailable,
			"the controllers do not run in this replica of the hub")
	}
	n := min(len(all), podsShown)
	some := append([]pods.Workload{}, all[:n]...)
	for i := podsDetailed; i < n; i++ {
		some[i].Report = some[i].Brief()
	}
	return TroubledPods{Workloads: some, More: len(all) - n}, nil
}

// PodsOf reads PodsPath of a hub. It returns an API error if the hub refuses the request or does not know the path.
func PodsOf(ctx context.Context, hub *rest.Config) (answer TroubledPods, err error) {
	return answer, AskHub(ctx, hub, PodsPath, nil, &answer)
}

// Pods returns why pods of a binding's template do not run.
type Pods func(ctx context.Context, b workv1alpha2.Binding) why.Pods

// PodsOfBinding asks a hub at the address of a binding. A hub that gives no answer leaves it unknown; one that refuses
// says so.
func PodsOfBinding(hub *rest.Config) Pods {
	return func(ctx context.Context, b workv1alpha2.Binding) why.Pods {
		if b.GetNamespace() == "" {
			return why.Pods{} // what is in no namespace has none
		}
		path := "/apis/" + workv1alpha2.GroupVersion.String() + "/namespaces/" + b.GetNamespace() + "/resourcebindings/" +
			b.GetName() + "/" + BindingPods
		var answer TroubledPods
		err := AskHub(ctx, hub, path, nil, &answer)
		return podsSeen(answer, err)
	}
}

// PodsHere reads from the controllers in this process.
func PodsHere(troubled Troubled) Pods {
	return func(ctx context.Context, b workv1alpha2.Binding) why.Pods {
		if troubled == nil || b.GetNamespace() == "" {
			return why.Pods{}
		}
		return podsSeen(troubledOf(ctx, troubled, b))
	}
}

// AllPodsHere reads those of all namespaces from the controllers in this process. It returns none if they run
// elsewhere.
func AllPodsHere(troubled Troubled) func(ctx context.Context) []pods.Workload {
	return func(ctx context.Context) []pods.Workload {
		if troubled == nil {
			return nil
		}
		all, _, _ := troubled(ctx, "", nil)
		return all
	}
}

func podsSeen(answer TroubledPods, err error) why.Pods {
	if err != nil {
		return why.Pods{Unseen: apierrors.IsForbidden(err)}
	}
	seen := why.Pods{In: map[string]pods.Report{}, More: answer.More}
	for _, w := range answer.Workloads {
		seen.In[w.Cluster] = w.Report
	}
	return seen
}
