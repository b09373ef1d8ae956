// Package console serves the hub's web console: its pages, the login, and the API of the pages. It has no account of
// its own. Layer turns a login into the user's own credential before the API server authenticates the request, and API
// answers behind the API server's authentication and authorization.
package console

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/console/web"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

const (
	// Path of the console.
	Path        = "/console/"
	sessionPath = Path + "session"
	apiPrefix   = Path + "api/"
	// hubPrefix is the hub's API as it is, for the user of the session.
	hubPrefix = Path + "k8s/"
	// header is on every request of the console's own pages. A page of another origin cannot send it without a preflight
	// request, which the hub refuses.
	header = "X-Argosy-Console"
)

// The paths of the API, which the hub authorizes like other paths.
const (
	mePath     = apiPrefix + "me"
	linkPath   = apiPrefix + "link"
	streamPath = apiPrefix + "stream"
	whyPath    = apiPrefix + "why"
	importPath = apiPrefix + "import"
	// What changes the fleet.
	actionsPath = apiPrefix + "actions"
	objectPath  = apiPrefix + "object"
	changePath  = apiPrefix + "change"
	pastPath    = apiPrefix + "revisions"
)

// Paths are the addresses that API answers.
var Paths = []string{mePath, linkPath, streamPath, whyPath, importPath, actionsPath, objectPath, changePath,
	pastPath, releasePath, evidencePath, timelinePath, podsPath, kindsPath, objectsPath,
	policiesPath, unclaimedPath, usagePath, searchPath}

const (
	// maxBody bounds the body of a login, maxToken a token. Anybody may send one.
	maxBody  = 64 << 10
	maxToken = 16 << 10
)

// Layer is the part of the console in front of the API server's filters.
type Layer struct {
	sealer *sealer
	spent  *spent
	port   int
	now    func() time.Time
	// review returns the user of a token; an error if the hub does not accept the token.
	review func(ctx context.Context, token string) error
	logins *logins
	pages  http.Handler
	// issuer logs in by OpenID Connect; nil if the hub has no issuer.
	issuer *issuer
}

// NewLayer returns the layer of a hub that serves on port. config reaches the hub with full rights; secret is shared by
// all hubs of one etcd. Without an issuer, there is no login by OpenID Connect.
func NewLayer(config *rest.Config, secret []byte, port int, oidc OIDC) (*Layer, error) {
	sealer, err := newSealer(secret)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the console's client: %w", err)
	}
	pages, err := web.Handler(Path)
	if err != nil {
		return nil, err
	}
	l := &Layer{sealer: sealer, port: port, now: time.Now, pages: pages, logins: newLogins(5, 20)}
	if oidc.IssuerURL != "" {
		l.issuer = &issuer{OIDC: oidc}
	}
	l.spent = &spent{maps: client.CoreV1().ConfigMaps(names.System), now: l.time}
	l.review = func(ctx context.Context, token string) error {
		review, err := client.AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("check the token: %w", err)
		}
		if !review.Status.Authenticated {
			return errToken
		}
		return nil
	}
	return l, nil
}

func (l *Layer) time() time.Time { return l.now() }

var errToken error = &refusal{"the hub does not accept this token"}

// login has the credentials of a request for the API server's filters. Only Layer creates it.
type login struct {
	// user is set for sessions without a token.
	user *user.DefaultInfo
	// session is set for requests with a login. bearer and certificates are the client's own credentials of others.
	session      *session
	bearer       string
	certificates []*x509.Certificate
	impersonates bool
}

type loginKey struct{}

func loginOf(r *http.Request) login {
	l, _ := r.Context().Value(loginKey{}).(login)
	return l
}

// Authenticate returns the user of a session without a token.
func Authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	l := loginOf(r)
	if l.user == nil {
		return nil, false, nil
	}
	return &authenticator.Response{User: l.user}, true, nil
}

// Wrap serves the console's pages and logins, and hands all other requests to next, the API server's filters.
func (l *Layer) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != strings.TrimSuffix(Path, "/") && !strings.HasPrefix(r.URL.Path, Path) {
			next.ServeHTTP(w, r)
			return
		}
		web.Protect(w.Header())
		if foreign(r) {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden,
				"the request comes from a page of another origin: open the console's own address")
			return
		}
		switch {
		case r.URL.Path == sessionPath:
			l.serveSession(w, r)
		case r.URL.Path == oidcPath && l.issuer != nil && r.Method == http.MethodGet:
			l.startOIDC(w, r)
		case r.URL.Path == callbackPath && l.issuer != nil && r.Method == http.MethodGet:
			l.finishOIDC(w, r)
		case strings.HasPrefix(r.URL.Path, apiPrefix), strings.HasPrefix(r.URL.Path, hubPrefix):
			l.authenticated(w, r, next)
		default:
			l.pages.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether a page of another origin sent the request. Programs such as kubectl send neither header. The
// page itself may be opened from everywhere.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet ||
		strings.HasPrefix(r.URL.Path, apiPrefix) || strings.HasPrefix(r.URL.Path, hubPrefix) || r.URL.Path == sessionPath
}

// authenticated hands a request to next with the credentials of its login. Without a login cookie the client's own
// credentials count, so that the CLI can use the API.
func (l *Layer) authenticated(w http.ResponseWriter, r *http.Request, next http.Handler) {
	sealed := sealedCookie(r, l.port)
	if r.Header.Get(header) == "" {
		// A request of the CLI: its cookies count for nothing.
		in := login{impersonates: impersonates(r)}
		in.bearer, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.TLS != nil {
			in.certificates = r.TLS.PeerCertificates
		}
		if strings.HasPrefix(r.URL.Path, hubPrefix) {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "only the console's pages use this address")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), loginKey{}, in)))
		return
	}
	s, err := l.session(r.Context(), sealed)
	if err != nil {
		l.ended(w, err)
		return
	}
	if r.Header.Get("Upgrade") != "" {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "the console does not upgrade connections")
		return
	}

	// From here on the request is the session's user, whatever else it brings.
	in := r.Clone(context.WithValue(r.Context(), loginKey{}, login{user: s.User, session: s}))
	for name := range in.Header {
		if name == "Authorization" || name == "Cookie" || strings.HasPrefix(name, "Impersonate-") ||
			strings.HasPrefix(name, "X-Remote-") {
			in.Header.Del(name)
		}
	}
	if in.TLS != nil {
		state := *in.TLS
		state.PeerCertificates, state.VerifiedChains = nil, nil
		in.TLS = &state
	}
	if s.Token != "" {
		in.Header.Set("Authorization", "Bearer "+s.Token)
	}
	in.Header.Set("User-Agent", "argosy-console/"+s.ID[:8])
	if rest, found := strings.CutPrefix(in.URL.Path, strings.TrimSuffix(hubPrefix, "/")); found {
		in.URL.Path = rest
		in.URL.RawPath = strings.TrimPrefix(in.URL.RawPath, strings.TrimSuffix(hubPrefix, "/"))
		in.RequestURI = in.URL.RequestURI()
	}
	next.ServeHTTP(w, in)
}

func impersonates(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

var (
	errNoSession = errors.New("log in first")
	errEnded     = errors.New("the session has ended: log in again")
)

// session opens a sealed session that has not ended.
func (l *Layer) session(ctx context.Context, sealed string) (*session, error) {
	if sealed == "" {
		return nil, errNoSession
	}
	s := &session{}
	if err := l.sealer.open(forCookie, sealed, s); err != nil {
		return nil, errEnded
	}
	if !l.now().Before(s.end()) || s.Token == "" && s.User == nil {
		return nil, errEnded
	}
	switch ended, err := l.spent.contains(ctx, s.ID); {
	case err != nil:
		return nil, err
	case ended:
		return nil, errEnded
	}
	return s, nil
}

// ended responds to a request without a usable login.
func (l *Layer) ended(w http.ResponseWriter, err error) {
	if errors.Is(err, errNoSession) || errors.Is(err, errEnded) {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, err.Error())
		return
	}
	klog.ErrorS(err, "cannot check a session of the console")
	refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the hub cannot check the session now: try again")
}

// serveSession shows the ways to log in with GET, logs in with POST, prolongs a session that is in use with PUT, and
// logs out with DELETE.
func (l *Layer) serveSession(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(header) == "" {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "only the console's pages use this address")
		return
	}
	switch r.Method {
	case http.MethodGet:
		respond(w, map[string]bool{"oidc": l.issuer != nil})
	case http.MethodPost:
		l.logIn(w, r)
	case http.MethodPut:
		s, err := l.session(r.Context(), sealedCookie(r, l.port))
		if err != nil {
			l.ended(w, err)
			return
		}
		s.Idle = l.now().Add(idleLife)
		l.give(w, r, s)
	case http.MethodDelete:
		l.logOut(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, PUT, DELETE")
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "use GET, POST, PUT or DELETE")
	}
}

// logIn opens a session by a token or by the code of a one-time link.
func (l *Layer) logIn(w http.ResponseWriter, r *http.Request) {
	if !l.logins.allow(r) {
		w.Header().Set("Retry-After", "2")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many logins: wait a moment")
		return
	}
	var body struct{ Token, Code string }
	if err := readJSON(r, maxBody, &body); err != nil {
		refuseError(w, err)
		return
	}
	var s *session
	var err error
	if body.Code != "" {
		s, err = l.redeem(r.Context(), body.Code)
	} else {
		s, err = l.byToken(r.Context(), strings.TrimSpace(body.Token))
	}
	var wrong *refusal
	switch {
	case errors.As(err, &wrong):
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, wrong.Error())
	case err != nil:
		klog.ErrorS(err, "a login to the console failed")
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the hub cannot log in now: try again")
	default:
		l.give(w, r, s)
	}
}

// logins bounds how often each address logs in, so that one cannot keep the others out.
type logins struct {
	rate  rate.Limit
	burst int

	mu sync.Mutex
	by map[string]*rate.Limiter
}

// maxAddresses bounds what logins remembers. Anybody may try to log in, from any number of addresses.
const maxAddresses = 1000

func newLogins(r rate.Limit, burst int) *logins {
	return &logins{rate: r, burst: burst, by: map[string]*rate.Limiter{}}
}

func (l *logins) allow(r *http.Request) bool {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.by[address]
	if limiter == nil {
		if len(l.by) >= maxAddresses {
			clear(l.by)
		}
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.by[address] = limiter
	}
	return limiter.Allow()
}

// refusal is the reason why a login was refused, for the user.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func (l *Layer) byToken(ctx context.Context, token string) (*session, error) {
	switch {
	case token == "":
		return nil, &refusal{"give a token"}
	case len(token) > maxToken:
		return nil, &refusal{"this is too long for a token"}
	}
	expiry := claimsOf(token).end()
	if !expiry.IsZero() && !l.now().Before(expiry) {
		return nil, &refusal{"this token expired at " + expiry.UTC().Format(time.RFC3339)}
	}
	if err := l.review(ctx, token); err != nil {
		return nil, err
	}
	return newSession(token, nil, expiry, l.now()), nil
}

func (l *Layer) redeem(ctx context.Context, code string) (*session, error) {
	var once link
	if err := l.sealer.open(forLink, code, &once); err != nil || once.Session == nil {
		return nil, &refusal{"this link is not valid: `argosy console` makes a new one"}
	}
	if !l.now().Before(once.Ends) {
		return nil, &refusal{"this link has expired: `argosy console` makes a new one"}
	}
	s := once.Session
	if s.Token != "" {
		if err := l.review(ctx, s.Token); err != nil {
			return nil, err
		}
	}
	if err := l.spent.add(ctx, "link."+s.ID, once.Ends); errors.Is(err, errSpent) {
		return nil, &refusal{"this link was used before: `argosy console` makes a new one"}
	} else if err != nil {
		return nil, err
	}
	s.Idle = l.now().Add(idleLife)
	return s, nil
}

// keep sets the cookies of a session.
func (l *Layer) keep(w http.ResponseWriter, r *http.Request, s *session) error {
	sealed, err := l.sealer.seal(forCookie, s)
	if err != nil {
		return err
	}
	return setCookies(w, r, l.port, sealed)
}

// give responds with a session.
func (l *Layer) give(w http.ResponseWriter, r *http.Request, s *session) {
	if err := l.keep(w, r, s); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	respond(w, map[string]any{"ends": s.end().UTC().Format(time.RFC3339)})
}

// logOut ends the session at all hubs. It succeeds without a session.
func (l *Layer) logOut(w http.ResponseWriter, r *http.Request) {
	s, err := l.session(r.Context(), sealedCookie(r, l.port))
	if err == nil {
		if err := l.spent.add(r.Context(), s.ID, s.Ends); err != nil && !errors.Is(err, errSpent) {
			l.ended(w, err)
			return
		}
	}
	_ = setCookies(w, r, l.port, "") // an empty text is not too long
	respond(w, map[string]any{})
}

// newLink returns the code of a one-time link for the user of a request that the hub authenticated.
func (l *Layer) newLink(r *http.Request, u user.Info) (code string, ends time.Time, err error) {
	in := loginOf(r)
	switch {
	case in.session != nil:
		return "", ends, &refusal{"a session cannot make a link: run `argosy console` with a kubeconfig"}
	case in.impersonates:
		return "", ends, &refusal{"a link cannot be made while impersonating a user"}
	}
	var expiry time.Time
	var identity *user.DefaultInfo
	token := in.bearer
	if token == "" {
		if len(in.certificates) == 0 {
			return "", ends, &refusal{"the kubeconfig has no client certificate and no token"}
		}
		expiry = in.certificates[0].NotAfter
		identity = &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
	} else {
		expiry = claimsOf(token).end()
	}
	ends = l.now().Add(LinkLife)
	code, err = l.sealer.seal(forLink, link{Session: newSession(token, identity, expiry, l.now()), Ends: ends})
	return code, ends, err
}

// AdminLink returns a one-time link for the user of the hub's own client certificate in file.
func (l *Layer) AdminLink(file, hub string) (string, error) {
	certs, err := cert.CertsFromFile(file)
	if err != nil {
		return "", err
	}
	subject := certs[0].Subject
	u := &user.DefaultInfo{Name: subject.CommonName, Groups: append(slices.Clone(subject.Organization),
		user.AllAuthenticated)}
	code, err := l.sealer.seal(forLink, link{Session: newSession("", u, certs[0].NotAfter, l.now()),
		Ends: l.now().Add(LinkLife)})
	return LinkURL(hub, code), err
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client is gone
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	apistatus.Refuse(w, code, reason, message)
}
