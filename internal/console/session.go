package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// How long logins last. A session ends at the earliest of its idle end, its absolute end and its credential.
const (
	idleLife    = time.Hour
	sessionLife = 12 * time.Hour
	// identityLife is the life of a session without a token: nothing can revoke a client certificate.
	identityLife = 8 * time.Hour
	// LinkLife is the validity of a one-time link.
	LinkLife = 10 * time.Minute
)

// session is a login. It is sealed into the browser's cookie, so that the hub keeps nothing per user and every hub with
// the same keys can read it.
type session struct {
	ID string `json:"i"`
	// Token is the user's own bearer token. Without one, the session is for User, whom the hub authenticated by a client
	// certificate when the link was made.
	Token string            `json:"t,omitempty"`
	User  *user.DefaultInfo `json:"u,omitempty"`
	// Idle is the end of the session unless it is used, Ends its end in any case.
	Idle time.Time `json:"a"`
	Ends time.Time `json:"e"`
}

// end returns when the session ends without further use.
func (s *session) end() time.Time {
	if s.Idle.Before(s.Ends) {
		return s.Idle
	}
	return s.Ends
}

// newSession returns a session for a credential that ends at the time expiry; zero if it does not.
func newSession(token string, u *user.DefaultInfo, expiry, now time.Time) *session {
	life := sessionLife
	if token == "" {
		life = identityLife
	}
	s := &session{ID: rand.Text(), Token: token, User: u, Idle: now.Add(idleLife), Ends: now.Add(life)}
	if !expiry.IsZero() && expiry.Before(s.Ends) {
		s.Ends = expiry
	}
	return s
}

// link is a one-time link: a session that is not opened yet.
type link struct {
	Session *session  `json:"s"`
	Ends    time.Time `json:"e"`
}

// What a sealed text is for. A text that was sealed for one purpose cannot be opened for another.
const (
	forCookie = "argosy console session"
	forLink   = "argosy console link"
)

// sealer encrypts and authenticates texts that leave the hub.
type sealer struct{ aead cipher.AEAD }

// newSealer derives its key from a secret that all hubs of one etcd share.
func newSealer(secret []byte) (*sealer, error) {
	if len(secret) == 0 {
		return nil, errors.New("no key to derive the console's key from")
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "argosy console", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the console's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create the console's cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead}, err
}

func (s *sealer) seal(purpose string, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(purpose))), nil
}

var errSeal = errors.New("it was not made by this hub")

func (s *sealer) open(purpose, sealed string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, []byte(purpose))
	if err != nil {
		return errSeal
	}
	return json.Unmarshal(plain, into)
}

// Browsers drop cookies above 4096 bytes, and ID tokens can be longer: a session is split.
const (
	cookieBytes = 3800
	maxCookies  = 5
)

// cookieName has the port in it, because cookies of one host are shared by all its ports: otherwise a login at one hub
// would end the login at another on the same machine.
func cookieName(port, part int) string {
	name := "__Host-argosy-" + strconv.Itoa(port)
	if part > 0 {
		name += "-" + strconv.Itoa(part)
	}
	return name
}

// setCookies writes a sealed session into as many cookies as it needs, and removes the others that the request has. An
// empty text removes all.
func setCookies(w http.ResponseWriter, r *http.Request, port int, sealed string) error {
	if len(sealed) > cookieBytes*maxCookies {
		return fmt.Errorf("the token is too long for a browser's cookies (%d bytes)", len(sealed))
	}
	for part := range maxCookies {
		value := sealed[:min(len(sealed), cookieBytes)]
		sealed = sealed[len(value):]
		c := &http.Cookie{Name: cookieName(port, part), Value: value, Path: "/", Secure: true, HttpOnly: true,
			SameSite: http.SameSiteStrictMode}
		if value == "" {
			if _, err := r.Cookie(c.Name); err != nil {
				continue
			}
			c.MaxAge = -1
		}
		http.SetCookie(w, c)
	}
	return nil
}

// sealedCookie returns the sealed session of a request; empty if it has none.
func sealedCookie(r *http.Request, port int) string {
	var sealed strings.Builder
	for part := range maxCookies {
		c, err := r.Cookie(cookieName(port, part))
		if err != nil {
			break
		}
		sealed.WriteString(c.Value)
	}
	return sealed.String()
}

// claims of a JSON web token. Nonce ties an ID token to a login, Expiry only shortens a session.
type claims struct {
	Nonce  string  `json:"nonce"`
	Expiry float64 `json:"exp"` // in seconds, perhaps with a fraction
}

// claimsOf returns the claims of a JSON web token; none for other tokens. The API server verifies the token.
func claimsOf(token string) (c claims) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(raw, &c) // a claim of another type leaves the other one as it is
		}
	}
	return c
}

// end returns when the token ends; zero if it does not say.
func (c claims) end() time.Time {
	if c.Expiry == 0 {
		return time.Time{}
	}
	return time.Unix(int64(c.Expiry), 0)
}
