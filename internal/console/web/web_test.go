package web

import (
	"cmp"
	"io/fs"
	"maps"
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
	for _, dir := range strings.Fields("../../core ../../console ../../search ../../usage ../../member ../../history") {
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
	var files []string
	for _, pattern := range []string{"*.txt", "policies/*.txt", "members/*.txt"} {
		some, err := filepath.Glob("../../core/explain/why/testdata/" + pattern)
		if err != nil || len(some) < 5 {
			t.Fatalf("%d stories in %s: %v", len(some), pattern, err)
		}
		files = append(files, some...)
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
}

// sentenceEnd is that of i18n.ts.
const sentenceEnd = "\x00"

// pattern is a sentence of the hub in both languages.
type pattern struct {
	english, chinese string
	is               *regexp.Regexp
	begins           bool // it begins with a placeholder
}

// translator does what said of i18n.ts does.
type translator []pattern

func newTranslator(t *testing.T) (all translator) {
	t.Helper()
	english, chinese := catalogue(t, "en.ts"), catalogue(t, "zh.ts")
	placeholder := regexp.MustCompile(`\\\{(\w+)\\\}`)
	narrow := map[string]string{"n": `\d+`, "all": `\d+`, "fewer": `\d+`, "cluster": `[\w.-]+`}
	for _, key := range slices.Sorted(maps.Keys(english)) {
		if !strings.HasPrefix(key, "said.") {
			continue
		}
		text := strings.ReplaceAll(english[key], `\"`, `"`)
		expression := placeholder.ReplaceAllStringFunc(regexp.QuoteMeta(strings.ReplaceAll(text, "; ", sentenceEnd)),
			func(place string) string {
				name := placeholder.FindStringSubmatch(place)[1]
				return "(?P<" + name + ">" + cmp.Or(narrow[name], `[^\x00]*?`) + ")"
			})
		all = append(all, pattern{english: text, is: regexp.MustCompile("^" + expression + "$"),
			chinese: strings.ReplaceAll(chinese[key], `\"`, `"`), begins: strings.HasPrefix(text, "{")})
	}
	slices.SortStableFunc(all, func(a, b pattern) int { return cmp.Compare(len(b.english), len(a.english)) })
	return all
}

func (all translator) translate(text string) string {
	return strings.ReplaceAll(all.sentences(strings.ReplaceAll(text, "; ", sentenceEnd)), sentenceEnd, "; ")
}

func (all translator) sentences(text string) string {
	parts := strings.Split(text, sentenceEnd)
	for n := len(parts); n > 0; n-- {
		is := all.sentence(strings.Join(parts[:n], sentenceEnd))
		switch {
		case is != "" && n < len(parts):
			return is + "；" + all.sentences(strings.Join(parts[n:], sentenceEnd))
		case is != "":
			return is
		}
	}
	rest := strings.Join(parts[1:], sentenceEnd)
	if rest == "" || all.sentences(rest) == rest {
		return text
	}
	return parts[0] + "；" + all.sentences(rest)
}

// sentence returns the translation of a text by one pattern; empty if there is none.
func (all translator) sentence(text string) string {
	name := regexp.MustCompile(`^[\w.-]+: `).FindString(text)
	is := all.byPattern(text, false)
	if is == "" && name != "" {
		is = all.afterColon(text, len(name)-2)
	}
	if is == "" {
		is = all.byPattern(text, true)
	}
	if is == "" {
		is = all.afterColon(text, strings.Index(text, ": "))
	}
	return is
}

func (all translator) byPattern(text string, begins bool) string {
	for _, p := range all {
		found := p.is.FindStringSubmatch(text)
		if p.begins != begins || found == nil {
			continue
		}
		is := p.chinese
		for i, name := range p.is.SubexpNames() {
			if name != "" {
				is = strings.ReplaceAll(is, "{"+name+"}", all.sentences(found[i]))
			}
		}
		return is
	}
	return ""
}

func (all translator) afterColon(text string, colon int) string {
	if colon < 0 || strings.Contains(text, sentenceEnd) {
		return ""
	}
	if after := all.sentence(text[colon+2:]); after != "" {
		return text[:colon] + "：" + after
	}
	return ""
}

// Each finding and next step of a story has a translation, and no sentence of ours stays English within it.
func TestFindingsOfWhyAreTranslated(t *testing.T) {
	all := newTranslator(t)
	var ours []string // what the patterns say, without the short words between two placeholders
	for _, p := range all {
		for _, part := range regexp.MustCompile(`\{\w+\}|; `).Split(p.english, -1) {
			if part = strings.Trim(part, " :,()"); strings.Count(part, " ") >= 3 {
				ours = append(ours, part)
			}
		}
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
			chinese := all.translate(sentence)
			i := slices.IndexFunc(untranslated, func(begin string) bool { return strings.HasPrefix(sentence, begin) })
			switch {
			case i >= 0 && chinese == sentence:
				used[untranslated[i]] = true
				continue
			case chinese == sentence:
				t.Errorf("en.ts and zh.ts lack this sentence in said: %s", sentence)
			}
			for _, part := range ours {
				if strings.Contains(chinese, part) {
					t.Errorf("%q stays English in %q, for %q", part, chinese, sentence)
				}
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

// A placeholder takes neither the sentence that follows, nor other text for a number.
func TestPlaceholdersStayWithinTheirSentence(t *testing.T) {
	all := newTranslator(t)
	for english, want := range map[string]string{
		"look at the object and its pods in cluster m2; `argosy why deployment web -C m2` shows all that it reported": "查看集群 m2 中的对象及其 Pod；" +
			"`argosy why deployment web -C m2` 显示它上报的全部内容",
		"stop it from doing so, or leave this to the member with a Retain interpretation, or by removing it from the template": "停止其修改，或通过 Retain 解释或从模板中移除该字段，将其交给成员集群",
		"m1: the cluster is not in the fleet; not healthy in m2: it failed":                                                    "m1：该集群不在舰队中；在 m2 中不健康：it failed",
		"3 templates not healthy, such as Deployment.apps shop/web":                                                            "3 个模板 不健康，例如 Deployment.apps shop/web",
		"dispatching is suspended; nothing was sent; the hub retries by itself":                                                "已暂停下发；没有发送任何内容；控制面会自行重试",
		"to take the member's object over, set conflictResolution: Overwrite in PropagationPolicy shop/web or annotate the template a: b": "要接管成员集群中的对象，请在 PropagationPolicy shop/web 中设置 " +
			"conflictResolution: Overwrite，或为模板添加注解 a: b",
		"nothing new is sent: WorksWritten: no room":                                           "没有发送新内容：WorksWritten: no room",
		"do what the message says; a value that it names is in the template or in an override": "按照消息的说明处理；消息中指出的值位于模板或差异化配置中",
		"m1: nothing new is sent: no room":                                                     "m1：没有发送新内容：no room",
		"change the template or an override: the message has the reason":                       "修改模板或差异化配置：消息中有原因",
		"not created yet: 1 pod":                                                               "尚未创建：1 个 Pod",
		"not created yet: 2 pods; `argosy why job web -n shop` asks the cluster why": "尚未创建：2 个 Pod；`argosy why job web -n " +
			"shop` 会向集群查询原因",
		"m1, m2: component worker: nodes that lack cpu: 1 of 3": "m1, m2：组件 worker：缺少 cpu 的节点：1/3",
		"its own words; the hub retries by itself":              "its own words；控制面会自行重试",
	} {
		if got := all.translate(english); got != want {
			t.Errorf("%q is %q, want %q", english, got, want)
		}
	}
}

// A name of the address can be any text: Same shows a command with names only if a shell takes each for one word.
func TestCommandsWithNamesOfTheAddressAreChecked(t *testing.T) {
	files, err := filepath.Glob("src/*.tsx")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	named := regexp.MustCompile("<Command text=\\{`[^`]*\\$\\{(name|namespace|ns|cluster|kind)\\b[^|]*?\\}")
	checked := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := named.Find(source); found != nil {
			t.Errorf("%s has a command without a check: %s", file, found)
		}
		checked += strings.Count(string(source), "<Same names={")
	}
	if checked < 7 {
		t.Errorf("only %d commands have names", checked)
	}
}
