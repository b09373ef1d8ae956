package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// drill is what the templates of a restore drill are, by what happened to them after the backup.
type drill struct {
	*world
	t *testing.T
	// untouched, changed and deleted were there at the backup; added came after it.
	untouched, changed, deleted, added []*template
}

// made creates templates, a Deployment among each five.
func (d *drill) made(namespace string, n int) []*template {
	var all []*template
	for i := range n {
		kind := "ConfigMap"
		if i%5 == 0 {
			kind = "Deployment"
		}
		all = append(all, d.one(kind, namespace))
	}
	return all
}

// one creates a template.
func (d *drill) one(kind, namespace string) *template {
	d.create(kind, namespace)
	d.mu.Lock()
	defer d.mu.Unlock()
	name := fmt.Sprintf("%s-%d", d.world.name, len(d.templates)-1)
	return d.templates[(&template{kind: kind, namespace: namespace, name: name}).key()]
}

// change gives a template another value.
func (d *drill) change(tmpl *template, value int) {
	d.persist("change "+tmpl.key(), func(ctx context.Context) error {
		u := d.object(tmpl)
		if err := fleet.Hub.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		next := d.object(&template{kind: tmpl.kind, namespace: tmpl.namespace, name: tmpl.name, value: value})
		for _, field := range []string{"data", "spec"} {
			if v, ok := next.Object[field]; ok {
				u.Object[field] = v
			}
		}
		return fleet.Hub.Update(ctx, u)
	})
	tmpl.value = value
}

// argosy runs a verb that must go well.
func (d *drill) argosy(args ...string) string {
	d.t.Helper()
	out, err := fleet.Lab.Argosy(d.t.Context(), args...)
	if err != nil {
		d.t.Fatalf("argosy %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// listed are objects that a verb lists as JSON, as "CLUSTER KIND NAMESPACE/NAME".
func (d *drill) listed(field string, args ...string) map[string]bool {
	d.t.Helper()
	out := d.argosy(append(args, "-o", "json")...)
	var lists map[string]json.RawMessage
	var rows []struct{ Cluster, Kind, Namespace, Name string }
	err := json.Unmarshal([]byte(out), &lists)
	if err == nil {
		err = json.Unmarshal(lists[field], &rows)
	}
	if err != nil {
		d.t.Fatalf("%s: %v", out, err)
	}
	all := map[string]bool{}
	for _, r := range rows {
		if !strings.HasPrefix(r.Name, d.world.name) {
			continue // a world of before, which was being deleted when the member's backup was taken
		}
		all[r.Cluster+" "+(&template{kind: r.Kind, namespace: r.Namespace, name: r.Name}).key()] = true
	}
	return all
}

func (d *drill) orphans() map[string]bool { return d.listed("orphans", "get", "orphans") }
func (d *drill) paused() map[string]bool  { return d.listed("held", "restore", "status") }

// inAll are the templates in each member, as listed says them.
func inAll(templates ...[]*template) map[string]bool {
	all := map[string]bool{}
	for _, group := range templates {
		for _, tmpl := range group {
			for _, member := range members {
				all[member+" "+tmpl.key()] = true
			}
		}
	}
	return all
}

// difference returns how two sets differ, empty if they do not.
func difference(what string, got, want map[string]bool) string {
	if maps.Equal(got, want) {
		return ""
	}
	var missing, more []string
	for key := range want {
		if !got[key] {
			missing = append(missing, key)
		}
	}
	for key := range got {
		if !want[key] {
			more = append(more, key)
		}
	}
	slices.Sort(missing)
	slices.Sort(more)
	return fmt.Sprintf("%s: missing %v, too many %v", what, missing, more)
}

// statusOf is the part of `argosy status` by that name, empty if it has none; the verb fails while something is wrong.
func (d *drill) statusOf(part string) string {
	out, _ := fleet.Lab.Argosy(d.t.Context(), "status")
	for line := range strings.Lines(out) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// Promised: a hub that is restored from an older backup deletes nothing in a member, rolls nothing back and makes
// nothing again, says what it found, and does with each what a user then says.
func TestRestoredHubChangesNothingUntilAccepted(t *testing.T) {
	kit.Long(t)
	hub := fleet.Lab.Hub
	data, lost := filepath.Join(hub.Dir, "data"), filepath.Join(hub.Dir, "lost")
	d := &drill{world: newWorld(t), t: t}
	ns := d.namespace()

	// 1. 50 workloads, and a backup.
	before := d.made(ns, 50)
	kit.Eventually(t, "everything converges", d.wrong)
	vault := t.TempDir()
	if err := os.Chmod(vault, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Log(strings.TrimSpace(d.argosy("backup", "--data-dir", data, "--to", vault)))
	files, err := filepath.Glob(filepath.Join(vault, "argosy-*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v (%v)", files, err)
	}
	file := files[0]
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the backup's mode is %v (%v)", info.Mode(), err)
	}

	// 2. 20 more, 10 deleted, 10 changed; then the hub dies, and its disk with it.
	d.deleted, d.changed, d.untouched = before[:10], before[10:20], before[20:]
	d.added = d.made(ns, 20)
	for _, tmpl := range d.deleted {
		tmpl.gone = true
		d.persist("delete "+tmpl.key(), func(ctx context.Context) error { return fleet.Hub.Delete(ctx, d.object(tmpl)) })
	}
	for _, tmpl := range d.changed {
		d.change(tmpl, 2)
	}
	kit.Eventually(t, "everything converges", d.wrong)
	if out, err := fleet.Lab.Argosy(t.Context(), "restore", file, "--data-dir", data); err == nil ||
		!strings.Contains(out, "in use by another argosy") {
		t.Fatalf("a restore into the data folder of a running hub: %v: %s", err, out)
	}
	was := map[string]map[string]found{}
	witnesses := []*witness{d.witness("f1"), d.witness("f2")}
	for _, member := range members {
		was[member] = d.look(member)
	}
	hub.Kill()
	if out, err := fleet.Lab.Argosy(t.Context(), "restore", file, "--data-dir", data); err == nil ||
		!strings.Contains(out, "empty folder") {
		t.Fatalf("a restore over a store: %v: %s", err, out)
	}
	if err := os.Rename(data, lost); err != nil {
		t.Fatal(err)
	}

	// 3. It is restored, and started twice: what it holds survives a start.
	t.Log(strings.TrimSpace(d.argosy("restore", file, "--data-dir", data)))
	if err := start(startTimeout); err != nil {
		t.Fatal(err)
	}
	messages := func() string {
		if wrong := difference("orphans", d.orphans(), inAll(d.added)); wrong != "" {
			return wrong
		}
		return difference("held", d.paused(), inAll(d.deleted, d.changed))
	}
	kit.Eventually(t, "what the hub does not know and what it holds are listed", messages)
	hub.Kill()
	if err := start(startTimeout); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the same is listed after another start", messages)
	same := func() string {
		for _, member := range members {
			now := d.look(member)
			for key, then := range was[member] {
				switch now[key] {
				case then:
				case found{}:
					return fmt.Sprintf("%s left %s", key, member)
				default:
					return fmt.Sprintf("%s in %s was %v and is %v", key, member, then, now[key])
				}
			}
			if len(now) != len(was[member]) {
				return fmt.Sprintf("%s has %d objects, had %d", member, len(now), len(was[member]))
			}
		}
		return ""
	}
	kit.Stays(t, "the restored hub changed a member", 5*time.Second, same)
	for _, seen := range witnesses {
		seen.mu.Lock()
		if len(seen.left)+len(seen.came) > 0 {
			t.Errorf("in %s came %v and left %v", seen.member, seen.came, seen.left)
		}
		seen.mu.Unlock()
	}
	kit.Eventually(t, "status reports them", func() string {
		orphans, paused := d.statusOf("20 in f1, 20 in f2"), d.statusOf("40 objects in clusters are held")
		if orphans == "" || paused == "" {
			out, _ := fleet.Lab.Argosy(t.Context(), "status")
			return out
		}
		return ""
	})
	d.table("after the restore, before anybody said anything", was)

	// 4. What users say is done, and nothing else. Without --yes nothing is deleted.
	if out, err := fleet.Lab.Argosy(t.Context(), "orphans", "delete", "--all", "-n", ns); err == nil ||
		!strings.Contains(out, "40 objects would be deleted") {
		t.Errorf("%v: %s", err, out)
	}
	adopted, applied, dropped, rest := d.added[0], d.added[1], d.added[2], d.added[3:]
	d.argosy("adopt", adopted.kind, adopted.name, "-n", ns, "-C", "f1")
	// as GitOps does
	d.persist("create "+applied.key(), func(ctx context.Context) error { return fleet.Hub.Create(ctx, d.object(applied)) })
	d.argosy("orphans", "delete", dropped.kind, dropped.name, "-n", ns, "--yes")
	again, rolled := d.deleted[0], d.changed[0]
	d.argosy("restore", "accept", again.kind, again.name, "-n", ns)
	d.argosy("restore", "accept", rolled.kind, rolled.name, "-n", ns)
	final := d.deleted[1]
	d.persist("delete "+final.key(), func(ctx context.Context) error { return fleet.Hub.Delete(ctx, d.object(final)) })
	kit.Eventually(t, "what was said is done", func() string {
		if wrong := difference("orphans", d.orphans(), inAll(rest)); wrong != "" {
			return wrong
		}
		if wrong := difference("held", d.paused(), inAll(d.deleted[2:], d.changed[1:])); wrong != "" {
			return wrong
		}
		for _, member := range members {
			now := d.look(member)
			switch {
			case now[adopted.key()].uid != was[member][adopted.key()].uid,
				now[applied.key()].uid != was[member][applied.key()].uid:
				return member + " has another object for an orphan that was taken into the fleet"
			case now[dropped.key()] != found{}:
				return member + " has the orphan that was deleted"
			case now[again.key()].value != "1":
				return member + " lacks what was accepted to come again"
			case now[rolled.key()].value != "1" || now[rolled.key()].uid != was[member][rolled.key()].uid:
				return member + " has not been rolled back where that was accepted"
			case now[final.key()] != found{}:
				return member + " has what was deleted twice"
			}
			for _, group := range [][]*template{rest, d.untouched, d.changed[1:]} {
				for _, tmpl := range group {
					if now[tmpl.key()].uid != was[member][tmpl.key()].uid || now[tmpl.key()].value != was[member][tmpl.key()].value {
						return fmt.Sprintf("%s in %s was %v and is %v", tmpl.key(), member, was[member][tmpl.key()], now[tmpl.key()])
					}
				}
			}
		}
		return ""
	})

	// 5. The end: the rest is accepted and deleted, and the fleet is the hub's again.
	d.argosy("orphans", "delete", "--all", "-n", ns, "--yes")
	d.argosy("restore", "accept", "--all")
	for _, group := range [][]*template{d.deleted, d.changed, d.added} {
		for _, tmpl := range group {
			tmpl.gone, tmpl.value = false, 1
		}
	}
	final.gone, dropped.gone = true, true
	for _, tmpl := range rest {
		tmpl.gone = true
	}
	kit.Eventually(t, "everything converges", d.wrong)
	d.table("after everything was accepted, and the orphans deleted", was)
	if wrong := difference("orphans", d.orphans(), nil); wrong != "" {
		t.Error(wrong)
	}
	if out := d.argosy("restore", "status"); !strings.Contains(out, "Nothing is held") {
		t.Error(out)
	}
}

// table returns what became of each group in both members.
func (d *drill) table(when string, was map[string]map[string]found) {
	orphans, paused := d.orphans(), d.paused()
	var b strings.Builder
	fmt.Fprintf(&b, "%s (objects in both members):\n%-34s %9s %6s %8s %9s %7s %7s\n", when, "", "templates", "there",
		"same UID", "rewritten", "orphans", "held")
	for _, row := range []struct {
		what      string
		templates []*template
	}{{"untouched since the backup", d.untouched}, {"changed since the backup", d.changed},
		{"deleted since the backup", d.deleted}, {"made since the backup", d.added}} {
		var there, same, rewritten, orphaned, holding int
		for _, member := range members {
			now := d.look(member)
			for _, tmpl := range row.templates {
				then, is := was[member][tmpl.key()], now[tmpl.key()]
				if is != (found{}) {
					there++
				}
				if is != (found{}) && is.uid == then.uid {
					same++
					if is.version != then.version {
						rewritten++
					}
				}
				if orphans[member+" "+tmpl.key()] {
					orphaned++
				}
				if paused[member+" "+tmpl.key()] {
					holding++
				}
			}
		}
		fmt.Fprintf(&b, "%-34s %9d %6d %8d %9d %7d %7d\n", row.what, len(row.templates), there, same, rewritten, orphaned,
			holding)
	}
	d.t.Log(b.String())
}

// Promised: a member that is restored from an older backup is brought up to what the hub says, by the hub itself; what
// the hub had deleted since and the member has again is listed, and left alone until a user says so.
func TestAMemberRestoredFromAnOlderBackupIsBroughtUpToDate(t *testing.T) {
	kit.Long(t)
	d := &drill{world: newWorld(t), t: t}
	ns := d.namespace()
	before := d.made(ns, 15)
	kit.Eventually(t, "everything converges", d.wrong)

	// 1. A backup of the member, and what came after it.
	member := fleet.Fleet.Members()[1]
	older := filepath.Join(t.TempDir(), "older")
	restart := func(while func() error) {
		t.Helper()
		back := kill(t, member)
		err := while()
		back()
		if err != nil {
			t.Fatal(err)
		}
	}
	restart(func() error { return exec.Command("cp", "-a", member.Dir, older).Run() })
	d.deleted, d.changed, d.untouched = before[:5], before[5:10], before[10:]
	d.added = d.made(ns, 5)
	for _, tmpl := range d.deleted {
		tmpl.gone = true
		d.persist("delete "+tmpl.key(), func(ctx context.Context) error { return fleet.Hub.Delete(ctx, d.object(tmpl)) })
	}
	for _, tmpl := range d.changed {
		d.change(tmpl, 2)
	}
	kit.Eventually(t, "everything converges", d.wrong)
	first := d.look("f1")

	// 2. The member goes back, and its time with it: its resource versions are those of before.
	restart(func() error {
		if err := os.RemoveAll(member.Dir); err != nil {
			return err
		}
		return exec.Command("cp", "-a", older, member.Dir).Run()
	})
	want := map[string]bool{}
	for _, tmpl := range d.deleted {
		want["f2 "+tmpl.key()] = true
	}
	kit.Eventually(t, "the member is up to date, and what it has again is listed", func() string {
		now := d.look("f2")
		for _, group := range [][]*template{d.changed, d.untouched, d.added} {
			for _, tmpl := range group {
				if now[tmpl.key()].value != fmt.Sprint(tmpl.value) {
					return fmt.Sprintf("%s in f2 has %q, want %d", tmpl.key(), now[tmpl.key()].value, tmpl.value)
				}
			}
		}
		for _, tmpl := range d.deleted {
			if now[tmpl.key()] == (found{}) {
				return tmpl.key() + " was deleted in f2 though nobody said so"
			}
		}
		if wrong := difference("orphans", d.orphans(), want); wrong != "" {
			return wrong
		}
		if d.statusOf(" in f2") == "" {
			out, _ := fleet.Lab.Argosy(t.Context(), "status")
			return out
		}
		return ""
	})
	if now := d.look("f1"); !maps.Equal(now, first) {
		t.Errorf("the other member was touched: %v, was %v", now, first)
	}

	// 3. A user has them deleted.
	d.argosy("orphans", "delete", "--all", "-C", "f2", "--yes")
	kit.Eventually(t, "everything converges", d.wrong)
}
