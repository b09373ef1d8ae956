package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// catalogue returns the texts of a language by their path, such as login.title. Values are texts or objects.
func catalogue(t *testing.T, file string) map[string]string {
	t.Helper()
	source, err := os.ReadFile("src/" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(source), " = {")
	if !found {
		t.Fatalf("%s has no catalogue", file)
	}
	token := regexp.MustCompile(`^\s*(?:("[^"]*"|\w+):\s*(?:("(?:[^"\\]|\\.)*")|(\{))|([},;]))`)
	texts := map[string]string{}
	var path []string
	for strings.TrimSpace(body) != "" {
		m := token.FindStringSubmatch(body)
		if m == nil {
			break
		}
		body = body[len(m[0]):]
		key := strings.Join(append(slices.Clone(path), strings.Trim(m[1], `"`)), ".")
		switch {
		case m[3] != "":
			path = append(path, strings.Trim(m[1], `"`))
		case m[2] != "":
			if _, twice := texts[key]; twice {
				t.Errorf("%s has %s twice", file, key)
			}
			texts[key] = strings.Trim(m[2], `"`)
		case m[4] == "}" && len(path) == 0:
			return texts
		case m[4] == "}":
			path = path[:len(path)-1]
		}
	}
	t.Fatalf("%s cannot be read at %.60q", file, body)
	return nil
}

// esbuild does not compare types, so this test shows that no language lacks a text.
func TestCataloguesHaveTheSameKeysAndPlaceholders(t *testing.T) {
	english, chinese := catalogue(t, "en.ts"), catalogue(t, "zh.ts")
	if len(english) < 100 {
		t.Fatalf("only %d texts were read", len(english))
	}
	placeholder := regexp.MustCompile(`\{\w+\}`)
	places := func(text string) string {
		found := placeholder.FindAllString(text, -1)
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	for key, text := range english {
		other, found := chinese[key]
		if !found || other == "" {
			t.Errorf("zh.ts lacks %s", key)
		} else if places(text) != places(other) {
			t.Errorf("%s has %q in en.ts and %q in zh.ts", key, text, other)
		}
	}
	for key := range chinese {
		if _, found := english[key]; !found {
			t.Errorf("en.ts lacks %s", key)
		}
	}
}

// maxFirstPage is the budget of all that a browser loads for the first page, compressed.
const maxFirstPage = 120 << 10

func TestFirstPageIsSmall(t *testing.T) {
	h, err := Handler("/console/")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, path := range []string{"", "assets/console.js", "assets/console.css", "assets/icon.svg"} {
		r := httptest.NewRequest("GET", "/console/"+path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%q gave %d %v", path, w.Code, w.Header())
		}
		sum += w.Body.Len()
	}
	t.Logf("%d bytes", sum)
	if sum > maxFirstPage {
		t.Errorf("the first page has %d bytes, more than %d", sum, maxFirstPage)
	}
}

// A sentence of the hub is translated by its English text, so each of these must be one that the hub says.
func TestTranslatedSentencesAreThoseOfTheHub(t *testing.T) {
	var source strings.Builder
	for _, dir := range []string{"../../core", "../../console"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, story := range stories(t) {
		source.WriteString(story) // sentences that several functions compose
	}
	sentences := 0
	for key, text := range catalogue(t, "en.ts") {
		if !strings.HasPrefix(key, "said.") {
			continue
		}
		sentences++
		for _, part := range regexp.MustCompile(`\{\w+\}`).Split(text, -1) {
			part = strings.Trim(strings.ReplaceAll(part, `\"`, `"`), " :;()/")
			if !strings.Contains(source.String(), part) {
				t.Errorf("%s: the hub does not say %q", key, part)
			}
		}
	}
	if sentences < 10 {
		t.Errorf("only %d sentences were compared", sentences)
	}
}

// stories returns the answers of `argosy why` in its golden files.
func stories(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../core/explain/why/testdata/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d stories: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// untranslated begin findings and next steps without a fixed form: they stay in English.
var untranslated = []string{
	"`argosy logs",
	"1 are required: free capacity",
	"3 clusters fit, but at least 4 are required",
	"let the policy match m2",
	"lower the replicas from",
}

// Each finding and next step of a story has a translation, as function said of i18n.ts finds it.
func TestFindingsOfWhyAreTranslated(t *testing.T) {
	var patterns []*regexp.Regexp
	placeholder := regexp.MustCompile(`\\\{\w+\\\}`)
	for key, text := range catalogue(t, "en.ts") {
		if strings.HasPrefix(key, "said.") {
			quoted := regexp.QuoteMeta(strings.ReplaceAll(text, `\"`, `"`))
			patterns = append(patterns, regexp.MustCompile("(?s)^"+placeholder.ReplaceAllString(quoted, "(.*?)")+"$"))
		}
	}
	var translates func(text string) bool
	translates = func(text string) bool {
		if slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) }) {
			return true
		}
		if parts := strings.Split(text, "; "); len(parts) > 1 && slices.ContainsFunc(parts, translates) {
			return true
		}
		_, rest, found := strings.Cut(text, ": ")
		return found && translates(rest)
	}
	sentences, used := 0, map[string]bool{}
	for _, story := range stories(t) {
		for line := range strings.Lines(story) {
			line = strings.TrimSpace(line)
			sentence, is := line, false
			for _, mark := range []string{"✗ ", "! ", "… ", "→ "} {
				if rest, found := strings.CutPrefix(line, mark); found {
					sentence, is = rest, true
				}
			}
			if !is {
				continue
			}
			sentences++
			i := slices.IndexFunc(untranslated, func(begin string) bool { return strings.HasPrefix(sentence, begin) })
			switch translated := translates(sentence); {
			case i >= 0 && !translated:
				used[untranslated[i]] = true
			case !translated:
				t.Errorf("en.ts and zh.ts lack this sentence in said: %s", sentence)
			}
		}
	}
	for _, begin := range untranslated {
		if !used[begin] {
			t.Errorf("%q is translated, or nothing begins so: remove it here", begin)
		}
	}
	if sentences < 100 {
		t.Errorf("only %d sentences were compared", sentences)
	}
}
