package credential_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/core/cluster/credential"
)

func token(claims string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

const (
	bound  = `{"sub":"system:serviceaccount:karmada-cluster:karmada-eu","iat":1000000,"exp":2000000,"kubernetes.io":{"secret":{"name":"karmada-eu-token-x","uid":"1"}}}`
	legacy = `{"sub":"system:serviceaccount:karmada-cluster:karmada-eu","kubernetes.io/serviceaccount/secret.name":"karmada-eu"}`
)

func TestATokenIsDueBeforeHalfOfItsLife(t *testing.T) {
	got, ok := credential.Read(token(bound))
	want := credential.Token{Namespace: "karmada-cluster", Account: "karmada-eu", Secret: "karmada-eu-token-x",
		Issued: time.Unix(1000000, 0).UTC(), Expires: time.Unix(2000000, 0).UTC()}
	if !ok || got != want {
		t.Fatalf("read %+v, %t", got, ok)
	}
	for seconds, due := range map[int64]bool{0: false, 1000000: false, 1399000: false, 1401000: true, 1500000: true,
		3000000: true} {
		if got.Due(time.Unix(seconds, 0)) != due {
			t.Errorf("at %d due is %t", seconds, !due)
		}
	}
	if !got.DueAt().Before(time.Unix(1500000, 0)) {
		t.Errorf("due at %s, not before half of its life", got.DueAt())
	}
	if got.Expired("eu", time.Unix(1999999, 0)) != "" {
		t.Error("said to have ended before its end")
	}
	if text := got.Expired("eu", time.Unix(2000000, 0)); !strings.Contains(text, "argosy join eu --cluster-kubeconfig") {
		t.Errorf("of one that ended the message is %q", text)
	}
}

func TestPermanentTokenIsDue(t *testing.T) {
	got, ok := credential.Read(token(legacy))
	if !ok || got.Secret != "karmada-eu" || !got.Endless() || !got.Due(time.Unix(0, 0)) ||
		got.Expired("eu", time.Unix(1<<40, 0)) != "" {
		t.Errorf("read %+v, %t", got, ok)
	}
}

func TestOtherCredentialsAreLeftAlone(t *testing.T) {
	for _, text := range []string{"", "opaque", "a.b.c", token(`{"sub":"alice"}`),
		token(`{"sub":"system:serviceaccount:x"}`), token(`[]`), token(`{"sub":"system:serviceaccount::"}`)} {
		if got, ok := credential.Read(text); ok {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, claims := range []string{bound, legacy, `{"sub":"system:serviceaccount:a:b","iat":-1,"exp":1e300}`,
		`{"kubernetes.io":[]}`, `null`} {
		f.Add(claims)
	}
	f.Fuzz(func(t *testing.T, claims string) {
		got, ok := credential.Read(token(claims))
		if !ok {
			return
		}
		if got.Namespace == "" || got.Account == "" {
			t.Errorf("%q is of nobody", claims)
		}
		got.Due(time.Unix(1<<33, 0))
		got.Expired("eu", time.Unix(1<<33, 0))
	})
}
