package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	oidcPath     = Path + "login/oidc"
	callbackPath = Path + "login/callback"
	// oidcLife bounds the time that a user spends at the issuer.
	oidcLife = 5 * time.Minute
	// maxDiscovery bounds the issuer's description of itself. Another server may answer at its address.
	maxDiscovery = 1 << 20
)

// OIDC is the issuer of the ID tokens that the hub accepts. The console is a public client with PKCE.
type OIDC struct{ IssuerURL, ClientID, CAFile string }

// issuer asks the issuer of OIDC for ID tokens.
type issuer struct {
	OIDC
	mu sync.Mutex
	// endpoint and scopes are known after the first login.
	endpoint *oauth2.Endpoint
	scopes   []string
}

// attempt is a login at the issuer that is not finished. It is sealed into a cookie, so that only the browser that
// started it can finish it.
type attempt struct {
	State    string    `json:"s"`
	Verifier string    `json:"v"`
	Nonce    string    `json:"n"`
	Ends     time.Time `json:"e"`
}

const forAttempt = "argosy console login attempt"

// attemptCookie is Lax: the issuer sends the browser back from another site.
func attemptCookie(port int) string { return "__Host-argosy-login-" + strconv.Itoa(port) }

// config returns the client of the issuer for a hub that the browser reaches under host, and a context whose HTTP
// client trusts the issuer.
func (i *issuer) config(ctx context.Context, host string) (context.Context, *oauth2.Config, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	if i.CAFile != "" {
		raw, err := os.ReadFile(i.CAFile)
		if err != nil {
			return nil, nil, fmt.Errorf("read the CA of the issuer: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(raw) {
			return nil, nil, fmt.Errorf("%s contains no certificate", i.CAFile)
		}
		client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.endpoint == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			strings.TrimSuffix(i.IssuerURL, "/")+"/.well-known/openid-configuration", nil)
		if err != nil {
			return nil, nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, nil, fmt.Errorf("read the configuration of the issuer: %w", err)
		}
		defer response.Body.Close()
		var found struct {
			Issuer  string   `json:"issuer"`
			AuthURL string   `json:"authorization_endpoint"`
			Token   string   `json:"token_endpoint"`
			Scopes  []string `json:"scopes_supported"`
		}
		if err := json.NewDecoder(io.LimitReader(response.Body, maxDiscovery)).Decode(&found); err != nil {
			return nil, nil, fmt.Errorf("read the configuration of the issuer: %w", err)
		}
		if found.Issuer != i.IssuerURL || !strings.HasPrefix(found.AuthURL, "https://") ||
			!strings.HasPrefix(found.Token, "https://") {
			return nil, nil, fmt.Errorf("the configuration of the issuer %s is for %q", i.IssuerURL, found.Issuer)
		}
		i.endpoint = &oauth2.Endpoint{AuthURL: found.AuthURL, TokenURL: found.Token,
			AuthStyle: oauth2.AuthStyleInParams}
		i.scopes = []string{"openid", "email", "profile"}
		if slices.Contains(found.Scopes, "groups") {
			i.scopes = append(i.scopes, "groups")
		}
	}
	return ctx, &oauth2.Config{ClientID: i.ClientID, Endpoint: *i.endpoint, Scopes: i.scopes,
		RedirectURL: "https://" + host + callbackPath}, nil
}

// startOIDC sends the browser to the issuer.
func (l *Layer) startOIDC(w http.ResponseWriter, r *http.Request) {
	_, config, err := l.issuer.config(r.Context(), r.Host)
	a := attempt{State: rand.Text(), Verifier: oauth2.GenerateVerifier(), Nonce: rand.Text(), Ends: l.now().Add(oidcLife)}
	sealed := ""
	if err == nil {
		sealed, err = l.sealer.seal(forAttempt, a)
	}
	if err != nil {
		l.failOIDC(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: attemptCookie(l.port), Value: sealed, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int(oidcLife.Seconds())})
	http.Redirect(w, r, config.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier),
		oauth2.SetAuthURLParam("nonce", a.Nonce)), http.StatusFound)
}

// finishOIDC opens a session with the ID token of the issuer. The hub verifies the token like that of any client.
func (l *Layer) finishOIDC(w http.ResponseWriter, r *http.Request) {
	if !l.logins.allow(r) {
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many logins: wait a moment")
		return
	}
	s, err := l.byIssuer(r)
	if err == nil {
		err = l.keep(w, r, s)
	}
	http.SetCookie(w, &http.Cookie{Name: attemptCookie(l.port), Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: -1})
	if err != nil {
		l.failOIDC(w, err)
		return
	}
	http.Redirect(w, r, Path, http.StatusFound)
}

func (l *Layer) byIssuer(r *http.Request) (*session, error) {
	query := r.URL.Query()
	var a attempt
	c, err := r.Cookie(attemptCookie(l.port))
	if err != nil || l.sealer.open(forAttempt, c.Value, &a) != nil || !l.now().Before(a.Ends) ||
		subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) != 1 {
		return nil, &refusal{"this login was not started in this browser, or took too long: log in again"}
	}
	if query.Get("error") != "" {
		return nil, &refusal{"the issuer refused the login: " + query.Get("error") + " " + query.Get("error_description")}
	}
	ctx, config, err := l.issuer.config(r.Context(), r.Host)
	if err != nil {
		return nil, err
	}
	answer, err := config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(a.Verifier))
	var wrong *oauth2.RetrieveError
	if errors.As(err, &wrong) {
		return nil, &refusal{"the issuer refused the login: " + wrong.ErrorCode + " " + wrong.ErrorDescription}
	}
	if err != nil {
		return nil, fmt.Errorf("get a token of the issuer: %w", err)
	}
	token, _ := answer.Extra("id_token").(string)
	if token == "" || claimsOf(token).Nonce != a.Nonce {
		return nil, &refusal{"the issuer sent no ID token for this login"}
	}
	return l.byToken(r.Context(), token)
}

// failOIDC sends the browser nowhere: the reason is a text on a page of its own.
func (l *Layer) failOIDC(w http.ResponseWriter, err error) {
	var wrong *refusal
	code, text := http.StatusUnauthorized, ""
	if errors.As(err, &wrong) {
		text = wrong.text
	} else {
		klog.ErrorS(err, "a login by OpenID Connect failed")
		code, text = http.StatusBadGateway, "the hub cannot log in at the issuer now: its log has the reason"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // fails only if the client is gone
}
