package console

import (
	"encoding/base64"
	"testing"
	"time"
)

func TestClaimsAreReadOneByOne(t *testing.T) {
	for name, c := range map[string]struct {
		payload, nonce string
		end            int64
	}{
		"both":                       {`{"nonce": "n", "exp": 1700000000}`, "n", 1700000000},
		"a fraction of a second":     {`{"nonce": "n", "exp": 1700000000.5}`, "n", 1700000000},
		"an exponent":                {`{"exp": 1.7e9, "nonce": "n"}`, "n", 1700000000},
		"an expiry of another type":  {`{"exp": "tomorrow", "nonce": "n"}`, "n", 0},
		"a nonce of another type":    {`{"nonce": 1, "exp": 1700000000}`, "", 1700000000},
		"no claims":                  {`{}`, "", 0},
		"something else than claims": {`[]`, "", 0},
	} {
		got := claimsOf("e30." + base64.RawURLEncoding.EncodeToString([]byte(c.payload)) + ".x")
		end := time.Time{}
		if c.end != 0 {
			end = time.Unix(c.end, 0)
		}
		if got.Nonce != c.nonce || !got.end().Equal(end) {
			t.Errorf("%s: nonce %q until %v, want %q until %v", name, got.Nonce, got.end(), c.nonce, end)
		}
	}
	if got := claimsOf("opaque"); got != (claims{}) {
		t.Errorf("an opaque token has the claims %+v", got)
	}
}
