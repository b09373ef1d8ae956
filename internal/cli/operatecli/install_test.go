package operatecli

import (
	"io"
	"strings"
	"testing"
)

func TestInstallOnThisMachineIsConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		root, answer string
		yes, ok      bool
		says         string
	}{
		"no terminal":             {root: "/", says: "confirm it with --yes"},
		"--yes":                   {root: "/", yes: true, ok: true},
		"below a folder":          {root: "/image", ok: true},
		"the user agrees":         {root: "/", answer: "y\n", ok: true},
		"the user does not agree": {root: "/", answer: "n\n", says: "nothing was changed"},
	} {
		var in io.Reader
		if c.answer != "" {
			in = strings.NewReader(c.answer)
		}
		err := confirmInstall(c.root, c.yes, in, io.Discard)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it ends with %v", name, err)
		}
	}
}
