package joincli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/test/kit/clitest"
)

func TestTokensAreSecretsOfKubernetes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := &newTokenOptions{ttl: time.Hour, usages: []string{"signing", "authentication"},
		groups: []string{"system:bootstrappers:x"}, description: "for eu", cluster: "eu"}
	s := o.secret("abcdef.0123456789abcdef", now)
	if s.Namespace != "kube-system" || s.Name != "bootstrap-token-abcdef" || s.Type != "bootstrap.kubernetes.io/token" ||
		s.Annotations["argosy.io/token-cluster"] != "eu" || s.Annotations["argosy.io/token-renews"] != "true" {
		t.Errorf("the Secret is %+v", s.ObjectMeta)
	}
	for key, want := range map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef",
		"expiration": "2026-01-01T01:00:00Z", "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:x", "description": "for eu"} {
		if got := string(s.Data[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	o.ttl, o.cluster = 0, ""
	if s := o.secret("abcdef.0123456789abcdef", now); s.Data["expiration"] != nil || s.Annotations != nil {
		t.Errorf("a token for ever and for any cluster: %+v", s)
	}

	out := &bytes.Buffer{}
	expired := *s.DeepCopy()
	expired.Data["expiration"] = []byte("2025-12-31T00:00:00Z")
	if err := printTokens(out, []corev1.Secret{*s, expired}, now); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "EXTRA GROUPS") ||
		strings.Join(strings.Fields(lines[1]), " ") != "abcdef.0123456789abcdef 60m 2026-01-01T01:00:00Z authentication,signing for eu system:bootstrappers:x eu" ||
		!strings.Contains(lines[2], "<expired>") {
		t.Errorf("printed\n%s", out)
	}
}

func TestTokensWithMistakesAreRefused(t *testing.T) {
	valid := newTokenOptions{ttl: time.Hour, usages: []string{"signing"}, groups: []string{"system:bootstrappers:x"}}
	for want, change := range map[string]func(*newTokenOptions){
		"--ttl is -1h0m0s":         func(o *newTokenOptions) { o.ttl = -time.Hour },
		"--usages":                 func(o *newTokenOptions) { o.usages = []string{"everything"} },
		"--groups":                 func(o *newTokenOptions) { o.groups = []string{"system:masters"} },
		`cluster name "a.b"`:       func(o *newTokenOptions) { o.cluster = "a.b" },
		"no certificate authority": func(o *newTokenOptions) { o.printCommand = true },
	} {
		o := valid
		change(&o)
		hub, out := clitest.FakeHub(), &bytes.Buffer{}
		err := o.create(t.Context(), hub, &rest.Config{Host: "https://hub:1"}, "argosy", out)
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("want %q: error %v, printed %q", want, err, out)
		}
		var all corev1.SecretList
		if err := hub.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
			t.Errorf("%q: the hub has %d tokens (%v)", want, len(all.Items), err)
		}
	}
	if err := deleteTokens(t.Context(), clitest.FakeHub(), []string{"nonsense!"}, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "neither a token nor the ID") {
		t.Errorf("a malformed token: %v", err)
	}
	if err := deleteTokens(t.Context(), clitest.FakeHub(), []string{"abcdef"}, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "has no token abcdef") {
		t.Errorf("an unknown token: %v", err)
	}
}
