package admission

import (
	"cmp"
	"context"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// namedMost limits the clusters, namespaces and kinds of a policy that are looked for.
const namedMost = 50

// adviseNames warns the author of a policy, a MultiClusterService or a Remedy of names that do not exist, such as
// misspelt ones. Similar names are suggested only to users who may list them. Kinds that cannot be read are skipped.
func (o *objects) adviseNames(ctx context.Context, r request, n validate.Names) {
	if r.fromHub() || r.keepsSpec() || r.fieldValidation() == metav1.FieldValidationIgnore {
		return
	}
	advice := o.missingKinds(ctx, n.Kinds)
	for _, of := range []struct {
		resource schema.GroupVersionResource
		named    []validate.Named
		advice   func(validate.Named, []string) string
	}{
		{clusters, n.Clusters, validate.MissingCluster},
		{namespaces, n.Namespaces, validate.MissingNamespace},
	} {
		var missing []validate.Named
		looked := map[string]bool{}
		for _, named := range of.named {
			if looked[named.Value] || len(looked) == namedMost {
				continue
			}
			looked[named.Value] = true
			if of.resource == namespaces {
				if may, _ := o.authorized(ctx, r, right{verb: "get", resource: namespaces, name: named.Value}); !may {
					continue // do not reveal whether it exists; cluster names are no secret: each binding has them
				}
			}
			if _, err := o.client.Resource(of.resource).Get(ctx, named.Value,
				metav1.GetOptions{ResourceVersion: "0"}); apierrors.IsNotFound(err) {
				missing = append(missing, named)
			}
		}
		if len(missing) == 0 {
			continue
		}
		known, some := o.namesFor(ctx, r, of.resource)
		if !some {
			continue // policies may come before the first cluster
		}
		for _, named := range missing {
			advice = append(advice, of.advice(named, known))
		}
	}
	warn(ctx, advice, nil)
}

// missingKinds returns a warning for each kind that the hub does not serve.
func (o *objects) missingKinds(ctx context.Context, named []validate.NamedKind) (advice []string) {
	looked := map[schema.GroupKind]bool{}
	known := sync.OnceValue(func() []validate.NamedKind { return o.kindNames(ctx) })
	for _, k := range named {
		gk := match.GroupKind(k.APIVersion, k.Kind)
		if looked[gk] || len(looked) == namedMost {
			continue
		}
		looked[gk] = true
		if clientgoscheme.Scheme.Recognizes(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)) {
			continue // discovery need not be asked
		}
		if _, err := o.mapper.RESTMapping(gk); !meta.IsNoMatchError(err) {
			continue
		}
		// Discovery lags behind definitions.
		if !slices.ContainsFunc(known(), func(of validate.NamedKind) bool {
			return match.GroupKind(of.APIVersion, of.Kind) == gk
		}) {
			advice = append(advice, validate.MissingKind(k, known()))
		}
	}
	return advice
}

// namesFor returns the names of all objects of a resource if the user may list them, and whether there are any.
func (o *objects) namesFor(ctx context.Context, r request,
	resource schema.GroupVersionResource) (names []string, some bool) {
	list, err := o.client.Resource(resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) == 0 {
		return nil, false
	}
	if may, _ := o.authorized(ctx, r, right{verb: "list", resource: resource}); !may {
		return nil, true
	}
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names, true
}

// kindNames returns the kinds that a policy may name: kinds of Kubernetes and kinds defined on the hub, which every
// user may see. They are sorted, so that equal mistakes have equal messages.
func (o *objects) kindNames(ctx context.Context) []validate.NamedKind {
	var kinds []validate.NamedKind
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		if propagate.Propagable(gvk.GroupKind()) &&
			clientgoscheme.Scheme.PrioritizedVersionsForGroup(gvk.Group)[0] == gvk.GroupVersion() {
			kinds = append(kinds, validate.NamedKind{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind})
		}
	}
	var defined apiextensionsv1.CustomResourceDefinitionList
	_ = list(ctx, o.client.Resource(definitions), metav1.ListOptions{ResourceVersion: "0"}, &defined)
	for _, crd := range defined.Items {
		for _, v := range crd.Spec.Versions {
			if v.Served {
				kinds = append(kinds, validate.NamedKind{APIVersion: crd.Spec.Group + "/" + v.Name, Kind: crd.Spec.Names.Kind})
			}
		}
	}
	slices.SortFunc(kinds, func(a, b validate.NamedKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return kinds
}
