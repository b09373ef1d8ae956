package guides

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// row is one thing that an article shows or claims, and what is to come of it here.
type row struct {
	// id is the number under which the row is specified, and block what it is about there.
	id, block string
	// chain orders rows: those of one chain run one after the other and share a namespace, as they share a kind, of which
	// a customization changes the meaning for the whole fleet. Without one, a row is a chain of its own.
	chain string
	// long rows run in the long suite alone.
	long bool
	// want is what is expected, in a few words.
	want string
	// see does what the article says and returns what was seen; it ends by failing the story if that is not what is
	// wanted.
	see func(*story) string
}

// story is a row that is being run.
type story struct {
	t    *testing.T
	id   string
	ns   string
	keep func(client.Object) // has an object removed when the chain ends
	last func(func())        // runs something when the row ends
	made []*unstructured.Unstructured
}

// wrong ends a story.
type wrong struct{ text string }

func (s *story) fail(format string, args ...any) {
	panic(wrong{fmt.Sprintf(format, args...)})
}

// run calls see and returns how it ends.
func (s *story) run(see func(*story) string) (seen string, err error) {
	defer func() {
		if r := recover(); r != nil {
			switch r := r.(type) {
			case wrong:
				err = errors.New(r.text)
			case runtime.Error: // something that should be there is nil
				err = fmt.Errorf("%w\n%s", r, debug.Stack())
			default:
				panic(r)
			}
		}
	}()
	return see(s), nil
}

// result is a line of the table.
type result struct{ id, block, want, seen, verdict string }

var (
	resultsLock sync.Mutex
	results     = map[string]result{}
	order       []string
)

func note(r result) {
	resultsLock.Lock()
	defer resultsLock.Unlock()
	results[r.id] = r
}

// printTable writes a line per row that ran.
func printTable(w io.Writer) {
	resultsLock.Lock()
	defer resultsLock.Unlock()
	count := map[string]int{}
	for _, id := range order {
		r, ok := results[id]
		if !ok {
			continue
		}
		count[r.verdict]++
		fmt.Fprintf(w, "%-6s %-5s %-34s expected: %s | seen: %s\n", r.verdict, r.id, r.block, cut(r.want, 90),
			cut(r.seen, 110))
	}
	if len(count) > 0 {
		fmt.Fprintf(w, "guides: %d rows hold, %d fail\n", count["holds"], count["FAILS"])
	}
}

// folded has one space between words: how wide a column is depends on what else is in the table.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

func cut(text string, n int) string {
	text = folded(text)
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// run tells all rows, chain by chain.
func run(t *testing.T, rows []row) {
	chains := map[string][]row{}
	var names []string
	for _, r := range rows {
		if r.long && testing.Short() {
			continue
		}
		order = append(order, r.id)
		name := r.chain
		if name == "" {
			name = "row " + r.id
		}
		if chains[name] == nil {
			names = append(names, name)
		}
		chains[name] = append(chains[name], r)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			for _, r := range chains[name] {
				tellRow(t, ns, r)
			}
		})
	}
}

func tellRow(t *testing.T, ns string, r row) {
	var ends []func()
	s := &story{t: t, id: r.id, ns: ns,
		keep: func(o client.Object) { fleet.Hub.RemoveAtEnd(t, o) },
		last: func(f func()) { ends = append(ends, f) }}
	started := time.Now()
	seen, err := s.run(r.see)
	if err != nil && r.chain != "" {
		// The next row of the chain begins as if this one had never been.
		for _, u := range slices.Backward(s.made) {
			if _, left := s.run(func(s *story) string { s.drop(u); return "" }); left != nil {
				t.Logf("after row %s: %v", r.id, left)
			}
		}
	}
	for _, f := range slices.Backward(ends) {
		f()
	}
	line := result{r.id, r.block, r.want, seen, "holds"}
	if err != nil {
		line.verdict, line.seen = "FAILS", err.Error()
		t.Errorf("row %s (%s), expected %s: %v", r.id, r.block, r.want, err)
	}
	note(line)
	t.Logf("%s %s %s: expected %s; seen %s (%.1fs)", line.verdict, r.id, r.block, r.want, line.seen,
		time.Since(started).Seconds())
}

// stands gives each cluster of the articles a member that plays it.
var stands = strings.NewReplacer("member-cluster-1", "member1", "member-cluster-2", "member2", "member-cluster-3",
	"member3",
	"cluster-a", "member1", "cluster-b", "member2", "cluster-c", "member3")

// text is the document at a line of an article, word by word.
func (s *story) text(article string, line int) string {
	a := articles[article]
	if a == nil {
		s.fail("there is no article %s", article)
	}
	d, ok := a.documentAt(line)
	if !ok {
		s.fail("%s has no block at line %d", article, line)
	}
	return d.text
}

// doc is the object at a line of an article, in the story's namespace and for our members.
func (s *story) doc(article string, line int) *unstructured.Unstructured {
	return s.object(stands.Replace(s.text(article, line)))
}

// object reads an object; if it is in no namespace or in the default one, it is the story's, as with kubectl
// --namespace.
func (s *story) object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		s.fail("read the block: %v", err)
	}
	scoped, err := fleet.Hub.IsObjectNamespaced(u)
	if err == nil && scoped && (u.GetNamespace() == "" || u.GetNamespace() == "default") {
		u.SetNamespace(s.ns)
	}
	return u
}

// heard collects the warnings of the requests made with a context.
type heard struct {
	mu   sync.Mutex
	text []string
}

type heardKey struct{}

// listener hands warnings to who asked.
type listener struct{}

func (listener) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if h, ok := ctx.Value(heardKey{}).(*heard); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.text = append(h.text, text)
	}
}

// listening is a client of the hub whose warnings are heard, for a user, the administrator if empty.
func (s *story) listening(user string) client.Client {
	config := rest.CopyConfig(fleet.Hub.Config)
	config.WarningHandlerWithContext = listener{}
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: kit.Scheme(), Mapper: fleet.Hub.RESTMapper()})
	if err != nil {
		s.fail("connect: %v", err)
	}
	return c
}

// write creates an object as kubectl does, with unknown fields refused.
func (s *story) write(u *unstructured.Unstructured) (warnings []string, err error) {
	h := &heard{}
	ctx := context.WithValue(s.t.Context(), heardKey{}, h)
	err = s.listening("").Create(ctx, u, client.FieldValidation(metav1.FieldValidationStrict))
	return h.text, err
}

// apply creates an object that is to be accepted, and says of what the author was warned. It goes when the chain ends;
// a customization goes with its row, since it is about the whole fleet.
func (s *story) apply(u *unstructured.Unstructured, warned ...string) *unstructured.Unstructured {
	warnings, err := s.write(u)
	if err != nil {
		s.fail("%s %s is refused: %v", u.GetKind(), u.GetName(), err)
	}
	if u.GetKind() == "ResourceInterpreterCustomization" {
		s.last(func() {
			if err := fleet.Hub.Delete(context.WithoutCancel(s.t.Context()), u); client.IgnoreNotFound(err) != nil {
				s.t.Errorf("delete %s: %v", u.GetName(), err)
			}
		})
	} else {
		s.keep(u)
		s.made = append(s.made, u.DeepCopy())
	}
	for _, w := range warned {
		if !slices.ContainsFunc(warnings, func(got string) bool { return strings.Contains(got, w) }) {
			s.fail("there is no warning of %q, but %q", w, warnings)
		}
	}
	return u
}

// refused checks that an object is rejected with a message.
func (s *story) refused(u *unstructured.Unstructured, message string) string {
	_, err := s.write(u)
	if err == nil {
		s.keep(u)
		s.fail("%s %s is accepted", u.GetKind(), u.GetName())
	}
	if !strings.Contains(err.Error(), message) {
		s.fail("%s %s is refused with %v", u.GetKind(), u.GetName(), err)
	}
	return "refused: " + message
}

// waitUntil waits for a condition. then returns what is still wrong, or "".
func (s *story) waitUntil(what string, then func() string) {
	if wrong := kit.Poll(then); wrong != "" {
		s.fail("%s: not within %s: %s", what, kit.Timeout, wrong)
	}
}

// find reads an object of a cluster; nil if there is none.
func (s *story) find(c kit.Cluster, apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, u)
	if apierrors.IsNotFound(err) {
		// The scope of a kind may be the cluster.
		if err = c.Get(s.t.Context(), client.ObjectKey{Name: name}, u); apierrors.IsNotFound(err) || err != nil {
			return nil
		}
	}
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		s.fail("get %s %s from %s: %v", kind, name, c.Name, err)
	}
	return u
}

// reread reads an object of the hub again.
func (s *story) reread(u *unstructured.Unstructured) *unstructured.Unstructured {
	got := s.find(fleet.Hub, u.GetAPIVersion(), u.GetKind(), u.GetName())
	if got == nil {
		s.fail("%s %s is gone", u.GetKind(), u.GetName())
	}
	return got
}

// shows waits until fields of an object of the hub have values; a key is a path with dots.
func (s *story) shows(u *unstructured.Unstructured, want map[string]any) {
	s.waitUntil(u.GetKind()+" "+u.GetName()+" shows", func() string { return differs(s.reread(u), want) })
}

func differs(u *unstructured.Unstructured, want map[string]any) string {
	var out []string
	for path, value := range want {
		got := kit.Field(u, strings.Split(path, ".")...)
		if fmt.Sprint(got) != fmt.Sprint(value) {
			out = append(out, fmt.Sprintf("%s is %v, want %v", path, got, value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// binding of a template, nil if there is none yet.
func (s *story) binding(u *unstructured.Unstructured) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	name := u.GetName() + "-" + strings.ToLower(u.GetKind())
	err := fleet.Hub.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.fail("get the binding %s: %v", name, err)
	}
	return b
}

// shared waits until a template's replicas are divided so, as "member1:2 member2:2".
func (s *story) shared(u *unstructured.Unstructured, want string) {
	s.waitUntil(u.GetName()+" is divided", func() string {
		b := s.binding(u)
		if b == nil {
			return "there is no binding"
		}
		var all []string
		for _, c := range b.Spec.Clusters {
			all = append(all, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
		}
		slices.Sort(all)
		if got := strings.Join(all, " "); got != want {
			return fmt.Sprintf("it is %q, want %q; %v", got, want, b.Status.Conditions)
		}
		return ""
	})
}

// health is what the binding says of each cluster, as "member1:Healthy member2:Healthy".
func (s *story) health(u *unstructured.Unstructured, want string) {
	s.waitUntil(u.GetName()+" is judged", func() string {
		b := s.binding(u)
		if b == nil {
			return "there is no binding"
		}
		var all []string
		for _, item := range b.Status.AggregatedStatus {
			all = append(all, fmt.Sprintf("%s:%s", item.ClusterName, item.Health))
		}
		slices.Sort(all)
		if got := strings.Join(all, " "); got != want {
			return fmt.Sprintf("it is %q, want %q", got, want)
		}
		return ""
	})
}

// held waits until these members, and no others, hold an object, and returns that of the first.
func (s *story) expectObject(u *unstructured.Unstructured, members ...string) *unstructured.Unstructured {
	var first *unstructured.Unstructured
	s.waitUntil(u.GetKind()+" "+u.GetName()+" is in "+strings.Join(members, ", "), func() string {
		var in []string
		for _, m := range []string{"member3", "member2", "member1"} {
			if got := s.find(fleet.Members[m], u.GetAPIVersion(), u.GetKind(), u.GetName()); got != nil {
				in = append(in, m)
				first = got
			}
		}
		slices.Sort(in)
		if !slices.Equal(in, members) {
			return fmt.Sprintf("it is in %v", in)
		}
		return ""
	})
	return first
}

// ready waits until so many pods of an app are ready in each member, as "member1:2 member2:2".
func (s *story) ready(app, want string) {
	s.waitUntil("pods of "+app+" run", func() string {
		var all []string
		for m, c := range fleet.Members {
			var list corev1.PodList
			if err := c.List(s.t.Context(), &list, client.InNamespace(s.ns), client.MatchingLabels{"app": app}); err != nil {
				s.fail("list pods of %s: %v", m, err)
			}
			n := 0
			for _, p := range list.Items {
				if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
				}) {
					n++
				}
			}
			if n > 0 {
				all = append(all, fmt.Sprintf("%s:%d", m, n))
			}
		}
		slices.Sort(all)
		if got := strings.Join(all, " "); got != want {
			return fmt.Sprintf("ready are %q, want %q", got, want)
		}
		return ""
	})
}

// change edits an object of the hub.
func (s *story) change(u *unstructured.Unstructured, edit func(map[string]any)) {
	s.waitUntil("change "+u.GetName(), func() string {
		got := s.reread(u)
		edit(got.Object)
		if err := fleet.Hub.Update(s.t.Context(), got); apierrors.IsConflict(err) {
			return err.Error()
		} else if err != nil {
			s.fail("change %s: %v", u.GetName(), err)
		}
		return ""
	})
}

func set(object map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(object, value, path...); err != nil {
		panic(wrong{err.Error()})
	}
}

// argosy runs the binary under a name, on our hub.
func (s *story) argosy(name string, args ...string) (string, error) {
	link := filepath.Join(s.t.TempDir(), name)
	binary, err := filepath.Abs(fleet.Lab.Hub.Binary)
	if err == nil {
		err = os.Symlink(binary, link)
	}
	if err != nil {
		s.fail("name the binary %s: %v", name, err)
	}
	cmd := exec.CommandContext(s.t.Context(), link, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fleet.Lab.Hub.Kubeconfig())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// prints runs a command that is to succeed and print something.
func (s *story) prints(text string, args ...string) string {
	out, err := s.argosy(args[0], args[1:]...)
	if err != nil || !strings.Contains(folded(out), text) {
		s.fail("%s: %v, printed %q, want %q", strings.Join(args, " "), err, cut(out, 1000), text)
	}
	return strings.Join(args, " ") + " prints " + text
}

// finds checks that the check of a customization warns of something.
func (s *story) finds(text string, findings ...string) string {
	file := filepath.Join(s.t.TempDir(), "block.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.fail("%v", err)
	}
	// it fails where there is an error
	out, _ := s.argosy("argosy", "interpret", "-f", file, "--check")
	for _, f := range findings {
		if !strings.Contains(out, f) {
			s.fail("--check does not say %q, but %s", f, cut(out, 2000))
		}
	}
	return "--check: " + strings.Join(findings, "; ")
}

// shownBy is for rows that another test tells: it must be there.
func shownBy(dir string, tests ...string) func(*story) string {
	return func(s *story) string {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			s.fail("there are no tests in %s: %v", dir, err)
		}
		var all []byte
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				s.fail("%v", err)
			}
			all = append(all, text...)
		}
		for _, test := range tests {
			if !regexp.MustCompile(`(?m)^func ` + test + `\(t \*testing\.T\)`).Match(all) {
				s.fail("%s has no %s", dir, test)
			}
		}
		return dir + " " + strings.Join(tests, ", ")
	}
}

// documented is for rows that are words: our own documents say it right.
func documented(file string, phrases ...string) func(*story) string {
	return func(s *story) string {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			s.fail("%v", err)
		}
		flat := strings.Join(strings.Fields(string(text)), " ")
		for _, p := range phrases {
			if !strings.Contains(flat, p) {
				s.fail("%s does not say %q", file, p)
			}
		}
		return file + " says it"
	}
}

// served checks that the hub has a kind.
func served(apiVersion, kind string) func(*story) string {
	return func(s *story) string {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		if _, err := fleet.Hub.IsObjectNamespaced(u); err != nil {
			s.fail("%s %s is not served: %v", apiVersion, kind, err)
		}
		return kind + " is served"
	}
}

// hasCommand checks that the binary has a command with a flag.
func hasCommand(flag string, command ...string) func(*story) string {
	return func(s *story) string {
		out, err := s.argosy("argosy", append(slices.Clone(command), "--help")...)
		if err != nil || !strings.Contains(out, "argosy "+strings.Join(command, " ")+" ") &&
			!strings.Contains(out, "argosy "+strings.Join(command, " ")+"\n") {
			s.fail("there is no command %v: %s", command, cut(out, 200))
		}
		if flag != "" && !strings.Contains(out, flag) {
			s.fail("%v has no flag %s", command, flag)
		}
		return strings.Join(command, " ") + " " + flag
	}
}
