package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/history"
)

// HistoryConfig is where the hub keeps the history of releases.
type HistoryConfig struct {
	// Mode is HistoryAuto, HistoryLocal or HistoryOff.
	Mode string `json:"mode"`
	// DSN is the connection string of a PostgreSQL database, without password.
	DSN string `json:"dsn,omitempty"`
	// PasswordFile has the password of the database. Empty: PGPASSWORD, or the passfile of the connection string.
	PasswordFile string `json:"passwordFile,omitempty"`
}

// Where the history is.
const (
	// HistoryAuto is PostgreSQL if there is a connection string. Otherwise it is a file in the data folder if the hub has
	// its own etcd. Hubs that share an etcd have no history: each file would have the releases of one hub only.
	HistoryAuto = "auto"
	// HistoryLocal is a file in the data folder, also for hubs that share an etcd.
	HistoryLocal = "local"
	// HistoryOff is no history.
	HistoryOff = "off"
)

func (c *HistoryConfig) bindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Mode, "history", c.Mode,
		"where the history of releases is stored: auto (PostgreSQL with --history-dsn; otherwise a file in the data folder, "+
			"and nowhere if hubs share an etcd), local (a file in the data folder of each hub), or off")
	fs.StringVar(&c.DSN, "history-dsn", c.DSN,
		"connection string of a PostgreSQL database for the history of releases, such as host=db.example.com "+
			"dbname=argosy user=argosy sslmode=verify-full; without a password")
	fs.StringVar(&c.PasswordFile, "history-password-file", c.PasswordFile,
		"file with the password of that database (default: the environment variable PGPASSWORD, or passfile in the "+
			"connection string)")
}

// passwordInDSN finds a password in a connection string of the form key=value.
var passwordInDSN = regexp.MustCompile(`(^|\s)password\s*=`)

func (c *HistoryConfig) validate() error {
	switch {
	case !slices.Contains([]string{HistoryAuto, HistoryLocal, HistoryOff}, c.Mode):
		return fmt.Errorf("history.mode %q is not %s, %s or %s: give one with --history", c.Mode, HistoryAuto, HistoryLocal,
			HistoryOff)
	case c.DSN != "" && c.Mode != HistoryAuto:
		return fmt.Errorf("history.dsn names a database, but history.mode is %s: give either --history-dsn or --history",
			c.Mode)
	case c.DSN == "" && c.PasswordFile != "":
		return errors.New("history.passwordFile has no database: give --history-dsn")
	}
	u, err := url.Parse(c.DSN)
	isURL := err == nil && strings.HasPrefix(u.Scheme, "postgres")
	inURL := false
	if isURL {
		_, inURL = u.User.Password()
		inURL = inURL || u.Query().Has("password")
	}
	if inURL || !isURL && passwordInDSN.MatchString(c.DSN) {
		return errors.New("history.dsn has a password, which others could read: give it with --history-password-file or " +
			"PGPASSWORD")
	}
	return nil
}

// source returns the source of the history of a hub, nil for none. shared is true if hubs share the store.
func (c *HistoryConfig) source(dir string, shared bool) *history.Source {
	switch {
	case c.DSN != "":
		return history.NewSource(func(ctx context.Context) (*history.Store, error) {
			return history.OpenPostgres(ctx, c.DSN, c.PasswordFile)
		})
	case c.Mode == HistoryOff || c.Mode == HistoryAuto && shared:
		return nil
	}
	source := history.NewSource(func(ctx context.Context) (*history.Store, error) { return history.OpenSQLite(ctx, dir) })
	if shared {
		source.Note = "this hub has a release history of its own, which lacks what happened while another hub was the leader"
	}
	return source
}

// OpenHistory opens the database of the release history of a hub, which may be running. A file must exist unless create
// is set.
func OpenHistory(ctx context.Context, c Config, create bool) (*history.Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	source := c.History.source(c.DataDir, len(c.Etcd.Servers) > 0)
	if source == nil {
		return nil, errors.New("this hub keeps no release history: give --history-dsn or --history")
	}
	if c.History.DSN == "" {
		needed := filepath.Join(c.DataDir, history.File)
		if create {
			needed = c.DataDir
		}
		if _, err := os.Stat(needed); err != nil {
			return nil, fmt.Errorf("there is no release history in %s (%w): give the hub's --data-dir or --config", c.DataDir,
				reason(err))
		}
		if err := ownedByCaller(c.DataDir); err != nil {
			return nil, err
		}
	}
	store, _, err := source.Store(ctx)
	return store, err
}

// startHistory makes the source of the release history. The database is opened when it is first needed.
func (h *Hub) startHistory(context.Context) (func(), error) {
	h.history = h.config.History.source(h.config.DataDir, h.elects())
	if h.history == nil {
		if h.config.History.Mode == HistoryAuto {
			klog.InfoS("hubs that share an etcd keep no release history; set --history-dsn, or --history=local")
		}
		return nil, nil
	}
	return func() {
		if err := h.history.Close(); err != nil {
			klog.ErrorS(err, "close the history database")
		}
	}, nil
}

// historyHandler answers at history.ReleasesPath and its neighbors, and leaves all else to next. Users see the
// namespaces in which they may list releases.
func historyHandler(d Deps, next http.Handler) http.Handler {
	answer := history.Handler(d.History, mayListReleases(d.Config), time.Now)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(history.Paths, r.URL.Path) {
			answer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mayListReleases asks the hub whether the user of a request may list releases.
func mayListReleases(config *rest.Config) history.Authorize {
	return func(r *http.Request, namespace string) error {
		user, ok := request.UserFrom(r.Context())
		if !ok {
			return apierrors.NewUnauthorized("the user is not known")
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list",
				Group: history.Resource.Group, Resource: history.Resource.Resource}}}
		for key, values := range user.GetExtra() {
			if review.Spec.Extra == nil {
				review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
			}
			review.Spec.Extra[key] = values
		}
		review, err = client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("check the rights of user %q: %w", user.GetName(), err)
		}
		if review.Status.Allowed {
			return nil
		}
		where := fmt.Sprintf("in the namespace %q", namespace)
		if namespace == "" {
			where = "in all namespaces; name a namespace"
		}
		return apierrors.NewForbidden(history.Resource, "",
			fmt.Errorf("user %q cannot list releases %s", user.GetName(), where))
	}
}
