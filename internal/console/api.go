package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/why"
)

// Options has the sources that the API reads.
type Options struct {
	// Config reaches the hub with full rights, inside the process.
	Config *rest.Config
	// Cached returns the cache of this hub's controllers; nil while they run elsewhere.
	Cached func() Cache
	// Authorizer returns the authorizer of the API server.
	Authorizer func() authorizer.Authorizer
	// Findings returns the problems of the hub itself, for users who may get HealthPath.
	Findings   func() []upkeep.Finding
	HealthPath string
	// Troubled, Room and Scheduler answer from the state of the scheduler.
	Troubled  why.Troubled
	Room      why.Room
	Scheduler why.Scheduler
	// Join joins a cluster to the hub with the user's rights; nil if this process cannot.
	Join Join
	// Simulate simulates changes with the user's rights; nil if this process cannot.
	Simulate Simulate
	// URL is the address at which the hub serves.
	URL string
	// History is the release history; nil if the hub keeps none.
	History *history.Source
	// Done ends the streams.
	Done <-chan struct{}
}

// Join joins the cluster of a kubeconfig that is safe to use. hub acts with the rights of the user. progress is called
// with the name of each step that is done.
type Join func(ctx context.Context, hub *rest.Config, r JoinRequest, progress func(step, detail string)) error

type JoinRequest struct {
	Name     string   `json:"name"`
	Region   string   `json:"region,omitempty"`
	Provider string   `json:"provider,omitempty"`
	Zones    []string `json:"zones,omitempty"`
	TakeOver bool     `json:"takeOver,omitempty"`
	// Kubeconfig is its text. Member is the configuration that was read from it.
	Kubeconfig string       `json:"kubeconfig"`
	Member     *rest.Config `json:"-"`
	// Hub is the address at which the hub serves.
	Hub string `json:"-"`
}

// API answers the console's pages. The API server has authenticated and authorized each request.
type API struct {
	Options
	layer  *Layer
	rights *rights
	rows   *rows
	kinds  *kinds

	version *historyVersion
	// namespaces has the answers of timelineNamespaces by identity for rightsAge: an open page asks every few seconds, and
	// a hub can have thousands of namespaces. Because seesEntry checks each entry, an old answer never shows more than the
	// rights of the user.
	namespaces *cache.LRUExpireCache
	pods       *podReads

	mu      sync.Mutex
	streams map[string]int // by user

	// connect returns a client of a configuration. Tests replace it.
	connect func(*rest.Config, meta.RESTMapper) (client.Client, error)
	// simulations has an entry for each that runs, and readings counts those of each user.
	simulations chan struct{}
	readings    map[string]int
}

// NewAPI returns the API of a hub. layer may be nil where no link is to be made.
func NewAPI(o Options, layer *Layer) *API {
	a := &API{Options: o, layer: layer, streams: map[string]int{}, simulations: make(chan struct{}, maxSimulations),
		readings: map[string]int{}}
	a.connect = func(config *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
		return client.New(config, client.Options{Scheme: why.Scheme(), Mapper: mapper})
	}
	a.kinds = &kinds{config: o.Config, now: time.Now}
	a.rights = &rights{authorizer: o.Authorizer, known: cache.NewLRUExpireCache(maxRights)}
	a.rows = newRows(o)
	a.version = &historyVersion{now: time.Now}
	a.namespaces = cache.NewLRUExpireCache(maxUsers)
	a.pods = &podReads{known: map[string]*podRead{}}
	return a
}

// Handler answers Paths, and leaves all else to next.
func (a *API) Handler(next http.Handler) http.Handler {
	answers := map[string]func(*http.Request, user.Info) (any, error){
		mePath: a.me, linkPath: a.link, whyPath: a.why, actionsPath: a.actions, objectPath: a.object, changePath: a.change,
		pastPath: a.past, releasePath: a.release, evidencePath: a.evidence, timelinePath: a.entries, podsPath: a.podsNow,
		kindsPath: a.memberKinds, objectsPath: a.objects, policiesPath: a.policies, unclaimedPath: a.unclaimed,
		usagePath: a.usage, searchPath: a.search}
	streams := map[string]func(http.ResponseWriter, *http.Request, user.Info){
		streamPath: a.serveStream, importPath: a.serveImport}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, stream := answers[r.URL.Path], streams[r.URL.Path]
		if answer == nil && stream == nil {
			next.ServeHTTP(w, r)
			return
		}
		w = display{w}
		method := http.MethodGet
		if slices.Contains(posts, r.URL.Path) {
			method = http.MethodPost
		}
		if r.Method != method {
			w.Header().Set("Allow", method)
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "use "+method)
			return
		}
		u, known := request.UserFrom(r.Context())
		if !known || slices.Contains(u.GetGroups(), user.AllUnauthenticated) {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, errNoSession.Error())
			return
		}
		for _, parameter := range []string{"namespace", "name"} {
			value := r.URL.Query().Get(parameter)
			if wrong := content.IsPathSegmentName(value); len(wrong) > 0 {
				refuseError(w, badRequest("%s %q %s", parameter, value, strings.Join(wrong, ", ")))
				return
			}
		}
		if stream != nil {
			stream(w, r, u)
			return
		}
		timeout := whyTimeout
		if slices.Contains([]string{changePath, searchPath, usagePath}, r.URL.Path) {
			timeout = changeTimeout
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		v, err := answer(r.WithContext(ctx), u)
		if err != nil {
			refuseError(w, err)
			return
		}
		respond(w, v)
	})
}

func badRequest(format string, values ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, values...))
}

// posts lists the paths that take POST. All others take GET.
var posts = []string{linkPath, importPath, changePath}

// LongRunning reports whether a request is a stream, which has no timeout.
func LongRunning(r *http.Request) bool { return r.URL.Path == streamPath || r.URL.Path == importPath }

// userAnswer describes the user to the pages, before they read anything else.
type userAnswer struct {
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Ends is the end of the login unless it is used.
	Ends *time.Time `json:"ends,omitempty"`
	// Master is true for members of system:masters, whom no role limits.
	Master bool `json:"master,omitempty"`
	// Join reports whether the user may join clusters.
	Join bool `json:"join"`
}

func (a *API) me(r *http.Request, u user.Info) (any, error) {
	m := userAnswer{User: u.GetName(), Groups: u.GetGroups(),
		Master: slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)}
	if s := loginOf(r).session; s != nil {
		m.Ends = new(s.end().UTC())
	}
	m.Join = a.Join != nil && a.rights.allows(r.Context(), u, createClusters)
	return m, nil
}

func (a *API) link(r *http.Request, u user.Info) (any, error) {
	if a.layer == nil {
		return nil, apistatus.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "this hub serves no console")
	}
	code, ends, err := a.layer.newLink(r, u)
	var wrong *refusal
	if errors.As(err, &wrong) {
		return nil, apistatus.Error(http.StatusForbidden, metav1.StatusReasonForbidden, wrong.Error())
	}
	return Link{Code: code, Ends: ends}, err
}

// Link is the answer to a POST to LinkPath.
type Link struct {
	Code string    `json:"code"`
	Ends time.Time `json:"ends"`
}

// LinkPath is the address at which the CLI gets the code of a one-time link.
const LinkPath = linkPath

// LinkURL returns the one-time link of a code. The code is in the fragment, which browsers do not send to servers.
func LinkURL(hub, code string) string { return hub + Path + "#login=" + code }

// configOf returns a configuration that acts as the user.
func (a *API) configOf(u user.Info) *rest.Config {
	config := rest.CopyConfig(a.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(),
		Extra: u.GetExtra()}
	config.UserAgent, config.WarningHandlerWithContext = "argosy-console", &apiWarnings{}
	return config
}

// whyTimeout bounds an answer.
const whyTimeout = 20 * time.Second

// why explains an object like `argosy why` run by the user: kind, namespace, name and cluster.
func (a *API) why(r *http.Request, u user.Info) (any, error) {
	c, mapper, err := a.clientFor(u)
	if err != nil {
		return nil, err
	}
	ctx, v := r.Context(), r.URL.Query()
	q := why.Query{Kind: v.Get("kind"), Namespace: v.Get("namespace"), Name: v.Get("name"), Cluster: v.Get("cluster")}
	if a.rights.allowsGet(ctx, u, why.SchedulerPath) {
		q.Scheduler = a.Scheduler
	}
	if a.rights.allowsGet(ctx, u, why.RoomPath) {
		q.Room = a.Room
	}
	everywhere := a.rights.allowsGet(ctx, u, why.PodsPath)
	if everywhere {
		q.Troubled = why.AllPodsHere(a.Troubled)
	}
	if everywhere || a.rights.allows(ctx, u, podsOfBindings(q.Namespace)) {
		q.Pods = why.PodsHere(a.Troubled)
	}
	return why.Explain(ctx, c, mapper, q)
}

// maxKubeconfig bounds the request that imports a cluster. Any user may send one.
const maxKubeconfig = 64 << 10

// serveImport joins a cluster and reports each step as it is done, one JSON object a line.
func (a *API) serveImport(w http.ResponseWriter, r *http.Request, u user.Info) {
	in, err := a.joinRequest(r, u)
	if err != nil {
		refuseError(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), importTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	write := func(v any) {
		_ = json.NewEncoder(w).Encode(v) // fails only if the client is gone
		_ = flush.Flush()
	}
	err = a.Join(ctx, a.configOf(u), in, func(step, detail string) {
		write(map[string]string{"step": step, "detail": detail})
	})
	if err != nil {
		klog.V(1).InfoS("a cluster was not joined by the console", "cluster", in.Name, "user", u.GetName(), "reason", err)
		write(map[string]string{"error": err.Error()})
		return
	}
	write(map[string]any{"joined": in.Name})
}

func (a *API) joinRequest(r *http.Request, u user.Info) (in JoinRequest, err error) {
	// The hub connects to the address in the kubeconfig: only users who may join clusters can make it do so.
	if !a.rights.allows(r.Context(), u, createClusters) {
		return in, createClusters.missing()
	}
	if a.Join == nil {
		return in, apistatus.Error(http.StatusNotImplemented, metav1.StatusReasonMethodNotAllowed,
			"this hub cannot join clusters by the console")
	}
	if err := readJSON(r, 2*maxKubeconfig, &in); err != nil {
		return in, err
	}
	if in.Member, err = memberConfig([]byte(in.Kubeconfig)); err != nil {
		return in, apistatus.Error(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	in.Kubeconfig, in.Hub = "", a.URL
	return in, nil
}

// importTimeout bounds a join.
const importTimeout = 2 * time.Minute

var createClusters = right{verb: "create", group: clusterv1alpha1.GroupVersion.Group, resource: "clusters"}

func podsOfBindings(namespace string) right {
	return right{verb: "get", group: "work.karmada.io", resource: "resourcebindings", subresource: why.BindingPods,
		namespace: namespace}
}

// naming is a client whose errors name the right that is missing.
type naming struct{ client.Client }

func (n naming) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return missingOf(n.Client.Get(ctx, key, obj, opts...), "get", key.Namespace)
}

func (n naming) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	in := client.ListOptions{}
	in.ApplyOptions(opts)
	return missingOf(n.Client.List(ctx, list, opts...), "list", in.Namespace)
}

// missingOf returns a *Missing for an error that an object is forbidden, otherwise the error.
func missingOf(err error, verb, namespace string) error {
	if lack := why.MissingOf(err, verb, namespace); lack != nil {
		return &Missing{Missing: *lack, err: err}
	}
	return err
}

// Missing is a right that the user lacks, as an error.
type Missing struct {
	roles.Missing
	err error
}

func (m *Missing) Error() string { return m.String() }

func (m *Missing) Unwrap() error { return m.err }

// refuse responds with a Status that has the right in its details, for programs.
func (m *Missing) refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(struct {
		metav1.Status
		Missing *Missing `json:"missing"`
	}{metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: m.Error()}, m})
}
