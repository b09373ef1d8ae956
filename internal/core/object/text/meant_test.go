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
		if got := text.Meant(tt.name, tt.names); got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.name, tt.names, got, tt.want)
		}
	}
}
