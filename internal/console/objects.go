package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

const (
	kindsPath   = apiPrefix + "kinds"
	objectsPath = apiPrefix + "objects"
	// maxObjectRows bounds the objects of one answer.
	maxObjectRows = 250
	// tableType is the media type of objects as kubectl prints them.
	tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// memberKind is a kind of a member whose objects can be listed.
type memberKind struct {
	APIVersion string `json:"apiVersion"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// valid reports whether the kind can be in an address. A member names its kinds itself, and a name must not lead out of
// the member.
func (k memberKind) valid() bool {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	return err == nil && (gv.Group == "" || len(validation.IsDNS1123Subdomain(gv.Group)) == 0) &&
		len(validation.IsDNS1123Label(gv.Version)) == 0 && len(validation.IsDNS1123Label(k.Resource)) == 0
}

// validNamespace reports whether a namespace is the name of one, or empty.
func validNamespace(namespace string) bool {
	return namespace == "" || len(validation.IsDNS1123Label(namespace)) == 0
}

// memberObjects is the answer at objectsPath: a table as the member prints it for kubectl.
type memberObjects struct {
	Columns []string       `json:"columns"`
	Rows    []memberObject `json:"rows"`
	// Continue is the token of the next page; empty if there is none.
	Continue string `json:"continue,omitempty"`
}

type memberObject struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is empty if all objects of the answer are in one.
	Cluster string `json:"cluster,omitempty"`
	// Managed is true if this hub has written the object. Template is true if it has a template of its name and kind.
	Managed  bool  `json:"managed"`
	Template bool  `json:"template,omitempty"`
	Cells    []any `json:"cells"`
}

// memberOf returns the configuration that reaches the member which a request names, as the user.
func (a *API) memberOf(r *http.Request, u user.Info) (config *rest.Config, cluster string, err error) {
	cluster = r.URL.Query().Get("cluster")
	if len(validation.IsDNS1123Subdomain(cluster)) > 0 {
		return nil, "", badRequest("give the name of a cluster")
	}
	config = proxy.Config(a.configOf(u), cluster)
	config.Timeout = memberTimeout
	return config, cluster, nil
}

// memberKinds lists the kinds that a member serves now and whose objects can be listed: cluster.
func (a *API) memberKinds(r *http.Request, u user.Info) (any, error) {
	config, cluster, err := a.memberOf(r, u)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), memberTimeout)
	defer cancel()
	// Discovery takes no context, and sends a request for each group.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return within{ctx, next} })
	d, err := discovery.NewDiscoveryClientForConfig(config)
	var lists []*metav1.APIResourceList
	if err == nil {
		// Discovery takes a refusal for an empty answer.
		err = d.RESTClient().Get().AbsPath("/api").Do(ctx).Error()
	}
	if err == nil {
		// Without the answer of an aggregated API, the other kinds are known.
		if lists, err = d.ServerPreferredResources(); discovery.IsGroupDiscoveryFailedError(err) && len(lists) > 0 {
			err = nil
		}
	}
	if err != nil {
		return nil, memberError(err, cluster, "get", "")
	}
	kinds := []memberKind{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		for _, one := range list.APIResources {
			if k := (memberKind{list.GroupVersion, one.Name, one.Kind, one.Namespaced}); k.valid() {
				kinds = append(kinds, k)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b memberKind) int { // discovery has them in no order
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.APIVersion, b.APIVersion))
	})
	return map[string]any{"kinds": kinds}, nil
}

// within sends requests that end with a context.
type within struct {
	ctx  context.Context
	next http.RoundTripper
}

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(r.WithContext(w.ctx))
}

// objects lists the objects of a kind in a member: cluster, apiVersion and resource, and optionally namespace and
// continue.
func (a *API) objects(r *http.Request, u user.Info) (any, error) {
	v := r.URL.Query()
	kind, namespace := memberKind{APIVersion: v.Get("apiVersion"), Resource: v.Get("resource")}, v.Get("namespace")
	if !kind.valid() || !validNamespace(namespace) {
		return nil, badRequest("give a kind, and no more than one namespace")
	}
	config, cluster, err := a.memberOf(r, u)
	if err != nil {
		return nil, err
	}
	answer, err := listObjects(r.Context(), config, cluster, kind, namespace, v.Get("continue"))
	if err != nil {
		return nil, memberError(err, cluster, "list", namespace)
	}
	return answer, nil
}

func listObjects(ctx context.Context, config *rest.Config, cluster string, kind memberKind, namespace,
	more string) (*memberObjects, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	gv, _ := schema.ParseGroupVersion(kind.APIVersion) // it is valid
	path := []string{"apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"api", gv.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	result := d.RESTClient().Get().AbsPath(append(path, kind.Resource)...).
		SetHeader("Accept", tableType+", application/json").
		Param("limit", fmt.Sprint(maxObjectRows)).Param("continue", more).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	return readObjects(raw, func(obj *unstructured.Unstructured) memberObject { return rowOfObject(obj, cluster) })
}

// readObjects returns the objects of a table or, for an API that prints none, those of a list.
func readObjects(raw []byte, rowOf func(*unstructured.Unstructured) memberObject) (*memberObjects, error) {
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("read the answer of the cluster: %w", err)
	}
	if table.Kind != "Table" { // some aggregated APIs print none
		return plainObjects(raw, rowOf)
	}
	answer := &memberObjects{Columns: []string{}, Rows: []memberObject{}, Continue: table.Continue}
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			answer.Columns = append(answer.Columns, c.Name)
		}
	}
	for _, row := range table.Rows {
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(row.Object.Raw, &obj.Object); err != nil {
			return nil, fmt.Errorf("read the answer of the cluster: %w", err)
		}
		one := rowOf(obj)
		for i, c := range table.ColumnDefinitions {
			if c.Priority == 0 && i < len(row.Cells) {
				one.Cells = append(one.Cells, row.Cells[i])
			}
		}
		answer.Rows = append(answer.Rows, one)
	}
	return answer, nil
}

// plainObjects returns the names of the objects in a list.
func plainObjects(raw []byte, rowOf func(*unstructured.Unstructured) memberObject) (*memberObjects, error) {
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("read the answer of the cluster: %w", err)
	}
	answer := &memberObjects{Columns: []string{"Name"}, Rows: []memberObject{}, Continue: list.GetContinue()}
	for i := range list.Items {
		one := rowOf(&list.Items[i])
		one.Cells = append(one.Cells, one.Name)
		answer.Rows = append(answer.Rows, one)
	}
	return answer, nil
}

// memberError returns the answer to an error of a read in a member. The member chooses none of the answers that mean
// something else to the page: 401 would end the login of the user.
func memberError(err error, cluster, verb, namespace string) error {
	var missing *Missing
	if err = missingInMember(err, cluster, verb, namespace); errors.As(err, &missing) {
		return missing
	}
	code := codeOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = http.StatusGatewayTimeout
	case code != http.StatusForbidden && code != http.StatusNotFound && code != http.StatusServiceUnavailable &&
		code != http.StatusGatewayTimeout:
		code = http.StatusBadGateway
	}
	return apistatus.Error(code, apierrors.ReasonForError(err), err.Error())
}

func rowOfObject(obj *unstructured.Unstructured, cluster string) memberObject {
	_, managed := execute.WorkOf(obj, cluster)
	return memberObject{Namespace: obj.GetNamespace(), Name: obj.GetName(), Managed: managed, Cells: []any{}}
}

// missingInMember returns a *Missing for an error that a read in a member is forbidden: by the hub, or by the member.
// Otherwise it returns the error.
func missingInMember(err error, cluster, verb, namespace string) error {
	var status apierrors.APIStatus
	if apierrors.IsForbidden(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Group == clusterv1alpha1.GroupVersion.Group {
		return right{verb: "get", group: clusterv1alpha1.GroupVersion.Group, resource: "clusters",
			subresource: "proxy"}.missing()
	}
	var missing *Missing
	if err = missingOf(err, verb, namespace); errors.As(err, &missing) {
		missing.Cluster, missing.Role = cluster, "" // the roles of the hub are not in the member
	}
	return err
}
