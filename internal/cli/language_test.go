package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replacedPhrases maps phrases that users did not understand to their replacements in plain English.
var replacedPhrases = map[string]string{
	"warnings of late":                 "Recent warnings",
	"made the copy in":                 "the new revision is unhealthy in member2",
	"what is said of it is old":        "is not responding; its status is stale",
	"see that its api server runs":     "check that its API server is running and reachable at https://…",
	"a run would use it now":           "eligible, not rescheduled yet",
	"whose name comes first in the":    "same priority; the other policy sorts first by name",
	"is not meant by":                  "is not selected by the policy's cluster affinity",
	"mend the":                         "fix the overrider",
	"has nothing of the kind":          "not provided",
	"no cluster tells of":              "no cluster reports this metric",
	"something is wrong: see":          "1 check failed",
	"go on that it waits at":           "Approve the current step of a Kruise Rollout",
	"say how far it is":                "Show progress per cluster",
	"replicas that the load asked for": "the downscale stabilization window, in Kubernetes' words",
	"has found no node when it moves":  "time a replica may be unschedulable before it is moved",
	"static weights are your word":     "static weights are never changed",
	"a job has run when it has":        "finished Jobs never rerun; their TTL is not propagated",
	"who moved last counts":            "the last change wins",
	"for who comes from":               "The scheduler for Karmada users",
}

// phrasesToReplace returns the replaced phrases that a text contains, whatever its letter case and line breaks.
func phrasesToReplace(text string) (out []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for phrase := range replacedPhrases {
		if strings.Contains(text, phrase) {
			out = append(out, phrase)
		}
	}
	return out
}

func TestReplacedPhrasesStayOutOfMessagesAndPages(t *testing.T) {
	if len(replacedPhrases) != 19 {
		t.Errorf("%d phrases are checked, want 19", len(replacedPhrases))
	}
	if got := phrasesToReplace("First\nMend the\n  overrider."); len(got) != 1 {
		t.Errorf("in a text with one replaced phrase, %q are found", got)
	}
	texts := 0
	check := func(at, text string) {
		texts++
		for _, phrase := range phrasesToReplace(text) {
			t.Errorf("%s says %q: write as in %q", at, phrase, replacedPhrases[phrase])
		}
	}
	root := filepath.Join("..", "..")
	eachLiteral(t, root, check)
	literals := texts
	for _, at := range []string{"docs", "README.md", "SECURITY.md"} {
		err := filepath.WalkDir(filepath.Join(root, at), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			check(path, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if literals == 0 || texts == literals {
		t.Errorf("%d literals and %d pages are checked", literals, texts-literals)
	}
}
