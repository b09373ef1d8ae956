package text_test

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

func TestTheNameThatWasMeantDiffersInMoreThanDigits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		names []string
		want  string
	}{
		{"member2", []string{"member1"}, ""},
		{"member2", []string{"member1", "membre2"}, "membre2"},
		{"member2", []string{"member1", "member12", "member21"}, ""},
		{"member", []string{"member1"}, ""},
		{"eu-west-10", []string{"eu-west-1"}, ""},
		{"Member2", []string{"member1", "member2"}, "member2"},
		{"memebr2", []string{"member1", "member2"}, "member2"},
		{"member2-eu", []string{"member2"}, "member2"},
		{"membr1", []string{"member2"}, "member2"},
		{"deploymnt", []string{"daemonset", "deployment"}, "deployment"},
		{"web", []string{"shop"}, ""},
	} {
		if got := text.MeantObject(tt.name, tt.names); got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.name, tt.names, got, tt.want)
		}
	}
}

func TestAVersionThatWasMeantMayDifferInDigits(t *testing.T) {
	for name, want := range map[string]string{
		"apps.kruise.io/v1beta2": "apps.kruise.io/v1beta1",
		"apps1/v1":               "apps/v1",
	} {
		if got := text.Meant(name, []string{"apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1", "apps/v1"}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
