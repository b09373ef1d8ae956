// Package credential reads the tokens by which the hub is known to its members, and decides when one is due for
// another.
package credential

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// Life is the requested lifetime of a token; a member may grant less.
	Life = 365 * 24 * time.Hour
	// rotatedAt is the part of its life, in percent, after which a token is due: before half of it, so that a hub that was
	// down for as long as it ran has a token that is good.
	rotatedAt = 40
	// limit is the longest token that is read. Whoever may write the Secret can store anything.
	limit = 64 << 10
)

// Token has the claims of a token. The hub issued or received it itself, so its signature is not verified.
type Token struct {
	// Namespace and Account are the service account it is of.
	Namespace, Account string
	// Secret is the Secret, in the same namespace, that it goes with; empty for none.
	Secret string
	// Issued and Expires by the clock of the member; Expires is zero for a token that never ends.
	Issued, Expires time.Time
}

// Read returns the claims of a token; ok is false if it is not a service account's.
func Read(token string) (t Token, ok bool) {
	parts := strings.Split(token, ".")
	if len(token) > limit || len(parts) != 3 {
		return Token{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		Subject string  `json:"sub"`
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
		Legacy  string  `json:"kubernetes.io/serviceaccount/secret.name"`
		Bound   struct {
			Secret struct {
				Name string `json:"name"`
			} `json:"secret"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return Token{}, false
	}
	user, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !ok {
		return Token{}, false
	}
	if t.Namespace, t.Account, ok = strings.Cut(user, ":"); !ok || t.Namespace == "" || t.Account == "" {
		return Token{}, false
	}
	if t.Secret = claims.Bound.Secret.Name; t.Secret == "" {
		t.Secret = claims.Legacy
	}
	t.Issued, t.Expires = timeOf(claims.Issued), timeOf(claims.Expires)
	return t, true
}

// timeOf converts seconds since 1970. It returns zero for values that no token has.
func timeOf(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// Endless reports whether the token has no expiry.
func (t Token) Endless() bool { return t.Expires.IsZero() }

// Due reports whether it is time for another token.
func (t Token) Due(now time.Time) bool {
	return t.Endless() || !now.Before(t.DueAt())
}

// DueAt returns when an expiring token must be rotated.
func (t Token) DueAt() time.Time {
	return t.Issued.Add(t.Expires.Sub(t.Issued) / 100 * rotatedAt)
}

// Expired returns what to do about an expired token; empty if it has not expired. The text is the same for the same
// token.
func (t Token) Expired(cluster string, now time.Time) string {
	if t.Endless() || now.Before(t.Expires) {
		return ""
	}
	return fmt.Sprintf("the hub's token expired at %s, before the hub could renew it; `argosy join %s --cluster-kubeconfig FILE` creates a new one",
		t.Expires.Format(time.RFC3339), cluster)
}
