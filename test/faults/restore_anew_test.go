package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// Promised: a restored hub whose backup has a deletion under way does not delete what was made anew under the same name
// since, and lists it; nor is a restore over while a member was not looked at.
func TestRestoredHubDeletesNoRecreatedObject(t *testing.T) {
	kit.Long(t)
	hub := fleet.Lab.Hub
	data := filepath.Join(hub.Dir, "data")
	d := &drill{world: newWorld(t), t: t}
	ns := d.namespace()
	anew := []*template{d.one("ConfigMap", ns), d.one("ConfigMap", ns)}
	each := func(change func(*unstructured.Unstructured)) {
		for _, member := range members {
			for _, tmpl := range anew {
				fleet.Members[member].Change(t, "v1", "ConfigMap", ns, tmpl.name, change)
			}
		}
	}
	kit.Eventually(t, "everything converges", d.wrong)

	// 1. Their deletion hangs in the members while the backup is taken.
	each(func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"faults.example.com/hangs"}) })
	for _, tmpl := range anew {
		d.persist("delete "+tmpl.key(), func(ctx context.Context) error { return fleet.Hub.Delete(ctx, d.object(tmpl)) })
	}
	kit.Eventually(t, "the deletion hangs in all members", func() string {
		for _, member := range members {
			objs, err := d.objects(t.Context(), fleet.Members[member])
			if err != nil {
				return err.Error()
			}
			for _, u := range objs {
				if u.GetDeletionTimestamp() == nil {
					return u.GetName() + " is not being deleted in " + member
				}
			}
		}
		return ""
	})
	vault := t.TempDir()
	if err := os.Chmod(vault, 0o700); err != nil {
		t.Fatal(err)
	}
	d.argosy("backup", "--data-dir", data, "--to", vault)
	files, err := filepath.Glob(filepath.Join(vault, "argosy-*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v (%v)", files, err)
	}

	// 2. It ends, and users make the same anew. Then the hub dies, and its disk with it.
	each(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	kit.Eventually(t, "they are gone", func() string {
		for _, member := range members {
			if all, err := d.objects(t.Context(), fleet.Members[member]); err != nil || len(all) > 0 {
				return fmt.Sprintf("%s has %d objects (%v)", member, len(all), err)
			}
		}
		return ""
	})
	for _, tmpl := range anew {
		tmpl.value = 2
		d.persist("create "+tmpl.key(), func(ctx context.Context) error { return fleet.Hub.Create(ctx, d.object(tmpl)) })
	}
	kit.Eventually(t, "everything converges", d.wrong)
	was := map[string]map[string]found{}
	for _, member := range members {
		was[member] = d.look(member)
	}
	hub.Kill()
	if err := os.Rename(data, filepath.Join(hub.Dir, "lost-with-a-deletion")); err != nil {
		t.Fatal(err)
	}
	d.argosy("restore", files[0], "--data-dir", data)
	back := kill(t, fleet.Fleet.Members()[1])
	if err := start(startTimeout); err != nil {
		t.Fatal(err)
	}
	if out, err := fleet.Lab.Argosy(t.Context(), "restore", "accept", "--all"); err == nil ||
		!strings.Contains(out, " in f2") {
		t.Errorf("a restore is over while f2 was not looked at: %v: %s", err, out)
	}
	back()

	// 3. The restored hub ends the deletion that it has under way, over restarts too: what is there now is no part of it,
	//    and is listed.
	messages := func() string {
		for _, member := range members {
			for _, tmpl := range anew {
				work := &workv1alpha1.Work{}
				if err := fleet.Hub.Get(t.Context(),
					client.ObjectKey{Namespace: names.ExecutionSpace(member), Name: names.Work(tmpl.kind, tmpl.name, ns)},
					work); !apierrors.IsNotFound(err) {
					return fmt.Sprintf("the Work of %s for %s is there (%v): %+v", tmpl.name, member, err, work.Status.Conditions)
				}
			}
			if now := d.look(member); !maps.Equal(now, was[member]) {
				t.Fatalf("%s has %v, and had %v", member, now, was[member])
			}
		}
		if wrong := difference("held", d.paused(), nil); wrong != "" {
			return wrong
		}
		return difference("orphans", d.orphans(), inAll(anew))
	}
	kit.Eventually(t, "what was made anew is listed", messages)
	hub.Kill()
	if err := start(startTimeout); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the same is listed after another start", messages)

	// 4. One is applied again, as GitOps does, and is the fleet's as it is there; the other goes by a word.
	again, gone := anew[0], anew[1]
	d.persist("create "+again.key(), func(ctx context.Context) error { return fleet.Hub.Create(ctx, d.object(again)) })
	d.argosy("orphans", "delete", gone.kind, gone.name, "-n", ns, "--yes")
	gone.gone = true
	kit.Eventually(t, "everything converges", d.wrong)
	for _, member := range members {
		if now := d.look(member)[again.key()]; now.uid != was[member][again.key()].uid {
			t.Errorf("%s in %s is another object than before", again.key(), member)
		}
	}
	d.argosy("restore", "accept", "--all")
}
