package console

import (
	"context"
	"io"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"

	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/internal/why"
)

const (
	searchPath = apiPrefix + "search"
	// maxSearchRows and maxSearchBytes bound the objects of an answer, and what the hub reads for it. Labels and
	// annotations are in it: who may write objects in a member chooses their size.
	maxSearchRows  = 500
	maxSearchBytes = 8 << 20
)

// searchAnswer is the answer at searchPath.
type searchAnswer struct {
	memberObjects
	// Kind is empty if the hub does not serve it.
	APIVersion string `json:"apiVersion"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind,omitempty"`
	// More is true if there may be others.
	More bool `json:"more,omitempty"`
	// Warnings name the clusters that are left out.
	Warnings []string `json:"warnings,omitempty"`
}

// search answers what follows `argosy search` on a command line, in the parameter q. It asks the API of search as the
// user, as the command does.
func (a *API) search(r *http.Request, u user.Info) (any, error) {
	q, err := search.ParseQuestion(r.URL.Query().Get("q"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if q.Limit <= 0 || q.Limit > maxSearchRows {
		q.Limit = maxSearchRows
	}
	mapper, err := a.kinds.mapper()
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("reach the hub's API: " + err.Error())
	}
	end, err := a.countReading(u)
	if err != nil {
		return nil, err
	}
	defer end()
	config := a.configOf(u)
	config.Timeout = changeTimeout // that of this answer; without one, client-go sets a shorter one
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	request, gvr, err := q.Request(hub.RESTClient(), mapper)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	seen := &apiWarnings{}
	stream, err := request.SetHeader("Accept", tableType).MaxRetries(0).
		Stream(context.WithValue(r.Context(), apiWarningsKey{}, seen))
	if why.MissingOf(err, "get", "") != nil { // a denial of the hub's RBAC
		part := "apis"
		if gvr.Group == "" {
			part = "api"
		}
		return nil, right{verb: "get", group: searchv1alpha1.GroupVersion.Group, resource: "search",
			subresource: part}.missing()
	}
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	raw, err := io.ReadAll(io.LimitReader(stream, maxSearchBytes+1))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("read the answer of the hub: " + err.Error())
	}
	if len(raw) > maxSearchBytes {
		return nil, badRequest("the labels and annotations of the objects have more than %d "+
			"MiB: select fewer objects, or give a lower --limit", maxSearchBytes>>20)
	}
	kind, err := mapper.KindFor(gvr)
	if err != nil {
		kind = schema.GroupVersionKind{} // only members serve it
	}
	objects, err := readObjects(raw, func(obj *unstructured.Unstructured) memberObject {
		return foundObject(obj, kind.GroupKind())
	})
	if err != nil {
		return nil, err
	}
	answer := searchAnswer{memberObjects: *objects, APIVersion: gvr.GroupVersion().String(), Resource: gvr.Resource,
		More: q.More(len(objects.Rows), objects.Continue), Warnings: seen.texts}
	answer.Continue = "" // a search has no pages
	answer.Kind = kind.Kind
	return answer, nil
}

// foundObject has a template only if its binding is that of its own kind and name: what another object encloses has
// none.
func foundObject(obj *unstructured.Unstructured, gk schema.GroupKind) memberObject {
	notes := obj.GetAnnotations()
	row := rowOfObject(obj, notes[searchv1alpha1.CachedFromAnnotation])
	row.Cluster = notes[searchv1alpha1.CachedFromAnnotation]
	row.Template = row.Managed && slices.Contains(names.Bindings(gk, obj.GetName()),
		notes[workv1alpha2.ResourceBindingNameAnnotation]+notes[workv1alpha2.ClusterResourceBindingNameAnnotation])
	return row
}
